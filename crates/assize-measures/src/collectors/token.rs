//! `token`: what the session took in and gave out, by kind.

use assize_contracts::{
    BaseScenario, BoxError, Collector, CustomMetric, PromptResult, SessionTrace, TokenBreakdown,
    async_trait,
};

/// Metrics `tokens_input`, `_output`, `_reasoning`, `_cache_read`, `_cache_write`, `_total` and `_active`; and
/// `tokens_reported_total` where the agent's own count differs from that.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokenCollector;

#[async_trait]
impl Collector for TokenCollector {
    fn id(&self) -> &str {
        "token"
    }

    async fn collect(
        &self,
        result: &PromptResult,
        _scenario: &BaseScenario,
        _mode: &str,
        _trace: Option<&SessionTrace>,
    ) -> Result<Vec<CustomMetric>, BoxError> {
        let mut metrics = metrics(&result.metrics.tokens);
        let reported = result
            .metrics
            .reported_tokens
            .and_then(|tokens| tokens.total);
        let name = "tokens_reported_total";
        metrics
            .extend(reported.and_then(|total| CustomMetric::number(name, total as f64, "tokens")));
        Ok(metrics)
    }
}

fn metrics(tokens: &TokenBreakdown) -> Vec<CustomMetric> {
    let counts = [
        ("tokens_input", tokens.input),
        ("tokens_output", tokens.output),
        ("tokens_reasoning", tokens.reasoning),
        ("tokens_cache_read", tokens.cache_read),
        ("tokens_cache_write", tokens.cache_write),
        ("tokens_total", tokens.total),
        ("tokens_active", tokens.active),
    ];
    let mut metrics = Vec::with_capacity(counts.len());
    metrics.extend(
        counts
            .into_iter()
            .filter_map(|(name, count)| CustomMetric::number(name, count? as f64, "tokens")),
    );
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_nobody_took_is_absent_and_a_zero_is_a_zero() {
        let metrics = metrics(&TokenBreakdown {
            input: Some(50),
            cache_read: Some(0),
            ..TokenBreakdown::default()
        });
        let expected = [("tokens_input", 50.0), ("tokens_cache_read", 0.0)];
        assert_eq!(
            metrics,
            expected.map(|(name, value)| CustomMetric::number(name, value, "tokens").unwrap())
        );
    }
}
