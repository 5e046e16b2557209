//! The cost of a session: the agent's own figure, and tokens times prices. Both are kept; the computed one counts.

use super::Prices;
use assize_contracts::{
    CostBreakdown, CostReadings, CostSource, ModelCall, PromptMetrics, SessionTrace, Usd,
};

/// A cost with its source and all its readings.
#[derive(Debug, Clone, Copy)]
pub struct Reckoning {
    /// The figure that counts.
    pub cost: CostBreakdown,
    /// The source of the figure.
    pub source: CostSource,
    /// All figures.
    pub readings: CostReadings,
    /// The cost of what is known, where a call is incomplete. `cost` is unknown then, whatever the agent claims.
    pub at_least: Option<Usd>,
    /// The agent's own figure, where it is not what the same tokens come to.
    pub disputed: Option<Usd>,
}

/// A smaller difference is no contradiction, nor is one in the last reported digit, down from cents:
/// agents round.
const TOLERANCE: f64 = 0.01;

const CENT: f64 = 0.01;

impl Reckoning {
    /// Requests are priced one by one where the trace has them, because long ones cost more.
    pub fn of(
        metrics: &PromptMetrics,
        model: &str,
        trace: Option<&SessionTrace>,
        prices: Option<&Prices>,
    ) -> Self {
        let reported = metrics.cost;
        let calls = match trace {
            Some(trace) if !trace.model_calls.is_empty() => &trace.model_calls,
            _ => &metrics.model_calls,
        };
        if let Some(known) = &metrics.tokens_at_least {
            return Self::of_part(reported, prices, |prices| {
                let of_totals = || prices.of_totals(model, known)?.breakdown.total_usd;
                prices.at_least_of_calls(calls).or_else(of_totals)
            });
        }
        let computed = prices.and_then(|prices| {
            let of_totals = || prices.of_totals(model, &metrics.tokens);
            prices.of_calls(calls).or_else(of_totals)
        });
        let computed_usd = computed.as_ref().and_then(|cost| cost.breakdown.total_usd);
        let of_task = || of_task(calls, prices?);
        let (source, cost) = match &computed {
            Some(computed) => (CostSource::Computed, computed.breakdown),
            None if reported.total_usd.is_some() => (CostSource::Reported, reported),
            None => (CostSource::Unknown, reported),
        };
        let readings = CostReadings {
            reported_usd: reported.total_usd,
            computed_usd,
            cache_neutral_usd: computed.map(|cost| cost.cache_neutral),
        };
        Self {
            cost,
            source,
            readings,
            at_least: None,
            disputed: disputed(metrics, computed_usd, of_task),
        }
    }

    /// A session of which only a part is known.
    fn of_part(
        reported: CostBreakdown,
        prices: Option<&Prices>,
        known: impl FnOnce(&Prices) -> Option<Usd>,
    ) -> Self {
        Self {
            cost: CostBreakdown::default(),
            source: CostSource::Unknown,
            readings: CostReadings {
                reported_usd: reported.total_usd,
                ..CostReadings::default()
            },
            at_least: prices.and_then(known),
            disputed: None,
        }
    }
}

fn disputed(
    metrics: &PromptMetrics,
    computed: Option<Usd>,
    of_task: impl FnOnce() -> Option<Usd>,
) -> Option<Usd> {
    // Other tokens explain another cost.
    if metrics.reported_tokens.is_some() {
        return None;
    }
    // Agents that know no price report 0.
    let reported = metrics
        .cost
        .total_usd
        .filter(|reported| reported.value() > 0.0)?;
    let differs = |cost: Usd| !is_near(reported.value(), cost.value());
    (differs(computed?) && of_task().is_none_or(differs)).then_some(reported)
}

/// The same without calls beside the task, which agents may leave out of their sums.
fn of_task(calls: &[ModelCall], prices: &Prices) -> Option<Usd> {
    let calls = calls.iter().filter(|call| !call.side);
    prices.of_calls(calls)?.breakdown.total_usd
}

fn is_near(reported: f64, computed: f64) -> bool {
    let digits = reported.to_string();
    let decimals = digits
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len());
    let last_place = 0.1_f64.powi(i32::try_from(decimals).unwrap_or(i32::MAX));
    let share = TOLERANCE * reported.max(computed);
    (reported - computed).abs() <= share.max(last_place.min(CENT))
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
    use assize_contracts::TokenBreakdown;
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
    fn the_agent_disagrees_when_the_same_tokens_come_to_another_cost() {
        let prices = Prices::default();
        let disputed = |reported: f64, tokens: Option<TokenBreakdown>| {
            let metrics = PromptMetrics {
                reported_tokens: tokens,
                ..metrics(1_000_000, Some(reported))
            };
            let found = Reckoning::of(&metrics, "claude-haiku-4-5", None, Some(&prices));
            assert_eq!(found.cost.total_usd.map(Usd::value), Some(1.0));
            found.disputed.map(Usd::value)
        };
        assert_eq!(disputed(1.2, None), Some(1.2));
        assert_eq!(disputed(0.9, None), Some(0.9));
        assert_eq!(disputed(1.0, None), None);
        assert_eq!(disputed(1.009, None), None);
        assert_eq!(disputed(0.0, None), None);
        assert_eq!(disputed(1.2, Some(TokenBreakdown::default())), None);
    }

    #[test]
    fn rounding_is_no_contradiction() {
        for (reported, computed, expected) in [
            (0.05, 0.0478, true),
            (0.0512, 0.0478, false),
            (0.003, 0.0026, true),
            (0.00312, 0.0026, false),
            (3.0, 2.9, false),
        ] {
            assert_eq!(
                is_near(reported, computed),
                expected,
                "{reported} {computed}"
            );
        }
    }

    #[test]
    fn side_calls_may_be_left_out() {
        let call = |side: bool| -> ModelCall {
            let tokens = json!({"input": 1_000_000, "output": 0});
            let call = json!({"id": "c", "model": "claude-haiku-4-5", "status": 200, "side": side, "tokens": tokens});
            serde_json::from_value(call).unwrap()
        };
        let trace = SessionTrace {
            model_calls: vec![call(false), call(true)],
            ..SessionTrace::default()
        };
        let prices = Prices::default();
        let disputed = |reported: f64| {
            let metrics = metrics(2_000_000, Some(reported));
            Reckoning::of(&metrics, "other", Some(&trace), Some(&prices)).disputed
        };
        assert_eq!(disputed(1.0), None);
        assert_eq!(disputed(2.0), None);
        assert_eq!(disputed(1.5), Usd::new(1.5));
    }

    #[test]
    fn an_hour_in_the_cache_costs_the_same_everywhere() {
        let tokens = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 100_000});
        let call = json!({"id": "c", "model": "claude-sonnet-4-5", "api": "anthropic-messages", "status": 200,
            "cacheWrite1h": 100_000, "tokens": tokens});
        let call: ModelCall = serde_json::from_value(call).unwrap();
        let prices = Prices::default();
        // Twice the price of input for an hour, a quarter more than that for five minutes.
        let hour = prices.of_call(&call).unwrap().breakdown.total_usd;
        assert_eq!(hour, Usd::new(0.6));
        let minutes = ModelCall {
            cache_write_1h: None,
            ..call.clone()
        };
        let minutes = prices.of_call(&minutes).unwrap().breakdown.total_usd;
        assert_eq!(minutes, Usd::new(0.375));
        let metrics = PromptMetrics {
            tokens: call.tokens.with_totals(),
            model_calls: vec![call],
            ..metrics(0, Some(0.6))
        };
        let found = Reckoning::of(&metrics, "claude-sonnet-4-5", None, Some(&prices));
        assert_eq!((found.cost.total_usd, found.disputed), (hour, None));
    }

    #[test]
    fn an_incomplete_call_leaves_a_lower_bound_whatever_the_agent_claims() {
        let call = |tokens: serde_json::Value| -> ModelCall {
            let call =
                json!({"id": "c", "model": "claude-haiku-4-5", "status": 200, "tokens": tokens});
            serde_json::from_value(call).unwrap()
        };
        let whole = json!({"input": 1_000_000, "output": 0, "total": 1_000_000});
        let cut = json!({"input": 500_000, "output": null});
        let metrics = PromptMetrics {
            tokens: TokenBreakdown::default(),
            tokens_at_least: Some(TokenBreakdown::default()),
            model_calls: vec![call(whole), call(cut), call(json!({}))],
            ..metrics(0, Some(9.0))
        };
        let prices = Prices::default();
        let found = Reckoning::of(&metrics, "claude-haiku-4-5", None, Some(&prices));
        assert_eq!(
            (found.cost.total_usd, found.source),
            (None, CostSource::Unknown)
        );
        assert_eq!(found.at_least, Usd::new(1.5));
        assert_eq!(found.readings.reported_usd, Usd::new(9.0));
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
