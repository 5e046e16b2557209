//! The mean effect over scenarios with its standard error, on the scale it is estimated on.
//!
//! Intervals, gates, equivalence tests and plans all start from this one estimate.

use libm::{exp, expm1, sqrt};
use serde::Serialize;

use crate::interval::{Bounds, Level, Scope};
use crate::sample::{Sample, finite};
use crate::scenario::{Pair, common_scale};
use crate::special::student_t_cdf;
use crate::statistic::Statistic;

/// Spread below this share of the largest effect is rounding, not variation.
const ROUNDING: f64 = 1e-12;

/// The scale on which two modes are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// ln(A/B): for metrics above zero.
    LogRatio,
    /// A - B in the metric's unit.
    Difference,
}

/// A mean effect: `mean`, `se` and any bound made of them are logs, or multiples of `unit`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effect {
    pub(crate) measure: Measure,
    pub(crate) mean: f64,
    pub(crate) se: f64,
    pub(crate) df: f64,
    pub(crate) unit: f64,
}

impl Effect {
    /// The effect on scenarios, in the given scope. None when its error cannot be estimated or logs do not exist.
    pub(crate) fn new(
        pairs: &[Pair],
        scope: Scope,
        statistic: Statistic,
        measure: Measure,
    ) -> Option<Self> {
        match scope {
            Scope::Population => {
                Self::population(&ScenarioEffects::new(pairs, statistic, measure)?)
            }
            Scope::Suite => Self::suite(pairs, measure),
        }
    }

    /// Scenarios are a sample: the spread between their effects is the error.
    pub(crate) fn population(effects: &ScenarioEffects) -> Option<Self> {
        let sample = Sample::new(&effects.values)?;
        if sample.count() < 2 {
            return None;
        }
        let largest = sample.min().abs().max(sample.max().abs());
        let se = sample.standard_error();
        Some(Self {
            measure: effects.measure,
            mean: sample.mean(),
            se: if se <= ROUNDING * largest { 0.0 } else { se },
            df: (sample.count() - 1) as f64,
            unit: effects.unit,
        })
    }

    /// Exactly these scenarios: only the spread of runs inside them is error. Needs two runs everywhere.
    fn suite(pairs: &[Pair], measure: Measure) -> Option<Self> {
        let inside = Inside::new(pairs, measure)?;
        if pairs.is_empty()
            || pairs
                .iter()
                .any(|pair| pair.a.count() < 2 || pair.b.count() < 2)
        {
            return None;
        }
        let scenarios = pairs.len() as f64;
        let effects: Vec<f64> = inside
            .pairs
            .iter()
            .map(|pair| pair.a.mean() - pair.b.mean())
            .collect();
        let groups = || inside.pairs.iter().flat_map(|pair| [&pair.a, &pair.b]);
        let terms: Vec<f64> = groups()
            .map(|group| group.standard_error() * group.standard_error())
            .collect();
        let variance: f64 = terms.iter().sum();
        let spread = terms
            .iter()
            .zip(groups())
            .map(|(term, group)| term * term / (group.count() - 1) as f64);
        let largest = groups()
            .map(|group| group.min().abs().max(group.max().abs()))
            .fold(0.0, f64::max);
        let se = sqrt(variance) / scenarios;
        let constant = se <= ROUNDING * largest;
        Some(Self {
            measure,
            mean: Sample::new(&effects)?.mean(),
            se: if constant { 0.0 } else { se },
            df: if constant {
                scenarios
            } else {
                variance * variance / spread.sum::<f64>()
            },
            unit: inside.unit,
        })
    }

    pub(crate) fn is_constant(&self) -> bool {
        self.se == 0.0
    }

    /// Two-sided t bounds of the mean.
    pub(crate) fn bounds(&self, level: Level) -> Bounds {
        let reach = if self.is_constant() {
            0.0
        } else {
            level.t(self.df) * self.se
        };
        Bounds {
            lower: self.mean - reach,
            upper: self.mean + reach,
        }
    }

    /// P(T <= (mean - at)/se): small when the mean lies clearly below `at`. None without variation.
    pub(crate) fn p_below(&self, at: f64) -> Option<f64> {
        (!self.is_constant()).then(|| student_t_cdf((self.mean - at) / self.se, self.df))
    }

    /// P(T >= (mean - at)/se): small when the mean lies clearly above `at`.
    pub(crate) fn p_above(&self, at: f64) -> Option<f64> {
        (!self.is_constant()).then(|| student_t_cdf((at - self.mean) / self.se, self.df))
    }

    /// Two-sided p-value of no effect.
    pub(crate) fn p_value(&self) -> Option<f64> {
        Some(2.0 * self.p_below(0.0)?.min(self.p_above(0.0)?))
    }

    /// The value for readers: percent less than B for logs, the metric's unit for differences.
    pub(crate) fn shown(&self, value: f64) -> f64 {
        match self.measure {
            Measure::LogRatio => finite(-expm1(value) * 100.0),
            Measure::Difference => finite(value * self.unit),
        }
    }

    /// Shown bounds, lower first: a larger log ratio is a smaller reduction.
    pub(crate) fn shown_bounds(&self, level: Level) -> Bounds {
        let Bounds { lower, upper } = self.bounds(level);
        match self.measure {
            Measure::LogRatio => Bounds {
                lower: self.shown(upper),
                upper: self.shown(lower),
            },
            Measure::Difference => Bounds {
                lower: self.shown(lower),
                upper: self.shown(upper),
            },
        }
    }

    /// A/B for logs.
    pub(crate) fn ratio(value: f64) -> f64 {
        finite(exp(value))
    }
}

/// One effect per scenario.
pub(crate) struct ScenarioEffects {
    pub(crate) values: Vec<f64>,
    pub(crate) measure: Measure,
    pub(crate) unit: f64,
}

impl ScenarioEffects {
    /// None when logs are asked for and a statistic is not above zero.
    pub(crate) fn new(pairs: &[Pair], statistic: Statistic, measure: Measure) -> Option<Self> {
        match measure {
            Measure::LogRatio => {
                let ratio = |pair: &Pair| log_ratio(statistic.of(&pair.a), statistic.of(&pair.b));
                let values = pairs.iter().map(ratio).collect::<Option<_>>()?;
                Some(Self {
                    values,
                    measure,
                    unit: 1.0,
                })
            }
            Measure::Difference => {
                let scale = common_scale(pairs.iter().flat_map(|pair| [&pair.a, &pair.b]));
                let scaled = |sample: &Sample| statistic.of(sample) * scale.inverse;
                let values = pairs
                    .iter()
                    .map(|pair| scaled(&pair.a) - scaled(&pair.b))
                    .collect();
                Some(Self {
                    values,
                    measure,
                    unit: scale.unit,
                })
            }
        }
    }
}

/// Runs on the scale of comparison: logs, or values divided by a common power of two.
pub(crate) struct Inside {
    pub(crate) pairs: Vec<Pair>,
    unit: f64,
}

impl Inside {
    /// None when logs are asked for and a run is not above zero.
    pub(crate) fn new(pairs: &[Pair], measure: Measure) -> Option<Self> {
        let scale = common_scale(pairs.iter().flat_map(|pair| [&pair.a, &pair.b]));
        let convert = |sample: &Sample| match measure {
            Measure::LogRatio => sample.logs(),
            Measure::Difference => Some(sample.scaled(scale.inverse)),
        };
        let pairs = pairs.iter().map(|pair| {
            Some(Pair {
                a: convert(&pair.a)?,
                b: convert(&pair.b)?,
            })
        });
        let unit = if measure == Measure::LogRatio {
            1.0
        } else {
            scale.unit
        };
        Some(Self {
            pairs: pairs.collect::<Option<_>>()?,
            unit,
        })
    }
}

/// ln(a/b); none unless both are above zero.
fn log_ratio(a: f64, b: f64) -> Option<f64> {
    if a <= 0.0 || b <= 0.0 {
        return None;
    }
    let ratio = a / b;
    // The quotient keeps more digits near 1; the logs survive where it overflows.
    Some(if ratio.is_normal() {
        libm::log(ratio)
    } else {
        libm::log(a) - libm::log(b)
    })
}
