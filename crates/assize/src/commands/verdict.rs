//! The sources of rows, and the summary of them: what `run`, `runs`, `report` and `compare` share.

use crate::cli::Where;
use crate::commands::{
    UsageError, baseline, find_run, looks, missing_run, noise, results_dir, results_of_suite,
};
use crate::terminal::plain;
use anyhow::{Context, Result};
use assize_contracts::{Catalog, CautionCode, Plugins, Reading, UntilSpec, WallRecord};
use assize_engine::store::{Manifest, RunDirectory, RunFile, read_looks};
use assize_report::{
    Analysis, Caution, Gate, GateContext, LooksReading, Planned, PlannedArm, Reference, Summary,
    SummaryBuilder, Unfinished, changed_metrics, judge_gates, not_comparable,
};
use assize_stats::{Family, Scope};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Rows are long, and their reader is the bottleneck.
const BUFFER: usize = 1 << 18;

/// A file of rows.
#[derive(Debug)]
pub(crate) struct Source {
    /// The file.
    pub(crate) rows: PathBuf,
    /// The suite they belong to. Absent for rows that do not lie in a run.
    pub(crate) suite: Option<String>,
    /// The modes in the suite's order.
    pub(crate) modes: Vec<String>,
    /// The run's directory, for rows that lie in one.
    pub(crate) run: Option<PathBuf>,
    /// The analysis that its suite wants.
    pub(crate) analysis: Analysis,
    /// The meaning of its metrics. Empty for rows that do not lie in a run.
    pub(crate) catalog: Catalog,
    /// The run's id, for rows that lie in one.
    run_id: Option<String>,
    /// The reading that its suite wants, as it was recorded.
    reading: Reading,
    /// The planned trials.
    pub(crate) planned: Option<Planned>,
    /// The logs that the rows were made of.
    #[cfg(feature = "sessions")]
    pub(crate) logs: Option<std::sync::Arc<crate::commands::imported::ImportedLogs>>,
    /// The looks that its verdicts pay for. Absent until one is counted.
    pub(crate) looks: Option<LooksReading>,
}

impl Source {
    /// The rows of a run.
    pub(crate) fn of_run(run: &RunDirectory) -> Result<Self> {
        let manifest = run.manifest();
        let mut modes: Vec<String> = Vec::new();
        for arm in &manifest.plan.arms {
            if !modes.contains(&arm.mode) {
                modes.push(arm.mode.clone());
            }
        }
        let reading = manifest.reading()?;
        Ok(Self {
            rows: run.file(RunFile::Rows),
            suite: Some(manifest.name.clone()),
            analysis: recorded_analysis(manifest, &reading, &modes)?,
            catalog: manifest.catalog(),
            run_id: Some(manifest.run_id.clone()),
            reading,
            planned: Some(planned(run)),
            modes,
            run: Some(run.path().to_owned()),
            #[cfg(feature = "sessions")]
            logs: None,
            looks: None,
        })
    }

    /// Counts a look at its data by this command: verdicts pay for every state that was looked at.
    pub(crate) fn looked_at(mut self, command: &str) -> Result<Self> {
        self.looks = looks::count(&self, command)?;
        Ok(self)
    }

    /// The stopping rule that was declared before its first trial.
    pub(crate) fn until(&self) -> Option<&UntilSpec> {
        self.reading.until.as_ref()
    }

    /// The most repetitions of any arm.
    pub(crate) fn repetitions(&self) -> u32 {
        let planned = self.planned.as_ref().map_or(1, |plan| plan.repetitions);
        u32::try_from(planned).unwrap_or(u32::MAX)
    }

    /// A suite for its last run, a file as it is named, else a named baseline, else a run by its id, a part of it,
    /// `last`, or its directory.
    pub(crate) fn find(name: &str, place: &Where, plugins: &Plugins) -> Result<Self> {
        let path = Path::new(name);
        let is_rows_of_run = path.file_name() == Some(RunFile::Rows.name().as_ref());
        if let Some(directory) = path.parent().filter(|_| is_rows_of_run && path.is_file())
            && let Ok(run) = RunDirectory::open(directory)
        {
            return Self::of_run(&run);
        }
        if results_of_suite(name).is_some() {
            return Self::of_run(&find_run(name, place, plugins)?);
        }
        if path.is_file() {
            return Ok(Self::of_rows(path.to_owned()));
        }
        let results = results_dir(place, plugins)?;
        if let Some(baseline) = baseline::kept(&results, name) {
            return Self::of_run(&baseline);
        }
        let run = RunDirectory::find(&results, name);
        Self::of_run(&run.map_err(|error| missing_run(error, place))?)
    }

    /// Rows that do not lie in a run.
    pub(crate) fn of_rows(rows: PathBuf) -> Self {
        Self {
            rows,
            suite: None,
            modes: Vec::new(),
            run: None,
            analysis: Analysis::default(),
            catalog: Catalog::default(),
            run_id: None,
            reading: Reading::default(),
            planned: None,
            looks: None,
            #[cfg(feature = "sessions")]
            logs: None,
        }
    }

    /// True when both hold the trials of the same run: also a baseline that was made of it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let path = |source: &Self| source.rows.canonicalize().ok();
        let same_run = self.run_id.is_some() && self.run_id == other.run_id;
        same_run || (path(self).is_some() && path(self) == path(other))
    }

    /// The gates of its suite. One that cannot be understood is an error: left out, it would seem to pass.
    pub(crate) fn gates(&self) -> Result<Vec<Gate>> {
        let gate = |(number, spec)| {
            let place = || {
                format!(
                    "cannot read the recorded gate {number} of run {}",
                    self.name()
                )
            };
            Gate::of(spec, &self.catalog).with_context(place)
        };
        self.reading.gates.iter().enumerate().map(gate).collect()
    }

    /// The run's id, or the file's name.
    pub(crate) fn name(&self) -> String {
        let path = self.run.as_ref().unwrap_or(&self.rows);
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Opens the file. A run without any finished trial has none, and no rows either.
    pub(crate) fn open(&self) -> Result<Option<BufReader<File>>> {
        match File::open(&self.rows) {
            Ok(file) => Ok(Some(BufReader::with_capacity(BUFFER, file))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && self.run.is_some() => {
                Ok(None)
            }
            Err(error) => Err(error).with_context(|| self.describe("cannot read")),
        }
    }

    /// Says what about this file.
    pub(crate) fn describe(&self, what: &str) -> String {
        format!("{what} `{}`", plain(&self.rows.display().to_string()))
    }
}

/// The analysis that the run's suite wants. A baseline that was not run this time gives way to the first mode.
fn recorded_analysis(manifest: &Manifest, reading: &Reading, modes: &[String]) -> Result<Analysis> {
    let run = &manifest.run_id;
    let mut analysis = Analysis::of(&reading.analysis).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        UsageError {
            message: format!(
                "cannot read the recorded analysis of run {run}: {}",
                errors.join("; ")
            ),
            hint: Some("correct `reading.analysis` in its `manifest.json`".to_owned()),
        }
    })?;
    analysis.baseline = analysis
        .baseline
        .filter(|baseline| modes.contains(baseline));
    analysis.walls = walls(manifest);
    analysis.prices.clone_from(&reading.prices);
    analysis.planned_primary.clone_from(&reading.primary);
    analysis.factorial.clone_from(&reading.factorial);
    Ok(analysis)
}

/// The walls around the agents, which runs of earlier versions do not have.
fn walls(manifest: &Manifest) -> Vec<WallRecord> {
    let recorded = manifest.provenance.get("sandbox").cloned();
    recorded
        .and_then(|walls| serde_json::from_value(walls).ok())
        .unwrap_or_default()
}

fn planned(run: &RunDirectory) -> Planned {
    let plan = &run.manifest().plan;
    let stopped = looks::stopped_in(&read_looks(run.path()));
    let arm = |arm: &assize_engine::Arm| PlannedArm {
        mode: arm.mode.clone(),
        model: arm.model.clone(),
        repetitions: stopped
            .iter()
            .find(|stop| stop.mode == arm.mode && stop.model == arm.model)
            .map(|stop| stop.after.into()),
    };
    Planned {
        arms: plan.arms.iter().map(arm).collect(),
        scenarios: plan.scenarios.clone(),
        tasks: plan.tasks.as_ref().map_or(0, |tasks| tasks.count.into()),
        repetitions: plan.repetitions.into(),
    }
}

/// Everything that follows from the rows of these files.
pub(crate) fn summarize(sources: &[Source], analysis: &Analysis) -> Result<Summary> {
    let trials = read(sources)?;
    let mut analysis = ordered(analysis, sources);
    analysis.unfinished = unfinished(sources, trials.trials());
    let mut summary = trials.finish(&analysis)?;
    let noise = noise::caution(sources, &summary);
    summary.cautions.extend(noise);
    Ok(summary)
}

/// The progress of runs of which some cells have no row yet. None when all are complete or nothing is known of a plan.
pub(crate) fn unfinished(sources: &[Source], done: u64) -> Option<Unfinished> {
    let plans: Option<Vec<&Planned>> = sources
        .iter()
        .map(|source| source.planned.as_ref())
        .collect();
    let planned = plans?.iter().map(|plan| plan.trials()).sum();
    (done < planned).then_some(Unfinished { done, planned })
}

/// Settings of the command line that change the reading.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The tasks that gates on success apply to.
    pub(crate) gate_scope: Scope,
    /// The comparisons whose p-values are adjusted for each other.
    pub(crate) family: Family,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            gate_scope: Scope::Suite,
            family: Family::Report,
        }
    }
}

/// The same for one source, with its gates judged; `baseline` is what they compare with instead of a mode of its own.
pub(crate) fn judge(
    source: &Source,
    gates: &[Gate],
    baseline: Option<&Source>,
    wanted: Wanted,
) -> Result<Summary> {
    if baseline.is_some_and(|baseline| baseline.is_same(source)) {
        // It would be found to be as good as itself.
        return Err(UsageError::new("the baseline is the run itself").into());
    }
    let sources = std::slice::from_ref(source);
    let mut analysis = ordered(&source.analysis, sources);
    analysis.family = wanted.family;
    let reference = baseline.map(|baseline| {
        anyhow::Ok(Reference {
            name: baseline.name(),
            trials: read(std::slice::from_ref(baseline))?,
            planned: baseline.planned.clone(),
        })
    });
    let mut context = GateContext {
        gates: gates.to_vec(),
        planned: source.planned.clone(),
        reference: reference.transpose()?,
        scope: wanted.gate_scope,
    };
    let mut trials = read(sources)?;
    analysis.unfinished = unfinished(sources, trials.trials());
    // For gates a baseline that was not run is missing; no other mode takes its place.
    let strict = Analysis {
        baseline: source
            .reading
            .baseline
            .clone()
            .or(analysis.baseline.clone()),
        ..analysis.clone()
    };
    let judged = judge_gates(&mut trials, &mut context, &strict);
    let outdated = context
        .reference
        .as_ref()
        .filter(|reference| reference.trials.has_old_trials() && trials.has_current_trials());
    let mut summary = trials.finish(&analysis)?;
    let outdated = outdated.map(|reference| outdated_baseline(reference, &summary.catalog));
    summary.cautions.extend(outdated);
    let noise = noise::caution(sources, &summary);
    summary.cautions.extend(noise);
    summary.gates = judged;
    summary.planned = context.planned;
    Ok(summary)
}

/// A baseline of 0.1 still serves for what means the same.
fn outdated_baseline(reference: &Reference, catalog: &Catalog) -> Caution {
    let name = &reference.name;
    Caution {
        code: CautionCode::OldBaseline,
        text: format!(
            "The baseline `{name}` was stored by Assize 0.1. {} Renew it: run the baseline's version again, then `assize baseline set NAME RUN`.",
            not_comparable()
        ),
        places: changed_metrics(catalog).to_vec(),
        is_primary: true,
    }
}

fn read(sources: &[Source]) -> Result<SummaryBuilder> {
    let mut builder = SummaryBuilder::default();
    for source in sources {
        builder.add_catalog(&source.catalog);
        if let Some(reader) = source.open()? {
            builder
                .read(reader, source.suite.as_deref())
                .with_context(|| source.describe("in"))?;
        }
    }
    Ok(builder)
}

/// The analysis with the modes in the order of the suites.
pub(crate) fn ordered(analysis: &Analysis, sources: &[Source]) -> Analysis {
    let mut analysis = analysis.clone();
    if let [source] = sources
        && source.looks.is_some()
    {
        analysis.looks.clone_from(&source.looks);
    }
    for version in sources.iter().flat_map(|source| &source.analysis.prices) {
        if !analysis.prices.contains(version) {
            analysis.prices.push(version.clone());
        }
    }
    for mode in sources.iter().flat_map(|source| &source.modes) {
        if !analysis.mode_order.contains(mode) {
            analysis.mode_order.push(mode.clone());
        }
    }
    analysis
}
