//! The record of an execution, while it is under way and when it is over. Ids and provenance are the engine's.

use assize_contracts::{
    AtomicTask, CostSource, Provenance, RunError, RunMetrics, RunRecord, RunStatus, TaskEvent,
    TaskEventLevel, TaskKind, Timestamp, Usd,
};
use serde_json::Value;
use std::time::Instant;

/// An execution under way.
pub(super) struct Execution {
    started: Instant,
    started_at: Timestamp,
    trace: Vec<TaskEvent>,
    pub(super) tokens: Option<u64>,
    pub(super) cost: Option<Usd>,
    pub(super) cost_source: Option<CostSource>,
}

impl Execution {
    pub(super) fn start() -> Self {
        let started_at = Timestamp::now();
        Self {
            started: Instant::now(),
            trace: vec![TaskEvent::new(
                started_at.clone(),
                TaskEventLevel::Info,
                "started",
                None,
            )],
            started_at,
            tokens: None,
            cost: None,
            cost_source: None,
        }
    }

    /// Notes what happened.
    pub(super) fn note(&mut self, name: &str, data: Value) {
        self.trace.push(TaskEvent::new(
            Timestamp::now(),
            TaskEventLevel::Debug,
            name,
            Some(data),
        ));
    }

    /// Notes what happened at another time.
    pub(super) fn note_at(&mut self, timestamp: Option<Timestamp>, name: &str, data: Value) {
        let timestamp = timestamp.unwrap_or_else(Timestamp::now);
        self.trace.push(TaskEvent::new(
            timestamp,
            TaskEventLevel::Debug,
            name,
            Some(data),
        ));
    }

    /// It ended with an output.
    pub(super) fn completed(self, task: &AtomicTask, output: Value) -> RunRecord {
        self.end(task, Ok(output))
    }

    /// It ended without one: in this phase, for this reason.
    pub(super) fn failed(self, task: &AtomicTask, phase: &str, message: String) -> RunRecord {
        let error = RunError {
            message,
            step: Some(phase.to_owned()),
            stack: None,
        };
        self.end(task, Err(error))
    }

    /// The engine adds the last event, and whatever else is left empty.
    fn end(self, task: &AtomicTask, ended: Result<Value, RunError>) -> RunRecord {
        let (status, output, error) = match ended {
            Ok(output) => (RunStatus::Completed, Some(output), None),
            Err(error) => (RunStatus::Failed, None, Some(error)),
        };
        RunRecord {
            schema_version: None,
            id: String::new(),
            task_id: task.id.clone(),
            task_type: TaskKind::Atomic,
            status,
            output,
            error,
            metrics: RunMetrics {
                latency: self.started.elapsed().into(),
                tokens: self.tokens,
                cost: self.cost,
                cost_source: self.cost_source,
            },
            trace: self.trace,
            steps: None,
            started_at: self.started_at,
            completed_at: None,
            provenance: Provenance::default(),
        }
    }
}
