//! Programs on trial: what becomes of their output, their exit codes and their children.

use crate::sandbox::{Sandbox, await_true};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};

const ONCE: &str = "execution: { repetitions: 1 }";

fn row_of(script: &str, scenario: &str) -> Value {
    Sandbox::of(script, ONCE, scenario).run(&[]).remove(0)
}

#[test]
fn stdout_is_the_answer_that_checks_see() {
    let row = row_of("tr a-z A-Z", "checks: [ { output: { equals: HELLO } } ]");
    assert_eq!(
        (&row["outcome"], &row["provider"]),
        (&json!("pass"), &json!("command"))
    );
    assert_eq!(row["extensions"]["program_exit_code"], 0);
    assert!(row["extensions"]["program_cpu_ms"].is_number());
    assert_eq!(
        (&row["toolCalls"]["total"], &row["tokens"]["total"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn an_exit_code_fails_the_trial_and_is_kept() {
    let row = row_of("echo half; echo broken >&2; exit 7", "");
    assert_eq!(
        (&row["outcome"], &row["errorCode"]),
        (&json!("fail"), &json!("exit_7"))
    );
    assert_eq!(row["error"], "the program ended with exit code 7: broken");
    assert_eq!(row["completionReason"], "error");
    assert_eq!(row["extensions"]["program_exit_code"], 7);
}

#[test]
fn exit_code_zero_is_no_ground_for_success() {
    let row = row_of(
        "echo nonsense",
        "checks: [ { output: { contains: sense of it } } ]",
    );
    assert_eq!(
        (&row["outcome"], &row["extensions"]["program_exit_code"]),
        (&json!("fail"), &json!(0))
    );
}

#[test]
fn a_program_that_is_not_there_makes_the_trial_void() {
    let suite = "provider: { uses: command, command: [no-such-agent, '{prompt}'] }\n\
                 modes: { a: {} }\nscenarios: { paths: [s.yaml] }\nexecution: { repetitions: 1 }\n";
    let sandbox = Sandbox::new(&[("assize.yaml", suite), ("s.yaml", "id: s\nprompt: x\n")]);
    let row = sandbox.run(&["--no-preflight"]).remove(0);
    assert_eq!(
        (&row["outcome"], &row["errorCode"]),
        (&json!("void"), &json!("program_not_started"))
    );
    let reason = row["error"].as_str().unwrap();
    assert!(reason.ends_with("it is in no directory of PATH"), "{row}");
}

#[test]
fn a_timeout_is_a_fail_with_what_was_there_so_far() {
    let sandbox = Sandbox::of("echo so far; sleep 60", ONCE, "timeout_ms: 300");
    let row = sandbox.run(&[]).remove(0);
    assert_eq!(
        (&row["outcome"], &row["censored"]),
        (&json!("fail"), &json!(true))
    );
    assert_eq!(
        (&row["errorCode"], &row["completionReason"]),
        (&json!("timeout"), &json!("timeout"))
    );
    assert!(row["timing"]["wallMs"].as_f64().unwrap() >= 300.0);
    assert_eq!(sandbox.trace(0)["events"][0]["content"], "so far");
}

#[test]
fn every_user_turn_is_a_program_in_the_same_workspace() {
    let scenario = "turns: [two, three]\nworkspace: {}\nchecks: [ { output: { equals: '3' } } ]";
    let sandbox = Sandbox::of("cat >> all; echo >> all; grep -c . all", ONCE, scenario);
    let row = sandbox.run(&[]).remove(0);
    assert_eq!(
        (&row["outcome"], &row["userTurns"]),
        (&json!("pass"), &json!(3)),
        "{row}"
    );
}

#[test]
fn events_become_tools_tokens_and_cost() {
    let suite = r#"
provider:
  uses: command
  output: events
  command:
    - sh
    - -c
    - |
      echo '{"type":"tool_call","name":"Bash","input":{"command":"ls"},"output":"a","success":true,"duration_ms":12}'
      echo '{"type":"text","text":"There is one file."}'
      echo '{"type":"usage","input":100,"output":20,"cache_read":1000,"cost_usd":0.02,"model":"m-1"}'
modes: { a: {} }
scenarios: { paths: [s.yaml] }
execution: { repetitions: 1 }
"#;
    let scenario = "id: s\nprompt: x\nchecks: [ { tool: { called: Bash } }, { output: { contains: one file } } ]\n";
    let row = Sandbox::new(&[("assize.yaml", suite), ("s.yaml", scenario)])
        .run(&[])
        .remove(0);
    assert_eq!(row["outcome"], "pass", "{row}");
    assert_eq!(
        (&row["tokens"]["total"], &row["tokens"]["active"]),
        (&json!(1120), &json!(120))
    );
    assert_eq!(
        (&row["cost"]["totalUsd"], &row["toolCalls"]["total"]),
        (&json!(0.02), &json!(1))
    );
}

#[test]
fn a_flood_of_bytes_that_are_no_text_is_recorded_in_bounds() {
    let suite = "provider: { uses: command, max_output: 1000000, command: [sh, -c, \"head -c 100000000 /dev/urandom; printf '\\\\033[2J'\"] }\n\
                 modes: { a: {} }\nscenarios: { paths: [s.yaml] }\nexecution: { repetitions: 1 }\n";
    let sandbox = Sandbox::new(&[("assize.yaml", suite), ("s.yaml", "id: s\nprompt: x\n")]);
    let row = sandbox.run(&[]).remove(0);
    assert_eq!(row["outcome"], "pass");
    let trace = sandbox.trace(0);
    let text = trace["events"][0]["content"].as_str().unwrap();
    assert!(text.contains("bytes cut]") && text.ends_with("\u{1b}[2J"));
    assert!(text.len() < 4_000_000, "{}", text.len());
    let shown = sandbox.done(&["show", "last/0"]);
    assert!(
        !shown.contains('\u{1b}'),
        "an escape code reached the terminal"
    );
}

#[test]
fn only_what_is_passed_on_reaches_the_program_and_never_a_record() {
    let suite = "provider: { uses: command, command: [sh, -c, 'env'], pass_env: [MY_TOKEN] }\n\
                 modes: { a: { environment: { GIVEN: mode-value } } }\n\
                 scenarios: { paths: [s.yaml] }\nexecution: { repetitions: 1 }\n";
    let sandbox = Sandbox::new(&[("assize.yaml", suite), ("s.yaml", "id: s\nprompt: x\n")]);
    let run = sandbox
        .assize(&["run", "-q", "--skip-warmup"])
        .env("MY_TOKEN", "hunter22")
        .env("OTHER_TOKEN", "hunter33")
        .status();
    assert!(run.unwrap().success());
    let trace = sandbox.trace(0);
    let seen = trace["events"][0]["content"].as_str().unwrap();
    assert!(
        seen.contains("GIVEN=mode-value") && seen.contains("TERM=dumb"),
        "{seen}"
    );
    assert!(
        seen.contains("MY_TOKEN=[redacted-1]") && !seen.contains("OTHER_TOKEN"),
        "{seen}"
    );
}

#[test]
fn wrong_settings_are_refused_before_anything_runs() {
    let suite = "provider: { uses: command, command: [], }\nmodes: { a: {} }\nscenarios: { paths: [s.yaml] }\n";
    let sandbox = Sandbox::new(&[("assize.yaml", suite), ("s.yaml", "id: s\nprompt: x\n")]);
    let said = sandbox.refused(&["check"]);
    assert!(
        said.contains("assize.yaml:1:28: `provider.command`: found no program"),
        "{said}"
    );
    assert!(said.contains("hint: for example"), "{said}");
}

/// A suite whose program leaves the process group, ignores signals and carries the sandbox's mark.
fn stubborn() -> Sandbox {
    let script = "setsid sh -c 'trap \"\" TERM INT HUP; while :; do sleep 1; done' & trap '' INT TERM; sleep 100";
    let argv = serde_json::to_string(&["sh", "-c", script]).unwrap();
    let suite = format!(
        "provider: {{ uses: command, command: {argv}, pass_env: [ASSIZE_MARK], grace_ms: 100 }}\n\
         modes: {{ a: {{}} }}\nscenarios: {{ paths: [s.yaml] }}\nexecution: {{ repetitions: 2 }}\n"
    );
    Sandbox::new(&[
        ("assize.yaml", &suite),
        ("s.yaml", "id: s\nprompt: x\nworkspace: {}\n"),
    ])
}

/// Assize itself, and of both trials the program, its child and what they wait for.
fn start_stubborn(sandbox: &Sandbox) -> Child {
    let mut command = sandbox.assize(&["run", "-q", "--skip-warmup"]);
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    await_true("the programs", || sandbox.living() >= 9);
    child
}

#[test]
fn nothing_is_left_after_ctrl_c() {
    let sandbox = stubborn();
    let mut child = start_stubborn(&sandbox);
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(5));
    await_true("the end of all programs", || sandbox.living() == 0);
    assert_eq!(sandbox.left_workspaces(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn nothing_is_left_after_kill_9_and_the_next_start_cleans_up() {
    let sandbox = stubborn();
    let mut child = start_stubborn(&sandbox);
    child.kill().unwrap();
    child.wait().unwrap();
    await_true("the end of all programs", || sandbox.living() == 0);
    assert!(!sandbox.left_workspaces().is_empty());
    sandbox.write(
        "s.yaml",
        "id: s\nprompt: x\nworkspace: {}\ntimeout_ms: 100\n",
    );
    sandbox.done(&["run", "-q", "--skip-warmup", "-n", "1"]);
    assert_eq!(sandbox.left_workspaces(), Vec::<std::path::PathBuf>::new());
}
