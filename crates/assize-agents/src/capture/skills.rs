//! Skills on the wire: offered when a request holds the description, used when it holds the text. Every agent shows that, whatever
//! it reports about itself.

use super::agents::Thread;
use super::session::{Call, Recording};
use assize_contracts::{SkillLoad, SkillSighting, Timestamp, TokenBreakdown};
use std::collections::BTreeMap;

/// A shorter fragment may be in a request by chance.
const SHORTEST_FRAGMENT: usize = 12;

/// Longer ones are cut: agents may cut descriptions, and tools may wrap lines.
const LONGEST_FRAGMENT: usize = 60;

/// Fragments of a text that are looked for. Half of them are enough, since tools may cut what they read.
const MOST_FRAGMENTS: usize = 8;

/// Agents that offer skills by name alone write this before the names.
const LIST_OF_NAMES: &str = "Available skills:";

/// The longest distance of a name behind it.
const LONGEST_LIST: usize = 4_000;

/// A skill that is looked for in requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedSkill {
    name: String,
    offer: Option<String>,
    text: Vec<String>,
    /// Length of the text.
    bytes: usize,
}

/// The evidence of a skill in one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown {
    is_offered: bool,
    is_loaded: bool,
}

/// The evidence of a skill in the requests of a session until now.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    is_offered: bool,
    /// The first call of every conversation that holds its text, and the text's share of the request.
    loads: BTreeMap<Thread, (u64, f64)>,
}

impl WatchedSkill {
    /// A skill by what agents say of it and what they load.
    pub fn new(name: &str, description: &str, body: &str) -> Self {
        let mut lines: Vec<&str> = body
            .lines()
            .filter(|line| !description.contains(line.trim()))
            .filter_map(plain_fragment)
            .collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.len()));
        lines.dedup();
        let has_long = lines
            .first()
            .is_some_and(|line| line.len() >= SHORTEST_FRAGMENT);
        lines.retain(|line| !has_long || line.len() >= SHORTEST_FRAGMENT);
        lines.truncate(MOST_FRAGMENTS);
        let offer = description.lines().filter_map(plain_fragment);
        Self {
            name: name.to_owned(),
            offer: offer.max_by_key(|line| line.len()).map(str::to_owned),
            text: lines.into_iter().map(str::to_owned).collect(),
            bytes: body.len(),
        }
    }

    pub(super) fn shown_in(&self, body: &str) -> Shown {
        let found = self.text.iter().filter(|line| body.contains(line.as_str()));
        let found = found.count();
        let described = self
            .offer
            .as_ref()
            .is_some_and(|offer| body.contains(offer.as_str()));
        Shown {
            is_offered: described || self.is_listed(body),
            is_loaded: found > 0 && found >= self.text.len().div_ceil(2),
        }
    }

    fn is_listed(&self, body: &str) -> bool {
        body.match_indices(LIST_OF_NAMES).any(|(start, _)| {
            let list = &body[start..body.floor_char_boundary(start + LONGEST_LIST)];
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            list.split(|c| !is_part(c)).any(|word| word == self.name)
        })
    }
}

/// The longest part of a line that is written the same in every format: no quotes, escapes, signs of markup or templates.
fn plain_fragment(line: &str) -> Option<&str> {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, ' ' | ',' | '.' | ';' | ':' | '(' | ')' | '-' | '_')
    };
    let parts = line.split(|c| !is_plain(c)).map(str::trim);
    let longest = parts.max_by_key(|part| part.len())?;
    let cut = &longest[..longest.len().min(LONGEST_FRAGMENT)];
    (!cut.trim().is_empty()).then_some(cut.trim())
}

impl Seen {
    pub(super) fn take(&mut self, shown: Shown, skill: &WatchedSkill, call: &Call, length: usize) {
        self.is_offered |= shown.is_offered;
        if shown.is_loaded {
            let share = skill.bytes as f64 / length.max(1) as f64;
            let first = self
                .loads
                .entry(call.thread)
                .or_insert((call.number, share));
            if call.number < first.0 {
                *first = (call.number, share);
            }
        }
    }
}

impl Recording {
    /// The evidence on the wire of every skill that was looked for.
    pub(super) fn sightings(&self) -> Vec<SkillSighting> {
        let sighting = |(skill, seen): &(WatchedSkill, Seen)| {
            let mut loads: Vec<(u64, f64)> = seen.loads.values().copied().collect();
            loads.sort_by_key(|(number, _)| *number);
            SkillSighting {
                name: skill.name.clone(),
                offered: seen.is_offered,
                loads: loads
                    .into_iter()
                    .filter_map(|(number, share)| self.load(number, share))
                    .collect(),
            }
        };
        self.skills.iter().map(sighting).collect()
    }

    fn load(&self, number: u64, share: f64) -> Option<SkillLoad> {
        let call = self.calls.iter().find(|call| call.number == number)?;
        if self.is_side(call) {
            return None;
        }
        let before = || self.calls.iter().filter(|call| call.number < number);
        let is_turn = |call: &&Call| {
            !self.is_side(call)
                && self.agent(call).is_none()
                && !call.is_refused()
                && !call.is_cut()
        };
        let tokens = before()
            .filter(|call| !call.is_refused())
            .try_fold(0, |sum, call| Some(sum + call.model_call().tokens.total?));
        Some(SkillLoad {
            call_ref: format!("call-{number}"),
            agent_id: self.agent(call).map(str::to_owned),
            timestamp: Some(Timestamp::from_unix_ms(call.started_ms)),
            turns_before: before().filter(is_turn).count() as u64,
            tokens_before: tokens,
            text_tokens: prompt_tokens(&call.model_call().tokens)
                .map(|tokens| (tokens as f64 * share).round() as u64),
        })
    }
}

/// Everything that was put in, cached or not.
fn prompt_tokens(tokens: &TokenBreakdown) -> Option<u64> {
    let cached = tokens.cache_read.unwrap_or(0) + tokens.cache_write.unwrap_or(0);
    Some(tokens.input? + cached)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "# Review\n\nRead the whole difference before you say anything about it.\n\nName the file and the \"line\" of every remark, and nothing else.\n- Short\n";

    fn shown(body: &str) -> (bool, bool) {
        let skill = WatchedSkill::new("review", "Reviews changes of code. Use for \"PRs\".", BODY);
        let shown = skill.shown_in(body);
        (shown.is_offered, shown.is_loaded)
    }

    #[test]
    fn a_description_is_an_offer_and_the_text_is_a_use() {
        assert_eq!(shown(r#"{"messages": []}"#), (false, false));
        let offered = r#"{"system": "- review: Reviews changes of code. Use for \"PRs\"."}"#;
        assert_eq!(shown(offered), (true, false));
        let escaped = serde_json::to_string(&serde_json::json!({"output": BODY})).unwrap();
        assert_eq!(shown(&escaped), (false, true));
        // Inside a JSON text inside a JSON text, with line numbers before every line.
        let numbered: String = BODY.lines().map(|line| format!("  7\t{line}\n")).collect();
        let twice =
            serde_json::json!({"content": serde_json::json!({"output": numbered}).to_string()});
        assert_eq!(shown(&twice.to_string()), (false, true));
    }

    #[test]
    fn one_line_of_many_is_no_use() {
        let line = "Read the whole difference before you say anything about it.";
        let skill = WatchedSkill::new(
            "a",
            "b",
            &format!(
                "{line}\n{}",
                "Another quite long line here 1\nA third quite long line here 2\nA fourth quite long line here 3"
            ),
        );
        assert!(!skill.shown_in(line).is_loaded);
    }

    #[test]
    fn a_name_in_a_list_of_names_is_an_offer() {
        assert_eq!(shown("Available skills: pdf, review, x"), (true, false));
        assert_eq!(shown("Available skills: pdf, review-all"), (false, false));
        assert_eq!(shown("review"), (false, false));
    }
}
