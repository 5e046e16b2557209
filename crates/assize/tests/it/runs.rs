//! `assize runs` and `assize show`.

use crate::support::Suite;
use serde_json::Value;

#[test]
fn runs_are_listed_shown_removed_and_pruned() {
    let suite = Suite::new();
    for _ in 0..3 {
        suite.done(&["run", "-q", "-n", "1"]);
    }
    let listed = suite.done(&["runs", "--json"]);
    let runs: Vec<Value> = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(runs.len(), 3);
    assert!(
        runs.iter()
            .all(|run| run["state"] == "complete" && run["done"] == 4),
        "{listed}"
    );
    let ids: Vec<&str> = runs
        .iter()
        .map(|run| run["runId"].as_str().unwrap())
        .collect();
    assert!(ids.is_sorted(), "{ids:?}");

    let shown = suite.done(&["runs", "show", "last"]);
    assert!(
        shown.contains(ids[2]) && shown.contains("plain") && shown.contains("fingerprint"),
        "{shown}"
    );
    assert!(
        suite
            .done(&["runs", "show", ids[0].rsplit('-').next().unwrap()])
            .contains(ids[0]),
        "ids may be shortened"
    );

    suite.done(&["runs", "rm", ids[0]]);
    suite.done(&["runs", "prune", "--keep", "1"]);
    let left = suite.done(&["runs"]);
    assert!(
        left.contains(ids[2]) && !left.contains(ids[0]) && !left.contains(ids[1]),
        "{left}"
    );

    let missing = suite.assize(&["runs", "rm", "nonsense"]);
    assert_eq!(missing.code, Some(1));
    assert!(
        missing.stderr.contains("no run `nonsense`")
            && missing.stderr.contains("`assize runs` lists"),
        "{missing:?}"
    );
}

#[test]
fn a_trial_is_shown_with_its_checks_and_timeline() {
    let suite = Suite::of(
        "modes: { plain: { provider: { uses: simulated, answer: 'it is 42', tool_calls: 2, tool_failure_rate: 1 } } }\n\
         scenarios: { paths: ['scenarios/*.yaml'] }\n\
         execution: { repetitions: 1 }\n",
    );
    suite.write(
        "scenarios/one.yaml",
        "id: one\nprompt: how much?\nchecks:\n  - output: { contains: '42' }\n  - output: { contains: '43' }\n",
    );
    suite.done(&["run", "-q"]);
    let shown = suite.done(&["show", "last/0"]);
    for words in [
        "fail",
        "one · plain",
        "simulated",
        "✓",
        "✗",
        "calls",
        "thinks",
        "says",
        "it is 42",
        "cost unknown",
    ] {
        assert!(shown.contains(words), "no `{words}` in\n{shown}");
    }
    assert_eq!(
        suite.done(&["show", "0"]),
        shown,
        "a bare position means the last run"
    );
    let wrong = suite.assize(&["show", "last/99"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.stderr.contains("has trials 0 to 1, not 99"),
        "{wrong:?}"
    );
}

#[test]
fn what_agents_say_cannot_act_on_the_terminal() {
    let suite = Suite::of(
        "modes: { plain: { provider: { uses: simulated, answer: \"\\e[2J\\e]0;owned\\a\\u202egnp.exe\" } } }\n\
         scenarios: { paths: ['scenarios/one.yaml'] }\n\
         execution: { repetitions: 1 }\n",
    );
    suite.done(&["run", "-q"]);
    let shown = suite.done(&["show", "last/0"]);
    assert!(shown.contains("owned"), "{shown}");
    assert!(
        !shown.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{shown:?}"
    );
}
