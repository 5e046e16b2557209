//! Skills: offered, used, when, by whom, and whether they should have been.

use super::table::{MOST_ROWS, Table, left_out, name_cell, number, section, text};
use crate::Summary;
use crate::skills::{SkillTable, by_scenario, triggers, uses};
use maud::{Markup, html};

pub(super) fn skills(summary: &Summary) -> Markup {
    let used = uses(summary);
    if used.lines.is_empty() {
        return Markup::default();
    }
    let (triggers, scenarios) = (triggers(summary), by_scenario(summary));
    let content = html! {
        (table("Use of skills, mode by mode", &used).markup())
        p.legend {
            "Shares are of trials; other numbers are medians over the trials in which the skill was used. A skill is used when the agent calls it, \
             reads its file, or its text stands in a request to the model. Modes without the skill are looked at, too."
        }
        @if !triggers.lines.is_empty() {
            h3 { "Does it trigger?" }
            (table("Recall, precision and false triggers, with intervals", &triggers).markup())
            p.legend {
                "Recall: of the trials that should use the skill, those that did. Precision: of the trials that used it, those that should. False \
                 triggers: of the trials that should not, those that did. Trials of a scenario belong together; with at most four scenarios, the \
                 intervals hold for exactly these."
            }
            (table("Should be used, and was, scenario by scenario", &scenarios).markup())
            (left_out(scenarios.lines.len(), "lines"))
        }
    };
    section("skills", "Skills", content)
}

fn table(caption: &str, found: &SkillTable) -> Table {
    let is_by_scenario = found.lines.iter().any(|line| line.scenario.is_some());
    let mut heading = Vec::from_iter(is_by_scenario.then_some("Scenario"));
    heading.push("Mode");
    heading.extend(&found.heading);
    let mut table = Table::new(caption, &heading);
    for line in found.lines.iter().take(MOST_ROWS) {
        let mut cells = Vec::from_iter(line.scenario.as_deref().map(text));
        cells.push(name_cell(line.mode, &line.name));
        cells.extend(line.cells.iter().map(|cell| number(cell)));
        table.row(cells);
    }
    table
}
