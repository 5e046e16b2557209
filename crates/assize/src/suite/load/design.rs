//! Checks of `execution.until` and `execution.budget`, and the modes of an A/A run.

use super::Loader;
use crate::suite::AGAIN;
use crate::suite::file::SuiteFile;
use assize_contracts::{JsonMap, StoppingMethod};
use assize_engine::{Mode, Order};
use assize_report::Analysis;
use serde_json::Value;

impl Loader<'_> {
    pub(super) fn design(&mut self, file: &SuiteFile) {
        self.budget(file);
        let Some(until) = &file.execution.until else {
            return;
        };
        let keys = ["execution", "until"];
        for (name, value) in [
            ("looks", until.looks),
            ("max_repetitions", until.max_repetitions),
        ] {
            if value == Some(0) {
                let message = format!("found {name} 0, expected at least 1");
                self.report(&["execution", "until", name], message);
            }
        }
        if until.decided == Some(false) && until.metrics.is_none() {
            self.report(&keys, "`decided: false` without `metrics` stops nothing");
        }
        let order = self.selection.order.or(file.execution.order);
        if order.is_some_and(|order| order != Order::Blocked) {
            self.report(
                &keys,
                "looks are at whole blocks, which only `order: blocked` has",
            );
        }
        if let Some(metrics) = &until.metrics {
            if metrics.is_empty() {
                self.report(
                    &["execution", "until", "metrics"],
                    "found no metric, expected at least one",
                );
            }
            let planned = Analysis::planned_primary(&file.analysis);
            let primary: Vec<&str> = planned.iter().flatten().map(String::as_str).collect();
            let is_unknown = |metric: &&String| !primary.contains(&metric.as_str());
            for metric in metrics.iter().filter(is_unknown) {
                let known = primary.clone();
                self.unknown(
                    &["execution", "until", "metrics"],
                    "metric to decide by",
                    metric,
                    &known,
                );
            }
        }
        if until.method == Some(StoppingMethod::Anytime) && until.futility == Some(true) {
            let message = "`futility` needs a planned end, which `anytime` has not";
            self.report(&["execution", "until", "futility"], message);
        }
    }

    fn budget(&mut self, file: &SuiteFile) {
        let Some(budget) = &file.execution.budget else {
            return;
        };
        for (name, value) in [("usd", budget.usd), ("minutes", budget.minutes)] {
            if value.is_some_and(|value| value.is_nan() || value < 0.0) {
                let message = "expected a number of at least 0";
                self.report(&["execution", "budget", name], message);
            }
        }
    }

    /// The first mode twice, for an A/A run.
    pub(super) fn twice(&self, modes: Vec<Mode>) -> Vec<Mode> {
        match modes.into_iter().next() {
            Some(mode) => {
                let again = Mode {
                    name: format!("{}{AGAIN}", mode.name),
                    ..mode.clone()
                };
                vec![mode, again]
            }
            None => Vec::new(),
        }
    }

    /// Marks the run of one mode against itself.
    pub(super) fn aa_mark(&self) -> JsonMap {
        let mark = self
            .selection
            .aa
            .then(|| ("aa".to_owned(), Value::Bool(true)));
        mark.into_iter().collect()
    }
}
