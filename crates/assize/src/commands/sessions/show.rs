//! The account as people and programs read it.

use super::grouping::{Account, Sums};
use super::{Faults, print_faults};
use crate::cli::SessionsBy;
use crate::terminal::{one_line, plain, print, say};
use anyhow::Result;
use assize_contracts::{Number, TokenBreakdown, Usd};
use assize_llm::Prices;
use assize_report::{duration, money, quantity};
use comfy_table::{Cell, CellAlignment, Table, presets};
use serde_json::{Value, json};

/// More rows are in `--json`; these are the last, or the most expensive.
const MOST_ROWS: usize = 40;

/// A key's length in the table.
const LONGEST_KEY: usize = 36;

pub(super) fn print_table(account: &Account, faults: &Faults, prices: &Prices) {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(header(&account.by));
    let rows = shown(account);
    for (key, sums) in &rows {
        table.add_row(cells(key_cells(key, &account.by), sums));
    }
    let mut first: Vec<Cell> = account.by.iter().map(|_| Cell::new("")).collect();
    let left_out = account.rows.len() - rows.len();
    if left_out > 0 {
        let mut words = first.clone();
        words[0] = Cell::new(format!("{left_out} more"));
        table.add_row(words);
    }
    first[0] = Cell::new("total");
    table.add_row(cells(first, &account.total));
    print(table.to_string());
    say(remarks(account, prices));
    print_faults(faults);
}

/// Rows by day are shown as they came, others by what they cost.
fn shown(account: &Account) -> Vec<(&Vec<Option<String>>, &Sums)> {
    let mut rows: Vec<(&Vec<Option<String>>, &Sums)> = account.rows.iter().collect();
    let is_by_time = matches!(account.by.first(), Some(SessionsBy::Day | SessionsBy::Week));
    if is_by_time {
        let from = rows.len().saturating_sub(MOST_ROWS);
        return rows.split_off(from);
    }
    let size = |sums: &Sums| {
        (
            sums.cost().unwrap_or(0.0),
            sums.known_tokens().total.unwrap_or(0),
            sums.tools,
        )
    };
    rows.sort_by(|a, b| {
        size(b.1)
            .partial_cmp(&size(a.1))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    rows.truncate(MOST_ROWS);
    rows
}

fn header(by: &[SessionsBy]) -> Vec<String> {
    let keys = by.iter().map(|by| by.to_string());
    let numbers = [
        "sessions",
        "calls",
        "input",
        "cache read",
        "cache write",
        "output",
        "reasoning",
        "cost",
        "time",
        "tools",
        "errors",
    ];
    keys.chain(numbers.map(str::to_owned)).collect()
}

fn key_cells(key: &[Option<String>], by: &[SessionsBy]) -> Vec<Cell> {
    let cell = |(text, by): (&Option<String>, &SessionsBy)| match (text, by) {
        (Some(text), SessionsBy::Project) => Cell::new(short_path(text)),
        (Some(text), _) => Cell::new(one_line(text, LONGEST_KEY)),
        (None, SessionsBy::Skill | SessionsBy::Mcp | SessionsBy::Tool) => Cell::new("–"),
        (None, _) => Cell::new("unknown"),
    };
    key.iter().zip(by).map(cell).collect()
}

/// The end of a path says more than its beginning.
fn short_path(path: &str) -> String {
    let path = plain(path);
    let length = path.chars().count();
    match length > LONGEST_KEY {
        true => {
            let end: String = path.chars().skip(length - LONGEST_KEY + 1).collect();
            format!("…{end}")
        }
        false => path,
    }
}

fn cells(mut cells: Vec<Cell>, sums: &Sums) -> Vec<Cell> {
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let tokens = sums.tokens();
    let exact = tokens.tokens;
    let known = sums.known_tokens();
    let count = |exact: Option<u64>, known: Option<u64>| match (exact, known) {
        (Some(count), _) => quantity(count as f64),
        (None, Some(count)) if count > 0 => format!("≥ {}", quantity(count as f64)),
        _ => "–".to_owned(),
    };
    let of = |class: fn(&TokenBreakdown) -> Option<u64>| count(class(&exact), class(&known));
    cells.push(right(sums.session_count.to_string()));
    cells.push(right(sums.calls.to_string()));
    cells.push(right(of(|tokens| tokens.input)));
    cells.push(right(of(|tokens| tokens.cache_read)));
    cells.push(right(of(|tokens| tokens.cache_write)));
    cells.push(right(of(|tokens| tokens.output)));
    cells.push(right(of(|tokens| tokens.reasoning)));
    cells.push(right(cost(sums)));
    cells.push(right(duration(sums.work_ms as f64)));
    cells.push(right(sums.tools.to_string()));
    cells.push(right(sums.all_errors().to_string()));
    cells
}

fn cost(sums: &Sums) -> String {
    match sums.cost() {
        Some(usd) if sums.unpriced_calls > 0 => format!("≥ {}", money(usd)),
        Some(usd) => money(usd),
        None => "–".to_owned(),
    }
}

/// Notes on reading the numbers.
fn remarks(account: &Account, prices: &Prices) -> String {
    let total = &account.total;
    let mut lines = vec![format!("cost: tokens × {}", plain(&prices.version()))];
    if total.reported_usd() > 0.0 {
        lines[0].push_str(&format!(
            "; {} of it as the agents report it, for models without a price",
            money(total.reported_usd())
        ));
    }
    if total.unpriced_calls > 0 {
        let models = account
            .unpriced
            .iter()
            .map(|(model, calls)| match model.is_empty() {
                true => format!("no model named ({calls})"),
                false => format!("{} ({calls})", one_line(model, LONGEST_KEY)),
            });
        let models: Vec<String> = models.take(5).collect();
        lines.push(format!(
            "no price for {}: {}",
            calls(total.unpriced_calls),
            models.join(", ")
        ));
    }
    if total.hidden_calls > 0 {
        lines.push(format!(
            "known only from the agents' own sums, such as summaries of compactions: {}",
            calls(total.hidden_calls)
        ));
    }
    if total.rewound_calls > 0 {
        lines.push(format!(
            "taken back by the user, and counted because they were spent: {}",
            calls(total.rewound_calls)
        ));
    }
    if total.unknown_tools > 0 {
        lines.push(format!(
            "tool calls of unknown outcome: {} of {}",
            total.unknown_tools, total.tools
        ));
    }
    lines.join("\n")
}

fn calls(count: u64) -> String {
    match count {
        1 => "1 call".to_owned(),
        _ => format!("{count} calls"),
    }
}

pub(super) fn print_json(account: &Account, faults: &Faults, prices: &Prices) -> Result<()> {
    let row = |(key, sums): (&Vec<Option<String>>, &Sums)| {
        let mut row = serde_json::Map::new();
        for (by, text) in account.by.iter().zip(key) {
            row.insert(by.to_string(), json!(text));
        }
        row.extend(numbers(sums));
        Value::Object(row)
    };
    let unreadable = faults
        .unreadable
        .iter()
        .map(|(path, message)| json!({"path": path, "error": message}));
    let document = json!({
        "by": account.by.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "rows": account.rows.iter().map(row).collect::<Vec<_>>(),
        "total": numbers(&account.total),
        "prices": prices.version(),
        "unpricedCalls": account.unpriced,
        "flaws": faults.flaws,
        "unreadable": unreadable.collect::<Vec<_>>(),
    });
    crate::terminal::print_json(serde_json::to_string_pretty(&document)?);
    Ok(())
}

fn numbers(sums: &Sums) -> serde_json::Map<String, Value> {
    let tokens = sums.tokens();
    let usd = |amount: f64| json!(Usd::new(amount).unwrap_or_default());
    let source = match (
        sums.computed_usd() > 0.0,
        sums.reported_usd() > 0.0,
        sums.cost(),
    ) {
        (_, _, None) => "unknown",
        (true, true, _) => "computed and reported",
        (false, true, _) => "reported",
        _ => "computed",
    };
    let value = json!({
        "sessions": sums.session_count,
        "calls": sums.calls,
        "hiddenCalls": sums.hidden_calls,
        "rewoundCalls": sums.rewound_calls,
        "tokens": tokens.tokens,
        "tokensAtLeast": tokens.at_least,
        "costUsd": match sums.unpriced_calls {
            0 => sums.cost().map(usd),
            _ => None,
        },
        "costUsdAtLeast": sums.cost().filter(|_| sums.unpriced_calls > 0).map(usd),
        "costSource": source,
        "costReportedUsd": usd(sums.reported_usd()),
        "unpricedCalls": sums.unpriced_calls,
        "workMs": Number::from(sums.work_ms.max(0) as u64),
        "prompts": sums.prompts,
        "toolCalls": sums.tools,
        "failedToolCalls": sums.failed_tools,
        "toolCallsOfUnknownOutcome": sums.unknown_tools,
        "errors": sums.errors,
        "compactions": sums.compactions,
    });
    match value {
        Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    }
}
