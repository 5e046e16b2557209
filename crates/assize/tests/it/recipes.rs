//! Agents by recipes of one's own.

use crate::sandbox::{Sandbox, words};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

const SUITE: &str = "\
modes: { mine: { provider: { uses: ./recipes/mine.yaml, args: [--more] }, system_instructions: Be brief. } }
permissions: { allowed_tools: [read, write] }
models: [m-1]
scenarios: { paths: [s.yaml] }
";

/// Shows what it was given and leaves a session behind.
const RECIPE: &str = r#"
name: mine
keys: [MINE_KEY]
command: [sh, ./agent.sh, "{options}", --, "{prompt}"]
continue: [sh, ./agent.sh, --go-on, "{options}", --, "{prompt}"]
model: { args: [--model, "{model}"] }
instructions: { args: [--system, "{system_instructions}"] }
allowed_tools: { each: "+{tool}", join: " ", args: [--tools, "{allowed_tools}"] }
environment: { MINE_URL: "{openai_url}" }
files: { .mine/config.json: '{ "model": "{model:json}", "home": "{home}" }' }
"#;

/// Relative programs are the suite's, other arguments are as they stand: the script is found through its own path.
const AGENT: &str = r#"echo "$@"; echo "url=$MINE_URL"; cat "$HOME/.mine/config.json"; ls "$HOME/seen" 2>/dev/null; touch "$HOME/seen"; echo "key=$MINE_KEY""#;

fn sandbox(recipe: &str, scenario: &str) -> Sandbox {
    let sandbox = Sandbox::new(&[
        ("assize.yaml", SUITE),
        ("recipes/mine.yaml", recipe),
        ("agent.sh", AGENT),
        ("s.yaml", &format!("id: s\nprompt: hello\n{scenario}")),
    ]);
    let script = sandbox.path("agent.sh");
    let recipe = recipe.replace("./agent.sh", script.to_str().unwrap());
    sandbox.write("recipes/mine.yaml", &recipe);
    sandbox
}

fn answer(row: &Value) -> String {
    let check = &row["checkpointDetails"][0];
    check["actual"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_wishes_of_a_suite_reach_an_agent_by_its_recipe() {
    let checks = "checks: [ { output: { contains: '--model m-1' } } ]\n";
    let rows = sandbox(RECIPE, checks).run(&[]);
    let answer = answer(&rows[0]);
    let first = answer.lines().next().unwrap();
    assert_eq!(
        first,
        "--model m-1 --system Be brief. --tools +read +write --more -- hello"
    );
    // Through the proxy, and with the version that the service's own address has.
    assert!(answer.contains("url=http://127.0.0.1:"), "{answer}");
    assert!(answer.contains("/openai/v1\n"), "{answer}");
    assert!(
        answer.contains(r#"{ "model": "m-1", "home": "/"#),
        "{answer}"
    );
    assert_eq!(rows[0]["provider"], "./recipes/mine.yaml");
}

#[test]
fn later_prompts_go_on_in_the_same_home() {
    let scenario = "turns: [and now]\nchecks: [ { output: { contains: '--go-on' } } ]\n";
    let answer = answer(&sandbox(RECIPE, scenario).run(&[])[0]);
    assert!(answer.starts_with("--go-on --model m-1"), "{answer}");
    assert!(answer.contains("/seen"), "{answer}");
}

#[test]
fn every_session_has_a_home_of_its_own() {
    let checks = "checks: [ { not: { output: { contains: '/seen' } } } ]\n";
    let rows = sandbox(RECIPE, checks).run(&["--repetitions", "3"]);
    assert!(rows.iter().all(|row| row["outcome"] == "pass"), "{rows:#?}");
}

#[test]
fn credentials_of_a_recipe_are_in_no_record() {
    let sandbox = sandbox(RECIPE, "checks: [ { output: { contains: 'key=' } } ]\n");
    let secret = concat!("not-a-", "real-secret-1234");
    let output = sandbox
        .assize(&["run", "-q", "--skip-warmup"])
        .env("MINE_KEY", secret)
        .output()
        .unwrap();
    assert!(output.status.success());
    let row = &sandbox.rows()[0];
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert!(!row.to_string().contains(secret));
}

#[test]
fn credentials_of_an_agent_that_speaks_acp_are_in_no_record() {
    let sandbox = sandbox(RECIPE, "");
    let acp = "{ uses: acp, agent: gemini, program: ./leak.sh }";
    let suite = SUITE.replace("{ uses: ./recipes/mine.yaml, args: [--more] }", acp);
    sandbox.write("assize.yaml", &suite);
    sandbox.write(
        "leak.sh",
        "#!/bin/sh\necho \"key=$GEMINI_API_KEY\" >&2\nexit 1\n",
    );
    let program = sandbox.path("leak.sh");
    std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
    let secret = concat!("not-a-", "real-secret-5678");
    let mut command = sandbox.assize(&["run", "-q", "--skip-warmup", "-n", "1"]);
    let output = command.env("GEMINI_API_KEY", secret).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", words(&output));
    let row = &sandbox.rows()[0];
    let error = row["error"].as_str().unwrap();
    assert!(error.contains("key=[redacted-1]"), "{row:#}");
}

#[test]
fn a_broken_recipe_is_found_by_check() {
    for (recipe, expected) in [
        (
            "name: mine\ncommand: [sh, '{promt}']\n",
            "unknown placeholder `{promt}`",
        ),
        ("name: mine\ncomand: [sh]\n", "unknown key `comand`"),
        (
            "name: mine\ncommand: [sh]\nfiles: { ../x: '' }\n",
            "a path inside the session's home",
        ),
    ] {
        let said = sandbox(recipe, "").refused(&["check"]);
        assert!(
            said.contains(expected) && said.contains("mine.yaml"),
            "{said}"
        );
    }
    let sandbox = sandbox(RECIPE, "");
    std::fs::remove_file(sandbox.path("recipes/mine.yaml")).unwrap();
    assert!(sandbox.refused(&["check"]).contains("cannot be read"));
}

#[test]
fn a_wish_that_an_agent_cannot_fulfil_voids_its_trials() {
    let recipe = RECIPE.replace("allowed_tools:", "auto_approve: {}\n# allowed_tools:");
    let row = &sandbox(&recipe, "").run(&[])[0];
    assert_eq!(row["outcome"], "void", "{row:#}");
    assert_eq!(row["errorCode"], "permissions_unsupported");
}
