//! The price of a model per token, and the billed amounts.

use super::{Paid, Purchase};

/// Disjoint counts as they are billed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Billed {
    pub(super) input: f64,
    pub(super) cache_read: f64,
    pub(super) cache_write_5m: f64,
    pub(super) cache_write_1h: f64,
    pub(super) output: f64,
    pub(super) reasoning: f64,
}

impl Billed {
    /// Absent when input or output is not known. Unreported cache or reasoning tokens are part of those two.
    pub(super) fn of(purchase: &Purchase<'_>) -> Option<Self> {
        let tokens = &purchase.tokens;
        let count = |count: Option<u64>| count.unwrap_or(0) as f64;
        let written = count(tokens.cache_write);
        let for_an_hour = count(purchase.cache_write_1h).min(written);
        Some(Self {
            input: tokens.input? as f64,
            cache_read: count(tokens.cache_read),
            cache_write_5m: written - for_an_hour,
            cache_write_1h: for_an_hour,
            output: tokens.output? as f64,
            reasoning: count(tokens.reasoning),
        })
    }

    pub(super) fn prompt(&self) -> f64 {
        self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h
    }

    pub(super) fn without_cache(&self) -> Self {
        Self {
            input: self.prompt(),
            cache_read: 0.0,
            cache_write_5m: 0.0,
            cache_write_1h: 0.0,
            ..*self
        }
    }

    pub(super) fn times(&self, share: f64) -> Self {
        Self {
            input: self.input * share,
            cache_read: self.cache_read * share,
            cache_write_5m: self.cache_write_5m * share,
            cache_write_1h: self.cache_write_1h * share,
            output: self.output * share,
            reasoning: self.reasoning * share,
        }
    }
}

/// Dollars per token. An absent price is that of the more general kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) input: Option<f64>,
    pub(super) output: Option<f64>,
    pub(super) cache_read: Option<f64>,
    pub(super) cache_write_5m: Option<f64>,
    pub(super) cache_write_1h: Option<f64>,
    pub(super) reasoning: Option<f64>,
}

impl Rates {
    /// The same, with what it lacks from another.
    fn or(&self, other: &Self) -> Self {
        Self {
            input: self.input.or(other.input),
            output: self.output.or(other.output),
            cache_read: self.cache_read.or(other.cache_read),
            cache_write_5m: self.cache_write_5m.or(other.cache_write_5m),
            cache_write_1h: self.cache_write_1h.or(other.cache_write_1h),
            reasoning: self.reasoning.or(other.reasoning),
        }
    }
}

/// The prices of a model: a base, and others for requests with more input than so many tokens.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ModelRates {
    pub(super) base: Rates,
    /// In rising order of their thresholds.
    pub(super) tiers: Vec<(u64, Rates)>,
}

impl ModelRates {
    /// All tokens of a request are paid at the rate of its tier.
    pub(super) fn paid(&self, billed: &Billed) -> Paid {
        let above = |tier: &&(u64, Rates)| billed.prompt() > tier.0 as f64;
        let rates = match self.tiers.iter().rev().find(above) {
            Some((_, tier)) => tier.or(&self.base),
            None => self.base,
        };
        let input = rates.input.unwrap_or(0.0);
        let output = rates.output.unwrap_or(0.0);
        let cache_write = rates.cache_write_5m.unwrap_or(input);
        Paid {
            input: billed.input * input
                + billed.cache_read * rates.cache_read.unwrap_or(input)
                + billed.cache_write_5m * cache_write
                + billed.cache_write_1h * rates.cache_write_1h.unwrap_or(cache_write),
            output: billed.output * output,
            reasoning: billed.reasoning * rates.reasoning.unwrap_or(output),
        }
    }
}
