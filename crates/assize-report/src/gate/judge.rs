//! Trials held against gates. A gate passes only when the data show it: whatever is missing leaves it open.

use super::estimate::{self, ALPHA, ENDLESS, Estimate, Run, Tries};
use super::side::{COVERAGE, Reading, Side, Trials};
use super::{Bound, Gate, GateMeasure, GateResult, Subject};
use crate::arm::Arm;
use crate::caution::count;
use crate::{Analysis, SummaryBuilder, summary};
use assize_stats::{GateVerdict, OneSided, Scope, Statistic, Tally, absolute_gate};
use std::collections::BTreeMap;

const NO_TRIALS: &str = "it has no trials";

/// The reason why there is no interval for the success of these tasks.
fn too_few(scope: Scope) -> &'static str {
    match scope {
        Scope::Suite => "fewer than 5 runs say nothing about chance on exactly these tasks",
        Scope::Population => {
            "one task says nothing about others: add scenarios, or leave out `--scope population`"
        }
    }
}

/// The trials that were planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The conditions.
    pub arms: Vec<PlannedArm>,
    /// Scenario ids.
    pub scenarios: Vec<String>,
    /// The number of tasks besides. Their ids are known by their trials only.
    pub tasks: u64,
    /// Trials of each scenario under each condition.
    pub repetitions: u64,
}

/// A condition that was meant to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedArm {
    pub mode: String,
    pub model: String,
    /// Its own number of repetitions, where a look has stopped it early.
    pub repetitions: Option<u64>,
}

/// Trials of another run that modes are compared with, each with the same mode there.
#[derive(Debug)]
pub struct Reference {
    /// The name that messages use.
    pub name: String,
    pub trials: SummaryBuilder,
    /// The trials that were planned there, if known.
    pub planned: Option<Planned>,
}

/// Everything a judgement depends on besides the trials.
#[derive(Debug)]
pub struct GateContext {
    pub gates: Vec<Gate>,
    /// The trials that were planned, if known.
    pub planned: Option<Planned>,
    /// The reference of baseline gates. Default: the baseline mode among the trials themselves.
    pub reference: Option<Reference>,
    /// The tasks that gates on success apply to: exactly these tasks, or new tasks like these.
    pub scope: Scope,
}

impl Planned {
    /// The number of planned trials.
    pub fn trials(&self) -> u64 {
        let repetitions = |arm: &PlannedArm| arm.repetitions.unwrap_or(self.repetitions);
        let all: u64 = self.arms.iter().map(repetitions).sum();
        all * (self.scenarios.len() as u64 + self.tasks)
    }
}

impl Default for GateContext {
    fn default() -> Self {
        Self {
            gates: Vec::new(),
            planned: None,
            reference: None,
            scope: Scope::Suite,
        }
    }
}

/// Holds every mode against every gate that speaks about it.
pub fn judge_gates(
    trials: &mut SummaryBuilder,
    context: &mut GateContext,
    analysis: &Analysis,
) -> Vec<GateResult> {
    let labels = summary::prepare(trials, analysis);
    if let Some(reference) = &mut context.reference {
        let differ =
            |a: &SummaryBuilder, b: &SummaryBuilder| a.has_old_trials() && b.has_current_trials();
        if differ(trials, &reference.trials) || differ(&reference.trials, trials) {
            reference.trials.forget_changed_metrics(|_| true);
        }
        summary::prepare(&mut reference.trials, analysis);
    }
    let court = Court {
        trials,
        labels: &labels,
        context,
        analysis,
    };
    let gates = context.gates.iter();
    let mut results: Vec<GateResult> = gates.flat_map(|gate| court.judge(gate)).collect();
    let catalog = &court.trials.names.catalog;
    for result in &mut results {
        let metric = result.metric.as_deref();
        result.definition = metric.map(|name| catalog.metric(name).into_owned());
    }
    results
}

struct Court<'a> {
    trials: &'a SummaryBuilder,
    labels: &'a [String],
    context: &'a GateContext,
    analysis: &'a Analysis,
}

/// A mode that a gate speaks about.
struct Candidate<'a> {
    label: String,
    mode: &'a str,
    /// Absent when it was planned and no trial of it exists.
    arm: Option<&'a Arm>,
}

/// Numbers and what they rest on.
struct Finding {
    estimate: Estimate,
    /// The same with void trials read against the mode and for it, where there are any.
    readings: Vec<Estimate>,
    limit: f64,
    trials: u64,
    coverage: f64,
    baseline: Option<String>,
    notes: Vec<String>,
}

impl<'a> Court<'a> {
    fn judge(&self, gate: &Gate) -> Vec<GateResult> {
        let scope = self.context.scope;
        let candidates = self.candidates(gate);
        if candidates.is_empty() {
            return vec![open(gate, None, self.why_no_candidate(gate), scope)];
        }
        let verdict = |candidate: Candidate<'a>| match self.examine(gate, &candidate) {
            Ok(finding) => decided(gate, candidate.label, finding, scope),
            Err(reason) => open(gate, Some(candidate.label), reason, scope),
        };
        let judged = candidates.into_iter().map(verdict);
        judged.chain(self.missing(gate)).collect()
    }

    /// Results for modes that the gate names and that were neither run nor planned.
    fn missing(&self, gate: &Gate) -> Vec<GateResult> {
        let planned = self.context.planned.iter().flat_map(|plan| &plan.arms);
        let planned = planned.map(|arm| &arm.mode);
        let known: Vec<&String> = self
            .trials
            .arms
            .iter()
            .map(|arm| &arm.mode)
            .chain(planned)
            .collect();
        let named = gate.modes.iter().flatten();
        let missing = named.filter(|mode| !known.contains(mode));
        let scope = self.context.scope;
        let result = |mode: &String| open(gate, Some(mode.clone()), NO_TRIALS.to_owned(), scope);
        missing.map(result).collect()
    }

    fn candidates(&self, gate: &Gate) -> Vec<Candidate<'a>> {
        let run = self.trials.arms.iter().zip(self.labels);
        let run = run.map(|(arm, label)| Candidate {
            label: label.clone(),
            mode: &arm.mode,
            arm: Some(arm),
        });
        let planned = self.context.planned.iter().flat_map(|plan| &plan.arms);
        let not_run = planned.filter(|planned| !self.was_run(planned));
        let not_run = not_run.map(|planned| Candidate {
            label: format!("{} ({})", planned.mode, planned.model),
            mode: &planned.mode,
            arm: None,
        });
        let is_meant = |candidate: &Candidate<'_>| match &gate.modes {
            Some(modes) => modes.iter().any(|mode| mode == candidate.mode),
            None => true,
        };
        // The baseline of the same run is what others are compared with.
        let is_yardstick = |candidate: &Candidate<'_>| {
            gate.needs_baseline()
                && self.context.reference.is_none()
                && self.baseline_mode() == Some(candidate.mode)
        };
        run.chain(not_run)
            .filter(|candidate| is_meant(candidate) && !is_yardstick(candidate))
            .collect()
    }

    /// A planned mode may have been run with a model that calls itself something else.
    fn was_run(&self, planned: &PlannedArm) -> bool {
        let arms = || {
            self.trials
                .arms
                .iter()
                .filter(|arm| arm.mode == planned.mode)
        };
        let plan = self.context.planned.iter().flat_map(|plan| &plan.arms);
        let as_many = plan.filter(|other| other.mode == planned.mode).count() <= arms().count();
        as_many || arms().any(|arm| arm.model == planned.model)
    }

    /// The mode that others of the same run are compared with, where there are others.
    fn baseline_mode(&self) -> Option<&str> {
        let first = self.trials.arms.first().map(|arm| arm.mode.as_str());
        let baseline = self.analysis.baseline.as_deref().or(first)?;
        let planned = self.context.planned.iter().flat_map(|plan| &plan.arms);
        let planned = planned.map(|arm| arm.mode.as_str());
        let modes = self.trials.arms.iter().map(|arm| arm.mode.as_str());
        let has_rival = planned.chain(modes).any(|mode| mode != baseline);
        has_rival.then_some(baseline)
    }

    fn why_no_candidate(&self, gate: &Gate) -> String {
        match (&gate.modes, self.trials.arms.is_empty()) {
            (_, true) => "there are no trials".to_owned(),
            (Some(modes), _) => format!("there is no trial of {}", modes.join(", ")),
            _ => "there is no mode besides the baseline".to_owned(),
        }
    }

    fn examine(&self, gate: &Gate, candidate: &Candidate<'a>) -> Result<Finding, String> {
        let arm = candidate.arm.ok_or(NO_TRIALS)?;
        let side = Side {
            arm,
            trials: self.trials,
            planned: self.context.planned.as_ref(),
            whose: "",
        };
        match gate.bound {
            Bound::Number(limit) => self.examine_alone(gate, &side, limit),
            Bound::Times(limit) => self.examine_against(gate, &side, GateMeasure::Ratio, limit),
            Bound::Plus(limit) => self.examine_against(gate, &side, GateMeasure::Difference, limit),
        }
    }

    fn examine_alone(&self, gate: &Gate, side: &Side<'_>, limit: f64) -> Result<Finding, String> {
        let (estimate, readings, trials, coverage, notes) = match &gate.subject {
            Subject::Metric { name, .. } => {
                let statistic = self.statistic(gate);
                let runs = side.runs(name)?;
                let groups: Vec<Vec<Run>> = runs.groups.values().cloned().collect();
                if !matches!(statistic, Statistic::Min | Statistic::Max) {
                    runs.check_repeated(name)?;
                }
                let estimate =
                    estimate::metric(&groups, statistic).ok_or("nothing was measured")?;
                (
                    estimate,
                    Vec::new(),
                    runs.count,
                    runs.coverage,
                    runs.notes(),
                )
            }
            rate => {
                let tallies = side.tallies()?;
                let tries = tries(rate);
                if let Some(tries) = tries {
                    tallies.check_tries(tries)?;
                }
                let counts: Vec<Trials> = tallies.counts.values().copied().collect();
                let read = |reading: Reading| {
                    let counts: Option<Vec<Tally>> =
                        counts.iter().map(|trials| trials.read(reading)).collect();
                    match tries {
                        None => estimate::success(&counts?, self.context.scope),
                        Some(tries) => estimate::chance(&counts?, tries),
                    }
                };
                let estimate = read(Reading::Observed).ok_or(too_few(self.context.scope))?;
                let readings = [Reading::Failed, Reading::Passed].map(read);
                let readings = readings.into_iter().flatten().collect();
                (
                    estimate,
                    readings,
                    tallies.judged,
                    tallies.coverage,
                    Vec::new(),
                )
            }
        };
        Ok(Finding {
            estimate,
            readings,
            limit,
            trials,
            coverage,
            baseline: None,
            notes,
        })
    }

    fn examine_against(
        &self,
        gate: &Gate,
        side: &Side<'_>,
        measure: GateMeasure,
        limit: f64,
    ) -> Result<Finding, String> {
        let (other, name) = self.other_side(side.arm)?;
        let model = &other.arm.model;
        let other_model =
            (*model != side.arm.model).then(|| format!("the baseline ran with {model}"));
        match &gate.subject {
            Subject::Metric { name: metric, .. } => {
                let (a, b) = (side.runs(metric)?, other.runs(metric)?);
                let (left, right, mut notes) = common(a.groups.clone(), b.groups.clone())?;
                notes.extend(other_model);
                notes.extend(a.notes());
                notes.extend(
                    b.notes()
                        .into_iter()
                        .map(|note| format!("baseline: {note}")),
                );
                let estimate =
                    estimate::metric_against(&left, &right, self.statistic(gate), measure)?;
                Ok(Finding {
                    estimate,
                    readings: Vec::new(),
                    limit,
                    trials: left.iter().map(|runs| runs.len() as u64).sum(),
                    coverage: a.coverage,
                    baseline: Some(name),
                    notes,
                })
            }
            rate => {
                let (a, b) = (side.tallies()?, other.tallies()?);
                let (left, right, mut notes) = common(a.counts.clone(), b.counts.clone())?;
                notes.extend(other_model);
                let tries = tries(rate);
                if let Some(tries) = tries {
                    a.check_tries(tries)?;
                    b.check_tries(tries)?;
                }
                let read = |of_a: Reading, of_b: Reading| {
                    let counts = |trials: &[Trials], reading: Reading| {
                        let counts = trials.iter().map(|trials| trials.read(reading));
                        counts.collect::<Option<Vec<Tally>>>()
                    };
                    let (a, b) = (counts(&left, of_a)?, counts(&right, of_b)?);
                    match tries {
                        None => estimate::success_difference(&a, &b, self.context.scope),
                        Some(tries) => estimate::chance_difference(&a, &b, tries),
                    }
                };
                let estimate = read(Reading::Observed, Reading::Observed);
                let worst = read(Reading::Failed, Reading::Passed);
                let best = read(Reading::Passed, Reading::Failed);
                Ok(Finding {
                    estimate: estimate.ok_or(too_few(self.context.scope))?,
                    readings: [worst, best].into_iter().flatten().collect(),
                    limit,
                    trials: left.iter().map(|trials| trials.judged()).sum(),
                    coverage: a.coverage,
                    baseline: Some(name),
                    notes,
                })
            }
        }
    }

    fn statistic(&self, gate: &Gate) -> Statistic {
        match &gate.subject {
            Subject::Metric {
                name, statistic, ..
            } => statistic.unwrap_or_else(|| {
                self.analysis
                    .statistic_of(&self.trials.names.catalog.metric(name))
            }),
            _ => Statistic::Mean,
        }
    }

    /// The reference of this arm: itself in another run, or the baseline mode of this one.
    fn other_side(&self, arm: &Arm) -> Result<(Side<'_>, String), String> {
        let (trials, planned, mode, name) = match &self.context.reference {
            Some(reference) => (
                &reference.trials,
                reference.planned.as_ref(),
                arm.mode.as_str(),
                reference.name.as_str(),
            ),
            None => {
                let mode = self.baseline_mode().ok_or(
                    "there is no baseline: name a run with `--baseline`, or have a second mode",
                )?;
                (self.trials, self.context.planned.as_ref(), mode, mode)
            }
        };
        let is_external = self.context.reference.is_some();
        let fits = |other: &&Arm| {
            let same_suite = is_external || other.suite == arm.suite;
            other.mode == mode && other.nature == arm.nature && same_suite
        };
        let fitting: Vec<&Arm> = trials.arms.iter().filter(fits).collect();
        let same_model = fitting.iter().find(|other| other.model == arm.model);
        let found = match (same_model, &fitting[..]) {
            (Some(other), _) => *other,
            (None, [other]) => other,
            (None, []) => {
                let nature = arm.nature.as_str();
                return Err(format!("the baseline has no {nature} trial of mode {mode}"));
            }
            (None, _) => {
                return Err(format!("the baseline ran {mode} with several other models"));
            }
        };
        let side = Side {
            arm: found,
            trials,
            planned,
            whose: "of the baseline ",
        };
        Ok((side, name.to_owned()))
    }
}

fn tries(subject: &Subject) -> Option<Tries> {
    match subject {
        Subject::PassAt(k) => Some(Tries::At(*k)),
        Subject::PassHat(k) => Some(Tries::Hat(*k)),
        _ => None,
    }
}

/// Both sides on the scenarios that both have, in the same order.
type Common<T> = (Vec<T>, Vec<T>, Vec<String>);

fn common<T>(a: BTreeMap<&str, T>, mut b: BTreeMap<&str, T>) -> Result<Common<T>, String> {
    let most = a.len().max(b.len());
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let (mut new, mut gone) = (0, b.len());
    for (scenario, mine) in a {
        match b.remove(scenario) {
            Some(theirs) => {
                left.push(mine);
                right.push(theirs);
                gone -= 1;
            }
            None => new += 1,
        }
    }
    if (left.len() as f64) < COVERAGE * most as f64 {
        return Err(format!(
            "only {} of {most} scenarios are in both, and at least {:.0} % must be",
            left.len(),
            COVERAGE * 100.0
        ));
    }
    let mut notes = Vec::new();
    if new > 0 {
        let scenarios = count(new, "scenario is", "scenarios are");
        notes.push(format!("{scenarios} new and not compared"));
    }
    if gone > 0 {
        let scenarios = count(gone as u64, "scenario", "scenarios");
        notes.push(format!("{scenarios} of the baseline not run"));
    }
    Ok((left, right, notes))
}

fn decided(gate: &Gate, label: String, finding: Finding, scope: Scope) -> GateResult {
    let OneSided {
        point_estimate,
        lower_bound,
        upper_bound,
    } = finding.estimate.number;
    let judged =
        |estimate: &Estimate| absolute_gate(&estimate.number, gate.relation, finding.limit);
    let observed = judged(&finding.estimate);
    let is_decided_by_voids = finding
        .readings
        .iter()
        .any(|found| judged(found) != observed);
    let verdict = match is_decided_by_voids {
        true => GateVerdict::Inconclusive,
        false => observed,
    };
    let known = |bound: f64| (bound.abs() < ENDLESS / 1e3).then_some(bound);
    let reason = (verdict == GateVerdict::Inconclusive).then(|| {
        let certainty = 100.0 * ALPHA.complement();
        match is_decided_by_voids {
            true => {
                "void trials decide: counted as failed or as passed, they lead to other results"
                    .to_owned()
            }
            false => format!("the data fit both sides of the limit at {certainty:.0} % certainty"),
        }
    });
    GateResult {
        verdict,
        measure: Some(finding.estimate.measure),
        value: known(point_estimate),
        lower_bound: known(lower_bound),
        upper_bound: known(upper_bound),
        limit: Some(finding.limit),
        baseline: finding.baseline,
        trials: finding.trials,
        coverage: Some(finding.coverage),
        reason,
        notes: finding.notes,
        ..open(gate, Some(label), String::new(), scope)
    }
}

/// Not shown, and why.
fn open(gate: &Gate, mode: Option<String>, reason: String, scope: Scope) -> GateResult {
    GateResult {
        gate: gate.text().to_owned(),
        mode,
        verdict: GateVerdict::Inconclusive,
        measure: None,
        value: None,
        lower_bound: None,
        upper_bound: None,
        limit: None,
        baseline: None,
        trials: 0,
        coverage: None,
        reason: Some(reason),
        notes: Vec::new(),
        scope: gate.scope(scope),
        metric: gate.metric().map(str::to_owned),
        definition: None,
    }
}
