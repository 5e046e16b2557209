//! What is compared with what, by which numbers, and which way is better.

use assize_stats::{Direction, Level, Scope, Statistic};
use std::collections::BTreeMap;

/// Metrics that decide unless somebody says otherwise. Of the two token counts the first that was measured is used.
const PRIMARY: [&str; 4] = [
    SUCCESS,
    "tokens_active",
    "latency_wall_ms",
    "cost_total_usd",
];

/// The one metric that is a rate of trials, not a number per trial.
pub(crate) const SUCCESS: &str = "success";

/// How rows are read as evidence.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// The mode all others are compared with. Default: the first.
    pub baseline: Option<String>,
    /// Modes in the order in which they are shown; others follow as they come.
    pub mode_order: Vec<String>,
    /// Metrics declared beforehand to decide by. Default: success, tokens, time and cost.
    pub primary: Option<Vec<String>>,
    /// Only these metrics are compared. Default: all.
    pub metrics: Option<Vec<String>>,
    /// What summarises the runs of one scenario.
    pub statistic: Statistic,
    /// The same for single metrics.
    pub statistics: BTreeMap<String, Statistic>,
    /// Which way is better, for metrics that do not speak for themselves.
    pub directions: BTreeMap<String, Direction>,
    /// Differences below this share count as equivalent. Without it nothing does.
    pub equivalence_margin: Option<f64>,
    /// What verdicts speak about.
    pub scope: Scope,
    /// Nominal coverage of all intervals.
    pub confidence: Level,
    /// Bootstrap resamples, and random relabelings.
    pub resamples: usize,
    /// The tables of prices that costs were computed from.
    pub prices: Vec<String>,
    /// So many scenarios are told one by one; of more, those with trials that did not pass come first.
    pub most_scenarios: usize,
    /// Trials of different nature, such as live and replayed ones, are compared all the same, because somebody asked.
    pub mixed: bool,
}

impl Default for Analysis {
    fn default() -> Self {
        Self {
            baseline: None,
            mode_order: Vec::new(),
            primary: None,
            metrics: None,
            statistic: Statistic::Median,
            statistics: BTreeMap::new(),
            directions: BTreeMap::new(),
            equivalence_margin: None,
            scope: Scope::Population,
            confidence: Level::CONFIDENCE_95,
            resamples: 10_000,
            prices: Vec::new(),
            most_scenarios: 1000,
            mixed: false,
        }
    }
}

impl Analysis {
    /// The metrics to decide by, given those that were measured.
    pub(crate) fn primary_among(&self, measured: &[String]) -> Vec<String> {
        if let Some(primary) = &self.primary {
            return primary.clone();
        }
        let is_measured = |name: &str| measured.iter().any(|known| known == name);
        let choose = |name: &'static str| match name {
            "tokens_active" if !is_measured(name) => "tokens_total",
            _ => name,
        };
        PRIMARY.map(|name| choose(name).to_owned()).to_vec()
    }

    /// What summarises the runs of one scenario, for this metric.
    pub fn statistic_of(&self, metric: &str) -> Statistic {
        self.statistics
            .get(metric)
            .copied()
            .unwrap_or(self.statistic)
    }

    pub(crate) fn direction_of(&self, metric: &str) -> Option<Direction> {
        self.directions
            .get(metric)
            .copied()
            .or_else(|| default_direction(metric))
    }

    pub(crate) fn compares(&self, metric: &str) -> bool {
        match &self.metrics {
            Some(metrics) => metrics.iter().any(|wanted| wanted == metric),
            None => true,
        }
    }
}

/// Which way is better where everybody agrees: less of tokens, time, cost, errors and turns; more success.
pub fn default_direction(metric: &str) -> Option<Direction> {
    const LOWER: [&str; 6] = [
        "tool_calls_failed",
        "tool_calls_retried",
        "tool_calls_error_rate",
        "agent_turns",
        "errors",
        "turns",
    ];
    const HIGHER: [&str; 4] = ["accuracy", "token_f1", "edit_similarity", "text_match"];
    const LOWER_KINDS: [&str; 4] = ["tokens_", "latency_", "cost_", "errors_"];
    // Scores of steps have the step in front.
    let score = metric.rsplit('.').next().unwrap_or(metric);
    if metric == SUCCESS || HIGHER.contains(&score) {
        return Some(Direction::Higher);
    }
    let is_lower =
        LOWER.contains(&metric) || LOWER_KINDS.iter().any(|kind| metric.starts_with(kind));
    is_lower.then_some(Direction::Lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_calls_are_neither_good_nor_bad_but_failed_ones_are_bad() {
        assert_eq!(default_direction("tool_calls_total"), None);
        assert_eq!(
            default_direction("tool_calls_failed"),
            Some(Direction::Lower)
        );
        assert_eq!(default_direction("success"), Some(Direction::Higher));
        assert_eq!(default_direction("my_metric"), None);
    }

    #[test]
    fn a_declared_direction_wins() {
        let analysis = Analysis {
            directions: [("tokens_total".to_owned(), Direction::Higher)].into(),
            ..Analysis::default()
        };
        assert_eq!(
            analysis.direction_of("tokens_total"),
            Some(Direction::Higher)
        );
    }
}
