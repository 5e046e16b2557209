//! A summary in the terminal: the table, what to watch out for, and the verdict in words.

use super::{plain, print, print_gates, print_reasons, summary_table, wrapped, wrapped_after};
use assize_report::{
    Comparison, EFFECTS_NOTE, EXPLORATORY, Summary, advice, clause, effect_sentence, headline,
    verdict_line,
};
use assize_stats::Verdict;
use console::style;

/// The table, why trials did not pass, one line per deciding comparison, and the cautions that matter for them. `run` is
/// what to type for the run.
pub(crate) fn print_summary(summary: &Summary, run: &str) {
    print(summary_table(summary).to_string());
    print_reasons(summary, run);
    let is_said = |caution: &assize_report::Caution| {
        caution.code == assize_report::CautionCode::JudgeDisagrees
    };
    if let Some(judge) = &summary.judge
        && !summary.cautions.iter().any(is_said)
    {
        print(style(wrapped(&judge.sentence(), "")).dim().to_string());
    }
    let nothing_worked = summary.nothing_worked();
    let words = nothing_worked.map(|words| wrapped(words, ""));
    words.into_iter().for_each(print);
    let mut against = None;
    let decisive = summary.decisive().filter(|_| nothing_worked.is_none());
    for comparison in decisive {
        if against != Some(comparison.mode_b()) {
            against = Some(comparison.mode_b());
            print(
                style(format!("against {}", plain(comparison.mode_b())))
                    .dim()
                    .to_string(),
            );
        }
        print(marked(comparison, &verdict_line(comparison), "  "));
        if let Some(advice) = advice(comparison) {
            let advice = wrapped(&plain(&advice), "    ");
            print(style(advice).dim().to_string());
        }
    }
    print_effects(summary);
    print_triggers(summary);
    print_gates(&summary.gates);
    print_cautions([summary]);
}

/// Prints the effects of the factors, where the modes come from factors.
pub(crate) fn print_effects(summary: &Summary) {
    if summary.effects.is_empty() {
        return;
    }
    print(style("effects of the factors").dim().to_string());
    let mut is_under_exploratory = false;
    for effect in summary.shown_effects() {
        if effect.exploratory && !is_under_exploratory {
            print(style(wrapped(EXPLORATORY, "")).dim().to_string());
            is_under_exploratory = true;
        }
        let line = wrapped(&plain(&effect_sentence(effect)), "    ");
        let mark = match effect.verdict {
            Verdict::Better => style("✓").green(),
            Verdict::Worse => style("✗").red(),
            Verdict::Lower => style("↓").dim(),
            Verdict::Higher => style("↑").dim(),
            _ => style("?").yellow(),
        };
        print(format!("  {mark} {}", line.trim_start()));
    }
    print(style(wrapped(EFFECTS_NOTE, "    ")).dim().to_string());
}

/// Prints how well the use of skills fits their expected use.
fn print_triggers(summary: &Summary) {
    for (name, mode) in summary.modes.iter() {
        if let Some(found) = &mode.triggers {
            let line = format!("skill in {name}: {}", found.words());
            print(wrapped(&plain(&line), ""));
        }
    }
}

/// Cautions about the trials and the deciding metrics, each once; the others are in the report.
pub(crate) fn print_cautions<'a>(summaries: impl IntoIterator<Item = &'a Summary>) {
    let mut printed: Vec<&str> = Vec::new();
    let cautions = summaries.into_iter().flat_map(|summary| &summary.cautions);
    for caution in cautions.filter(|caution| caution.is_primary) {
        if !printed.contains(&caution.text.as_str()) {
            let note = style("note:").yellow().bold();
            let text = wrapped_after("note: ", &plain(&caution.text));
            print(text.replacen("note:", &note.to_string(), 1));
            printed.push(&caution.text);
        }
    }
}

/// The interval as a small picture, then the line: left of the middle the mode has less.
pub(crate) fn verdict_with_bar(comparison: &Comparison) -> String {
    let bar = match span(comparison) {
        Some(span) => bar(span),
        None => " ".repeat(2 * HALF + 1),
    };
    marked(comparison, &clause(comparison), &format!("  {bar} "))
}

/// Characters on either side of no difference; the ends stand for 100 % or 100 points.
const HALF: usize = 15;

/// Lower end, estimate and upper end of the change from B to A, in percent or points.
fn span(comparison: &Comparison) -> Option<[f64; 3]> {
    match comparison {
        Comparison::Success(found) => {
            let [low, high] = found.ci95?;
            Some([low, found.difference_pp?, high])
        }
        Comparison::Metric(found) => {
            let shown = headline(found).filter(|shown| shown.is_ratio)?;
            let [low, high] = shown.interval;
            Some([-high, -shown.value, -low])
        }
    }
}

fn bar(span: [f64; 3]) -> String {
    let place = |change: f64| {
        let steps = (change / 100.0 * HALF as f64).round();
        (steps.clamp(-(HALF as f64), HALF as f64) + HALF as f64) as usize
    };
    let [low, at, high] = span.map(place);
    let mark = |column: usize| match column {
        _ if column == at => '●',
        _ if column == low && span[0] < -100.0 => '◂',
        _ if column == high && span[2] > 100.0 => '▸',
        _ if column == low => '├',
        _ if column == high => '┤',
        HALF => '│',
        _ if (low..high).contains(&column) => '─',
        _ => '·',
    };
    (0..=2 * HALF).map(mark).collect()
}

/// A line about a comparison after so many columns, marked by its verdict.
fn marked(comparison: &Comparison, line: &str, before: &str) -> String {
    let line = plain(line);
    let mark = match comparison.verdict() {
        Verdict::Better => "✓",
        Verdict::Worse => "✗",
        Verdict::Equivalent => "=",
        Verdict::Lower => "↓",
        Verdict::Higher => "↑",
        _ => "?",
    };
    let text = wrapped_after(&format!("{before}{mark} "), &line);
    match comparison.verdict() {
        Verdict::Better => style(text).green().to_string(),
        Verdict::Worse => style(text).red().to_string(),
        Verdict::Equivalent => style(text).cyan().to_string(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_where_the_interval_lies() {
        assert_eq!(
            bar([-44.0, -31.0, -14.0]),
            "········├─●──┤·│···············"
        );
        assert_eq!(bar([-79.0, 0.0, 165.0]), "···├───────────●──────────────▸");
        assert_eq!(bar([0.0, 0.0, 0.0]), "···············●···············");
    }
}
