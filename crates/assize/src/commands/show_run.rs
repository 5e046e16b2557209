//! The trials of a run in the terminal: the table, then one line per trial with its outcome and the reason.

use super::show::{reason, tokens};
use crate::cli::ShowArguments;
use crate::commands::verdict::{self, Source};
use crate::commands::{UsageError, last_run};
use crate::suite::{is_meant, suggest};
use crate::terminal::{one_line, plain, print, print_json, say, summary_table, terminal_width};
use anyhow::Result;
use assize_contracts::{Outcome, ProfileRow};
use assize_engine::store::RunDirectory;
use assize_report::{duration, quantity};
use console::style;

/// Trials listed unless asked for all.
const MOST: usize = 200;

/// The longest reason where no terminal limits it.
const LONGEST_REASON: usize = 300;

/// With less room than this behind the facts, the reason has a line of its own.
const SHORTEST_REASON: usize = 30;

/// The data of a trial in a list.
struct Line {
    position: String,
    outcome: Outcome,
    scenario: String,
    mode: String,
    time: String,
    tokens: String,
    reason: String,
}

/// Lists the trials of a run, or those of one scenario.
pub(super) fn show(
    run: &RunDirectory,
    scenario: Option<&str>,
    arguments: &ShowArguments,
) -> Result<()> {
    check_names(run, arguments)?;
    let mut rows = Vec::new();
    for row in run.rows()? {
        let row = row?;
        if is_wanted(&row, scenario, arguments) {
            rows.push(row);
        }
    }
    rows.sort_by_key(|row| row.position);
    if arguments.json {
        for row in &rows {
            print_json(serde_json::to_string(row)?);
        }
        return Ok(());
    }
    match scenario {
        Some(scenario) => show_scenario(run, scenario),
        None => show_summary(run)?,
    }
    list(run, &rows, arguments.full);
    Ok(())
}

fn is_wanted(row: &ProfileRow, scenario: Option<&str>, arguments: &ShowArguments) -> bool {
    let outcome = row.outcome.unwrap_or(Outcome::Fail);
    let wants_all = !arguments.failed && !arguments.void;
    let wants = wants_all
        || (arguments.failed && outcome == Outcome::Fail)
        || (arguments.void && outcome == Outcome::Void);
    let is_of_mode = arguments.mode.is_empty() || arguments.mode.contains(&row.mode);
    let mut scenarios = arguments.scenario.iter();
    let is_of_scenario =
        arguments.scenario.is_empty() || scenarios.any(|name| is_meant(name, &row.scenario_id));
    wants
        && is_of_mode
        && is_of_scenario
        && scenario.is_none_or(|scenario| is_meant(scenario, &row.scenario_id))
}

/// Names that the run does not know were probably misspelt.
fn check_names(run: &RunDirectory, arguments: &ShowArguments) -> Result<(), UsageError> {
    let plan = &run.manifest().plan;
    let modes: Vec<&str> = plan.arms.iter().map(|arm| arm.mode.as_str()).collect();
    let scenarios: Vec<&str> = plan.scenarios.iter().map(String::as_str).collect();
    let unknown = |kind: &str, name: &str, known: &[&str]| UsageError {
        message: format!("run {} has no {kind} `{name}`", run.id()),
        hint: suggest(name, known),
    };
    if let Some(name) = arguments
        .mode
        .iter()
        .find(|name| !modes.contains(&name.as_str()))
    {
        return Err(unknown("mode", name, &modes));
    }
    let has_tasks = plan.tasks.is_some();
    let is_known = |name: &str| scenarios.iter().any(|id| is_meant(name, id));
    let is_unknown = |name: &&String| !has_tasks && !is_known(name);
    match arguments.scenario.iter().find(is_unknown) {
        Some(name) => Err(unknown("scenario", name, &scenarios)),
        None => Ok(()),
    }
}

fn show_summary(run: &RunDirectory) -> Result<()> {
    let manifest = run.manifest();
    print(format!(
        "run {} of {}, {}",
        run.id(),
        plain(&manifest.name),
        super::runs::state(run)
    ));
    let source = Source::of_run(run)?;
    let summary = verdict::summarize(std::slice::from_ref(&source), &source.analysis)?;
    print(summary_table(&summary).to_string());
    Ok(())
}

fn show_scenario(run: &RunDirectory, scenario: &str) {
    print(style(plain(scenario)).bold().to_string());
    let scenarios = &run.manifest().plan.scenarios;
    let first = scenarios.iter().find(|id| is_meant(scenario, id));
    let prompt = first.and_then(|id| super::show::prompt_of(run, id));
    if let Some(prompt) = prompt {
        print(format!(
            "  {} {}",
            style("prompt").dim(),
            one_line(&prompt, 300)
        ));
    }
}

fn list(run: &RunDirectory, rows: &[ProfileRow], all: bool) {
    let shown = if all { rows.len() } else { MOST };
    let has_models = run
        .manifest()
        .plan
        .arms
        .windows(2)
        .any(|pair| pair[0].model != pair[1].model);
    let lines: Vec<Line> = rows
        .iter()
        .take(shown)
        .map(|row| Line::of(row, has_models))
        .collect();
    let width = |of: fn(&Line) -> &String| {
        let widths = lines.iter().map(|line| of(line).chars().count());
        widths.max().unwrap_or(0)
    };
    let widths = [
        width(|line| &line.position),
        width(|line| &line.scenario),
        width(|line| &line.mode),
        width(|line| &line.time),
        width(|line| &line.tokens),
    ];
    for line in &lines {
        print(line.shown(widths));
    }
    if rows.is_empty() {
        say("no such trials");
        return;
    }
    if rows.len() > shown {
        say(format!("{} more; --full lists all", rows.len() - shown));
    }
    let name = plain(&last_run::name_of(run.path()));
    let example = rows.iter().find(|row| row.outcome != Some(Outcome::Pass));
    let example = example.or(rows.first()).and_then(|row| row.position);
    if let Some(position) = example {
        say(format!("look at one: assize show {name}/{position}"));
    }
}

impl Line {
    fn of(row: &ProfileRow, has_models: bool) -> Self {
        let mode = match has_models {
            true => format!("{} ({})", row.mode, row.model),
            false => row.mode.clone(),
        };
        let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
        let wall = row.timing.wall_ms.map(|wall| duration(wall.value()));
        let exact = row.tokens.total.map(|total| quantity(total as f64));
        let used = exact.or_else(|| tokens(row).map(|bound| bound.replace("at least ", "≥ ")));
        Self {
            position: row
                .position
                .map_or_else(String::new, |place| place.to_string()),
            outcome: row.outcome.unwrap_or(Outcome::Fail),
            scenario: format!("{} #{}", one_line(&row.scenario_id, 40), row.iteration),
            mode: one_line(&mode, 30),
            time: known(wall),
            tokens: format!("{} tokens", known(used)),
            reason: reason(row).unwrap_or_default(),
        }
    }

    /// One line, cut where the terminal ends.
    fn shown(&self, [position, scenario, mode, time, tokens]: [usize; 5]) -> String {
        let facts = format!(
            "{:<scenario$}  {:<mode$}  {:>time$}  {:>tokens$}",
            self.scenario, self.mode, self.time, self.tokens
        );
        let taken = position + 6 + facts.chars().count() + 4;
        let room = terminal_width().map_or(LONGEST_REASON, |width| width.saturating_sub(taken));
        let reason = match (self.reason.is_empty(), room < SHORTEST_REASON) {
            (true, _) => String::new(),
            (false, false) => format!("  {}", one_line(&self.reason, room)),
            (false, true) => {
                let indent = position + 8;
                let room =
                    terminal_width().map_or(LONGEST_REASON, |width| width - indent.min(width));
                format!("\n{:indent$}{}", "", one_line(&self.reason, room))
            }
        };
        let place = &self.position;
        let line = format!(
            "{place:>position$}  {}  {facts}{reason}",
            outcome_word(self.outcome)
        );
        line.trim_end().to_owned()
    }
}

/// The outcome in its colour.
pub(super) fn outcome_word(outcome: Outcome) -> console::StyledObject<&'static str> {
    let word = style(outcome.as_str()).bold();
    match outcome {
        Outcome::Pass => word.green(),
        Outcome::Void => word.yellow(),
        Outcome::Fail => word.red(),
    }
}
