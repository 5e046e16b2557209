//! `assize run --shard I/N`: the part of the plan that this machine runs, and the message at the end.

use crate::cli::{RunArguments, ShardArguments};
use crate::commands::results::Uploads;
use crate::commands::rounds::{self, Own, RoundRecord};
use crate::commands::run::in_runtime;
use crate::commands::{UsageError, budget};
use crate::exit::Exit;
use crate::suite::LoadedSuite;
use crate::terminal::{plain, print, say};
use anyhow::{Context, Result};
use assize_engine::store::{Manifest, RunDirectory};
use assize_engine::{
    Listener, Order, ProfileSuite, ProfileSuiteResult, Round, RunTarget, Shard, ShardPlan,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Narrows a suite down to the shard that was asked for, in the round that is next.
pub(super) fn choose(suite: &mut LoadedSuite, sharding: &ShardArguments) -> Result<()> {
    let Some(shard) = sharding.shard else {
        return Ok(());
    };
    let record = record_for(&suite.profile, sharding)?;
    let round = match &record {
        // Nothing is left to do, and nothing must be divided.
        Some(record) if record.is_finished => None,
        record => rounds::round_of(&suite.profile, record.as_ref())?,
    };
    choose_again(suite, shard, round, sharding)?;
    suite.profile.execution.after = record.and_then(|record| record.after());
    Ok(())
}

/// The facts about the merged run, where a shard must know them: where looks or limits are declared.
fn record_for(profile: &ProfileSuite, sharding: &ShardArguments) -> Result<Option<RoundRecord>> {
    let is_needed = profile.reading.until.is_some() || !profile.execution.budget.is_unlimited();
    let url = sharding.results.as_deref().filter(|_| is_needed);
    RoundRecord::of_shard(sharding.after.as_deref(), url)
}

/// True if the merged run needs no further round. Said, and a job that asks for it ends well.
pub(super) fn is_finished(suite: &LoadedSuite, sharding: &ShardArguments) -> Result<bool> {
    let is_finished = sharding.shard.is_some()
        && record_for(&suite.profile, sharding)?.is_some_and(|record| record.is_finished);
    if is_finished {
        say("the merged run is finished: no round is left");
    }
    Ok(is_finished)
}

/// The same with a shard that is known from elsewhere.
pub(super) fn choose_again(
    suite: &mut LoadedSuite,
    shard: Shard,
    round: Option<Round>,
    sharding: &ShardArguments,
) -> Result<()> {
    let costs = match &sharding.shard_costs {
        None => suite.profile.expected_costs(),
        Some(source) => costs_of(&suite.profile, source, &suite.results_dir)?,
    };
    suite.profile.execution.shard = Some(ShardPlan {
        shard,
        costs,
        round,
    });
    if let Some(running) = sharding.running_shards {
        divide_limits(&mut suite.profile, running as usize);
    }
    Ok(())
}

/// Gives a shard its share of the budget: an even part, or of what others have left where they were merged before.
pub(super) fn share_budget(
    suite: &mut LoadedSuite,
    target: &RunTarget,
    arguments: &RunArguments,
) -> Result<()> {
    let flags = json!(flags_of(arguments));
    let provenance = &mut suite.profile.provenance;
    provenance.insert(FLAGS.to_owned(), flags);
    let budget = suite.profile.execution.budget;
    let Some(plan) = suite.profile.execution.shard.as_ref() else {
        return Ok(());
    };
    if budget.is_unlimited() {
        return Ok(());
    }
    let record = record_for(&suite.profile, &arguments.sharding)?;
    let share = match (&record, target) {
        (None, _) => budget.divided(plan.shard.count),
        (Some(record), RunTarget::New(_)) => record.share(&budget, plan.shard, &Own::default())?,
        (Some(record), RunTarget::Resume(run) | RunTarget::ResumeVoid(run)) => {
            record.share(&budget, plan.shard, &Own::of(run, record)?)?
        }
    };
    suite.profile.execution.budget = share;
    let whole = json!(budget);
    let provenance = &mut suite.profile.provenance;
    provenance.insert(rounds::BUDGET.to_owned(), whole);
    Ok(())
}

/// The key of a shard's provenance that says by which flags it was planned.
const FLAGS: &str = "runFlags";

/// Flags that decide which trials there are and how they are run, as they would be typed.
fn flags_of(arguments: &RunArguments) -> Vec<String> {
    let mut flags = Vec::new();
    let mut add = |flag: &str, values: Vec<String>| {
        for value in values {
            flags.extend([flag.to_owned(), value]);
        }
    };
    fn text(value: Option<impl ToString>) -> Vec<String> {
        value.iter().map(ToString::to_string).collect()
    }
    let design = arguments.design.budget();
    add("--mode", arguments.mode.clone());
    add("--model", arguments.model.clone());
    add("--scenario", arguments.scenario.clone());
    add("--tag", arguments.tag.clone());
    add("--scenario-set", text(arguments.scenario_set.as_ref()));
    add("--repetitions", text(arguments.repetitions));
    add("--retries", text(arguments.retries));
    add(
        "--order",
        text(arguments.order.map(|order| Order::from(order).as_str())),
    );
    add("--concurrency", text(arguments.concurrency));
    add("--seed", text(arguments.seed));
    add("--timeout", text(arguments.timeout));
    add("--max-cost", text(design.usd));
    add("--max-tokens", text(design.tokens));
    add("--max-time", text(design.minutes));
    add(
        "--shard-costs",
        text(arguments.sharding.shard_costs.as_ref()),
    );
    add("--running-shards", text(arguments.sharding.running_shards));
    let switches = [
        ("--skip-warmup", arguments.skip_warmup),
        ("--no-preflight", arguments.no_preflight),
        ("--fail-fast", arguments.fail_fast),
        ("--aa", arguments.design.aa),
        ("--yes", arguments.yes),
    ];
    let given = switches.iter().filter(|(_, is_given)| *is_given);
    flags.extend(given.map(|(flag, _)| (*flag).to_owned()));
    flags
}

/// The flags by which the shards of a run were planned.
pub(super) fn recorded_flags(manifest: &Manifest) -> Vec<String> {
    let recorded = manifest.provenance.get(FLAGS).and_then(Value::as_array);
    let words = recorded.into_iter().flatten().filter_map(Value::as_str);
    words.map(str::to_owned).collect()
}

/// True if the run will be, or is, a part of a plan.
pub(super) fn is_shard(profile: &ProfileSuite, target: &RunTarget) -> bool {
    match target {
        RunTarget::New(_) => profile.execution.shard.is_some(),
        RunTarget::Resume(run) | RunTarget::ResumeVoid(run) => run.manifest().shard.is_some(),
    }
}

/// A resumed run keeps its own part of the suite, so flags that choose another one make no sense.
pub(super) fn refuse_with_resume(arguments: &RunArguments) -> Result<()> {
    let given = [
        ("--mode", !arguments.mode.is_empty()),
        ("--model", !arguments.model.is_empty()),
        ("--scenario", !arguments.scenario.is_empty()),
        ("--tag", !arguments.tag.is_empty()),
        ("--scenario-set", arguments.scenario_set.is_some()),
        ("--order", arguments.order.is_some()),
        ("--seed", arguments.seed.is_some()),
        ("--dry-run", arguments.dry_run),
        ("--shard", arguments.sharding.shard.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => Err(UsageError {
            message: format!("{flag} cannot be used with --resume ID: a run keeps its own"),
            hint: Some(
                "leave it out, or let `--resume auto` find the run that fits the flags".to_owned(),
            ),
        }
        .into()),
    }
}

/// The limits that a suite sets hold for all machines together.
fn divide_limits(profile: &mut ProfileSuite, running: usize) {
    for limit in profile.execution.limits.values_mut() {
        *limit = (*limit / running).max(1);
    }
}

/// The expected cost of every scenario and task, in milliseconds. Those that are not known cost as much as the others on average.
fn costs_of(profile: &ProfileSuite, source: &str, results: &Path) -> Result<Vec<u64>> {
    let known = known_costs(source, results)?;
    let plan = profile.plan()?;
    let average = match known.len() {
        0 => 1.0,
        count => known.values().sum::<f64>() / count as f64,
    };
    let mut costs = Vec::new();
    for number in 0..(plan.scenarios.len() as u32 + plan.tasks) {
        let id = match plan.scenarios.get(number as usize) {
            Some(id) => id.clone(),
            None => task_id(profile, number - plan.scenarios.len() as u32)?,
        };
        costs.push(known.get(&id).copied().unwrap_or(average).max(1.0) as u64);
    }
    Ok(costs)
}

fn task_id(profile: &ProfileSuite, number: u32) -> Result<String> {
    let tasks = profile.tasks.as_ref().context("the plan has tasks")?;
    let task = tasks.source.load(number);
    Ok(task.map_err(anyhow::Error::from_boxed)?.id().to_owned())
}

/// Milliseconds by scenario or task.
fn known_costs(source: &str, results: &Path) -> Result<HashMap<String, f64>> {
    let path = Path::new(source);
    if path.is_file() {
        let text = std::fs::read(path).with_context(|| format!("cannot read `{source}`"))?;
        let seconds: HashMap<String, f64> = serde_json::from_slice(&text).map_err(|error| UsageError {
            message: format!("`{source}` does not hold expected costs: {error}"),
            hint: Some("expected a JSON object of seconds by scenario or task, such as {\"fix-bug\": 120}, or a run".to_owned()),
        })?;
        return Ok(seconds
            .into_iter()
            .map(|(id, seconds)| (id, seconds * 1000.0))
            .collect());
    }
    mean_times(&RunDirectory::find(results, source)?)
}

/// The mean wall time of the trials of every scenario, in milliseconds.
pub(super) fn mean_times(run: &RunDirectory) -> Result<HashMap<String, f64>> {
    let mut sums: HashMap<String, (f64, u32)> = HashMap::new();
    for row in run.rows()? {
        let row = row?;
        if let Some(wall) = row.timing.wall_ms {
            let (sum, count) = sums.entry(row.scenario_id).or_default();
            *sum += wall.value();
            *count += 1;
        }
    }
    let mean = |(id, (sum, count)): (String, (f64, u32))| (id, sum / f64::from(count));
    Ok(sums.into_iter().map(mean).collect())
}

/// Waits while another process writes to the run: a job that was thought lost may still be finishing its trials on its machine, and
/// what it does need not be done again.
pub(super) fn wait_for(run: &mut RunDirectory) -> Result<()> {
    if !run.is_locked() {
        return Ok(());
    }
    say(format!(
        "another process still writes to run {}; waiting for it",
        run.id()
    ));
    while run.is_locked() {
        std::thread::sleep(Duration::from_millis(500));
    }
    *run = RunDirectory::open(run.path())?;
    Ok(())
}

/// Runs a shard to its end, or to the next signal, and uploads its results where that is asked for.
pub(super) fn run(
    suite: LoadedSuite,
    target: RunTarget,
    listener: Arc<dyn Listener>,
    arguments: &RunArguments,
) -> Result<Exit> {
    let Some(url) = &arguments.sharding.results else {
        let result = in_runtime(suite, target, listener)?;
        return Ok(conclude(&result, arguments));
    };
    if arguments.only.is_some() {
        return Err(UsageError {
            message: "--only cannot be used with --results: what was uploaded stays".to_owned(),
            hint: Some("merge the shards, then `assize run --resume RUN --only void`".to_owned()),
        }
        .into());
    }
    let uploads = Uploads::new(url, listener)?;
    let listener: Arc<dyn Listener> = Arc::<Uploads>::clone(&uploads);
    let result = in_runtime(suite, target, listener);
    let uploaded = uploads.finish();
    let result = result?;
    uploaded?;
    Ok(conclude(&result, arguments))
}

/// A shard has no verdict of its own: it says what it did and how to put the shards together.
fn conclude(result: &ProfileSuiteResult, arguments: &RunArguments) -> Exit {
    super::run::print_voids(&result.voids);
    let shard = result
        .run()
        .ok()
        .and_then(|run| run.manifest().shard.clone());
    let name = shard.map_or_else(String::new, |record| match &record.round {
        None => format!(" {}", record.shard),
        Some(round) => format!(
            " {}, round {} (repetitions {} to {})",
            record.shard,
            round.number,
            round.from + 1,
            round.to
        ),
    });
    if !arguments.json && !arguments.quiet {
        let done = match result.done + result.open {
            0 => "no trials: there are fewer blocks than shards".to_owned(),
            planned => format!("{} of {planned} trials are done", result.done),
        };
        say(format!("shard{name}: {done}"));
        if let Some(stop) = &result.budget {
            say(plain(&budget::words(stop)));
            say(
                "this is the share of one shard; what others leave goes to it by `--after`, once they are merged",
            );
        }
        say("`assize merge DIR… --out RUN` puts the shards together and gives the verdict");
    }
    if !arguments.json {
        print(format!(
            "shard   {}",
            plain(&result.directory.display().to_string())
        ));
    }
    match result.open {
        0 => Exit::Done,
        _ => Exit::Incomplete,
    }
}
