//! One trial of a task: execute, evaluate, decide, record.

use super::condition::Condition;
use super::evaluate::{EVALUATOR, evaluate};
use super::execute::Ended;
use super::row::{Parts, compose};
use super::{TaskSet, condition};
use crate::event::Event;
use crate::random::attempt_seed;
use crate::store::{RecordIds, TrialRecord};
use crate::trial::row::Clock;
use crate::trial::{Cancelled, TrialCell, Trials, Tries};
use assize_contracts::{
    AfterScenarioContext, BaseScenario, BeforeScenarioContext, Caution, CautionCode, HookEvent,
    PluginError, RunSetting, ScoreRecord, Task,
};
use std::borrow::Cow;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// A trial of a task.
pub(crate) struct TaskSlot<'a> {
    pub(crate) cell: TrialCell<'a>,
    pub(crate) task: Arc<Task>,
    pub(crate) set: &'a TaskSet,
}

impl TaskSlot<'_> {
    pub(super) fn key(&self) -> [&str; 3] {
        self.cell.key(self.task.id())
    }

    fn limit(&self) -> Duration {
        Duration::from_millis(self.task.timeout_ms().unwrap_or(self.set.timeout_ms))
    }
}

impl Trials {
    /// One trial of a task.
    pub(crate) async fn run_task(&self, slot: &TaskSlot<'_>) -> Result<TrialRecord, Cancelled> {
        self.listener.on_event(&slot.cell.started(slot.task.id()));
        let clock = Clock::start();
        let mut tries = Tries::allowing(slot.set.allowed_retries);
        loop {
            let record = self.attempt_task(slot, tries.number(), &clock).await?;
            if let Some(record) = self.settled(record, &mut tries) {
                return Ok(record);
            }
        }
    }

    async fn attempt_task(
        &self,
        slot: &TaskSlot<'_>,
        number: u32,
        clock: &Clock,
    ) -> Result<TrialRecord, Cancelled> {
        let mut plugin_errors = Vec::new();
        self.before_task(slot, &mut plugin_errors).await;
        let id = RecordIds::new(&self.run_id, self.suite.execution.seed)
            .of(slot.key(), slot.cell.iteration);
        let setting = self.setting(slot, number);
        let executing = self.execute(slot, &setting, id);
        let Ok(executed) = self.unless_cancelled(executing).await else {
            self.after_cancelled_task(slot, clock, plugin_errors).await;
            return Err(Cancelled);
        };
        let scores = match executed.ended {
            // There is no result to score.
            Ended::Broken => Vec::new(),
            _ => {
                let evaluators = &self.suite.evaluators;
                evaluate(evaluators, &executed, &self.redactor, &mut plugin_errors).await
            }
        };
        self.report_broken_evaluators(&plugin_errors);
        let judgement = condition::judge_all(&conditions(&slot.task, slot.set), &scores);
        let parts = Parts {
            executed,
            scores,
            judgement,
            plugin_errors,
        };
        let mut record = compose(self, slot, clock, parts);
        self.after_task(slot, &mut record).await;
        Ok(record)
    }

    fn setting(&self, slot: &TaskSlot<'_>, attempt: u32) -> RunSetting {
        let seed = self.suite.execution.seed;
        RunSetting {
            mode: slot.cell.arm.mode.clone(),
            model: match self.suite.models.is_empty() {
                true => String::new(),
                false => slot.cell.arm.model.clone(),
            },
            iteration: slot.cell.iteration,
            attempt,
            step: None,
            seed: attempt_seed(seed, slot.key(), slot.cell.iteration, attempt as usize),
            timeout: slot.limit(),
            environment: Arc::clone(&slot.cell.mode.environment),
            workdir: self.suite.directory.clone(),
            permissions: self.suite.permissions.clone(),
            system_instructions: slot.cell.mode.system_instructions.clone(),
            provider_overrides: Arc::clone(&slot.cell.mode.overrides),
            sandbox: self.suite.sandbox(slot.cell.mode, None),
        }
    }

    /// Hooks see a task as a scenario. Their replacement of it is meant for agents and is ignored here.
    async fn before_task(&self, slot: &TaskSlot<'_>, plugin_errors: &mut Vec<PluginError>) {
        if self.hooks.has(HookEvent::BeforeScenario) {
            self.hooks
                .before_scenario(hook_context(slot), plugin_errors)
                .await;
        }
    }

    /// Hooks learn of the end of every trial that they saw begin. There is no row of it.
    async fn after_cancelled_task(
        &self,
        slot: &TaskSlot<'_>,
        clock: &Clock,
        plugin_errors: Vec<PluginError>,
    ) {
        let parts = Parts {
            executed: slot.cancelled(),
            scores: Vec::new(),
            judgement: condition::judge_all(&[], &[]),
            plugin_errors,
        };
        let mut record = compose(self, slot, clock, parts);
        record.row.void_cause = None;
        record.row.error_code = Some("cancelled".to_owned());
        record.row.error = Some("the run was cancelled".to_owned());
        self.after_task(slot, &mut record).await;
    }

    async fn after_task(&self, slot: &TaskSlot<'_>, record: &mut TrialRecord) {
        if !self.hooks.has(HookEvent::AfterScenario) {
            return;
        }
        let context = AfterScenarioContext {
            before: hook_context(slot),
            result: record.row.clone(),
            trace: None,
        };
        let errors = self.hooks.after_scenario(&context).await;
        record.row.hook_errors.extend(errors);
    }

    /// Reports a failing evaluator once per run.
    fn report_broken_evaluators(&self, plugin_errors: &[PluginError]) {
        for error in plugin_errors {
            let Some(id) = error.hook.strip_prefix(EVALUATOR) else {
                continue;
            };
            let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            if reported.insert(error.hook.clone()) {
                self.listener.on_event(&Event::Caution(&Caution::about(
                    CautionCode::EvaluatorBroken,
                    format!("the evaluator `{id}` failed: {}", error.message),
                    id,
                )));
            }
        }
    }
}

/// The task's own conditions, else the suite's. Those that make no sense were found when the suite was loaded.
pub(super) fn conditions<'a>(task: &Task, set: &'a TaskSet) -> Cow<'a, [Condition]> {
    match task.pass() {
        [] => Cow::Borrowed(&set.pass),
        own => own.iter().filter_map(|text| text.parse().ok()).collect(),
    }
}

fn hook_context(slot: &TaskSlot<'_>) -> BeforeScenarioContext {
    let scenario = match &*slot.task {
        Task::Atomic(task) => BaseScenario::of_task(task),
        Task::Scenario(task) => BaseScenario {
            name: task.name.clone(),
            ..BaseScenario::new(task.id.clone(), task.description.clone())
        },
    };
    slot.cell.hook_context(Arc::new(scenario))
}

/// Scores with what evaluators left empty filled in.
pub(super) fn completed(
    scores: &mut [ScoreRecord],
    run_id: &str,
    now: &assize_contracts::Timestamp,
) {
    for (number, score) in scores.iter_mut().enumerate() {
        score.schema_version = Some(assize_contracts::SCHEMA_VERSION);
        score.id = format!("{run_id}-s{number}");
        run_id.clone_into(&mut score.run_id);
        if score.created_at.as_str().is_empty() {
            score.created_at = now.clone();
        }
    }
}
