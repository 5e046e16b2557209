//! `text`: how near a text is to the expected one, by words and by letters.

use super::{Measure, Seen, config_error, part, read, share, side_by_side};
use assize_contracts::{
    BoxError, ConfigError, EvaluatorSetup, Evidence, Number, ScoreRecord, ScoreTarget, as_text,
};
use serde::Deserialize;
use std::collections::HashMap;

/// Distances of longer texts take too long; their beginnings are compared.
const LONGEST: usize = 4000;

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    path: Option<String>,
    /// The share of common words that counts as a match instead of equal texts.
    min_token_f1: Option<f64>,
    /// The same for the similarity of letters.
    min_edit_similarity: Option<f64>,
    /// Upper and lower case differ.
    case_sensitive: bool,
}

pub(super) struct Text(Settings);

impl Text {
    pub(super) fn new(setup: &EvaluatorSetup<'_>) -> Result<Self, ConfigError> {
        let settings: Settings = read(setup)?;
        let limits = [settings.min_token_f1, settings.min_edit_similarity];
        match limits
            .iter()
            .flatten()
            .all(|limit| (0.0..=1.0).contains(limit))
        {
            true => Ok(Self(settings)),
            false => Err(config_error("found a limit outside of 0 to 1")),
        }
    }

    /// Words and signs, one space between them.
    fn normalized(&self, text: &str) -> String {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match self.0.case_sensitive {
            true => words,
            false => words.to_lowercase(),
        }
    }
}

impl Measure for Text {
    fn metrics(&self) -> Vec<String> {
        ["text_match", "token_f1", "edit_similarity"]
            .map(str::to_owned)
            .to_vec()
    }

    fn scores(&self, seen: &Seen<'_>) -> Result<Vec<ScoreRecord>, BoxError> {
        let path = self.0.path.as_deref();
        let Some(expected) = seen.expected.and_then(|expected| part(expected, path)) else {
            return Ok(Vec::new());
        };
        let actual = seen.output().and_then(|output| part(output, path));
        let (a, b) = (
            self.normalized(&as_text(expected)),
            self.normalized(&actual.map(as_text).unwrap_or_default()),
        );
        let f1 = token_f1(&a, &b);
        let similarity = edit_similarity(&a, &b);
        let is_near = match (self.0.min_token_f1, self.0.min_edit_similarity) {
            (None, None) => a == b,
            (f1_limit, similarity_limit) => {
                f1_limit.is_none_or(|limit| f1.value() >= limit)
                    && similarity_limit.is_none_or(|limit| similarity.value() >= limit)
            }
        };
        let explanation = match (seen.output(), is_near) {
            (None, _) => seen.failure(),
            (_, true) => "the texts match".to_owned(),
            (_, false) => format!(
                "{:.0} % of the words and {:.0} % of the letters are the same",
                f1.value() * 100.0,
                similarity.value() * 100.0
            ),
        };
        let evidence = Evidence::explained(explanation).aligned(side_by_side(expected, actual));
        let score = |metric: &str, value: Number| {
            ScoreRecord::new(seen.run, metric, value, ScoreTarget::Final)
        };
        Ok(vec![
            ScoreRecord::new(
                seen.run,
                "text_match",
                is_near && actual.is_some(),
                ScoreTarget::Final,
            )
            .because(evidence),
            score("token_f1", f1),
            score("edit_similarity", similarity),
        ])
    }
}

/// The words of a text; signs of scripts without spaces are words of their own.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    for sign in text.chars() {
        let stands_alone = matches!(
            sign,
            '\u{2e80}'..='\u{9fff}'
                | '\u{ac00}'..='\u{d7af}'
                | '\u{f900}'..='\u{faff}'
                | '\u{20000}'..='\u{3ffff}'
        );
        if sign.is_alphanumeric() && !stands_alone {
            word.push(sign);
            continue;
        }
        if !word.is_empty() {
            tokens.push(std::mem::take(&mut word));
        }
        if stands_alone && sign.is_alphanumeric() {
            tokens.push(sign.to_string());
        }
    }
    if !word.is_empty() {
        tokens.push(word);
    }
    tokens
}

/// Twice the common words by the words of both (the harmonic mean of precision and recall).
fn token_f1(a: &str, b: &str) -> Number {
    let (a, b) = (tokens(a), tokens(b));
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for token in &a {
        *counts.entry(token).or_default() += 1;
    }
    let mut common = 0;
    for token in &b {
        if let Some(count) = counts.get_mut(token.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    share(2 * common, a.len() + b.len())
}

fn edit_similarity(a: &str, b: &str) -> Number {
    let beginning = |text: &str| text.chars().take(LONGEST).collect::<String>();
    let similarity = strsim::normalized_levenshtein(&beginning(a), &beginning(b));
    Number::new(similarity).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &str, b: &str, f1: f64) {
        assert!((token_f1(a, b).value() - f1).abs() < 1e-9, "{a} {b}");
    }

    #[test]
    fn words_count_as_often_as_they_stand_there() {
        check("the cat sat", "the cat sat", 1.0);
        check("the the cat", "the cat", 0.8);
        check("a b", "c d", 0.0);
        check("", "", 1.0);
    }

    #[test]
    fn scripts_without_spaces_are_compared_sign_by_sign() {
        check("我想订机票", "我想订车票", 0.8);
    }
}
