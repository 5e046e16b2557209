//! Chrome trace events, which Perfetto and `chrome://tracing` open. One process per session.

use crate::lanes::{Lane, lanes};
use crate::session::Session;
use crate::timeline::{Micros, NoTimes, Timeline};
use serde_json::{Value, json};

/// All sessions in one document. Each begins at 0.
pub fn write(sessions: &[Session]) -> Result<Value, NoTimes> {
    let mut document = Document::default();
    let mut events = Vec::new();
    for session in sessions {
        events.extend(document.events(session)?);
    }
    Ok(json!({ "displayTimeUnit": "ms", "traceEvents": events }))
}

/// The same document as a text that is made piece by piece.
#[derive(Debug, Default)]
pub struct Document {
    sessions: usize,
}

impl Document {
    /// The text of a session, to be appended to what came before.
    pub fn add(&mut self, session: &Session) -> Result<String, NoTimes> {
        let is_first = self.sessions == 0;
        let mut text = String::new();
        for event in self.events(session)? {
            let before = match is_first && text.is_empty() {
                true => "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n",
                false => ",\n",
            };
            text.push_str(before);
            text.push_str(&event.to_string());
        }
        Ok(text)
    }

    /// The text after the last session.
    pub fn end(&self) -> &'static str {
        "\n]}\n"
    }

    /// There is at least one: the name of the process.
    fn events(&mut self, session: &Session) -> Result<Vec<Value>, NoTimes> {
        let timeline = Timeline::of(session)?;
        self.sessions += 1;
        let process = self.sessions;
        let mut events = vec![named(process, 0, "process_name", &title(session))];
        for (place, lane) in lanes(&timeline).iter().enumerate() {
            let thread = place + 1;
            events.push(named(process, thread, "thread_name", &lane.name));
            events.extend(lane_events(lane, timeline.start, process, thread));
        }
        events.extend(counters(&timeline, process));
        Ok(events)
    }
}

/// The name of a session among others of its run.
pub(crate) fn title(session: &Session) -> String {
    match &session.trial {
        Some(trial) => {
            let row = &trial.row;
            format!(
                "{} · {} · {} #{}",
                row.scenario_id, row.mode, row.model, row.iteration
            )
        }
        None => session.name(),
    }
}

fn named(process: usize, thread: usize, what: &str, name: &str) -> Value {
    json!({ "ph": "M", "pid": process, "tid": thread, "name": what, "args": { "name": name } })
}

fn lane_events(lane: &Lane, start: Micros, process: usize, thread: usize) -> Vec<Value> {
    let slices = lane.slices.iter().map(|slice| {
        json!({
            "ph": "X", "pid": process, "tid": thread, "ts": slice.start - start, "dur": slice.end - slice.start,
            "name": slice.name, "cat": slice.category, "args": slice.facts,
        })
    });
    let errors = lane.errors.iter().map(|(at, _)| {
        json!({
            "ph": "I", "s": "t", "pid": process, "tid": thread, "ts": (at - start).max(0), "name": "error", "cat": "error",
            "args": {},
        })
    });
    slices.chain(errors).collect()
}

/// Tokens of each call when its answer is complete.
fn counters(timeline: &Timeline<'_>, process: usize) -> Vec<Value> {
    let mut calls: Vec<_> = timeline.calls.iter().collect();
    calls.sort_by_key(|call| call.end);
    let counter = |call: &&crate::timeline::CallSpan<'_>| {
        let tokens = &call.call.tokens;
        let cached = [tokens.cache_read, tokens.cache_write]
            .into_iter()
            .flatten();
        let prompt = cached.fold(tokens.input?, u64::saturating_add);
        let completion = tokens.output?.saturating_add(tokens.reasoning.unwrap_or(0));
        Some(json!({
            "ph": "C", "pid": process, "tid": 0, "ts": call.end - timeline.start, "name": "tokens",
            "args": { "prompt": prompt, "completion": completion },
        }))
    };
    calls.iter().filter_map(counter).collect()
}
