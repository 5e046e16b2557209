//! `assize plan`: trials, cost and the differences they can show, before anything is spent.

use crate::cli::{PlanArguments, Where};
use crate::commands::verdict::{self, Source};
use crate::commands::{UsageError, consent, run};
use crate::exit::Exit;
use crate::suite::{self, LoadedSuite, Selection};
use crate::terminal::{Progress, plain, print, say, wrapped};
use anyhow::{Context, Result};
use assize_contracts::{Plugins, ProfileRow};
use assize_engine::RunTarget;
use assize_engine::store::{RunDirectory, list};
use assize_report::{
    Analysis, Estimates, ExperimentPlan, PlanDesign, PlanInput, Summary, read_rows,
};
use assize_stats::Level;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Repetitions of a pilot: the fewest that show how much runs vary.
const PILOT_REPETITIONS: u32 = 2;

pub(crate) fn plan(arguments: &PlanArguments, plugins: &Plugins) -> Result<Exit> {
    if arguments.aa {
        return run::run(&run::of_words(&arguments.as_aa_run())?, plugins);
    }
    let suite = load(arguments, &Selection::default(), plugins)?;
    let source = match (&arguments.pilot, &arguments.from) {
        (Some(blocks), _) => Some(run_pilot(arguments, *blocks, &suite, plugins)?),
        (None, Some(name)) => Some(Source::find(name, &place(arguments), plugins)?),
        (None, None) => latest(&suite)?,
    };
    let known = source.as_ref().map(|source| Known::of(source, &suite));
    let known = known.transpose()?;
    let input = input(arguments, &suite, known.as_ref())?;
    check_metrics(&input)?;
    let plan = ExperimentPlan::new(&input);
    if arguments.json {
        let mut value = serde_json::to_value(&plan)?;
        if let Some(map) = value.as_object_mut() {
            let from = source
                .as_ref()
                .map_or(Value::Null, |source| json!(source.name()));
            map.insert("from".to_owned(), from);
        }
        print(value.to_string());
        return Ok(Exit::Done);
    }
    show(&suite, source.as_ref(), known.as_ref(), &plan);
    Ok(Exit::Done)
}

/// Facts about trials from an earlier run.
struct Known {
    summary: Summary,
    estimates: Estimates,
}

impl Known {
    /// The earlier trials, read as the suite reads its own: its metrics decide, whatever decided then.
    fn of(source: &Source, suite: &LoadedSuite) -> Result<Self> {
        let reading = &suite.profile.reading;
        let mut analysis = source.analysis.clone();
        if let Ok(wanted) = Analysis::of(&reading.analysis) {
            analysis.primary = wanted.primary;
            analysis.statistic = wanted.statistic;
            analysis.statistics = wanted.statistics;
            analysis.directions = wanted.directions;
        }
        analysis.planned_primary.clone_from(&reading.primary);
        let modes = suite.profile.modes.iter().map(|mode| mode.name.clone());
        analysis.mode_order = modes.collect();
        let summary = verdict::summarize(std::slice::from_ref(source), &analysis)?;
        Ok(Self {
            summary,
            estimates: Estimates::of_rows(rows(source)?),
        })
    }
}

/// The plan in a line or two for the question before a run, as far as an earlier run of the suite shows it.
pub(super) fn short_lines(suite: &LoadedSuite) -> Result<Vec<String>> {
    let Some(source) = latest(suite)? else {
        return Ok(Vec::new());
    };
    let known = Known::of(&source, suite)?;
    let input = input(&PlanArguments::default(), suite, Some(&known))?;
    Ok(ExperimentPlan::new(&input).short_lines())
}

fn load(arguments: &PlanArguments, narrowed: &Selection, plugins: &Plugins) -> Result<LoadedSuite> {
    let path = arguments.path.as_deref().unwrap_or(Path::new("."));
    let selection = Selection {
        modes: arguments.mode.clone(),
        repetitions: narrowed.repetitions.or(arguments.repetitions),
        scenarios: match narrowed.scenarios.is_empty() {
            true => arguments.scenario.clone(),
            false => narrowed.scenarios.clone(),
        },
        results_dir: arguments.output.clone(),
        ..Selection::default()
    };
    Ok(suite::load(path, &selection, plugins)?)
}

fn place(arguments: &PlanArguments) -> Where {
    Where {
        suite: arguments.path.clone(),
        output: arguments.output.clone(),
    }
}

/// The newest run of the same suite that has trials of at least two of its modes, or of its only one.
fn latest(suite: &LoadedSuite) -> Result<Option<Source>> {
    let wanted = suite.profile.modes.len().min(2);
    let modes: BTreeSet<&str> = suite
        .profile
        .modes
        .iter()
        .map(|mode| mode.name.as_str())
        .collect();
    let runs = list(&suite.results_dir).unwrap_or_default();
    let is_same = |run: &&RunDirectory| {
        let manifest = run.manifest();
        manifest.name == suite.profile.name && !manifest.provenance.contains_key("aa")
    };
    for run in runs.iter().rev().filter(is_same) {
        let rows = run.rows()?.filter_map(Result::ok);
        let seen: BTreeSet<String> = rows.map(|row| row.mode).collect();
        if seen
            .iter()
            .filter(|mode| modes.contains(mode.as_str()))
            .count()
            >= wanted
        {
            return Ok(Some(Source::of_run(run)?));
        }
    }
    Ok(None)
}

/// Runs a few blocks of the suite, enough to know how much scenarios and runs vary.
fn run_pilot(
    arguments: &PlanArguments,
    blocks: u32,
    suite: &LoadedSuite,
    plugins: &Plugins,
) -> Result<Source> {
    let wanted = blocks.div_ceil(PILOT_REPETITIONS).max(2) as usize;
    let plan = suite.profile.plan()?;
    let mut scenarios: Vec<String> = Vec::new();
    for cell in plan.cells() {
        let id = suite.profile.id_of(&plan, &cell)?;
        if !scenarios.contains(&id) {
            scenarios.push(id);
        }
        if scenarios.len() >= wanted {
            break;
        }
    }
    let narrowed = Selection {
        scenarios,
        repetitions: Some(PILOT_REPETITIONS),
        ..Selection::default()
    };
    let mut pilot = load(arguments, &narrowed, plugins)?;
    pilot
        .profile
        .provenance
        .insert("pilot".to_owned(), Value::Bool(true));
    // A pilot is planned from, not decided by: rules about stopping are for the run itself.
    pilot.profile.reading.until = None;
    let trials = pilot.profile.plan()?.len();
    let agreed = arguments.yes
        || consent::is_given(|| Ok(format!("the pilot has {trials} trials and may cost money.")))?;
    if !agreed {
        return Err(UsageError::new("without a pilot there is nothing to plan from").into());
    }
    let target = RunTarget::New(pilot.results_dir.clone());
    let modes = pilot.profile.modes.iter().map(|mode| mode.name.clone());
    let listener: Arc<dyn assize_engine::Listener> = match arguments.json {
        true => Arc::new(()),
        false => Arc::new(Progress::new(modes.collect())),
    };
    let result = run::in_runtime(pilot, target, listener)?;
    Source::of_run(&result.run()?)
}

fn rows(source: &Source) -> Result<Vec<ProfileRow>> {
    let mut rows = Vec::new();
    if let Some(reader) = source.open()? {
        read_rows(reader, |bytes| {
            // Foreign rows may lack what a cost needs; they say nothing about it then.
            rows.extend(serde_json::from_slice::<ProfileRow>(bytes.json).ok());
            Ok(())
        })
        .with_context(|| source.describe("in"))?;
    }
    Ok(rows)
}

fn input<'a>(
    arguments: &PlanArguments,
    suite: &LoadedSuite,
    known: Option<&'a Known>,
) -> Result<PlanInput<'a>> {
    let profile = &suite.profile;
    let plan = profile.plan()?;
    let analysis = Analysis::of(&profile.reading.analysis).unwrap_or_default();
    let primary: Vec<String> = match known {
        Some(known) => known.summary.primary.clone(),
        None => {
            let planned = profile.reading.primary.iter();
            planned.filter_map(|names| names.first().cloned()).collect()
        }
    };
    let models: BTreeSet<&str> = plan.arms.iter().map(|arm| arm.model.as_str()).collect();
    let comparisons = match &profile.reading.factorial {
        Some(record) => {
            let levels = record.factors.iter().map(|factor| factor.levels.len() - 1);
            (levels.sum::<usize>() + record.interactions.len()) * models.len()
        }
        None => profile.modes.len().saturating_sub(1) * models.len(),
    };
    let subjects = u64::from(plan.len()) / plan.arms.len() as u64 / u64::from(plan.repetitions);
    Ok(PlanInput {
        design: PlanDesign {
            scenarios: subjects,
            repetitions: u64::from(plan.repetitions),
            arms: plan.arms.len() as u64,
            concurrency: profile.execution.concurrency as u64,
            questions: (primary.len() * comparisons).max(1) as u64,
            factorial: profile.reading.factorial.is_some(),
        },
        summary: known.map(|known| &known.summary),
        primary,
        estimates: known.map_or_else(Estimates::default, |known| known.estimates),
        detect: arguments.detect.clone(),
        budget: arguments.budget,
        scenario_usd: arguments.scenario_cost.unwrap_or(0.0),
        power: arguments.power.unwrap_or(Level::POWER_80),
        alpha: Level::new(analysis.confidence.complement())?,
        margin: analysis.equivalence_margin,
    })
}

/// A difference of a metric that does not decide would be planned for in vain.
fn check_metrics(input: &PlanInput<'_>) -> Result<(), UsageError> {
    let mut wanted = input
        .detect
        .iter()
        .filter_map(|detect| detect.metric.as_ref());
    match wanted.find(|metric| !input.primary.contains(metric)) {
        Some(metric) => Err(UsageError {
            message: format!("`{metric}` is not among the metrics to decide by"),
            hint: Some(format!(
                "those are {}; `analysis.primary` in the suite declares others",
                input.primary.join(", ")
            )),
        }),
        None => Ok(()),
    }
}

fn show(
    suite: &LoadedSuite,
    source: Option<&Source>,
    known: Option<&Known>,
    plan: &ExperimentPlan,
) {
    print(plain(&format!("plan for {}", suite.profile.name)));
    match source.zip(known) {
        Some((source, known)) => say(plain(&format!(
            "judging by {} ({} trials)",
            source.name(),
            known.estimates.trials
        ))),
        None => say(
            "no earlier run of this suite is known; `assize plan --pilot` runs a few blocks, `--from RUN` names one",
        ),
    }
    for line in plan.lines() {
        let indent = line.len() - line.trim_start().len();
        print(wrapped(plain(&line).trim_start(), &" ".repeat(indent)));
    }
    if plan.design.arms < 2 {
        say("there is only one mode, so nothing will be compared");
    }
}
