//! One accounting of tokens for every source.

use serde::{Deserialize, Serialize};

/// Disjoint counts of tokens. What a source does not tell is absent.
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
    /// Without input or output there is no total; without `cache_read` nobody knows what was active.
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

    /// Only the counts that another source of the same tokens tells otherwise. None where they agree as far as both know.
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

#[cfg(test)]
mod tests {
    use super::*;

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
