//! `assize doctor` on a machine without agents, and with agents of one's own.

use crate::sandbox::{Sandbox, words};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

#[test]
fn what_is_missing_is_said_with_how_to_get_it() {
    let sandbox = Sandbox::new(&[]);
    let run = |arguments: &[&str]| {
        let output = sandbox.assize(arguments).env("PATH", "").output().unwrap();
        (
            output.status.code(),
            format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ),
        )
    };
    let (code, said) = run(&["doctor"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("not installed") && said.contains("npm install -g @openai/codex"),
        "{said}"
    );
    let (_, said) = run(&["doctor", "codex", "--json"]);
    let finding: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&finding["path"], &finding["reached"]),
        (&Value::Null, &Value::Null)
    );
    let (code, said) = run(&["doctor", "codx"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("no agent is called `codx`") && said.contains("`codex`"),
        "{said}"
    );
}

/// Asks its model once and goes.
const AGENT: &str = r#"#!/usr/bin/env python3
import os, sys, urllib.request
if "--version" in sys.argv: sys.exit(print("mine v1.2.3"))
urllib.request.urlopen(os.environ["MINE_URL"] + "/chat/completions", b"{}")
"#;

const RECIPE: &str = r#"
name: mine
install: make mine
tested: 1.2.3
keys: [MINE_KEY]
command: [./agent.py, "{options}", "{prompt}"]
auto_approve: { args: [--yes] }
environment: { MINE_URL: "{openai_url}" }
"#;

const SUITE: &str = "\
provider: { uses: ./recipes/mine.yaml }
permissions: { auto_approve: true }
modes: { plain: {}, brief: { system_instructions: Be brief. }, keyed: { environment: { MINE_KEY: '1' } } }
scenarios: { paths: [s.yaml] }
";

fn sandbox(recipe: &str) -> Sandbox {
    let sandbox = Sandbox::new(&[
        ("assize.yaml", SUITE),
        ("recipes/mine.yaml", recipe),
        ("agent.py", AGENT),
        ("s.yaml", "id: s\nprompt: hello\n"),
    ]);
    let program = sandbox.path("agent.py");
    std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
    sandbox
}

/// The output of doctor for people.
fn said(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.assize(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    words(&output)
}

#[test]
fn agents_of_a_suite_are_tried_out_by_their_own_recipes() {
    let sandbox = sandbox(RECIPE);
    let found = sandbox.done(&["doctor", "--json", "."]);
    let found: Vec<Value> = found
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let modes: Vec<&Value> = found.iter().map(|finding| &finding["modes"]).collect();
    assert_eq!(modes, [&json!(["plain", "brief"]), &json!(["keyed"])]);
    for finding in &found {
        assert_eq!(finding["agent"], "mine");
        assert_eq!(finding["reached"], true, "{finding:#}");
        assert_eq!(
            (&finding["version"], &finding["testedVersion"]),
            (&json!("1.2.3"), &json!("1.2.3"))
        );
    }
    assert_eq!(
        (&found[0]["keySet"], &found[1]["keySet"]),
        (&Value::Null, &json!("MINE_KEY"))
    );
    let said = said(&sandbox, &["doctor", "."]);
    for words in [
        "mine (plain, brief)",
        "reached",
        "mine (plain, brief): no key\n  hint: set MINE_KEY\n",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert!(!said.contains("mine (keyed): no key"), "{said}");
}

#[test]
fn a_recipe_by_itself_is_tried_out_too() {
    let sandbox = sandbox(RECIPE);
    let finding = sandbox.done(&["doctor", "--json", "recipes/mine.yaml"]);
    let finding: Value = serde_json::from_str(&finding).unwrap();
    assert_eq!(
        (&finding["reached"], &finding["modes"]),
        (&json!(true), &json!([])),
        "{finding:#}"
    );
}

#[test]
fn what_a_recipe_lacks_is_said_with_what_to_do() {
    let missing = sandbox(&RECIPE.replace("./agent.py", "no-such-agent"));
    let expected =
        "mine (plain, brief): `no-such-agent` is in no directory of PATH\n  hint: make mine\n";
    let said = said(&missing, &["doctor", "."]);
    assert!(
        said.contains(expected) && said.contains("not installed"),
        "{said}"
    );
    let elsewhere = sandbox(&RECIPE.replace("{openai_url}", "http://127.0.0.1:9"));
    let said = self::said(&elsewhere, &["doctor", "recipes/mine.yaml"]);
    for words in [
        "not reached",
        "Connection refused",
        "hint: its recipe must hand `{anthropic_url}`",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let broken = sandbox("name: mine\ncomand: [x]\n");
    assert!(
        broken
            .refused(&["doctor", "."])
            .contains("mine.yaml:2:1: unknown key `comand`")
    );
    let nobody = sandbox(RECIPE);
    nobody.write(
        "assize.yaml",
        &SUITE.replace("./recipes/mine.yaml", "simulated"),
    );
    assert!(
        nobody
            .refused(&["doctor", "."])
            .contains("runs an agent by a recipe")
    );
    assert!(
        nobody
            .refused(&["doctor", "nowhere/"])
            .contains("there is no such")
    );
}

#[test]
fn agents_that_speak_acp_are_looked_for_by_their_own_command() {
    let sandbox = sandbox(RECIPE);
    let acp = "{ uses: acp, command: [no-such-agent, --acp] }";
    sandbox.write(
        "assize.yaml",
        &SUITE.replace("{ uses: ./recipes/mine.yaml }", acp),
    );
    let said = said(&sandbox, &["doctor", "."]);
    assert!(
        said.contains("acp (plain, brief): `no-such-agent` is in no directory"),
        "{said}"
    );
}
