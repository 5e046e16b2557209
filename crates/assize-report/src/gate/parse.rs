//! The grammar of gates, and what of it has a meaning.
//!
//! ```text
//! gate       = subject comparison bound
//! subject    = "success" | "pass_at(" k ")" | "pass_hat(" k ")" | metric | stat "(" metric ")"
//! comparison = ">=" | "<=" | ">" | "<"
//! bound      = number | "baseline" [ ("+" | "-") number ("%" | "pp" | "") ]
//! ```

use super::{Bound, Gate, Subject};
use assize_contracts::{Catalog, SUCCESS};
use assize_stats::{Relation, Statistic};
use std::str::FromStr;
use thiserror::Error;

/// Longer sentences are no gates.
const LONGEST: usize = 1_000;

/// More tries than this are no plan.
const MOST_TRIES: u64 = 1_000;

const STATISTICS: [(&str, Statistic); 6] = [
    ("median", Statistic::Median),
    ("mean", Statistic::Mean),
    ("p90", Statistic::P90),
    ("p95", Statistic::P95),
    ("min", Statistic::Min),
    ("max", Statistic::Max),
];

const COMPARISONS: &str = "expected one of `>=`, `<=`, `>`, `<`";

/// A syntax error in a gate, and its position.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("gate `{gate}`, character {column}: {message}")]
pub struct GateError {
    /// The sentence.
    pub gate: String,
    /// The position of the error, in characters from 1.
    pub column: usize,
    /// The value found and the value expected.
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
}

impl GateError {
    pub(super) fn new(gate: &str, column: usize, message: impl Into<String>) -> Self {
        Self {
            gate: gate.chars().take(LONGEST).collect(),
            column,
            message: message.into(),
            hint: None,
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With the known name that was probably meant, or all of them where they are few.
    pub(super) fn nearest<'a>(self, wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let distance = |name: &&str| strsim::damerau_levenshtein(wrong, name);
        let is_near = |name: &&&str| distance(name) <= (name.chars().count() / 3).max(1);
        match known
            .iter()
            .filter(is_near)
            .min_by_key(|name| distance(name))
        {
            Some(name) => self.hint(format!("did you mean `{name}`?")),
            None if known.is_empty() => self,
            None => {
                let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                self.hint(format!("known are {}", names.join(", ")))
            }
        }
    }
}

impl FromStr for Gate {
    type Err = GateError;

    /// Reads metrics by their built-in names. [`Gate::parse`] also knows those of a run.
    fn from_str(text: &str) -> Result<Self, GateError> {
        Self::parse(text, &Catalog::default())
    }
}

impl Gate {
    /// Parses a gate on the metrics of this catalog.
    pub fn parse(text: &str, catalog: &Catalog) -> Result<Self, GateError> {
        let mut parser = Parser::new(text, catalog)?;
        let subject = parser.subject()?;
        let relation = parser.comparison()?;
        parser.skip_blanks();
        let at = parser.column();
        let bound = parser.bound(&subject)?;
        parser.end()?;
        let gate = Self {
            text: text.trim().to_owned(),
            subject,
            relation,
            bound,
            modes: None,
        };
        parser.check_meaning(&gate, at)?;
        Ok(gate)
    }
}

struct Parser<'a> {
    text: &'a str,
    letters: Vec<char>,
    place: usize,
    catalog: &'a Catalog,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, catalog: &'a Catalog) -> Result<Self, GateError> {
        let letters: Vec<char> = text.chars().collect();
        let parser = Self {
            text,
            letters,
            place: 0,
            catalog,
        };
        match parser.letters.len() > LONGEST {
            true => Err(parser.error(format!("expected at most {LONGEST} characters"))),
            false => Ok(parser),
        }
    }

    fn subject(&mut self) -> Result<Subject, GateError> {
        self.skip_blanks();
        let column = self.column();
        let name = self.name("expected what the gate is about, such as `success` or a metric")?;
        self.skip_blanks();
        if !self.take('(') {
            return Ok(match name.as_str() {
                SUCCESS => Subject::Success,
                _ => Subject::Metric {
                    name,
                    column,
                    statistic: None,
                },
            });
        }
        let subject = match name.as_str() {
            "pass_at" => Subject::PassAt(self.tries()?),
            "pass_hat" => Subject::PassHat(self.tries()?),
            _ => self.statistic(&name, column)?,
        };
        self.skip_blanks();
        match self.take(')') {
            true => Ok(subject),
            false => Err(self.found("expected `)`")),
        }
    }

    fn statistic(&mut self, function: &str, at: usize) -> Result<Subject, GateError> {
        let known = STATISTICS.iter().find(|(name, _)| *name == function);
        let Some((_, statistic)) = known else {
            let names = STATISTICS.iter().map(|(name, _)| *name);
            let message = format!("unknown function `{function}`");
            return Err(GateError::new(self.text, at, message)
                .nearest(function, names.chain(["pass_at", "pass_hat"])));
        };
        self.skip_blanks();
        let column = self.column();
        let name = self.name("expected the name of a metric")?;
        if name == SUCCESS {
            return Err(GateError::new(
                self.text,
                column,
                "success is a rate of trials and has no statistic of its own",
            )
            .hint("write `success` alone"));
        }
        Ok(Subject::Metric {
            name,
            column,
            statistic: Some(*statistic),
        })
    }

    fn tries(&mut self) -> Result<u64, GateError> {
        self.skip_blanks();
        let column = self.column();
        let digits = self.take_while(|letter| letter.is_ascii_digit());
        match digits.parse() {
            Ok(tries @ 1..=MOST_TRIES) => Ok(tries),
            _ => Err(GateError::new(
                self.text,
                column,
                format!("expected a number of tries from 1 to {MOST_TRIES}"),
            )),
        }
    }

    /// A name as collectors give it; in quotes it may hold anything else.
    fn name(&mut self, expected: &str) -> Result<String, GateError> {
        let name = match self.take('"') {
            true => {
                let name = self.take_while(|letter| letter != '"');
                if !self.take('"') {
                    return Err(self.found("expected `\"` at the end of the name"));
                }
                name
            }
            false => self.take_while(|letter| {
                !letter.is_whitespace() && !letter.is_control() && !"()<>=≤≥\"".contains(letter)
            }),
        };
        match name.is_empty() {
            true => Err(self.found(expected)),
            false => Ok(name),
        }
    }

    fn comparison(&mut self) -> Result<Relation, GateError> {
        self.skip_blanks();
        let (at, column) = (self.place, self.column());
        let signs = self.take_while(|letter| "<>=!≤≥".contains(letter));
        let wrong = |hint: &str| {
            let message = format!("found `{signs}`, {COMPARISONS}");
            Err(GateError::new(self.text, column, message).hint(hint))
        };
        match signs.as_str() {
            ">=" => Ok(Relation::AtLeast),
            "<=" => Ok(Relation::AtMost),
            ">" => Ok(Relation::Above),
            "<" => Ok(Relation::Below),
            "≥" | "=>" => wrong("write `>=`"),
            "≤" | "=<" => wrong("write `<=`"),
            "" => {
                self.place = at;
                Err(self.found(COMPARISONS))
            }
            _ => wrong("a gate is a limit: chance moves every number a little"),
        }
    }

    fn bound(&mut self, subject: &Subject) -> Result<Bound, GateError> {
        self.skip_blanks();
        let at = self.place;
        let word = self.take_while(char::is_alphabetic);
        if word == "baseline" {
            return self.allowance(subject);
        }
        self.place = at;
        if let Some(number) = self.number() {
            self.skip_blanks();
            if subject.is_rate(self.catalog) && self.letters.get(self.place) == Some(&'%') {
                let share = number / 100.0;
                return Err(self
                    .found("expected a share")
                    .hint(format!("write {share}")));
            }
            return Ok(Bound::Number(number));
        }
        let error = self.found("expected a number or `baseline`");
        Err(match word.is_empty() {
            true => error,
            false => error.nearest(&word, ["baseline"]),
        })
    }

    /// Parses the text after `baseline`.
    fn allowance(&mut self, subject: &Subject) -> Result<Bound, GateError> {
        self.skip_blanks();
        let sign = match self.letters.get(self.place) {
            None if subject.is_rate(self.catalog) => return Ok(Bound::Plus(0.0)),
            None => return Ok(Bound::Times(1.0)),
            Some('+') => 1.0,
            Some('-' | '\u{2212}') => -1.0,
            Some(_) => return Err(self.found("expected `+`, `-` or nothing more")),
        };
        self.place += 1;
        self.skip_blanks();
        let column = self.column();
        let number = self.number().filter(|number| *number >= 0.0);
        let Some(size) = number else {
            return Err(GateError::new(
                self.text,
                column,
                "expected a number of at least 0",
            ));
        };
        self.skip_blanks();
        let column = self.column();
        let unit = self.take_while(|letter| !letter.is_whitespace());
        let error = |message: &str| GateError::new(self.text, column, message);
        match unit.as_str() {
            "" => Ok(Bound::Plus(sign * size)),
            "pp" if subject.may_be_rate(self.catalog) => Ok(Bound::Plus(sign * size / 100.0)),
            "pp" => Err(error("points belong to rates, and this is none")
                .hint("write `%` for a share of the baseline, or a number in the metric's unit")),
            "%" if subject.is_rate(self.catalog) => {
                Err(error("`%` of a rate can be read in two ways")
                    .hint(format!("write `{size}pp` for points")))
            }
            "%" => Ok(Bound::Times(1.0 + sign * size / 100.0)),
            other => Err(error(&format!(
                "found `{other}`, expected `%`, `pp` or nothing more"
            ))),
        }
    }

    fn number(&mut self) -> Option<f64> {
        let at = self.place;
        let mut before = ' ';
        let digits = self.take_while(|letter| {
            let is_exponent = letter == 'e' || letter == 'E';
            let is_sign = letter == '-' || letter == '+';
            let fits = letter.is_ascii_digit()
                || letter == '.'
                || (is_exponent && before.is_ascii_digit())
                || (is_sign && matches!(before, 'e' | 'E' | ' '));
            before = letter;
            fits
        });
        let number = digits
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite());
        if number.is_none() {
            self.place = at;
        }
        number
    }

    fn end(&mut self) -> Result<(), GateError> {
        self.skip_blanks();
        match self.place == self.letters.len() {
            true => Ok(()),
            false => Err(self
                .found("expected nothing more")
                .hint("one gate is one comparison; write several gates as a list")),
        }
    }

    /// A bound that nothing can reach, or that everything does, was not meant.
    fn check_meaning(&self, gate: &Gate, at: usize) -> Result<(), GateError> {
        let error = |message: &str| Err(GateError::new(self.text, at, message));
        let wants_more = matches!(gate.relation, Relation::AtLeast | Relation::Above);
        if let (Subject::Metric { statistic, .. }, true) = (&gate.subject, gate.needs_baseline())
            && matches!(statistic, Some(Statistic::Min | Statistic::Max))
        {
            return Err(GateError::new(
                self.text,
                1,
                "smallest and largest values have no interval, so they cannot be compared with a baseline",
            )
            .hint("`p95` and `median` can"));
        }
        match gate.bound {
            Bound::Times(factor) if factor <= 0.0 => {
                error("nothing is left of the baseline, so no comparison exists")
            }
            Bound::Plus(points) if gate.subject.is_rate(self.catalog) && points.abs() >= 1.0 => {
                error("rates lie between 0 and 1, so they cannot differ by that much")
            }
            Bound::Number(limit) if gate.subject.is_rate(self.catalog) => {
                self.check_rate(gate, limit, at, wants_more)
            }
            Bound::Number(limit) if self.is_never_negative(gate) => {
                let is_reached = match gate.relation {
                    Relation::Above => limit < 0.0,
                    Relation::AtMost => limit >= 0.0,
                    Relation::AtLeast => limit <= 0.0,
                    Relation::Below => limit > 0.0,
                };
                match (wants_more, is_reached) {
                    (true, true) => error("this is never negative: the gate would always hold"),
                    (false, false) => error("this is never negative: the gate can never hold"),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn is_never_negative(&self, gate: &Gate) -> bool {
        let metric = gate.metric().map(|name| self.catalog.metric(name));
        metric.is_some_and(|metric| metric.is_never_negative())
    }

    fn check_rate(
        &self,
        gate: &Gate,
        limit: f64,
        at: usize,
        wants_more: bool,
    ) -> Result<(), GateError> {
        let error = |message: &str| GateError::new(self.text, at, message);
        if !(0.0..=1.0).contains(&limit) {
            let error = error("a rate lies between 0 and 1");
            return Err(match (1.0..=100.0).contains(&limit) {
                true => error.hint(format!("write {} for {limit} %", limit / 100.0)),
                false => error,
            });
        }
        let is_trivial = matches!(
            (gate.relation, limit),
            (Relation::AtLeast, 0.0) | (Relation::AtMost, 1.0)
        );
        if is_trivial {
            return Err(error("every rate fulfils this: the gate would always hold"));
        }
        let is_edge = if wants_more {
            limit == 1.0
        } else {
            limit == 0.0
        };
        // Measured per trial, a rate may well be 0 everywhere; a share of trials has an interval.
        if is_edge && gate.metric().is_none() {
            let near = if wants_more { "0.95" } else { "0.05" };
            return Err(
                error("no number of trials can show this: chance always leaves some room")
                    .hint(format!("a rate near the edge can be shown, such as {near}")),
            );
        }
        Ok(())
    }

    fn take(&mut self, letter: char) -> bool {
        let is_next = self.letters.get(self.place) == Some(&letter);
        self.place += usize::from(is_next);
        is_next
    }

    fn take_while(&mut self, mut fits: impl FnMut(char) -> bool) -> String {
        let rest = &self.letters[self.place..];
        let taken: String = rest
            .iter()
            .copied()
            .take_while(|&letter| fits(letter))
            .collect();
        self.place += taken.chars().count();
        taken
    }

    fn skip_blanks(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn column(&self) -> usize {
        self.place + 1
    }

    fn error(&self, message: String) -> GateError {
        GateError::new(self.text, self.column(), message)
    }

    /// An error about what comes next.
    fn found(&self, expected: &str) -> GateError {
        let rest = &self.letters[self.place..];
        let next: String = rest
            .iter()
            .take_while(|letter| !letter.is_whitespace())
            .take(20)
            .collect();
        match next.is_empty() {
            true => self.error(format!("the gate ends here, {expected}")),
            false => self.error(format!("found `{next}`, {expected}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gate(text: &str) -> Gate {
        text.parse().unwrap()
    }

    fn refused(text: &str, column: usize, message: &str, hint: &str) {
        let error = text.parse::<Gate>().unwrap_err();
        assert_eq!(error.column, column, "{error}");
        assert!(error.message.contains(message), "{error}");
        let found = error.hint.unwrap_or_default();
        assert!(found.contains(hint), "{text}: {found}");
    }

    #[test]
    fn the_gates_of_the_guide_are_understood() {
        assert_eq!(gate("success >= 0.9").subject, Subject::Success);
        assert_eq!(gate("success>=0.9").bound, Bound::Number(0.9));
        let slow = gate(" p95( latency_wall_ms ) < 30000 ");
        assert_eq!(slow.relation, Relation::Below);
        assert_eq!(slow.metric(), Some("latency_wall_ms"));
        assert_eq!(slow.text(), "p95( latency_wall_ms ) < 30000");
        assert_eq!(
            gate("cost_total_usd <= baseline + 10%").bound,
            Bound::Times(1.1)
        );
        assert_eq!(gate("success >= baseline - 10pp").bound, Bound::Plus(-0.1));
        assert_eq!(gate("tokens_total <= baseline").bound, Bound::Times(1.0));
        assert_eq!(gate("agent_turns <= baseline+2").bound, Bound::Plus(2.0));
        assert_eq!(gate("pass_at(3) > 0.9").subject, Subject::PassAt(3));
        assert_eq!(
            gate("pass_hat( 2 ) >= baseline").subject,
            Subject::PassHat(2)
        );
        assert_eq!(gate("\"my metric\" > -1e-3").metric(), Some("my metric"));
        assert_eq!(gate("größe_µs < 1.5E3").bound, Bound::Number(1500.0));
    }

    #[test]
    fn errors_have_their_place_and_the_nearest_name() {
        refused("", 1, "the gate ends here", "");
        refused(
            "p59(latency_wall_ms) < 1",
            1,
            "unknown function `p59`",
            "did you mean `p95`?",
        );
        refused("success", 8, COMPARISONS, "");
        refused("success == 0.9", 9, "found `==`", "limit");
        refused("success => 0.9", 9, "found `=>`", "write `>=`");
        refused(
            "success >= basline",
            12,
            "expected a number or `baseline`",
            "`baseline`",
        );
        refused("success >= 90%", 14, "expected a share", "write 0.9");
        refused(
            "success >= 0.9 && x < 1",
            16,
            "expected nothing more",
            "list",
        );
        refused("success >= baseline - 10%", 25, "two ways", "10pp");
        refused(
            "tokens_total <= baseline + 3pp",
            29,
            "points belong to rates",
            "%",
        );
        refused("tokens_total <= baseline * 2", 26, "found `*`", "");
        refused("pass_at(0) >= 0.5", 9, "tries from 1", "");
        refused("median(success) >= 0.5", 8, "rate of trials", "alone");
        refused("max(tokens_total < 5", 18, "expected `)`", "");
    }

    #[test]
    fn bounds_without_meaning_are_refused() {
        refused("success >= 90", 12, "between 0 and 1", "write 0.9");
        refused("success >= 1", 12, "no number of trials", "0.95");
        refused("success >= 0", 12, "always hold", "");
        refused("tokens_total < 0", 16, "can never hold", "");
        refused("tokens_total >= 0", 17, "always hold", "");
        refused(
            "cost_total_usd <= baseline - 100%",
            19,
            "nothing is left",
            "",
        );
        refused(
            "success >= baseline - 100pp",
            12,
            "cannot differ by that much",
            "",
        );
        refused("max(tokens_total) <= baseline", 1, "no interval", "p95");
        assert!("tool_calls_failed <= 0".parse::<Gate>().is_ok());
        assert!("tool_calls_error_rate <= 0".parse::<Gate>().is_ok());
    }

    #[test]
    fn an_unknown_metric_is_placed() {
        let error = gate("p95(tokens_totl) < 5").unknown_metric(["tokens_total", "agent_turns"]);
        assert_eq!(
            (error.column, error.hint.as_deref()),
            (5, Some("did you mean `tokens_total`?"))
        );
    }

    proptest! {
        #[test]
        fn any_text_is_a_gate_or_an_error_with_a_place_in_it(text in "\\PC{0,60}|.{0,60}") {
            check_answer(&text);
        }

        #[test]
        fn text_made_of_gates_is_a_gate_or_an_error(pieces in prop::collection::vec(prop::sample::select(vec![
            "success", "pass_at(", "p95(", "tokens_total", ")", "(", ">=", "<", "=", " ", "baseline", "+", "-", "10", "0.9",
            "%", "pp", "1e999", "\"", "é", "\u{202e}", "\t", "99999999999999999999",
        ]), 0..10)) {
            check_answer(&pieces.concat());
        }
    }

    fn check_answer(text: &str) {
        match text.parse::<Gate>() {
            Ok(gate) => assert_eq!(gate.text().parse::<Gate>().unwrap().bound, gate.bound),
            Err(error) => assert!(
                (1..=text.chars().count() + 1).contains(&error.column),
                "{error}"
            ),
        }
    }
}
