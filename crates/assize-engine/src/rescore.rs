//! Scores the trials of a stored run again, by the suite as it is now and without any agent: from the stored traces, from
//! what agents changed in their workspaces, and from the run records of tasks. `store/scoring.rs` keeps the new scores.

use crate::guard::guarded;
use crate::profile::{EngineError, resolve_modes};
use crate::store::{CellKey, Outside, RunDirectory, RunRecords, Scoring, StoreError, TraceReader};
use crate::suite::ProfileSuite;
use crate::task::{self, Judges, ScoredAgain, TaskSet};
use crate::trial::filled;
use crate::workspace::{self, Setting, TrialWorkspace, TrialWorkspaces};
use assize_contracts::{
    BaseScenario, Catalog, CustomMetric, JsonMap, MetricValue, Outcome, ProfileRow, PromptMetrics,
    PromptResult, RunRecord, ScorerContext, ScorerResult, SessionTrace, Task, VoidCause,
    WorkspaceChange,
};
use assize_secrets::Redactor;
use foldhash::fast::FixedState;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::sync::Arc;

/// The result of scoring a run again.
#[derive(Debug, Default)]
pub struct Rescored {
    /// Trials that have a new score.
    pub scored: u64,
    /// Those whose outcome is another now: how many went from which to which.
    pub changed: BTreeMap<(Outcome, Outcome), u64>,
    /// Trials that cannot be scored by the new checks, by reason. They are void now.
    pub lost: BTreeMap<String, u64>,
    /// Trials that are as before, by the reason.
    pub kept: BTreeMap<String, u64>,
}

/// Keep the new scores, or only show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// In the run, in place of the old ones.
    New,
    /// Stores nothing: only shows what would change.
    Nothing,
}

/// Scores every trial of the run that got as far as being scored.
///
/// If not a single trial can be scored, the run stays as it is.
pub async fn score_again(
    run: RunDirectory,
    mut suite: ProfileSuite,
    keeping: Keeping,
) -> Result<Rescored, EngineError> {
    suite.locate();
    resolve_modes(&mut suite).await?;
    let scorer = Rescorer::new(&run, &suite)?;
    let rows = run.rows()?;
    let mut scoring = Scoring::start(run)?;
    let mut rescored = Rescored::default();
    let at_once = suite.execution.concurrency.max(1);
    let mut fates = stream::iter(rows)
        .map(|row| async {
            let row = row?;
            let fate = scorer.fate(&row).await;
            Ok::<_, EngineError>((row, fate))
        })
        .buffered(at_once);
    while let Some(result) = fates.next().await {
        let (old, fate) = result?;
        match &fate {
            Fate::Evaluated(again) => scoring.add_scores(&again.scores, &scorer.redactor)?,
            Fate::Kept(_) => scoring.keep_scores(&old),
            _ => {}
        }
        let new = rescored.count(&old, fate, &mut scoring);
        scoring.add(&old, &new, &scorer.redactor)?;
    }
    drop(fates);
    if rescored.scored > 0 && keeping == Keeping::New {
        scoring.commit(&suite, &rescored)?;
    }
    Ok(rescored)
}

/// The result for one trial.
enum Fate {
    Scored(ScorerResult),
    /// A task with new scores of its evaluators.
    Evaluated(Box<ScoredAgain>),
    Lost(String),
    Kept(String),
}

impl Rescored {
    fn count(&mut self, old: &ProfileRow, fate: Fate, scoring: &mut Scoring) -> ProfileRow {
        let new = match fate {
            Fate::Kept(reason) => {
                *self.kept.entry(reason).or_default() += 1;
                return old.clone();
            }
            Fate::Lost(reason) => {
                *self.lost.entry(reason.clone()).or_default() += 1;
                void(old, "not_scored_again", reason)
            }
            Fate::Scored(score) => {
                match &score.error {
                    Some(reason) => *self.lost.entry(reason.clone()).or_default() += 1,
                    None => self.scored += 1,
                }
                let mut score = score;
                score
                    .metrics
                    .iter_mut()
                    .for_each(CustomMetric::mark_as_judging);
                scoring.add_metrics(&score.metrics);
                with_score(old, score, scoring.catalog())
            }
            Fate::Evaluated(again) => {
                self.scored += 1;
                again.row
            }
        };
        if let (Some(before), Some(after)) = (old.outcome, new.outcome)
            && before != after
        {
            *self.changed.entry((before, after)).or_default() += 1;
        }
        new
    }
}

struct Rescorer<'a> {
    suite: &'a ProfileSuite,
    scenarios: BTreeMap<&'a str, &'a Arc<BaseScenario>>,
    tasks: Option<StoredTasks<'a>>,
    /// The scenarios as they were run.
    before: Value,
    /// Directories that workspaces were copied from, and that hold something else now.
    edited: BTreeSet<String>,
    /// Archives hold whole workspaces, not only changes.
    has_whole_workspaces: bool,
    traces: TraceReader,
    workspaces: TrialWorkspaces,
    archives: RunDirectory,
    redactor: Redactor,
}

impl<'a> Rescorer<'a> {
    fn new(run: &RunDirectory, suite: &'a ProfileSuite) -> Result<Self, EngineError> {
        let manifest = run.manifest();
        let scenarios = suite.scenarios.iter();
        let kept = manifest.provenance.get("keepWorkspace");
        Ok(Self {
            suite,
            scenarios: scenarios
                .map(|scenario| (scenario.id.as_str(), scenario))
                .collect(),
            tasks: match (&manifest.plan.tasks, &suite.tasks) {
                (Some(_), Some(set)) => Some(StoredTasks::open(run, suite, set)?),
                _ => None,
            },
            before: manifest.suite.get("scenarios").cloned().unwrap_or_default(),
            edited: edited(manifest.provenance.get("fixtures"), suite),
            has_whole_workspaces: kept.and_then(Value::as_str) == Some("all"),
            traces: run.traces()?,
            workspaces: TrialWorkspaces::for_scoring(suite, run.path()),
            archives: RunDirectory::open(run.path())?,
            redactor: Redactor::new(&suite.secrets),
        })
    }

    async fn fate(&self, row: &ProfileRow) -> Fate {
        if let Some(task) = self.tasks.as_ref().and_then(|tasks| tasks.find(row)) {
            return task.fate(row).await;
        }
        // A trial that did not get as far as being scored has an outcome that no check can change.
        if row
            .error_code
            .as_deref()
            .is_some_and(|code| !matches!(code, "scorer_error" | "not_scored_again"))
        {
            return Fate::Kept("the session did not end well, so there is nothing to score".into());
        }
        let Some(scenario) = self.scenarios.get(row.scenario_id.as_str()) else {
            return Fate::Kept(match self.tasks {
                Some(_) => "the suite has no such scenario or task any more".into(),
                None => "the suite has no such scenario any more".into(),
            });
        };
        match self.score(row, scenario).await {
            Ok(mut score) => {
                let metrics = score.metrics.iter_mut();
                metrics.for_each(|metric| metric.clean(&self.redactor));
                if let Some(error) = &mut score.error {
                    self.redactor.clean(error);
                }
                Fate::Scored(score)
            }
            Err(reason) => Fate::Lost(self.redactor.text(&reason).into_owned()),
        }
    }

    async fn score(
        &self,
        row: &ProfileRow,
        scenario: &BaseScenario,
    ) -> Result<ScorerResult, String> {
        if let Some(key) = self.changed_task(scenario) {
            return Err(format!("its `{key}` is another than the agent was given"));
        }
        let trace = self.traces.trace(&CellKey::of(row));
        let trace = trace.map_err(|error| format!("its trace cannot be read: {error}"))?;
        let trace = trace.ok_or("its trace was not kept")?;
        // Checks that need no files can do without the workspace; the others fail.
        let needs_it = self.suite.scorer.id() != "checks";
        let mut without = None;
        let (workspace, changes) = match &scenario.workspace {
            Some(_) => match self.workspace(row, scenario).await {
                Ok((place, changes)) => (Some(place), changes),
                Err(reason) if needs_it => return Err(reason),
                Err(reason) => {
                    without = Some(reason);
                    (None, Vec::new())
                }
            },
            None => (None, Vec::new()),
        };
        let place = workspace
            .as_ref()
            .map_or(&*self.suite.directory, TrialWorkspace::path);
        let scenario = filled(scenario, place, row.iteration);
        let mut context = context(row, trace, &scenario);
        context.workspace = workspace
            .as_ref()
            .map(|workspace| workspace.path().to_owned());
        context.changes = changes;
        let mode = self.suite.modes.iter().find(|mode| mode.name == row.mode);
        context.environment = mode.map_or_else(Arc::default, |mode| Arc::clone(&mode.environment));
        if let Some(mode) = mode {
            context.sandbox = self.suite.sandbox(mode, scenario.sandbox.as_ref());
        }
        let scored = guarded(self.suite.scorer.evaluate(&scenario, &context)).await;
        if let Some(workspace) = workspace {
            workspace.remove().await;
        }
        let score = scored.unwrap_or_else(|error| ScorerResult {
            error: Some(error.to_string()),
            ..ScorerResult::default()
        });
        match without.filter(|_| score.error.is_some()) {
            Some(reason) => Err(reason),
            None => Ok(score),
        }
    }

    /// The parts of the task itself, not of its checks, that have changed.
    fn changed_task(&self, scenario: &BaseScenario) -> Option<&'static str> {
        let before = self.before.get(&scenario.id)?;
        let now = serde_json::to_value(scenario).ok()?;
        // The method by which a workspace is made does not change its content.
        let part = |task: &Value, key: &str| {
            let mut part = task.get(key).cloned();
            if let Some(Value::Object(workspace)) = part.as_mut().filter(|_| key == "workspace") {
                workspace.shift_remove("method");
            }
            part
        };
        ["prompt", "turns", "workspace"]
            .into_iter()
            .find(|key| part(before, key) != part(&now, key))
    }

    /// A fresh workspace, brought to the state in which the agent left its own.
    async fn workspace(
        &self,
        row: &ProfileRow,
        scenario: &BaseScenario,
    ) -> Result<(TrialWorkspace, Vec<WorkspaceChange>), String> {
        let archive = self.archives.workspace(row);
        if archive.is_none() && !changed_nothing(row) {
            return Err("what the agent changed in its workspace was not kept".into());
        }
        let from = scenario
            .workspace
            .as_ref()
            .and_then(|spec| spec.from.as_ref());
        let is_complete = self.has_whole_workspaces && archive.is_some();
        if let Some(from) = from.filter(|from| !is_complete && self.edited.contains(*from)) {
            return Err(format!(
                "its workspace `{from}` holds something else now than the agent was given"
            ));
        }
        let mode = self.suite.modes.iter().find(|mode| mode.name == row.mode);
        let mode = mode.ok_or("the suite has no such mode any more")?;
        let spec = scenario.workspace.as_ref();
        let workspace = self
            .workspaces
            .prepare(&Setting {
                spec: spec.ok_or("the scenario has no workspace")?,
                directory: &self.suite.directory,
                environment: &mode.environment,
                hidden: &self.suite.hidden,
            })
            .await?;
        let changes = self
            .workspaces
            .bring_back(&workspace, archive, self.has_whole_workspaces)
            .await?;
        Ok((workspace, changes))
    }
}

/// The tasks of a run: as the suite defines them now, with the stored records of their executions.
struct StoredTasks<'a> {
    judges: Judges<'a>,
    /// By a hash of their id.
    numbers: HashMap<u64, u32>,
    records: RunRecords,
}

/// A task that a trial was about.
struct StoredTask<'a> {
    task: Arc<Task>,
    judges: Judges<'a>,
    record: Result<Option<RunRecord>, StoreError>,
}

impl<'a> StoredTasks<'a> {
    fn open(
        run: &RunDirectory,
        suite: &'a ProfileSuite,
        set: &'a TaskSet,
    ) -> Result<Self, EngineError> {
        let mut numbers = HashMap::new();
        for number in 0..set.source.len() {
            let task = set.source.load(number).map_err(|error| EngineError::Task {
                message: error.to_string(),
            })?;
            numbers.insert(hash(task.id()), number);
        }
        let judges = Judges {
            set,
            evaluators: &suite.evaluators,
            secrets: &suite.secrets,
        };
        Ok(Self {
            judges,
            numbers,
            records: RunRecords::open(run.path())?,
        })
    }

    fn find(&self, row: &ProfileRow) -> Option<StoredTask<'a>> {
        let number = self.numbers.get(&hash(&row.scenario_id))?;
        let task = self.judges.set.source.load(*number).ok()?;
        (task.id() == row.scenario_id).then(|| StoredTask {
            task,
            judges: self.judges,
            record: self
                .records
                .find(row.session_id.as_deref().unwrap_or_default()),
        })
    }
}

impl StoredTask<'_> {
    async fn fate(self, row: &ProfileRow) -> Fate {
        if row.error_code.as_deref() == Some("runner_error") {
            return Fate::Kept("the runner broke, so there is nothing to score".into());
        }
        let record = match self.record {
            Ok(Some(record)) => record,
            Ok(None) => return Fate::Lost("its run record was not kept".into()),
            Err(error) => return Fate::Lost(format!("its run record cannot be read: {error}")),
        };
        match task::score_again(row, record, &self.task, self.judges).await {
            Ok(again) => Fate::Evaluated(Box::new(again)),
            Err(reason) => Fate::Lost(reason),
        }
    }
}

fn hash(id: &str) -> u64 {
    FixedState::default().hash_one(id)
}

/// The sources that have changed since the run began. A run that recorded none is trusted.
fn edited(noted: Option<&Value>, suite: &ProfileSuite) -> BTreeSet<String> {
    let Some(noted) = noted else {
        return BTreeSet::new();
    };
    workspace::fixtures(suite)
        .into_iter()
        .filter(|(name, now)| noted.get(name).and_then(Value::as_str) != Some(now))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Nothing is kept of a workspace in which nothing was changed.
fn changed_nothing(row: &ProfileRow) -> bool {
    ["files_added", "files_modified", "files_deleted"]
        .iter()
        .all(|name| row.extensions.get(*name).and_then(Value::as_f64) == Some(0.0))
}

/// The scorer's view of the trial, restored from the records.
fn context(row: &ProfileRow, trace: SessionTrace, scenario: &BaseScenario) -> ScorerContext {
    let text = trace.final_text().to_owned();
    let has_tools = row.tool_calls.total.is_some();
    let result = PromptResult {
        text: text.clone(),
        metrics: PromptMetrics {
            tokens: row.tokens,
            tokens_at_least: row.tokens_at_least,
            cost_at_least_usd: row.cost_at_least_usd,
            timing: row.timing.clone(),
            tool_calls: has_tools.then(|| row.tool_calls.records.clone()),
            cost: row.cost,
            ..PromptMetrics::default()
        },
        completion_reason: row.completion_reason.unwrap_or_default(),
    };
    ScorerContext {
        agent_output: text,
        trace: Some(Arc::new(trace)),
        mode: row.mode.clone(),
        model: row.model.clone(),
        iteration: row.iteration,
        metadata: scenario.extensions.clone(),
        result: Some(Arc::new(result)),
        ..ScorerContext::default()
    }
}

fn with_score(old: &ProfileRow, score: ScorerResult, catalog: &Catalog) -> ProfileRow {
    let passed = score.details.iter().filter(|check| check.passed).count() as u64;
    let total = score.details.len() as u64;
    let mut row = match &score.error {
        Some(error) => void(old, "scorer_error", error.clone()),
        None => old.clone(),
    };
    if score.error.is_none() {
        row.success = score.success;
        row.outcome = Some(if score.success {
            Outcome::Pass
        } else {
            Outcome::Fail
        });
        row.error = None;
        row.error_code = None;
        row.void_cause = None;
    }
    let is_broken = score.error.is_some();
    row.checkpoints_passed = if is_broken { passed } else { score.passed };
    row.checkpoints_total = if is_broken { total } else { score.total };
    row.checkpoint_details = score.details;
    row.output_valid = score.output_valid;
    replace_metrics(&mut row.extensions, score.metrics, catalog);
    row
}

fn void(old: &ProfileRow, code: &str, reason: String) -> ProfileRow {
    ProfileRow {
        success: false,
        outcome: Some(Outcome::Void),
        error: Some(reason),
        error_code: Some(code.to_owned()),
        void_cause: Some(VoidCause::Scorer),
        checkpoints_passed: 0,
        checkpoints_total: 0,
        checkpoint_details: Vec::new(),
        ..old.clone()
    }
}

/// Replaces what the scorer measured the last time.
fn replace_metrics(extensions: &mut JsonMap, metrics: Vec<CustomMetric>, catalog: &Catalog) {
    extensions.retain(|name, _| !catalog.metric(name).is_of_judging());
    for metric in metrics {
        let value = match metric.value {
            MetricValue::Number(number) => number.into(),
            MetricValue::Text(text) => Value::String(text),
        };
        extensions.insert(metric.name, value);
    }
}
