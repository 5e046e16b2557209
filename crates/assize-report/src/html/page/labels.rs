//! What labels came out where which were expected.

use super::Written;
use super::table::{MOST_ROWS, Table, figure, left_out, number, section};
use crate::html::charts::{MOST_LABELS, confusion};
use crate::html::escape::html;
use crate::{Summary, percent};
use std::fmt::Write;

pub(super) fn labels(page: &mut String, summary: &Summary) -> Written {
    let has_labels = |mode: &crate::ModeSummary| !mode.classification.is_empty();
    if !summary.modes.iter().any(|(_, mode)| has_labels(mode)) {
        return Ok(());
    }
    section(page, "labels", "Labels")?;
    for (mode, found) in summary.modes.iter() {
        for (metric, found) in found.classification.iter() {
            let title = format!("{mode}: {metric}, {} trials", found.trials);
            let note = format!(
                "accuracy {}, macro F1 {}, micro F1 {}",
                percent(found.accuracy),
                percent(found.macro_f1),
                percent(found.micro_f1)
            );
            figure(
                page,
                &title,
                &confusion(found, &format!("{title}: {note}")),
                &note,
            )?;
            if found.classes.len() > MOST_LABELS {
                writeln!(
                    page,
                    "<p class=\"legend\">Only {MOST_LABELS} labels are drawn.</p>"
                )?;
            }
            let mut table = Table::new(
                &format!("Labels of {}", html(mode)),
                &["Label", "Expected", "Precision", "Recall", "F1"],
            );
            let share = |share: Option<f64>| share.map_or_else(|| "n/a".to_owned(), percent);
            for class in found.classes.iter().take(MOST_ROWS) {
                table.row(vec![
                    html(&class.label),
                    number(&class.support.to_string()),
                    number(&share(class.precision)),
                    number(&share(class.recall)),
                    number(&percent(class.f1)),
                ]);
            }
            table.write(page)?;
            left_out(page, found.classes.len(), "labels")?;
        }
    }
    writeln!(page, "</section>")
}
