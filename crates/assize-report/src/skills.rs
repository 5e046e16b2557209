//! The use of skills, mode by mode and scenario by scenario, as the tables of every page have it.

use crate::cells::not_available;
use crate::{ModeSummary, Summary, TriggerRate, amount, percent};
use assize_contracts::Metric;

/// A column of the table of use: its title and the metric. Shares are shown as percentages, other numbers by their median.
struct Column {
    title: &'static str,
    metric: &'static str,
    /// True if the column is left out where no mode has such a number.
    is_optional: bool,
}

const fn always(title: &'static str, metric: &'static str) -> Column {
    Column {
        title,
        metric,
        is_optional: false,
    }
}

const fn if_known(title: &'static str, metric: &'static str) -> Column {
    Column {
        title,
        metric,
        is_optional: true,
    }
}

const COLUMNS: [Column; 9] = [
    always("Used", Metric::SKILL_ACTIVATED),
    always("Offered", "skill_offered"),
    if_known("Uses in a trial", "skill_activations"),
    always("Turn of first use", "skill_activation_turn"),
    always("Time to it", "skill_time_to_activation_ms"),
    always("Tokens before it", "skill_tokens_to_activation"),
    always("Tokens of its text", "skill_text_tokens"),
    if_known("Another skill used", "skill_neighbour_activated"),
    if_known("Detectors agree", "skill_detectors_agree"),
];

/// Texts that are counted: who used the skill (the main agent, or which subagent), and which skills were used.
const TEXTS: [(&str, &str); 2] = [("Used by", "skill_activated_in"), ("Which", "skills_used")];

/// A table without its form: cells are plain text.
pub(crate) struct SkillTable {
    pub(crate) heading: Vec<&'static str>,
    pub(crate) lines: Vec<SkillLine>,
}

/// A line of a table.
pub(crate) struct SkillLine {
    /// The mode's place among the modes.
    pub(crate) mode: usize,
    /// The scenario, in tables by scenario.
    pub(crate) scenario: Option<String>,
    pub(crate) name: String,
    pub(crate) cells: Vec<String>,
}

/// The counts of offered and used skills, and what came before the first use. Without lines where skills were not looked for.
pub(crate) fn uses(summary: &Summary) -> SkillTable {
    let modes: Vec<&ModeSummary> = summary.modes.iter().map(|(_, mode)| mode).collect();
    let is_known = |column: &&Column| {
        let mut modes = modes.iter();
        !column.is_optional || modes.any(|mode| mode.metrics.find(column.metric).is_some())
    };
    let columns: Vec<&Column> = COLUMNS.iter().filter(is_known).collect();
    let is_known = |(_, metric): &&(&str, &str)| {
        let mut modes = modes.iter();
        modes.any(|mode| mode.texts.find(metric).is_some())
    };
    let texts: Vec<&(&str, &str)> = TEXTS.iter().filter(is_known).collect();
    let mut heading: Vec<&str> = columns.iter().map(|column| column.title).collect();
    heading.extend(texts.iter().map(|(title, _)| title));
    let cells = |mode: &ModeSummary| {
        let numbers = columns.iter().map(|column| cell(summary, mode, column));
        let texts = texts.iter().map(|(_, metric)| counts(mode, metric));
        numbers.chain(texts).collect()
    };
    let looked = |mode: &ModeSummary| mode.metrics.find(Metric::SKILL_ACTIVATED).is_some();
    SkillTable {
        heading,
        lines: lines(summary, |mode| looked(mode).then(|| cells(mode))),
    }
}

/// The use of the skill compared with its expected use, with intervals. Without lines where no scenario states one.
pub(crate) fn triggers(summary: &Summary) -> SkillTable {
    let rate =
        |rate: &Option<TriggerRate>| rate.as_ref().map_or_else(not_available, TriggerRate::words);
    SkillTable {
        heading: vec!["Recall", "Precision", "False triggers"],
        lines: lines(summary, |mode| {
            let found = mode.triggers.as_ref()?;
            let rates = [&found.recall, &found.precision, &found.false_triggers];
            Some(rates.map(rate).to_vec())
        }),
    }
}

/// Scenarios that say whether the skill should be used, and how often it was.
pub(crate) fn by_scenario(summary: &Summary) -> SkillTable {
    let mut all = Vec::new();
    for (id, scenario) in summary.scenarios.iter() {
        for (name, mode) in scenario.modes.iter() {
            let share = |metric: &str| mode.metrics.find(metric).and_then(|found| found.mean);
            let (Some(should), Some(used)) = (
                share(Metric::SKILL_SHOULD_TRIGGER),
                share(Metric::SKILL_ACTIVATED),
            ) else {
                continue;
            };
            let trials = mode.metrics.find(Metric::SKILL_ACTIVATED);
            let trials = trials.map_or(0, |found| found.count);
            let uses = (used * trials as f64).round();
            let wanted = if should > 0.5 { "yes" } else { "no" };
            all.push(SkillLine {
                mode: place_of(summary, name),
                scenario: Some(id.to_owned()),
                name: name.to_owned(),
                cells: vec![wanted.to_owned(), format!("{uses} of {trials}")],
            });
        }
    }
    SkillTable {
        heading: vec!["Should be used", "Was used"],
        lines: all,
    }
}

fn lines(summary: &Summary, cells: impl Fn(&ModeSummary) -> Option<Vec<String>>) -> Vec<SkillLine> {
    let modes = summary.modes.iter().enumerate();
    let found = modes.filter_map(|(place, (name, mode))| {
        Some(SkillLine {
            mode: place,
            scenario: None,
            name: name.to_owned(),
            cells: cells(mode)?,
        })
    });
    found.collect()
}

fn place_of(summary: &Summary, name: &str) -> usize {
    let mut modes = summary.modes.iter();
    modes.position(|(known, _)| known == name).unwrap_or(0)
}

fn cell(summary: &Summary, mode: &ModeSummary, column: &Column) -> String {
    let metric = summary.catalog.metric(column.metric);
    let found = mode.metrics.find(column.metric);
    match metric.is_ratio() {
        true => found
            .and_then(|found| found.mean)
            .map_or_else(not_available, percent),
        false => found
            .and_then(|found| found.median)
            .map_or_else(not_available, |median| amount(&metric, median)),
    }
}

/// The count of each text: `main agent 12, subagent 3`.
fn counts(mode: &ModeSummary, metric: &str) -> String {
    let Some(found) = mode.texts.find(metric) else {
        return not_available();
    };
    let texts = found.by_frequency();
    let texts: Vec<String> = texts
        .iter()
        .map(|(text, count)| format!("{text} {count}"))
        .collect();
    texts.join(", ")
}
