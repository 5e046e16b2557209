//! Where rows come from, and the summary of them: what `run`, `runs`, `report` and `compare` share.

use crate::cli::Where;
use crate::commands::{UsageError, baseline, results_dir};
use crate::suite::{AnalysisSpec, GateSpec};
use crate::terminal::plain;
use anyhow::{Context, Result};
use assize_contracts::Plugins;
use assize_engine::store::RunDirectory;
use assize_report::{
    Analysis, Gate, GateContext, Planned, PlannedArm, Reference, Summary, SummaryBuilder,
    judge_gates,
};
use serde::Deserialize;
use serde_json::Value;
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
    /// How its suite wants to be read.
    pub(crate) analysis: Analysis,
    /// The run's id, for rows that lie in one.
    run_id: Option<String>,
    /// What its suite wants to be shown, as it was recorded.
    gates: Option<Value>,
    /// The mode that its suite compares others with, whether it was run or not.
    baseline: Option<String>,
    /// What was meant to be run.
    pub(crate) planned: Option<Planned>,
}

impl Source {
    /// The rows of a run.
    pub(crate) fn of_run(run: &RunDirectory) -> Self {
        let manifest = run.manifest();
        let mut modes: Vec<String> = Vec::new();
        for arm in &manifest.plan.arms {
            if !modes.contains(&arm.mode) {
                modes.push(arm.mode.clone());
            }
        }
        Self {
            rows: run.path().join("rows.jsonl"),
            suite: Some(manifest.name.clone()),
            analysis: recorded_analysis(run, &modes),
            run_id: Some(manifest.run_id.clone()),
            gates: manifest.provenance.get("gates").cloned(),
            baseline: manifest
                .provenance
                .get("baseline")
                .and_then(Value::as_str)
                .map(str::to_owned),
            planned: Some(planned(run)),
            modes,
            run: Some(run.path().to_owned()),
        }
    }

    /// A file as it is named, else a named baseline, else a run by its id, a part of it, `last`, or its directory.
    pub(crate) fn find(name: &str, place: &Where, plugins: &Plugins) -> Result<Self> {
        let path = Path::new(name);
        let is_rows_of_run = path.file_name() == Some("rows.jsonl".as_ref());
        if let Some(directory) = path.parent().filter(|_| is_rows_of_run && path.is_file())
            && let Ok(run) = RunDirectory::open(directory)
        {
            return Ok(Self::of_run(&run));
        }
        if path.is_file() {
            return Ok(Self {
                rows: path.to_owned(),
                suite: None,
                modes: Vec::new(),
                run: None,
                analysis: Analysis::default(),
                run_id: None,
                gates: None,
                baseline: None,
                planned: None,
            });
        }
        let results = results_dir(place, plugins)?;
        if let Some(baseline) = baseline::kept(&results, name) {
            return Ok(Self::of_run(&baseline));
        }
        Ok(Self::of_run(&RunDirectory::find(&results, name)?))
    }

    /// Whether both hold the trials of the same run: also a baseline that was made of it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let path = |source: &Self| source.rows.canonicalize().ok();
        let same_run = self.run_id.is_some() && self.run_id == other.run_id;
        same_run || (path(self).is_some() && path(self) == path(other))
    }

    /// The gates of its suite. One that cannot be understood is an error: left out, it would seem to pass.
    pub(crate) fn gates(&self) -> Result<Vec<Gate>> {
        let Some(recorded) = &self.gates else {
            return Ok(Vec::new());
        };
        let specs = Vec::<GateSpec>::deserialize(recorded)
            .with_context(|| self.describe("cannot understand the recorded gates of"))?;
        Ok(specs
            .iter()
            .map(GateSpec::resolve)
            .collect::<Result<_, _>>()?)
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

/// How the run's suite wants it to be read. A baseline that was not run this time gives way to the first mode.
fn recorded_analysis(run: &RunDirectory, modes: &[String]) -> Analysis {
    let recorded = run.manifest().provenance.get("analysis");
    let spec = recorded.and_then(|spec| AnalysisSpec::deserialize(spec).ok());
    let analysis = spec.and_then(|spec| spec.resolve().ok());
    let mut analysis = analysis.unwrap_or_default();
    analysis.baseline = analysis
        .baseline
        .filter(|baseline| modes.contains(baseline));
    let prices = run.manifest().provenance.get("prices");
    analysis.prices = prices
        .and_then(|prices| Vec::deserialize(prices).ok())
        .unwrap_or_default();
    analysis
}

fn planned(run: &RunDirectory) -> Planned {
    let plan = &run.manifest().plan;
    let arm = |arm: &assize_engine::Arm| PlannedArm {
        mode: arm.mode.clone(),
        model: arm.model.clone(),
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
    Ok(read(sources)?.finish(&ordered(analysis, sources))?)
}

/// The same for one source, with its gates judged; `baseline` is what they compare with instead of a mode of its own.
pub(crate) fn judge(source: &Source, gates: &[Gate], baseline: Option<&Source>) -> Result<Summary> {
    if baseline.is_some_and(|baseline| baseline.is_same(source)) {
        // It would be found to be as good as itself.
        return Err(UsageError::new("the baseline is the run itself").into());
    }
    let sources = std::slice::from_ref(source);
    let analysis = ordered(&source.analysis, sources);
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
    };
    let mut trials = read(sources)?;
    // For gates a baseline that was not run is missing; no other mode takes its place.
    let strict = Analysis {
        baseline: source.baseline.clone().or(analysis.baseline.clone()),
        ..analysis.clone()
    };
    let judged = judge_gates(&mut trials, &mut context, &strict);
    let mut summary = trials.finish(&analysis)?;
    summary.gates = judged;
    summary.planned = context.planned;
    Ok(summary)
}

fn read(sources: &[Source]) -> Result<SummaryBuilder> {
    let mut builder = SummaryBuilder::default();
    for source in sources {
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
