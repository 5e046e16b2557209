//! The example plugin, built into an `assize` of its own.

use crate::support::Suite;
use std::process::Command;

#[test]
fn a_collector_of_ones_own_is_used_like_a_built_in() {
    let suite = Suite::of(
        "provider: { uses: simulated, answer: 'four words it is' }\n\
         modes: { plain: {} }\n\
         scenarios: { paths: ['scenarios/one.yaml'] }\n\
         collectors: [token, answer_words]\n\
         execution: { repetitions: 1 }\n",
    );
    // Cargo builds examples next to the tests.
    let tests = std::env::current_exe().unwrap();
    let example = tests.ancestors().nth(2).unwrap().join("examples/plugin");
    let output = Command::new(example)
        .arg("run")
        .current_dir(suite.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(suite.rows()[0]["extensions"]["answer_words"], 4);
    let manifest = std::fs::read_to_string(suite.run_directory().join("manifest.json")).unwrap();
    assert!(
        manifest.contains("\"answer_words\": \"words\""),
        "the unit is kept: {manifest}"
    );
}
