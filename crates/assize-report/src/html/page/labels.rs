//! Expected labels against those that came out.

use super::table::{MOST_ROWS, Table, figure, left_out, number, section, text};
use crate::html::charts::{MOST_LABELS, confusion};
use crate::{Classification, ModeSummary, Summary, percent};
use maud::{Markup, html};

pub(super) fn labels(summary: &Summary) -> Markup {
    let has_labels = |mode: &ModeSummary| !mode.classification.is_empty();
    if !summary.modes.iter().any(|(_, mode)| has_labels(mode)) {
        return Markup::default();
    }
    let content = html! {
        @for (mode, found) in summary.modes.iter() {
            @for (metric, found) in found.classification.iter() { (of_metric(mode, metric, found)) }
        }
    };
    section("labels", "Labels", content)
}

fn of_metric(mode: &str, metric: &str, found: &Classification) -> Markup {
    let title = format!("{mode}: {metric}, {} trials", found.trials);
    let note = format!(
        "accuracy {}, macro F1 {}, micro F1 {}",
        percent(found.accuracy),
        percent(found.macro_f1),
        percent(found.micro_f1)
    );
    let picture = confusion(found, &format!("{title}: {note}"));
    html! {
        (figure(&title, &picture, &note))
        @if found.classes.len() > MOST_LABELS {
            p.legend { "Only " (MOST_LABELS) " labels are drawn." }
        }
        (class_table(mode, found).markup())
        (left_out(found.classes.len(), "labels"))
    }
}

fn class_table(mode: &str, found: &Classification) -> Table {
    let mut table = Table::new(
        &format!("Labels of {mode}"),
        &["Label", "Expected", "Precision", "Recall", "F1"],
    );
    let share = |share: Option<f64>| share.map_or_else(|| "n/a".to_owned(), percent);
    for class in found.classes.iter().take(MOST_ROWS) {
        table.row(vec![
            text(&class.label),
            number(&class.support.to_string()),
            number(&share(class.precision)),
            number(&share(class.recall)),
            number(&percent(class.f1)),
        ]);
    }
    table
}
