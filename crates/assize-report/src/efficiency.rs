//! What one success takes, failures included: derived from the summary, and unknown where a trial was not measured.

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

/// One mode, without its name. What is not known is `unknown`.
pub(crate) fn cells(summary: &Summary, mode: &ModeSummary) -> [String; 5] {
    let total = |field| total(summary, mode, field);
    let per_success = |field| per_success(summary, mode, field);
    let price = mode.cost_per_success.as_ref().and_then(|cost| cost.value);
    let failed = total(RowField::ToolCallsFailed).zip(total(RowField::ToolCalls));
    let failed = failed.filter(|(_, calls)| *calls > 0.0);
    [
        per_success(RowField::TokensTotal),
        per_success(RowField::TokensActive),
        per_success(RowField::WallTime),
        known(price.map(money)),
        known(failed.map(|(failed, calls)| percent(failed / calls))),
    ]
}

fn per_success(summary: &Summary, mode: &ModeSummary, field: RowField) -> String {
    let passed = mode.success.passed;
    let total = total(summary, mode, field).filter(|_| passed > 0);
    let metric = summary.catalog.of_field(field);
    known(total.map(|total| amount(&metric, total / passed as f64)))
}

/// The sum over all judged trials. Unknown if one of them was not measured, or cut off.
fn total(summary: &Summary, mode: &ModeSummary, field: RowField) -> Option<f64> {
    let found = summary.field(mode, field).1?;
    let is_whole = found.count as u64 == mode.success.trials && mode.censored == 0;
    found
        .mean
        .filter(|_| is_whole)
        .map(|mean| mean * found.count as f64)
}

fn known(text: Option<String>) -> String {
    text.unwrap_or_else(|| "unknown".to_owned())
}
