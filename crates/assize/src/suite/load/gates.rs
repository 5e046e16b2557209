//! Gates of a suite: whether they make sense, name what there is, and can pass with the trials that are planned.

use super::Loader;
use crate::suite::file::{Modes, SuiteFile};
use crate::suite::file_error::FileError;
use assize_contracts::{Catalog, Collector, Metric};
use assize_engine::Plan;
use assize_report::{Analysis, Gate, GateError};
use assize_stats::{Level, Scope, tasks_for_margin};
use std::sync::Arc;

/// Collectors whose metrics are all built in.
const BUILT_IN: [&str; 5] = ["token", "latency", "cost", "tool_calls", "program"];

impl Loader<'_> {
    pub(super) fn gates(
        &mut self,
        file: &SuiteFile,
        collectors: &[Arc<dyn Collector>],
    ) -> Vec<Gate> {
        let known = MetricNames::of(collectors, file);
        let modes: Vec<&str> = match &file.modes {
            Modes::Names(names) => names.iter().map(String::as_str).collect(),
            Modes::Definitions(modes) => modes.iter().map(|(name, _)| name.as_str()).collect(),
        };
        let mut gates = Vec::new();
        for (number, spec) in file.gates.iter().enumerate() {
            let number = number.to_string();
            let place = ["gates", &number];
            match Gate::of(spec, &Catalog::default()).and_then(|gate| known.check(gate)) {
                Ok(gate) => {
                    let named = gate.modes.iter().flatten();
                    for mode in named.filter(|mode| !modes.contains(&mode.as_str())) {
                        self.unknown(&place, "mode", mode, &modes);
                    }
                    gates.push(gate);
                }
                Err(error) => {
                    self.errors.push(self.gate_error(&place, error));
                }
            }
        }
        gates
    }

    fn gate_error(&self, place: &[&str], error: GateError) -> FileError {
        let message = error.to_string();
        FileError {
            hint: error.hint,
            ..self.document.error(place, message)
        }
    }

    /// Remarks about the gates before anything is spent.
    pub(super) fn gate_remarks(
        &self,
        gates: &[Gate],
        analysis: &Analysis,
        plan: &Plan,
    ) -> Vec<String> {
        let (scenarios, repetitions) = (
            plan.scenarios.len() as u64 + u64::from(plan.tasks),
            u64::from(plan.repetitions),
        );
        let mut remarks: Vec<String> = gates
            .iter()
            .filter_map(|gate| shortfall(gate, scenarios, repetitions))
            .collect();
        remarks.extend(gates.iter().filter_map(|gate| new_tasks(gate, scenarios)));
        remarks.extend(equivalence(analysis, scenarios));
        let has_one_mode = plan
            .arms
            .windows(2)
            .all(|pair| pair[0].mode == pair[1].mode);
        let comparing = gates.iter().find(|gate| gate.needs_baseline());
        if let Some(gate) = comparing.filter(|_| has_one_mode) {
            remarks.push(format!(
                "gate `{}` needs a baseline, and there is one mode: name an earlier run with `--baseline`",
                gate.text()
            ));
        }
        remarks
    }
}

fn shortfall(gate: &Gate, scenarios: u64, repetitions: u64) -> Option<String> {
    let shortfall = gate.shortfall(scenarios, repetitions)?;
    let text = gate.text();
    let plan = format!("{repetitions} × {scenarios} trials per mode");
    let so_far = match shortfall.unless_better {
        true => format!(
            "gate `{text}` can pass with {plan} only for a mode that is clearly better than its baseline"
        ),
        false => format!("gate `{text}` cannot pass with {plan}, whatever they show"),
    };
    Some(match (shortfall.needed, shortfall.scenarios) {
        (Some(needed), Some(scenarios)) => {
            format!("{so_far}: it takes {needed} repetitions, or {scenarios} scenarios")
        }
        (Some(needed), None) => format!("{so_far}: it takes {needed} repetitions"),
        (None, Some(scenarios)) => format!("{so_far}: it takes {scenarios} scenarios"),
        (None, None) => format!("{so_far}: give it a margin, such as `baseline - 5pp`"),
    })
}

/// The number of tasks that a margin of success needs to hold for new tasks.
fn new_tasks(gate: &Gate, scenarios: u64) -> Option<String> {
    let needed = gate
        .tasks_for_new_tasks()
        .filter(|needed| scenarios < *needed)?;
    Some(format!(
        "gate `{}` holds for exactly these {scenarios} tasks: for new tasks (`--scope population`) it needs at least {needed} tasks, \
         however many runs",
        gate.text()
    ))
}

/// The number of tasks that the suite's equivalence margin needs for success.
fn equivalence(analysis: &Analysis, scenarios: u64) -> Option<String> {
    let margin = analysis
        .equivalence_margin
        .filter(|_| analysis.scope == Scope::Population)?;
    let alpha = Level::new(analysis.confidence.complement()).ok()?;
    let needed = tasks_for_margin(margin, alpha).filter(|needed| scenarios < *needed)?;
    Some(format!(
        "equivalence of success within {} points for new tasks needs at least {needed} tasks, however many runs: there are {scenarios}",
        (margin * 1000.0).round() / 10.0
    ))
}

/// The metrics that a suite's collectors and scorer can measure.
struct MetricNames {
    names: Vec<&'static str>,
    /// A collector or scorer that is no built-in may measure anything, and a judge has a metric for every scale.
    is_open: bool,
}

impl MetricNames {
    fn of(collectors: &[Arc<dyn Collector>], file: &SuiteFile) -> Self {
        let is_other = |collector: &Arc<dyn Collector>| !BUILT_IN.contains(&collector.id());
        Self {
            names: Metric::built_in_names().collect(),
            is_open: file.judge.is_some()
                || file.scorer.is_some()
                || collectors.iter().any(is_other),
        }
    }

    fn check(&self, gate: Gate) -> Result<Gate, GateError> {
        match gate.metric() {
            Some(name) if !self.is_open && !Metric::named(name).is_built_in() => {
                Err(gate.unknown_metric(self.names.iter().copied()))
            }
            _ => Ok(gate),
        }
    }
}
