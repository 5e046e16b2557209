//! The first hour of a new user: the steps that `--help` names, reasons for what did not work, and the last run from anywhere.

use crate::support::{Outcome, Suite, assize};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A user's machine: a home that remembers, and a current directory.
struct Machine {
    home: TempDir,
    place: TempDir,
}

impl Machine {
    fn new() -> Self {
        Self {
            home: TempDir::new().unwrap(),
            place: TempDir::new().unwrap(),
        }
    }

    fn at(&self, directory: &Path, arguments: &[&str]) -> Outcome {
        assize(directory)
            .env_remove("XDG_STATE_HOME")
            .env_remove("CI")
            .env("HOME", self.home.path())
            .args(arguments)
            .output()
            .unwrap()
            .into()
    }

    fn done(&self, arguments: &[&str]) -> String {
        let outcome = self.at(self.place.path(), arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:#?}");
        outcome.stdout
    }

    fn pointer(&self) -> std::path::PathBuf {
        self.home.path().join(".local/state/assize/last-run")
    }
}

#[test]
fn the_first_steps_of_the_help_work_one_after_another() {
    let machine = Machine::new();
    let help = machine.done(&["--help"]);
    let (_, steps) = help.split_once("First steps:\n").unwrap();
    let (steps, _) = steps.split_once("\n\n").unwrap();
    let mut done = 0;
    for line in steps
        .lines()
        .filter(|line| line.trim().starts_with("assize "))
    {
        let command = line.trim().split("  ").next().unwrap();
        let command = command
            .replace("CMD -m CMD", "cat -m tac")
            .replace("TEXT", "hi");
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        machine.done(&words);
        done += 1;
    }
    assert!(done >= 6, "{steps}");
}

#[test]
fn the_last_run_is_found_from_anywhere() {
    let machine = Machine::new();
    machine.done(&["init", "demo"]);
    machine.done(&["run", "demo", "-q"]);
    let mode = machine.pointer().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let elsewhere = TempDir::new().unwrap();
    for arguments in [
        &["compare"][..],
        &["show"],
        &["show", "last/0"],
        &["show", "fix-bug"],
        &["gate", "--gate", "success >= 0.5"],
        &["report"],
        &["runs"],
        &["run", "--resume", "last", "-q"],
    ] {
        let outcome = machine.at(elsewhere.path(), arguments);
        assert!(
            matches!(outcome.code, Some(0 | 3 | 4)),
            "{arguments:?}: {outcome:#?}"
        );
        assert!(
            outcome
                .stderr
                .contains("there is no suite here; the last run is meant:\n  /"),
            "{arguments:?}: {}",
            outcome.stderr
        );
    }
    assert!(
        std::fs::read_dir(elsewhere.path())
            .unwrap()
            .next()
            .is_none(),
        "nothing is left where nothing was"
    );
}

#[test]
fn a_suite_here_goes_before_the_last_run() {
    let machine = Machine::new();
    machine.done(&["init", "demo"]);
    machine.done(&["run", "demo", "-q"]);
    let here = Suite::new();
    let outcome = machine.at(here.path(), &["compare"]);
    assert_eq!(outcome.code, Some(1), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("there are no runs in"),
        "{outcome:#?}"
    );
    here.done(&["run", "-q"]);
    let outcome = machine.at(here.path(), &["show"]);
    assert!(
        outcome.stdout.contains("do") || outcome.stdout.contains("one #0"),
        "{outcome:#?}"
    );
    assert!(!outcome.stderr.contains("no suite here"), "{outcome:#?}");
}

#[test]
fn no_home_fails_no_command_and_ci_remembers_nothing() {
    let machine = Machine::new();
    machine.done(&["init", "demo"]);
    let run = |change: &dyn Fn(&mut std::process::Command)| {
        let mut command = assize(machine.place.path());
        command.env_remove("XDG_STATE_HOME").env_remove("CI");
        command.env("HOME", machine.home.path());
        change(&mut command);
        let outcome: Outcome = command.args(["run", "demo", "-q"]).output().unwrap().into();
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        outcome
    };
    run(&|command| {
        command.env_remove("HOME");
    });
    run(&|command| {
        command.env("HOME", "/proc/none");
    });
    run(&|command| {
        command.env("HOME", "relative");
    });
    run(&|command| {
        command.env("CI", "true");
    });
    assert!(!machine.pointer().exists());
    // What is remembered may be gone or nonsense.
    std::fs::create_dir_all(machine.pointer().parent().unwrap()).unwrap();
    for content in ["/nowhere/at/all\n", "relative\n", "\u{0}", ""] {
        std::fs::write(machine.pointer(), content).unwrap();
        let outcome = machine.at(machine.place.path(), &["compare"]);
        assert_eq!(outcome.code, Some(1), "{outcome:#?}");
        assert!(
            outcome.stderr.contains("there are no runs in"),
            "{outcome:#?}"
        );
    }
}

const BROKEN: &str = "\
modes:
  good:
    system_instructions: Be brief.
    provider: { uses: command, command: [sh, -c, 'echo fixed > a.txt; echo new > b.txt; rm c.txt; echo all done'], free: true }
  wrong: { provider: { uses: command, command: [sh, -c, 'echo wrong > a.txt; echo all done'], free: true } }
  broken: { provider: { uses: command, command: [sh, -c, 'echo out of cheese >&2; exit 3'], free: true } }
scenarios: { paths: ['scenarios/*.yaml'] }
execution: { repetitions: 2 }
";

fn broken() -> Suite {
    let suite = Suite::of(BROKEN);
    std::fs::remove_dir_all(suite.path().join("scenarios")).unwrap();
    suite.write("files/a.txt", "first\nbroken\nlast\n");
    suite.write("files/c.txt", "old\n");
    suite.write(
        "scenarios/fix.yaml",
        "id: fix\nprompt: Fix a.txt in {workspace}.\nworkspace: { from: files }\nchecks:\n  - file: { path: a.txt, contains: fixed }\n",
    );
    suite
}

#[test]
fn reasons_are_told_after_the_table_and_in_the_reports() {
    let suite = broken();
    let printed = suite.done(&["run"]);
    let (table, after) = printed.split_once("why trials did not pass\n").unwrap();
    assert!(table.contains("Mode"), "{printed}");
    let why: Vec<&str> = after
        .lines()
        .take_while(|line| line.contains(" × "))
        .collect();
    assert_eq!(why.len(), 2, "{printed}");
    assert!(
        why[0]
            .starts_with("  wrong: 2 × check failed: `a.txt` contains `fixed` — assize show last/"),
        "{printed}"
    );
    assert!(
        why[1].starts_with(
            "  broken: 2 × the program ended with exit code 3: out of cheese — assize show last/"
        ),
        "{printed}"
    );
    let command = why[1].split(" — assize ").nth(1).unwrap();
    let shown = suite.done(&command.split(' ').collect::<Vec<_>>());
    assert!(
        shown.contains("fix · broken") && shown.contains("out of cheese"),
        "{shown}"
    );
    let report = suite.run_directory().join("report");
    let page = std::fs::read_to_string(report.join("report.md")).unwrap();
    let failures = page.split("## Failures and voids").nth(1).unwrap();
    assert!(
        failures.contains("the program ended with exit code 3: out of cheese"),
        "{failures}"
    );
    assert!(failures.contains("](report.html#show-"), "{failures}");
    assert!(
        !page.contains("exit\\_3") && !page.contains("exit_3 "),
        "{page}"
    );
    let page = std::fs::read_to_string(report.join("report.html")).unwrap();
    assert!(
        page.contains("out of cheese</td>"),
        "the message is in the table of failures"
    );
    assert!(page.contains("href=\"#show-20"), "and leads to the trial");
    let junit = std::fs::read_to_string(report.join("junit.xml")).unwrap();
    assert!(
        junit.contains("2 × the program ended with exit code 3: out of cheese"),
        "{junit}"
    );
}

#[test]
fn trials_are_listed_and_chosen() {
    let suite = broken();
    suite.done(&["run", "-q"]);
    let all = suite.done(&["show"]);
    let lines = |text: &str| -> Vec<String> {
        let trials = text.lines().filter(|line| line.contains("fix #"));
        trials.map(str::to_owned).collect()
    };
    assert_eq!(lines(&all).len(), 6, "{all}");
    assert!(all.contains("of ") && all.contains("complete"), "{all}");
    assert!(lines(&all)[0].trim_start().starts_with("0  "), "{all}");
    assert!(
        all.contains("check failed: `a.txt` contains `fixed`"),
        "{all}"
    );
    let failed = suite.done(&["show", "last", "--failed"]);
    assert_eq!(lines(&failed).len(), 4, "{failed}");
    assert!(!failed.contains("  pass  "), "{failed}");
    assert_eq!(lines(&suite.done(&["show", "--mode", "good"])).len(), 2);
    assert_eq!(lines(&suite.done(&["show", "fix"])).len(), 6);
    assert_eq!(
        lines(&suite.done(&["show", "last/fix", "--mode", "wrong"])).len(),
        2
    );
    assert_eq!(lines(&suite.done(&["show", "--void"])).len(), 0);
    assert_eq!(lines(&suite.done(&["show", "--scenario", "fix"])).len(), 6);
    let outcome = suite.assize(&["show", "--mode", "godo"]);
    assert!(
        outcome.stderr.contains("did you mean `good`?"),
        "{outcome:#?}"
    );
    let rows = suite.done(&["show", "--failed", "--json"]);
    assert_eq!(rows.lines().count(), 4);
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        assert_eq!(row["outcome"], "fail");
    }
}

/// The position of the first trial of a mode.
fn trial_of(suite: &Suite, mode: &str) -> String {
    let rows = suite.rows();
    let row = rows.iter().find(|row| row["mode"] == mode).unwrap();
    format!("last/{}", row["position"])
}

#[test]
fn a_trial_shows_what_was_asked_and_what_came_out() {
    let suite = broken();
    suite.done(&["run", "-q"]);
    let shown = suite.done(&["show", &trial_of(&suite, "good")]);
    for words in [
        "prompt\n  Fix a.txt in {workspace}.\n",
        "instructions\n  Be brief.\n",
        "answer\n  all done\n",
        "  --- a/a.txt\n  +++ b/a.txt\n  @@ -1,3 +1 @@\n  -first\n  -broken\n  -last\n  +fixed\n",
        "  --- /dev/null\n  +++ b/b.txt\n  @@ -0,0 +1 @@\n  +new\n",
        "  --- a/c.txt\n  +++ /dev/null\n",
    ] {
        assert!(shown.contains(words), "no {words:?} in\n{shown}");
    }
    let shown = suite.done(&["show", &trial_of(&suite, "wrong")]);
    assert!(
        shown.contains("      expected: fixed\n      found: wrong\n"),
        "{shown}"
    );
    let page = suite.run_directory().join("report/report.html");
    let page = std::fs::read_to_string(page).unwrap();
    for words in [
        "Fix a.txt in {workspace}.",
        "Be brief.",
        "+fixed\\n",
        "all done",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // A source that was edited since is not passed off as the one that was there.
    suite.write("files/a.txt", "edited\n");
    let shown = suite.done(&["show", &trial_of(&suite, "good")]);
    assert!(
        shown.contains("was edited since") && shown.contains("modified: a.txt"),
        "{shown}"
    );
    assert!(!shown.contains("-edited"), "{shown}");
}

#[test]
fn what_a_commit_held_is_the_old_side_of_the_diff() {
    let suite = broken();
    let git = |arguments: &[&str]| {
        let status = std::process::Command::new("git")
            .arg("-C")
            .arg(suite.path().join("files"))
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(arguments)
            .status();
        assert!(status.unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    suite.write(
        "scenarios/fix.yaml",
        "id: fix\nprompt: Fix it.\nworkspace: { git: { repo: files, ref: HEAD } }\nchecks:\n  - file: { path: a.txt, contains: fixed }\n",
    );
    suite.done(&["run", "-q"]);
    let shown = suite.done(&["show", &trial_of(&suite, "good")]);
    assert!(shown.contains("  -broken\n  -last\n  +fixed\n"), "{shown}");
    assert!(!shown.contains(".git"), "{shown}");
}

#[test]
fn nothing_is_compared_where_everything_ended_with_an_error() {
    let suite = Suite::new();
    let outcome = suite.assize(&[
        "try",
        "-m",
        "sh -c 'echo no key >&2; exit 1'",
        "-m",
        "sh -c 'echo no key >&2; exit 1; x'",
        "--prompt",
        "hi",
        "-n",
        "5",
    ]);
    let text = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(
        text.contains("No verdict: every trial of every mode ended with an error"),
        "{text}"
    );
    assert!(
        text.contains("5 × the program ended with exit code 1: no key"),
        "{text}"
    );
    for words in [
        "equally",
        "equivalent",
        "cannot tell for success",
        "against",
    ] {
        assert!(!text.contains(words), "`{words}` in {text}");
    }
}

#[test]
fn commands_on_trial_get_keys_by_name_and_are_kept_as_a_run() {
    let suite = Suite::new();
    let outcome: Outcome = assize(suite.path())
        .env("ANTHROPIC_API_KEY", "sk-secret-1234567890")
        .env("ASSIZE_TEST_TOKEN", "token-secret-123")
        .env("UNRELATED_SECRET", "unrelated-secret-9")
        .env_remove("OPENAI_API_KEY")
        .args([
            "try",
            "-n",
            "1",
            "--prompt",
            "hi",
            "--pass-env",
            "ASSIZE_TEST_TOKEN",
        ])
        .args([
            "-m",
            "sh -c 'env | cut -d= -f1 | sort; echo $ASSIZE_TEST_TOKEN; echo $ANTHROPIC_API_KEY'",
        ])
        .args(["-m", "true"])
        .output()
        .unwrap()
        .into();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(
        outcome
            .stderr
            .contains("the commands get ANTHROPIC_API_KEY, ASSIZE_TEST_TOKEN"),
        "{}",
        outcome.stderr
    );
    let shown = suite.done(&["show", "last/0", "--full"]);
    let other = suite.done(&["show", "last/1", "--full"]);
    let both = format!("{shown}{other}");
    assert!(
        both.contains("ANTHROPIC_API_KEY") && both.contains("ASSIZE_TEST_TOKEN"),
        "{both}"
    );
    assert!(
        both.contains("ANTHROPIC_BASE_URL"),
        "it goes through the proxy: {both}"
    );
    for secret in [
        "sk-secret",
        "token-secret",
        "unrelated-secret",
        "UNRELATED_SECRET",
    ] {
        assert!(!both.contains(secret), "`{secret}` in {both}");
    }
    assert!(suite.run_directory().join("report/report.html").exists());
}

#[test]
fn a_browser_is_started_for_the_page() {
    let suite = Suite::new();
    let browser = suite.write("browser", "#!/bin/sh\necho \"$1\" > opened\n");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let outcome: Outcome = assize(suite.path())
        .env("BROWSER", &browser)
        .args(["run", "-q", "--open"])
        .output()
        .unwrap()
        .into();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let opened = suite.path().join("opened");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while std::fs::read_to_string(&opened)
        .unwrap_or_default()
        .is_empty()
    {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let page = std::fs::read_to_string(&opened).unwrap();
    assert!(
        Path::new(page.trim()).ends_with("report/report.html"),
        "{page}"
    );
    assert!(Path::new(page.trim()).is_file(), "{page}");
    let outcome: Outcome = assize(suite.path())
        .env("BROWSER", "/nowhere")
        .args(["report", "--open"])
        .output()
        .unwrap()
        .into();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(
        outcome
            .stderr
            .contains("no browser can be started; the page is"),
        "{outcome:#?}"
    );
}
