//! `assize schema`: what is checked in is what the program says.

use crate::support::Suite;
use std::path::{Path, PathBuf};

fn checked_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas")
}

/// Frozen contracts: a difference here is a change of the public interface. CONTRIBUTING.md says what that takes.
#[test]
fn the_checked_in_schemas_are_the_programs_own() {
    let suite = Suite::new();
    let names = suite.done(&["schema"]);
    let update = std::env::var_os("UPDATE_SCHEMAS").is_some();
    for name in names.lines() {
        let path = checked_in().join(format!("{name}.schema.json"));
        let schema = suite.done(&["schema", name]);
        if update {
            std::fs::create_dir_all(checked_in()).unwrap();
            std::fs::write(&path, &schema).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            stored, schema,
            "{name} differs; `UPDATE_SCHEMAS=1 cargo test schemas` writes it anew"
        );
    }
    assert_eq!(
        std::fs::read_dir(checked_in()).unwrap().count(),
        names.lines().count(),
        "a schema too many"
    );
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
