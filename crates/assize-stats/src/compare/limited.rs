//! The comparison of a metric some of whose runs were cut off by a limit.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Metric, MetricKind, ModePair};
use crate::interval::Level;
use crate::limited::{LimitKind, LimitedComparison, LimitedRuns, limited_comparison};

/// A limited comparison and what the limit does to the metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limited {
    /// The meaning of a cut-off run's value.
    pub kind: LimitKind,
    #[serde(flatten)]
    pub comparison: LimitedComparison,
}

#[derive(Default)]
struct Runs {
    values: Vec<f64>,
    cut: Vec<bool>,
}

/// None when no run of the pair was cut off.
pub(super) fn limited(metric: &Metric<'_>, modes: ModePair<'_>, alpha: Level) -> Option<Limited> {
    let is_meant = |mode: &str| mode == modes.a || mode == modes.b;
    let mut meant = metric.groups.iter().filter(|group| is_meant(group.mode));
    if !meant.any(|group| group.cut.contains(&true)) {
        return None;
    }
    let mut tasks: BTreeMap<Option<&str>, [Runs; 2]> = BTreeMap::new();
    for group in metric.groups.iter().filter(|group| is_meant(group.mode)) {
        let runs =
            &mut tasks.entry(group.scenario).or_default()[usize::from(group.mode == modes.b)];
        runs.values.extend(group.values);
        let cut = (0..group.values.len()).map(|run| group.cut.get(run).copied().unwrap_or(false));
        runs.cut.extend(cut);
    }
    let tasks: Vec<LimitedRuns<'_>> = tasks
        .values()
        .map(|[a, b]| LimitedRuns {
            a: &a.values,
            b: &b.values,
            cut_a: &a.cut,
            cut_b: &b.cut,
        })
        .collect();
    let kind = match metric.kind {
        MetricKind::Time => LimitKind::Time,
        MetricKind::Amount | MetricKind::Count => LimitKind::Tokens,
    };
    let comparison = limited_comparison(&tasks, kind, alpha).ok()?;
    Some(Limited { kind, comparison })
}
