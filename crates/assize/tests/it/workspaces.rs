//! Workspaces, what is checked in them, and hooks.

use crate::sandbox::Sandbox;
use serde_json::{Value, json};
use std::process::Command;

fn once(script: &str, scenario: &str, files: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::of(script, "execution: { repetitions: 1 }", scenario);
    for (name, content) in files {
        sandbox.write(name, content);
    }
    sandbox
}

fn check(script: &str, scenario: &str, files: &[(&str, &str)], outcome: &str) -> Value {
    let row = once(script, scenario, files)
        .run(&["--no-preflight"])
        .remove(0);
    assert_eq!(row["outcome"], outcome, "{row:#}");
    row
}

#[test]
fn every_attempt_gets_a_fresh_copy() {
    let scenario = "workspace: { from: fixture }\nchecks: [ { output: { equals: '1' } } ]";
    let sandbox = Sandbox::of(
        "echo x >> log; grep -c . log",
        "execution: { repetitions: 4 }",
        scenario,
    );
    sandbox.write("fixture/other", "y");
    let rows = sandbox.run(&[]);
    assert!(rows.iter().all(|row| row["outcome"] == "pass"), "{rows:#?}");
    assert!(!sandbox.path("fixture/log").exists());
    assert!(sandbox.left_workspaces().is_empty());
}

#[test]
fn a_commit_is_checked_out() {
    let scenario = "workspace: { git: { repo: repo, ref: v1 } }\nchecks: [ { file: { path: f, equals: one } } ]";
    let sandbox = once("true", scenario, &[("repo/f", "one")]);
    let git = |arguments: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let status = Command::new("git")
            .args(who)
            .args(arguments)
            .current_dir(sandbox.path("repo"))
            .status();
        assert!(status.unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "f"]);
    git(&["commit", "-qm", "one"]);
    git(&["tag", "v1"]);
    sandbox.write("repo/f", "two");
    git(&["commit", "-qam", "two"]);
    assert_eq!(sandbox.run(&[])[0]["outcome"], "pass");
}

#[test]
fn prompts_name_the_workspace_and_the_iteration() {
    let suite = "provider: { uses: command, command: [sh, -c, 'test \"$1\" = \"$(pwd) 0\" && cat f', sh, '{prompt}'] }\n\
                 modes: { a: {} }\nscenarios: { paths: [s.yaml] }\nexecution: { repetitions: 1 }\n";
    let scenario = "id: s\nprompt: '{workspace} {iteration}'\nworkspace: { from: fixture }\nchecks: [ { output: { equals: here } } ]\n";
    let sandbox = Sandbox::new(&[
        ("assize.yaml", suite),
        ("s.yaml", scenario),
        ("fixture/f", "here"),
    ]);
    assert_eq!(sandbox.run(&[])[0]["outcome"], "pass");
}

#[test]
fn set_up_commands_run_first_and_count_as_no_change() {
    let scenario = "workspace: { from: fixture, setup: ['echo $WHO > made'], environment: { WHO: setup } }\n\
                    checks: [ { output: { equals: setup } }, { changed: { only: [] } } ]";
    check("cat made", scenario, &[("fixture/f", "")], "pass");
}

#[test]
fn a_failing_set_up_is_void_and_says_why() {
    let row = check(
        "true",
        "workspace: { setup: ['echo no network >&2; exit 4'] }",
        &[],
        "void",
    );
    assert_eq!(
        (&row["errorCode"], &row["sessionId"]),
        (&json!("workspace_setup_failed"), &Value::Null)
    );
    let error = row["error"].as_str().unwrap();
    assert!(
        error.contains("ended with exit code 4: no network"),
        "{error}"
    );
    let slow = "workspace: { setup: ['sleep 60'], setup_timeout_ms: 100 }";
    let row = check("true", slow, &[], "void");
    assert!(
        row["error"]
            .as_str()
            .unwrap()
            .contains("did not end within 100 ms"),
        "{row}"
    );
}

const WORKING: &str = "echo new > d/new; rm old; echo more >> f; mkdir -p empty/dir";
const FILES: [(&str, &str); 3] = [
    ("fixture/f", "one\n"),
    ("fixture/old", ""),
    ("fixture/d/x", ""),
];

#[test]
fn what_the_agent_changed_is_counted_checked_and_kept() {
    let scenario = "workspace: { from: fixture }\n\
                    checks: [ { changed: { only: [d/new, old, f] } }, { file: { path: old, absent: true } }, { file: { path: f, contains: more } } ]";
    let sandbox = once(WORKING, scenario, &FILES);
    let row = sandbox.run(&["--no-preflight"]).remove(0);
    assert_eq!(row["outcome"], "pass", "{row:#}");
    let counts =
        ["files_added", "files_modified", "files_deleted"].map(|name| &row["extensions"][name]);
    assert_eq!(counts, [&json!(1), &json!(1), &json!(1)]);
    let shown = sandbox.done(&["show", "last/0"]);
    let line = shown
        .lines()
        .find(|line| line.contains("workspace "))
        .unwrap();
    let archive = line.trim().strip_prefix("workspace ").unwrap();
    assert!(std::fs::metadata(sandbox.path(archive)).unwrap().len() > 0);
}

#[test]
fn a_change_elsewhere_fails_the_check() {
    let scenario = "workspace: { from: fixture }\nchecks: [ { changed: { only: [f] } } ]";
    let row = check(WORKING, scenario, &FILES, "fail");
    let details = row["checkpointDetails"][0]["actual"].to_string();
    assert!(
        details.contains("d/new") && details.contains("old"),
        "{details}"
    );
}

#[test]
fn an_agent_that_destroys_its_workspace_is_judged_all_the_same() {
    let scenario = "workspace: { from: fixture }\nchecks: [ { changed: { only: [] } }, { command: { run: 'true' } } ]";
    for script in ["rm -rf \"$PWD\"", "rm -rf \"$PWD\"; ln -s / \"$PWD\""] {
        let row = check(script, scenario, &FILES, "fail");
        assert_eq!(row["extensions"]["files_deleted"], 3, "{row}");
        assert_eq!(row["checkpointDetails"][1]["passed"], true, "{row}");
    }
}

#[test]
fn workspaces_are_kept_as_asked() {
    for (keep, script, kept) in [
        ("changed", "true", 0),
        ("changed", "touch x", 1),
        ("all", "true", 1),
        ("none", "touch x", 0),
    ] {
        let suite =
            format!("execution: {{ repetitions: 1 }}\noutput: {{ keep_workspace: {keep} }}");
        let sandbox = Sandbox::of(script, &suite, "workspace: { from: fixture }");
        sandbox.write("fixture/f", "");
        sandbox.run(&[]);
        let archives = std::fs::read_dir(sandbox.last_run().join("workspaces"))
            .into_iter()
            .flatten();
        assert_eq!(archives.count(), kept, "{keep} after `{script}`");
    }
}

#[test]
fn a_command_judges_with_files_that_the_agent_never_saw() {
    let scenario = "workspace: { from: fixture }\n\
                    checks: [ { command: { run: 'sh tests/hidden.sh', files: { tests/hidden.sh: checks/hidden.sh } } } ]";
    let files = [
        ("fixture/f", "one\n"),
        (
            "checks/hidden.sh",
            "grep -q more f && test -z \"$ASSIZE_MARK\"",
        ),
    ];
    check(
        "test ! -e tests && echo more >> f",
        scenario,
        &files,
        "pass",
    );
    let row = check("true", scenario, &files, "fail");
    assert_eq!(row["checkpointDetails"][0]["actual"]["exit"], 1);
}

#[test]
fn a_command_check_that_never_ends_is_ended() {
    let scenario =
        "workspace: {}\nchecks: [ { command: { run: 'echo x; sleep 60', timeout_ms: 200 } } ]";
    let row = check("true", scenario, &[], "fail");
    let actual = &row["checkpointDetails"][0]["actual"];
    assert_eq!(actual["exit"], Value::Null);
    assert!(
        actual["output"]
            .as_str()
            .unwrap()
            .contains("did not end within 200 ms"),
        "{actual}"
    );
}

#[test]
fn places_that_are_not_there_are_refused_before_a_run() {
    for (scenario, said) in [
        (
            "workspace: { from: nowhere }",
            "s.yaml:3:14: there is no directory `nowhere`",
        ),
        (
            "workspace: { git: { repo: nowhere, ref: x } }",
            "there is no repository `nowhere`",
        ),
        (
            "workspace: { form: x }",
            "unknown key `form` in `workspace`",
        ),
        (
            "checks: [ { command: { run: x, files: { a: nowhere } } } ]",
            "there is no file `./nowhere`",
        ),
    ] {
        let refused = once("true", scenario, &[]).refused(&["check"]);
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn a_suite_with_placed_files_can_be_resumed_from_elsewhere() {
    let scenario =
        "workspace: {}\nchecks: [ { command: { run: 'true', files: { a: checks/a } } } ]";
    let sandbox = once("true", scenario, &[("checks/a", "")]);
    sandbox.run(&[]);
    let path = sandbox.path("");
    let resumed = sandbox
        .assize(&[
            "run",
            path.to_str().unwrap(),
            "-q",
            "--resume",
            "last",
            "-n",
            "2",
        ])
        .current_dir("/")
        .status();
    assert!(resumed.unwrap().success());
    assert_eq!(sandbox.rows().len(), 2);
}

#[test]
fn commands_are_called_for_all_six_hooks() {
    let hook = |name: &str| {
        format!("  {name}: 'echo $ASSIZE_HOOK >> calls; cat >> contexts; echo >> contexts'\n")
    };
    let hooks: String = [
        "before_run",
        "before_mode",
        "before_scenario",
        "after_scenario",
        "after_mode",
        "after_run",
    ]
    .map(hook)
    .concat();
    let sandbox = Sandbox::of(
        "true",
        &format!("execution: {{ repetitions: 1 }}\nhooks:\n{hooks}"),
        "",
    );
    sandbox.run(&[]);
    assert_eq!(
        sandbox.read("calls"),
        "beforeRun\nbeforeMode\nbeforeScenario\nafterScenario\nafterMode\nafterRun\n"
    );
    let contexts: Vec<Value> = sandbox
        .read("contexts")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(contexts[1], json!({"mode": "shell"}));
    assert_eq!(contexts[2]["scenario"]["id"], "s");
    assert_eq!(contexts[3]["result"]["outcome"], "pass");
}

#[test]
fn a_hook_may_replace_the_scenario() {
    let hook = r#"hooks: { before_scenario: "echo '{\"id\":\"s\",\"prompt\":\"replaced\"}'" }"#;
    let sandbox = Sandbox::of(
        "cat",
        &format!("execution: {{ repetitions: 1 }}\n{hook}"),
        "",
    );
    sandbox.run(&[]);
    assert_eq!(sandbox.trace(0)["events"][0]["content"], "replaced");
}

#[test]
fn a_hook_that_fails_or_hangs_is_noted_and_the_run_goes_on() {
    for (line, said) in [
        ("echo oh >&2; exit 3", "ended with exit code 3: oh"),
        ("sleep 60", "did not end within 200 ms"),
    ] {
        let hooks = format!(
            "execution: {{ repetitions: 1 }}\nhooks: {{ before_scenario: '{line}', timeout_ms: 200 }}"
        );
        let row = Sandbox::of("true", &hooks, "").run(&[]).remove(0);
        assert_eq!(row["outcome"], "pass");
        let error = &row["hookErrors"][0];
        assert_eq!(error["hook"], "beforeScenario");
        assert!(error["message"].as_str().unwrap().contains(said), "{error}");
    }
}

#[test]
fn an_unknown_hook_is_refused() {
    let sandbox = Sandbox::of("true", "hooks: { before_scenaro: x }", "");
    let said = sandbox.refused(&["check"]);
    assert!(
        said.contains("unknown key `before_scenaro` in `hooks`"),
        "{said}"
    );
    assert!(said.contains("did you mean `before_scenario`?"), "{said}");
}
