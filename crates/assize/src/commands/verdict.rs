//! Where rows come from, and the summary of them: what `run`, `runs`, `report` and `compare` share.

use crate::cli::Where;
use crate::commands::results_dir;
use crate::suite::AnalysisSpec;
use crate::terminal::plain;
use anyhow::{Context, Result};
use assize_contracts::Plugins;
use assize_engine::store::RunDirectory;
use assize_report::{Analysis, Summary, SummaryBuilder};
use serde::Deserialize;
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
            modes,
            run: Some(run.path().to_owned()),
        }
    }

    /// A file as it is named, or else a run by its id, a part of it, `last`, or its directory.
    pub(crate) fn find(name: &str, place: &Where, plugins: &Plugins) -> Result<Self> {
        let path = Path::new(name);
        if path.is_file() {
            return Ok(Self {
                rows: path.to_owned(),
                suite: None,
                modes: Vec::new(),
                run: None,
                analysis: Analysis::default(),
            });
        }
        let run = RunDirectory::find(&results_dir(place, plugins)?, name)?;
        Ok(Self::of_run(&run))
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

/// Everything that follows from the rows of these files.
pub(crate) fn summarize(sources: &[Source], analysis: &Analysis) -> Result<Summary> {
    let mut builder = SummaryBuilder::default();
    for source in sources {
        if let Some(reader) = source.open()? {
            builder
                .read(reader, source.suite.as_deref())
                .with_context(|| source.describe("in"))?;
        }
    }
    Ok(builder.finish(&ordered(analysis, sources))?)
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
