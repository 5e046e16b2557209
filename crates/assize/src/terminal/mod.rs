//! The output for people: colors, errors, tables, progress. Text from agents and files never reaches the terminal raw.

mod gates;
mod progress;
mod reasons;
mod sparkline;
mod table;
mod verdict;

pub(crate) use gates::print_gates;
pub(crate) use progress::{JsonLines, Progress};
pub(crate) use reasons::print_reasons;
pub(crate) use sparkline::sparkline;
pub(crate) use table::{comparison_table, summary_table};
pub(crate) use verdict::{print_cautions, print_effects, print_summary, verdict_with_bar};

use crate::commands::{Obstructed, PreflightError, UsageError};
use crate::suite::{SuiteError, suggest};
use assize_agents::capture::CaptureError;
use assize_contracts::with_causes;
use assize_engine::EngineError;
use assize_engine::store::StoreError;
use assize_report::{GateError, ReportError};
use console::{Term, style};
use std::borrow::Cow;
use std::io::Write;

/// Colors for terminals only, unless the environment says otherwise.
pub(crate) fn decide_on_colors() {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let forced = is_set("CLICOLOR_FORCE") && std::env::var("CLICOLOR_FORCE").as_deref() != Ok("0");
    let wanted = |term: &Term| (forced || term.features().is_attended()) && !is_set("NO_COLOR");
    console::set_colors_enabled(wanted(&Term::stdout()));
    console::set_colors_enabled_stderr(wanted(&Term::stderr()));
}

/// A character that moves the cursor, changes colors or turns text around.
fn is_hostile(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
}

/// Text without anything a terminal would act on: control characters, escape codes, reversed writing.
pub(crate) fn plain(text: &str) -> String {
    if !text.contains(is_hostile) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| if is_hostile(c) { '\u{fffd}' } else { c })
        .collect()
}

/// The same on one line, and no longer than this.
pub(crate) fn one_line(text: &str, longest: usize) -> String {
    let mut words = plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() > longest {
        words = words.chars().take(longest.saturating_sub(1)).collect();
        words.push('…');
    }
    words
}

/// The number of columns. None where stdout is no terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    let term = Term::stdout();
    let is_terminal = term.features().is_attended();
    is_terminal.then(|| usize::from(term.size().1))
}

/// A sentence on as many lines as it takes, broken between words, each after this indent. One line where stdout is no
/// terminal.
pub(crate) fn wrapped(text: &str, indent: &str) -> String {
    wrapped_at(text, indent, terminal_width())
}

/// Numbers stay with their units.
fn wrapped_at(text: &str, indent: &str, width: Option<usize>) -> String {
    let width = width.unwrap_or(usize::MAX);
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let is_unit =
            ["%", "ms", "s", "points"].contains(&word.trim_end_matches([',', '.', ')', ';']));
        match words.last_mut() {
            Some(number) if is_unit && number.ends_with(|last: char| last.is_ascii_digit()) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line)
                if console::measure_text_width(line) + 1 + console::measure_text_width(&word)
                    <= width =>
            {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(format!("{indent}{word}")),
        }
    }
    lines.join("\n")
}

/// The same, with something else in front of the first line, as long as the indent.
pub(crate) fn wrapped_after(first: &str, text: &str) -> String {
    let indent = " ".repeat(console::measure_text_width(first));
    let lines = wrapped(text, &indent);
    format!("{first}{}", lines.get(indent.len()..).unwrap_or_default())
}

/// A line for people, on stderr.
pub(crate) fn say(text: impl AsRef<str>) {
    // There is no way to report a closed stderr.
    let _ = writeln!(std::io::stderr().lock(), "{}", text.as_ref());
}

/// A line of a command's result, on stdout. A reader that has gone away is no error.
pub(crate) fn print(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout().lock(), "{}", text.as_ref());
}

/// JSON as a command's result, on stdout.
pub(crate) fn print_json(json: impl AsRef<str>) {
    print(harmless_json(json.as_ref()));
}

/// The same document, with escapes where a terminal would obey a character.
fn harmless_json(json: &str) -> Cow<'_, str> {
    if !json.contains(is_hostile) {
        return json.into();
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for letter in json.chars() {
        match is_hostile(letter) {
            true => escaped.push_str(&format!("\\u{:04x}", u32::from(letter))),
            false => escaped.push(letter),
        }
    }
    escaped.into()
}

/// Something to watch out for.
pub(crate) fn warn(text: &str) {
    say(format!(
        "{} {}",
        style("note:").for_stderr().yellow().bold(),
        plain(text)
    ));
}

/// Prints an error and the way out. The only place where errors are printed.
pub(crate) fn print_error(error: &anyhow::Error) {
    if let Some(SuiteError(errors)) = error.downcast_ref() {
        for error in errors {
            print_line(&error.to_string(), error.hint.as_deref());
        }
        return;
    }
    if let Some(PreflightError(obstacles)) = error.downcast_ref() {
        for obstacle in obstacles {
            print_line(&obstacle.message, Some(&obstacle.hint));
        }
        say("nothing was run or spent; --no-preflight runs without this check");
        return;
    }
    print_line(&with_causes(error.as_ref()), hint(error).as_deref());
}

fn print_line(message: &str, hint: Option<&str>) {
    say(format!(
        "{} {}",
        style("error:").for_stderr().red().bold(),
        plain(message)
    ));
    if let Some(hint) = hint {
        print_hint(hint);
    }
}

/// The way out.
pub(crate) fn print_hint(hint: &str) {
    say(format!(
        "{} {}",
        style("hint:").for_stderr().cyan().bold(),
        plain(hint)
    ));
}

fn hint(error: &anyhow::Error) -> Option<String> {
    let store = error
        .downcast_ref::<StoreError>()
        .or_else(|| match error.downcast_ref() {
            Some(EngineError::Store(error)) => Some(error),
            _ => None,
        });
    if let Some(EngineError::SetUp { .. }) = error.downcast_ref() {
        let hint = "run the set-up command by hand in a copy of the files; nothing was run or spent; --no-preflight runs without this check";
        return Some(hint.to_owned());
    }
    if let Some(EngineError::Workspace(error)) = error.downcast_ref() {
        return error.hint().map(str::to_owned);
    }
    if let Some(CaptureError::Listen { port, .. }) = error.downcast_ref() {
        return Some(format!(
            "another program listens on port {port}; name another one with `--port`, or leave it out for a free one"
        ));
    }
    if let Some(ReportError::Baseline { found, known }) = error.downcast_ref() {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        return suggest(found, &known);
    }
    if let Some(error) = error.downcast_ref::<GateError>() {
        return error.hint.clone();
    }
    if let Some(error) = error.downcast_ref::<Obstructed>() {
        return Some(error.hint.clone());
    }
    match (store, error.downcast_ref::<UsageError>()) {
        (Some(error), _) => error.hint().map(str::to_owned),
        (_, Some(error)) => error.hint.clone(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_moves_no_cursor_and_stays_the_same_document() {
        let hostile =
            serde_json::json!({"\u{9b}2J": "\u{202e}txt.exe\u{1b}[31m", "plain": "ä\n\t"});
        let shown = harmless_json(&hostile.to_string()).into_owned();
        assert!(!shown.contains(is_hostile), "{shown}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            hostile
        );
        assert_eq!(harmless_json("{\"a\": \"ä\"}"), "{\"a\": \"ä\"}");
    }

    #[test]
    fn nothing_a_terminal_would_act_on_gets_through() {
        let hostile = "\u{1b}[2J\u{1b}]0;title\u{7}a\rb\u{202e}c\u{9b}31m\nd\te";
        let safe = plain(hostile);
        assert!(
            !safe.contains(|c: char| c.is_control() && c != '\n' && c != '\t'),
            "{safe:?}"
        );
        assert!(!safe.contains('\u{202e}'));
        assert!(safe.ends_with("\nd\te"));
    }

    #[test]
    fn sentences_are_broken_between_words() {
        let text = "one two three four";
        assert_eq!(wrapped_at(text, "  ", Some(12)), "  one two\n  three four");
        assert_eq!(wrapped_at(text, "  ", None), "  one two three four");
        assert_eq!(
            wrapped_at("incomprehensible", "  ", Some(4)),
            "  incomprehensible"
        );
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(one_line("a  b\n c", 80), "a b c");
        assert_eq!(one_line("ääääää", 4), "äää…");
    }
}
