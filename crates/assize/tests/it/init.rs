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
fn editors_find_the_schemas_of_an_initialized_suite() {
    let suite = Suite::new();
    suite.done(&["init", "fresh"]);
    for (file, title) in [
        ("fresh/assize.yaml", "SuiteFile"),
        ("fresh/scenarios/fix-bug.yaml", "ScenarioFile"),
    ] {
        let path = suite.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let (_, named) = text.split_once("# yaml-language-server: $schema=").unwrap();
        let schema = path.with_file_name(named.lines().next().unwrap());
        let schema: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&schema).unwrap()).unwrap();
        assert_eq!(schema["title"], title);
    }
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
