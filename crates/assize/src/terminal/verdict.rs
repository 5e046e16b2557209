//! A summary in the terminal: the table, what to watch out for, and the verdict in words.

use super::{plain, print, summary_table};
use assize_report::{Comparison, Summary, verdict_line};
use assize_stats::Verdict;
use console::style;

/// The table, one line per deciding comparison, and the cautions that matter for them.
pub(crate) fn print_summary(summary: &Summary) {
    print(summary_table(summary).to_string());
    let mut against = None;
    for comparison in summary.decisive() {
        if against != Some(comparison.mode_b()) {
            against = Some(comparison.mode_b());
            print(
                style(format!("against {}", plain(comparison.mode_b())))
                    .dim()
                    .to_string(),
            );
        }
        print(format!("  {}", verdict(comparison)));
    }
    print_cautions(summary);
}

/// Cautions about the trials and the deciding metrics; the others are in the report.
pub(crate) fn print_cautions(summary: &Summary) {
    for caution in summary.cautions.iter().filter(|caution| caution.is_primary) {
        print(format!(
            "{} {}",
            style("note:").yellow().bold(),
            plain(&caution.text)
        ));
    }
}

/// The line of a comparison, marked by its verdict.
pub(crate) fn verdict(comparison: &Comparison) -> String {
    let line = plain(&verdict_line(comparison));
    match comparison.verdict() {
        Verdict::Better => style(format!("✓ {line}")).green().to_string(),
        Verdict::Worse => style(format!("✗ {line}")).red().to_string(),
        Verdict::Equivalent => style(format!("= {line}")).cyan().to_string(),
        _ => format!("? {line}"),
    }
}
