//! The execution of a task in the terminal: its steps, what came out, what evaluators said and why, and what happened when.

use crate::terminal::{one_line, plain, print};
use assize_contracts::{
    Evidence, RunError, RunRecord, ScoreRecord, ScoreTarget, ScoreValue, StepStatus, StepSummary,
    TaskEvent, TaskEventLevel, TaskKind,
};
use assize_report::{duration, money, quantity};
use console::{StyledObject, style};
use serde_json::Value;

/// Pieces of evidence that are shown of one score unless asked for more.
const MOST_EVIDENCE: usize = 8;

pub(super) fn show(run: &RunRecord, scores: &[ScoreRecord], longest: usize) {
    let provenance = &run.provenance;
    if run.task_type == TaskKind::Atomic {
        let by = format!("{} {}", provenance.runner_id, provenance.runner_version);
        print(format!("      by {}", plain(&by)));
    }
    for step in run.steps.iter().flatten() {
        show_step(step, longest);
    }
    show_ending(run, longest);
    if !scores.is_empty() {
        print(style("scores").dim().to_string());
    }
    for score in scores {
        show_score(score, longest);
    }
    print(style("events").dim().to_string());
    for event in &run.trace {
        show_event(event, longest);
    }
}

fn show_step(step: &StepSummary, longest: usize) {
    let mark = match step.status {
        StepStatus::Completed => style("✓").green(),
        StepStatus::Failed => style("✗").red(),
        StepStatus::Skipped => style("-").dim(),
    };
    let mut facts = Vec::new();
    match step.status {
        StepStatus::Skipped => facts.push("skipped".to_owned()),
        _ => facts.push(duration(step.latency.value())),
    }
    let used = step.tokens.filter(|tokens| *tokens > 0);
    facts.extend(used.map(|tokens| format!("{} tokens", quantity(tokens as f64))));
    let paid = step.cost.filter(|cost| cost.value() > 0.0);
    facts.extend(paid.map(|cost| money(cost.value())));
    let name = match step.step_name == step.step_id {
        true => step.step_id.clone(),
        false => format!("{} {}", step.step_id, step.step_name),
    };
    let title = one_line(&name, longest);
    print(format!("  {mark} {title} ({})", facts.join(", ")));
    if let Some(output) = &step.output {
        print(format!("      → {}", one_line(&text_of(output), longest)));
    }
    if let Some(error) = &step.error {
        print(format!("      {}", style(one_line(error, longest)).red()));
    }
}

fn show_ending(run: &RunRecord, longest: usize) {
    if let Some(output) = &run.output {
        print(format!("  output {}", one_line(&text_of(output), longest)));
    }
    if let Some(RunError { message, step, .. }) = &run.error {
        let step = step.as_deref().unwrap_or("unknown step");
        print(format!(
            "  {} {}: {}",
            style("failed").red(),
            plain(step),
            one_line(message, longest)
        ));
    }
}

fn show_score(score: &ScoreRecord, longest: usize) {
    let target = match &score.target {
        ScoreTarget::Final => "final".to_owned(),
        ScoreTarget::Global => "global".to_owned(),
        ScoreTarget::Step(id) => id.clone(),
    };
    let value = match &score.value {
        ScoreValue::Bool(holds) => holds.to_string(),
        ScoreValue::Number(number) => number.value().to_string(),
        ScoreValue::Text(text) => one_line(text, longest),
    };
    let name = format!("{target}.{} = {value}", score.metric);
    let by = style(format!("({})", plain(&score.evaluator_id))).dim();
    print(format!(
        "  {} {} {by}",
        mark(&score.value),
        one_line(&name, longest)
    ));
    for line in score
        .evidence
        .iter()
        .flat_map(|found| reasons(found, longest))
    {
        print(format!("      {line}"));
    }
}

/// The mark of a score: it holds, it does not, or it is a number, which does neither by itself.
fn mark(value: &ScoreValue) -> StyledObject<&'static str> {
    match value {
        ScoreValue::Bool(true) => style("✓").green(),
        ScoreValue::Bool(false) => style("✗").red(),
        _ => style("·").dim(),
    }
}

/// The evidence in lines: the explanation, single findings, and what was held against what.
fn reasons(evidence: &Evidence, longest: usize) -> Vec<String> {
    let most = if longest == usize::MAX {
        usize::MAX
    } else {
        MOST_EVIDENCE
    };
    let explanation = evidence.explanation.iter().cloned();
    let snippets = evidence.snippets.iter().flatten().cloned();
    let sides = evidence.alignment.iter().flatten();
    let sides = sides.map(|(name, value)| format!("{name}: {}", text_of(value)));
    let mut lines: Vec<String> = explanation.chain(snippets).chain(sides).collect();
    let more = lines.len().saturating_sub(most);
    lines.truncate(most);
    let mut lines: Vec<String> = lines.iter().map(|line| one_line(line, longest)).collect();
    if more > 0 {
        lines.push(format!("and {more} more (`--full` shows all)"));
    }
    lines
}

fn show_event(event: &TaskEvent, longest: usize) {
    let name = match event.level {
        TaskEventLevel::Error => style(plain(&event.event)).red(),
        TaskEventLevel::Warn => style(plain(&event.event)).yellow(),
        TaskEventLevel::Info => style(plain(&event.event)).cyan(),
        TaskEventLevel::Debug => style(plain(&event.event)).dim(),
    };
    let step = event.step.as_ref().map(|step| format!("{} ", plain(step)));
    let data = event.data.as_ref().map(text_of).unwrap_or_default();
    print(format!(
        "  {} {}{name} {}",
        style(plain(event.timestamp.as_str())).dim(),
        step.unwrap_or_default(),
        one_line(&data, longest)
    ));
}

fn text_of(value: &Value) -> String {
    assize_contracts::as_text(value)
}
