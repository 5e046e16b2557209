//! The cost of very many calls: a model's rates are asked for once and hold until a request is long enough for others. They are kept beside
//! the index, because reading the price table takes longer than reading the index: without them, the second call for 5,000 logs took 99 ms
//! instead of 67.

use assize_contracts::TokenBreakdown;
use assize_llm::Prices;
use assize_sessions::CallUse;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Dollars per token of each class, in units of 1e-15 dollars: prices are decimals, so that these are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Rates {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    cache_write_1h: u64,
    output: u64,
    reasoning: u64,
}

/// Units of a dollar.
const UNITS: f64 = 1e15;

/// Prices that depend on the time change on the hour and on the half hour.
const SPAN_MS: i64 = 30 * 60_000;

/// The rates of a model by the length of a request, as far as they were asked for. Nothing for a model without a price.
type Known = BTreeMap<u64, Option<Rates>>;

/// Rates by model.
type Table = HashMap<String, Vec<Service>>;

/// Lengths of requests between which rates are equal.
#[derive(Debug, Clone, Copy)]
struct Window {
    from: u64,
    to: u64,
    rates: Option<Rates>,
}

pub(crate) struct Costs<'a> {
    prices: &'a Prices,
    known: Table,
    /// Where the rates are kept.
    kept: Option<PathBuf>,
    has_new: bool,
}

/// A way in which a model is served, with the rates that were asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Service {
    api: Option<String>,
    tier: Option<String>,
    known: Known,
    /// The one that was used last.
    #[serde(skip)]
    window: Option<Window>,
}

/// Rates on disk.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// The program and its price table.
    of: String,
    /// The half hour for which they hold.
    span: i64,
    table: Table,
}

/// A cost in units of 1e-12 dollars, and how it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost {
    Computed(u128),
    Reported(u128),
    Unknown,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(prices: &'a Prices) -> Self {
        Self {
            prices,
            known: Table::new(),
            kept: None,
            has_new: false,
        }
    }

    /// The same with rates that an earlier call left in this file, if they still hold.
    pub(crate) fn kept_in(mut self, path: PathBuf) -> Self {
        let text = std::fs::read(&path).unwrap_or_default();
        let kept = serde_json::from_slice::<Kept>(&text).ok();
        if let Some(kept) = kept.filter(|kept| kept.of == self.source() && kept.span == span()) {
            self.known = kept.table;
        }
        self.kept = Some(path);
        self
    }

    /// The same for another thread.
    pub(crate) fn fork(&self) -> Self {
        Self {
            prices: self.prices,
            known: self.known.clone(),
            kept: None,
            has_new: false,
        }
    }

    /// Takes what another thread learned.
    pub(crate) fn join(&mut self, other: Self) {
        if !other.has_new {
            return;
        }
        self.has_new = true;
        for (model, services) in other.known {
            let own = self.known.entry(model).or_default();
            for service in services {
                let is_same =
                    |own: &&mut Service| own.api == service.api && own.tier == service.tier;
                match own.iter_mut().find(is_same) {
                    Some(own) => own.known.extend(service.known),
                    None => own.push(service),
                }
            }
        }
    }

    fn source(&self) -> String {
        format!("{} {}", env!("CARGO_PKG_VERSION"), self.prices.version())
    }

    /// Keeps the rates for the next call. Without them it only takes longer.
    pub(crate) fn keep(self) {
        let of = self.source();
        let (Some(path), true) = (self.kept, self.has_new) else {
            return;
        };
        let kept = Kept {
            of,
            span: span(),
            table: self.known,
        };
        let write = || -> std::io::Result<()> {
            let directory = path.parent().unwrap_or(&path);
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            serde_json::to_writer(&mut file, &kept)?;
            file.persist(&path)?;
            Ok(())
        };
        let _ = write();
    }

    /// Tokens times prices, else the agent's own figure. A call that was refused is free.
    pub(crate) fn of(&mut self, call: &CallUse<'_>) -> Cost {
        if call.status.is_some_and(|status| status >= 400) {
            return Cost::Computed(0);
        }
        match self.computed(call) {
            Some(cost) => Cost::Computed(cost),
            None => call.reported_usd.map_or(Cost::Unknown, |usd| {
                Cost::Reported((usd * 1e12).round() as u128)
            }),
        }
    }

    fn computed(&mut self, call: &CallUse<'_>) -> Option<u128> {
        let tokens = &call.tokens;
        let (input, output) = (tokens.input?, tokens.output?);
        let count = |count: Option<u64>| count.unwrap_or(0);
        let (read, written) = (count(tokens.cache_read), count(tokens.cache_write));
        let hour = count(call.cache_write_1h).min(written);
        let prompt = input.saturating_add(read).saturating_add(written);
        let rates = self.rates(call, prompt)?;
        let units: u128 = [
            (input, rates.input),
            (read, rates.cache_read),
            (written - hour, rates.cache_write),
            (hour, rates.cache_write_1h),
            (output, rates.output),
            (count(tokens.reasoning), rates.reasoning),
        ]
        .into_iter()
        .map(|(count, rate)| u128::from(count) * u128::from(rate))
        .sum();
        // In whole pico-dollars, as everywhere.
        Some((units + 500) / 1000)
    }

    fn rates(&mut self, call: &CallUse<'_>, prompt: u64) -> Option<Rates> {
        // Nothing is copied for a model that was met before: this is done for every call.
        let services = match self.known.get_mut(call.model) {
            Some(services) => services,
            None => self.known.entry(call.model.to_owned()).or_default(),
        };
        let is_same = |service: &Service| {
            service.api.as_deref() == call.api && service.tier.as_deref() == call.service_tier
        };
        let place = services.iter().position(is_same).unwrap_or_else(|| {
            services.push(Service {
                api: call.api.map(str::to_owned),
                tier: call.service_tier.map(str::to_owned),
                known: Known::new(),
                window: None,
            });
            services.len() - 1
        });
        let Service { known, window, .. } = &mut services[place];
        if let Some(window) = window
            && (window.from..=window.to).contains(&prompt)
        {
            return window.rates;
        }
        let below = known.range(..=prompt).next_back();
        let above = known.range(prompt..).next();
        if let (Some((from, below)), Some((to, above))) = (below, above)
            && below == above
        {
            let is_equal = |(_, rates): &(&u64, &Option<Rates>)| *rates == below;
            let first = known.range(..from).rev().take_while(is_equal).last();
            let last = known
                .range(to.saturating_add(1)..)
                .take_while(is_equal)
                .last();
            *window = Some(Window {
                from: first.map_or(*from, |(from, _)| *from),
                to: last.map_or(*to, |(to, _)| *to),
                rates: *below,
            });
            return *below;
        }
        // A model without a price has none at any length.
        if known.values().any(Option::is_none) {
            return None;
        }
        let rates = ask(self.prices, call, prompt);
        known.insert(prompt, rates);
        self.has_new = true;
        rates
    }
}

/// The half hour that it is.
fn span() -> i64 {
    super::now().div_euclid(SPAN_MS)
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
    let per = |usd: f64, count: u64| (usd / count as f64 * UNITS).round() as u64;
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
                    Cost::Computed(picos) => Some(picos as f64 / 1e12),
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
    /// So many questions were once asked as there were lengths, because quotients of equal prices differed in their last bit.
    #[test]
    fn rates_are_equal_at_all_lengths_of_a_tier() {
        let prices = Prices::default();
        let rates = |model, prompt| {
            let call = CallUse {
                model,
                ..CallUse::default()
            };
            ask(&prices, &call, prompt).unwrap()
        };
        for model in ["claude-sonnet-4-5", "claude-opus-4-5", "gpt-5.1-codex"] {
            let known = rates(model, 1000);
            for prompt in [7, 333, 12_345, 77_777, 123_457] {
                assert_eq!(rates(model, prompt), known, "{model} {prompt}");
            }
        }
    }

    #[test]
    fn kept_rates_are_used_while_they_hold_and_damaged_ones_are_not() {
        let prices = Prices::default();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions.rates");
        let call = CallUse {
            model: "claude-sonnet-4-5",
            tokens: TokenBreakdown {
                input: Some(1000),
                output: Some(1000),
                ..TokenBreakdown::default()
            }
            .with_totals(),
            ..CallUse::default()
        };
        let cost = || {
            let mut costs = Costs::new(&prices).kept_in(path.clone());
            let cost = costs.of(&call);
            let has_new = costs.has_new;
            costs.keep();
            (cost, has_new)
        };
        assert_eq!(cost(), (Cost::Computed(18_000_000_000), true));
        assert_eq!(cost(), (Cost::Computed(18_000_000_000), false));
        let mut kept: Kept = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        kept.span -= 1;
        std::fs::write(&path, serde_json::to_vec(&kept).unwrap()).unwrap();
        assert_eq!(
            cost(),
            (Cost::Computed(18_000_000_000), true),
            "another half hour"
        );
        std::fs::write(&path, b"{\"of\": 1").unwrap();
        assert_eq!(cost(), (Cost::Computed(18_000_000_000), true));
    }
}
