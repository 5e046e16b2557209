//! A whole run: resolve modes, open the run directory, start providers, work through the cells, end everything.

use crate::budget::{BudgetStop, Ledger};
use crate::event::{Event, Listener};
use crate::guard::guarded;
use crate::hooks::Hooks;
use crate::instances::Instances;
use crate::plan::{Plan, PlanError};
use crate::preflight;
use crate::schedule::Scheduler;
use crate::shard::ShardPlan;
use crate::store::{
    CellKey, Encoder, Manifest, OpenRun, RunDirectory, RunState, ShardRecord, StoreError, Writer,
    WriterHandle, WrittenRun, append_look, list_named, new_run_id,
};
use crate::suite::{Execution, Mode, ProfileSuite};
use crate::task::UsedRunner;
use crate::trial::{Cancelled, Trials};
use crate::voids::{VoidReason, Voids};
use crate::workspace::{self, TrialWorkspaces};
use assize_contracts::{
    Caution, CautionCode, HookEvent, PluginError, ProfileRow, RunContext, Timestamp,
};
use assize_secrets::Redactor;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The destination of a run.
pub enum RunTarget {
    /// Into a new directory below this one.
    New(PathBuf),
    /// Resumes an unfinished run.
    Resume(RunDirectory),
    /// The void trials of a run again.
    ResumeVoid(RunDirectory),
}

/// The end of a run.
#[derive(Debug)]
pub struct ProfileSuiteResult {
    pub run_id: String,
    pub directory: PathBuf,
    /// Trials on disk.
    pub done: u64,
    /// Trials planned and not done.
    pub open: u64,
    /// The causes of this command's void trials.
    pub voids: Vec<VoidReason>,
    /// The reason why the budget ended the run, if it did.
    pub budget: Option<BudgetStop>,
}

impl ProfileSuiteResult {
    /// The run, open for reading.
    pub fn run(&self) -> Result<RunDirectory, StoreError> {
        RunDirectory::open(&self.directory)
    }
}

/// The error of a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// There is nothing to run, or too much.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The run directory could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A mode uses a provider that is not there.
    #[error("mode `{mode}` uses the unknown provider `{provider}`")]
    UnknownProvider {
        mode: String,
        /// The provider it names.
        provider: String,
    },
    /// A mode could not be resolved.
    #[error("cannot resolve mode `{mode}`: {message}")]
    Mode {
        mode: String,
        /// The resolver's message.
        message: String,
    },
    /// A task could not be read back.
    #[error("cannot read a task: {message}")]
    Task {
        /// The error.
        message: String,
    },
    /// The merged run to go on from is of another plan.
    #[error(
        "the merged run to go on from has another plan: another suite, other flags, another seed or other variables"
    )]
    OtherPlan,
    /// The workspace of a scenario cannot be set up.
    #[error("the workspace of scenario `{scenario}` cannot be set up in mode `{mode}`: {message}")]
    SetUp {
        /// The first scenario with this set-up.
        scenario: String,
        /// The first mode with its variables.
        mode: String,
        message: String,
    },
    /// Workspaces cannot be made by the suite's method.
    #[error(transparent)]
    Workspace(assize_process::Error),
    /// A provider could not be started.
    #[error("cannot start provider `{provider}`: {message}")]
    ProviderInit { provider: String, message: String },
    /// No free port was found for a provider.
    #[error("cannot find a free port on the loopback interface")]
    NoPort {
        /// The error of the system.
        source: std::io::Error,
    },
}

/// Runs an experiment and keeps every trial in a run directory.
///
/// Cancelling the token stops the run: nothing more is started, running sessions are ended, and what was finished is
/// on disk. [`resume`](RunTarget::Resume) does exactly the rest.
pub async fn run_profile_suite(
    mut suite: ProfileSuite,
    target: RunTarget,
    listener: Arc<dyn Listener>,
    cancel: CancellationToken,
) -> Result<ProfileSuiteResult, EngineError> {
    suite.locate();
    suite.hide_results(&target);
    resolve_modes(&mut suite).await?;
    let suite = Arc::new(suite);
    let is_new = matches!(target, RunTarget::New(_));
    let mut workspaces =
        TrialWorkspaces::new(&suite, &suite.directory, suite.output.keep_workspace);
    if is_new && !suite.execution.preflight.is_zero() {
        let limit = suite.execution.preflight;
        preflight::try_set_ups(&suite, &workspaces, limit, &cancel).await?;
    }
    let Opened { run, plan, open } = open(&suite, target)?;
    let (run_id, directory) = (run.manifest.run_id.clone(), run.path.clone());
    workspaces.keep_below(&directory);
    let done = run.done.len() as u64;
    let planned = run.manifest.planned();
    tracing::info!(run = run_id, planned, done, "started the run");
    listener.on_event(&Event::RunStarted {
        run_id: &run_id,
        directory: &directory,
        cells: planned,
        done,
    });

    let began = Instant::now();
    let ledger = ledger(&suite, &plan, &open, &directory)?;
    let cancel = cancel.child_token();
    let writer = run.into_writer(Arc::clone(&listener), cancel.clone());
    let redactor = Redactor::new(&suite.secrets);
    let scheduler = Arc::new(Scheduler {
        trials: Trials {
            run_id,
            suite: Arc::clone(&suite),
            hooks: Hooks::new(&suite.hooks, Arc::clone(&listener)),
            metrics: Arc::clone(&writer.metrics),
            workspaces,
            listener,
            cancel: cancel.clone(),
            turnstile: Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)),
            room_at_runners: room_at_runners(&suite),
            reported: Mutex::default(),
            redactor: redactor.clone(),
        },
        plan,
        voids: Voids::new(suite.execution.stop_after_voids, redactor.clone()),
        encoder: Encoder::new(redactor, suite.output.store_traces),
        stop: cancel.child_token(),
        ledger: ledger.map(Mutex::new),
        began,
    });
    let run = Run {
        directory,
        skipped: AtomicU64::new(0),
        scheduler,
        warm_up: is_new && suite.execution.warmup,
    };
    let worked = run.work_between_hooks(open, writer).await;
    run.finish(worked, done, planned)
}

/// The ledger of a run, with what its earlier starts spent. None where nothing is limited.
fn ledger(
    suite: &ProfileSuite,
    plan: &Plan,
    open: &[u32],
    directory: &Path,
) -> Result<Option<Ledger>, EngineError> {
    let Execution {
        budget,
        expected_block,
        ..
    } = &suite.execution;
    if budget.is_unlimited() {
        return Ok(None);
    }
    let mut ledger = Ledger::new(*budget, *expected_block, 0.0);
    let run = RunDirectory::open(directory)?;
    for row in run.warmup_rows() {
        ledger.add(row.spent());
    }
    // Trials that were run twice were paid twice.
    for row in run.replaced_trials()? {
        ledger.add(row.spent());
    }
    let rows: Vec<ProfileRow> = run.rows()?.collect::<Result<_, _>>()?;
    let mut open_of_block: HashMap<u32, u32> = HashMap::new();
    for position in open {
        *open_of_block.entry(plan.cell(*position).block).or_default() += 1;
    }
    ledger.remember(&rows, |block| {
        open_of_block.get(&block).copied().unwrap_or(0)
    });
    Ok(Some(ledger))
}

/// Runners that the suite, or they themselves, limit.
fn room_at_runners(suite: &ProfileSuite) -> BTreeMap<String, Semaphore> {
    let used = suite.modes.iter().flat_map(|mode| mode.runners.values());
    let limited = used.filter_map(|used| {
        let asked = suite.execution.limits.get(&used.id).copied();
        let limit = asked
            .unwrap_or(usize::MAX)
            .min(used.runner.concurrency().most());
        let room = || Semaphore::new(limit.clamp(1, Semaphore::MAX_PERMITS));
        (limit < usize::MAX).then(|| (used.id.clone(), room()))
    });
    limited.collect()
}

/// Asks the resolver about every mode before anything is spent.
pub(crate) async fn resolve_modes(suite: &mut ProfileSuite) -> Result<(), EngineError> {
    if let Some(resolver) = suite.mode_resolver.clone() {
        for mode in &mut suite.modes {
            let resolved = guarded(resolver.resolve(&mode.name)).await;
            let config = resolved.map_err(|error| EngineError::Mode {
                mode: mode.name.clone(),
                message: error.to_string(),
            })?;
            for (name, value) in &config.environment {
                suite.secrets.note(name, value);
            }
            Arc::make_mut(&mut mode.environment).extend(config.environment);
            Arc::make_mut(&mut mode.overrides).extend(config.provider_overrides);
            mode.system_instructions = config.system_instructions;
        }
    }
    let lacks_provider = |mode: &&Mode| !suite.providers.contains_key(&mode.provider);
    let needs_providers = !suite.scenarios.is_empty();
    match suite
        .modes
        .iter()
        .find(|mode| needs_providers && lacks_provider(mode))
    {
        Some(mode) => Err(EngineError::UnknownProvider {
            mode: mode.name.clone(),
            provider: mode.provider.clone(),
        }),
        None => Ok(()),
    }
}

struct Opened {
    run: OpenRun,
    plan: Plan,
    /// Places of the cells to do now.
    open: Vec<u32>,
}

fn open(suite: &ProfileSuite, target: RunTarget) -> Result<Opened, EngineError> {
    let mut plan = suite.plan()?;
    let (mut run, only_void) = match target {
        RunTarget::New(results) => {
            let shard = suite.execution.shard.as_ref();
            let cells = shard.map(|shard| shard.cells(&plan));
            let manifest = manifest(suite, &plan, shard.zip(cells.as_deref()))?;
            let after = suite.execution.after.as_ref();
            if after.is_some_and(|after| after.plan_fingerprint != manifest.plan_fingerprint()) {
                return Err(EngineError::OtherPlan);
            }
            let run = OpenRun::create(&results, manifest)?;
            // A later merge finds the looks again, wherever it is made.
            for look in after.map_or(&[][..], |after| &after.looks) {
                append_look(&run.path, look)?;
            }
            // A new run needs no keys, which for many cells would be the larger part of its memory.
            let open = cells.unwrap_or_else(|| (0..plan.len()).collect());
            return Ok(Opened { run, plan, open });
        }
        RunTarget::Resume(run) => (resume(suite, &mut plan, run)?, false),
        RunTarget::ResumeVoid(run) => (resume(suite, &mut plan, run)?, true),
    };
    let reopened = if only_void {
        Some(run.reopen_void()?)
    } else {
        None
    };
    let cells = match &run.manifest.shard {
        Some(record) => shard_of(suite, record).cells(&plan),
        None => (0..plan.len()).collect(),
    };
    let open = match &reopened {
        Some(reopened) => places(suite, &plan, cells, |key| reopened.contains(key))?,
        None if run.done.is_empty() => cells,
        None => places(suite, &plan, cells, |key| !run.done.contains(key))?,
    };
    Ok(Opened { run, plan, open })
}

/// The division that a shard was made by, with the costs that are expected now.
fn shard_of(suite: &ProfileSuite, record: &ShardRecord) -> ShardPlan {
    let given = suite.execution.shard.as_ref();
    let costs = given.map(|plan| plan.costs.clone());
    ShardPlan {
        shard: record.shard,
        costs: costs.unwrap_or_else(|| suite.expected_costs()),
        round: record.round.clone(),
    }
}

/// Among these runs those of the same suite, plan and shard. New trials would be comparable with theirs.
pub fn runs_like(
    suite: &ProfileSuite,
    runs: Vec<RunDirectory>,
) -> Result<Vec<RunDirectory>, EngineError> {
    let plan = suite.plan()?;
    let shard = suite.execution.shard.as_ref();
    let now = manifest(suite, &plan, None)?;
    let is_same = |run: &RunDirectory| {
        let found = run.manifest();
        let division = found.shard.as_ref().map(|record| &record.division);
        let same_part = found.shard.as_ref().map(|record| record.shard)
            == shard.map(|plan| plan.shard)
            && division == shard.map(ShardPlan::division).as_ref();
        same_part && found.plan == now.plan && found.differences(&now).is_empty()
    };
    Ok(runs.into_iter().filter(is_same).collect())
}

/// Earlier runs of the same suite, plan and shard below a directory, oldest first.
pub fn earlier_runs(
    suite: &ProfileSuite,
    results: &Path,
) -> Result<Vec<RunDirectory>, EngineError> {
    let shard = suite.execution.shard.as_ref();
    // The directory may hold thousands of other shards, whose manifests need not be read.
    let runs = match shard {
        Some(plan) => list_named(results, |name| name.ends_with(&plan.suffix()))?,
        None => list_named(results, |_| true)?,
    };
    runs_like(suite, runs)
}

/// The places of the cells that are wanted.
fn places(
    suite: &ProfileSuite,
    plan: &Plan,
    cells: Vec<u32>,
    is_wanted: impl Fn(&CellKey) -> bool,
) -> Result<Vec<u32>, EngineError> {
    let mut wanted = Vec::new();
    // In blocked order the cells of a task are neighbours, so its id is read once.
    let mut known: Option<(u32, String)> = None;
    for cell in cells.into_iter().map(|position| plan.cell(position)) {
        let scenario_id = match known.take().filter(|(number, _)| *number == cell.scenario) {
            Some((_, id)) => id,
            None => suite.id_of(plan, &cell)?,
        };
        let arm = plan.arm(&cell);
        let key = CellKey {
            scenario_id,
            mode: arm.mode.clone(),
            model: arm.model.clone(),
            iteration: i64::from(cell.iteration),
        };
        if is_wanted(&key) {
            wanted.push(cell.position);
        }
        known = Some((cell.scenario, key.scenario_id));
    }
    Ok(wanted)
}

/// A run can be made longer when it is resumed, never shorter, and a shard not at all.
fn resume(
    suite: &ProfileSuite,
    plan: &mut Plan,
    run: RunDirectory,
) -> Result<OpenRun, EngineError> {
    let before = run.manifest().plan.repetitions;
    if before > plan.repetitions {
        *plan = suite.plan_of(before)?;
    }
    let now = manifest(suite, plan, None)?;
    if let Some(record) = &run.manifest().shard {
        let mut changes = Vec::new();
        if before != plan.repetitions {
            changes.push(format!(
                "`execution.repetitions` was {before}, is {}, and a shard cannot be made longer",
                plan.repetitions
            ));
        }
        if record.division != shard_of(suite, record).division() {
            changes.push("shards are balanced by other expected costs".to_owned());
        }
        if !changes.is_empty() {
            let id = run.id().to_owned();
            return Err(StoreError::Changed { id, changes }.into());
        }
    }
    Ok(OpenRun::resume(run, &now)?)
}

/// The manifest of a new run: of the plan, or of a shard with these cells.
fn manifest(
    suite: &ProfileSuite,
    plan: &Plan,
    shard: Option<(&ShardPlan, &[u32])>,
) -> Result<Manifest, EngineError> {
    let created_at = Timestamp::now();
    let mut run_id = new_run_id(&created_at);
    if let Some((plan, _)) = shard {
        // Many shards start at the same moment, and may share a directory.
        run_id.push_str(&plan.suffix());
    }
    let mut manifest = Manifest::new(
        run_id,
        suite.name.clone(),
        created_at,
        plan,
        suite.description.clone(),
        suite.secrets.hashes(),
    );
    manifest.provenance = suite.provenance.clone();
    manifest.set_reading(&suite.reading);
    manifest.plan.tasks = suite.tasks.as_ref().map(|tasks| tasks.record.clone());
    manifest.shard = shard.map(|(plan, cells)| ShardRecord {
        shard: plan.shard,
        cells: cells.len() as u64,
        plan_fingerprint: manifest.plan_fingerprint(),
        division: plan.division(),
        round: plan.round.clone(),
    });
    let kept = serde_json::json!(suite.output.keep_workspace);
    manifest.provenance.insert("keepWorkspace".to_owned(), kept);
    let methods = workspace::methods(suite).map_err(EngineError::Workspace)?;
    if !methods.is_empty() {
        let methods = serde_json::json!(methods);
        let provenance = &mut manifest.provenance;
        provenance.insert("workspaceMethods".to_owned(), methods);
    }
    let fixtures = workspace::fixtures(suite);
    if !fixtures.is_empty() {
        let fixtures = serde_json::json!(fixtures);
        manifest.provenance.insert("fixtures".to_owned(), fixtures);
    }
    Ok(manifest)
}

/// A run under way.
struct Run {
    scheduler: Arc<Scheduler>,
    directory: PathBuf,
    /// Cells of arms that a look has stopped.
    skipped: AtomicU64,
    warm_up: bool,
}

/// The end of the trials of a run. What was written counts even where the work failed.
struct Worked {
    outcome: Result<(), EngineError>,
    written: Result<WrittenRun, StoreError>,
}

impl Run {
    /// Does the cells between the hooks around the run, and ends everything that was started for them.
    async fn work_between_hooks(&self, open: Vec<u32>, writer: Writer) -> Worked {
        self.hooks().announce_environments(&self.suite().modes);
        let context = self.context();
        let before = self.hooks().around_run(HookEvent::BeforeRun, &context);
        if let Ok(errors) = self.unless_cancelled(before).await {
            self.report(errors);
        }
        let mut instances = Instances::default();
        let outcome = self
            .work_through(open, &mut instances, writer.handle())
            .await;
        let written = writer.flush().await;
        self.report(self.hooks().around_run(HookEvent::AfterRun, &context).await);
        self.report(instances.shut_down().await);
        self.report(self.shut_down_runners().await);
        Worked { outcome, written }
    }

    /// Writes the final state and releases the lock. `done` trials were on disk before this start.
    fn finish(
        &self,
        worked: Worked,
        done: u64,
        planned: u64,
    ) -> Result<ProfileSuiteResult, EngineError> {
        let written = worked.written?;
        let done = done + written.trials();
        // Cells of arms that a look has stopped are not missing.
        let open = planned
            .saturating_sub(done)
            .saturating_sub(self.skipped.load(Ordering::Relaxed));
        let budget = self.budget_stop().filter(|_| open > 0);
        self.report_budget(budget.as_ref());
        written.close(if open == 0 {
            RunState::Complete
        } else {
            RunState::Incomplete
        })?;
        worked.outcome?;
        let trials = &self.scheduler.trials;
        tracing::info!(run = trials.run_id, done, open, "ended the run");
        trials.listener.on_event(&Event::RunFinished {
            run_id: &trials.run_id,
            done,
            open,
        });
        Ok(ProfileSuiteResult {
            run_id: trials.run_id.clone(),
            directory: self.directory.clone(),
            done,
            open,
            voids: self.scheduler.voids.reasons(),
            budget,
        })
    }

    fn hooks(&self) -> &Hooks {
        &self.scheduler.trials.hooks
    }

    fn suite(&self) -> &ProfileSuite {
        &self.scheduler.trials.suite
    }

    fn context(&self) -> RunContext {
        RunContext {
            run_id: self.scheduler.trials.run_id.clone(),
            modes: self
                .suite()
                .modes
                .iter()
                .map(|mode| mode.name.clone())
                .collect(),
            scenarios: self.suite().scenarios.clone(),
            repetitions: self.scheduler.plan.repetitions,
        }
    }

    /// Does the cells, stage by stage. Providers that are still up stay in `instances`.
    async fn work_through(
        &self,
        cells: Vec<u32>,
        instances: &mut Instances,
        writer: WriterHandle,
    ) -> Result<(), EngineError> {
        let stages = self.stages(cells);
        let mut stopped: BTreeSet<u32> = BTreeSet::new();
        if !self.start_shared(instances, &stages).await? {
            return Ok(());
        }
        for (number, stage) in stages.iter().enumerate() {
            let others = |range: &[Stage]| range.iter().any(|other| other.mode == stage.mode);
            if let Some(arm) = stage.exclusive_arm {
                // The one instance there can be still serves the stage before.
                self.report(instances.shut_down_exclusive().await);
                if !self.start(instances, arm).await? {
                    break;
                }
            }
            if let Some(mode) = stage.mode.as_ref().filter(|_| !others(&stages[..number])) {
                let before = self.hooks().around_mode(HookEvent::BeforeMode, mode);
                if let Ok(errors) = self.unless_cancelled(before).await {
                    self.report(errors);
                }
            }
            if let Some(first) = stage.cells.first()
                && self.warm_up
                && number == 0
                && !self.scheduler.stop.is_cancelled()
                && self.may_start_a_block()
            {
                self.scheduler.warm_up(*first, instances, &writer).await;
            }
            let serving = Arc::new(instances.clone());
            let cells = self.going_on(&stage.cells, &stopped);
            let left = self.scheduler.run(cells, &serving, &writer).await;
            if let Some(mode) = stage
                .mode
                .as_ref()
                .filter(|_| !others(&stages[number + 1..]))
            {
                self.report(self.hooks().around_mode(HookEvent::AfterMode, mode).await);
            }
            // A budget that covers no further block ends the run, too.
            if self.scheduler.stop.is_cancelled() || left > 0 {
                break;
            }
            // Where everything is decided there is nothing left to look for.
            let is_over = stopped.len() == self.scheduler.plan.arms.len();
            if let Some(rounds) = stage.look_after.filter(|_| !is_over) {
                writer.settled().await;
                self.look(rounds, &mut stopped).await;
            }
        }
        Ok(())
    }

    /// Starts the providers that serve several stages. False if the run was cancelled meanwhile.
    async fn start_shared(
        &self,
        instances: &mut Instances,
        stages: &[Stage],
    ) -> Result<bool, EngineError> {
        let plan = &self.scheduler.plan;
        let cells = stages.iter().flat_map(|stage| &stage.cells);
        let cells = cells.map(|position| plan.cell(*position));
        let arms: BTreeSet<u32> = cells
            .filter(|cell| plan.task(cell).is_none())
            .map(|cell| cell.arm)
            .collect();
        for arm in arms.into_iter().filter(|arm| !self.is_exclusive(*arm)) {
            if !self.start(instances, arm).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// False if the budget does not cover a single block: a warm-up for none would be wasted.
    fn may_start_a_block(&self) -> bool {
        let ledger = self.scheduler.ledger();
        ledger.is_none_or(|(ledger, now)| ledger.may_start_another(now))
    }

    /// The cells whose arms no look has stopped; the others are counted.
    fn going_on(&self, cells: &[u32], stopped: &BTreeSet<u32>) -> Vec<u32> {
        let is_on = |position: &&u32| !stopped.contains(&self.scheduler.plan.cell(**position).arm);
        let on: Vec<u32> = cells.iter().filter(is_on).copied().collect();
        let skipped = (cells.len() - on.len()) as u64;
        self.skipped.fetch_add(skipped, Ordering::Relaxed);
        on
    }

    /// Lets the suite's steering look at what is there.
    async fn look(&self, rounds: u32, stopped: &mut BTreeSet<u32>) {
        let Some(steering) = self.suite().steering.clone() else {
            return;
        };
        let directory = self.directory.clone();
        let looking = tokio::task::spawn_blocking(move || steering.look(&directory, rounds));
        // A look that fails decides nothing.
        let Ok(look) = looking.await else {
            return;
        };
        for found in look.stopped {
            let mut arms = self.scheduler.plan.arms.iter();
            stopped.extend(arms.position(|arm| *arm == found.arm).map(|arm| arm as u32));
        }
        if let Some(text) = &look.text {
            let listener = &self.scheduler.trials.listener;
            listener.on_event(&Event::Looked { rounds, text });
        }
    }

    fn budget_stop(&self) -> Option<BudgetStop> {
        let (ledger, now) = self.scheduler.ledger()?;
        ledger.stop(now)
    }

    fn report_budget(&self, stop: Option<&BudgetStop>) {
        let caution = match stop {
            None => return,
            Some(BudgetStop::Reached { .. }) => Caution::about_all(
                CautionCode::BudgetReached,
                "the budget does not cover another block; the run stops at whole blocks",
            ),
            Some(BudgetStop::Unknown { what }) => Caution::about_all(
                CautionCode::BudgetUnknown,
                format!(
                    "the {what} of a trial is unknown, so the budget cannot be kept; no further block is started"
                ),
            ),
        };
        let listener = &self.scheduler.trials.listener;
        listener.on_event(&Event::Caution(&caution));
    }

    /// One stage for all cells, or one per arm where modes must run one after another.
    fn stages(&self, cells: Vec<u32>) -> Vec<Stage> {
        if let Some(steering) = &self.suite().steering {
            return self.looked_at(cells, &steering.looks());
        }
        if cells.is_empty() {
            return Vec::new();
        }
        if self.suite().sequential_because().is_none() {
            return vec![Stage {
                mode: None,
                exclusive_arm: None,
                cells,
                look_after: None,
            }];
        }
        let arm_of = |position: u32| self.scheduler.plan.cell(position).arm;
        let by_arm = cells.chunk_by(|a, b| arm_of(*a) == arm_of(*b));
        by_arm
            .map(|cells| {
                let arm = arm_of(cells[0]);
                Stage {
                    mode: Some(self.scheduler.plan.arms[arm as usize].mode.clone()),
                    exclusive_arm: Some(arm).filter(|arm| self.is_exclusive(*arm)),
                    cells: cells.to_vec(),
                    look_after: None,
                }
            })
            .collect()
    }

    /// A stage up to each look, and one for what comes after the last.
    fn looked_at(&self, cells: Vec<u32>, looks: &[u32]) -> Vec<Stage> {
        let round = |position: &u32| self.scheduler.plan.cell(*position).iteration;
        let mut stages: Vec<Stage> = looks
            .iter()
            .map(|rounds| Some(*rounds))
            .chain([None])
            .map(|look_after| Stage {
                mode: None,
                exclusive_arm: None,
                cells: Vec::new(),
                look_after,
            })
            .collect();
        for position in cells {
            let stage = looks.partition_point(|rounds| *rounds <= round(&position));
            stages[stage].cells.push(position);
        }
        stages
    }

    fn is_exclusive(&self, arm: u32) -> bool {
        let arm = &self.scheduler.plan.arms[arm as usize];
        self.suite()
            .is_exclusive(&self.suite().modes_by_name()[arm.mode.as_str()].provider)
    }

    /// Starts the provider of an arm. `false`: the run was cancelled meanwhile.
    async fn start(&self, instances: &mut Instances, arm: u32) -> Result<bool, EngineError> {
        let served = &self.scheduler.plan.arms[arm as usize];
        let listener = &*self.scheduler.trials.listener;
        let starting = instances.start(self.suite(), arm as usize, served, listener);
        match self.unless_cancelled(starting).await {
            Ok(started) => started.map(|()| true),
            Err(Cancelled) => Ok(false),
        }
    }

    async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, Cancelled> {
        self.scheduler.trials.unless_cancelled(work).await
    }

    /// Ends every runner once, whichever modes and types it serves.
    async fn shut_down_runners(&self) -> Vec<PluginError> {
        let mut used: BTreeMap<&str, &UsedRunner> = BTreeMap::new();
        for runner in self
            .suite()
            .modes
            .iter()
            .flat_map(|mode| mode.runners.values())
        {
            used.insert(&runner.id, runner);
        }
        let mut errors = Vec::new();
        for (id, used) in used {
            if let Err(error) = guarded(used.runner.shutdown()).await {
                errors.push(PluginError {
                    hook: format!("shutdown:{id}"),
                    message: error.to_string(),
                });
            }
        }
        errors
    }

    /// Reports errors outside of any trial; the run continues.
    fn report(&self, errors: Vec<PluginError>) {
        for PluginError { hook, message } in errors {
            let message = self.scheduler.trials.redactor.text(&message);
            self.scheduler
                .trials
                .listener
                .on_event(&Event::Caution(&Caution::about(
                    CautionCode::HookFailed,
                    format!("`{hook}` failed: {message}"),
                    hook,
                )));
        }
    }
}

/// Cells that run without a barrier between them.
struct Stage {
    /// The mode whose hooks go around it.
    mode: Option<String>,
    /// The arm for which the only instance of its provider must be started anew.
    exclusive_arm: Option<u32>,
    /// Places in the plan.
    cells: Vec<u32>,
    /// The complete rounds that are looked at when the stage is done.
    look_after: Option<u32>,
}
