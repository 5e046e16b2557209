//! `assize submit`: hands the shards of a suite to a scheduler that is already there, and looks after them.

mod environment;
mod kubernetes;
mod progress;
mod ray;
mod record;
mod slurm;
mod template;
mod tool;

use crate::cli::{
    CollectArguments, KubernetesArguments, SchedulerArgument, SubmissionArguments, SubmitAction,
    SubmitArguments,
};
use crate::commands::estimate::last_run_like;
use crate::commands::{UsageError, merge, rounds, shards};
use crate::exit::Exit;
use crate::suite::{self, LoadedSuite, Selection};
use crate::terminal::{plain, print, say, warn};
use anyhow::{Context, Result};
use assize_contracts::{Plugins, Timestamp};
use assize_engine::store::{self, RunFile, new_run_id};
use assize_engine::{Plan, ProfileSuite, ProfileSuiteResult, ShardPlan};
use progress::Progress;
use record::Submission;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use template::Values;

/// Restarts of a shard that was killed or failed, and how often `--wait` submits the shards of a round.
const ATTEMPTS: u32 = 3;
const ATTEMPTS_OF_JOBS: u32 = 3;

/// Default memory of Assize itself and of one trial: an agent with its tools.
const OWN_MEMORY_MB: u64 = 512;
const TRIAL_MEMORY_MB: u64 = 1024;

pub(crate) fn submit(arguments: &SubmitArguments, plugins: &Plugins) -> Result<Exit> {
    match &arguments.action {
        None => submit_suite(arguments, plugins),
        Some(SubmitAction::Status(which)) => status(which),
        Some(SubmitAction::Collect(arguments)) => {
            Ok(collect(&find(&arguments.which)?, arguments)?.exit)
        }
        Some(SubmitAction::Retry(which)) => retry(&find(which)?),
        Some(SubmitAction::Cancel(which)) => cancel(&find(which)?),
        Some(SubmitAction::Template { scheduler }) => {
            print(template_of(*scheduler).trim_end());
            Ok(Exit::Done)
        }
    }
}

/// Everything a job file is made of.
struct Job<'a> {
    submission: &'a Submission,
    profile: &'a ProfileSuite,
    template: Option<&'a Path>,
    kubernetes: &'a KubernetesArguments,
    ray_address: Option<&'a str>,
    /// The program as the machines know it.
    program: String,
    /// The suite as the machines know it.
    suite: String,
    costs: Option<PathBuf>,
    at_once: Option<u32>,
    attempts: u32,
    minutes: u64,
    memory_mb: u64,
    cpus: usize,
}

impl Job<'_> {
    /// Values that all templates can use.
    fn values(&self) -> Values {
        let mut values = Values::default();
        values.set("shards", self.submission.shards);
        values.set("minutes", self.minutes);
        values.set("memory_mb", self.memory_mb);
        values.set("cpus", self.cpus);
        values.set("attempts", self.attempts);
        values
    }

    /// The command of every shard, but for its number.
    fn run_command(&self) -> Vec<String> {
        let submission = self.submission;
        let mut command = vec![self.program.clone(), "run".to_owned(), self.suite.clone()];
        let mut flag = |parts: &[&str]| command.extend(parts.iter().map(|part| (*part).to_owned()));
        flag(&["--resume", "auto", "--yes", "--quiet"]);
        match submission.on {
            SchedulerArgument::Slurm => {
                flag(&[
                    "--output",
                    &submission.shards_directory().display().to_string(),
                ]);
            }
            SchedulerArgument::Kubernetes => {
                flag(&[
                    "--output",
                    &format!("{}/{}/shards", kubernetes::RESULTS, submission.id),
                ]);
            }
            // The driver gives every task a directory of its own.
            SchedulerArgument::Ray => {}
        }
        if let Some(most) = self.at_once.map(|most| most.min(submission.shards)) {
            flag(&["--running-shards", &most.to_string()]);
        } else {
            flag(&["--running-shards", &submission.shards.to_string()]);
        }
        if let Some(costs) = &self.costs {
            flag(&["--shard-costs", &costs.display().to_string()]);
        }
        if let Some(results) = &submission.results {
            flag(&["--results", results]);
        }
        // Drivers of Ray send the file's content along: nodes need no shared disk. Pods find it in the object store.
        if submission.has_rounds && submission.on == SchedulerArgument::Slurm {
            flag(&["--after", &submission.round_file().display().to_string()]);
        }
        command.extend(submission.run_flags.iter().cloned());
        command
    }

    /// The Secret that pods get their variables from. Without any that is secret, none is needed.
    fn secret_name(&self) -> Option<String> {
        let named = self.kubernetes.secret.clone();
        let own = || kubernetes::job_name(&self.submission.id);
        named.or_else(|| (!self.submission.variables.is_empty()).then(own))
    }

    /// The job file.
    fn render(&self) -> Result<String> {
        match self.submission.on {
            SchedulerArgument::Slurm => slurm::render(self),
            SchedulerArgument::Kubernetes => kubernetes::render(self),
            SchedulerArgument::Ray => ray::render(self),
        }
    }
}

/// Shards that the scheduler still has.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Activity {
    running: u64,
    waiting: u64,
}

impl Activity {
    fn is_over(self) -> bool {
        self.running + self.waiting == 0
    }
}

fn submit_suite(arguments: &SubmitArguments, plugins: &Plugins) -> Result<Exit> {
    let path = arguments.suite.as_deref().unwrap_or(Path::new("."));
    refuse_flags(&arguments.run_flags)?;
    if let Some(url) = &arguments.results {
        crate::commands::results::check_url(url)?;
    }
    let suite = suite::load(path, &selection(&arguments.run_flags)?, plugins)?;
    let submission = submission_of(arguments, &suite)?;
    let is_balanced = submission.on != SchedulerArgument::Kubernetes;
    let costs = expected_costs(&suite)?.filter(|_| is_balanced);
    let job = job(&submission, &suite, arguments, costs.is_some())?;
    let rendered = job.render()?;
    if arguments.dry_run {
        print(rendered.trim_end());
        print_next_steps(&job);
        return Ok(Exit::Done);
    }
    submission.create()?;
    if let Some(costs) = &costs {
        submission.write_file(COSTS, format!("{costs:#}\n").as_bytes())?;
    }
    submission.write_file(&submission.job_file, rendered.as_bytes())?;
    if submission.on == SchedulerArgument::Ray {
        ray::write_settings(&job)?;
    }
    print_next_steps(&job);
    let submission = start(submission, None)?;
    print_submitted(&submission);
    if arguments.wait {
        return wait_and_collect(submission);
    }
    let name = plain(&submission.id);
    say(format!(
        "next:\n  assize submit status {name}\n  assize submit collect {name}"
    ));
    Ok(Exit::Done)
}

/// The selection of a run with these flags: time, memory and trials follow from them as well.
fn selection(run_flags: &[String]) -> Result<Selection> {
    let flags = super::run::of_words(run_flags).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        UsageError {
            message: format!("flags after `--`: {}", first.trim_start_matches("error: ")),
            hint: Some("they are flags of `assize run`".to_owned()),
        }
    })?;
    Ok(super::run::selection(&flags))
}

fn submission_of(arguments: &SubmitArguments, suite: &LoadedSuite) -> Result<Submission> {
    let (Some(on), Some(shards)) = (arguments.on, arguments.shards) else {
        unreachable!("the command line requires both");
    };
    let has_looks = suite.profile.reading.until.is_some();
    let is_limited = !suite.profile.execution.budget.is_unlimited();
    if has_looks && on == SchedulerArgument::Kubernetes && arguments.results.is_none() {
        return Err(UsageError {
            message:
                "the rounds of `execution.until` need a place where pods find what was decided"
                    .to_owned(),
            hint: Some("give an object store with `--results s3://bucket/prefix`".to_owned()),
        }
        .into());
    }
    let id = format!(
        "{}-{}",
        new_run_id(&Timestamp::now()),
        plain_name(&suite.profile.name)
    );
    let submissions = submissions_of(&suite.path, arguments.directory.as_deref());
    Ok(Submission {
        directory: std::path::absolute(submissions)?.join(&id),
        id,
        on,
        created_at: Timestamp::now(),
        suite: std::path::absolute(&suite.path)?,
        shards,
        job: None,
        job_file: job_file(on).to_owned(),
        run_flags: arguments.run_flags.clone(),
        variables: variables(on, &suite.profile, arguments)?,
        results: arguments.results.clone(),
        has_rounds: has_looks || is_limited,
        namespace: arguments.kubernetes.namespace.clone(),
        python: arguments.ray.python.clone(),
    })
}

fn print_submitted(submission: &Submission) {
    say(format!(
        "submitted {} shards as {} {}",
        submission.shards,
        submission.on.job_word(),
        submission.job.as_deref().unwrap_or_default()
    ));
    print(format!(
        "submission {}",
        plain(&submission.directory.display().to_string())
    ));
}

/// Writes the values that shards need, then submits; a submission that fails leaves no values behind.
fn start(mut submission: Submission, only: Option<&[u32]>) -> Result<Submission> {
    if submission.on != SchedulerArgument::Kubernetes {
        submission.write_environment(&environment::assignments(&submission.variables)?)?;
    }
    let submitted = match submission.on {
        SchedulerArgument::Slurm => slurm::submit(&submission, only),
        SchedulerArgument::Kubernetes => kubernetes::submit(&submission),
        SchedulerArgument::Ray => ray::submit(&submission),
    };
    match submitted {
        Ok(job) => submission.job = Some(job),
        Err(error) => {
            submission.remove_environment()?;
            return Err(error);
        }
    }
    submission.write()?;
    Ok(submission)
}

fn activity(submission: &Submission) -> Result<Activity> {
    match submission.on {
        SchedulerArgument::Slurm => slurm::activity(submission),
        SchedulerArgument::Kubernetes => kubernetes::activity(submission),
        SchedulerArgument::Ray => ray::activity(submission),
    }
}

fn status(which: &SubmissionArguments) -> Result<Exit> {
    let submission = find(which)?;
    let active = activity(&submission)?;
    let progress = Progress::of(&submission)?;
    match which.json {
        true => print(progress.described(&submission, active).to_string()),
        false => progress.show(&submission, active),
    }
    Ok(match progress.is_complete() {
        true => Exit::Done,
        false => Exit::Incomplete,
    })
}

/// Looks after the job until it has ended, submits unfinished shards again, and merges; round by round where looks are declared.
fn wait_and_collect(mut submission: Submission) -> Result<Exit> {
    loop {
        for attempt in 1..=ATTEMPTS_OF_JOBS {
            wait(&submission)?;
            let open = Progress::of(&submission)?.open_shards();
            let is_last = attempt == ATTEMPTS_OF_JOBS;
            if open.is_empty() || is_last || submission.on == SchedulerArgument::Kubernetes {
                break;
            }
            say(format!(
                "{} shards are unfinished and submitted again",
                open.len()
            ));
            submission = start(submission, Some(&open))?;
        }
        let collected = collect(&submission, &CollectArguments::default())?;
        if !collected.is_next_round {
            return Ok(collected.exit);
        }
        submission = submit_open(submission)?;
    }
}

fn wait(submission: &Submission) -> Result<()> {
    let mut pause = Duration::from_millis(500);
    let mut last = None;
    loop {
        let active = activity(submission)?;
        if active.is_over() {
            return Ok(());
        }
        if last != Some(active) {
            say(format!(
                "{} running, {} waiting",
                active.running, active.waiting
            ));
            last = Some(active);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(10));
    }
}

/// The result of merging.
struct Collected {
    exit: Exit,
    /// The round is complete, and another one is next.
    is_next_round: bool,
}

/// Merges the shards, removes the values they needed, writes the report and gives the verdict.
fn collect(submission: &Submission, arguments: &CollectArguments) -> Result<Collected> {
    let is_over = activity(submission)?.is_over();
    if !is_over && !arguments.partial {
        return Err(UsageError {
            message: "shards are still waiting or running".to_owned(),
            hint: Some(
                "wait for them (`assize submit status`), merge what is there with --partial, or `assize submit cancel`"
                    .to_owned(),
            ),
        }
        .into());
    }
    if is_over {
        submission.remove_environment()?;
    }
    let out = arguments.out.clone().unwrap_or_else(|| submission.merged());
    let from = match (&arguments.from, &submission.results) {
        (Some(from), _) => from.clone(),
        (None, Some(url)) => url.clone(),
        (None, None) => submission.shards_directory().display().to_string(),
    };
    let gathered = merge::merge_from(&[from], &out)?;
    gathered.show_briefly();
    if submission.has_rounds {
        let record = std::fs::read(RunFile::Round.within(&out))?;
        submission.write_file(RunFile::Round.name(), &record)?;
    }
    let (merged, standing) = (&gathered.merged, &gathered.standing);
    let is_next_round = standing.begins(merged);
    let result = ProfileSuiteResult {
        run_id: merged.run.id().to_owned(),
        directory: out,
        done: merged.rows,
        open: standing.missing,
        budget: None,
        voids: Vec::new(),
    };
    let judged = super::run::judge(&result, None)?;
    super::run::print_result(&judged.summary, &result.directory);
    let directory = plain(&submission.directory.display().to_string());
    if let (true, Some((round, of))) = (is_next_round, standing.round) {
        say(format!(
            "round {round} of {of} is next, {} trials:\n  assize submit next {directory}",
            standing.missing
        ));
    } else if result.open > 0 && is_over {
        say(format!(
            "{} trials are missing; to submit exactly the shards that have open ones:\n  assize submit retry {directory}",
            result.open
        ));
    }
    Ok(Collected {
        exit: judged.exit,
        is_next_round,
    })
}

/// Submits the shards with open trials again, or those of the next round.
fn retry(submission: &Submission) -> Result<Exit> {
    if !activity(submission)?.is_over() {
        return Err(UsageError::new("shards are still waiting or running").into());
    }
    submit_open(submission.clone())?;
    Ok(Exit::Done)
}

fn submit_open(submission: Submission) -> Result<Submission> {
    let open = Progress::of(&submission)?.open_shards();
    if open.is_empty() {
        let next = match submission.has_rounds {
            true => "; `assize submit collect` merges them, and says whether another round is next",
            false => "",
        };
        say(format!("every shard is done{next}"));
        return Ok(submission);
    }
    if submission.on == SchedulerArgument::Kubernetes {
        // A job of the same name must be gone before it can be made again; finished shards end at once.
        kubernetes::cancel(&submission)?;
    }
    let submission = start(submission, Some(&open))?;
    say(format!(
        "submitted {} shards as {} {}",
        open.len(),
        submission.on.job_word(),
        submission.job.as_deref().unwrap_or_default()
    ));
    Ok(submission)
}

fn cancel(submission: &Submission) -> Result<Exit> {
    let cancelled = match submission.on {
        SchedulerArgument::Slurm => slurm::cancel(submission),
        SchedulerArgument::Kubernetes => kubernetes::cancel(submission),
        SchedulerArgument::Ray => ray::cancel(submission),
    };
    // Also where the scheduler cannot be asked: no value outlives the wish to end it all.
    submission.remove_environment()?;
    cancelled?;
    say("cancelled; finished trials are kept: `assize submit collect` merges them");
    Ok(Exit::Done)
}

fn find(which: &SubmissionArguments) -> Result<Submission> {
    let suite = match &which.suite {
        Some(path) => suite::find(path).map_err(suite::SuiteError::from)?,
        None => PathBuf::from("assize.yaml"),
    };
    let all = submissions_of(&suite, None);
    Submission::find(&all, &which.submission)
}

/// Submissions lie beside the runs of the suite.
fn submissions_of(suite: &Path, given: Option<&Path>) -> PathBuf {
    let beside = || {
        suite
            .parent()
            .unwrap_or(Path::new(""))
            .join(".assize/submissions")
    };
    given.map_or_else(beside, Path::to_owned)
}

const COSTS: &str = "costs.json";

/// Seconds by scenario, from the last run of the suite. Absent where there is none.
fn expected_costs(suite: &LoadedSuite) -> Result<Option<Value>> {
    let Some(run) = last_run_like(&suite.profile.name, &store::list(&suite.results_dir)?) else {
        return Ok(None);
    };
    let times = shards::mean_times(&run)?;
    let seconds = times.into_iter().map(|(id, ms)| (id, json!(ms / 1000.0)));
    let seconds: serde_json::Map<String, Value> = seconds.collect();
    Ok((!seconds.is_empty()).then_some(Value::Object(seconds)))
}

fn job<'a>(
    submission: &'a Submission,
    suite: &'a LoadedSuite,
    arguments: &'a SubmitArguments,
    has_costs: bool,
) -> Result<Job<'a>> {
    let is_elsewhere = submission.on == SchedulerArgument::Kubernetes;
    let own = std::env::current_exe().context("cannot find this program")?;
    let program = match (&arguments.program, is_elsewhere) {
        (Some(program), _) => program.clone(),
        (None, true) => "assize".to_owned(),
        (None, false) => own.display().to_string(),
    };
    let known_as = arguments.kubernetes.suite_path.clone();
    let suite_path = match is_elsewhere {
        true => known_as.unwrap_or_else(|| suite.path.display().to_string()),
        false => submission.suite.display().to_string(),
    };
    let profile = &suite.profile;
    let concurrency = profile.execution.concurrency;
    let trials = concurrency as u64;
    Ok(Job {
        submission,
        profile,
        template: arguments.template.as_deref(),
        kubernetes: &arguments.kubernetes,
        ray_address: arguments.ray.address.as_deref(),
        program,
        suite: suite_path,
        costs: has_costs.then(|| submission.directory.join(COSTS)),
        at_once: arguments.at_once,
        attempts: ATTEMPTS,
        minutes: match arguments.minutes {
            Some(minutes) => minutes,
            None => longest_minutes(profile, submission.shards)?,
        },
        memory_mb: arguments
            .memory
            .unwrap_or(OWN_MEMORY_MB + trials * TRIAL_MEMORY_MB),
        cpus: arguments.cpus.unwrap_or(concurrency),
    })
}

/// The time that no shard needs more than: every trial and retry to its time limit, so many at once, and some time around it.
fn longest_minutes(profile: &ProfileSuite, shards: u32) -> Result<u64> {
    const AROUND: u64 = 10;
    let plan: Plan = profile.plan()?;
    let mut longest_ms = 0;
    for round in rounds::all(profile) {
        let first = ShardPlan {
            shard: assize_engine::Shard {
                index: 1,
                count: shards,
            },
            costs: profile.expected_costs(),
            round,
        };
        let mut total_ms = 0;
        for position in first.cells(&plan) {
            let cell = plan.cell(position);
            total_ms += match (
                profile.scenarios.get(cell.scenario as usize),
                &profile.tasks,
            ) {
                (Some(scenario), _) => {
                    scenario.timeout_ms * u64::from(scenario.allowed_retries + 1)
                }
                (None, Some(tasks)) => tasks.timeout_ms * u64::from(tasks.allowed_retries + 1),
                (None, None) => 0,
            };
        }
        longest_ms = longest_ms.max(total_ms);
    }
    let at_once = profile.execution.concurrency.max(1) as u64;
    Ok((longest_ms / at_once).div_ceil(60_000) * 11 / 10 + AROUND)
}

/// Variables by name. In Kubernetes only what the suite needs is in the Secret: an image has its own PATH.
fn variables(
    on: SchedulerArgument,
    profile: &ProfileSuite,
    arguments: &SubmitArguments,
) -> Result<Vec<String>> {
    let has_store = arguments.results.is_some();
    let needed = environment::needed(profile, &arguments.env, has_store)?;
    if on != SchedulerArgument::Kubernetes {
        return Ok(needed);
    }
    let secret = environment::secret_names(profile);
    let is_wanted = |name: &String| {
        secret.contains(name)
            || arguments.env.contains(name)
            || name.starts_with("AWS_")
            || name.starts_with("AZURE_")
    };
    Ok(needed.into_iter().filter(is_wanted).collect())
}

/// Prints what the user has to know or do besides.
fn print_next_steps(job: &Job<'_>) {
    let submission = job.submission;
    if submission.on == SchedulerArgument::Kubernetes {
        if let (Some(secret), None) = (job.secret_name(), &job.kubernetes.secret) {
            say(format!(
                "pods get their keys from a Secret; make it first:\n  {}",
                kubernetes::secret_command(submission, &secret)
            ));
        }
        if submission.results.is_none() {
            say(format!(
                "shards write to {0}/shards on the volume; merge them where it is mounted:\n  assize submit collect {0} --from /MOUNT/{0}/shards",
                submission.id
            ));
        }
        return;
    }
    let names = submission.variables.join(", ");
    say(format!(
        "shards get these variables, by a file that only you can read: {names}"
    ));
    if job.profile.execution.limits.is_empty() && job.at_once.is_none() {
        warn(
            "nothing limits how many shards reach the provider at once; `--at-once N` does, and `execution.limits` in the suite is divided over them",
        );
    }
}

/// Flags that shards get from the submission itself.
fn refuse_flags(flags: &[String]) -> Result<()> {
    const OWN: [&str; 8] = [
        "--after",
        "--shard",
        "--shard-costs",
        "--resume",
        "--output",
        "--results",
        "--running-shards",
        "--dry-run",
    ];
    let name = |flag: &String| flag.split('=').next().unwrap_or_default().to_owned();
    match flags
        .iter()
        .map(name)
        .find(|name| OWN.contains(&name.as_str()))
    {
        None => Ok(()),
        Some(flag) => {
            Err(UsageError::new(format!("{flag} is set by `assize submit` itself")).into())
        }
    }
}

fn job_file(on: SchedulerArgument) -> &'static str {
    match on {
        SchedulerArgument::Slurm => slurm::FILE,
        SchedulerArgument::Kubernetes => kubernetes::FILE,
        SchedulerArgument::Ray => ray::FILE,
    }
}

fn template_of(scheduler: SchedulerArgument) -> &'static str {
    match scheduler {
        SchedulerArgument::Slurm => slurm::TEMPLATE,
        SchedulerArgument::Kubernetes => kubernetes::TEMPLATE,
        SchedulerArgument::Ray => ray::TEMPLATE,
    }
}

/// Letters, digits and a few signs: fit for names of jobs and directories.
fn plain_name(name: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || "._-".contains(c) {
        true => c,
        false => '-',
    };
    name.chars().map(plain).take(60).collect()
}

fn quoted(text: &str) -> Result<String> {
    Ok(shlex::try_quote(text)
        .context("a path holds a NUL")?
        .into_owned())
}

fn joined(words: &[String]) -> Result<String> {
    shlex::try_join(words.iter().map(String::as_str)).context("an argument holds a NUL")
}
