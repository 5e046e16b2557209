//! `latency`: how long the session took, as a whole and by named interval.

use assize_contracts::{
    BaseScenario, Better, BoxError, Collector, CustomMetric, Metric, PromptResult, RowField,
    SessionTrace, TimingBreakdown, TimingSegment, async_trait,
};
use std::borrow::Cow;

/// Metrics `latency_wall_ms` and, for every label of a timing segment, `latency_<label>_ms`.
#[derive(Debug, Clone, Copy, Default)]
pub struct LatencyCollector;

#[async_trait]
impl Collector for LatencyCollector {
    fn id(&self) -> &str {
        "latency"
    }

    async fn collect(
        &self,
        result: &PromptResult,
        _scenario: &BaseScenario,
        _mode: &str,
        _trace: Option<&SessionTrace>,
    ) -> Result<Vec<CustomMetric>, BoxError> {
        Ok(metrics(&result.metrics.timing))
    }
}

fn metrics(timing: &TimingBreakdown) -> Vec<CustomMetric> {
    let mut segments: Vec<&TimingSegment> = timing.segments.iter().collect();
    segments.sort_by_key(|segment| segment.label.as_str());

    let mut metrics = Vec::with_capacity(1 + segments.len());
    let wall = timing.wall_ms.map(|wall| wall.value());
    let name = RowField::WallTime.name();
    metrics.extend(wall.and_then(|wall| duration(name.into(), wall)));
    metrics.extend(
        segments
            .chunk_by(|a, b| a.label == b.label)
            .filter_map(|same| {
                let segment = Metric::time_segment(&same[0].label);
                let length = same.iter().map(|segment| length(segment)).sum();
                let found = duration(segment.name, length)?;
                Some(found.better(Better::Lower).of_kind(segment.kind))
            }),
    );
    metrics
}

/// NaN for a segment that ends before it begins: no measurement, and neither is a sum with it.
fn length(segment: &TimingSegment) -> f64 {
    let length = segment.end_ms.value() - segment.start_ms.value();
    if length >= 0.0 { length } else { f64::NAN }
}

fn duration(name: Cow<'static, str>, value: f64) -> Option<CustomMetric> {
    (value >= 0.0)
        .then(|| CustomMetric::number(name, value, "ms"))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_contracts::{MetricValue, Millis};

    fn check(wall: Option<f64>, segments: &[(&str, f64, f64)], expected: &[(&str, f64)]) {
        let millis = |value| Millis::new(value).unwrap();
        let timing = TimingBreakdown {
            wall_ms: wall.map(millis),
            segments: segments
                .iter()
                .map(|&(label, start, end)| TimingSegment {
                    label: label.to_owned(),
                    start_ms: millis(start),
                    end_ms: millis(end),
                })
                .collect(),
        };
        let metrics = metrics(&timing);
        let found: Vec<(&str, f64)> = metrics
            .iter()
            .map(|metric| match metric.value {
                MetricValue::Number(value) => (metric.name.as_str(), value.value()),
                MetricValue::Text(_) => panic!("a latency is a number"),
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn segments_of_one_label_are_summed() {
        check(
            Some(500.0),
            &[
                ("tool", 0.0, 10.0),
                ("llm", 10.0, 40.0),
                ("tool", 40.0, 45.0),
            ],
            &[
                ("latency_wall_ms", 500.0),
                ("latency_llm_ms", 30.0),
                ("latency_tool_ms", 15.0),
            ],
        );
    }

    #[test]
    fn a_time_that_runs_backwards_is_no_measurement() {
        check(
            Some(-1.0),
            &[("tool", 0.0, 10.0), ("tool", 10.0, 4.0), ("llm", 0.0, 1.0)],
            &[("latency_llm_ms", 1.0)],
        );
    }

    #[test]
    fn nothing_timed_gives_no_metric() {
        check(None, &[], &[]);
    }
}
