//! `checks`: the built-in scorer. A scenario's checks are compiled once and then tried on every trial of it.
//!
//! A check that does not hold is a fail. A check that could not be made (no workspace, an unknown cost) is an error of
//! the scorer: nothing is known about the agent, and the trial is void unless the check is not required.

mod changed;
mod check;
mod command;
mod file;
mod harbor;
mod json;
mod json_path;
mod limit;
mod output;
mod references;
mod skill;
mod text;
mod tool;

pub use command::{CheckPlace, CommandOutcome, CommandRunner, CommandSpec};
pub use harbor::{HarborSpec, Rewards};
pub use references::load_references;

use crate::spec::{Spec, excerpt};
use assize_contracts::{
    BaseScenario, BoxError, CompletionReason, ConfigError, Scorer, ScorerContext, ScorerResult,
    async_trait,
};
use check::{Check, Evaluated, Subject, parse_checks};
use json::Schema;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// A JSON Schema to hold values against.
pub struct SchemaCheck(Schema);

impl SchemaCheck {
    /// Refuses what is no schema.
    pub fn new(schema: &Value) -> Result<Self, ConfigError> {
        Schema::parse(&Spec::at(&[], schema)).map(Self)
    }

    /// The error in the value and its place, if there is one.
    pub fn complaint(&self, value: &Value) -> Option<String> {
        self.0.complaint(value)
    }
}

/// Bytes kept of an actual value.
const ACTUAL_LENGTH: usize = 500;
/// The most items that a result names.
const NAMED: usize = 20;

/// Scores a trial by its scenario's `checks`; without any, a session that ends with `stop` passes.
#[derive(Default)]
pub struct ChecksScorer {
    commands: Option<Arc<dyn CommandRunner>>,
    compiled: RwLock<HashMap<String, Arc<CompiledChecks>>>,
}

impl ChecksScorer {
    /// A scorer that cannot run commands: a required `command` check makes the trial void.
    pub fn new() -> Self {
        Self::default()
    }

    /// A scorer for all checks.
    pub fn with_commands(commands: Arc<dyn CommandRunner>) -> Self {
        Self {
            commands: Some(commands),
            ..Self::default()
        }
    }

    /// A hook may replace a scenario under its id, so what was compiled counts only for equal checks.
    fn compiled(&self, scenario: &BaseScenario) -> Result<Arc<CompiledChecks>, ConfigError> {
        let known = self
            .compiled
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&scenario.id)
            .filter(|compiled| compiled.is_of(scenario))
            .map(Arc::clone);
        if let Some(compiled) = known {
            return Ok(compiled);
        }
        let compiled = Arc::new(CompiledChecks::new(scenario)?);
        self.compiled
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(scenario.id.clone(), Arc::clone(&compiled));
        Ok(compiled)
    }
}

#[async_trait]
impl Scorer for ChecksScorer {
    fn id(&self) -> &str {
        "checks"
    }

    fn check_scenario(&self, scenario: &BaseScenario) -> Result<(), ConfigError> {
        let compiled = self.compiled(scenario)?;
        match scenario.workspace {
            Some(_) => Ok(()),
            None => compiled.without_workspace(),
        }
    }

    async fn evaluate(
        &self,
        scenario: &BaseScenario,
        context: &ScorerContext,
    ) -> Result<ScorerResult, BoxError> {
        let compiled = self.compiled(scenario)?;
        let subject = Subject::new(context, self.commands.as_deref());
        let mut result = if compiled.checks.is_empty() {
            score_by_ending(context)
        } else {
            score(&compiled.checks, &subject).await
        };
        result.output_valid = compiled.is_valid(&subject);
        Ok(result)
    }
}

/// For fuzzing: makes checks ready and tries none.
pub(crate) fn compile(scenario: &BaseScenario) -> Result<(), ConfigError> {
    CompiledChecks::new(scenario)?.without_workspace()
}

/// A scenario's checks, ready to be tried, and what they were made from.
struct CompiledChecks {
    source: Vec<Value>,
    schema_source: Option<Value>,
    checks: Vec<Check>,
    output_schema: Option<Schema>,
}

impl CompiledChecks {
    fn new(scenario: &BaseScenario) -> Result<Self, ConfigError> {
        let schema_spec = scenario
            .output_schema
            .as_ref()
            .map(|schema| Spec::at(&["output_schema"], schema));
        Ok(Self {
            source: scenario.checks.clone(),
            schema_source: scenario.output_schema.clone(),
            checks: parse_checks(&scenario.checks)?,
            output_schema: schema_spec.as_ref().map(Schema::parse).transpose()?,
        })
    }

    /// Without a workspace some checks could never be made, in no trial.
    fn without_workspace(&self) -> Result<(), ConfigError> {
        for (position, check) in self.checks.iter().enumerate() {
            if let Some(kind) = check.workspace_kind() {
                return Err(ConfigError {
                    path: vec!["checks".to_owned(), position.to_string()],
                    message: format!("a `{kind}` check needs a workspace, the scenario has none"),
                    hint: Some(
                        "add `workspace: { from: DIRECTORY }`, or `workspace: {}` for an empty one"
                            .to_owned(),
                    ),
                });
            }
        }
        Ok(())
    }

    fn is_of(&self, scenario: &BaseScenario) -> bool {
        self.source == scenario.checks && self.schema_source == scenario.output_schema
    }

    fn is_valid(&self, subject: &Subject<'_>) -> bool {
        self.output_schema.as_ref().is_none_or(|schema| {
            let answer = subject.answer.json();
            answer.is_some_and(|answer| schema.is_valid(answer))
        })
    }
}

async fn score(checks: &[Check], subject: &Subject<'_>) -> ScorerResult {
    let mut result = ScorerResult {
        success: true,
        ..ScorerResult::default()
    };
    result.details.reserve_exact(checks.len());
    for check in checks {
        let Evaluated {
            result: detail,
            metrics,
        } = check.evaluate(subject).await;
        result.metrics.extend(metrics);
        result.total += check.weight;
        if detail.passed {
            result.passed += check.weight;
        } else if check.required {
            result.success = false;
            if let (None, Some(error)) = (&result.error, &detail.error) {
                result.error = Some(format!("check `{}`: {error}", check.id));
            }
        }
        result.details.push(detail);
    }
    result
}

fn score_by_ending(context: &ScorerContext) -> ScorerResult {
    let ending = context
        .result
        .as_ref()
        .map(|result| result.completion_reason);
    ScorerResult {
        success: ending == Some(CompletionReason::Stop),
        error: ending
            .is_none()
            .then(|| "the end of the session is unknown".to_owned()),
        ..ScorerResult::default()
    }
}

#[cfg(test)]
mod tests;
