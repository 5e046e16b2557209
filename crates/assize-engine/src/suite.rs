//! The input of a run: the experiment as values and the plugins as objects, names already resolved.

use crate::budget::Amounts;
use crate::plan::{Arm, Cell, Order, Plan, PlanError, Subjects};
use crate::profile::EngineError;
use crate::profile::RunTarget;
use crate::shard::ShardPlan;
use crate::steering::Steering;
use crate::task::{TaskSet, UsedEvaluator, UsedRunner};
use assize_contracts::{
    Analyzer, BaseScenario, Budget, Collector, HookEvent, JsonMap, LookRecord, ModeResolver,
    PermissionConfig, ProviderScope, ProviderSource, Reading, RunHooks, Sandbox, SandboxPlaces,
    Scorer, SessionSandbox,
};
use assize_llm::Prices;
use assize_secrets::Secrets;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An experiment: which agents, under which conditions, on which scenarios, measured how.
pub struct ProfileSuite {
    /// For headings and history.
    pub name: String,
    /// The conditions.
    pub modes: Vec<Mode>,
    /// The models; without any, each mode has its provider's own.
    pub models: Vec<String>,
    pub scenarios: Vec<Arc<BaseScenario>>,
    pub tasks: Option<TaskSet>,
    /// Repetitions, order and concurrency.
    pub execution: Execution,
    /// The scores that are kept.
    pub output: Output,
    /// Permissions of agents: what they may do without asking.
    pub permissions: PermissionConfig,
    /// The directory relative paths refer to; providers get it as `workdir`.
    pub directory: PathBuf,
    /// Places that are hidden from agents.
    pub places: Arc<SandboxPlaces>,
    /// Ends of paths that are removed from every workspace before the agent starts: what modes put on trial is given to a
    /// session by its mode alone.
    pub hidden: Vec<String>,
    /// Providers by the names that modes use.
    pub providers: BTreeMap<String, ProviderSource>,
    /// Judges every trial.
    pub scorer: Arc<dyn Scorer>,
    /// Measure every trial, in this order.
    pub collectors: Vec<Arc<dyn Collector>>,
    /// Explain every trial that has a trace, in this order.
    pub analyzers: Vec<Arc<dyn Analyzer>>,
    /// Score every task trial, in this order.
    pub evaluators: Vec<UsedEvaluator>,
    /// Resolves modes that are only names.
    pub mode_resolver: Option<Arc<dyn ModeResolver>>,
    /// Called around runs, modes and trials.
    pub hooks: Vec<Arc<dyn RunHooks>>,
    /// Looks at the run while it grows; without it, it is looked at when it has ended.
    pub steering: Option<Arc<dyn Steering>>,
    /// Prices tokens; without it, costs are what agents report.
    pub prices: Option<Prices>,
    /// Values that must not reach any record.
    pub secrets: Secrets,
    /// The description that makes trials comparable, as it is kept in the manifest. A resumed run must have the same.
    pub description: JsonMap,
    /// The reading of its trials as evidence, for the manifest.
    pub reading: Reading,
    /// More facts for the manifest: versions, git state, paths.
    pub provenance: JsonMap,
}

/// A condition under which scenarios are run.
#[derive(Debug, Clone, Default)]
pub struct Mode {
    /// Unique in the suite.
    pub name: String,
    /// The provider that serves it. Empty where there are only tasks.
    pub provider: String,
    /// Settings for that provider.
    pub overrides: Arc<JsonMap>,
    /// Variables for every process started for a session.
    pub environment: Arc<BTreeMap<String, String>>,
    /// System instructions for the agent.
    pub system_instructions: String,
    /// Runners by task type.
    pub runners: Arc<BTreeMap<String, Arc<UsedRunner>>>,
    /// The wall around the agent, unless a scenario has its own.
    pub sandbox: Arc<Sandbox>,
}

/// Execution settings of a run.
#[derive(Debug, Clone)]
pub struct Execution {
    /// Repetitions of each scenario under each arm.
    pub repetitions: u32,
    /// In which order.
    pub order: Order,
    /// The seed of all random choices.
    pub seed: u64,
    /// The most trials at once.
    pub concurrency: usize,
    /// The most trials at once per provider.
    pub limits: BTreeMap<String, usize>,
    /// One trial beforehand that is kept apart.
    pub warmup: bool,
    /// Retry trials that failed, too. Success then means pass@k.
    pub retry_fails: bool,
    /// Start nothing more after the first trial that does not pass.
    pub fail_fast: bool,
    /// The trials at the start of a mode that may be void for the same reason before the mode is stopped; 0: any
    /// number.
    pub stop_after_voids: u32,
    /// Time limit for trying out the set-ups of workspaces before the first trial; zero tries none. Nothing is tried in
    /// resumed runs.
    pub preflight: Duration,
    /// The most that the run may spend. It stops at whole blocks.
    pub budget: Budget,
    /// The dearest block of an earlier run of this kind, to reserve by from the first block on.
    pub expected_block: Option<Amounts>,
    /// The part of the plan that is run here. Absent: all of it. A resumed run keeps its own.
    pub shard: Option<ShardPlan>,
    /// The merged run that the shard goes on from. Absent in the first round.
    pub after: Option<After>,
}

/// A merged run that shards of the next round go on from.
#[derive(Debug, Clone, PartialEq)]
pub struct After {
    /// The plan it is of; a shard of another one is refused.
    pub plan_fingerprint: String,
    /// The looks at it, which the shard's run keeps.
    pub looks: Vec<LookRecord>,
}

impl Default for Execution {
    fn default() -> Self {
        Self {
            repetitions: 5,
            order: Order::Blocked,
            seed: 42,
            concurrency: 4,
            limits: BTreeMap::new(),
            warmup: true,
            retry_fails: false,
            fail_fast: false,
            stop_after_voids: 3,
            preflight: Duration::ZERO,
            budget: Budget::default(),
            expected_block: None,
            shard: None,
            after: None,
        }
    }
}

/// Output settings of a run.
#[derive(Debug, Clone)]
pub struct Output {
    /// Export sessions even when no analyzer needs them.
    pub session_export: bool,
    /// Keep every exported trace.
    pub store_traces: bool,
    /// The workspaces that are kept.
    pub keep_workspace: KeepWorkspace,
}

/// The part of a trial's workspace that is kept, as a compressed archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepWorkspace {
    /// Files that the agent added or modified, and a list of all changes.
    #[default]
    Changed,
    /// Everything.
    All,
    /// Nothing.
    None,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            session_export: true,
            store_traces: true,
            keep_workspace: KeepWorkspace::default(),
        }
    }
}

impl ProfileSuite {
    /// A suite of one provider and one scorer, everything else at its default and empty.
    pub fn new(provider: ProviderSource, scorer: Arc<dyn Scorer>) -> Self {
        Self {
            name: "suite".to_owned(),
            modes: Vec::new(),
            models: Vec::new(),
            scenarios: Vec::new(),
            tasks: None,
            execution: Execution::default(),
            output: Output::default(),
            permissions: PermissionConfig::default(),
            directory: PathBuf::from("."),
            places: Arc::default(),
            hidden: Vec::new(),
            providers: BTreeMap::from([(provider.instance().id().to_owned(), provider)]),
            scorer,
            collectors: Vec::new(),
            analyzers: Vec::new(),
            evaluators: Vec::new(),
            mode_resolver: None,
            hooks: Vec::new(),
            steering: None,
            prices: None,
            secrets: Secrets::default(),
            description: JsonMap::new(),
            reading: Reading::default(),
            provenance: JsonMap::new(),
        }
    }

    /// The wall around the agent of a trial: the scenario's, else the mode's.
    pub fn sandbox(&self, mode: &Mode, own: Option<&Sandbox>) -> SessionSandbox {
        SessionSandbox {
            sandbox: own.map_or_else(|| Arc::clone(&mode.sandbox), |own| Arc::new(own.clone())),
            places: Arc::clone(&self.places),
            ..SessionSandbox::default()
        }
    }

    /// The trials this suite asks for.
    pub fn plan(&self) -> Result<Plan, PlanError> {
        self.plan_of(self.execution.repetitions)
    }

    /// The same with another number of repetitions.
    pub(crate) fn plan_of(&self, repetitions: u32) -> Result<Plan, PlanError> {
        let ids = self.scenarios.iter().map(|scenario| scenario.id.clone());
        let source = self.tasks.as_ref().map(|tasks| &tasks.source);
        let subjects = Subjects {
            scenarios: ids.collect(),
            tasks: source.map_or(0, |source| source.len()),
            priorities: source.map_or(Vec::new(), |source| source.priorities().to_vec()),
        };
        let order = self.effective_order();
        Plan::of(
            subjects,
            self.arms(),
            repetitions,
            order,
            self.execution.seed,
        )
    }

    /// The expected cost of one block of every scenario and of the tasks after them, as far as the suite gives it: their time limits.
    pub fn expected_costs(&self) -> Vec<u64> {
        let scenarios = self.scenarios.iter().map(|scenario| scenario.timeout_ms);
        let tasks = self.tasks.as_ref().map(|tasks| tasks.timeout_ms);
        scenarios.chain(tasks).collect()
    }

    /// The id of a cell's scenario or task. A task is read for it, and may have become unreadable.
    pub fn id_of(&self, plan: &Plan, cell: &Cell) -> Result<String, EngineError> {
        match plan.task(cell).zip(self.tasks.as_ref()) {
            None => Ok(plan.scenarios[cell.scenario as usize].clone()),
            Some((number, tasks)) => match tasks.source.load(number) {
                Ok(task) => Ok(task.id().to_owned()),
                Err(error) => Err(EngineError::Task {
                    message: error.to_string(),
                }),
            },
        }
    }

    /// The reason why modes must run one after another, if they must.
    pub fn sequential_because(&self) -> Option<String> {
        let has_mode_hook = |hooks: &Arc<dyn RunHooks>| {
            let events = hooks.events();
            events.contains(&HookEvent::BeforeMode) || events.contains(&HookEvent::AfterMode)
        };
        if self.hooks.iter().any(has_mode_hook) {
            return Some("a `beforeMode` or `afterMode` hook is registered".to_owned());
        }
        let exclusive = self
            .modes
            .iter()
            .find(|mode| self.is_exclusive(&mode.provider))?;
        Some(format!(
            "provider `{}` serves one mode at a time",
            exclusive.provider
        ))
    }

    /// True if only one instance of the provider can exist, which serves one mode at a time.
    pub(crate) fn is_exclusive(&self, provider: &str) -> bool {
        match self.providers.get(provider) {
            Some(ProviderSource::Single(instance)) => instance.scope() == ProviderScope::Mode,
            _ => false,
        }
    }

    fn effective_order(&self) -> Order {
        match self.sequential_because() {
            Some(_) => Order::Sequential,
            None => self.execution.order,
        }
    }

    fn arms(&self) -> Vec<Arm> {
        let mut arms = Vec::new();
        for mode in &self.modes {
            let models = if self.models.is_empty() {
                vec![self.default_model(mode)]
            } else {
                self.models.clone()
            };
            let arm = |model| Arm {
                mode: mode.name.clone(),
                model,
            };
            arms.extend(models.into_iter().map(arm));
        }
        arms
    }

    fn default_model(&self, mode: &Mode) -> String {
        self.providers
            .get(&mode.provider)
            .and_then(|source| source.instance().default_model(&mode.overrides))
            .or_else(|| {
                let mut models = mode.runners.values().filter_map(|used| used.runner.model());
                models.next().map(str::to_owned)
            })
            .unwrap_or_else(|| "default".to_owned())
    }

    /// Makes the directory absolute: plugins may live in processes that were started elsewhere.
    pub(crate) fn locate(&mut self) {
        if let Ok(directory) = std::path::absolute(&self.directory) {
            self.directory = directory;
        }
    }

    /// Keeps agents away from this run and those beside it.
    pub(crate) fn hide_results(&mut self, target: &RunTarget) {
        let results = match target {
            RunTarget::New(results) => Some(results.as_path()),
            RunTarget::Resume(run) | RunTarget::ResumeVoid(run) => run.path().parent(),
        };
        let results = results.and_then(|results| std::path::absolute(results).ok());
        let places = Arc::make_mut(&mut self.places);
        places.hidden.extend(results.clone());
        places.answers.extend(results);
    }

    /// Modes by name.
    pub(crate) fn modes_by_name(&self) -> HashMap<&str, &Mode> {
        self.modes
            .iter()
            .map(|mode| (mode.name.as_str(), mode))
            .collect()
    }
}
