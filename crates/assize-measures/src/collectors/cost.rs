//! `cost`: what the session cost, as far as anybody knows.

use assize_contracts::{
    BaseScenario, BoxError, Collector, CustomMetric, PromptMetrics, PromptResult, SessionTrace,
    async_trait,
};

/// Metrics `cost_total_usd`, `cost_input_usd`, `cost_output_usd` and `cost_reasoning_usd`; and `cost_reported_usd` where the
/// agent's own figure differs from what the same tokens come to.
#[derive(Debug, Clone, Copy, Default)]
pub struct CostCollector;

#[async_trait]
impl Collector for CostCollector {
    fn id(&self) -> &str {
        "cost"
    }

    async fn collect(
        &self,
        result: &PromptResult,
        _scenario: &BaseScenario,
        _mode: &str,
        _trace: Option<&SessionTrace>,
    ) -> Result<Vec<CustomMetric>, BoxError> {
        Ok(metrics(&result.metrics))
    }
}

fn metrics(metrics: &PromptMetrics) -> Vec<CustomMetric> {
    let cost = &metrics.cost;
    let amounts = [
        ("cost_total_usd", cost.total_usd),
        ("cost_input_usd", cost.input_usd),
        ("cost_output_usd", cost.output_usd),
        ("cost_reasoning_usd", cost.reasoning_usd),
        ("cost_reported_usd", metrics.reported_cost_usd),
    ];
    let mut metrics = Vec::with_capacity(amounts.len());
    metrics.extend(
        amounts
            .into_iter()
            .filter_map(|(name, amount)| CustomMetric::number(name, amount?.value(), "USD")),
    );
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_contracts::{CostBreakdown, Usd};

    #[test]
    fn an_unknown_cost_is_absent() {
        let metrics = metrics(&PromptMetrics {
            cost: CostBreakdown {
                total_usd: Usd::new(0.25),
                ..CostBreakdown::default()
            },
            ..PromptMetrics::default()
        });
        assert_eq!(
            metrics,
            [CustomMetric::number("cost_total_usd", 0.25, "USD").unwrap()]
        );
    }
}
