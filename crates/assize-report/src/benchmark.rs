//! Numbers for `github-action-benchmark`, which draws them over commits. Smaller and bigger is better in a file each.

use crate::analysis::direction;
use crate::{ModeSummary, Summary};
use assize_contracts::{Metric, SUCCESS};
use assize_stats::Direction;
use serde::Serialize;

/// One point of one chart.
#[derive(Debug, PartialEq, Serialize)]
struct Point {
    name: String,
    unit: String,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    extra: String,
}

/// The JSON array for one direction: medians of the deciding metrics, and success where more is better.
pub fn render_benchmark(summary: &Summary, suite: &str, direction: Direction) -> String {
    let mut points = Vec::new();
    for (label, mode) in summary.modes.iter() {
        add(
            &mut points,
            summary,
            &format!("{suite}/{label}"),
            mode,
            direction,
        );
    }
    for (scenario, modes) in summary.scenarios.iter() {
        for (label, mode) in modes.modes.iter() {
            let name = format!("{suite}/{label}/{scenario}");
            add(&mut points, summary, &name, mode, direction);
        }
    }
    serde_json::to_string_pretty(&points).expect("points are plain data") + "\n"
}

fn add(
    points: &mut Vec<Point>,
    summary: &Summary,
    name: &str,
    mode: &ModeSummary,
    wanted: Direction,
) {
    for metric in &summary.followed() {
        let metric = summary.catalog.metric(metric);
        if direction(&metric) != Some(wanted) {
            continue;
        }
        let point = match &*metric.name {
            SUCCESS => mode.success.rate.map(|rate| Point {
                name: format!("{name} success"),
                unit: "share".to_owned(),
                value: rate,
                range: None,
                extra: format!("n={}", mode.success.trials),
            }),
            _ => of_metric(name, &metric, mode),
        };
        points.extend(point);
    }
}

/// A median that timeouts leave unknown is no point.
fn of_metric(name: &str, metric: &Metric, mode: &ModeSummary) -> Option<Point> {
    let found = mode.metrics.find(&metric.name)?;
    let unit = match &*metric.unit {
        "" => "count",
        unit => unit,
    };
    Some(Point {
        name: format!("{name} {}", metric.name),
        unit: unit.to_owned(),
        value: found.median?,
        range: found.stddev.map(|spread| format!("± {spread}")),
        extra: format!("n={}", found.count),
    })
}
