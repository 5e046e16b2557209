//! OTLP: one golden file per dialect, and what must hold for every one.

use crate::sample::{session, trial};
use assize_formats::otlp::{Dialect, Options, spans, to_json};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const DIALECTS: [(&str, Dialect); 3] = [
    ("v1.41", Dialect::V1_41),
    ("latest", Dialect::Latest),
    ("openinference", Dialect::OpenInference),
];

fn export(dialect: Dialect, has_content: bool) -> Value {
    let options = Options {
        dialect,
        has_content,
        ..Options::default()
    };
    to_json(&[spans(&trial(), &options).unwrap()])
}

fn all_spans(document: &Value) -> Vec<Value> {
    document["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap()
        .clone()
}

fn attribute<'v>(holder: &'v Value, key: &str) -> Option<&'v Value> {
    let all = holder["attributes"].as_array().unwrap();
    let pair = all.iter().find(|pair| pair["key"] == key)?;
    pair["value"].as_object().unwrap().values().next()
}

/// `UPDATE_GOLDEN=1` writes the files anew.
#[test]
fn every_dialect_is_written_as_its_golden_file_shows() {
    for (name, dialect) in DIALECTS {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.otlp.json"));
        let mut document = export(dialect, true);
        // The version of the program is no part of the format.
        document["resourceSpans"][0]["scopeSpans"][0]["scope"]["version"] = "0".into();
        document["resourceSpans"][0]["resource"]["attributes"][1]["value"]["stringValue"] =
            "0".into();
        let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{name}");
    }
}

#[test]
fn the_tree_hangs_together_and_ids_stay_the_same() {
    let document = export(Dialect::V1_41, false);
    assert_eq!(document, export(Dialect::V1_41, false));
    let spans = all_spans(&document);
    let ids: BTreeSet<&str> = spans
        .iter()
        .map(|span| span["spanId"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), spans.len());
    for span in &spans {
        assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
        assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
        let time = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
    }
    let roots: Vec<&Value> = spans
        .iter()
        .filter(|span| span.get("parentSpanId").is_none())
        .collect();
    assert_eq!(roots.len(), 1);
    let parent_of = |name: &str| {
        let span = spans.iter().find(|span| span["name"] == name).unwrap();
        let parent = spans
            .iter()
            .find(|each| Some(&each["spanId"]) == span.get("parentSpanId"))
            .unwrap();
        parent["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(parent_of("turn 1"), "invoke_agent claude-code");
    assert_eq!(parent_of("execute_tool Task"), "turn 1");
    // A subagent hangs below the tool that started it, and its work below the subagent.
    assert_eq!(parent_of("execute_tool Read"), "invoke_agent claude-code");
    let subagent = spans
        .iter()
        .find(|span| attribute(span, "gen_ai.agent.id").is_some())
        .unwrap();
    let starter = spans
        .iter()
        .find(|span| span["spanId"] == subagent["parentSpanId"])
        .unwrap();
    assert_eq!(starter["name"], "execute_tool Task");
}

#[test]
fn usage_is_on_model_calls_only_and_unknown_counts_are_left_out() {
    for (_, dialect) in DIALECTS {
        for span in all_spans(&export(dialect, false)) {
            let is_call = span["name"].as_str().unwrap().starts_with("chat ");
            let keys: Vec<&str> = span["attributes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|pair| pair["key"].as_str().unwrap())
                .collect();
            let has_usage = keys.iter().any(|key| {
                key.contains("usage") || key.contains("token_count") || key.contains("cost")
            });
            assert!(is_call || !has_usage, "{keys:?}");
            // Two names for one count would be counted twice.
            let written = keys
                .iter()
                .filter(|key| key.contains("cache_write") || key.contains("cache_creation"));
            assert!(written.count() <= 1);
        }
    }
    let spans = all_spans(&export(Dialect::V1_41, false));
    let first = spans
        .iter()
        .find(|span| span["name"] == "chat claude-x")
        .unwrap();
    assert_eq!(
        attribute(first, "gen_ai.usage.input_tokens").unwrap(),
        "12903"
    );
    assert_eq!(
        attribute(first, "gen_ai.usage.cache_creation.input_tokens").unwrap(),
        "900"
    );
    assert_eq!(
        attribute(first, "gen_ai.usage.output_tokens").unwrap(),
        "84"
    );
    assert_eq!(
        attribute(first, "gen_ai.response.time_to_first_chunk").unwrap(),
        0.35
    );
    let cut = spans
        .iter()
        .rfind(|span| span["name"] == "chat claude-x")
        .unwrap();
    assert_eq!(attribute(cut, "gen_ai.usage.input_tokens"), None);
    assert_eq!(attribute(cut, "error.type").unwrap(), "cut");
    assert_eq!(cut["status"]["code"], 2);
}

#[test]
fn checks_are_evaluation_results_and_a_run_is_an_experiment() {
    let spans = all_spans(&export(Dialect::V1_41, false));
    let events: Vec<&Value> = spans[0]["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["name"] == "gen_ai.evaluation.result")
        .collect();
    let of = |name: &str| {
        *events
            .iter()
            .find(|event| attribute(event, "gen_ai.evaluation.name").unwrap() == name)
            .unwrap()
    };
    assert_eq!(
        attribute(of("success"), "gen_ai.evaluation.score.label").unwrap(),
        "fail"
    );
    assert_eq!(
        attribute(of("success"), "gen_ai.evaluation.score.value").unwrap(),
        0.0
    );
    assert_eq!(
        attribute(of("exit"), "gen_ai.evaluation.score.value").unwrap(),
        1.0
    );
    assert_eq!(
        attribute(of("hidden"), "gen_ai.evaluation.explanation").unwrap(),
        "the hidden tests pass"
    );
    assert_eq!(
        attribute(&spans[0], "langfuse.experiment.id").unwrap(),
        "20261102-090000-abcd:plain:claude-x"
    );
    assert_eq!(
        attribute(&spans[0], "langfuse.experiment.item.id").unwrap(),
        "list-files"
    );
    assert_eq!(
        attribute(&spans[0], "langfuse.experiment.item.root_observation_id").unwrap(),
        &spans[0]["spanId"]
    );
}

#[test]
fn a_void_trial_has_no_score() {
    let mut session = trial();
    let row = &mut session.trial.as_mut().unwrap().row;
    row.outcome = Some(assize_contracts::Outcome::Void);
    let document = to_json(&[spans(&session, &Options::default()).unwrap()]);
    let root = &all_spans(&document)[0];
    let success = &root["events"][0];
    assert_eq!(
        attribute(success, "gen_ai.evaluation.score.label").unwrap(),
        "void"
    );
    assert_eq!(attribute(success, "gen_ai.evaluation.score.value"), None);
}

#[test]
fn nothing_that_was_said_is_written_unless_asked_for() {
    let said = [
        "look first",
        "I look.",
        "a.rs",
        "count; lines",
        "no such file",
        "429 from",
        "List the files.",
        "Done.",
        "agent's words",
    ];
    for (_, dialect) in DIALECTS {
        let text = export(dialect, false).to_string();
        for words in said {
            assert!(!text.contains(words), "{words}");
        }
        let text = export(dialect, true).to_string();
        for words in ["look first", "a.rs", "List the files.", "no such file"] {
            assert!(text.contains(words), "{words}");
        }
    }
}

#[test]
fn long_texts_are_cut() {
    let options = Options {
        has_content: true,
        longest_text: 40,
        ..Options::default()
    };
    let document = to_json(&[spans(&trial(), &options).unwrap()]);
    for span in all_spans(&document) {
        for pair in span["attributes"].as_array().unwrap() {
            let text = pair["value"]["stringValue"].as_str().unwrap_or_default();
            assert!(text.len() <= 40, "{pair}");
        }
    }
}

#[test]
fn a_session_without_times_is_refused_with_its_name() {
    let mut session = session();
    session.trace = assize_contracts::SessionTrace {
        session_id: "s9".to_owned(),
        ..Default::default()
    };
    let error = spans(&session, &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "the session `s9` has no times");
}
