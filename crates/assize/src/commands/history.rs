//! `assize history`: metrics over the runs of a suite, and where they changed.

use crate::cli::{HistoryArguments, Where};
use crate::commands::verdict::{self, Source};
use crate::commands::{UsageError, results_dir};
use crate::exit::Exit;
use crate::suite::{self, Selection};
use crate::terminal::{plain, print, print_hint, print_json, say, sparkline};
use anyhow::Result;
use assize_contracts::{Metric, MetricKind, Plugins};
use assize_engine::store::{self, RunDirectory, RunState};
use assize_report::{
    Analysis, RunDigest, amount, changed_metrics, not_comparable, p_value, percent,
};
use assize_stats::{AdjustMethod, ChangePoint, FEWEST_FOR_CHANGE, adjust_p_values, change_point};
use comfy_table::{Table, presets};
use serde_json::json;

/// A change is claimed when chance gives one as large at most this often, over all series together.
const ALPHA: f64 = 0.05;

const SEED: u64 = 42;

/// One run and what it came to.
struct Past {
    run: RunDirectory,
    analysis: Analysis,
    digest: RunDigest,
}

/// One metric of one mode over the runs.
struct Series {
    metric: String,
    definition: Metric,
    mode: String,
    /// One per run; absent where it was not measured.
    values: Vec<Option<f64>>,
    change: Option<Change>,
}

struct Change {
    /// The run from which on things are different.
    run: usize,
    point: ChangePoint,
    p_adjusted: f64,
}

pub(crate) fn history(arguments: &HistoryArguments, plugins: &Plugins) -> Result<Exit> {
    let past = past(arguments, plugins)?;
    let Some(last) = past.last() else {
        say("no runs yet");
        print_hint("`assize run SUITE` makes one; a history needs several");
        return Ok(Exit::Done);
    };
    let metrics = match arguments.metric.is_empty() {
        true => last.digest.followed.clone(),
        false => arguments.metric.clone(),
    };
    let series = series(&past, &metrics);
    if let Some(metric) = arguments
        .metric
        .iter()
        .find(|metric| !series.iter().any(|one| one.metric == **metric))
    {
        return Err(UsageError::new(format!("no run measured `{metric}`")).into());
    }
    if arguments.json {
        series
            .iter()
            .for_each(|one| print_json(as_json(one, &past).to_string()));
        return Ok(Exit::Done);
    }
    print(format!(
        "{}, {}",
        plain(&last.run.manifest().name),
        count(past.len())
    ));
    show(&series, &past);
    if !arguments.metric.is_empty() {
        print(table(&series, &past).to_string());
    }
    show_notes(&past, &metrics);
    Ok(Exit::Done)
}

/// The last runs of the suite, oldest first.
fn past(arguments: &HistoryArguments, plugins: &Plugins) -> Result<Vec<Past>> {
    let place = Where {
        suite: arguments.suite.clone(),
        output: arguments.output.clone(),
    };
    let mut runs = store::list(&results_dir(&place, plugins)?)?;
    let name = match &arguments.suite {
        Some(path) => Some(
            suite::load(path, &Selection::default(), plugins)?
                .profile
                .name,
        ),
        None => runs.last().map(|run| run.manifest().name.clone()),
    };
    // A/A runs compare a mode with itself and pilots have a few blocks only, so neither shows how the suite develops.
    let is_followed = |run: &RunDirectory| {
        let provenance = &run.manifest().provenance;
        !["aa", "pilot"]
            .iter()
            .any(|mark| provenance.contains_key(*mark))
    };
    runs.retain(|run| Some(&run.manifest().name) == name.as_ref() && is_followed(run));
    let old = runs.len().saturating_sub(arguments.runs);
    let summarized = runs.drain(old..).map(|run| {
        let source = Source::of_run(&run)?;
        let digest = digest(&run, &source)?;
        Ok(Past {
            run,
            analysis: source.analysis,
            digest,
        })
    });
    summarized.collect()
}

/// The numbers of a run: those that were kept, else made of its rows and kept.
fn digest(run: &RunDirectory, source: &Source) -> Result<RunDigest> {
    const NAME: &str = "digest.json";
    let version = RunDigest::version();
    let kept = run.derived(NAME, &version);
    if let Some(digest) = kept.and_then(|text| serde_json::from_slice(&text).ok()) {
        return Ok(digest);
    }
    let made_of = run.derive(&version);
    // Nothing is compared inside a run here, which would be most of the work.
    let analysis = Analysis {
        metrics: Some(Vec::new()),
        ..source.analysis.clone()
    };
    let summary = verdict::summarize(std::slice::from_ref(source), &analysis)?;
    let digest = RunDigest::of(&summary);
    if run.manifest().state == RunState::Complete {
        run.keep_derived(NAME, &made_of, &serde_json::to_vec(&digest)?);
    }
    Ok(digest)
}

fn series(past: &[Past], metrics: &[String]) -> Vec<Series> {
    let mut modes: Vec<&str> = Vec::new();
    for mode in past.iter().rev().flat_map(|one| one.digest.modes()) {
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }
    let mut all = Vec::new();
    for metric in metrics {
        // The newest run that measured it says what it means.
        let measured = past.iter().rev().map(|one| &one.digest.catalog);
        let catalog = measured
            .into_iter()
            .find(|catalog| catalog.contains(metric));
        let definition = catalog.map_or_else(
            || Metric::named(metric),
            |catalog| catalog.metric(metric).into_owned(),
        );
        for mode in &modes {
            let value = |one: &Past| match is_comparable(one, past, metric) {
                true => value(one, mode, metric),
                false => None,
            };
            let values: Vec<Option<f64>> = past.iter().map(value).collect();
            if values.iter().any(Option::is_some) {
                all.push(Series {
                    metric: metric.clone(),
                    definition: definition.clone(),
                    mode: (*mode).to_owned(),
                    values,
                    change: None,
                });
            }
        }
    }
    find_changes(&mut all);
    all
}

fn value(one: &Past, mode: &str, metric: &str) -> Option<f64> {
    let definition = one.digest.catalog.metric(metric);
    let statistic = one.analysis.statistic_of(&definition);
    one.digest.value(mode, metric, statistic)
}

/// Looks at every series, and claims only what is left when so many were looked at.
fn find_changes(all: &mut [Series]) {
    let found: Vec<Option<(ChangePoint, usize)>> = all
        .iter()
        .map(|one| {
            let known = one.values.iter().enumerate();
            let (runs, values): (Vec<usize>, Vec<f64>) = known
                .filter_map(|(run, value)| Some((run, (*value)?)))
                .unzip();
            let point = change_point(&values, SEED)?;
            let run = runs[point.at];
            Some((point, run))
        })
        .collect();
    let p_values: Vec<Option<f64>> = found
        .iter()
        .map(|found| found.as_ref().map(|(point, _)| point.p_value))
        .collect();
    let adjusted = adjust_p_values(&p_values, AdjustMethod::Holm);
    for ((one, found), p_adjusted) in all.iter_mut().zip(found).zip(adjusted) {
        one.change = found
            .zip(p_adjusted)
            .map(|((point, run), p_adjusted)| Change {
                run,
                point,
                p_adjusted,
            });
    }
}

impl Series {
    /// The change that can be distinguished from chance.
    fn claimed(&self) -> Option<&Change> {
        self.change
            .as_ref()
            .filter(|change| change.p_adjusted <= ALPHA)
    }

    fn shown(&self, value: f64) -> String {
        match self.definition.kind {
            MetricKind::Success => percent(value),
            _ => amount(&self.definition, value),
        }
    }
}

fn show(all: &[Series], past: &[Past]) {
    let width = all
        .iter()
        .map(|one| one.mode.chars().count())
        .max()
        .unwrap_or(0);
    for same in all.chunk_by(|a, b| a.metric == b.metric) {
        print(plain(&same[0].metric));
        for one in same {
            let last = one.values.iter().rev().flatten().next();
            let last = last.map_or_else(|| "unknown".to_owned(), |last| one.shown(*last));
            print(format!(
                "  {:<width$}  {}  {last}  {}",
                plain(&one.mode),
                sparkline(&one.values),
                change_words(one, past)
            ));
        }
    }
}

fn change_words(one: &Series, past: &[Past]) -> String {
    match one.claimed() {
        Some(change) => format!(
            "changed with {}: {} before, {} since ({})",
            past[change.run].run.id(),
            one.shown(change.point.before),
            one.shown(change.point.after),
            p_value(Some(change.p_adjusted))
        ),
        None if one.change.is_none() => {
            format!("too few runs to tell a change from chance: it takes {FEWEST_FOR_CHANGE}")
        }
        None => "no change that chance could not make".to_owned(),
    }
}

fn table(all: &[Series], past: &[Past]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    let name = |one: &Series| plain(&format!("{} {}", one.mode, one.metric));
    table.set_header(
        ["Run".to_owned(), "Started".to_owned()]
            .into_iter()
            .chain(all.iter().map(name)),
    );
    for (place, one) in past.iter().enumerate() {
        let manifest = one.run.manifest();
        let started = manifest.created_at.as_str().get(..16).unwrap_or_default();
        let value = |series: &Series| {
            let value = match series.values[place] {
                Some(value) => series.shown(value),
                None if !is_comparable(one, past, &series.metric) => "not comparable".to_owned(),
                None => "unknown".to_owned(),
            };
            let changed = series.claimed().is_some_and(|change| change.run == place);
            if changed {
                format!("{value} ←")
            } else {
                value
            }
        };
        let cells = [one.run.id().to_owned(), started.replace('T', " ")];
        table.add_row(cells.into_iter().chain(all.iter().map(value)));
    }
    table
}

/// Runs of a suite that was changed in between may differ for that reason.
/// Metrics whose meaning changed are drawn only for runs of the newest run's version.
fn is_comparable(one: &Past, past: &[Past], metric: &str) -> bool {
    let version = |one: &Past| one.run.manifest().schema_version;
    let is_current = past.last().is_none_or(|last| version(last) == version(one));
    let changed = changed_metrics(&one.digest.catalog);
    is_current || !changed.iter().any(|known| known == metric)
}

fn show_notes(past: &[Past], metrics: &[String]) {
    let is_left_out = |one: &Past| {
        metrics
            .iter()
            .any(|metric| !is_comparable(one, past, metric))
    };
    if past.iter().any(is_left_out) {
        print(format!("note: {}", not_comparable()));
    }
    let changed = past
        .windows(2)
        .filter(|pair| pair[0].run.manifest().fingerprint != pair[1].run.manifest().fingerprint);
    let ids: Vec<&str> = changed.map(|pair| pair[1].run.id()).collect();
    if !ids.is_empty() {
        print(format!(
            "note: the suite itself changed before {}",
            ids.join(", ")
        ));
    }
}

fn as_json(one: &Series, past: &[Past]) -> serde_json::Value {
    let run = |(past, value): (&Past, &Option<f64>)| {
        let manifest = past.run.manifest();
        json!({
            "runId": past.run.id(),
            "createdAt": manifest.created_at,
            "fingerprint": manifest.fingerprint,
            "value": value,
        })
    };
    let change = one.change.as_ref().map(|change| {
        json!({
            "runId": past[change.run].run.id(),
            "before": change.point.before,
            "after": change.point.after,
            "pValue": change.point.p_value,
            "pAdjusted": change.p_adjusted,
            "claimed": change.p_adjusted <= ALPHA,
        })
    });
    json!({
        "metric": one.metric,
        "mode": one.mode,
        "runs": past.iter().zip(&one.values).map(run).collect::<Vec<_>>(),
        "change": change,
    })
}

fn count(runs: usize) -> String {
    match runs {
        1 => "1 run".to_owned(),
        runs => format!("the last {runs} runs"),
    }
}
