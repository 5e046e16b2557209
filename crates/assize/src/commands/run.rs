//! `assize run`: load, plan, run, show.

use crate::cli::{Against, RunArguments, Where};
use crate::commands::estimate::Estimate;
use crate::commands::last_run::{self, Remembering};
use crate::commands::open_page::open_page;
use crate::commands::preflight::{self, Scope};
use crate::commands::results::Uploads;
use crate::commands::verdict::{self, Source, Wanted};
use crate::commands::{UsageError, find_run};
use crate::commands::{baseline, budget, consent, github, looks, noise, plan, report, shards};
use crate::diagnostics;
use crate::exit::Exit;
use crate::suite::{self, LoadedSuite, Selection, judges};
use crate::terminal::{JsonLines, Progress, one_line, plain, print, print_summary, say, warn};
use anyhow::{Context, Result};
use assize_contracts::{JsonMap, Outcome, Plugins};
use assize_engine::store::{RunDirectory, RunFile, RunState};
use assize_engine::{
    Cell, Event, Listener, Mode, ProfileSuite, ProfileSuiteResult, RunTarget, VoidReason,
    earlier_runs, run_profile_suite,
};
use assize_plugins::{PluginHost, Redact};
use assize_report::Summary;
use assize_secrets::{Redactor, Secrets};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(crate) fn run(arguments: &RunArguments, plugins: &Plugins) -> Result<Exit> {
    let (mut suite, target) = match arguments.resume.as_deref() {
        Some("auto") => resumed_or_fresh(arguments, plugins)?,
        Some(id) => resumed(arguments, id, plugins)?,
        None => fresh(arguments, plugins)?,
    };
    let is_resumed = !matches!(target, RunTarget::New(_));
    if shards::is_finished(&suite, &arguments.sharding)? {
        return Ok(Exit::Done);
    }
    looks::steer(&mut suite.profile, &target)?;
    let is_shard = shards::is_shard(&suite.profile, &target);
    if is_shard {
        shards::share_budget(&mut suite, &target, arguments)?;
    }
    budget::prepare(&mut suite)?;
    if !is_resumed && !is_shard {
        budget::record(&mut suite.profile, arguments.design.budget());
    }
    for remark in suite.remarks.iter().filter(|_| !arguments.quiet) {
        warn(remark);
    }
    let baseline = compared_with(arguments, plugins)?;
    if arguments.dry_run {
        return show_plan(&suite.profile, arguments.json);
    }
    refuse_more_than(arguments.max_trials, &suite.profile)?;
    if arguments.no_preflight {
        suite.profile.execution.preflight = Duration::ZERO;
    } else {
        check_surroundings(&mut suite, is_resumed)?;
    }
    if !arguments.yes && !agrees_to_cost(&suite)? {
        say("nothing was run");
        return Ok(Exit::Incomplete);
    }
    let json_lines = Arc::new(JsonLines::default());
    let listener = listener(arguments, &suite.profile, &target, &json_lines)?;
    let suite_path = suite.path.clone();
    let is_only_simulated = suite
        .profile
        .modes
        .iter()
        .all(|mode| mode.provider == "simulated");
    let listener: Arc<dyn Listener> = Arc::new(Remembering(listener));
    if is_shard {
        let done = shards::run(suite, target, listener, arguments);
        json_lines.finish();
        return done;
    }
    let result = in_runtime(suite, target, listener)?;
    let concluded = conclude(&result, &suite_path, baseline.as_ref(), arguments);
    json_lines.finish();
    let exit = concluded?;
    if arguments.open {
        open_page(&result.directory.join("report/report.html"));
    }
    if is_only_simulated && !arguments.json && !arguments.quiet {
        show_the_way_to_a_real_agent();
    }
    Ok(exit)
}

/// Looks for programs, keys and servers, and notes the versions of agents.
fn check_surroundings(suite: &mut LoadedSuite, is_resumed: bool) -> Result<()> {
    let scope = match is_resumed {
        true => Scope::ProgramsAndKeys,
        false => Scope::All,
    };
    let versions = preflight::check(suite, scope)?;
    let agents = ("agents".to_owned(), Value::Object(versions));
    suite.profile.provenance.extend([agents]);
    Ok(())
}

fn listener(
    arguments: &RunArguments,
    profile: &ProfileSuite,
    target: &RunTarget,
    json_lines: &Arc<JsonLines>,
) -> Result<Arc<dyn Listener>> {
    Ok(match (arguments.json, arguments.quiet) {
        (true, _) => Arc::clone(json_lines) as Arc<dyn Listener>,
        (_, true) => Arc::new(()),
        _ => {
            let modes = profile.modes.iter().map(|mode| mode.name.clone());
            Arc::new(Progress::new(modes.collect()).with_earlier(earlier(target)?))
        }
    })
}

/// The arguments of a run, from the words of a command line.
pub(super) fn of_words(words: &[String]) -> Result<RunArguments> {
    let before = ["assize", "run"].into_iter().map(str::to_owned);
    Ok(crate::cli::run_arguments(
        before.chain(words.iter().cloned()),
    )?)
}

/// Holds the size of the plan against `--max-trials`, before anything is spent.
fn refuse_more_than(most: Option<u64>, profile: &ProfileSuite) -> Result<()> {
    let plan = profile.plan()?;
    let planned = match (&profile.execution.shard, most) {
        (Some(shard), Some(_)) => shard.cells(&plan).len() as u64,
        _ => u64::from(plan.len()),
    };
    match most {
        Some(most) if planned > most => Err(UsageError {
            message: format!("the plan has {planned} trials, --max-trials allows {most}"),
            hint: Some("choose fewer with --mode, --scenario or --repetitions".to_owned()),
        }
        .into()),
        _ => Ok(()),
    }
}

/// People who tried the stand-in want to know what comes next. The suite's comment and the README say the same.
fn show_the_way_to_a_real_agent() {
    say(
        "\nthese agents are simulated; for a real one go to your git repository and type\n  assize init --agent claude-code",
    );
}

/// The reference of the gates, found before anything is spent.
fn compared_with(arguments: &RunArguments, plugins: &Plugins) -> Result<Option<Source>> {
    let against = Against {
        baseline: arguments.baseline.clone(),
    };
    let place = Where {
        suite: arguments.path.clone(),
        output: arguments.output.clone(),
    };
    baseline::find(&against, &place, plugins)
}

/// A new run of what the flags leave of the suite.
fn fresh(arguments: &RunArguments, plugins: &Plugins) -> Result<(LoadedSuite, RunTarget)> {
    let path = arguments.path.as_deref().unwrap_or(Path::new("."));
    let mut suite = suite::load(path, &selection(arguments), plugins)?;
    shards::choose(&mut suite, &arguments.sharding)?;
    let target = RunTarget::New(suite.results_dir.clone());
    Ok((suite, target))
}

/// The run that a restarted job was doing, else a new one. A shard that is complete stays the one; without a shard, a complete run is
/// done with.
fn resumed_or_fresh(
    arguments: &RunArguments,
    plugins: &Plugins,
) -> Result<(LoadedSuite, RunTarget)> {
    let (suite, fresh) = fresh(arguments, plugins)?;
    if arguments.dry_run {
        return Ok((suite, fresh));
    }
    let is_shard = arguments.sharding.shard.is_some();
    let mut earlier = earlier_runs(&suite.profile, &suite.results_dir)?;
    if let (Some(url), true) = (&arguments.sharding.results, earlier.is_empty())
        && Uploads::fetch(url, &suite.profile, &suite.results_dir)?
    {
        earlier = earlier_runs(&suite.profile, &suite.results_dir)?;
    }
    earlier.retain(|run| is_shard || run.manifest().state != RunState::Complete);
    let mut best: Option<(u64, RunDirectory)> = None;
    for run in earlier {
        let rows = run.counts()?.rows;
        if best.as_ref().is_none_or(|(most, _)| rows >= *most) {
            best = Some((rows, run));
        }
    }
    if let (Some((_, run)), true) = (&mut best, is_shard) {
        shards::wait_for(run)?;
    }
    let target = match best {
        None => fresh,
        Some((_, run)) if arguments.only.is_some() => RunTarget::ResumeVoid(run),
        Some((rows, run)) => {
            if !arguments.quiet {
                let planned = run.manifest().planned();
                say(format!(
                    "resuming run {}: {rows} of {planned} trials are done",
                    run.id()
                ));
            }
            RunTarget::Resume(run)
        }
    };
    Ok((suite, target))
}

/// An earlier run with its own part of the suite; the suite file is the one it was started from unless given.
fn resumed(
    arguments: &RunArguments,
    id: &str,
    plugins: &Plugins,
) -> Result<(LoadedSuite, RunTarget)> {
    let place = Where {
        suite: arguments.path.clone(),
        output: arguments.output.clone(),
    };
    shards::refuse_with_resume(arguments)?;
    let run = find_run(id, &place, plugins)?;
    let path = suite_path(arguments.path.as_deref(), &run);
    let plan = &run.manifest().plan;
    let flags = selection(arguments);
    let selection = Selection {
        repetitions: Some(flags.repetitions.unwrap_or(plan.repetitions)),
        retries: flags.retries,
        concurrency: flags.concurrency,
        timeout_ms: flags.timeout_ms,
        results_dir: flags.results_dir,
        fail_fast: flags.fail_fast,
        budget: budget::of_resumed(flags.budget, &run),
        ..Selection::of_run(plan)
    };
    let selection = noise::resumed(selection, &run);
    let mut suite = suite::load(&path, &selection, plugins)?;
    if let Some(record) = &run.manifest().shard {
        let round = record.round.clone();
        shards::choose_again(&mut suite, record.shard, round, &arguments.sharding)?;
    }
    if arguments.only.is_none() && !arguments.quiet {
        report_if_complete(&run, &suite)?;
    }
    let target = match arguments.only {
        Some(_) => RunTarget::ResumeVoid(run),
        None => RunTarget::Resume(run),
    };
    Ok((suite, target))
}

/// The suite of an earlier run: the given one, else the one it was started from, else, where that is gone, the one that is here.
pub(super) fn suite_path(given: Option<&Path>, run: &RunDirectory) -> PathBuf {
    let recorded = run.manifest().provenance.get("suitePath");
    let recorded = recorded.and_then(Value::as_str).map(Path::new);
    let path = given.or(recorded.filter(|path| path.exists()));
    path.unwrap_or(Path::new(".")).to_owned()
}

/// Mode and outcome of the trials that a resumed run keeps.
fn earlier(target: &RunTarget) -> Result<Vec<(String, Outcome)>> {
    let (run, keeps_void) = match target {
        RunTarget::Resume(run) => (run, true),
        RunTarget::ResumeVoid(run) => (run, false),
        _ => return Ok(Vec::new()),
    };
    let mut kept = Vec::new();
    for row in run.rows()? {
        let row = row?;
        let outcome = row.outcome.unwrap_or(Outcome::Fail);
        if keeps_void || outcome != Outcome::Void {
            kept.push((row.mode, outcome));
        }
    }
    Ok(kept)
}

/// Tells a user who resumes a finished run that nothing is left to do, and what could be done.
fn report_if_complete(run: &RunDirectory, suite: &LoadedSuite) -> Result<()> {
    let planned = match &run.manifest().shard {
        Some(shard) => shard.cells,
        None => suite.profile.plan()?.len() as u64,
    };
    let (mut done, mut void) = (0, 0);
    for row in run.rows()? {
        done += 1;
        void += u64::from(row?.outcome == Some(Outcome::Void));
    }
    if done < planned {
        return Ok(());
    }
    let more = match void {
        0 => String::new(),
        void => format!("`--only void` runs the {void} void ones again, "),
    };
    say(format!(
        "nothing is missing in run {}: all {planned} trials are done; {more}`-n N` adds repetitions",
        run.id()
    ));
    Ok(())
}

/// The part of the suite that the flags choose.
pub(super) fn selection(arguments: &RunArguments) -> Selection {
    Selection {
        modes: arguments.mode.clone(),
        models: arguments.model.clone(),
        scenarios: arguments.scenario.clone(),
        tags: arguments.tag.clone(),
        scenario_set: arguments.scenario_set.clone(),
        repetitions: arguments.repetitions,
        retries: arguments.retries,
        skip_warmup: arguments.skip_warmup,
        order: arguments.order.map(Into::into),
        concurrency: arguments.concurrency,
        seed: arguments.seed,
        timeout_ms: arguments.timeout,
        results_dir: arguments.output.clone(),
        fail_fast: arguments.fail_fast,
        tasks: None,
        budget: arguments.design.budget(),
        aa: arguments.design.aa,
    }
}

fn show_plan(profile: &ProfileSuite, as_json: bool) -> Result<Exit> {
    let plan = &profile.plan()?;
    let shown: Vec<u32> = match &profile.execution.shard {
        Some(shard) => shard.cells(plan),
        None => (0..plan.len()).collect(),
    };
    for cell in shown.iter().map(|position| plan.cell(*position)) {
        let Cell {
            position,
            block,
            iteration,
            ..
        } = cell;
        let scenario = profile.id_of(plan, &cell)?;
        let arm = plan.arm(&cell);
        if as_json {
            print(
                json!({
                    "position": position,
                    "block": block,
                    "scenarioId": scenario,
                    "mode": arm.mode,
                    "model": arm.model,
                    "iteration": iteration,
                })
                .to_string(),
            );
        } else {
            print(plain(&format!(
                "{position:>6}  block {block:<5} {scenario} · {} · {} #{iteration}",
                arm.mode, arm.model
            )));
        }
    }
    if !as_json {
        let part = profile.execution.shard.as_ref();
        let part = part.map_or_else(String::new, |plan| format!(", shard {}", plan.shard));
        say(format!(
            "{} trials{part}, order {}, seed {}",
            shown.len(),
            plan.order.as_str(),
            plan.seed
        ));
    }
    Ok(Exit::Done)
}

/// Asks before agents, runners or a judge can cost something.
pub(super) fn agrees_to_cost(suite: &LoadedSuite) -> Result<bool> {
    let profile = &suite.profile;
    let is_free = |mode: &Mode| {
        let says_so = mode.overrides.get("free") == Some(&Value::Bool(true));
        mode.provider == "command" && says_so
    };
    let may_cost = |name: &str| {
        let source = profile.providers.get(name);
        source.is_some_and(|source| source.instance().may_cost())
    };
    let paid = profile.modes.iter().filter(|mode| !is_free(mode));
    let providers = paid
        .map(|mode| mode.provider.as_str())
        .filter(|name| may_cost(name));
    let runners = profile.modes.iter().flat_map(|mode| mode.runners.values());
    let runners = runners
        .filter(|used| used.runner.may_cost())
        .map(|used| used.id.as_str());
    let costly: BTreeSet<&str> = providers
        .chain(runners)
        .chain((!judges(&profile.description).is_empty()).then_some("the judge"))
        .collect();
    if costly.is_empty() {
        return Ok(true);
    }
    consent::is_given(|| {
        let plan = profile.plan()?;
        let part = profile.execution.shard.as_ref();
        let trials = part.map_or(plan.len() as usize, |part| part.cells(&plan).len());
        let costly = costly.into_iter().collect::<Vec<_>>().join(", ");
        let estimate = Estimate::of(suite)?.sentence();
        let mut lines = vec![format!(
            "{trials} trials with {costly} may cost money; {estimate}."
        )];
        // People want to know what the trials can show before they pay; without it they can still decide.
        lines.extend(plan::short_lines(suite).unwrap_or_default());
        Ok(lines.join("\n"))
    })
}

/// Runs a suite to its end, or to the next signal.
pub(super) fn in_runtime(
    suite: LoadedSuite,
    target: RunTarget,
    listener: Arc<dyn Listener>,
) -> Result<ProfileSuiteResult> {
    let mut profile = suite.profile;
    profile.provenance.extend(provenance(&suite.path));
    diagnostics::start_for_suite(suite.log_level);
    let programs = suite.programs.map(Arc::new);
    let listener: Arc<dyn Listener> = Arc::new(Logs {
        programs: programs.clone(),
        secrets: profile.secrets.clone(),
        listener,
    });
    // Every program under way takes a few files; where the limit cannot be raised, fewer run at once.
    let _ = assize_process::raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let result = runtime.block_on(async {
        let cancel = CancellationToken::new();
        tokio::spawn(cancel_on_signal(cancel.clone()));
        run_profile_suite(profile, target, listener, cancel).await
    });
    if let Some(programs) = programs {
        programs.end();
    }
    Ok(result?)
}

fn redact(secrets: &Secrets) -> Redact {
    let redactor = Redactor::new(secrets);
    Arc::new(move |text| redactor.text(text).into_owned())
}

/// Sends the log and the output of plugin programs into the run directory as soon as there is one.
struct Logs {
    programs: Option<Arc<PluginHost>>,
    secrets: Secrets,
    listener: Arc<dyn Listener>,
}

impl Listener for Logs {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::RunStarted { directory, .. } = event {
            diagnostics::keep_in(directory, || Redactor::new(&self.secrets));
            let kept = self.programs.as_ref().map_or(Ok(()), |programs| {
                programs.keep_logs_in(&directory.join("plugins"), &redact(&self.secrets))
            });
            if let Err(error) = kept {
                warn(&format!("the log of plugins cannot be written: {error}"));
            }
        }
        self.listener.on_event(event);
    }
}

/// The first signal stops the run in good order, the second at once.
async fn cancel_on_signal(cancel: CancellationToken) {
    let mut terminate =
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).ok();
    for again in [false, true] {
        let terminated = async {
            match &mut terminate {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = terminated => {}
        }
        if again {
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
        say(
            "\nstopping: running sessions are ended, finished trials are kept (again to stop at once)",
        );
        cancel.cancel();
    }
}

/// Further facts for the manifest: the suite's directory, the machine, the commit.
fn provenance(suite: &Path) -> JsonMap {
    let absolute = std::path::absolute(suite).unwrap_or_else(|_| suite.to_owned());
    let directory = absolute.parent().unwrap_or(Path::new("."));
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git")
            .arg("-C")
            .arg(directory)
            .args(arguments)
            .stderr(std::process::Stdio::null())
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"]);
    let changed = commit
        .as_ref()
        .and_then(|_| git(&["status", "--porcelain", "--untracked-files=no"]));
    let fields = json!({
        "suitePath": absolute,
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "cpus": std::thread::available_parallelism().map(usize::from).ok(),
        "git": commit.map(|commit| json!({
            "commit": commit,
            "dirty": changed.map(|changed| !changed.is_empty()),
        })),
    });
    fields.as_object().cloned().unwrap_or_default()
}

/// A finished run: its numbers and the exit code that follows from them.
pub(super) struct Judged {
    pub(super) summary: Summary,
    pub(super) exit: Exit,
}

/// Summarizes a run, judges its gates and writes its report.
pub(super) fn judge(result: &ProfileSuiteResult, baseline: Option<&Source>) -> Result<Judged> {
    let sources = [Source::of_run(&result.run()?)?.looked_at("run")?];
    let mut summary = verdict::judge(
        &sources[0],
        &sources[0].gates()?,
        baseline,
        Wanted::default(),
    )?;
    let modes = summary.modes.iter();
    let is_judged = modes.fold(0, |sum, (_, mode)| sum + mode.success.trials) > 0;
    if !is_judged {
        // No gate passes or fails on nothing.
        summary.gates.clear();
    }
    // Also where the trials that stopped a mode were its last ones.
    let is_stopped = result.voids.iter().any(|void| void.stopped);
    let exit = match result.open {
        0 if is_judged && !is_stopped => Exit::of_gates(&summary.gates),
        _ => Exit::Incomplete,
    };
    if let Err(error) = report::write_beside(&summary, &sources) {
        // The trials are safe, and `assize report` can try again.
        warn(&format!("the report could not be written: {error:#}"));
    }
    github::append_job_summary(&summary, &report::title(&sources));
    if !is_judged && result.done > 0 {
        say("nothing was judged: every trial is void");
    }
    Ok(Judged { summary, exit })
}

/// Shows the table, where everything is stored, and what to do next.
fn conclude(
    result: &ProfileSuiteResult,
    suite: &Path,
    baseline: Option<&Source>,
    arguments: &RunArguments,
) -> Result<Exit> {
    let Judged { summary, exit } = judge(result, baseline)?;
    match arguments.json {
        true => {
            JsonLines::conclude(&summary);
            print_voids(&result.voids);
        }
        false => print_result(&summary, &result.directory),
    }
    if arguments.design.aa {
        noise::conclude(&summary, &result.directory, &result.run()?.manifest().name);
    }
    if let Some(stop) = &result.budget {
        say(plain(&budget::words(stop)));
    }
    if result.open > 0 {
        let mut command = format!("assize run {} --resume {}", suite.display(), result.run_id);
        if let Some(stop) = &result.budget {
            command.push_str(&budget::larger(stop, result.done, result.open));
        }
        if let Some(output) = &arguments.output {
            command.push_str(&format!(" --output {}", output.display()));
        }
        say(format!(
            "{} of {} trials are open; to resume:\n  {}",
            result.open,
            result.open + result.done,
            plain(&command)
        ));
    }
    Ok(exit)
}

/// Prints why trials are void, the most frequent reasons of each mode.
pub(super) fn print_voids(voids: &[VoidReason]) {
    const MOST: usize = 3;
    let mut of_mode = 0;
    for (number, void) in voids.iter().enumerate() {
        let is_same = number > 0 && voids[number - 1].mode == void.mode;
        of_mode = if is_same { of_mode + 1 } else { 0 };
        if of_mode >= MOST {
            continue;
        }
        let trials = match void.trials {
            1 => "1 trial is".to_owned(),
            trials => format!("{trials} trials are"),
        };
        let look = void.position.map_or_else(String::new, |position| {
            format!("\n  look at one: assize show last/{position}")
        });
        say(format!(
            "mode {}: {trials} void: {}{look}",
            plain(&void.mode),
            one_line(&void.reason, 600)
        ));
    }
}

/// The table of a run and the paths to its parts.
pub(super) fn print_result(summary: &Summary, directory: &Path) {
    print_summary(summary, &last_run::name_of(directory));
    let print_path = |label: &str, path: &Path| {
        print(format!("{label:<7} {}", plain(&path.display().to_string())));
    };
    print_path("rows", &RunFile::Rows.within(directory));
    let report = RunFile::Report.within(directory).join("report.html");
    let traces = RunFile::Traces.within(directory).join("");
    for (label, path) in [
        ("records", RunFile::RunRecords.within(directory)),
        ("scores", RunFile::Scores.within(directory)),
        ("traces", traces),
        ("log", RunFile::Log.within(directory)),
        ("report", report),
    ] {
        if path.exists() {
            print_path(label, &path);
        }
    }
}

impl UsageError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }
}
