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

/// The output of `show` and `runs` about a run of nine trials.
fn told(suite: &Suite) -> (Vec<Value>, Value) {
    let shown = |position: u64| {
        let shown = suite.done(&["show", &format!("last/{position}"), "--json"]);
        serde_json::from_str(&shown).unwrap()
    };
    let listed = suite.done(&["runs", "--json"]);
    let run: Value = serde_json::from_str(listed.lines().last().unwrap()).unwrap();
    ((0..4).map(shown).collect(), run["done"].clone())
}

#[test]
fn an_index_that_is_missing_stale_or_wrong_changes_nothing() {
    let suite = Suite::new();
    suite.done(&["run", "-q", "-n", "1"]);
    let index = suite.run_directory().join("index");
    let rows = suite.run_directory().join("rows.jsonl");
    let expected = told(&suite);
    for (position, shown) in expected.0.iter().enumerate() {
        assert_eq!(shown["row"]["position"], position);
        assert!(shown["trace"]["events"].is_array(), "{shown}");
    }
    assert_eq!(expected.1, 4);
    let good = std::fs::read(&index).unwrap();

    std::fs::remove_file(&index).unwrap();
    assert_eq!(told(&suite), expected);
    assert!(index.exists(), "it is made again");

    std::fs::write(&index, &good[..good.len() / 2]).unwrap();
    assert_eq!(told(&suite), expected);
    std::fs::write(&index, b"nonsense").unwrap();
    assert_eq!(told(&suite), expected);

    // Places that lead to other rows are noticed where they lead.
    let mut wrong = good.clone();
    let places = 16 * 8;
    let (first, second) = wrong[places..places + 8].split_at_mut(4);
    first.swap_with_slice(second);
    assert_ne!(wrong, good);
    std::fs::write(&index, &wrong).unwrap();
    assert_eq!(told(&suite), expected);

    // A row that was removed is gone, whatever the index knew.
    std::fs::write(&index, &good).unwrap();
    let text = std::fs::read_to_string(&rows).unwrap();
    let rest: Vec<&str> = text.lines().skip(1).collect();
    std::fs::write(&rows, rest.join("\n") + "\n").unwrap();
    let listed = suite.done(&["runs", "--json"]);
    assert!(listed.contains("\"done\":3"), "{listed}");
    let removed: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let gone = suite.assize(&["show", &format!("last/{}", removed["position"])]);
    assert!(gone.stderr.contains("is not done yet"), "{gone:?}");
}

#[test]
fn a_run_is_resumed_alike_with_and_without_its_index() {
    let rows_of = |suite: &Suite| {
        let mut rows: Vec<String> = suite
            .rows()
            .iter()
            .map(|row| format!("{} {} {}", row["position"], row["scenarioId"], row["mode"]))
            .collect();
        rows.sort();
        rows
    };
    let resumed = |prepare: fn(&std::path::Path)| {
        let suite = Suite::new();
        suite.done(&["run", "-q", "-n", "1", "--seed", "3"]);
        prepare(&suite.run_directory());
        suite.done(&["run", "-q", "--resume", "last", "-n", "3"]);
        let shown = suite.done(&["show", "last/11", "--json"]);
        assert!(shown.contains("\"position\":11"), "{shown}");
        assert_eq!(told(&suite).1, 12);
        rows_of(&suite)
    };
    let with = resumed(|_| {});
    assert_eq!(with.len(), 12);
    let without = resumed(|run| std::fs::remove_file(run.join("index")).unwrap());
    assert_eq!(with, without);
    // Half a row that was written after the index is cut off.
    let torn = resumed(|run| {
        let rows = run.join("rows.jsonl");
        let mut text = std::fs::read(&rows).unwrap();
        text.extend_from_slice(b"{\"runId\":\"");
        std::fs::write(&rows, text).unwrap();
    });
    assert_eq!(with, torn);
}
