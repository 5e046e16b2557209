//! Compares the use of a skill with its expected use: recall, precision and false triggers over scenarios that state it.

use crate::arm::{AllNames, Cell};
use crate::percent;
use assize_contracts::Metric;
use assize_stats::{Level, Scope, Tally, effective_proportion_ci, success_rate, suite_rate};
use serde::Serialize;

/// With so few scenarios, numbers apply to exactly these.
const FEW_SCENARIOS: usize = 4;

/// The fit between the use of a skill and the scenarios of a mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Triggers {
    /// Trials that should use the skill, and did. Absent where no scenario says that it should.
    pub recall: Option<TriggerRate>,
    /// Trials that used the skill, and should have. Absent where none used it.
    pub precision: Option<TriggerRate>,
    /// Trials that should not use the skill, and did. Absent where no scenario says that it should not.
    pub false_triggers: Option<TriggerRate>,
}

/// A share of trials with its interval, which takes the trials of a scenario as belonging together.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerRate {
    /// Trials that count.
    pub hits: u64,
    /// Trials that could.
    pub trials: u64,
    /// The share: the plain mean over scenarios, for precision over trials.
    pub rate: f64,
    /// Its interval. Absent for too few trials.
    pub ci95: Option<[f64; 2]>,
    /// New scenarios like these, or exactly these where they are few.
    pub scope: Scope,
}

/// The results of the trials of one scenario.
struct Seen {
    should: bool,
    used: u64,
    trials: u64,
}

impl Triggers {
    pub(crate) fn of(names: &AllNames, cells: &[Cell<'_>], level: Level) -> Option<Self> {
        let place = |name: &str| names.metrics.find(name);
        let should = place(Metric::SKILL_SHOULD_TRIGGER)?;
        let used = place(Metric::SKILL_ACTIVATED)?;
        let seen: Vec<Seen> = cells
            .iter()
            .filter_map(|cell| Seen::of(cell, should, used))
            .collect();
        if seen.is_empty() {
            return None;
        }
        let rate_of = |wanted: bool| {
            let own = seen.iter().filter(|seen| seen.should == wanted);
            let tallies: Vec<Tally> = own
                .filter_map(|seen| Tally::new(seen.used, seen.trials).ok())
                .collect();
            share(&tallies, level)
        };
        Some(Self {
            recall: rate_of(true),
            false_triggers: rate_of(false),
            precision: precision(&seen, level),
        })
    }

    /// One line, such as `recall 92 % (71 % to 98 %), precision …`.
    pub fn words(&self) -> String {
        let part = |name: &str, rate: &Option<TriggerRate>| {
            let rate = rate.as_ref()?;
            Some(format!("{name} {}", rate.words()))
        };
        let parts = [
            part("recall", &self.recall),
            part("precision", &self.precision),
            part("false triggers", &self.false_triggers),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join(", ")
    }
}

impl TriggerRate {
    /// `92 % (11 of 12; 71 % to 98 %)`.
    pub fn words(&self) -> String {
        let interval = self.ci95.map_or_else(String::new, |[low, high]| {
            format!("; {} to {}", percent(low), percent(high))
        });
        format!(
            "{} ({} of {}{interval})",
            percent(self.rate),
            self.hits,
            self.trials
        )
    }
}

impl Seen {
    fn of(cell: &Cell<'_>, should: usize, used: usize) -> Option<Self> {
        let mut seen = Self {
            should: false,
            used: 0,
            trials: 0,
        };
        for trial in 0..cell.trials() {
            let (should, used) = (cell.value(should, trial), cell.value(used, trial));
            if should.is_finite() && used.is_finite() {
                seen.should = should > 0.5;
                seen.used += u64::from(used > 0.5);
                seen.trials += 1;
            }
        }
        (seen.trials > 0).then_some(seen)
    }
}

fn share(tallies: &[Tally], level: Level) -> Option<TriggerRate> {
    let alpha = Level::new(level.complement()).unwrap_or(Level::ALPHA_05);
    let is_few = tallies.len() <= FEW_SCENARIOS;
    let (rate, lower, upper) = match is_few {
        true => {
            let found = suite_rate(tallies, alpha);
            (found.estimate, found.lower, found.upper)
        }
        false => {
            let found = success_rate(tallies, alpha);
            (found.estimate, found.lower, found.upper)
        }
    };
    Some(TriggerRate {
        hits: tallies.iter().map(|tally| tally.successes()).sum(),
        trials: tallies.iter().map(|tally| tally.trials()).sum(),
        rate: rate?,
        ci95: lower.zip(upper).map(|(lower, upper)| [lower, upper]),
        scope: match is_few {
            true => Scope::Suite,
            false => Scope::Population,
        },
    })
}

/// All uses of a scenario are right or all are wrong, so that they carry less information than their number (Kish).
fn precision(seen: &[Seen], level: Level) -> Option<TriggerRate> {
    let uses: Vec<f64> = seen.iter().map(|seen| seen.used as f64).collect();
    let all: f64 = uses.iter().sum();
    if all == 0.0 {
        return None;
    }
    let effective = all * all / uses.iter().map(|used| used * used).sum::<f64>();
    let right = seen.iter().filter(|seen| seen.should);
    let right: u64 = right.map(|seen| seen.used).sum();
    let rate = right as f64 / all;
    let interval = effective_proportion_ci(rate, effective, level);
    Some(TriggerRate {
        hits: right,
        trials: all as u64,
        rate,
        ci95: interval.map(|found| [found.lower, found.upper]),
        scope: Scope::Population,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(should: bool, used: u64, trials: u64) -> Seen {
        Seen {
            should,
            used,
            trials,
        }
    }

    #[test]
    fn uses_of_one_scenario_belong_together() {
        let one = precision(&[seen(true, 40, 40)], Level::CONFIDENCE_95).unwrap();
        assert_eq!((one.rate, one.hits), (1.0, 40));
        let many: Vec<Seen> = (0..40).map(|_| seen(true, 1, 1)).collect();
        let many = precision(&many, Level::CONFIDENCE_95).unwrap();
        assert!(one.ci95.unwrap()[0] < 0.3 && many.ci95.unwrap()[0] > 0.9);
        assert!(precision(&[seen(true, 0, 3)], Level::CONFIDENCE_95).is_none());
    }

    #[test]
    fn shares_are_means_over_scenarios() {
        let tallies: Vec<Tally> = [(5, 5), (5, 5), (4, 5), (5, 5), (0, 5), (5, 5)]
            .iter()
            .map(|(used, trials)| Tally::new(*used, *trials).unwrap())
            .collect();
        let found = share(&tallies, Level::CONFIDENCE_95).unwrap();
        assert_eq!((found.hits, found.trials), (24, 30));
        assert!((found.rate - 0.8).abs() < 1e-12);
        let [low, high] = found.ci95.unwrap();
        assert!(low < 0.6 && high > 0.9, "{low} {high}");
    }
}
