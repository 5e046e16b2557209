//! Counts the reasons why trials did not pass, by the text that their messages share.

use crate::arm::Names;
use crate::row::Row;
use assize_contracts::Outcome;
use serde::Serialize;

/// A longer message is cut.
const LONGEST: usize = 600;

/// Reasons of a mode that a page lists.
pub(crate) const MOST_LISTED: usize = 20;

/// Further kinds of messages are counted together.
const MOST_KINDS: usize = 2000;

/// The name under which messages beyond that are counted.
const OTHER: &str = "other reasons";

/// A reason why trials of a mode did not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// The outcome of the trials: `fail` or `void`.
    pub outcome: Outcome,
    /// The message of the first such trial.
    pub message: String,
    /// The number of trials.
    pub trials: u64,
    /// The session ended with an error, rather than with an answer that checks refused.
    pub is_error: bool,
    /// The first such trial, where rows name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<TrialPlace>,
}

/// The key of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialPlace {
    pub run_id: String,
    /// Its place in the run's plan.
    pub position: u64,
}

impl TrialPlace {
    /// The link to the trial in `report.html`, after the `#`.
    pub(crate) fn anchor(&self) -> String {
        format!("show-{}-{}", self.run_id, self.position)
    }

    /// The command that shows the trial.
    pub fn command(&self) -> String {
        format!("assize show {}/{}", self.run_id, self.position)
    }
}

impl Reason {
    /// `12 × void: no answer`.
    pub fn words(&self) -> String {
        let Self {
            outcome,
            message,
            trials,
            ..
        } = self;
        match outcome {
            Outcome::Void => format!("{trials} × void: {message}"),
            _ => format!("{trials} × {message}"),
        }
    }
}

/// The count of a reason in a cell, and the position of the first such trial.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) trials: u32,
    pub(crate) position: Option<u32>,
}

/// All reasons that were met. A cell keeps their places only.
#[derive(Debug, Default)]
pub(crate) struct Reasons {
    kinds: Names,
    /// By the place of their kind.
    known: Vec<KnownReason>,
}

#[derive(Debug)]
struct KnownReason {
    outcome: Outcome,
    message: String,
    run_id: String,
    is_error: bool,
}

impl Reasons {
    /// The place of the reason why a trial did not pass.
    pub(crate) fn place(&mut self, row: &Row<'_>) -> usize {
        let outcome = row.outcome();
        let mut message = cut(row.reason());
        // Every mode has messages of its own: what one of them says is no reason of another.
        let scope = format!("{} {} {}", row.run_id, row.mode, row.model);
        let mut kind = match row.has_error() {
            true => kind_of(outcome, &scope, &message),
            false => format!("{outcome:?} {scope} {message}"),
        };
        if self.kinds.find(&kind).is_none() && self.known.len() >= MOST_KINDS {
            message = OTHER.to_owned();
            kind = kind_of(outcome, "", OTHER);
        }
        let place = self.kinds.place(&kind);
        if place == self.known.len() {
            self.known.push(KnownReason {
                outcome,
                message,
                is_error: row.has_error(),
                run_id: row.run_id.to_string(),
            });
        }
        place
    }

    /// The reason for an index and a tally.
    pub(crate) fn reason(&self, place: usize, tally: Tally) -> Reason {
        let known = &self.known[place];
        let example = tally.position.map(|position| TrialPlace {
            run_id: known.run_id.clone(),
            position: position.into(),
        });
        Reason {
            outcome: known.outcome,
            message: known.message.clone(),
            trials: tally.trials.into(),
            is_error: known.is_error,
            example: example.filter(|_| known.message != OTHER),
        }
    }
}

fn cut(text: String) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// An error without what differs from trial to trial: paths of workspaces, ports, times, ids. Codes are part of it.
fn kind_of(outcome: Outcome, scope: &str, message: &str) -> String {
    let varies = |word: &str| word.contains('/') || word.contains(|c: char| c.is_ascii_digit());
    let names_code = |word: &str| ["code", "status", "answered", "signal"].contains(&word);
    let mut kind = format!("{outcome:?} {scope}");
    let mut before = "";
    for word in message.split(' ') {
        kind.push(' ');
        let is_open = varies(word) && !names_code(before);
        kind.push_str(if is_open { "…" } else { word });
        before = word;
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &str, b: &str, is_same: bool) {
        let of = |message| kind_of(Outcome::Fail, "run mode model", message);
        assert_eq!(of(a) == of(b), is_same, "{a} | {b}");
    }

    #[test]
    fn what_differs_from_trial_to_trial_is_no_reason_of_its_own() {
        check("cannot open /tmp/a/1", "cannot open /tmp/b/2", true);
        check("no answer after 812 ms", "no answer after 93 ms", true);
    }

    #[test]
    fn other_codes_are_other_reasons() {
        check(
            "the program ended with exit code 3: a",
            "the program ended with exit code 4: a",
            false,
        );
        check(
            "the model's API answered 401: no",
            "the model's API answered 429: no",
            false,
        );
    }
}
