//! The examples that the seeds print run as they stand, with the TypeScript kit.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../tests/shared/harness.rs"]
mod harness;
#[path = "it/support.rs"]
#[expect(dead_code, reason = "the rest is for the tests of the program")]
mod support;
#[path = "it/plugins/typescript.rs"]
mod typescript;

use harness::{Test, beside};
use serde_json::Value;
use std::process::{Command, ExitCode};
use support::Suite;
use typescript::compile;

const SEEDS: &str = "seeds";

fn main() -> ExitCode {
    let tests: &[Test] = &[
        (
            "the_printed_examples_run_as_they_stand",
            the_printed_examples_run_as_they_stand,
        ),
        (
            "the_printed_call_runs_a_suite_from_a_script",
            the_printed_call_runs_a_suite_from_a_script,
        ),
    ];
    harness::run(SEEDS, tests)
}

/// The code block below a heading of one of the seeds, with its import line changed.
fn printed(seed: &str, heading: &str) -> String {
    let file = std::fs::read_dir(beside(SEEDS))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(seed)
        })
        .unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let section = text.split(&format!("## {heading}\n")).nth(1).unwrap();
    let code = section
        .split("```typescript\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    code.replace("@ghx-dev/agent-profiler", "assize")
}

const STUB_SUITE: &str = "\
provider: { uses: stub-provider }
modes: { plain: {}, other: {} }
scenarios: { paths: ['scenarios/*.yaml'] }
collectors: [token, reasoning_count, tool_stats]
execution: { repetitions: 2 }
plugins:
  - { id: stub, command: [node, provider.js] }
  - { id: reasoning, command: [node, reasoning.js] }
  - { id: tools, command: [node, tools.js] }
";

/// Only the import line is changed and the last line added.
fn the_printed_examples_run_as_they_stand() {
    let suite = Suite::of(STUB_SUITE);
    let serve = "\nimport { servePlugin } from \"assize\"; ";
    let examples = [
        (
            "provider.ts",
            printed("003", "Complete Stub Example"),
            "servePlugin({ provider: stubProvider })",
        ),
        (
            "reasoning.ts",
            printed("004", "Basic Example"),
            "servePlugin({ collectors: [reasoningCountCollector] })",
        ),
        (
            "tools.ts",
            printed("004", "Multi-Metric Collector"),
            "servePlugin({ collectors: [toolStatsCollector] })",
        ),
    ];
    for (file, code, last) in examples {
        suite.write(file, format!("{code}{serve}{last}\n"));
    }
    compile(suite.path());
    suite.done(&["run", "-q"]);
    let rows = suite.rows();
    assert_eq!(rows.len(), 8);
    for row in rows {
        assert_eq!(row["outcome"], "pass", "{row}");
        assert_eq!(row["tokens"]["total"], 85, "{row}");
        assert_eq!(row["extensions"]["reasoning_events"], 0, "{row}");
        assert_eq!(row["extensions"]["tool_call_total"], 0, "{row}");
        assert!(row.get("hookErrors").is_none(), "{row}");
    }
}

/// The call as it is printed, with the other options filled in.
fn the_printed_call_runs_a_suite_from_a_script() {
    let suite = Suite::of("");
    std::fs::remove_file(suite.path().join("assize.yaml")).unwrap();
    let without_import = |code: String| code[code.find("const ").unwrap()..].to_owned();
    let call = printed("004", "Registering Collectors");
    let call = call.replace(
        "// ... other options",
        "provider: stubProvider, modes: [\"a\", \"b\"], repetitions: 2, hooks: { beforeScenario: () => { calls += 1 } },\n\
         scenarios: [{ id: \"one\", prompt: \"Do it.\" }, { id: \"two\", prompt: \"Do that.\" }], warmup: false,",
    );
    let code = format!(
        "import type {{ SessionProvider, ProviderConfig, CreateSessionParams, SessionHandle, PromptResult, SessionTrace, \
         Collector, CustomMetric, BaseScenario }} from \"assize\"\n{}\n{}\n{}\nlet calls = 0\n{call}\n\
         console.log(JSON.stringify({{ result, calls }}))\n",
        without_import(printed("003", "Complete Stub Example")),
        without_import(printed("004", "Basic Example")),
        without_import(printed("004", "Multi-Metric Collector")),
    );
    suite.write("script.ts", code);
    compile(suite.path());
    let output = Command::new("node")
        .arg("script.js")
        .current_dir(suite.path())
        .env("ASSIZE_BIN", env!("CARGO_BIN_EXE_assize"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = printed["result"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    assert_eq!(rows[0]["extensions"]["tool_call_total"], 0);
    assert_eq!(rows[0]["extensions"]["tokens_total"], 85);
    // The hook is the script's own: it sees the script's variables.
    assert_eq!(printed["calls"], 8);
    let left: Vec<_> = std::fs::read_dir(suite.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().starts_with(".assize-suite")),
        "{left:?}"
    );
}
