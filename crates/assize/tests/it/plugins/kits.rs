//! The kits as people use them: the printed examples, scripts that run suites, templates, and a run under fire.

use super::sdk;
use super::typescript::compile;
use crate::support::{Suite, assize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const PROVIDER: &str = "\
import { servePlugin } from 'assize'

servePlugin({
  provider: {
    id: 'sums',
    scope: 'session',
    concurrency: 'any',
    mayCost: false,
    init() {},
    createSession: ({ mode, scenarioId, iteration, attempt }) => ({
      sessionId: `${mode}-${scenarioId}-${iteration}-${attempt}`, provider: 'sums', createdAt: new Date().toISOString(),
    }),
    // The sessions named after a wrong sum get it wrong.
    async prompt({ sessionId }, text) {
      await new Promise((resolve) => setTimeout(resolve, 2))
      const right = text.split('+').reduce((sum, part) => sum + Number(part), 0)
      return { text: `it is ${sessionId.includes('wrong') ? right + 1 : right}`, completionReason: 'stop', metrics: {} }
    },
    exportSession: ({ sessionId }) => ({
      sessionId, events: [], turns: [], summary: { totalTurns: 0, totalToolCalls: 0, totalTokens: {}, totalDuration: null },
    }),
    destroySession() {},
    shutdown() {},
  },
})
";

const SCORER: &str = "\
from assize import Plugin

plugin = Plugin('right-sum')

@plugin.scorer('right_sum')
def right_sum(scenario, context):
    expected = sum(int(part) for part in scenario['prompt'].split('+'))
    passed = context['agentOutput'] == f'it is {expected}'
    return {'success': passed, 'passed': int(passed), 'total': 1, 'details': [], 'outputValid': True}

plugin.serve()
";

/// A provider in TypeScript, a scorer in Python and a collector in Rust, all killed again and again.
fn mixed_suite() -> Suite {
    let words = std::env::current_exe().unwrap();
    let words = words
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples/words_program");
    let suite = Suite::of("");
    let home = suite.path().display();
    suite.write(
        "assize.yaml",
        format!(
            "provider: {{ uses: sums }}\nmodes: {{ plain: {{}}, other: {{}} }}\n\
             scenarios: {{ paths: ['sums/*.yaml'] }}\nscorer: {{ uses: right_sum }}\ncollectors: [answer_words]\n\
             execution: {{ repetitions: 100, warmup: false, concurrency: 8, seed: 7 }}\n\
             plugins:\n\
             - {{ id: sums, command: [node, '{home}/provider.mjs'], restarts: 20 }}\n\
             - {{ id: right-sum, command: [python3, '{home}/scorer.py'], environment: {{ PYTHONPATH: '{}' }}, restarts: 20 }}\n\
             - {{ id: words, command: ['{}', '{home}'], restarts: 20 }}\n",
            sdk("python").display(),
            words.display(),
        ),
    );
    for (id, prompt) in [
        ("right-a", "1+2"),
        ("right-b", "20+22"),
        ("right-c", "5+5+5"),
        ("wrong-d", "1+1"),
        ("wrong-e", "9+9"),
    ] {
        suite.write(
            &format!("sums/{id}.yaml"),
            format!("id: {id}\nprompt: '{prompt}'\n"),
        );
    }
    suite.write("provider.mjs", PROVIDER);
    suite.write("scorer.py", SCORER);
    let modules = suite.path().join("node_modules");
    std::fs::create_dir_all(&modules).unwrap();
    std::os::unix::fs::symlink(sdk("typescript"), modules.join("assize")).unwrap();
    suite
}

/// Processes that were started with this directory in their arguments.
fn programs_of(directory: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&arguments).contains(directory) {
            found.push(pid);
        }
    }
    found.sort_unstable();
    found
}

#[test]
#[cfg(target_os = "linux")]
fn a_thousand_trials_survive_plugins_that_are_killed_at_random() {
    let suite = mixed_suite();
    let home = suite.path().display().to_string();
    let mut run = assize(suite.path())
        .args(["run", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut finished, mut killed, mut dice) = (0u64, 0, 7u64);
    for line in BufReader::new(run.stdout.take().unwrap()).lines() {
        finished += u64::from(line.unwrap().contains("\"trial_finished\""));
        if finished % 25 != 10 {
            continue;
        }
        finished += 1;
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let programs = programs_of(&home);
        if let Some(&victim) = programs.get((dice >> 33) as usize % programs.len().max(1)) {
            killed += i32::from(
                nix::sys::signal::kill(
                    nix::unistd::Pid::from_raw(victim),
                    nix::sys::signal::SIGKILL,
                )
                .is_ok(),
            );
        }
    }
    assert!(run.wait().unwrap().success());
    assert!(killed >= 20, "only {killed} were killed");
    let void = check_rows(&suite.rows());
    assert!(void > 0, "nothing was hit by {killed} kills");
    // What taught nothing can be done again, now in peace, and then everything is known.
    suite.done(&["run", "-q", "--resume", "last", "--only", "void"]);
    assert_eq!(check_rows(&suite.rows()), 0);
    assert!(programs_of(&home).is_empty(), "programs were left behind");
}

/// Every trial once, each with the right outcome; gives the number of void ones.
fn check_rows(rows: &[Value]) -> usize {
    let cell = |row: &Value| format!("{} {} {}", row["scenarioId"], row["mode"], row["iteration"]);
    assert_eq!(rows.iter().map(cell).collect::<BTreeSet<_>>().len(), 1000);
    assert_eq!(rows.len(), 1000);
    let mut void = BTreeMap::<String, usize>::new();
    for row in rows {
        let is_right = row["scenarioId"].as_str().unwrap().starts_with("right");
        match row["outcome"].as_str().unwrap() {
            "void" => *void.entry(row["errorCode"].to_string()).or_default() += 1,
            outcome => assert_eq!(outcome, if is_right { "pass" } else { "fail" }, "{row}"),
        }
        let has_lost_words = row["hookErrors"].to_string().contains("collector:words")
            || row["hookErrors"]
                .to_string()
                .contains("collector:answer_words");
        if row["outcome"] != "void" && !has_lost_words {
            assert_eq!(row["extensions"]["answer_words"], 3, "{row}");
        }
    }
    let known = [
        "\"plugin_crashed\"",
        "\"scorer_error\"",
        "\"plugin_unavailable\"",
    ];
    assert!(
        void.keys().all(|code| known.contains(&code.as_str())),
        "{void:?}"
    );
    void.values().sum()
}

/// Writes the template of a language and gives the directory.
fn template(language: &str) -> Suite {
    let suite = Suite::of("");
    std::fs::remove_dir_all(suite.path().join("scenarios")).unwrap();
    std::fs::remove_file(suite.path().join("assize.yaml")).unwrap();
    suite.done(&["init", "--plugin", language]);
    suite
}

/// Every check of the conformance run holds, and the suite runs with the metric and the verdict of the plugin.
fn check_template(suite: &Suite, test: &[&str], program: &Path) {
    let tested = suite.done(&[&["plugins", "test"], test].concat());
    assert!(
        !tested.contains("FAIL")
            && tested.contains("scorer says: `scorer/evaluate` judges a trial"),
        "{tested}"
    );
    let output = Command::new(program)
        .args(["run", "-q"])
        .current_dir(suite.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let rows = suite.rows();
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert_eq!(
            (&row["outcome"], &row["extensions"]["answer_words"]),
            (&"pass".into(), &2.into()),
            "{row}"
        );
    }
}

#[test]
fn the_template_in_python_conforms_and_runs() {
    let suite = template("py");
    check_template(
        &suite,
        &["python3", "plugin.py"],
        Path::new(env!("CARGO_BIN_EXE_assize")),
    );
}

#[test]
fn the_template_in_typescript_conforms_and_runs() {
    let suite = template("ts");
    let modules = suite.path().join("node_modules");
    std::fs::create_dir_all(&modules).unwrap();
    // As `npm install` would do with what package.json says.
    std::os::unix::fs::symlink("../vendor/assize", modules.join("assize")).unwrap();
    compile(suite.path());
    check_template(
        &suite,
        &["node", "plugin.js"],
        Path::new(env!("CARGO_BIN_EXE_assize")),
    );
}

#[test]
fn the_template_in_rust_conforms_and_runs() {
    let suite = template("rust");
    let tests = std::env::current_exe().unwrap();
    // The same source, built with the workspace.
    let built = tests
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples/template_plugin");
    check_template(
        &suite,
        &[built.to_str().unwrap(), "plugins", "serve"],
        &built,
    );
}
