//! The example of recorded agents: sums are exact to the token.

use crate::support::assize;
use std::path::Path;

/// The usage that the scripted model reported: two turns, and a side call (a title) where the agent makes one.
#[test]
fn recorded_agents_keep_their_own_tokens() {
    let results = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = assize(&root)
        .args(["run", "examples/replay", "-q", "--output"])
        .arg(results.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}");
    assert!(
        stdout.contains("Replayed: these numbers come from recordings"),
        "{stdout}"
    );
    let run = std::fs::read_dir(results.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let rows = std::fs::read_to_string(run.join("rows.jsonl")).unwrap();
    let (turns, title) = (24_435, 142 + 6);
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        let side_calls = u64::from(row["mode"] == "opencode" || row["mode"] == "goose");
        assert_eq!(
            row["tokens"]["total"],
            turns + side_calls * title,
            "{}",
            row["mode"]
        );
        assert_eq!(row["outcome"], "pass", "{row}");
        assert_eq!(row["toolCalls"]["total"], 1);
        let readings = &row["costReadings"];
        assert!(
            readings["reportedUsd"].is_null(),
            "nobody said what it cost"
        );
        assert_eq!(readings["computedUsd"], row["cost"]["totalUsd"]);
        assert_eq!(row["replayed"], true);
    }
    assert_eq!(rows.lines().count(), 6);
}
