//! Gates of a suite: whether they make sense, name what there is, and can pass with the trials that are planned.

use super::Loader;
use crate::suite::file::{Modes, SuiteFile};
use crate::suite::problem::Problem;
use assize_contracts::Collector;
use assize_engine::Plan;
use assize_report::{Gate, GateError, row_metrics};
use std::sync::Arc;

/// What the built-in collectors measure besides the fields of a row.
const MORE_METRICS: [(&str, &[&str]); 5] = [
    ("token", &[]),
    ("latency", &[]),
    ("cost", &[]),
    ("tool_calls", &["tool_calls_unique"]),
    (
        "program",
        &[
            "program_exit_code",
            "program_signal",
            "program_cpu_ms",
            "program_peak_memory_bytes",
        ],
    ),
];

impl Loader<'_> {
    pub(super) fn gates(
        &mut self,
        file: &SuiteFile,
        collectors: &[Arc<dyn Collector>],
    ) -> Vec<Gate> {
        let known = MetricNames::of(collectors);
        let modes: Vec<&str> = match &file.modes {
            Modes::Names(names) => names.iter().map(String::as_str).collect(),
            Modes::Definitions(modes) => modes.iter().map(|(name, _)| name.as_str()).collect(),
        };
        let mut gates = Vec::new();
        for (number, spec) in file.gates.iter().enumerate() {
            let number = number.to_string();
            let place = ["gates", &number];
            match spec.resolve().and_then(|gate| known.check(gate)) {
                Ok(gate) => {
                    let named = gate.modes.iter().flatten();
                    for mode in named.filter(|mode| !modes.contains(&mode.as_str())) {
                        self.unknown(&place, "mode", mode, &modes);
                    }
                    gates.push(gate);
                }
                Err(error) => {
                    let problem = self.gate_problem(&place, error);
                    self.problems.push(problem);
                }
            }
        }
        gates
    }

    fn gate_problem(&self, place: &[&str], error: GateError) -> Problem {
        let mut problem = self.document.problem(place, error.to_string());
        problem.hint = error.hint;
        problem
    }

    /// What should be known about the gates before anything is spent.
    pub(super) fn gate_remarks(&self, gates: &[Gate], plan: &Plan) -> Vec<String> {
        let (scenarios, repetitions) = (
            plan.scenarios.len() as u64 + u64::from(plan.tasks),
            u64::from(plan.repetitions),
        );
        let mut remarks: Vec<String> = gates
            .iter()
            .filter_map(|gate| shortfall(gate, scenarios, repetitions))
            .collect();
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
    Some(match shortfall.needed {
        Some(needed) => format!("{so_far}: it takes {needed} repetitions"),
        None => format!("{so_far}: give it a margin, such as `baseline - 5pp`"),
    })
}

/// The metrics that a suite's collectors can measure.
struct MetricNames {
    names: Vec<&'static str>,
    /// A collector that is no built-in may measure anything.
    is_open: bool,
}

impl MetricNames {
    fn of(collectors: &[Arc<dyn Collector>]) -> Self {
        let mut known = Self {
            names: row_metrics().collect(),
            is_open: false,
        };
        for collector in collectors {
            match MORE_METRICS.iter().find(|(id, _)| *id == collector.id()) {
                Some((_, names)) => known.names.extend_from_slice(names),
                None => known.is_open = true,
            }
        }
        known
    }

    fn check(&self, gate: Gate) -> Result<Gate, GateError> {
        let is_known = |name: &str| {
            let is_segment = name.starts_with("latency_") && name.ends_with("_ms");
            is_segment || name.starts_with("tool_calls_category_") || self.names.contains(&name)
        };
        match gate.metric() {
            Some(name) if !self.is_open && !is_known(name) => {
                Err(gate.unknown_metric(self.names.iter().copied()))
            }
            _ => Ok(gate),
        }
    }
}
