//! The trials of one mode as gates see them: judged and void ones by scenario, and measurements with lower bounds.

use super::Planned;
use super::estimate::{Run, Tries};
use crate::SummaryBuilder;
use crate::arm::Arm;
use crate::caution::count;
use assize_stats::Tally;
use std::collections::BTreeMap;

/// Judged and measured trials must be at least this share of the planned ones.
pub(super) const COVERAGE: f64 = 0.8;

/// One mode's trials, and how many there should be.
pub(super) struct Side<'a> {
    pub(super) arm: &'a Arm,
    pub(super) trials: &'a SummaryBuilder,
    pub(super) planned: Option<&'a Planned>,
    /// A prefix for statements about this side.
    pub(super) whose: &'static str,
}

/// Judged trials by scenario.
pub(super) struct Tallies<'a> {
    pub(super) counts: BTreeMap<&'a str, Trials>,
    pub(super) judged: u64,
    pub(super) coverage: f64,
    whose: &'static str,
}

/// Judged trials of one scenario, and void ones whose cause may depend on the mode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trials {
    passed: u64,
    judged: u64,
    void: u64,
}

/// The reading of void trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Left out.
    Observed,
    /// As failed.
    Failed,
    /// As passed.
    Passed,
}

impl Trials {
    pub(super) fn read(self, reading: Reading) -> Option<Tally> {
        let (passed, trials) = match reading {
            Reading::Observed => (self.passed, self.judged),
            Reading::Failed => (self.passed, self.judged + self.void),
            Reading::Passed => (self.passed + self.void, self.judged + self.void),
        };
        Tally::new(passed, trials).ok()
    }

    pub(super) fn judged(self) -> u64 {
        self.judged
    }
}

/// Measured trials by scenario.
pub(super) struct Runs<'a> {
    pub(super) groups: BTreeMap<&'a str, Vec<Run>>,
    pub(super) count: u64,
    pub(super) coverage: f64,
    /// Trials that ran out of time.
    cut_off: u64,
    /// Trials that are known in part: a model call did not report everything.
    incomplete: u64,
}

impl<'a> Side<'a> {
    pub(super) fn tallies(&self) -> Result<Tallies<'a>, String> {
        let judged: u64 = self.arm.cells.values().map(|cell| cell.judged()).sum();
        let coverage = self.covered(judged, "judged")?;
        let mut counts = BTreeMap::new();
        for (scenario, cell) in self.arm.cells.iter() {
            let trials = Trials {
                passed: u64::from(cell.passed),
                judged: cell.judged(),
                void: cell.related_voids(),
            };
            counts.insert(&self.trials.scenarios[scenario], trials);
        }
        counts.retain(|_, trials| trials.judged > 0);
        self.check_scenarios(|scenario| counts.contains_key(scenario), "judged")?;
        Ok(Tallies {
            counts,
            judged,
            coverage,
            whose: self.whose,
        })
    }

    pub(super) fn runs(&self, metric: &str) -> Result<Runs<'a>, String> {
        let names = &self.trials.names;
        let place = names.metrics.find(metric);
        let place = place.ok_or_else(|| format!("no trial {}measured `{metric}`", self.whose))?;
        let is_limited = crate::metric::is_limited(&names.catalog.metric(metric));
        let mut groups = BTreeMap::new();
        let (mut cut_off, mut incomplete) = (0, 0);
        for (scenario, cell) in self.arm.cells.iter() {
            let runs: Vec<Run> = cell
                .bounded_values(place, is_limited)
                .map(|(value, is_cut_off)| Run { value, is_cut_off })
                .collect();
            let open = runs.iter().filter(|run| run.is_cut_off).count() as u64;
            let in_part = cell.incomplete_in(place);
            cut_off += open.saturating_sub(in_part);
            incomplete += in_part;
            if !runs.is_empty() {
                groups.insert(&self.trials.scenarios[scenario], runs);
            }
        }
        let count = groups.values().map(|runs| runs.len() as u64).sum();
        if count == 0 && self.trials.has_forgotten(metric) {
            return Err(format!(
                "not comparable: `{metric}` means something else since Assize 0.2"
            ));
        }
        let what = format!("measured by `{metric}`");
        let coverage = self.covered(count, &what)?;
        self.check_scenarios(|scenario| groups.contains_key(scenario), &what)?;
        Ok(Runs {
            groups,
            count,
            coverage,
            cut_off,
            incomplete,
        })
    }

    /// So many of the planned trials count; too few leave every gate open.
    fn covered(&self, counted: u64, what: &str) -> Result<f64, String> {
        let rows: u64 = self.arm.cells.values().map(|cell| cell.all_trials()).sum();
        let planned = self.planned.map_or(0, |plan| {
            let is_it =
                |arm: &&super::PlannedArm| arm.mode == self.arm.mode && arm.model == self.arm.model;
            let own = plan.arms.iter().find(is_it).and_then(|arm| arm.repetitions);
            (plan.scenarios.len() as u64 + plan.tasks) * own.unwrap_or(plan.repetitions)
        });
        let expected = planned.max(rows);
        let coverage = counted as f64 / expected.max(1) as f64;
        match coverage >= COVERAGE {
            true => Ok(coverage),
            false => Err(format!(
                "only {counted} of {expected} trials {}were {what}, and at least {:.0} % must be",
                self.whose,
                COVERAGE * 100.0
            )),
        }
    }

    /// A scenario that taught nothing is missing, however many others there are.
    fn check_scenarios(&self, is_there: impl Fn(&str) -> bool, what: &str) -> Result<(), String> {
        let run = self
            .arm
            .cells
            .iter()
            .map(|(scenario, _)| &self.trials.scenarios[scenario]);
        let planned = self.planned.iter().flat_map(|plan| &plan.scenarios);
        let planned = planned.map(String::as_str);
        match run.chain(planned).find(|scenario| !is_there(scenario)) {
            Some(scenario) => Err(format!("no trial {}on {scenario} was {what}", self.whose)),
            None => Ok(()),
        }
    }
}

impl Tallies<'_> {
    pub(super) fn check_tries(&self, tries: Tries) -> Result<(), String> {
        let (Tries::At(k) | Tries::Hat(k)) = tries;
        match self.counts.iter().find(|(_, trials)| trials.judged < k) {
            Some((scenario, trials)) => Err(format!(
                "{k} tries need {k} judged trials of every scenario, and {scenario} {}has {}",
                self.whose, trials.judged
            )),
            None => Ok(()),
        }
    }
}

impl Runs<'_> {
    /// A single run says nothing about chance.
    pub(super) fn check_repeated(&self, metric: &str) -> Result<(), String> {
        match self.groups.iter().find(|(_, runs)| runs.len() < 2) {
            Some((scenario, _)) => Err(format!(
                "{scenario} was run once, which says nothing about chance: repeat it, or gate `max({metric})`"
            )),
            None => Ok(()),
        }
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let reasons = [
            (self.cut_off, "ran out of time"),
            (self.incomplete, "known only as a lower bound"),
        ];
        let given = reasons.into_iter().filter(|(trials, _)| *trials > 0);
        given
            .map(|(trials, why)| format!("{} {why}", count(trials, "trial", "trials")))
            .collect()
    }
}
