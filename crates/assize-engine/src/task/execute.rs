//! Executes a task by its runner, or a chain step by step, and makes the record of it whole.

use super::flow::{fill_in, mappings_of};
use super::trial::TaskSlot;
use super::{UsedRunner, config_hash};
use crate::guard::guarded;
use crate::trial::Trials;
use crate::trial::row::Clock;
use assize_contracts::{
    AtomicTask, CostSource, JsonMap, Millis, Nature, Provenance, RunError, RunMetrics, RunRecord,
    RunSetting, RunStatus, SCHEMA_VERSION, ScenarioTask, StepStatus, StepSummary, Task, TaskEvent,
    TaskEventLevel, TaskKind, Timestamp, Usd,
};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;
use tokio::sync::SemaphorePermit;

/// The phase of an atomic task in which its runner works, where the runner names none itself.
const EXECUTE: &str = "execute";

/// The phase in which data is put into a step.
const INPUT_MAP: &str = "input_map";

/// The end of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// With an output.
    Completed,
    /// The capability gave none.
    Failed,
    /// Time ran out.
    TimedOut,
    /// The runner itself failed: no result about the capability.
    Broken,
}

/// An execution that is over.
pub(super) struct Executed<'t> {
    pub(super) record: RunRecord,
    pub(super) ended: Ended,
    pub(super) nature: Nature,
    pub(super) task: ExecutedTask<'t>,
}

/// An execution: a task, or a chain with the steps that were begun.
pub(super) enum ExecutedTask<'t> {
    Atomic(&'t AtomicTask),
    Scenario(&'t ScenarioTask, Vec<Step>),
}

/// A step as it was executed, with the input that it got.
pub(super) struct Step {
    pub(super) task: AtomicTask,
    pub(super) record: RunRecord,
}

struct Atom {
    record: RunRecord,
    ended: Ended,
    nature: Nature,
}

impl Trials {
    /// Executes the task of a trial. `id` is the id of its record.
    pub(super) async fn execute<'t>(
        &self,
        slot: &'t TaskSlot<'_>,
        setting: &RunSetting,
        id: String,
    ) -> Executed<'t> {
        let mut executed = match &*slot.task {
            Task::Atomic(task) => {
                let _room = self.room_at_runner(slot, task).await;
                let Atom {
                    record,
                    ended,
                    nature,
                } = self.execute_atom(slot, task, setting, &id).await;
                Executed {
                    record,
                    ended,
                    nature,
                    task: ExecutedTask::Atomic(task),
                }
            }
            Task::Scenario(task) => self.execute_chain(slot, task, setting, &id).await,
        };
        executed.record.provenance.input_hash = Some(input_hash(&slot.task));
        executed
    }

    /// Waits until the runner of a task may execute one more. Most have no limit.
    async fn room_at_runner(
        &self,
        slot: &TaskSlot<'_>,
        task: &AtomicTask,
    ) -> Option<SemaphorePermit<'_>> {
        let used = slot.cell.mode.runners.get(&task.r#type)?;
        self.room_at_runners.get(&used.id)?.acquire().await.ok()
    }

    async fn execute_atom(
        &self,
        slot: &TaskSlot<'_>,
        task: &AtomicTask,
        setting: &RunSetting,
        id: &str,
    ) -> Atom {
        let Some(used) = slot.cell.mode.runners.get(&task.r#type) else {
            let message = format!("no runner serves the type `{}`", task.r#type);
            return not_executed(task, id, message, EXECUTE, Ended::Broken);
        };
        let clock = Clock::start();
        let limit = setting.timeout;
        let call = guarded(used.runner.execute_in(task, &used.config, setting));
        let allowed = limit.saturating_add(used.runner.timeout_grace());
        let (mut record, ended) = match tokio::time::timeout(allowed, call).await {
            Ok(Ok(record)) => of_runner(record, task, clock.elapsed() >= limit),
            Ok(Err(error)) => {
                let message = error.to_string();
                (failed(task, &clock, message, EXECUTE), Ended::Broken)
            }
            Err(_) => {
                let message = format!("no answer within {} ms", limit.as_millis());
                (failed(task, &clock, message, EXECUTE), Ended::TimedOut)
            }
        };
        make_whole(&mut record, task, &clock);
        record.id = id.to_owned();
        record.provenance = provenance(used, task, setting, record.provenance.config);
        Atom {
            record,
            ended,
            nature: used.runner.nature(),
        }
    }

    /// Step by step; the first that fails fails the whole, and those after it are skipped.
    async fn execute_chain<'t>(
        &self,
        slot: &TaskSlot<'_>,
        task: &'t ScenarioTask,
        setting: &RunSetting,
        id: &str,
    ) -> Executed<'t> {
        let clock = Clock::start();
        let mut waited = Duration::ZERO;
        let mut chain = Chain::begin(task, &clock);
        for number in 0..task.steps.len() {
            if chain.ended != Ended::Completed {
                chain.skip(&task.steps[number]);
                continue;
            }
            let mut step = task.steps[number].clone();
            if let Err(message) = chain.fill_in(&mut step, number) {
                let atom = not_executed(&step, id, message, INPUT_MAP, Ended::Failed);
                chain.take(step, atom);
                continue;
            }
            // Waiting in line does not use up time.
            let before = clock.elapsed();
            let _room = self.room_at_runner(slot, &step).await;
            waited += clock.elapsed().saturating_sub(before);
            let used_up = clock.elapsed().saturating_sub(waited);
            let left = setting.timeout.saturating_sub(used_up);
            let own = step.metadata.timeout.map(Duration::from_millis);
            let setting = RunSetting {
                step: Some(step.id.clone()),
                timeout: own.map_or(left, |own| own.min(left)),
                seed: crate::random::derive_seed(setting.seed, &[&step.id]),
                ..setting.clone()
            };
            let atom = self.execute_atom(slot, &step, &setting, id).await;
            chain.take(step, atom);
        }
        chain.end(id)
    }
}

impl TaskSlot<'_> {
    /// The execution of a task that was cancelled: nothing about it is known.
    pub(super) fn cancelled(&self) -> Executed<'_> {
        let message = "the run was cancelled".to_owned();
        match &*self.task {
            Task::Atomic(task) => {
                let atom = not_executed(task, "", message, EXECUTE, Ended::Broken);
                Executed {
                    record: atom.record,
                    ended: atom.ended,
                    nature: atom.nature,
                    task: ExecutedTask::Atomic(task),
                }
            }
            Task::Scenario(task) => {
                let clock = Clock::start();
                let mut chain = Chain::begin(task, &clock);
                task.steps.iter().for_each(|step| chain.skip(step));
                chain.ended = Ended::Broken;
                chain.error = Some(RunError {
                    message,
                    step: None,
                    stack: None,
                });
                chain.end("")
            }
        }
    }
}

/// A chain under way.
struct Chain<'t, 'c> {
    task: &'t ScenarioTask,
    clock: &'c Clock,
    outputs: Vec<Value>,
    trace: Vec<TaskEvent>,
    summaries: Vec<StepSummary>,
    steps: Vec<Step>,
    metrics: RunMetrics,
    error: Option<RunError>,
    ended: Ended,
    nature: Nature,
}

impl<'t, 'c> Chain<'t, 'c> {
    fn begin(task: &'t ScenarioTask, clock: &'c Clock) -> Self {
        Self {
            task,
            clock,
            outputs: Vec::new(),
            trace: vec![TaskEvent::new(
                clock.started_at(),
                TaskEventLevel::Info,
                "started",
                None,
            )],
            summaries: Vec::new(),
            steps: Vec::new(),
            metrics: RunMetrics {
                latency: Millis::default(),
                tokens: Some(0),
                cost: Some(Usd::default()),
                cost_source: None,
            },
            error: None,
            ended: Ended::Completed,
            nature: Nature::Live,
        }
    }

    /// Puts data from the scenario and from earlier steps into the input of a step.
    fn fill_in(&mut self, step: &mut AtomicTask, number: usize) -> Result<(), String> {
        for mapping in mappings_of(self.task, number) {
            fill_in(step, mapping, self.task, &self.outputs)?;
            let data = json!({"from": mapping.from, "to": mapping.to});
            let now = self.now();
            let mut mapped = TaskEvent::new(now, TaskEventLevel::Debug, "input_mapped", Some(data));
            mapped.step = Some(step.id.clone());
            self.trace.push(mapped);
        }
        Ok(())
    }

    /// The current time, never before the last recorded event: runners use clocks of their own.
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        let latest = self.trace.iter().map(|event| &event.timestamp);
        let latest = latest.max_by_key(|time| time.unix_ms());
        match latest {
            Some(latest) if latest.unix_ms() > now.unix_ms() => latest.clone(),
            _ => now,
        }
    }

    fn take(&mut self, task: AtomicTask, atom: Atom) {
        let Atom {
            mut record,
            ended,
            nature,
        } = atom;
        self.trace
            .extend(record.trace.iter().cloned().map(|mut event| {
                event.step.get_or_insert_with(|| task.id.clone());
                event
            }));
        let metrics = &record.metrics;
        self.metrics = RunMetrics {
            latency: self.metrics.latency + metrics.latency,
            tokens: self
                .metrics
                .tokens
                .zip(metrics.tokens)
                .map(|(a, b)| a.saturating_add(b)),
            cost: self.metrics.cost.zip(metrics.cost).map(|(a, b)| a + b),
            cost_source: weaker(self.metrics.cost_source, metrics.cost_source),
        };
        self.summaries.push(StepSummary {
            step_id: task.id.clone(),
            step_name: task.name.clone(),
            status: match ended {
                Ended::Completed => StepStatus::Completed,
                _ => StepStatus::Failed,
            },
            latency: record.metrics.latency,
            tokens: record.metrics.tokens,
            cost: record.metrics.cost,
            output: record.output.clone(),
            error: record.error.as_ref().map(|error| error.message.clone()),
        });
        if let Some(error) = &record.error {
            self.error = Some(RunError {
                step: Some(task.id.clone()),
                ..error.clone()
            });
        }
        self.outputs
            .push(record.output.clone().unwrap_or(Value::Null));
        self.ended = ended;
        self.nature = stronger(self.nature, nature);
        record.task_id.clone_from(&task.id);
        self.steps.push(Step { task, record });
    }

    fn skip(&mut self, step: &AtomicTask) {
        self.summaries.push(StepSummary {
            step_id: step.id.clone(),
            step_name: step.name.clone(),
            status: StepStatus::Skipped,
            latency: Millis::default(),
            tokens: None,
            cost: None,
            output: None,
            error: None,
        });
    }

    fn end(self, id: &str) -> Executed<'t> {
        let completed_at = self.now();
        let is_complete = self.ended == Ended::Completed;
        let mut trace = self.trace;
        trace.push(last_event(&completed_at, self.error.as_ref()));
        let record = RunRecord {
            schema_version: Some(SCHEMA_VERSION),
            id: id.to_owned(),
            task_id: self.task.id.clone(),
            task_type: TaskKind::Scenario,
            status: match is_complete {
                true => RunStatus::Completed,
                false => RunStatus::Failed,
            },
            output: self.outputs.into_iter().last().filter(|_| is_complete),
            error: self.error,
            metrics: self.metrics,
            trace,
            steps: Some(self.summaries),
            started_at: self.clock.started_at(),
            completed_at: Some(completed_at),
            provenance: chain_provenance(self.task, &self.steps),
        };
        Executed {
            record,
            ended: self.ended,
            nature: self.nature,
            task: ExecutedTask::Scenario(self.task, self.steps),
        }
    }
}

/// A step that is not live makes the whole chain not live.
fn stronger(a: Nature, b: Nature) -> Nature {
    match (a, b) {
        (Nature::Simulated, _) | (_, Nature::Simulated) => Nature::Simulated,
        (Nature::Replayed, _) | (_, Nature::Replayed) => Nature::Replayed,
        _ => Nature::Live,
    }
}

/// A sum is as well known as the part that is known least. A part without cost is ignored.
fn weaker(a: Option<CostSource>, b: Option<CostSource>) -> Option<CostSource> {
    let any = |source| a == Some(source) || b == Some(source);
    [
        CostSource::Unknown,
        CostSource::Reported,
        CostSource::Computed,
    ]
    .into_iter()
    .find(|source| any(*source))
}

/// A record as its runner gave it. One that is neither completed nor failed is invalid.
fn of_runner(mut record: RunRecord, task: &AtomicTask, is_late: bool) -> (RunRecord, Ended) {
    let ended = match record.status {
        RunStatus::Completed => Ended::Completed,
        RunStatus::Failed if is_late => Ended::TimedOut,
        RunStatus::Failed => Ended::Failed,
        RunStatus::Pending | RunStatus::Running => {
            record.error = Some(RunError {
                message: format!(
                    "the runner of `{}` gave a record that is not over: expected status `completed` or `failed`",
                    task.r#type
                ),
                step: None,
                stack: None,
            });
            Ended::Broken
        }
    };
    if ended != Ended::Completed {
        record.status = RunStatus::Failed;
        let error = record.error.get_or_insert_with(|| RunError {
            message: "the runner gave no reason".to_owned(),
            step: None,
            stack: None,
        });
        error.step.get_or_insert_with(|| EXECUTE.to_owned());
    }
    (record, ended)
}

/// The record of a task that no runner got, and that used nothing.
fn not_executed(task: &AtomicTask, id: &str, message: String, phase: &str, ended: Ended) -> Atom {
    let clock = Clock::start();
    let mut record = failed(task, &clock, message, phase);
    (record.metrics.tokens, record.metrics.cost) = (Some(0), Some(Usd::default()));
    make_whole(&mut record, task, &clock);
    record.id = id.to_owned();
    Atom {
        record,
        ended,
        nature: Nature::Live,
    }
}

/// The record of an execution that gave none.
fn failed(task: &AtomicTask, clock: &Clock, message: String, phase: &str) -> RunRecord {
    RunRecord {
        schema_version: Some(SCHEMA_VERSION),
        id: String::new(),
        task_id: task.id.clone(),
        task_type: TaskKind::Atomic,
        status: RunStatus::Failed,
        output: None,
        error: Some(RunError {
            message,
            step: Some(phase.to_owned()),
            stack: None,
        }),
        metrics: RunMetrics {
            latency: clock.elapsed().into(),
            tokens: None,
            cost: None,
            cost_source: None,
        },
        trace: Vec::new(),
        steps: None,
        started_at: clock.started_at(),
        completed_at: None,
        provenance: Provenance::default(),
    }
}

/// Every record has its times and a trace that begins with `started` and ends with `completed` or `failed`.
fn make_whole(record: &mut RunRecord, task: &AtomicTask, clock: &Clock) {
    record.schema_version = Some(SCHEMA_VERSION);
    record.task_id.clone_from(&task.id);
    record.task_type = TaskKind::Atomic;
    record.steps = None;
    if record.started_at.as_str().is_empty() {
        record.started_at = clock.started_at();
    }
    let completed_at = record.completed_at.get_or_insert_with(|| clock.now());
    let is_named = |event: Option<&TaskEvent>, name| event.is_some_and(|event| event.event == name);
    if !is_named(record.trace.first(), "started") {
        let started = TaskEvent::new(
            record.started_at.clone(),
            TaskEventLevel::Info,
            "started",
            None,
        );
        record.trace.insert(0, started);
    }
    let last = last_event(completed_at, record.error.as_ref());
    if !is_named(record.trace.last(), &last.event) {
        record.trace.push(last);
    }
}

fn last_event(completed_at: &Timestamp, error: Option<&RunError>) -> TaskEvent {
    match error {
        None => TaskEvent::new(
            completed_at.clone(),
            TaskEventLevel::Info,
            "completed",
            None,
        ),
        Some(error) => {
            let data = json!({"error": error.message, "step": error.step});
            TaskEvent::new(
                completed_at.clone(),
                TaskEventLevel::Error,
                "failed",
                Some(data),
            )
        }
    }
}

/// Everything needed to repeat the execution. `more` is the runner's addition to its configuration.
fn provenance(
    used: &UsedRunner,
    task: &AtomicTask,
    setting: &RunSetting,
    more: JsonMap,
) -> Provenance {
    let mut config = more;
    if let Value::Object(declared) = &used.config {
        config.extend(declared.clone());
    }
    Provenance {
        // Its own name; built-in ones have the suite's.
        runner_id: used.runner.id().to_owned(),
        runner_version: used.runner.version().to_owned(),
        config,
        config_hash: Some(used.config_hash.clone()),
        run_fingerprint: Some(fingerprint(used, task, setting)),
        input_hash: None,
    }
}

/// Everything that could change the result: runner, configuration, mode, model and task.
fn fingerprint(used: &UsedRunner, task: &AtomicTask, setting: &RunSetting) -> String {
    let mut text = Vec::new();
    let parts = [
        used.id.as_str(),
        used.runner.version(),
        &used.config_hash,
        &setting.model,
        &setting.system_instructions,
    ];
    let environment = setting
        .environment
        .iter()
        .flat_map(|(name, value)| [name, value]);
    for part in parts.into_iter().chain(environment.map(String::as_str)) {
        text.extend((part.len() as u64).to_le_bytes());
        text.extend(part.as_bytes());
    }
    // A list of bytes refuses nothing.
    let _ = serde_json::to_writer(&mut text, task);
    hash_of(&text)
}

/// Hash of a capability's input. Expectations and scoring are left out, so they may change.
pub(super) fn input_hash(task: &Task) -> String {
    let mut text = Vec::new();
    for AtomicTask {
        id,
        r#type,
        input,
        context,
        ..
    } in task.atoms()
    {
        let _ = serde_json::to_writer(&mut text, &(id, r#type));
        write_sorted(input, &mut text);
        if let Some(context) = context {
            write_sorted(&json!(context), &mut text);
        }
    }
    if let Task::Scenario(chain) = task {
        let flow = json!([chain.input_map, chain.input, chain.metadata]);
        write_sorted(&flow, &mut text);
    }
    hash_of(&text)
}

fn hash_of(text: &[u8]) -> String {
    blake3::hash(text).to_hex()[..32].to_owned()
}

/// The same for equal values, however their keys are ordered. Every task is written, so nothing of it is copied first.
fn write_sorted(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(name, _)| *name);
            text.push(b'{');
            for (name, value) in entries {
                let _ = serde_json::to_writer(&mut *text, name);
                text.push(b':');
                write_sorted(value, text);
            }
            text.push(b'}');
        }
        Value::Array(values) => {
            text.push(b'[');
            for value in values {
                write_sorted(value, text);
                text.push(b',');
            }
            text.push(b']');
        }
        other => {
            let _ = serde_json::to_writer(text, other);
        }
    }
}

fn chain_provenance(task: &ScenarioTask, steps: &[Step]) -> Provenance {
    let mut hasher = blake3::Hasher::new();
    let _ = serde_json::to_writer(&mut hasher, task);
    let mut provenances = JsonMap::new();
    for step in steps {
        let provenance = &step.record.provenance;
        let own = provenance.run_fingerprint.as_deref().unwrap_or_default();
        let _ = hasher.write_all(own.as_bytes());
        provenances.insert(step.task.id.clone(), json!(provenance));
    }
    let config = JsonMap::from_iter([("steps".to_owned(), Value::Object(provenances))]);
    Provenance {
        runner_id: "scenario".to_owned(),
        runner_version: env!("CARGO_PKG_VERSION").to_owned(),
        config_hash: Some(config_hash(&json!(config), None)),
        run_fingerprint: Some(hasher.finalize().to_hex()[..32].to_owned()),
        input_hash: None,
        config,
    }
}
