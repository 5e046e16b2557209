//! The cost of one success, failures included: derived from the summary, and unknown where a trial was not measured.

use crate::{ModeSummary, Summary, amount, money, percent};
use assize_contracts::RowField;

/// Headings of the cells.
pub(crate) const HEADING: [&str; 6] = [
    "Mode",
    "Tokens per success",
    "Active tokens per success",
    "Time per success",
    "Cost per success",
    "Failed tool calls",
];

/// One mode, without its name. Unknown values show as `unknown`.
pub(crate) fn cells(summary: &Summary, mode: &ModeSummary) -> [String; 5] {
    let per_success = |field| per_success(summary, mode, field);
    let exact = |field| total(summary, mode, field).and_then(Total::exact);
    let failed = exact(RowField::ToolCallsFailed).zip(exact(RowField::ToolCalls));
    let failed = failed.filter(|(_, calls)| *calls > 0.0);
    [
        per_success(RowField::TokensTotal),
        per_success(RowField::TokensActive),
        per_success(RowField::WallTime),
        cost_per_success(summary, mode),
        known(failed.map(|(failed, calls)| percent(failed / calls))),
    ]
}

/// The cost of one success; a lower bound where trials are known in part.
pub(crate) fn cost_per_success(summary: &Summary, mode: &ModeSummary) -> String {
    let price = mode.cost_per_success.as_ref().and_then(|cost| cost.value);
    price.map_or_else(|| per_success(summary, mode, RowField::CostTotal), money)
}

fn per_success(summary: &Summary, mode: &ModeSummary, field: RowField) -> String {
    let passed = mode.success.passed;
    let total = total(summary, mode, field).filter(|_| passed > 0);
    let metric = summary.catalog.of_field(field);
    let shared = |total: f64| amount(&metric, total / passed as f64);
    known(total.map(|total| match total {
        Total::Exact(total) => shared(total),
        Total::AtLeast(total) => format!("≥ {}", shared(total)),
    }))
}

/// The sum over all judged trials.
#[derive(Clone, Copy)]
enum Total {
    Exact(f64),
    /// Of some trials only a lower bound is known.
    AtLeast(f64),
}

impl Total {
    fn exact(self) -> Option<f64> {
        match self {
            Self::Exact(total) => Some(total),
            Self::AtLeast(_) => None,
        }
    }
}

/// Unknown if one trial was not measured at all, or its time cut off.
fn total(summary: &Summary, mode: &ModeSummary, field: RowField) -> Option<Total> {
    let found = summary.field(mode, field).1?;
    let count = found.count as f64;
    match (found.mean, found.at_least) {
        _ if found.count as u64 != mode.success.trials => None,
        (Some(mean), _) if mode.censored == 0 => Some(Total::Exact(mean * count)),
        (None, Some(least)) => Some(Total::AtLeast(least.mean * count)),
        _ => None,
    }
}

fn known(text: Option<String>) -> String {
    text.unwrap_or_else(|| "unknown".to_owned())
}
