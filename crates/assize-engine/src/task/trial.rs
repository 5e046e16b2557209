//! One trial of a task: execute, evaluate, decide, record.

use super::condition::Condition;
use super::evaluate::{EVALUATOR, evaluate};
use super::execute::Ended;
use super::row::{Parts, compose};
use super::{TaskSet, condition};
use crate::event::Event;
use crate::plan::Arm;
use crate::random::attempt_seed;
use crate::store::{RecordIds, TrialRecord};
use crate::suite::Mode;
use crate::trial::row::Clock;
use crate::trial::{Cancelled, Trials, Tries};
use assize_contracts::{
    AfterScenarioContext, BaseScenario, BeforeScenarioContext, Caution, CautionCode, HookError,
    HookEvent, RunSetting, ScoreRecord, Task,
};
use std::borrow::Cow;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Which trial: a cell of the plan that is about a task, or the warm-up.
pub(crate) struct TaskSlot<'a> {
    pub(crate) task: Arc<Task>,
    pub(crate) set: &'a TaskSet,
    pub(crate) mode: &'a Mode,
    pub(crate) arm: &'a Arm,
    pub(crate) iteration: i64,
    pub(crate) position: Option<u64>,
    pub(crate) block: Option<u64>,
}

impl TaskSlot<'_> {
    /// The same as a trial that counts for nothing.
    pub(crate) fn into_warmup(mut self) -> Self {
        self.iteration = -1;
        (self.position, self.block) = (None, None);
        self
    }

    pub(super) fn cell(&self) -> [&str; 3] {
        [self.task.id(), &self.arm.mode, &self.arm.model]
    }

    fn limit(&self) -> Duration {
        Duration::from_millis(self.task.timeout_ms().unwrap_or(self.set.timeout_ms))
    }
}

impl Trials {
    /// One trial of a task.
    pub(crate) async fn run_task(&self, slot: &TaskSlot<'_>) -> Result<TrialRecord, Cancelled> {
        self.listener.on_event(&Event::CellStarted {
            position: slot.position,
            scenario_id: slot.task.id(),
            mode: &slot.arm.mode,
            model: &slot.arm.model,
            iteration: slot.iteration,
        });
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
        let mut losses = Vec::new();
        self.before_task(slot, &mut losses).await;
        let id =
            RecordIds::new(&self.run_id, self.suite.execution.seed).of(slot.cell(), slot.iteration);
        let setting = self.setting(slot, number);
        let executing = self.execute(slot, &setting, id);
        let Ok(executed) = self.unless_cancelled(executing).await else {
            self.after_cancelled_task(slot, clock, losses).await;
            return Err(Cancelled);
        };
        let scores = match executed.ended {
            // Nothing was learnt, so there is nothing to score.
            Ended::Broken => Vec::new(),
            _ => evaluate(&self.suite.evaluators, &executed, &mut losses).await,
        };
        self.say_broken(&losses);
        let judgement = condition::judge_all(&conditions(&slot.task, slot.set), &scores);
        let parts = Parts {
            executed,
            scores,
            judgement,
            losses,
        };
        let mut record = compose(self, slot, clock, parts);
        self.after_task(slot, &mut record).await;
        Ok(record)
    }

    fn setting(&self, slot: &TaskSlot<'_>, attempt: u32) -> RunSetting {
        let seed = self.suite.execution.seed;
        RunSetting {
            mode: slot.arm.mode.clone(),
            model: match self.suite.models.is_empty() {
                true => String::new(),
                false => slot.arm.model.clone(),
            },
            iteration: slot.iteration,
            attempt,
            step: None,
            seed: attempt_seed(seed, slot.cell(), slot.iteration, attempt as usize),
            timeout: slot.limit(),
            environment: Arc::clone(&slot.mode.environment),
            workdir: self.suite.directory.clone(),
            permissions: self.suite.permissions.clone(),
            system_instructions: slot.mode.system_instructions.clone(),
            provider_overrides: Arc::clone(&slot.mode.overrides),
        }
    }

    /// Hooks see a task as a scenario. What they replace it with is for agents, and of no use here.
    async fn before_task(&self, slot: &TaskSlot<'_>, losses: &mut Vec<HookError>) {
        if self.hooks.has(HookEvent::BeforeScenario) {
            self.hooks.before_scenario(hook_context(slot), losses).await;
        }
    }

    /// Hooks learn of the end of every trial that they saw begin. There is no row of it.
    async fn after_cancelled_task(
        &self,
        slot: &TaskSlot<'_>,
        clock: &Clock,
        losses: Vec<HookError>,
    ) {
        let parts = Parts {
            executed: slot.cancelled(),
            scores: Vec::new(),
            judgement: condition::judge_all(&[], &[]),
            losses,
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

    /// Says of each evaluator once per run that it broke.
    fn say_broken(&self, losses: &[HookError]) {
        for loss in losses {
            let Some(id) = loss.hook.strip_prefix(EVALUATOR) else {
                continue;
            };
            let mut said = self.clashes.lock().unwrap_or_else(PoisonError::into_inner);
            if said.insert(loss.hook.clone()) {
                self.listener.on_event(&Event::Caution(&Caution::about(
                    CautionCode::EvaluatorBroken,
                    format!("the evaluator `{id}` failed: {}", loss.message),
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
    BeforeScenarioContext {
        scenario: Arc::new(scenario),
        mode: slot.arm.mode.clone(),
        model: slot.arm.model.clone(),
        iteration: slot.iteration,
    }
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
