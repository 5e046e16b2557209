//! A profile as people read it.

use super::profile::{Profile, cost};
use crate::terminal::{one_line, plain, say};
use assize_agents::capture::Recording;
use assize_contracts::{
    AnalysisFinding, ModelCall, SessionTrace, TokenBreakdown, TokenSum, TraceEvent, Usd,
};
use assize_measures::analyzers::TIME;
use assize_report::{duration, money, percent};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use console::style;
use std::collections::BTreeMap;
use std::path::Path;

/// Calls beyond this are in the trace.
const MOST_CALLS: usize = 30;

/// Errors beyond this are in the trace.
const MOST_ERRORS: usize = 5;

const UNKNOWN: &str = "unknown";

pub(super) fn print(profile: &Profile) {
    let program = Path::new(&profile.command[0])
        .file_name()
        .unwrap_or_default();
    let command = [
        &[program.to_string_lossy().into_owned()],
        &profile.command[1..],
    ]
    .concat();
    let command = one_line(&command.join(" "), 80);
    let ended = match profile.exit.status {
        Some(status) => format!("ended with {status}"),
        None => "could not be ended".to_owned(),
    };
    let wall = duration(profile.exit.wall.as_secs_f64() * 1e3);
    let headline = format!("{command} {ended} after {wall}");
    say(format!("\n{}\n", style(headline).for_stderr().bold()));
    if profile.recording.is_empty() {
        return;
    }
    print_totals(&profile.recording, &profile.trace, &profile.prices);
    say(format!("\n{}", calls_table(&profile.trace.model_calls)));
    let path = plain(&profile.path.display().to_string());
    say("");
    line("trace", &path);
    let next = format!("               assize analyze {path}");
    say(style(next).for_stderr().dim().to_string());
}

/// A line per question that people have.
pub(crate) fn print_totals(recording: &Recording, trace: &SessionTrace, prices: &str) {
    line("calls", &calls(recording, trace));
    let sum = recording.tokens();
    line("tokens", &tokens(&sum));
    line("cache", &cache(&trace.summary.total_tokens));
    let with_prices = |cost: Usd| format!("{} ({})", money(cost.value()), plain(prices));
    let total = match sum.at_least {
        None => cost(trace).map(with_prices),
        Some(_) => known_cost(trace).map(|cost| format!("at least {}", with_prices(cost))),
    };
    line("cost", &total.unwrap_or_else(|| UNKNOWN.to_owned()));
    line("first token", &first_token(&trace.model_calls));
    line("time", &time(trace));
    line("tools", &tools(trace));
    errors(trace);
}

fn line(name: &str, text: &str) {
    let name = style(format!("{name:<11}")).for_stderr().cyan();
    say(format!("  {name}  {text}"));
}

fn calls(recording: &Recording, trace: &SessionTrace) -> String {
    let all = &trace.model_calls;
    let side = all.iter().filter(|call| call.side).count();
    let retries: u32 = all.iter().filter_map(|call| call.retries).sum();
    let mut text = format!("{}", all.len());
    if side > 0 {
        text.push_str(&format!(", {side} of them beside the task"));
    }
    text.push_str(&format!(
        "; {} turns, {retries} retries",
        number(trace.summary.total_turns)
    ));
    if recording.lost_calls > 0 {
        text.push_str(&format!("; {} not seen to their end", recording.lost_calls));
    }
    if recording.is_replayed() {
        text.push_str("; answers from a cassette");
    }
    text
}

/// The cost of the calls that have one.
fn known_cost(trace: &SessionTrace) -> Option<Usd> {
    let costs = trace.model_calls.iter().filter_map(|call| call.cost_usd);
    costs.reduce(|sum, next| sum + next)
}

fn tokens(sum: &TokenSum) -> String {
    if let Some(total) = sum.at_least.and_then(|known| known.total) {
        return match total {
            0 => UNKNOWN.to_owned(),
            total => format!("at least {}: a call is incomplete", exact(total)),
        };
    }
    let tokens = &sum.tokens;
    let parts = [
        ("input", tokens.input),
        ("cache read", tokens.cache_read),
        ("cache write", tokens.cache_write),
        ("output", tokens.output),
        ("reasoning", tokens.reasoning),
    ];
    let known = parts
        .iter()
        .filter_map(|(name, count)| Some(format!("{} {name}", number(Some((*count)?)))));
    let known: Vec<String> = known.collect();
    match known.is_empty() {
        true => UNKNOWN.to_owned(),
        false => format!("{}: {}", number(tokens.total), known.join(", ")),
    }
}

fn cache(tokens: &TokenBreakdown) -> String {
    let Some((read, input)) = tokens.cache_read.zip(tokens.input) else {
        return UNKNOWN.to_owned();
    };
    match read + input + tokens.cache_write.unwrap_or(0) {
        0 => "no input".to_owned(),
        prompt => format!("{} of the input", percent(read as f64 / prompt as f64)),
    }
}

fn first_token(calls: &[ModelCall]) -> String {
    let main = calls.iter().filter(|call| !call.side);
    let mut times: Vec<f64> = main
        .filter_map(|call| Some(call.ttft_ms?.value()))
        .collect();
    times.sort_by(f64::total_cmp);
    match times.as_slice() {
        [] => UNKNOWN.to_owned(),
        [one] => duration(*one),
        [fastest, .., slowest] => format!(
            "{} (median), {} to {}",
            duration((times[(times.len() - 1) / 2] + times[times.len() / 2]) / 2.0),
            duration(*fastest),
            duration(*slowest)
        ),
    }
}

/// The split of the `time` analyzer: part, milliseconds, share, bound.
fn time(trace: &SessionTrace) -> String {
    let result = TIME.find(trace);
    let Some(AnalysisFinding::Table { rows, .. }) = result.findings.get("time_split") else {
        return UNKNOWN.to_owned();
    };
    let part = |row: &Vec<String>| {
        let [part, ms, _, bound] = row.as_slice() else {
            return None;
        };
        let ms: f64 = ms.parse().ok()?;
        let bound = if bound.is_empty() {
            ""
        } else {
            &format!("{bound} ")
        };
        (ms > 0.0).then(|| format!("{} {bound}{}", plain(part), duration(ms)))
    };
    rows.iter().filter_map(part).collect::<Vec<_>>().join(", ")
}

fn tools(trace: &SessionTrace) -> String {
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for event in &trace.events {
        if let TraceEvent::ToolCall { name, success, .. } = &**event {
            let (calls, failed) = counts.entry(name).or_default();
            *calls += 1;
            *failed += u64::from(*success == Some(false));
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, (calls, _))| std::cmp::Reverse(*calls));
    let tool = |(name, (calls, failed)): &(&str, (u64, u64))| {
        let name = one_line(name, 40);
        match failed {
            0 => format!("{name} {calls}"),
            failed => format!("{name} {calls} ({failed} failed)"),
        }
    };
    match counts.is_empty() {
        true => "none".to_owned(),
        false => counts.iter().map(tool).collect::<Vec<_>>().join(", "),
    }
}

fn errors(trace: &SessionTrace) {
    let messages: Vec<&String> = trace
        .events
        .iter()
        .filter_map(|event| match &**event {
            TraceEvent::Error { message, .. } => Some(message),
            _ => None,
        })
        .collect();
    match messages.len() {
        0 => line("errors", "none"),
        count => line("errors", &count.to_string()),
    }
    for message in messages.iter().take(MOST_ERRORS) {
        say(format!("               {}", one_line(message, 100)));
    }
}

/// One line per call.
fn calls_table(calls: &[ModelCall]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if console::Term::stderr().features().is_attended() {
        table.set_width(console::Term::stderr().size().1.max(60));
    }
    table.set_header([
        "Model",
        "First token",
        "Time",
        "Input",
        "Cached",
        "Output",
        "Stop",
        "Status",
    ]);
    for call in calls.iter().take(MOST_CALLS) {
        table.add_row(cells(call));
    }
    if calls.len() > MOST_CALLS {
        table.add_row([format!("… {} more", calls.len() - MOST_CALLS)]);
    }
    table
}

fn cells(call: &ModelCall) -> Vec<Cell> {
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let tokens = &call.tokens;
    let model = one_line(&call.model, 40);
    let written = tokens.cache_write.unwrap_or(0);
    let output = tokens
        .output
        .map(|output| output + tokens.reasoning.unwrap_or(0));
    vec![
        Cell::new(match call.side {
            true => format!("{model} (side)"),
            false => model,
        }),
        right(
            call.ttft_ms
                .map_or(String::new(), |ms| duration(ms.value())),
        ),
        right(
            call.duration_ms
                .map_or(String::new(), |ms| duration(ms.value())),
        ),
        right(number(tokens.input.map(|input| input + written))),
        right(number(tokens.cache_read)),
        right(number(output)),
        Cell::new(one_line(call.stop_reason.as_deref().unwrap_or(""), 20)),
        Cell::new(status(call)),
    ]
}

fn status(call: &ModelCall) -> String {
    let status = call
        .status
        .map_or("no answer".to_owned(), |status| status.to_string());
    match call.retries {
        None | Some(0) => status,
        Some(retries) => format!("{status} after {retries} retries"),
    }
}

fn number(count: Option<u64>) -> String {
    count.map_or_else(|| UNKNOWN.to_owned(), exact)
}

/// `24,435`: people compare these with bills.
fn exact(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact_and_grouped() {
        let shown = [0, 999, 1000, 24_435, 1_234_567].map(exact);
        assert_eq!(shown, ["0", "999", "1,000", "24,435", "1,234,567"]);
    }
}
