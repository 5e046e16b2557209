//! `tool_calls`: how many tools were called, of which kinds, and how many failed.

use assize_contracts::{
    BaseScenario, BoxError, Collector, CustomMetric, Metric, PromptResult, SessionTrace,
    ToolCallRecord, async_trait,
};

/// So many names are looked through one by one.
const FEW: usize = 16;

/// Metrics `tool_calls_total`, `_failed`, `_error_rate`, `_unique` and one `tool_calls_category_<name>` per category.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolCallsCollector;

#[async_trait]
impl Collector for ToolCallsCollector {
    fn id(&self) -> &str {
        "tool_calls"
    }

    async fn collect(
        &self,
        result: &PromptResult,
        _scenario: &BaseScenario,
        _mode: &str,
        _trace: Option<&SessionTrace>,
    ) -> Result<Vec<CustomMetric>, BoxError> {
        Ok(result
            .metrics
            .tool_calls
            .as_deref()
            .map(metrics)
            .unwrap_or_default())
    }
}

fn metrics(calls: &[ToolCallRecord]) -> Vec<CustomMetric> {
    let total = calls.len() as f64;
    let mut metrics = Vec::with_capacity(6);
    metrics.extend(CustomMetric::number("tool_calls_total", total, "count"));

    if let Some(failed) = failed(calls) {
        let rate = if calls.is_empty() {
            0.0
        } else {
            failed / total
        };
        metrics.extend(CustomMetric::number("tool_calls_failed", failed, "count"));
        metrics.extend(CustomMetric::number("tool_calls_error_rate", rate, "ratio"));
    }

    let names = counted(calls.iter().map(|call| call.name.as_str()));
    let unique = names.len() as f64;
    metrics.extend(CustomMetric::number("tool_calls_unique", unique, "count"));

    let categories = calls.iter().map(|call| call.category.as_str());
    for (category, count) in counted(categories.filter(|category| !category.is_empty())) {
        let metric = Metric::tool_category(category);
        let found = CustomMetric::number(metric.name, count as f64, "count");
        metrics.extend(found.map(|found| found.of_kind(metric.kind)));
    }
    metrics
}

/// Every text with how often it comes, sorted.
fn counted<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut counts: Vec<(&str, usize)> = Vec::with_capacity(8);
    for text in texts {
        // Few names are used often: looking through them is quicker than sorting, and where there are many it is not.
        match counts
            .iter_mut()
            .take(FEW)
            .find(|(known, _)| *known == text)
        {
            Some((_, count)) => *count += 1,
            None => counts.push((text, 1)),
        }
    }
    counts.sort_unstable();
    counts.dedup_by(|(text, count), (kept, sum)| {
        let is_same = text == kept;
        if is_same {
            *sum += *count;
        }
        is_same
    });
    counts
}

/// Unknown as soon as one call did not report how it ended.
fn failed(calls: &[ToolCallRecord]) -> Option<f64> {
    calls.iter().try_fold(0.0, |failed, call| {
        Some(if call.success? { failed } else { failed + 1.0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_contracts::MetricValue;

    fn check(calls: &[(&str, &str, Option<bool>)], expected: &[(&str, f64)]) {
        let calls: Vec<ToolCallRecord> = calls
            .iter()
            .map(|&(name, category, success)| ToolCallRecord {
                name: name.to_owned(),
                category: category.to_owned(),
                success,
                duration_ms: None,
                error: None,
                call_ref: None,
            })
            .collect();
        let metrics = metrics(&calls);
        let found: Vec<(&str, f64)> = metrics
            .iter()
            .map(|metric| match metric.value {
                MetricValue::Number(value) => (metric.name.as_str(), value.value()),
                MetricValue::Text(_) => panic!("a count is a number"),
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn calls_are_counted_by_name_and_category() {
        check(
            &[
                ("bash", "shell", Some(true)),
                ("read", "file", Some(true)),
                ("bash", "shell", Some(false)),
                ("think", "", Some(true)),
            ],
            &[
                ("tool_calls_total", 4.0),
                ("tool_calls_failed", 1.0),
                ("tool_calls_error_rate", 0.25),
                ("tool_calls_unique", 3.0),
                ("tool_calls_category_file", 1.0),
                ("tool_calls_category_shell", 2.0),
            ],
        );
    }

    #[test]
    fn a_call_that_did_not_say_how_it_ended_leaves_failures_unknown() {
        check(
            &[("bash", "", Some(false)), ("bash", "", None)],
            &[("tool_calls_total", 2.0), ("tool_calls_unique", 1.0)],
        );
    }

    #[test]
    fn no_calls_are_zero_calls() {
        check(
            &[],
            &[
                ("tool_calls_total", 0.0),
                ("tool_calls_failed", 0.0),
                ("tool_calls_error_rate", 0.0),
                ("tool_calls_unique", 0.0),
            ],
        );
    }
}
