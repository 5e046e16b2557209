//! `assize schema`: the program prints what is checked in, and records fit it.

use crate::support::Suite;
use std::path::{Path, PathBuf};

fn checked_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas")
}

#[test]
fn the_checked_in_schemas_are_printed() {
    let suite = Suite::new();
    for name in suite.done(&["schema"]).lines() {
        let path = checked_in().join(format!("{name}.schema.json"));
        let stored = std::fs::read_to_string(&path).unwrap();
        assert_eq!(suite.done(&["schema", name]), stored, "{name}");
    }
}

#[test]
fn rows_and_traces_of_a_run_fit_their_schemas() {
    let suite = Suite::new();
    suite.done(&["run", "-q", "-n", "1"]);
    let shown: serde_json::Value =
        serde_json::from_str(&suite.done(&["show", "0", "--json"])).unwrap();
    for (name, record) in [("row", &shown["row"]), ("trace", &shown["trace"])] {
        let schema = serde_json::from_str(&suite.done(&["schema", name])).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(record)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

#[test]
fn an_unknown_schema_is_met_with_the_nearest_name() {
    let outcome = Suite::new().assize(&["schema", "suit"]);
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("did you mean `suite`?"),
        "{outcome:?}"
    );
}
