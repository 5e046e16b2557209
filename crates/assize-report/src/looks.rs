//! Looks at a growing run: the rule by which verdicts pay for them, its wording, and drift over the run.

use crate::words::p_value;
use crate::{Analysis, Caution, CautionCode, Comparison, Row, SummaryBuilder};
use assize_contracts::{Outcome, RowField, StoppingMethod};
use assize_stats::special::student_t_cdf;
use assize_stats::{Level, LookFacts, Looks, Scope, Spending, Stopping, boundaries};

/// The looks at a run so far, this one included.
#[derive(Debug, Clone, PartialEq)]
pub struct LooksReading {
    /// The rule by which verdicts pay for them.
    pub looks: Looks,
    /// The number of this look, from 1.
    pub number: u32,
    /// Rounds of all scenarios that are complete.
    pub rounds: f64,
    /// The declared rule. Absent: nothing was declared.
    pub declared: Option<DeclaredRule>,
}

/// A rule that was declared before the first trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeclaredRule {
    /// The method.
    pub method: StoppingMethod,
    /// Planned looks.
    pub looks: u32,
}

impl LooksReading {
    /// The p-value that one question has to reach at this look: the bound of the look. None where there is no such bound.
    pub fn bound(&self, alpha: Level) -> Option<f64> {
        let Stopping::GroupSequential {
            earlier_rounds,
            max_rounds,
        } = &self.looks.stopping
        else {
            return None;
        };
        let facts = LookFacts {
            scope: Scope::Suite,
            scenarios: 1,
            rounds: self.rounds,
            components: None,
        };
        let before = earlier_rounds
            .iter()
            .filter(|rounds| **rounds < self.rounds);
        let rounds = before.copied().chain([self.rounds]);
        let shares: Vec<f64> = rounds
            .map(|rounds| facts.fraction(rounds, *max_rounds))
            .collect();
        let bounds = boundaries(Spending::ObrienFleming, &shares, alpha);
        let last = bounds.last()?;
        Some(2.0 * assize_stats::special::normal_cdf(-last))
    }
}

/// The caution about the looks, if there is one.
pub(crate) fn caution(analysis: &Analysis, comparisons: &[Comparison]) -> Option<Caution> {
    let reading = analysis.looks.as_ref()?;
    if comparisons.is_empty() {
        return None;
    }
    let mut caution = match reading.declared {
        Some(rule) => declared(reading, rule, analysis.confidence),
        None if reading.number > 1 => undeclared(reading.number),
        None => return None,
    };
    caution.is_primary = true;
    Some(caution)
}

fn undeclared(number: u32) -> Caution {
    let earlier = crate::caution::count(
        u64::from(number) - 1,
        "earlier state of its data",
        "earlier states of its data",
    );
    Caution::about_all(
        CautionCode::OptionalStopping,
        format!(
            "Look {number} at a growing run: verdicts were shown at {earlier}, and no stopping rule was declared. Who may stop at \
             each look finds differences by chance more often, so p-values are multiplied by {number}. Declare `execution.until` \
             before the next run to look early at a smaller price."
        ),
    )
}

fn declared(reading: &LooksReading, rule: DeclaredRule, confidence: Level) -> Caution {
    let text = match rule.method {
        StoppingMethod::ObrienFleming => {
            let bound = Level::new(confidence.complement())
                .ok()
                .and_then(|alpha| reading.bound(alpha));
            let bound = bound.map_or_else(String::new, |bound| {
                format!(
                    "; a single question is decided here at {}",
                    p_value(Some(bound))
                        .replace("p ", "p ≤ ")
                        .replace("≤ <", "<")
                )
            });
            format!(
                "Look {} of {}, declared before the first trial (obrien-fleming){bound}. Adjusted p-values pay for all looks.",
                reading.number.min(rule.looks.max(reading.number)),
                rule.looks.max(reading.number)
            )
        }
        StoppingMethod::Anytime => format!(
            "Look {} at a run that may be looked at at any time, as declared before the first trial (anytime). Adjusted p-values \
             hold whenever one stops.",
            reading.number
        ),
    };
    Caution::about_all(CautionCode::DeclaredLooks, text)
}

/// Times of trials by their place in the run.
#[derive(Debug, Default)]
pub(crate) struct DriftTally(Vec<Timed>);

#[derive(Debug, Clone, Copy)]
struct Timed {
    arm: u32,
    scenario: u32,
    position: f64,
    ln_time: f64,
}

/// More trials than this say no more about drift.
const MOST_TIMED: usize = 100_000;
/// Fewer trials than this say too little.
const FEWEST_TIMED: usize = 20;
/// Trials shorter than this, in milliseconds, are made of the machine's own noise.
const SHORTEST: f64 = 50.0;
/// A change over the run below this share is not worth a word.
const LEAST_DRIFT: f64 = 0.1;

impl DriftTally {
    pub(crate) fn add(&mut self, row: &Row<'_>, arm: usize, scenario: usize) {
        let measured = row.outcome() != Outcome::Void && !row.is_censored();
        let (Some(position), true) = (row.position(), self.0.len() < MOST_TIMED && measured) else {
            return;
        };
        if let Some(time) = row.wall_time().filter(|time| *time > 0.0) {
            self.0.push(Timed {
                arm: arm as u32,
                scenario: scenario as u32,
                position: f64::from(position),
                ln_time: time.ln(),
            });
        }
    }

    /// The change of times from the first to the last trial as a share, and its p-value: within scenarios and modes, so that
    /// neither counts.
    fn trend(&self) -> Option<Trend> {
        if self.0.len() < FEWEST_TIMED {
            return None;
        }
        let mut timed = self.0.clone();
        timed.sort_by(|a, b| {
            let key = |timed: &Timed| (timed.arm, timed.scenario);
            key(a).cmp(&key(b)).then(a.position.total_cmp(&b.position))
        });
        let (mut xx, mut xy, mut yy, mut df) = (0.0, 0.0, 0.0, -1.0);
        for cell in timed.chunk_by(|a, b| (a.arm, a.scenario) == (b.arm, b.scenario)) {
            let count = cell.len() as f64;
            let mean = |of: fn(&Timed) -> f64| cell.iter().map(of).sum::<f64>() / count;
            let (x, y) = (mean(|timed| timed.position), mean(|timed| timed.ln_time));
            for timed in cell {
                let (dx, dy) = (timed.position - x, timed.ln_time - y);
                xx += dx * dx;
                xy += dx * dy;
                yy += dy * dy;
            }
            df += count - 1.0;
        }
        let typical = timed.iter().map(|timed| timed.ln_time).sum::<f64>() / timed.len() as f64;
        let places = timed.iter().map(|timed| timed.position);
        let last = places.clone().fold(f64::NEG_INFINITY, f64::max);
        let first = places.fold(f64::INFINITY, f64::min);
        if df < 10.0 || xx <= 0.0 || typical < SHORTEST.ln() {
            return None;
        }
        let slope = xy / xx;
        let rest = (yy - slope * xy).max(0.0) / df;
        let t = slope / (rest / xx).sqrt();
        Some(Trend {
            change: (slope * (last - first)).exp() - 1.0,
            p_value: (2.0 * student_t_cdf(-t.abs(), df)).min(1.0),
        })
        .filter(|trend| trend.change.is_finite() && trend.p_value.is_finite())
    }
}

struct Trend {
    change: f64,
    p_value: f64,
}

/// Says when times moved over the run, whatever the mode: rate limits, the time of day, a machine that warms up.
pub(crate) fn drift_cautions(builder: &SummaryBuilder) -> Vec<Caution> {
    let found = builder.drift.trend();
    let found = found.filter(|trend| trend.p_value < 0.01 && trend.change.abs() >= LEAST_DRIFT);
    let caution = found.map(|trend| {
        let word = if trend.change > 0.0 { "slower" } else { "faster" };
        Caution::about(
            CautionCode::Drift,
            format!(
                "Trials became {:.0} % {word} from the first to the last, in all modes alike ({}): rate limits, the time of day or \
                 the machine. Blocks keep the modes comparable; times of other runs are not.",
                100.0 * trend.change.abs(),
                p_value(Some(trend.p_value))
            ),
            builder.names.catalog.name_of(RowField::WallTime),
        )
    });
    caution.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(drift: f64) -> DriftTally {
        let timed = |number: u32| Timed {
            arm: number % 2,
            scenario: number / 2 % 5,
            position: f64::from(number),
            ln_time: 6.0
                + f64::from(number % 2)
                + f64::from(number * 7919 % 13) / 60.0
                + drift * f64::from(number),
        };
        DriftTally((0..100).map(timed).collect())
    }

    #[test]
    fn a_trend_over_the_run_is_found_and_noise_is_not() {
        let found = tally(0.005).trend().unwrap();
        assert!(found.p_value < 1e-6 && (0.4..0.9).contains(&found.change));
        assert!(tally(0.0).trend().unwrap().p_value > 0.01);
    }
}
