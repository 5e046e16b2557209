//! `assize show`: one trial in the terminal.

use crate::cli::ShowArguments;
use crate::commands::{UsageError, results_dir, show_task};
use crate::exit::Exit;
use crate::terminal::{one_line, plain, print};
use anyhow::Result;
use assize_contracts::{
    Catalog, Outcome, Plugins, ProfileRow, ScorerCheckResult, SessionTrace, TraceEvent,
};
use assize_engine::store::RunDirectory;
use assize_report::{amount, duration, money, quantity};
use console::style;
use serde_json::{Value, json};

/// How much of an input or output is shown unless asked for more.
const EXCERPT: usize = 100;
/// Why a verdict is what it is takes a few sentences.
const RATIONALE: usize = 1000;

pub(crate) fn show(arguments: &ShowArguments, plugins: &Plugins) -> Result<Exit> {
    let (run_id, position) = split(&arguments.trial)?;
    let run = RunDirectory::find(&results_dir(&arguments.place, plugins)?, run_id)?;
    let row = find_row(&run, position)?;
    let longest = if arguments.full { usize::MAX } else { EXCERPT };
    if let Some(record) = run.run_record(&row)? {
        let scores = run.scores(&row)?;
        match arguments.json {
            true => print(json!({"row": row, "run": record, "scores": scores}).to_string()),
            false => {
                show_row(&row, &run.manifest().catalog());
                show_task::show(&record, &scores, longest);
            }
        }
        return Ok(Exit::Done);
    }
    let trace = run.trace(&row)?;
    if arguments.json {
        print(json!({"row": row, "trace": trace}).to_string());
        return Ok(Exit::Done);
    }
    show_row(&row, &run.manifest().catalog());
    if let Some(archive) = run.workspace(&row) {
        print(plain(&format!("      workspace {}", archive.display())));
    }
    match &trace {
        Some(trace) => show_timeline(trace, longest),
        None => print("no trace was stored for this trial"),
    }
    Ok(Exit::Done)
}

/// `RUN/POSITION`, or a position in the last run. A run may be a path and have slashes of its own.
fn split(trial: &str) -> Result<(&str, u64), UsageError> {
    let (run, position) = trial.rsplit_once('/').unwrap_or(("last", trial));
    let position = position.parse().map_err(|_| UsageError {
        message: format!("`{trial}` is not a trial, expected RUN/POSITION"),
        hint: Some("for example `assize show last/0`".to_owned()),
    })?;
    Ok((run, position))
}

fn find_row(run: &RunDirectory, position: u64) -> Result<ProfileRow> {
    if let Some(row) = run.row_at(position)? {
        return Ok(row);
    }
    let planned = run.manifest().plan.cells();
    let message = match position < planned {
        true => format!("trial {position} of run `{}` is not done yet", run.id()),
        false => format!(
            "run `{}` has trials 0 to {}, not {position}",
            run.id(),
            planned - 1
        ),
    };
    Err(UsageError::new(message).into())
}

fn show_row(row: &ProfileRow, catalog: &Catalog) {
    let outcome = match row.outcome {
        Some(Outcome::Pass) => style("pass").green().bold(),
        Some(Outcome::Void) => style("void").yellow().bold(),
        _ => style("fail").red().bold(),
    };
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
    row.checkpoint_details.iter().for_each(show_check);
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
fn tokens(row: &ProfileRow) -> Option<String> {
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

fn show_check(check: &ScorerCheckResult) {
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
        for (name, value) in [("expected", &check.expected), ("actual", &actual)] {
            if let Some(value) = value {
                detail(name, &text_of(value), EXCERPT);
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

fn show_timeline(trace: &SessionTrace, longest: usize) {
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
            TraceEvent::ToolCall {
                name,
                input,
                output,
                duration_ms,
                success,
                error,
                ..
            } => {
                let mark = match success {
                    Some(true) => style("✓").green(),
                    Some(false) => style("✗").red(),
                    None => style("?").yellow(),
                };
                let at_most = if event.duration_is_bound() {
                    "at most "
                } else {
                    ""
                };
                let took = duration_ms
                    .map(|ms| format!(" ({at_most}{})", duration(ms.value())))
                    .unwrap_or_default();
                let agent = event.place().and_then(|place| place.agent_id.as_deref());
                let by = agent.map(|agent| format!(" [{}]", one_line(agent, 40)));
                let input = one_line(&text_of(input), longest);
                print(format!(
                    "  {} {mark} {} {input}{took}{}",
                    style("calls ").blue(),
                    one_line(name, EXCERPT),
                    by.unwrap_or_default()
                ));
                let result = error.clone().unwrap_or_else(|| text_of(output));
                if !result.is_empty() {
                    print(format!("           → {}", one_line(&result, longest)));
                }
            }
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

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
