//! `token`: what the session took in and gave out, by kind.

use assize_contracts::{
    BaseScenario, BoxError, Collector, CustomMetric, PromptResult, SessionTrace, TokenBreakdown,
    async_trait,
};

/// Metrics `tokens_input`, `_output`, `_reasoning`, `_cache_read`, `_cache_write`, `_total` and `_active`; and
/// `tokens_reported_input` and so on where the agent's own count differs from that.
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
        let mut metrics = metrics(&COUNTED, &result.metrics.tokens);
        if let Some(reported) = &result.metrics.reported_tokens {
            metrics.extend(self::metrics(&REPORTED, reported));
        }
        Ok(metrics)
    }
}

const COUNTED: [&str; 7] = [
    "tokens_input",
    "tokens_output",
    "tokens_reasoning",
    "tokens_cache_read",
    "tokens_cache_write",
    "tokens_total",
    "tokens_active",
];

const REPORTED: [&str; 7] = [
    "tokens_reported_input",
    "tokens_reported_output",
    "tokens_reported_reasoning",
    "tokens_reported_cache_read",
    "tokens_reported_cache_write",
    "tokens_reported_total",
    "tokens_reported_active",
];

fn metrics(names: &[&str; 7], tokens: &TokenBreakdown) -> Vec<CustomMetric> {
    let counts = [
        tokens.input,
        tokens.output,
        tokens.reasoning,
        tokens.cache_read,
        tokens.cache_write,
        tokens.total,
        tokens.active,
    ];
    let mut metrics = Vec::with_capacity(counts.len());
    metrics.extend(
        names
            .iter()
            .zip(counts)
            .filter_map(|(name, count)| CustomMetric::number(*name, count? as f64, "tokens")),
    );
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_nobody_took_is_absent_and_a_zero_is_a_zero() {
        let tokens = TokenBreakdown {
            input: Some(50),
            cache_read: Some(0),
            ..TokenBreakdown::default()
        };
        let metrics = metrics(&COUNTED, &tokens);
        let expected = [("tokens_input", 50.0), ("tokens_cache_read", 0.0)];
        assert_eq!(
            metrics,
            expected.map(|(name, value)| CustomMetric::number(name, value, "tokens").unwrap())
        );
    }
}
