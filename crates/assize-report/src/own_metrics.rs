//! Metrics of the suite's own: measurements of collectors, scorers and evaluators beyond those of Assize.
//!
//! They are listed for every mode, one or many, also where they never vary: numbers by their statistics, texts by how often each
//! value came.

use crate::cells::{metric_cell, not_available};
use crate::{MetricSummary, ModeSummary, Named, Summary, amount};
use assize_contracts::Metric;
use assize_stats::Statistic;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// More values than these are no kinds; the rest is counted together.
const MOST_VALUES: usize = 60;

/// The name under which values beyond that are counted.
const OTHERS: &str = "(others)";

/// The count of each text, as a JSON object with the most frequent first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextCounts(BTreeMap<String, u64>);

impl TextCounts {
    pub(crate) fn add(&mut self, text: &str) {
        let is_kept = self.0.len() < MOST_VALUES || self.0.contains_key(text);
        let value = if is_kept { text } else { OTHERS };
        match self.0.get_mut(value) {
            Some(count) => *count += 1,
            None => drop(self.0.insert(value.to_owned(), 1)),
        }
    }

    /// The count of a value.
    pub fn count(&self, text: &str) -> u64 {
        self.0.get(text).copied().unwrap_or(0)
    }

    /// Values and counts, the most frequent first.
    pub fn by_frequency(&self) -> Vec<(&str, u64)> {
        let values = self.0.iter();
        let mut values: Vec<(&str, u64)> = values.map(|(text, n)| (text.as_str(), *n)).collect();
        values.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        values
    }
}

impl Serialize for TextCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.by_frequency())
    }
}

/// The column headings of `numbers`.
pub(crate) const NUMBERS: [&str; 10] = [
    "Metric",
    "Mode",
    "Trials",
    "Mean",
    "Median",
    "p90",
    "p95",
    "Standard deviation",
    "CV",
    "IQR",
];

/// One line of a table: a metric in a mode.
pub(crate) struct Line<'a> {
    /// The mode's place among the modes.
    pub(crate) mode: usize,
    pub(crate) name: &'a str,
    pub(crate) metric: Cow<'a, Metric>,
    found: &'a MetricSummary,
}

/// Every number of the suite's own in every mode.
pub(crate) fn numbers(summary: &Summary) -> Vec<Line<'_>> {
    let own = summary
        .catalog
        .iter()
        .filter(|metric| !metric.is_built_in());
    own.flat_map(|metric| {
        let modes = summary.modes.iter().enumerate();
        modes.filter_map(move |(mode, (name, found))| {
            Some(Line {
                mode,
                name,
                metric: Cow::Borrowed(metric),
                found: found.metrics.find(&metric.name)?,
            })
        })
    })
    .collect()
}

impl Line<'_> {
    /// The numbers behind metric and mode.
    pub(crate) fn cells(&self) -> [String; 8] {
        let number = |statistic| metric_cell(&self.metric, Some(self.found), statistic);
        let spread = |value: Option<f64>| {
            value.map_or_else(not_available, |value| amount(&self.metric, value))
        };
        let cv = self
            .found
            .cv
            .map_or_else(not_available, |cv| format!("{cv:.2}"));
        [
            self.found.count.to_string(),
            number(Statistic::Mean),
            number(Statistic::Median),
            number(Statistic::P90),
            number(Statistic::P95),
            spread(self.found.stddev),
            cv,
            spread(self.found.iqr),
        ]
    }
}

/// Every text of the suite's own: the metric, a value, and its count in each mode. Absent where a mode never reported one.
pub(crate) fn texts(summary: &Summary) -> Vec<(String, String, Vec<Option<u64>>)> {
    let mut all: BTreeMap<&str, TextCounts> = BTreeMap::new();
    for (name, counts) in summary.modes.iter().flat_map(|(_, mode)| mode.texts.iter()) {
        let sum = all.entry(name).or_default();
        for (value, count) in &counts.0 {
            *sum.0.entry(value.clone()).or_default() += count;
        }
    }
    let of_mode = |mode: &ModeSummary, name: &str, value: &str| {
        let counts: &Named<TextCounts> = &mode.texts;
        counts.find(name).map(|counts| counts.count(value))
    };
    let lines = all.iter().flat_map(|(name, sum)| {
        sum.by_frequency().into_iter().map(|(value, _)| {
            let modes = summary.modes.iter();
            let counts = modes.map(|(_, mode)| of_mode(mode, name, value));
            let title = summary.catalog.metric(name).title();
            (title, value.to_owned(), counts.collect())
        })
    });
    lines.collect()
}
