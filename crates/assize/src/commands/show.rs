//! `assize show`: the trials of a run, or one trial, in the terminal.

use crate::cli::ShowArguments;
use crate::commands::changes::{Changes, Diff};
use crate::commands::show_run::{self, outcome_word};
use crate::commands::{UsageError, find_run, show_task};
use crate::exit::Exit;
use crate::suite::{is_meant, suggest};
use crate::terminal::{one_line, plain, print, print_json};
use anyhow::Result;
use assize_contracts::{
    Catalog, Outcome, Plugins, ProfileRow, ScorerCheckResult, SessionTrace, TraceEvent,
};
use assize_engine::store::RunDirectory;
use assize_report::{amount, duration, money, quantity};
use console::style;
use serde_json::{Value, json};

/// The length of an input or output that is shown unless asked for more.
const EXCERPT: usize = 100;
/// The same for what a check found.
const FOUND: usize = 400;
/// Lines of a prompt, of instructions and of an answer.
const MOST_LINES: usize = 12;
/// Lines of a diff.
const MOST_DIFF_LINES: usize = 60;
/// The reason of a verdict takes a few sentences.
const RATIONALE: usize = 1000;

/// The thing to show.
enum Wanted {
    Trial(RunDirectory, u64),
    Trials(RunDirectory, Option<String>),
}

pub(crate) fn show(arguments: &ShowArguments, plugins: &Plugins) -> Result<Exit> {
    let (run, position) = match find(arguments, plugins)? {
        Wanted::Trial(run, position) => (run, position),
        Wanted::Trials(run, scenario) => {
            show_run::show(&run, scenario.as_deref(), arguments)?;
            return Ok(Exit::Done);
        }
    };
    let row = find_row(&run, position)?;
    let longest = if arguments.full { usize::MAX } else { EXCERPT };
    if let Some(record) = run.run_record(&row)? {
        let scores = run.scores(&row)?;
        match arguments.json {
            true => print_json(json!({"row": row, "run": record, "scores": scores}).to_string()),
            false => {
                show_row(&row, &run.manifest().catalog(), arguments.full);
                show_task::show(&record, &scores, longest);
            }
        }
        return Ok(Exit::Done);
    }
    let trace = run.trace(&row)?;
    let diff = Changes::of(&run).diff(&row);
    if arguments.json {
        let diff = diff.map(|diff| diff.text);
        print_json(json!({"row": row, "trace": trace, "diff": diff}).to_string());
        return Ok(Exit::Done);
    }
    show_row(&row, &run.manifest().catalog(), arguments.full);
    let answer = trace.as_ref().and_then(final_answer);
    let texts = [
        ("prompt", prompt_of(&run, &row.scenario_id)),
        ("instructions", instructions_of(&run, &row.mode)),
        ("answer", answer.map(str::to_owned)),
    ];
    for (title, text) in texts {
        text.into_iter()
            .for_each(|text| show_text(title, &text, arguments.full));
    }
    if let Some(diff) = diff {
        show_diff(&diff, arguments.full);
    }
    if let Some(archive) = run.workspace(&row) {
        print(plain(&format!("  workspace {}", archive.display())));
    }
    print(style("timeline").dim().to_string());
    match &trace {
        Some(trace) => show_timeline(trace, longest),
        None => print("  no trace was stored for this trial"),
    }
    Ok(Exit::Done)
}

/// `RUN/POSITION`, or a position in the last run, is a trial; a run, or a scenario with or without its run, is a list. A run
/// may be a path and have slashes of its own.
fn find(arguments: &ShowArguments, plugins: &Plugins) -> Result<Wanted> {
    let wanted = arguments.trial.as_str();
    let run = |id: &str| find_run(id, &arguments.place, plugins);
    let (before, after) = wanted.rsplit_once('/').unwrap_or(("last", wanted));
    if let Ok(position) = after.parse() {
        return Ok(Wanted::Trial(run(before)?, position));
    }
    if wanted == "last" {
        return Ok(Wanted::Trials(run("last")?, None));
    }
    let missing = match run(wanted) {
        Ok(run) => return Ok(Wanted::Trials(run, None)),
        Err(error) => error,
    };
    let Ok(run) = run(before) else {
        return Err(missing);
    };
    let scenarios = &run.manifest().plan.scenarios;
    if scenarios.iter().any(|known| is_meant(after, known)) {
        return Ok(Wanted::Trials(run, Some(after.to_owned())));
    }
    let known: Vec<&str> = scenarios.iter().map(String::as_str).collect();
    let trials = run.manifest().plan.cells().saturating_sub(1);
    Err(UsageError {
        message: format!(
            "`{wanted}` is neither a run nor a scenario of run {}",
            run.id()
        ),
        hint: Some(match suggest(after, &known).filter(|_| !known.is_empty()) {
            Some(near) => format!("{near} `assize show {before}` lists its trials, 0 to {trials}"),
            None => format!("`assize show {before}` lists its trials, 0 to {trials}"),
        }),
    }
    .into())
}

/// The prompt of a scenario, as the run has it.
pub(super) fn prompt_of(run: &RunDirectory, scenario: &str) -> Option<String> {
    let scenario = run.manifest().suite.get("scenarios")?.get(scenario)?;
    let prompt = scenario.get("prompt")?.as_str()?;
    let turns = scenario.get("turns").and_then(Value::as_array);
    let turns = turns.into_iter().flatten().filter_map(Value::as_str);
    let all: Vec<&str> = std::iter::once(prompt).chain(turns).collect();
    Some(all.join("\n\n"))
}

/// The instructions of a mode.
pub(super) fn instructions_of(run: &RunDirectory, mode: &str) -> Option<String> {
    let mode = run.manifest().suite.get("modes")?.get(mode)?;
    let instructions = ["system_instructions", "systemInstructions"]
        .iter()
        .find_map(|key| mode.get(*key)?.as_str())?;
    (!instructions.trim().is_empty()).then(|| instructions.to_owned())
}

/// The answer that was judged, whatever else was said.
pub(super) fn final_answer(trace: &SessionTrace) -> Option<&str> {
    Some(trace.final_text()).filter(|answer| !answer.trim().is_empty())
}

/// Lines of a text under its title, as many as fit.
fn show_text(title: &str, text: &str, all: bool) {
    print(style(title).dim().to_string());
    show_lines(text, MOST_LINES, all, |line| format!("  {}", plain(line)));
}

fn show_diff(diff: &Diff, all: bool) {
    print(style("changes in the workspace").dim().to_string());
    show_lines(&diff.text, MOST_DIFF_LINES, all, |line| {
        let shown = format!("  {}", plain(line));
        match line.chars().next() {
            Some('+') => style(shown).green().to_string(),
            Some('-') => style(shown).red().to_string(),
            _ => shown,
        }
    });
    if let Some(remark) = &diff.remark {
        print(format!("  ({})", plain(remark)));
    }
}

fn show_lines(text: &str, most: usize, all: bool, shown: impl Fn(&str) -> String) {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let most = if all { usize::MAX } else { most };
    for line in lines.iter().take(most) {
        print(shown(line));
    }
    if lines.len() > most {
        print(format!("  … {} more lines (--full)", lines.len() - most));
    }
}

/// The reason why a trial did not pass, on one line.
pub(super) fn reason(row: &ProfileRow) -> Option<String> {
    if row.outcome == Some(Outcome::Pass) {
        return None;
    }
    let failed = row.checkpoint_details.iter().find(|check| !check.passed);
    let check = failed.map(|check| match check.description.as_str() {
        "" => format!("check failed: {}", check.id),
        words => format!("check failed: {words}"),
    });
    let error = row.error.clone().or_else(|| row.error_code.clone());
    error.or(check)
}

fn find_row(run: &RunDirectory, position: u64) -> Result<ProfileRow> {
    if let Some(row) = run.row_at(position)? {
        return Ok(row);
    }
    let planned = run.manifest().plan.cells();
    let id = run.id();
    let (message, hint) = match position < planned {
        true => (
            format!("trial {position} of run `{id}` is not done yet"),
            format!(
                "`assize show {id}` lists those that are; `assize run --resume {id}` runs the others"
            ),
        ),
        false => (
            format!("run `{id}` has trials 0 to {}, not {position}", planned - 1),
            format!("`assize show {id}` lists them"),
        ),
    };
    let hint = Some(hint);
    Err(UsageError { message, hint }.into())
}

fn show_row(row: &ProfileRow, catalog: &Catalog, full: bool) {
    let outcome = outcome_word(row.outcome.unwrap_or(Outcome::Fail));
    let title = format!(
        "{} · {} · {} #{}",
        row.scenario_id, row.mode, row.model, row.iteration
    );
    print(format!("{outcome}  {}", one_line(&title, 4 * EXCERPT)));
    let marks = [
        (row.simulated, "simulated"),
        (row.replayed, "replayed"),
        (row.censored, "cut off: numbers are lower bounds"),
    ];
    for (_, mark) in marks.iter().filter(|(is_set, _)| *is_set) {
        print(format!("      {}", style(*mark).yellow()));
    }
    let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    print(format!(
        "      time {} · tokens {} · cost {} · tool calls {} · turns {}",
        known(row.timing.wall_ms.map(|wall| duration(wall.value()))),
        known(tokens(row)),
        known(cost(row)),
        known(tool_calls(row)),
        known(row.agent_turns.map(|turns| turns.to_string())),
    ));
    let further = metrics(row, catalog);
    if !further.is_empty() {
        print(format!(
            "      {}",
            one_line(&further.join(" · "), RATIONALE)
        ));
    }
    if let Some(error) = &row.error {
        let code = row.error_code.as_deref().unwrap_or("error");
        print(format!(
            "      {} {}",
            style(one_line(code, EXCERPT)).red(),
            plain(error)
        ));
    }
    for attempt in &row.attempts {
        let error = attempt.error.as_deref().unwrap_or("no reason given");
        print(format!(
            "      earlier attempt: {}",
            one_line(error, EXCERPT)
        ));
    }
    let checks = row.checkpoint_details.iter();
    checks.for_each(|check| show_check(check, full));
    for error in &row.hook_errors {
        print(format!(
            "  {} {}: {}",
            style("!").yellow(),
            one_line(&error.hook, EXCERPT),
            one_line(&error.message, EXCERPT)
        ));
    }
}

/// Metrics that are not built in, in their units.
fn metrics(row: &ProfileRow, catalog: &Catalog) -> Vec<String> {
    let shown = |(name, value): (&String, &Value)| {
        let metric = catalog.metric(name);
        let value = match value {
            _ if metric.is_built_in() => return None,
            Value::Number(number) => amount(&metric, number.as_f64()?),
            Value::String(text) => text.clone(),
            _ => return None,
        };
        Some(format!("{} {value}", metric.label()))
    };
    row.extensions.iter().filter_map(shown).collect()
}

/// The total, or what is known of it.
pub(super) fn tokens(row: &ProfileRow) -> Option<String> {
    let exact = row.tokens.total.map(|total| quantity(total as f64));
    let known = row.tokens_at_least.and_then(|known| known.total);
    let bound = known.filter(|known| *known > 0);
    exact.or_else(|| Some(format!("at least {}", quantity(bound? as f64))))
}

fn cost(row: &ProfileRow) -> Option<String> {
    let exact = row.cost.total_usd.map(|cost| money(cost.value()));
    let bound = || {
        let known = row.cost_at_least_usd.filter(|cost| cost.value() > 0.0)?;
        Some(format!("at least {}", money(known.value())))
    };
    exact.or_else(bound)
}

fn tool_calls(row: &ProfileRow) -> Option<String> {
    let calls = &row.tool_calls;
    let failed = match calls.failed {
        Some(0) => String::new(),
        Some(failed) => format!(" ({failed} failed)"),
        None => " (failures unknown)".to_owned(),
    };
    Some(format!("{}{failed}", calls.total?))
}

fn show_check(check: &ScorerCheckResult, full: bool) {
    let longest = if full { usize::MAX } else { FOUND };
    let mark = match (&check.error, check.passed) {
        (Some(_), _) => style("?").yellow(),
        (None, true) => style("✓").green(),
        (None, false) => style("✗").red(),
    };
    let title = match check.description.as_str() {
        "" => &check.id,
        description => description,
    };
    print(format!("  {mark} {}", one_line(title, EXCERPT)));
    let detail = |name: &str, text: &str, longest| {
        print(format!("      {name}: {}", one_line(text, longest)));
    };
    let mut actual = check.actual.clone();
    let rationale = actual
        .as_mut()
        .and_then(Value::as_object_mut)
        .and_then(|found| found.remove("rationale"));
    if !check.passed {
        for (name, value) in [("expected", &check.expected), ("found", &actual)] {
            if let Some(value) = value {
                let text = text_of(value);
                let text = if text.is_empty() { "nothing" } else { &text };
                detail(name, text, longest);
            }
        }
    }
    if let Some(rationale) = rationale {
        detail("rationale", &text_of(&rationale), RATIONALE);
    }
    if let Some(error) = &check.error {
        detail("could not be judged", error, RATIONALE);
    }
}

pub(super) fn show_timeline(trace: &SessionTrace, longest: usize) {
    for event in &trace.events {
        match &**event {
            TraceEvent::TurnBoundary {
                turn_number,
                timestamp,
            } => {
                print(
                    style(format!("turn {turn_number}  {}", plain(timestamp.as_str())))
                        .dim()
                        .to_string(),
                );
            }
            TraceEvent::Reasoning { content, .. } => {
                print(format!(
                    "  {} {}",
                    style("thinks").magenta(),
                    one_line(content, longest)
                ));
            }
            TraceEvent::TextOutput { content, .. } => {
                print(format!(
                    "  {} {}",
                    style("says  ").cyan(),
                    one_line(content, longest)
                ));
            }
            TraceEvent::ToolCall { .. } => show_call(event, longest),
            TraceEvent::Error { message, .. } => {
                print(format!(
                    "  {} {}",
                    style("error ").red(),
                    one_line(message, longest)
                ));
            }
        }
    }
}

fn show_call(event: &TraceEvent, longest: usize) {
    let TraceEvent::ToolCall {
        name,
        input,
        output,
        duration_ms,
        success,
        error,
        ..
    } = event
    else {
        return;
    };
    let mark = match success {
        Some(true) => style("✓").green(),
        Some(false) => style("✗").red(),
        None => style("?").yellow(),
    };
    let at_most = match event.duration_is_bound() {
        true => "at most ",
        false => "",
    };
    let took = duration_ms.map(|ms| format!(" ({at_most}{})", duration(ms.value())));
    let agent = event.place().and_then(|place| place.agent_id.as_deref());
    let by = agent.map(|agent| format!(" [{}]", one_line(agent, 40)));
    print(format!(
        "  {} {mark} {} {}{}{}",
        style("calls ").blue(),
        one_line(name, EXCERPT),
        one_line(&text_of(input), longest),
        took.unwrap_or_default(),
        by.unwrap_or_default()
    ));
    let result = error.clone().unwrap_or_else(|| text_of(output));
    if !result.is_empty() {
        print(format!("           → {}", one_line(&result, longest)));
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
