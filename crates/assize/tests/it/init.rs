//! `assize init`, `check` and `completions`.

use crate::support::Suite;

#[test]
fn an_initialized_suite_checks_and_runs_at_once() {
    let suite = Suite::new();
    let written = suite.done(&["init", "fresh"]);
    assert!(written.contains("fresh/assize.yaml"), "{written}");
    let checked = suite.done(&["check", "fresh"]);
    assert!(
        checked.contains("8 scenarios in 2 modes × 5 repetitions = 80 trials"),
        "{checked}"
    );
    let table = suite.done(&["run", "fresh", "-n", "1", "-q"]);
    assert!(table.contains("with-docs"), "{table}");
}

#[test]
fn init_overwrites_nothing() {
    let suite = Suite::new();
    let before = std::fs::read_to_string(suite.path().join("assize.yaml")).unwrap();
    let outcome = suite.assize(&["init"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("is already there"), "{outcome:?}");
    assert_eq!(
        std::fs::read_to_string(suite.path().join("assize.yaml")).unwrap(),
        before
    );
}

#[test]
fn completions_are_for_the_shells_people_use() {
    let suite = Suite::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(suite.done(&["completions", shell]).contains("assize"));
    }
}
