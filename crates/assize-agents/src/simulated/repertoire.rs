//! Everything a simulated agent can think and do, made once: sessions only point to it, so a session costs next to nothing.

use super::settings::SimulatedSettings;
use assize_contracts::{ToolCallRecord, TraceEvent};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Things each tool can be used on.
const TARGETS: usize = 16;

/// A mode's settings and what follows from them.
pub(super) struct Simulation {
    pub(super) settings: SimulatedSettings,
    pub(super) thought: TraceEvent,
    /// Once per lane: threads that count the users of the same event wait for each other's caches.
    calls: Vec<Vec<Arc<TraceEvent>>>,
}

/// Threads share events with few others.
const LANES: usize = 8;

/// The copy that a thread uses.
fn lane() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LANE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % LANES;
    }
    LANE.with(|lane| *lane)
}

impl Simulation {
    pub(super) fn new(settings: SimulatedSettings) -> Self {
        let calls = (0..LANES).map(|_| calls(&settings.tools)).collect();
        let thought = TraceEvent::Reasoning {
            content: "Considering what the task asks for and which file to look at next."
                .to_owned(),
            duration_ms: None,
            token_count: None,
            context: None,
        };
        Self {
            settings,
            thought,
            calls,
        }
    }

    /// A tool call, chosen by a number from 0 to below 1, with its record.
    pub(super) fn call(&self, choice: f64, fails: bool) -> (Arc<TraceEvent>, ToolCallRecord) {
        let calls = &self.calls[lane()];
        let place = (choice * (calls.len() / 2) as f64) as usize;
        let event = Arc::clone(&calls[place * 2 + usize::from(fails)]);
        let name = &self.settings.tools[place / TARGETS];
        let record = ToolCallRecord {
            name: name.clone(),
            category: name.clone(),
            success: Some(!fails),
            duration_ms: None,
            error: fails.then(|| FAILURE.to_owned()),
            call_ref: None,
        };
        (event, record)
    }
}

const FAILURE: &str = "simulated failure";

/// Every tool on every target, good and bad in turn.
fn calls(tools: &[String]) -> Vec<Arc<TraceEvent>> {
    let mut calls = Vec::new();
    for tool in tools {
        for target in 0..TARGETS {
            calls.push(Arc::new(call(tool, target, false)));
            calls.push(Arc::new(call(tool, target, true)));
        }
    }
    calls
}

fn call(tool: &str, target: usize, fails: bool) -> TraceEvent {
    TraceEvent::ToolCall {
        name: tool.to_owned(),
        input: json!({"target": format!("file-{target}")}),
        output: if fails {
            Value::Null
        } else {
            "ok: 3 matches, 1 file changed".into()
        },
        duration_ms: None,
        success: Some(!fails),
        error: fails.then(|| FAILURE.to_owned()),
        context: None,
    }
}
