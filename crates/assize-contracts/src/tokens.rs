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
}
