//! The number that a gate is about, with one-sided bounds for exactly these scenarios.

use super::GateMeasure;
use assize_stats::{
    GateOptions, Level, Margin, OneSided, Scope, Statistic, SuccessMarginOptions, Tally, Warning,
    noninferiority_gate, pass_k_suite, success_gate, success_margin, suite_bounds,
};

/// Error rate of every gate, on each side.
pub(super) const ALPHA: Level = Level::ALPHA_05;

/// The bootstrap of quantiles starts here, like all else that is random.
const SEED: u64 = 42;

/// Stands for "longer than anybody waited". Larger than any measurement, and safe to calculate with.
pub(super) const ENDLESS: f64 = 1e300;

/// A number with its bounds, and what it is.
pub(super) struct Estimate {
    pub(super) number: OneSided,
    pub(super) measure: GateMeasure,
}

/// One trial's measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) value: f64,
    /// A lower bound: the truth is larger.
    pub(super) is_cut_off: bool,
}

/// The two chances of several tries: `pass@k` and `pass^k`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tries {
    At(u64),
    Hat(u64),
}

impl Estimate {
    fn value(number: OneSided) -> Self {
        Self {
            number,
            measure: GateMeasure::Value,
        }
    }
}

pub(super) fn success(tallies: &[Tally], scope: Scope) -> Option<Estimate> {
    let gate = success_gate(tallies, 0.0, ALPHA, scope);
    Some(Estimate::value(OneSided {
        point_estimate: gate.estimate?,
        lower_bound: gate.lower?,
        upper_bound: gate.upper?,
    }))
}

/// Chances of several tries have an interval over scenarios only; it is wider than one for exactly these would be.
pub(super) fn chance(tallies: &[Tally], tries: Tries) -> Option<Estimate> {
    let level = Level::new(1.0 - 2.0 * ALPHA.value()).ok()?;
    let (estimate, interval) = match tries {
        Tries::At(k) => {
            let found = pass_k_suite(tallies, k, level);
            (found.pass_at_k, found.pass_at_k_ci)
        }
        Tries::Hat(k) => {
            let found = pass_k_suite(tallies, k, level);
            (found.pass_hat_k, found.pass_hat_k_ci)
        }
    };
    let [lower_bound, upper_bound] = interval?;
    Some(Estimate::value(OneSided {
        point_estimate: estimate?,
        lower_bound,
        upper_bound,
    }))
}

/// A statistic of all runs. Lower bounds leave the upper bound open.
pub(super) fn metric(groups: &[Vec<Run>], statistic: Statistic) -> Option<Estimate> {
    let recorded = values(groups, |run| run.value);
    let mut number = suite_bounds(&recorded, statistic, ALPHA, SEED)?;
    if has_cut_off(groups) {
        let endless = values(
            groups,
            |run| if run.is_cut_off { ENDLESS } else { run.value },
        );
        number.upper_bound = suite_bounds(&endless, statistic, ALPHA, SEED)?.upper_bound;
    }
    Some(Estimate::value(number))
}

pub(super) fn success_difference(a: &[Tally], b: &[Tally], scope: Scope) -> Option<Estimate> {
    let options = SuccessMarginOptions {
        margin: 0.0,
        alpha: ALPHA,
        scope,
    };
    let margin = success_margin(a, b, &options).ok()?;
    Some(Estimate {
        number: OneSided {
            point_estimate: margin.estimate?,
            lower_bound: margin.lower?,
            upper_bound: margin.upper?,
        },
        measure: GateMeasure::Difference,
    })
}

pub(super) fn chance_difference(a: &[Tally], b: &[Tally], tries: Tries) -> Option<Estimate> {
    let (a, b) = (chance(a, tries)?.number, chance(b, tries)?.number);
    Some(Estimate {
        number: square_and_add(&a, &b),
        measure: GateMeasure::Difference,
    })
}

/// A metric scenario by scenario against another mode's. `a` and `b` hold the same scenarios in the same order.
pub(super) fn metric_against(
    a: &[Vec<Run>],
    b: &[Vec<Run>],
    statistic: Statistic,
    measure: GateMeasure,
) -> Result<Estimate, &'static str> {
    let estimate = match statistic {
        Statistic::Median | Statistic::Mean => paired(a, b, measure),
        _ => independent(a, b, statistic, measure),
    };
    let mut estimate = estimate?;
    if has_cut_off(a) {
        estimate.number.upper_bound = ENDLESS;
    }
    if has_cut_off(b) {
        estimate.number.lower_bound = match measure {
            GateMeasure::Ratio => 0.0,
            _ => -ENDLESS,
        };
    }
    Ok(estimate)
}

/// The non-inferiority test as bounds: it passes exactly when the bound is within the margin.
fn paired(a: &[Vec<Run>], b: &[Vec<Run>], measure: GateMeasure) -> Result<Estimate, &'static str> {
    const TOO_FEW: &str = "every scenario needs two runs on both sides";
    let margin = match measure {
        GateMeasure::Ratio => Margin::Relative(0.0),
        _ => Margin::Absolute(0.0),
    };
    let options = GateOptions {
        alpha: ALPHA,
        scope: Scope::Suite,
        ..GateOptions::new(margin)
    };
    let recorded = |groups: &[Vec<Run>]| values(groups, |run| run.value);
    let gate = noninferiority_gate(&recorded(a), &recorded(b), &options).map_err(|_| TOO_FEW)?;
    let number = gate.ratio.or(gate.difference);
    match (number, gate.lower_bound, gate.upper_bound) {
        (Some(point_estimate), Some(lower_bound), Some(upper_bound)) => Ok(Estimate {
            number: OneSided {
                point_estimate,
                lower_bound,
                upper_bound,
            },
            measure,
        }),
        _ if gate.warnings.contains(Warning::BaselineNonpositive) => Err(NO_RATIO),
        _ => Err(TOO_FEW),
    }
}

const NO_RATIO: &str =
    "a value of 0 has no ratio; give the margin in the metric's unit, such as `baseline + 5`";

/// A quantile of all runs against another: both bounds put together as those of independent numbers.
fn independent(
    a: &[Vec<Run>],
    b: &[Vec<Run>],
    statistic: Statistic,
    measure: GateMeasure,
) -> Result<Estimate, &'static str> {
    let found = metric(a, statistic).zip(metric(b, statistic));
    let (a, b) = found.ok_or("nothing was measured")?;
    let number = match measure {
        GateMeasure::Ratio => {
            let (a, b) = (
                logs(&a.number).ok_or(NO_RATIO)?,
                logs(&b.number).ok_or(NO_RATIO)?,
            );
            let log = square_and_add(&a, &b);
            OneSided {
                point_estimate: log.point_estimate.exp(),
                lower_bound: log.lower_bound.exp(),
                upper_bound: log.upper_bound.exp().min(ENDLESS),
            }
        }
        _ => square_and_add(&a.number, &b.number),
    };
    Ok(Estimate { number, measure })
}

/// Bounds of a difference from those of its sides (the method of variance estimates recovery; Newcombe's for rates).
fn square_and_add(a: &OneSided, b: &OneSided) -> OneSided {
    let difference = a.point_estimate - b.point_estimate;
    let below = f64::hypot(
        a.point_estimate - a.lower_bound,
        b.upper_bound - b.point_estimate,
    );
    let above = f64::hypot(
        a.upper_bound - a.point_estimate,
        b.point_estimate - b.lower_bound,
    );
    OneSided {
        point_estimate: difference,
        lower_bound: difference - below,
        upper_bound: difference + above,
    }
}

fn logs(number: &OneSided) -> Option<OneSided> {
    (number.lower_bound > 0.0).then(|| OneSided {
        point_estimate: number.point_estimate.ln(),
        lower_bound: number.lower_bound.ln(),
        upper_bound: number.upper_bound.ln(),
    })
}

fn values(groups: &[Vec<Run>], of: impl Fn(&Run) -> f64) -> Vec<Vec<f64>> {
    groups
        .iter()
        .map(|runs| runs.iter().map(&of).collect())
        .collect()
}

fn has_cut_off(groups: &[Vec<Run>]) -> bool {
    groups.iter().flatten().any(|run| run.is_cut_off)
}
