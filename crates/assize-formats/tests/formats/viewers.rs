//! Chrome trace and speedscope: what viewers demand of slices.

use crate::sample::{session, time, trace_of, trial};
use assize_formats::{Session, chrome, speedscope};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Slices of one thread follow or contain each other.
fn check_nesting(document: &Value) {
    let mut threads: BTreeMap<(u64, u64), Vec<(i64, i64)>> = BTreeMap::new();
    for event in document["traceEvents"].as_array().unwrap() {
        let number = |key: &str| event[key].as_i64().unwrap();
        assert!(event["ph"] == "M" || number("ts") >= 0, "{event}");
        if event["ph"] == "X" {
            assert!(number("dur") >= 0);
            let thread = (
                event["pid"].as_u64().unwrap(),
                event["tid"].as_u64().unwrap(),
            );
            threads
                .entry(thread)
                .or_default()
                .push((number("ts"), number("ts") + number("dur")));
        }
    }
    for slices in threads.values() {
        for (place, a) in slices.iter().enumerate() {
            for b in &slices[place + 1..] {
                let apart = a.1 <= b.0 || b.1 <= a.0;
                let inside = (a.0 <= b.0 && b.1 <= a.1) || (b.0 <= a.0 && a.1 <= b.1);
                assert!(apart || inside, "{a:?} and {b:?}");
            }
        }
    }
}

fn check_balance(document: &Value) {
    let frames = document["shared"]["frames"].as_array().unwrap().len() as u64;
    for profile in document["profiles"].as_array().unwrap() {
        let mut open = Vec::new();
        let mut last = 0.0;
        for event in profile["events"].as_array().unwrap() {
            let (frame, at) = (
                event["frame"].as_u64().unwrap(),
                event["at"].as_f64().unwrap(),
            );
            assert!(frame < frames && at >= last, "{event}");
            last = at;
            match event["type"].as_str().unwrap() {
                "O" => open.push(frame),
                _ => assert_eq!(open.pop(), Some(frame)),
            }
        }
        assert!(open.is_empty());
        assert!(last <= profile["endValue"].as_f64().unwrap());
    }
}

#[test]
fn a_session_has_a_lane_for_the_agent_and_for_what_happens_beside_it() {
    let document = chrome::write(&[trial(), session()]).unwrap();
    check_nesting(&document);
    let events = document["traceEvents"].as_array().unwrap();
    let lanes: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "thread_name" && event["pid"] == 1)
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        lanes,
        [
            "agent",
            "model calls beside",
            "tools",
            "tools 2",
            "subagent t2 (Task)",
            "t2: tools"
        ]
    );
    let process = events
        .iter()
        .find(|event| event["name"] == "process_name")
        .unwrap();
    assert_eq!(process["args"]["name"], "list-files · plain · claude-x #2");
    let first = events
        .iter()
        .find(|event| event["name"] == "chat claude-x")
        .unwrap();
    assert_eq!(
        (&first["ts"], &first["dur"], &first["args"]["prompt"]),
        (&json!(0), &json!(900_000), &json!(12903))
    );
    let turns: Vec<(&Value, &Value)> = events
        .iter()
        .filter(|event| event["cat"] == "turn" && event["pid"] == 1)
        .map(|event| (&event["ts"], &event["dur"]))
        .collect();
    assert_eq!(
        turns,
        [
            (&json!(0), &json!(3_000_000)),
            (&json!(3_000_000), &json!(1_000_000))
        ]
    );
    let error = events.iter().find(|event| event["ph"] == "I").unwrap();
    assert_eq!(
        (&error["ts"], &error["s"]),
        (&json!(3_100_000), &json!("t"))
    );
    let counters = events
        .iter()
        .filter(|event| event["ph"] == "C" && event["pid"] == 1);
    assert_eq!(counters.count(), 3, "the call that was cut has no counts");
}

#[test]
fn profiles_open_and_close_like_brackets() {
    let document = speedscope::write(&[trial()]).unwrap();
    check_balance(&document);
    assert_eq!(
        document["$schema"],
        "https://www.speedscope.app/file-format-schema.json"
    );
    let names: Vec<&str> = document["profiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|each| each["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[0], "list-files · plain · claude-x #2: agent");
    assert_eq!(names.len(), 6);
}

#[test]
fn nothing_that_was_said_is_shown() {
    for text in [
        chrome::write(&[trial()]).unwrap().to_string(),
        speedscope::write(&[trial()]).unwrap().to_string(),
    ] {
        for words in [
            "look first",
            "I look.",
            "a.rs",
            "429 from",
            "List the files.",
        ] {
            assert!(!text.contains(words), "{words}");
        }
    }
}

proptest! {
    #[test]
    fn slices_nest_whatever_the_times_are(
        spans in proptest::collection::vec((0i64..100, 0i64..60, 0..3u8, proptest::option::of("[ab]")), 0..15),
    ) {
        let mut events = Vec::new();
        let mut calls = Vec::new();
        for (number, (start, duration, kind, agent)) in spans.iter().enumerate() {
            let mut thing = match kind {
                0 => { events.push(json!({ "type": "turn_boundary", "turnNumber": 0, "timestamp": time(*start) })); continue; }
                1 => json!({ "type": "tool_call", "name": "T", "input": {}, "output": null, "durationMs": duration, "success": null,
                    "timestamp": time(*start), "callId": agent }),
                _ => json!({ "id": number.to_string(), "model": "x", "side": duration % 2 == 0, "startedAt": time(*start), "durationMs": duration }),
            };
            if let Some(agent) = agent {
                thing["agentId"] = agent.clone().into();
            }
            match kind {
                1 => events.push(thing),
                _ => calls.push(thing),
            }
        }
        let session = Session { trace: trace_of(events.into(), calls.into()), ..Session::default() };
        if let Ok(document) = chrome::write(std::slice::from_ref(&session)) {
            check_nesting(&document);
            check_balance(&speedscope::write(std::slice::from_ref(&session)).unwrap());
            // Agents that started each other are no endless tree.
            let _ = assize_formats::otlp::spans(&session, &Default::default()).unwrap();
            let mut stacks = assize_formats::folded::Stacks::default();
            stacks.add(&session, assize_formats::folded::Weight::Time, true).unwrap();
        }
    }
}

#[test]
fn pieces_make_the_same_document() {
    let sessions = [trial(), Session::default(), session(), trial()];
    let timed: Vec<Session> = [&sessions[0], &sessions[2], &sessions[3]]
        .map(Clone::clone)
        .into();
    let mut document = chrome::Document::default();
    let pieces = sessions.iter().filter_map(|one| document.add(one).ok());
    let text = pieces.collect::<String>() + document.end();
    let made: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(made, chrome::write(&timed).unwrap());

    let mut document = speedscope::Document::default();
    let pieces = sessions.iter().filter_map(|one| document.add(one).ok());
    let text = pieces.collect::<String>() + &document.end();
    let made: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(made, speedscope::write(&timed).unwrap());
    check_balance(&made);
}
