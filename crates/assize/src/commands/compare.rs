//! `assize compare`: the verdict in words, metric by metric.

use crate::cli::CompareArguments;
use crate::commands::UsageError;
use crate::commands::verdict::{self, Source};
use crate::exit::Exit;
use crate::terminal::{
    comparison_table, plain, print, print_cautions, print_effects, print_json, verdict_with_bar,
    wrapped,
};
use anyhow::{Context, Result};
use assize_contracts::{Plugins, SUCCESS};
use assize_report::{
    Analysis, ChangeKind, Comparison, EXPLORATORY, LooksReading, PassCount, Planned,
    ScenarioChange, Summary, SummaryBuilder, Unfinished, closing_line, scenario_changes, sentence,
};
use assize_stats::{Looks, Stopping};
use console::style;

/// More names of a kind than this are listed only when asked for.
const MOST_SHOWN: usize = 10;

pub(crate) fn compare(arguments: &CompareArguments, plugins: &Plugins) -> Result<Exit> {
    let first = Source::find(&arguments.a, &arguments.place, plugins)?.looked_at("compare")?;
    let analysis = analysis(arguments, &first.analysis);
    let summaries = match &arguments.b {
        None => vec![verdict::summarize(&[first], &analysis)?],
        Some(name) => {
            let second = Source::find(name, &arguments.place, plugins)?.looked_at("compare")?;
            if first.is_same(&second) {
                return Err(UsageError::new("a run cannot be compared with itself").into());
            }
            compare_runs(&first, &second, &analysis)?
        }
    };
    check_metrics(arguments, &summaries)?;
    let comparisons: Vec<&Comparison> = summaries
        .iter()
        .flat_map(|summary| &summary.comparisons)
        .collect();
    if arguments.json {
        for comparison in comparisons {
            print_json(serde_json::to_string(comparison)?);
        }
        for effect in summaries.iter().flat_map(|summary| &summary.effects) {
            print_json(serde_json::to_string(effect)?);
        }
        if arguments.each {
            for change in summaries.iter().flat_map(changes) {
                print_json(serde_json::to_string(&change)?);
            }
        }
        return Ok(Exit::Done);
    }
    let unfinished = summaries.iter().flat_map(|summary| &summary.cautions);
    let unfinished = unfinished.filter(|caution| caution.code == "unfinished");
    for text in unfinished.map(|caution| &caution.text).take(1) {
        print(style(plain(text)).yellow().to_string());
    }
    if comparisons.is_empty() {
        print("nothing to compare: there is only one mode");
    }
    for summary in &summaries {
        print_effects(summary);
        show(summary, arguments);
        if arguments.each || arguments.b.is_some() {
            show_changes(&changes(summary), arguments.each);
        }
    }
    print_cautions(&summaries);
    for pair in summaries.iter().flat_map(Summary::decisive_pairs) {
        let closing = closing_line(pair);
        closing
            .into_iter()
            .for_each(|line| print(wrapped(&plain(&line), "")));
    }
    Ok(Exit::Done)
}

/// The suite's wishes, under those of the command line.
fn analysis(arguments: &CompareArguments, suite: &Analysis) -> Analysis {
    let mut analysis = suite.clone();
    if let Some(baseline) = &arguments.baseline {
        analysis.baseline = Some(baseline.clone());
    }
    if let Some(statistic) = arguments.statistic {
        analysis.statistic = Some(statistic.into());
        analysis.statistics.clear();
    }
    if let Some(scope) = arguments.scope {
        analysis.scope = scope.into();
    }
    analysis.family = arguments.family.into();
    analysis.mixed = arguments.mixed;
    analysis.counts_scenarios = arguments.each || arguments.b.is_some();
    if !arguments.metric.is_empty() {
        // Metrics named on the command line are declared ones.
        analysis.metrics = Some(arguments.metric.clone());
        analysis.primary = Some(arguments.metric.clone());
    }
    analysis
}

/// One summary per mode that both runs have: the second run against the first, paired by scenario.
fn compare_runs(first: &Source, second: &Source, analysis: &Analysis) -> Result<Vec<Summary>> {
    let names = labels(first, second);
    let modes = common_modes(first, second)?;
    if modes.is_empty() {
        return Err(UsageError::new("the two have no mode in common").into());
    }
    let several = modes.len() > 1;
    let mut builders: Vec<SummaryBuilder> = Vec::new();
    let mut analyses: Vec<Analysis> = Vec::new();
    for mode in modes {
        let label = |run: &String| match several {
            true => format!("{mode} ({run})"),
            false => run.clone(),
        };
        let mut builder = SummaryBuilder::default();
        for (source, run) in [(first, &names[0]), (second, &names[1])] {
            builder.add_catalog(&source.catalog);
            if let Some(reader) = source.open()? {
                builder
                    .read_mode_as(reader, &mode, &label(run))
                    .with_context(|| source.describe("in"))?;
            }
        }
        let pair = Analysis {
            baseline: None,
            mode_order: vec![label(&names[0]), label(&names[1])],
            unfinished: unfinished_mode(first, second, &mode, builder.trials()),
            ..analysis.clone()
        };
        builders.push(builder);
        analyses.push(pair);
    }
    let looks = looks_at(first, second);
    for pair in &mut analyses {
        pair.looks.clone_from(&looks);
    }
    let pairs = builders.into_iter().zip(&analyses).collect();
    Ok(SummaryBuilder::finish_together(pairs)?)
}

/// Looks at two growing runs: the one that was looked at more often counts.
fn looks_at(first: &Source, second: &Source) -> Option<LooksReading> {
    let both = [first, second]
        .into_iter()
        .filter_map(|source| source.looks.as_ref());
    let most = both.max_by_key(|reading| reading.number)?;
    Some(LooksReading {
        looks: Looks {
            stopping: Stopping::Undeclared { looks: most.number },
            decided: Vec::new(),
        },
        declared: None,
        ..most.clone()
    })
}

/// The progress of one mode of both runs, where some trials are missing.
fn unfinished_mode(first: &Source, second: &Source, mode: &str, done: u64) -> Option<Unfinished> {
    let of_mode = |source: &Source| {
        let plan = source.planned.as_ref()?;
        let arms = plan.arms.iter().filter(|arm| arm.mode == mode);
        let arms = arms.cloned().collect();
        Some(
            Planned {
                arms,
                ..plan.clone()
            }
            .trials(),
        )
    };
    let planned = of_mode(first)? + of_mode(second)?;
    (done < planned).then_some(Unfinished { done, planned })
}

/// The labels of the two: the run's id, or the file.
fn labels(first: &Source, second: &Source) -> [String; 2] {
    let names = [first.name(), second.name()];
    match names[0] == names[1] {
        true => [first, second].map(|source| source.rows.display().to_string()),
        false => names,
    }
}

fn common_modes(first: &Source, second: &Source) -> Result<Vec<String>> {
    let modes = |source: &Source| -> Result<Vec<String>> {
        let mut modes = source.modes.clone();
        let Some(reader) = source.open()?.filter(|_| modes.is_empty()) else {
            return Ok(modes);
        };
        assize_report::read_rows(reader, |bytes| {
            if let Ok(row) = assize_report::Row::parse(bytes.json)
                && !modes.iter().any(|mode| *mode == row.mode)
            {
                modes.push(row.mode.into_owned());
            }
            Ok(())
        })?;
        Ok(modes)
    };
    let others = modes(second)?;
    let mut common = modes(first)?;
    common.retain(|mode| others.contains(mode));
    Ok(common)
}

/// A metric that nothing measured was probably misspelt.
fn check_metrics(arguments: &CompareArguments, summaries: &[Summary]) -> Result<(), UsageError> {
    let is_measured = |name: &str| {
        let mut modes = summaries.iter().flat_map(|summary| summary.modes.iter());
        name == SUCCESS || modes.any(|(_, mode)| mode.metrics.find(name).is_some())
    };
    match arguments.metric.iter().find(|name| !is_measured(name)) {
        Some(name) => Err(UsageError {
            message: format!("no trial measured `{name}`"),
            hint: Some("`assize compare --verbose` lists the metrics there are".to_owned()),
        }),
        None => Ok(()),
    }
}

/// Every pair of modes, scenario by scenario.
fn changes(summary: &Summary) -> Vec<ScenarioChange<'_>> {
    let pairs = summary.pairs();
    let pairs = pairs.map(|pair| scenario_changes(summary, pair[0].mode_a(), pair[0].mode_b()));
    pairs.flatten().collect()
}

/// Prints the number of changes of each kind, and their scenarios; all of them only when asked for.
fn show_changes(changes: &[ScenarioChange<'_>], all: bool) {
    for pair in changes.chunk_by(|a, b| a.mode_a == b.mode_a && a.mode_b == b.mode_b) {
        let of = |kind| pair.iter().filter(move |change| change.change == kind);
        let kinds = ChangeKind::ALL.iter().filter(|kind| of(**kind).count() > 0);
        let counts: Vec<String> = kinds
            .clone()
            .map(|kind| format!("{} {}", of(*kind).count(), kind.as_str()))
            .collect();
        print(format!(
            "success scenario by scenario, as counted (one difference may be chance): {}",
            counts.join(", ")
        ));
        for kind in kinds.filter(|kind| all || **kind != ChangeKind::Unchanged) {
            let most = if all { usize::MAX } else { MOST_SHOWN };
            for change in of(*kind).take(most) {
                print(format!("  {}  {}", kind.as_str(), change_words(change)));
            }
            let more = of(*kind).count().saturating_sub(most);
            if more > 0 {
                print(format!(
                    "  {}  and {more} more (`--each` shows all)",
                    kind.as_str()
                ));
            }
        }
    }
}

fn change_words(change: &ScenarioChange<'_>) -> String {
    let count = |count: PassCount| format!("{} of {}", count.passed, count.trials);
    let counts = match (change.b.map(count), change.a.map(count)) {
        (Some(before), Some(after)) => format!("{before} → {after}"),
        (before, after) => before.or(after).unwrap_or_default(),
    };
    plain(&format!("{} ({counts})", change.scenario))
}

fn show(summary: &Summary, arguments: &CompareArguments) {
    for pair in summary.pairs() {
        // Pairs of modes that come from factors decide nothing.
        if !arguments.verbose && pair.iter().all(Comparison::is_exploratory) {
            continue;
        }
        let heading = format!("{} against {}", pair[0].mode_a(), pair[0].mode_b());
        print(style(plain(&heading)).bold().to_string());
        let (exploratory, declared): (Vec<&Comparison>, Vec<&Comparison>) =
            pair.iter().partition(|found| found.is_exploratory());
        for comparison in &declared {
            print(verdict_with_bar(comparison));
            let sentence = wrapped(&plain(&sentence(comparison)), "    ");
            print(style(sentence).dim().to_string());
        }
        if arguments.verbose {
            print(comparison_table(&declared, summary));
        }
        if arguments.verbose && !exploratory.is_empty() {
            print(EXPLORATORY);
            print(comparison_table(&exploratory, summary));
        }
    }
}
