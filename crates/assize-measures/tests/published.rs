//! The five analyzers agree with the published analyses of fifteen real sessions, or the difference stands here.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../tests/shared/harness.rs"]
mod harness;

use assize_contracts::{AnalysisResult, SessionAnalysisBundle, SessionTrace};
use assize_measures::analyzers::FIVE;
use harness::{Test, beside};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

const PUBLISHED: &str = "fixtures/published";

fn main() -> ExitCode {
    let tests: &[Test] = &[(
        "every_finding_agrees_or_its_difference_is_explained",
        every_finding_agrees_or_its_difference_is_explained,
    )];
    harness::run(PUBLISHED, tests)
}

/// A finding that differs, and rightly so.
struct Difference {
    finding: &'static str,
    session: &'static str,
    theirs: Value,
    ours: Value,
}

/// The older profiler names the runs of one product's own command by what the command is given: `ghx run
/// pr.threads.list` becomes `ghx:pr.threads.list`, while `ghx chain` is named like any other command. A name for one
/// program that no other follows cannot be compared across programs; here every shell call is its command.
fn differences() -> Vec<Difference> {
    let mut differences = Vec::new();
    for session in ["ghx-iter-0", "ghx-iter-1", "ghx-iter-2", "ghx-iter-4"] {
        differences.push(Difference {
            finding: "tool_sequence",
            session,
            theirs: json!(["ghx:pr.threads.list", "ghx chain"]),
            ours: json!(["ghx run", "ghx chain"]),
        });
        differences.push(Difference {
            finding: "tool_call_patterns",
            session,
            theirs: json!([["ghx:pr.threads.list -> ghx chain", "1"]]),
            ours: json!([["ghx run -> ghx chain", "1"]]),
        });
    }
    differences.push(Difference {
        finding: "tool_sequence",
        session: "ghx-iter-3",
        theirs: json!(["ghx:pr.threads.list", "ghx chain", "ghx:pr.threads.list"]),
        ours: json!(["ghx run", "ghx chain", "ghx run"]),
    });
    differences.push(Difference {
        finding: "tool_call_patterns",
        session: "ghx-iter-3",
        theirs: json!([
            ["ghx:pr.threads.list -> ghx chain", "1"],
            ["ghx chain -> ghx:pr.threads.list", "1"]
        ]),
        ours: json!([["ghx run -> ghx chain", "1"], ["ghx chain -> ghx run", "1"]]),
    });
    // The older profiler calls a session iterative as soon as a tool is called with another input, which every session
    // does; here a few calls without failures and repetitions are direct.
    let short = [
        "baseline-iter-3",
        "ghx-iter-0",
        "ghx-iter-1",
        "ghx-iter-2",
        "ghx-iter-3",
        "ghx-iter-4",
        "mcp-iter-0",
        "mcp-iter-1",
        "mcp-iter-2",
        "mcp-iter-4",
    ];
    differences.extend(short.map(|session| Difference {
        finding: "strategy_summary",
        session,
        theirs: json!("iterative"),
        ours: json!("direct"),
    }));
    differences
}

fn every_finding_agrees_or_its_difference_is_explained() {
    let mut explained = differences();
    let mut compared = 0;
    for session in sessions() {
        let trace: SessionTrace = read(&format!("sessions/{session}.json"));
        let theirs: SessionAnalysisBundle = read(&format!("analysis/{session}-analysis.json"));
        assert_eq!(theirs.results.len(), FIVE.len());
        for analyzer in FIVE {
            let ours = analyzer.find(&trace);
            let theirs = &theirs.results[&ours.analyzer];
            compared += compare(&session, &ours, theirs, &mut explained);
        }
    }
    assert_eq!(compared, 15 * 24);
    let unseen: Vec<&str> = explained
        .iter()
        .map(|difference| difference.session)
        .collect();
    assert!(unseen.is_empty(), "explained but not there: {unseen:?}");
}

/// The number of findings that were compared.
fn compare(
    session: &str,
    ours: &AnalysisResult,
    theirs: &AnalysisResult,
    explained: &mut Vec<Difference>,
) -> usize {
    // The value is theirs, the words are not: most changed inputs are no steps back.
    let theirs_in_our_words = theirs.summary.replace(
        "backtracking events",
        "calls with changed input to the same tool",
    );
    let is_same = ours.summary == theirs_in_our_words;
    let is_direct = ours.summary == theirs.summary.replace("iterative", "direct");
    assert!(is_same || is_direct, "{session}: {}", ours.summary);
    let keys: Vec<&String> = ours.findings.keys().collect();
    assert_eq!(
        keys,
        theirs.findings.keys().collect::<Vec<_>>(),
        "{session}"
    );
    for (key, finding) in &ours.findings {
        let mut ours = serde_json::to_value(finding).unwrap();
        let mut theirs = serde_json::to_value(&theirs.findings[key]).unwrap();
        let explanation = explained
            .iter()
            .position(|difference| difference.session == session && difference.finding == key);
        if let Some(position) = explanation {
            let difference = explained.remove(position);
            assert_eq!(values_of(&mut theirs).take(), difference.theirs);
            assert_eq!(values_of(&mut ours).take(), difference.ours);
        }
        assert_eq!(ours, theirs, "{session}: {key}");
    }
    ours.findings.len()
}

fn values_of(finding: &mut Value) -> &mut Value {
    let key = match finding["type"].as_str() {
        Some("table") => "rows",
        Some("string") => "value",
        _ => "values",
    };
    &mut finding[key]
}

fn sessions() -> Vec<String> {
    let entries = std::fs::read_dir(directory().join("sessions")).unwrap();
    let name = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let sessions: Vec<String> = entries.map(|entry| name(entry.unwrap().path())).collect();
    assert_eq!(sessions.len(), 15);
    sessions
}

fn read<T: DeserializeOwned>(path: &str) -> T {
    let text = std::fs::read_to_string(directory().join(path)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn directory() -> PathBuf {
    beside(PUBLISHED)
}
