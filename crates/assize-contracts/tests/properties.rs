//! Records from outside may hold anything.

use assize_contracts::fuzzing;
use proptest::prelude::*;
use serde_json::{Map, Value};

/// JSON of any shape, made of the words that records are made of, so that much of it nearly fits.
fn nearly_a_record() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "type",
        "events",
        "turns",
        "summary",
        "content",
        "durationMs",
        "tokenCount",
        "name",
        "input",
        "output",
        "success",
        "turnNumber",
        "timestamp",
        "sessionId",
        "totalTurns",
        "totalToolCalls",
        "totalTokens",
        "id",
        "metadata",
        "steps",
        "input_map",
        "target",
        "value",
        "metric",
        "runId",
        "evaluatorId",
        "createdAt",
    ]);
    let texts = prop::sample::select(vec![
        "tool_call",
        "reasoning",
        "turn_boundary",
        "error",
        "final",
        "step:a",
        "2024-01-01T00:00:00Z",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts.prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((words.clone(), inner), 0..10).prop_map(|pairs| {
                let map: Map<String, Value> = pairs
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect();
                Value::Object(map)
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzzing::records(&bytes);
    }

    #[test]
    fn any_json_is_read_or_refused_and_comes_back(value in nearly_a_record()) {
        fuzzing::records(value.to_string().as_bytes());
    }
}
