//! Rows of version 1 and 2 side by side: what changed its meaning is not compared, everything else is.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use assize_report::{Analysis, GateContext, Reference, Summary, SummaryBuilder, judge_gates};
use serde_json::json;

fn rows(version: u32, mode: &str) -> String {
    let row = |number: u64| {
        json!({
            "schemaVersion": version, "runId": format!("r{version}"), "scenarioId": format!("s{}", number % 5), "mode": mode, "model": "m",
            "iteration": number / 5, "success": true, "outcome": "pass", "agentTurns": 3 + number,
            "tokens": {"input": 100 + number, "total": 100 + number, "active": 100 + number},
            "toolCalls": {"total": 4, "failed": 1, "retried": 0, "errorRate": 0.25}, "extensions": {}
        })
        .to_string()
    };
    (0..15).map(row).collect::<Vec<_>>().join("\n")
}

fn builder(files: &[(u32, &str)]) -> SummaryBuilder {
    let mut builder = SummaryBuilder::default();
    for (version, mode) in files {
        builder.read(rows(*version, mode).as_bytes(), None).unwrap();
    }
    builder
}

fn compared(summary: &Summary, metric: &str) -> bool {
    let mut comparisons = summary.comparisons.iter();
    comparisons.any(|comparison| comparison.metric() == metric)
}

#[test]
fn turns_of_different_versions_are_called_not_comparable() {
    let mixed = builder(&[(1, "old"), (2, "new")])
        .finish(&Analysis::default())
        .unwrap();
    assert!(!compared(&mixed, "agent_turns") && !compared(&mixed, "tool_calls_failed"));
    assert!(compared(&mixed, "tokens_total"));
    let caution = mixed
        .cautions
        .iter()
        .find(|caution| caution.code == "not-comparable");
    assert!(caution.unwrap().places.contains(&"agent_turns".to_owned()));
    // The current trials keep their numbers.
    assert!(
        mixed
            .modes
            .find("new")
            .unwrap()
            .metrics
            .find("agent_turns")
            .is_some()
    );
}

#[test]
fn a_comparison_that_was_asked_for_says_why_there_is_none() {
    let analysis = Analysis {
        primary: Some(vec!["agent_turns".to_owned()]),
        ..Analysis::default()
    };
    let mixed = builder(&[(1, "old"), (2, "new")])
        .finish(&analysis)
        .unwrap();
    let turns = mixed.comparisons.iter();
    let turns: Vec<String> = turns
        .filter(|comparison| comparison.metric() == "agent_turns")
        .map(|comparison| format!("{comparison:?}"))
        .collect();
    assert_eq!(turns.len(), 1);
    let reason = "it means something else in trials before Assize 0.2";
    assert!(turns[0].contains(reason), "{turns:?}");
}

#[test]
fn turns_of_one_version_are_compared() {
    for version in [1, 2] {
        let summary = builder(&[(version, "a"), (version, "b")])
            .finish(&Analysis::default())
            .unwrap();
        assert!(compared(&summary, "agent_turns"));
        assert!(
            summary
                .cautions
                .iter()
                .all(|caution| caution.code != "not-comparable")
        );
    }
}

#[test]
fn no_gate_holds_turns_against_a_baseline_of_another_version() {
    let verdict = |version: u32| {
        let mut trials = builder(&[(2, "a")]);
        let mut context = GateContext {
            gates: vec!["agent_turns <= baseline + 50%".parse().unwrap()],
            planned: None,
            reference: Some(Reference {
                name: "before".to_owned(),
                trials: builder(&[(version, "a")]),
                planned: None,
            }),
            ..GateContext::default()
        };
        let results = judge_gates(&mut trials, &mut context, &Analysis::default());
        (
            format!("{:?}", results[0].verdict),
            format!("{:?}", results[0]),
        )
    };
    assert_eq!(verdict(2).0, "Pass");
    let (found, whole) = verdict(1);
    assert_eq!(found, "Inconclusive");
    assert!(whole.contains("not comparable: `agent_turns`"), "{whole}");
}
