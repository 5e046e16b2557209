//! What a session cost: the agent's own figure, and tokens times prices. Both are kept; the computed one counts.

use super::Prices;
use assize_contracts::{CostBreakdown, CostReadings, CostSource, PromptMetrics, SessionTrace};

/// A cost with its source and all its readings.
#[derive(Debug, Clone, Copy)]
pub struct Reckoning {
    /// The figure that counts.
    pub cost: CostBreakdown,
    /// How it is known.
    pub source: CostSource,
    /// All figures.
    pub readings: CostReadings,
}

impl Reckoning {
    /// Requests are priced one by one where the trace has them, because long ones cost more.
    pub fn of(
        metrics: &PromptMetrics,
        model: &str,
        trace: Option<&SessionTrace>,
        prices: Option<&Prices>,
    ) -> Self {
        let reported = metrics.cost;
        let computed = prices.and_then(|prices| {
            trace
                .and_then(|trace| prices.of_calls(&trace.model_calls))
                .or_else(|| prices.of_totals(model, &metrics.tokens))
        });
        let (source, cost) = match &computed {
            Some(computed) => (CostSource::Computed, computed.breakdown),
            None if reported.total_usd.is_some() => (CostSource::Reported, reported),
            None => (CostSource::Unknown, reported),
        };
        let readings = CostReadings {
            reported_usd: reported.total_usd,
            computed_usd: computed.as_ref().and_then(|cost| cost.breakdown.total_usd),
            cache_neutral_usd: computed.map(|cost| cost.cache_neutral),
        };
        Self {
            cost,
            source,
            readings,
        }
    }
}

/// Prices the requests in a trace that have no cost yet.
pub fn price_calls(trace: &mut SessionTrace, prices: &Prices) {
    for call in &mut trace.model_calls {
        if call.cost_usd.is_none() {
            call.cost_usd = prices
                .of_call(call)
                .and_then(|cost| cost.breakdown.total_usd);
            call.cost_source = call.cost_usd.map(|_| CostSource::Computed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_contracts::{ModelCall, TokenBreakdown, Usd};
    use serde_json::json;

    fn metrics(input: u64, reported: Option<f64>) -> PromptMetrics {
        PromptMetrics {
            tokens: TokenBreakdown {
                input: Some(input),
                output: Some(0),
                ..TokenBreakdown::default()
            },
            cost: CostBreakdown {
                total_usd: reported.and_then(Usd::new),
                ..CostBreakdown::default()
            },
            ..PromptMetrics::default()
        }
    }

    fn check(model: &str, reported: Option<f64>, source: CostSource, total: Option<f64>) {
        let prices = Prices::default();
        let found = Reckoning::of(&metrics(1000, reported), model, None, Some(&prices));
        assert_eq!(found.source, source);
        assert_eq!(found.cost.total_usd.map(Usd::value), total);
        assert_eq!(found.readings.reported_usd.map(Usd::value), reported);
    }

    #[test]
    fn what_can_be_computed_counts_and_nothing_is_made_up() {
        check(
            "claude-sonnet-4-5",
            Some(0.5),
            CostSource::Computed,
            Some(0.003),
        );
        check("claude-sonnet-4-5", None, CostSource::Computed, Some(0.003));
        check("no-such-model", Some(0.5), CostSource::Reported, Some(0.5));
        check("no-such-model", None, CostSource::Unknown, None);
    }

    #[test]
    fn requests_are_priced_one_by_one() {
        let call = |input: u64, status: u16| -> ModelCall {
            serde_json::from_value(
                json!({"id": "c", "model": "claude-sonnet-4-5", "status": status,
                "tokens": {"input": input, "output": 0}}),
            )
            .unwrap()
        };
        let mut refused = call(0, 529);
        refused.tokens = TokenBreakdown::default();
        let mut trace = SessionTrace {
            model_calls: vec![call(100_000, 200), refused, call(300_000, 200)],
            ..SessionTrace::default()
        };
        let prices = Prices::default();
        let found = Reckoning::of(
            &metrics(400_000, None),
            "other",
            Some(&trace),
            Some(&prices),
        );
        // $0.30 for the short one, twice the price per token for the long one.
        assert_eq!(found.cost.total_usd.map(Usd::value), Some(2.1));
        price_calls(&mut trace, &prices);
        let costs: Vec<_> = trace
            .model_calls
            .iter()
            .map(|call| call.cost_usd.map(Usd::value))
            .collect();
        assert_eq!(costs, [Some(0.3), None, Some(1.8)]);
    }
}
