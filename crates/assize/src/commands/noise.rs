//! A/A: one mode run against itself, and the noise that it shows. Kept beside the runs and shown in later reports.

use crate::commands::verdict::Source;
use crate::suite::Selection;
use crate::terminal::{plain, print, warn, wrapped};
use assize_contracts::{Caution, CautionCode, RowField, Timestamp};
use assize_engine::store::RunDirectory;
use assize_report::{Comparison, Summary, headline, verdict_word};
use assize_stats::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::suite::AGAIN;
/// Among the runs, by the suite's name.
const FILE: &str = "noise.json";

/// The result of running a mode against itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Noise {
    mode: String,
    run: String,
    at: Timestamp,
    /// By metric: the far end of the interval of its difference on these tasks, in percent, or in points for success.
    metrics: BTreeMap<String, f64>,
    /// By metric: the difference that was found. Absent in files of earlier versions.
    #[serde(default)]
    found: BTreeMap<String, f64>,
    /// Metrics that would have been called different.
    called: Vec<String>,
}

/// Says what would have been called different, and keeps it for later reports.
pub(crate) fn conclude(summary: &Summary, directory: &Path, suite: &str) {
    let Some(noise) = measure(summary, directory) else {
        return;
    };
    let called = match noise.called.is_empty() {
        true => "nothing would have been called different".to_owned(),
        false => format!(
            "{} would have been called different, by chance alone",
            noise.called.join(", ")
        ),
    };
    print(wrapped(
        &plain(&format!(
            "A/A: {} against itself: {called}. Two runs of the same mode differed by {}.",
            noise.mode,
            words(&noise, summary)
        )),
        "",
    ));
    let Some(results) = directory.parent() else {
        return;
    };
    let mut all = read(results);
    all.insert(suite.to_owned(), noise);
    let text = serde_json::to_vec_pretty(&all).unwrap_or_default();
    if let Err(error) = write(&results.join(FILE), &text) {
        warn(&format!(
            "the noise cannot be kept for later reports: {error}"
        ));
    }
}

fn measure(summary: &Summary, directory: &Path) -> Option<Noise> {
    let mut metrics = BTreeMap::new();
    let mut differences = BTreeMap::new();
    let mut called = Vec::new();
    let mut mode = None;
    for comparison in &summary.comparisons {
        mode = Some(comparison.mode_b().to_owned());
        if let Some((difference, [low, high])) = on_these_tasks(comparison) {
            let metric = comparison.metric().to_owned();
            differences.insert(metric.clone(), difference.abs());
            metrics.insert(metric, low.abs().max(high.abs()));
        }
        let is_called = !matches!(
            comparison.verdict(),
            Verdict::Inconclusive | Verdict::NotComparable | Verdict::Equivalent
        );
        if is_called {
            called.push(format!(
                "{} ({})",
                comparison.definition().label(),
                verdict_word(comparison.verdict())
            ));
        }
    }
    Some(Noise {
        mode: mode?,
        run: directory.file_name()?.to_string_lossy().into_owned(),
        at: Timestamp::now(),
        metrics,
        found: differences,
        called,
    })
}

/// The difference and its interval on exactly these tasks, which is all that differs between two runs of one mode: other tasks would
/// add what is no noise of the set-up. Tasks that were run once leave only the interval for others.
fn on_these_tasks(comparison: &Comparison) -> Option<(f64, [f64; 2])> {
    match comparison {
        Comparison::Success(found) => {
            let suite = found.suite.as_ref();
            let suite = suite.and_then(|suite| Some((suite.difference_pp, suite.ci95?)));
            suite.or(found.difference_pp.zip(found.ci95))
        }
        Comparison::Metric(found) => {
            let suite = found.suite.as_ref().filter(|suite| !suite.degenerate);
            let suite = suite.and_then(|suite| Some((suite.reduction_pct?, suite.ci95)));
            let shown = headline(found).filter(|shown| shown.is_ratio && !shown.is_degenerate());
            suite.or(shown.map(|shown| (shown.value, shown.interval)))
        }
    }
}

/// The metrics that people look at first: `4 points in success (by chance up to 12), 3 % in time (11)`.
fn words(noise: &Noise, summary: &Summary) -> String {
    let of_field = |field: RowField| summary.catalog.name_of(field).to_owned();
    let shown = [
        ("success".to_owned(), "points in success"),
        (of_field(RowField::WallTime), "% in time"),
        (of_field(RowField::TokensActive), "% in active tokens"),
        (of_field(RowField::CostTotal), "% in cost"),
    ];
    let part = |(name, unit): &(String, &str)| {
        let most = noise.metrics.get(name)?;
        Some(match noise.found.get(name) {
            Some(found) => format!("{found:.0} {unit} (by chance up to {most:.0})"),
            None => format!("up to {most:.0} {unit} by chance"),
        })
    };
    let parts: Vec<String> = shown.iter().filter_map(part).collect();
    match parts.is_empty() {
        true => "nothing that was measured".to_owned(),
        false => parts.join(", "),
    }
}

/// A resumed A/A run runs the same mode twice again.
pub(crate) fn resumed(mut selection: Selection, run: &RunDirectory) -> Selection {
    if run.manifest().provenance.contains_key("aa") {
        selection.modes.retain(|mode| !mode.ends_with(AGAIN));
        selection.aa = true;
    }
    selection
}

/// A caution for reports of a suite's other runs, from an earlier A/A run of it.
pub(crate) fn caution(sources: &[Source], summary: &Summary) -> Option<Caution> {
    let [source] = sources else {
        return None;
    };
    let run = source.run.as_ref()?;
    let results: PathBuf = run.parent()?.to_owned();
    let noise = read(&results).remove(source.suite.as_deref()?)?;
    let is_itself = run.file_name().is_some_and(|name| *name == *noise.run);
    if is_itself || noise.metrics.is_empty() || summary.comparisons.is_empty() {
        return None;
    }
    let text = format!(
        "Noise of this set-up: two runs of the same mode ({}, A/A run {}) differed by {}.",
        noise.mode,
        noise.run,
        words(&noise, summary)
    );
    Some(Caution::about_all(CautionCode::NoiseFloor, text))
}

fn read(results: &Path) -> BTreeMap<String, Noise> {
    let text = std::fs::read(results.join(FILE)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Written beside and moved into place, so that no reader sees half of it.
fn write(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let beside = path.with_extension(format!("json.{}", std::process::id()));
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}
