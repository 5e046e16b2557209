//! `assize doctor` on a machine without agents.

use crate::sandbox::Sandbox;
use serde_json::Value;

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
