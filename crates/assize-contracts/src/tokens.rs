//! One accounting of tokens for every source.

use crate::ModelCall;
use serde::{Deserialize, Serialize};

/// Disjoint counts of tokens. A count that the source does not report is absent.
///
/// A source that does not split reasoning leaves `reasoning` absent, and `output` holds both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TokenBreakdown {
    /// Input that was neither read from nor written to a cache.
    pub input: Option<u64>,
    /// Visible output.
    pub output: Option<u64>,
    /// Output spent on reasoning.
    pub reasoning: Option<u64>,
    /// Input read from a prompt cache.
    pub cache_read: Option<u64>,
    /// Input written to a prompt cache.
    pub cache_write: Option<u64>,
    /// The sum of the five.
    pub total: Option<u64>,
    /// The total without cache reads.
    pub active: Option<u64>,
}

impl TokenBreakdown {
    /// Fills `total` and `active` from the five counts, as far as they can be known.
    ///
    /// Without input or output there is no total; without `cache_read` the active tokens are unknown.
    pub fn with_totals(mut self) -> Self {
        self.total = self.input.zip(self.output).map(|(input, output)| {
            [self.reasoning, self.cache_read, self.cache_write]
                .into_iter()
                .flatten()
                .fold(input.saturating_add(output), u64::saturating_add)
        });
        self.active = self
            .total
            .zip(self.cache_read)
            .map(|(total, cached)| total.saturating_sub(cached));
        self
    }

    /// The sum of the parts, where it contradicts `total`. A part that is unknown may be anything.
    pub fn contradicting_sum(&self) -> Option<u64> {
        let total = self.total?;
        let inputs = [self.input, self.cache_read, self.cache_write];
        let sum = inputs
            .into_iter()
            .chain([self.output, self.reasoning])
            .flatten()
            .fold(0, u64::saturating_add);
        // Reasoning that is not counted on its own is part of the output.
        let is_complete = self.output.is_some() && inputs.iter().all(Option::is_some);
        (sum > total || (is_complete && sum != total)).then_some(sum)
    }

    /// Both together. A count that one side does not know is unknown in the sum.
    pub fn plus(&self, other: &Self) -> Self {
        let add = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
        Self {
            input: add(self.input, other.input),
            output: add(self.output, other.output),
            reasoning: add(self.reasoning, other.reasoning),
            cache_read: add(self.cache_read, other.cache_read),
            cache_write: add(self.cache_write, other.cache_write),
            total: add(self.total, other.total),
            active: add(self.active, other.active),
        }
    }

    /// Counts that are unknown here are taken from the other.
    pub fn or(&self, other: &Self) -> Self {
        Self {
            input: self.input.or(other.input),
            output: self.output.or(other.output),
            reasoning: self.reasoning.or(other.reasoning),
            cache_read: self.cache_read.or(other.cache_read),
            cache_write: self.cache_write.or(other.cache_write),
            total: self.total.or(other.total),
            active: self.active.or(other.active),
        }
    }

    /// The part of a claim that differs from counts of the same tokens, or all of it where their total is unknown.
    pub fn beside(&self, counted: &Self) -> Option<Self> {
        match counted.total {
            Some(_) => self.differing_from(counted),
            None => (*self != Self::default()).then_some(*self),
        }
    }

    /// The same as lower bounds: an unknown count is 0, and the totals follow.
    pub fn known(&self) -> Self {
        let at_least = |count: Option<u64>| Some(count.unwrap_or(0));
        let known = Self {
            input: at_least(self.input),
            output: at_least(self.output),
            reasoning: at_least(self.reasoning),
            cache_read: at_least(self.cache_read),
            cache_write: at_least(self.cache_write),
            ..Self::default()
        }
        .with_totals();
        // Input of a source that does not split it may have come from a cache.
        let maybe_cached = match self.cache_read {
            Some(_) => 0,
            None => self.input.unwrap_or(0),
        };
        Self {
            active: known
                .active
                .map(|active| active.saturating_sub(maybe_cached)),
            ..known
        }
    }

    /// Only the counts that another source of the same tokens reports differently. None where they agree as far as both are known.
    ///
    /// Input and output mean the same only where both sources split them in the same way.
    pub fn differing_from(&self, other: &Self) -> Option<Self> {
        let differs = |own: Option<u64>, other: Option<u64>| {
            own.filter(|own| other.is_some_and(|other| *own != other))
        };
        let split = |tokens: &Self| (tokens.cache_read.is_some(), tokens.cache_write.is_some());
        let is_same_input = split(self) == split(other);
        let is_same_output = self.reasoning.is_some() == other.reasoning.is_some();
        let found = Self {
            input: differs(self.input, other.input).filter(|_| is_same_input),
            output: differs(self.output, other.output).filter(|_| is_same_output),
            reasoning: differs(self.reasoning, other.reasoning),
            cache_read: differs(self.cache_read, other.cache_read),
            cache_write: differs(self.cache_write, other.cache_write),
            total: differs(self.total, other.total),
            active: None,
        };
        (found != Self::default()).then_some(found)
    }
}

/// The tokens of several model calls together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenSum {
    /// The sum. A count that one call does not report is unknown.
    pub tokens: TokenBreakdown,
    /// The sum of what is known, where the total is not.
    pub at_least: Option<TokenBreakdown>,
}

impl TokenSum {
    /// Adds up calls. Refused ones took nothing. Without any call nothing is known.
    pub fn of_calls<'a>(calls: impl IntoIterator<Item = &'a ModelCall>) -> Self {
        let billed = calls.into_iter().filter(|call| !call.is_refused());
        billed
            .map(Self::of_call)
            .reduce(|sum, next| sum.plus(&next))
            .unwrap_or_default()
    }

    fn of_call(call: &ModelCall) -> Self {
        Self {
            tokens: call.tokens,
            at_least: call
                .tokens
                .total
                .is_none()
                .then(|| call.known_tokens().known()),
        }
    }

    /// Both together.
    pub fn plus(&self, other: &Self) -> Self {
        let at_least = || self.known().plus(&other.known());
        let is_whole = self.at_least.is_none() && other.at_least.is_none();
        Self {
            tokens: self.tokens.plus(&other.tokens),
            at_least: (!is_whole).then(at_least),
        }
    }

    /// The same, with something unknown beside it.
    pub fn and_more(&self) -> Self {
        Self {
            tokens: TokenBreakdown::default(),
            at_least: Some(self.known()),
        }
    }

    /// The known part, a lower bound.
    pub fn known(&self) -> TokenBreakdown {
        self.at_least.unwrap_or_else(|| self.tokens.known())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(input: Option<u64>, output: Option<u64>, status: Option<u16>) -> ModelCall {
        let tokens = TokenBreakdown {
            input,
            output,
            ..TokenBreakdown::default()
        };
        ModelCall {
            tokens: tokens.with_totals(),
            status,
            ..ModelCall::default()
        }
    }

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown_and_keeps_what_is_known() {
        let whole = call(Some(10), Some(2), Some(200));
        let cut = call(Some(7), None, Some(200));
        let refused = call(None, None, Some(429));
        let exact = TokenSum::of_calls([&whole, &refused]);
        assert_eq!((exact.tokens.total, exact.at_least), (Some(12), None));
        let sum = TokenSum::of_calls([&whole, &cut, &refused]);
        assert_eq!((sum.tokens.total, sum.tokens.output), (None, None));
        assert_eq!(sum.tokens.input, Some(17));
        let at_least = sum.at_least.unwrap();
        assert_eq!((at_least.output, at_least.total), (Some(2), Some(19)));
        let silent = TokenSum::of_calls([&call(None, None, Some(200))]);
        assert_eq!(silent.at_least.unwrap().total, Some(0));
        assert_eq!(TokenSum::of_calls([&refused]), TokenSum::default());
    }

    #[test]
    fn what_was_not_seen_leaves_a_lower_bound() {
        let seen = TokenSum::of_calls([&call(Some(10), Some(2), Some(200))]).and_more();
        assert_eq!(seen.tokens, TokenBreakdown::default());
        assert_eq!(seen.at_least.unwrap().total, Some(12));
    }

    #[test]
    fn totals_follow_from_the_parts() {
        let tokens = TokenBreakdown {
            input: Some(201),
            output: Some(97),
            reasoning: Some(40),
            cache_read: Some(21163),
            cache_write: Some(2934),
            ..Default::default()
        }
        .with_totals();
        assert_eq!(tokens.total, Some(24435));
        assert_eq!(tokens.active, Some(3272));
    }

    #[test]
    fn a_total_is_contradicted_only_by_parts_that_are_known() {
        let given = |input, cache_read, total| TokenBreakdown {
            input,
            output: Some(25),
            cache_read,
            cache_write: Some(0),
            total: Some(total),
            ..Default::default()
        };
        assert_eq!(given(Some(50), Some(0), 75).contradicting_sum(), None);
        assert_eq!(given(Some(50), Some(0), 85).contradicting_sum(), Some(75));
        assert_eq!(given(Some(50), None, 85).contradicting_sum(), None);
        assert_eq!(given(Some(50), None, 60).contradicting_sum(), Some(75));
        assert_eq!(TokenBreakdown::default().contradicting_sum(), None);
    }

    #[test]
    fn an_unknown_part_is_not_a_zero() {
        let known = TokenBreakdown {
            input: Some(1),
            output: Some(2),
            ..Default::default()
        };
        assert_eq!(known.with_totals().total, Some(3));
        assert_eq!(known.with_totals().active, None);
        assert_eq!(known.plus(&TokenBreakdown::default()).input, None);
    }

    #[test]
    fn sources_differ_only_in_what_both_tell_in_the_same_way() {
        let wire = TokenBreakdown {
            input: Some(201),
            output: Some(97),
            reasoning: Some(40),
            cache_read: Some(21163),
            ..Default::default()
        }
        .with_totals();
        let silent = TokenBreakdown::default();
        assert_eq!(wire.differing_from(&wire), None);
        assert_eq!(silent.differing_from(&wire), None);
        assert_eq!(wire.differing_from(&silent), None);
        let unsplit = TokenBreakdown {
            output: Some(137),
            reasoning: None,
            ..wire
        };
        assert_eq!(unsplit.with_totals().differing_from(&wire), None);
        let other = TokenBreakdown {
            input: Some(200),
            ..wire
        };
        let found = TokenBreakdown {
            input: Some(200),
            total: Some(21500),
            ..Default::default()
        };
        assert_eq!(other.with_totals().differing_from(&wire), Some(found));
    }
}
