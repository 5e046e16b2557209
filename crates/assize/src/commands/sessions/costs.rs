//! The cost of very many calls: a model's rates are asked for once and hold until a request is long enough for others.

use assize_contracts::TokenBreakdown;
use assize_llm::Prices;
use assize_sessions::CallUse;
use std::collections::{BTreeMap, HashMap};

/// Dollars per token of each class.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rates {
    input: f64,
    cache_read: f64,
    cache_write: f64,
    cache_write_1h: f64,
    output: f64,
    reasoning: f64,
}

/// The rates of a model by the length of a request, as far as they were asked for. Nothing for a model without a price.
type Known = BTreeMap<u64, Option<Rates>>;

pub(crate) struct Costs<'a> {
    prices: &'a Prices,
    known: HashMap<(String, Option<String>, Option<String>), Known>,
}

/// A cost and how it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cost {
    Computed(f64),
    Reported(f64),
    Unknown,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(prices: &'a Prices) -> Self {
        Self {
            prices,
            known: HashMap::new(),
        }
    }

    /// Tokens times prices, else the agent's own figure. A call that was refused is free.
    pub(crate) fn of(&mut self, call: &CallUse<'_>) -> Cost {
        if call.status.is_some_and(|status| status >= 400) {
            return Cost::Computed(0.0);
        }
        match self.computed(call) {
            Some(cost) => Cost::Computed(cost),
            None => call.reported_usd.map_or(Cost::Unknown, Cost::Reported),
        }
    }

    fn computed(&mut self, call: &CallUse<'_>) -> Option<f64> {
        let tokens = &call.tokens;
        let (input, output) = (tokens.input?, tokens.output?);
        let count = |count: Option<u64>| count.unwrap_or(0);
        let (read, written) = (count(tokens.cache_read), count(tokens.cache_write));
        let hour = count(call.cache_write_1h).min(written);
        let rates = self.rates(call, input + read + written)?;
        let usd = input as f64 * rates.input
            + read as f64 * rates.cache_read
            + (written - hour) as f64 * rates.cache_write
            + hour as f64 * rates.cache_write_1h
            + output as f64 * rates.output
            + count(tokens.reasoning) as f64 * rates.reasoning;
        // In whole pico-dollars, as everywhere.
        Some((usd * 1e12).round() / 1e12)
    }

    fn rates(&mut self, call: &CallUse<'_>, prompt: u64) -> Option<Rates> {
        let key = (
            call.model.to_owned(),
            call.api.map(str::to_owned),
            call.service_tier.map(str::to_owned),
        );
        let known = self.known.entry(key).or_default();
        let below = known.range(..=prompt).next_back();
        let above = known.range(prompt..).next();
        if let (Some((_, below)), Some((_, above))) = (below, above)
            && below == above
        {
            return *below;
        }
        // A model without a price has none at any length.
        if known.values().any(Option::is_none) {
            return None;
        }
        let rates = ask(self.prices, call, prompt);
        known.insert(prompt, rates);
        rates
    }
}

/// The rates of a request of this length: what it would cost if all of its input were of one class.
fn ask(prices: &Prices, call: &CallUse<'_>, prompt: u64) -> Option<Rates> {
    let prompt = prompt.max(1);
    let one = 1_000_000_u64;
    let cost = |tokens: TokenBreakdown, hour: Option<u64>| {
        let mut asked = call.model_call();
        asked.tokens = tokens.with_totals();
        asked.cache_write_1h = hour;
        prices
            .of_call(&asked)?
            .breakdown
            .total_usd
            .map(|usd| usd.value())
    };
    let tokens = |input, read, written, output| TokenBreakdown {
        input: Some(input),
        cache_read: Some(read),
        cache_write: Some(written),
        output: Some(output),
        ..TokenBreakdown::default()
    };
    let per = |usd: f64, count: u64| usd / count as f64;
    let input = cost(tokens(prompt, 0, 0, 0), None)?;
    let with_output = cost(tokens(prompt, 0, 0, one), None)?;
    let with_reasoning = cost(
        TokenBreakdown {
            reasoning: Some(one),
            ..tokens(prompt, 0, 0, 0)
        },
        None,
    )?;
    Some(Rates {
        input: per(input, prompt),
        cache_read: per(cost(tokens(0, prompt, 0, 0), None)?, prompt),
        cache_write: per(cost(tokens(0, 0, prompt, 0), None)?, prompt),
        cache_write_1h: per(cost(tokens(0, 0, prompt, 0), Some(prompt))?, prompt),
        output: per(with_output - input, one),
        reasoning: per(with_reasoning - input, one),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_the_price_table_on_both_sides_of_a_tier() {
        let prices = Prices::default();
        let mut costs = Costs::new(&prices);
        for model in [
            "claude-sonnet-4-5",
            "gpt-5.1-codex",
            "gemini-2.5-pro",
            "no-such-model",
        ] {
            for (input, read) in [
                (14, 9216),
                (199_999, 0),
                (1, 200_001),
                (187, 11_947),
                (250_000, 9),
                (3, 150_000),
                (90_000, 120_000),
            ] {
                let call = CallUse {
                    model,
                    tokens: TokenBreakdown {
                        input: Some(input),
                        cache_read: Some(read),
                        cache_write: Some(321),
                        output: Some(96),
                        reasoning: Some(32),
                        ..TokenBreakdown::default()
                    }
                    .with_totals(),
                    cache_write_1h: Some(21),
                    ..CallUse::default()
                };
                let expected = prices
                    .of_call(&call.model_call())
                    .and_then(|cost| cost.breakdown.total_usd);
                let found = match costs.of(&call) {
                    Cost::Computed(usd) => Some(usd),
                    _ => None,
                };
                let difference =
                    expected.map(|usd| usd.value()).unwrap_or(0.0) - found.unwrap_or(0.0);
                assert!(
                    difference.abs() < 1e-9,
                    "{model} {input}: {expected:?} is not {found:?}"
                );
                assert_eq!(expected.is_some(), found.is_some());
            }
        }
    }
}
