//! Looks at a growing run: the rule by which verdicts pay for them, its wording, and drift over the run.

use crate::words::p_value;
use crate::{Analysis, Caution, CautionCode, Comparison, Row, SummaryBuilder};
use assize_contracts::{Outcome, RowField, StoppingMethod};
use assize_stats::special::{beta_cdf, student_t_cdf};
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

    /// The change of times from the first to the last trial as a share: within scenarios and modes, so that neither counts.
    fn trend(&self) -> Option<Trend> {
        if self.0.len() < FEWEST_TIMED {
            return None;
        }
        let mut timed = self.0.clone();
        timed.sort_by(|a, b| {
            let key = |timed: &Timed| (timed.arm, timed.scenario);
            key(a).cmp(&key(b)).then(a.position.total_cmp(&b.position))
        });
        let mut all = Line::default();
        let mut arms: Vec<(u32, Line)> = Vec::new();
        for of_arm in timed.chunk_by(|a, b| a.arm == b.arm) {
            let mut line = Line::default();
            let cells = of_arm.chunk_by(|a, b| a.scenario == b.scenario);
            cells.for_each(|cell| line.add(cell));
            all.join(&line);
            arms.push((of_arm[0].arm, line));
        }
        let typical = timed.iter().map(|timed| timed.ln_time).sum::<f64>() / timed.len() as f64;
        let places = timed.iter().map(|timed| timed.position);
        let last = places.clone().fold(f64::NEG_INFINITY, f64::max);
        let first = places.fold(f64::INFINITY, f64::min);
        let df = all.df - 1.0;
        if df < 10.0 || all.xx <= 0.0 || typical < SHORTEST.ln() {
            return None;
        }
        let slope = all.slope();
        let rest = all.rest() / df;
        let change = |slope: f64| (slope * (last - first)).exp() - 1.0;
        let t = slope / (rest / all.xx).sqrt();
        arms.retain(|(_, line)| line.xx > 0.0);
        let trend = Trend {
            change: change(slope),
            p_value: (2.0 * student_t_cdf(-t.abs(), df)).min(1.0),
            p_unlike: p_unlike(&all, &arms),
            of_arms: arms
                .iter()
                .map(|(arm, line)| (*arm, change(line.slope())))
                .collect(),
        };
        let is_finite = |(_, change): &(u32, f64)| change.is_finite();
        let numbers = [trend.change, trend.p_value, trend.p_unlike];
        let is_sound = numbers.iter().all(|number| number.is_finite());
        Some(trend).filter(|trend| is_sound && trend.of_arms.iter().all(is_finite))
    }
}

/// Sums for the line of times over positions, around the means of each scenario.
#[derive(Debug, Default)]
struct Line {
    xx: f64,
    xy: f64,
    yy: f64,
    df: f64,
}

impl Line {
    fn add(&mut self, cell: &[Timed]) {
        let count = cell.len() as f64;
        let mean = |of: fn(&Timed) -> f64| cell.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|timed| timed.position), mean(|timed| timed.ln_time));
        for timed in cell {
            let (dx, dy) = (timed.position - x, timed.ln_time - y);
            self.xx += dx * dx;
            self.xy += dx * dy;
            self.yy += dy * dy;
        }
        self.df += count - 1.0;
    }

    fn join(&mut self, other: &Self) {
        self.xx += other.xx;
        self.xy += other.xy;
        self.yy += other.yy;
        self.df += other.df;
    }

    fn slope(&self) -> f64 {
        self.xy / self.xx
    }

    /// The squares that the line leaves.
    fn rest(&self) -> f64 {
        (self.yy - self.slope() * self.xy).max(0.0)
    }
}

/// The p-value of modes that all move alike, by the F test of a line for each against one for all. 1 for a single mode.
fn p_unlike(all: &Line, arms: &[(u32, Line)]) -> f64 {
    let more = arms.len() as f64 - 1.0;
    let df = all.df - 1.0 - more;
    if more < 1.0 || df < 1.0 {
        return 1.0;
    }
    let explained: f64 = arms.iter().map(|(_, line)| line.slope() * line.xy).sum();
    let gained = (explained - all.slope() * all.xy).max(0.0);
    let rest = (all.yy - explained).max(0.0);
    match gained + rest > 0.0 {
        true => beta_cdf(rest / (gained + rest), df / 2.0, more / 2.0),
        false => 1.0,
    }
}

struct Trend {
    change: f64,
    p_value: f64,
    /// How well the data fit modes that all move alike.
    p_unlike: f64,
    /// The change of each arm, by the order in which arms were met.
    of_arms: Vec<(u32, f64)>,
}

/// A change over the run is said where chance makes one as large less often than this.
const ALPHA: f64 = 0.01;

/// Says when times moved over the run: rate limits, the time of day, a machine that warms up. `labels` are the arms' names.
pub(crate) fn drift_cautions(builder: &SummaryBuilder, labels: &[String]) -> Vec<Caution> {
    let Some(trend) = builder.drift.trend() else {
        return Vec::new();
    };
    let text = match unlike(&trend, builder, labels) {
        Some(text) => text,
        None if trend.p_value < ALPHA && trend.change.abs() >= LEAST_DRIFT => format!(
            "Trials became {} from the first to the last, in all modes alike ({}): rate limits, the time of day or the machine. \
             Blocks keep the modes comparable; times of other runs are not.",
            moved(trend.change),
            p_value(Some(trend.p_value))
        ),
        None => return Vec::new(),
    };
    vec![Caution::about(
        CautionCode::Drift,
        text,
        builder.names.catalog.name_of(RowField::WallTime),
    )]
}

/// The words for modes that did not move alike: those at both ends.
fn unlike(trend: &Trend, builder: &SummaryBuilder, labels: &[String]) -> Option<String> {
    let by_change = |a: &&(u32, f64), b: &&(u32, f64)| a.1.total_cmp(&b.1);
    let fastest = trend.of_arms.iter().min_by(by_change)?;
    let slowest = trend.of_arms.iter().max_by(by_change)?;
    let is_large = [fastest, slowest]
        .iter()
        .any(|(_, change)| change.abs() >= LEAST_DRIFT);
    if trend.p_unlike >= ALPHA || !is_large {
        return None;
    }
    let named = |(order, change): &(u32, f64)| {
        let place = builder.arms.iter().position(|arm| arm.order == *order)?;
        Some(format!("{} became {}", labels.get(place)?, moved(*change)))
    };
    Some(format!(
        "Times moved over the run, and not in all modes alike ({}): from the first trial to the last {}, and {}. How the modes compare in \
         time depends on when they were run.",
        p_value(Some(trend.p_unlike)),
        named(slowest)?,
        named(fastest)?
    ))
}

/// `40 % slower`.
fn moved(change: f64) -> String {
    let word = if change > 0.0 { "slower" } else { "faster" };
    format!("{:.0} % {word}", 100.0 * change.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two arms, whose times grow by so much per trial.
    fn tally(drift: [f64; 2]) -> DriftTally {
        let timed = |number: u32| Timed {
            arm: number % 2,
            scenario: number / 2 % 5,
            position: f64::from(number),
            ln_time: 6.0
                + f64::from(number % 2)
                + f64::from(number * 7919 % 13) / 60.0
                + drift[number as usize % 2] * f64::from(number),
        };
        DriftTally((0..100).map(timed).collect())
    }

    #[test]
    fn a_trend_over_the_run_is_found_and_noise_is_not() {
        let found = tally([0.005; 2]).trend().unwrap();
        assert!(found.p_value < 1e-6 && (0.4..0.9).contains(&found.change));
        assert!(found.p_unlike > 0.01, "{}", found.p_unlike);
        assert!(tally([0.0; 2]).trend().unwrap().p_value > 0.01);
    }

    #[test]
    fn modes_that_move_differently_are_not_said_to_move_alike() {
        let found = tally([0.0, 0.005]).trend().unwrap();
        assert!(found.p_unlike < 1e-6, "{}", found.p_unlike);
        let changes: Vec<f64> = found.of_arms.iter().map(|(_, change)| *change).collect();
        assert!(changes[0].abs() < 0.1 && changes[1] > 0.4, "{changes:?}");
        let opposite = tally([-0.005, 0.005]).trend().unwrap();
        assert!(opposite.p_value > 0.01 && opposite.p_unlike < 1e-6);
    }
}
