//! The cost of tokens: a table that comes with Assize, and a file that takes precedence. A model that neither knows has no
//! price; nothing is ever guessed.

mod file;
mod rates;
mod reckoning;

pub use file::PriceFileError;
pub use reckoning::{Reckoning, price_calls};

use crate::api::Api;
use assize_contracts::{CostBreakdown, ModelCall, TokenBreakdown, Usd};
use file::PriceFile;
use genai_prices::{PriceRequest, UsageKey};
use rates::Billed;
use std::path::Path;
use std::sync::Arc;

/// The table that comes with Assize. A test keeps it equal to the version that is built in.
const TABLE: &str = "genai-prices 0.2.1";

/// Prices of models. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    file: Option<Arc<PriceFile>>,
}

/// The tokens of a request, and how they are billed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Purchase<'a> {
    /// The model that answered.
    pub model: &'a str,
    /// The API it was asked through, which distinguishes services with models of the same name.
    pub api: Option<Api>,
    /// Time, tokens and cost.
    pub tokens: TokenBreakdown,
    /// The part of the cache writes that is kept for an hour.
    pub cache_write_1h: Option<u64>,
    /// The class of service.
    pub service_tier: Option<&'a str>,
}

/// A cost and how it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Cache prices applied.
    pub breakdown: CostBreakdown,
    /// Every input token priced as uncached.
    pub cache_neutral: Usd,
}

impl Prices {
    /// The table, with a file before it: LiteLLM's or models.dev's form.
    pub fn with_file(path: &Path) -> Result<Self, PriceFileError> {
        let file = Some(Arc::new(PriceFile::read(path)?));
        Ok(Self { file })
    }

    /// The version of these prices, for records and reports.
    pub fn version(&self) -> String {
        match &self.file {
            Some(file) => format!("{} before {TABLE}", file.version()),
            None => TABLE.to_owned(),
        }
    }

    /// The cost of one request. Absent when the model has no price or the tokens are not known.
    pub fn of_request(&self, purchase: &Purchase<'_>) -> Option<Cost> {
        let billed = Billed::of(purchase)?;
        self.cost(purchase, &billed, 1.0)
    }

    /// The cost of a session of which only the totals are known.
    ///
    /// Totals do not show which requests were long enough for a higher price, so all are priced as short ones.
    pub fn of_totals(&self, model: &str, tokens: &TokenBreakdown) -> Option<Cost> {
        let purchase = Purchase {
            model,
            tokens: *tokens,
            ..Purchase::default()
        };
        let billed = Billed::of(&purchase)?;
        // No price changes below this.
        const SHORT: f64 = 1000.0;
        let share = (SHORT / billed.prompt().max(SHORT)).min(1.0);
        self.cost(&purchase, &billed, share)
    }

    /// The cost of a model call. Everything that prices a call does it here: runs, recordings, totals.
    pub fn of_call(&self, call: &ModelCall) -> Option<Cost> {
        self.of_call_with(call, call.tokens)
    }

    /// The cost of a call as if it had taken these tokens.
    fn of_call_with(&self, call: &ModelCall, tokens: TokenBreakdown) -> Option<Cost> {
        let api = call.api.as_deref();
        self.of_request(&Purchase {
            model: &call.model,
            api: Api::ALL
                .into_iter()
                .find(|known| Some(known.as_str()) == api),
            tokens,
            cache_write_1h: call.cache_write_1h,
            service_tier: call.service_tier.as_deref(),
        })
    }

    /// The cost of all calls of a session. Absent when there is none, or one has no known cost. Refused calls are free.
    pub fn of_calls<'a>(&self, calls: impl IntoIterator<Item = &'a ModelCall>) -> Option<Cost> {
        let billed = calls.into_iter().filter(|call| !call.is_refused());
        billed
            .map(|call| self.of_call(call))
            .reduce(|sum, next| Some(sum?.plus(&next?)))?
    }

    /// The cost of the known part of a session's calls. Absent when nothing of it has a price.
    pub fn at_least_of_calls<'a>(
        &self,
        calls: impl IntoIterator<Item = &'a ModelCall>,
    ) -> Option<Usd> {
        let billed = calls.into_iter().filter(|call| !call.is_refused());
        let known = billed.filter_map(|call| {
            let cost = self.of_call_with(call, call.known_tokens().known())?;
            cost.breakdown.total_usd
        });
        known.reduce(|sum, next| sum + next)
    }

    /// Prices the given share of what is billed and scales it up again.
    fn cost(&self, purchase: &Purchase<'_>, billed: &Billed, share: f64) -> Option<Cost> {
        let part = billed.times(share);
        let paid = self.paid(purchase, &part)?;
        let neutral = self.paid(purchase, &part.without_cache())?;
        let usd = |amount: f64| Usd::new(amount / share).map(rounded);
        let reasoning = match purchase.tokens.reasoning {
            Some(_) => usd(paid.reasoning),
            None => None,
        };
        Some(Cost {
            breakdown: CostBreakdown {
                total_usd: usd(paid.input + paid.output + paid.reasoning),
                input_usd: usd(paid.input),
                output_usd: usd(paid.output),
                reasoning_usd: reasoning,
            },
            cache_neutral: usd(neutral.input + neutral.output + neutral.reasoning)?,
        })
    }

    fn paid(&self, purchase: &Purchase<'_>, billed: &Billed) -> Option<Paid> {
        let file = self.file.as_ref();
        match file.and_then(|file| file.rates(purchase.model)) {
            Some(rates) => Some(rates.paid(billed)),
            None => paid_by_table(purchase, billed),
        }
    }
}

/// An amount for each side of a request, in dollars.
#[derive(Debug, Clone, Copy)]
struct Paid {
    input: f64,
    output: f64,
    reasoning: f64,
}

fn paid_by_table(purchase: &Purchase<'_>, billed: &Billed) -> Option<Paid> {
    let completion = billed.output + billed.reasoning;
    let cache_write = billed.cache_write_5m + billed.cache_write_1h;
    let usage = genai_prices::Usage::from([
        (UsageKey::INPUT_TOKENS, billed.prompt()),
        (UsageKey::CACHE_READ_TOKENS, billed.cache_read),
        (UsageKey::CACHE_WRITE_TOKENS, cache_write),
        (UsageKey::CACHE_WRITE_1H_TOKENS, billed.cache_write_1h),
        (UsageKey::OUTPUT_TOKENS, completion),
    ]);
    let mut request = PriceRequest::new(purchase.model, &usage);
    if let Some(tier) = purchase.service_tier {
        request = request.with_price_context("service_tier", tier);
    }
    let services = match purchase.api {
        Some(Api::AnthropicMessages) => [Some("anthropic"), None],
        Some(Api::Gemini) => [Some("google"), None],
        // Many imitate these APIs: the model's name shows whose it is.
        _ => [None, None],
    };
    let priced = services.iter().find_map(|service| {
        let request = match service {
            Some(id) => request.clone().with_provider_id(id),
            None => request.clone(),
        };
        genai_prices::calculate(&request).ok()
    })?;
    let share = if completion > 0.0 {
        billed.reasoning / completion
    } else {
        0.0
    };
    Some(Paid {
        input: priced.input_price,
        output: priced.output_price * (1.0 - share),
        reasoning: priced.output_price * share,
    })
}

impl Cost {
    fn plus(&self, other: &Self) -> Self {
        Self {
            breakdown: self.breakdown.plus(&other.breakdown),
            cache_neutral: self.cache_neutral + other.cache_neutral,
        }
    }
}

/// In whole pico-dollars, so that equal purchases have equal prices however they were computed.
fn rounded(amount: Usd) -> Usd {
    amount + Usd::default()
}

/// The number of models that a file of prices names.
pub(crate) fn parse_file(text: &[u8]) -> Result<usize, String> {
    file::parse(text).map(|models| models.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(input: u64, output: u64, cache_read: u64, cache_write: u64) -> TokenBreakdown {
        TokenBreakdown {
            input: Some(input),
            output: Some(output),
            cache_read: Some(cache_read),
            cache_write: Some(cache_write),
            ..TokenBreakdown::default()
        }
    }

    fn check(purchase: Purchase<'_>, expected: f64) {
        let cost = Prices::default().of_request(&purchase).unwrap();
        assert_eq!(cost.breakdown.total_usd.unwrap().value(), expected);
    }

    #[test]
    fn the_table_is_the_one_that_is_built_in() {
        let lock = include_str!("../../../../Cargo.lock");
        let (name, version) = TABLE.split_once(' ').unwrap();
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"");
        assert!(lock.contains(&entry), "{TABLE} is not in Cargo.lock");
    }

    #[test]
    fn cache_prices_are_applied_and_left_out() {
        // $3 in, $15 out, $0.30 read, $3.75 written, each per million.
        let purchase = Purchase {
            model: "claude-sonnet-4-5",
            tokens: tokens(14, 96, 9216, 2731),
            ..Purchase::default()
        };
        let cost = Prices::default().of_request(&purchase).unwrap();
        let value = |amount: Option<Usd>| amount.unwrap().value();
        assert_eq!(value(cost.breakdown.input_usd), 0.01304805);
        assert_eq!(value(cost.breakdown.output_usd), 0.00144);
        assert_eq!(value(cost.breakdown.total_usd), 0.01448805);
        assert_eq!(cost.breakdown.reasoning_usd, None);
        // 11,961 input tokens at the full price.
        assert_eq!(cost.cache_neutral.value(), 0.037323);
    }

    #[test]
    fn cache_kept_for_an_hour_costs_more() {
        let purchase = Purchase {
            model: "claude-sonnet-4-5",
            tokens: tokens(0, 0, 0, 1000),
            cache_write_1h: Some(1000),
            ..Purchase::default()
        };
        check(purchase, 0.006);
    }

    #[test]
    fn a_long_request_is_priced_as_one_and_a_long_session_is_not() {
        let long = |input| Purchase {
            model: "claude-sonnet-4-5",
            tokens: tokens(input, 0, 0, 0),
            ..Purchase::default()
        };
        check(long(200_000), 0.6);
        check(long(200_001), 1.200006);
        let prices = Prices::default();
        let totals = prices.of_totals("claude-sonnet-4-5", &tokens(400_000, 0, 0, 0));
        assert_eq!(totals.unwrap().breakdown.total_usd.unwrap().value(), 1.2);
    }

    #[test]
    fn reasoning_is_paid_as_output() {
        let purchase = Purchase {
            model: "gemini-2.5-pro",
            api: Some(Api::Gemini),
            tokens: TokenBreakdown {
                reasoning: Some(32),
                ..tokens(2745, 64, 9216, 0)
            },
            ..Purchase::default()
        };
        let cost = Prices::default().of_request(&purchase).unwrap();
        assert_eq!(cost.breakdown.reasoning_usd.unwrap().value(), 0.00032);
        check(purchase, 0.00554325);
    }

    #[test]
    fn what_is_not_known_has_no_price() {
        let prices = Prices::default();
        for model in ["", "default", "fake-model", "no-such-model-9"] {
            assert_eq!(
                prices.of_totals(model, &tokens(1, 1, 0, 0)),
                None,
                "{model}"
            );
        }
        let half = TokenBreakdown {
            output: None,
            ..tokens(1, 0, 0, 0)
        };
        assert_eq!(prices.of_totals("claude-sonnet-4-5", &half), None);
    }
}
