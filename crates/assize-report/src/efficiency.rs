//! What one success takes, failures included: derived from the summary, and unknown where a trial was not measured.

use crate::{ModeSummary, amount, percent};

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
pub(crate) fn cells(mode: &ModeSummary) -> [String; 5] {
    let price = mode.cost_per_success.as_ref().and_then(|cost| cost.value);
    let failed = total(mode, "tool_calls_failed").zip(total(mode, "tool_calls_total"));
    let failed = failed.filter(|(_, calls)| *calls > 0.0);
    [
        per_success(mode, "tokens_total"),
        per_success(mode, "tokens_active"),
        per_success(mode, "latency_wall_ms"),
        known(price.map(|price| amount("cost_total_usd", price))),
        known(failed.map(|(failed, calls)| percent(failed / calls))),
    ]
}

fn per_success(mode: &ModeSummary, metric: &str) -> String {
    let passed = mode.success.passed;
    let total = total(mode, metric).filter(|_| passed > 0);
    known(total.map(|total| amount(metric, total / passed as f64)))
}

/// The sum over all judged trials. Unknown if one of them was not measured, or cut off.
fn total(mode: &ModeSummary, metric: &str) -> Option<f64> {
    let found = mode.metrics.find(metric)?;
    let is_whole = found.count as u64 == mode.success.trials && mode.censored == 0;
    found
        .mean
        .filter(|_| is_whole)
        .map(|mean| mean * found.count as f64)
}

fn known(text: Option<String>) -> String {
    text.unwrap_or_else(|| "unknown".to_owned())
}
