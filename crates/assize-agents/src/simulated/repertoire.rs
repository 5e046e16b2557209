//! Everything a simulated agent can think and do, made once: sessions only point to it, so a session costs next to nothing.

use super::settings::SimulatedSettings;
use assize_contracts::{ToolCallRecord, TraceEvent};
use serde_json::{Value, json};
use std::sync::Arc;

/// Things each tool can be used on.
const TARGETS: usize = 16;

/// A mode's settings and what follows from them.
pub(super) struct Simulation {
    pub(super) settings: SimulatedSettings,
    pub(super) thought: TraceEvent,
    calls: Vec<Arc<TraceEvent>>,
}

impl Simulation {
    pub(super) fn new(settings: SimulatedSettings) -> Self {
        let mut calls = Vec::new();
        for tool in &settings.tools {
            for target in 0..TARGETS {
                calls.push(Arc::new(call(tool, target, false)));
                calls.push(Arc::new(call(tool, target, true)));
            }
        }
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
        let place = (choice * (self.calls.len() / 2) as f64) as usize;
        let event = Arc::clone(&self.calls[place * 2 + usize::from(fails)]);
        let name = &self.settings.tools[place / TARGETS];
        let record = ToolCallRecord {
            name: name.clone(),
            category: name.clone(),
            success: Some(!fails),
            duration_ms: None,
            error: fails.then(|| FAILURE.to_owned()),
        };
        (event, record)
    }
}

const FAILURE: &str = "simulated failure";

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
