//! What the pages need beside the summary: trials, traces and findings, out of the directories of runs.

use crate::commands::report::each_row;
use crate::commands::verdict::Source;
use anyhow::{Context, Result};
use assize_contracts::{AnalysisResult, SessionAnalysisBundle, SessionTrace};
use assize_engine::store::{CellKey, RunDirectory, RunFile, TraceReader};
use assize_measures::analyzers::{FIVE, TIME};
use assize_report::{FindingsPage, HtmlReport, PageLimits, Summary, WantedTrace, read_rows};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Sessions that are explained for a page where the run kept no findings; `assize analyze` explains all.
const MOST_EXPLAINED: usize = 500;

/// The page with the trials of all sources, and the traces that they have and it has room for.
pub(super) fn html_page<'a>(summary: &'a Summary, sources: &[Source]) -> Result<HtmlReport<'a>> {
    let mut page = HtmlReport::new(summary, PageLimits::default());
    let runs: Vec<Option<StoredTraces>> = sources
        .iter()
        .map(StoredTraces::open)
        .collect::<Result<_>>()?;
    let mut wanted: Vec<(usize, CellKey, WantedTrace)> = Vec::new();
    each_row(sources, |source, row, json| {
        let suite = sources[source].suite.as_deref();
        if let (Some(trial), Some(run)) = (page.add(row, json, suite), &runs[source]) {
            let key = row.key();
            if run.traces.has(&key)
                && let Some(trace) = page.wants_trace_of(trial)
            {
                wanted.push((source, key, trace));
            }
        }
        Ok(())
    })?;
    for (source, run) in runs.iter().enumerate() {
        let Some(run) = run else { continue };
        let of_run = || wanted.iter().filter(|(of, ..)| *of == source);
        let mut findings = run.findings(of_run().map(|(_, key, _)| key).collect())?;
        for (_, key, wanted) in of_run() {
            // A trace that cannot be read any more is one that the page does not show.
            if let Ok(Some(trace)) = run.traces.trace(key) {
                let mut found = findings.remove(key).unwrap_or_else(|| explain(&trace));
                found
                    .entry("time".to_owned())
                    .or_insert_with(|| TIME.find(&trace));
                page.add_trace(*wanted, &trace, &found);
            }
        }
    }
    Ok(page)
}

/// What analyzers found, now or when the trials ran, in the sessions of all sources.
pub(super) fn findings_page<'a>(
    summary: &'a Summary,
    sources: &[Source],
) -> Result<FindingsPage<'a>> {
    let mut page = FindingsPage::new(summary);
    for source in sources {
        let Some(run) = StoredTraces::open(source)? else {
            continue;
        };
        let mut sessions: Vec<(CellKey, usize)> = Vec::new();
        let mut modes: HashMap<(String, String), usize> = HashMap::new();
        each_row(std::slice::from_ref(source), |_, row, _| {
            let Some(mode) = summary.mode_of(row, source.suite.as_deref()) else {
                return Ok(());
            };
            let key = row.key();
            modes.insert((key.mode.clone(), key.model.clone()), mode);
            if sessions.len() < MOST_EXPLAINED && run.traces.has(&key) {
                sessions.push((key, mode));
            }
            Ok(())
        })?;
        let mut has_findings = false;
        each_bundle(&run.analysis, |bundle| {
            has_findings = true;
            let name = (bundle.mode, bundle.model);
            if let Some(mode) = modes.get(&name) {
                page.add(*mode, &bundle.results);
            }
        })?;
        for (key, mode) in sessions.iter().filter(|_| !has_findings) {
            if let Ok(Some(trace)) = run.traces.trace(key) {
                page.add(*mode, &explain(&trace));
            }
        }
    }
    Ok(page)
}

/// What the usual analyzers find in a trace.
fn explain(trace: &SessionTrace) -> BTreeMap<String, AnalysisResult> {
    let found = FIVE.iter().map(|analyzer| analyzer.find(trace));
    found.map(|found| (found.analyzer.clone(), found)).collect()
}

/// What a run has beside its rows.
struct StoredTraces {
    traces: TraceReader,
    analysis: PathBuf,
}

impl StoredTraces {
    fn open(source: &Source) -> Result<Option<Self>> {
        let Some(run) = &source.run else {
            return Ok(None);
        };
        Ok(Some(Self {
            traces: RunDirectory::open(run)?.traces()?,
            analysis: RunFile::Analysis.within(run),
        }))
    }

    /// What the analyzers found in these trials.
    fn findings(
        &self,
        keys: HashSet<&CellKey>,
    ) -> Result<HashMap<CellKey, BTreeMap<String, AnalysisResult>>> {
        let mut findings = HashMap::new();
        each_bundle(&self.analysis, |bundle| {
            let key = CellKey::of_findings(&bundle);
            if keys.contains(&key) {
                findings.insert(key, bundle.results);
            }
        })?;
        Ok(findings)
    }
}

/// Every complete bundle of a file; a run without analyzers has none.
fn each_bundle(path: &Path, mut visit: impl FnMut(SessionAnalysisBundle)) -> Result<()> {
    let file = match File::open(path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
        }
    };
    read_rows(file, |bytes| {
        if let Ok(bundle) = serde_json::from_slice(bytes.json) {
            visit(bundle);
        }
        Ok(())
    })?;
    Ok(())
}
