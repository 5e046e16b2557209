//! The closing table: one line per mode.

use super::{duration, money, percent, plain, quantity};
use assize_report::{ArmSummary, RunSummary};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// One line per mode and model; what nobody measured is "unknown".
pub(crate) fn summary_table(summary: &RunSummary) -> Table {
    let several_models = summary.has_several_models();
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if console::Term::stdout().features().is_attended() {
        table.set_width(console::Term::stdout().size().1.max(60));
    }
    table.set_header([
        "Mode",
        "Success",
        "Time (median)",
        "Time (p90)",
        "Tokens",
        "Cost",
        "Tool calls",
    ]);
    for arm in summary.arms() {
        table.add_row([
            Cell::new(name(arm, several_models)),
            Cell::new(success(arm)),
            right(known(arm.wall_ms.median(), |ms| bounded(arm, duration(ms)))),
            right(known(arm.wall_ms.percentile(0.9), |ms| {
                bounded(arm, duration(ms))
            })),
            right(known(arm.tokens_total.median(), quantity)),
            right(known(arm.cost_usd.median(), money)),
            right(known(arm.tool_calls.median(), quantity)),
        ]);
    }
    table
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn known(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "unknown".to_owned(), show)
}

/// Times of trials that ran out of time are lower bounds.
fn bounded(arm: &ArmSummary, text: String) -> String {
    if arm.censored > 0 {
        format!("≥ {text}")
    } else {
        text
    }
}

fn name(arm: &ArmSummary, with_model: bool) -> String {
    let mode = plain(&arm.mode);
    if with_model {
        format!("{mode} ({})", plain(&arm.model))
    } else {
        mode
    }
}

/// `18 of 20 (90 %)`, and how many of the trials taught anything when not all did.
fn success(arm: &ArmSummary) -> String {
    let judged = arm.passed + arm.failed;
    let rate = match judged {
        0 => "unknown".to_owned(),
        _ => format!(
            "{} of {judged} ({})",
            arm.passed,
            percent(arm.passed as f64 / judged as f64)
        ),
    };
    match arm.void {
        0 => rate,
        void => format!("{rate}, {void} void"),
    }
}
