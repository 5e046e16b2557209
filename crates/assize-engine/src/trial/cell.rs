//! The place of a trial in the plan: what trials of scenarios and of tasks have in common.

use super::row::Clock;
use crate::event::Event;
use crate::plan::Arm;
use crate::suite::Mode;
use assize_contracts::{
    BaseScenario, BeforeScenarioContext, CostBreakdown, JsonMap, ProfileRow, SCHEMA_VERSION,
    TimingBreakdown, TokenBreakdown, ToolCallSummary,
};
use std::sync::Arc;

/// A cell of the plan, or the warm-up.
pub(crate) struct TrialCell<'a> {
    pub(crate) mode: &'a Mode,
    pub(crate) arm: &'a Arm,
    pub(crate) iteration: i64,
    pub(crate) position: Option<u64>,
    pub(crate) block: Option<u64>,
}

impl TrialCell<'_> {
    /// The same cell as a trial that counts for nothing.
    pub(crate) fn into_warmup(self) -> Self {
        Self {
            iteration: -1,
            position: None,
            block: None,
            ..self
        }
    }

    /// Identifies the cell among those of the run; `subject` is the id of the scenario or task.
    pub(crate) fn key<'k>(&'k self, subject: &'k str) -> [&'k str; 3] {
        [subject, &self.arm.mode, &self.arm.model]
    }

    pub(crate) fn started<'k>(&'k self, subject: &'k str) -> Event<'k> {
        Event::CellStarted {
            position: self.position,
            scenario_id: subject,
            mode: &self.arm.mode,
            model: &self.arm.model,
            iteration: self.iteration,
        }
    }

    pub(crate) fn hook_context(&self, scenario: Arc<BaseScenario>) -> BeforeScenarioContext {
        BeforeScenarioContext {
            scenario,
            mode: self.arm.mode.clone(),
            model: self.arm.model.clone(),
            iteration: self.iteration,
        }
    }

    /// A row with the identity of the trial and no result.
    pub(crate) fn row(&self, run_id: &str, subject: &str, clock: &Clock) -> ProfileRow {
        ProfileRow {
            run_id: run_id.to_owned(),
            scenario_id: subject.to_owned(),
            mode: self.arm.mode.clone(),
            model: self.arm.model.clone(),
            iteration: self.iteration,
            started_at: clock.started_at(),
            completed_at: clock.now(),
            tokens: TokenBreakdown::default(),
            timing: TimingBreakdown::default(),
            tool_calls: ToolCallSummary::default(),
            cost: CostBreakdown::default(),
            success: false,
            checkpoints_passed: 0,
            checkpoints_total: 0,
            checkpoint_details: Vec::new(),
            output_valid: false,
            provider: String::new(),
            session_id: None,
            agent_turns: None,
            completion_reason: None,
            extensions: JsonMap::new(),
            error: None,
            error_code: None,
            schema_version: Some(SCHEMA_VERSION),
            outcome: None,
            void_cause: None,
            tokens_at_least: None,
            cost_at_least_usd: None,
            user_turns: None,
            attempts: Vec::new(),
            hook_errors: Vec::new(),
            position: self.position,
            block: self.block,
            cost_source: None,
            cost_readings: None,
            censored: false,
            not_captured: false,
            subscription: false,
            replayed: false,
            simulated: false,
        }
    }
}
