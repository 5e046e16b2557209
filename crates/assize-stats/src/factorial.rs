//! Factorial designs: several switches varied together, so that every trial is evidence about each of them.
//!
//! [`Factorial::new`] lays out the combinations, all of them or a fraction; [`metric_effect`] and [`success_effect`] estimate
//! the effect of a factor, or of two together. Pure: it knows nothing of agents, files or modes.

use libm::{exp, sqrt};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::compare::{PlanBasis, variance_inside};
use crate::design::Components;
use crate::effect::Measure;
use crate::interval::{Level, Scope};
use crate::proportion::Tally;
use crate::sample::{Sample, finite};
use crate::scenario::common_scale;
use crate::special::{student_t_cdf, student_t_quantile};
use crate::statistic::Statistic;
use crate::success::{chance_inside, suite_sides};
use crate::task_t::{TaskT, unseen_share};

/// More combinations than this are no experiment.
pub(crate) const MOST_RUNS: usize = 256;

/// Something that is varied. The first level is the base that others are compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Factor {
    pub name: String,
    /// At least two; a switch has `off` and `on`.
    pub levels: Vec<String>,
}

/// The number of combinations to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactorialRuns {
    /// Every combination.
    Full,
    /// This many: a power of two below the number of all, for factors of two levels each.
    Fraction(usize),
}

/// The reason why there is no such design.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FactorialError {
    /// Nothing is varied.
    #[error("there are no factors")]
    NoFactors,
    /// A factor that cannot vary.
    #[error("factor `{0}` has fewer than two levels")]
    OneLevel(String),
    /// A name that is given twice.
    #[error("`{0}` is given twice")]
    Twice(String),
    /// A fraction of factors that have more than two levels.
    #[error("factor `{0}` has more than two levels, and only switches can be run in a fraction")]
    NotASwitch(String),
    /// No fraction of this size exists.
    #[error(
        "{runs} combinations of {factors} switches cannot be balanced, expected one of {possible}"
    )]
    NoFraction {
        /// The wanted number.
        runs: usize,
        /// The number of factors.
        factors: usize,
        /// Numbers that are possible.
        possible: String,
    },
    /// Too many combinations.
    #[error("{0} combinations are more than an experiment can hold ({MOST_RUNS})")]
    TooMany(u128),
}

/// The combinations of levels that are run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Factorial {
    pub factors: Vec<Factor>,
    /// Per combination the place of each factor's level. The first has every factor at its base.
    pub runs: Vec<Vec<usize>>,
    /// For a fraction: factors whose level follows from others, by place. Empty: all combinations are run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<Generator>,
}

/// A factor that is on where an odd number of others is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Generator {
    /// The place of the factor.
    pub factor: usize,
    /// The places of those it follows from.
    pub from: Vec<usize>,
}

/// A main effect, or the way two factors work together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectTerm {
    /// One factor, or two, by place, each with the place of its level.
    pub levels: Vec<(usize, usize)>,
}

impl Factorial {
    /// Lays out the combinations.
    pub fn new(factors: Vec<Factor>, runs: FactorialRuns) -> Result<Self, FactorialError> {
        check(&factors)?;
        match runs {
            FactorialRuns::Full => Self::full(factors),
            FactorialRuns::Fraction(runs) => Self::fraction(factors, runs),
        }
    }

    fn full(factors: Vec<Factor>) -> Result<Self, FactorialError> {
        let total: u128 = factors
            .iter()
            .map(|factor| factor.levels.len() as u128)
            .product();
        if total > MOST_RUNS as u128 {
            return Err(FactorialError::TooMany(total));
        }
        let mut runs: Vec<Vec<usize>> = vec![Vec::new()];
        for factor in &factors {
            let longer = |run: &Vec<usize>| -> Vec<Vec<usize>> {
                let level = |level| run.iter().copied().chain([level]).collect();
                (0..factor.levels.len()).map(level).collect()
            };
            runs = runs.iter().flat_map(longer).collect();
        }
        Ok(Self {
            factors,
            runs,
            generators: Vec::new(),
        })
    }

    fn fraction(factors: Vec<Factor>, runs: usize) -> Result<Self, FactorialError> {
        if let Some(factor) = factors.iter().find(|factor| factor.levels.len() > 2) {
            return Err(FactorialError::NotASwitch(factor.name.clone()));
        }
        let count = factors.len();
        if count < 32 && runs == 1 << count {
            return Self::full(factors);
        }
        let impossible = || FactorialError::NoFraction {
            runs,
            factors: count,
            possible: possible_fractions(count),
        };
        let base = runs.trailing_zeros() as usize;
        if !runs.is_power_of_two() || base >= count || runs > MOST_RUNS {
            return Err(impossible());
        }
        let generators = generators(count, base).ok_or_else(impossible)?;
        let run = |number: usize| {
            let mut levels: Vec<usize> = (0..base)
                .map(|place| number >> (base - 1 - place) & 1)
                .collect();
            for generator in &generators {
                let on = generator.from.iter().map(|place| levels[*place]);
                levels.push(on.sum::<usize>() % 2);
            }
            levels
        };
        Ok(Self {
            runs: (0..runs).map(run).collect(),
            factors,
            generators,
        })
    }

    /// The main effects: every level of every factor against its base.
    pub fn main_effects(&self) -> Vec<EffectTerm> {
        let levels = |(place, factor): (usize, &Factor)| {
            let level = move |level| EffectTerm {
                levels: vec![(place, level)],
            };
            (1..factor.levels.len()).map(level).collect::<Vec<_>>()
        };
        self.factors.iter().enumerate().flat_map(levels).collect()
    }

    /// Pairs of levels of two factors.
    pub fn interactions(&self) -> Vec<EffectTerm> {
        let main = self.main_effects();
        let mut pairs = Vec::new();
        for (place, first) in main.iter().enumerate() {
            for second in &main[place + 1..] {
                if first.levels[0].0 != second.levels[0].0 {
                    let levels = vec![first.levels[0], second.levels[0]];
                    pairs.push(EffectTerm { levels });
                }
            }
        }
        pairs
    }

    /// The weight of every combination in an effect: those that sum to 1 minus those that sum to 1. None when the fraction
    /// cannot estimate it at all, because it never varies.
    ///
    /// For two factors it is the effect of the first where the second is at its level, minus that where it is at its base.
    pub fn weights(&self, term: &EffectTerm) -> Option<Vec<f64>> {
        let sign = |run: &[usize], (factor, level): (usize, usize)| match run[factor] {
            found if found == level => 1.0,
            0 => -1.0,
            _ => 0.0,
        };
        let product =
            |run: &Vec<usize>| -> f64 { term.levels.iter().map(|pair| sign(run, *pair)).product() };
        let signs: Vec<f64> = self.runs.iter().map(product).collect();
        let count = |wanted: f64| signs.iter().filter(|sign| **sign == wanted).count() as f64;
        let (up, down) = (count(1.0), count(-1.0));
        if up == 0.0 || down == 0.0 {
            return None;
        }
        // A difference of differences weighs each of its four means fully.
        let scale = term.levels.len() as f64;
        let weight = |sign: &f64| match *sign {
            sign if sign > 0.0 => scale / up,
            sign if sign < 0.0 => -scale / down,
            _ => 0.0,
        };
        Some(signs.iter().map(weight).collect())
    }

    /// Other effects, main ones and pairs, that this fraction cannot distinguish from the given one.
    pub fn aliases(&self, term: &EffectTerm) -> Vec<EffectTerm> {
        let Some(weights) = self.weights(term) else {
            return Vec::new();
        };
        let is_same = |other: &EffectTerm| {
            let others = self.weights(other);
            let same = |others: Vec<f64>| {
                let signs = |weights: &[f64]| -> Vec<i8> {
                    weights.iter().map(|weight| weight.signum() as i8).collect()
                };
                let (one, two) = (signs(&weights), signs(&others));
                let mirrored: Vec<i8> = two.iter().map(|sign| -sign).collect();
                one == two || one == mirrored
            };
            others.is_some_and(same)
        };
        let all = self.main_effects().into_iter().chain(self.interactions());
        all.filter(|other| other != term && is_same(other))
            .collect()
    }

    /// `docs`, `docs × lint`, `temperature=high`.
    pub fn name(&self, term: &EffectTerm) -> String {
        let names = term.levels.iter().map(|(factor, level)| {
            let factor = &self.factors[*factor];
            match factor.levels.len() {
                2 => factor.name.clone(),
                _ => format!("{}={}", factor.name, factor.levels[*level]),
            }
        });
        names.collect::<Vec<_>>().join(" × ")
    }
}

fn check(factors: &[Factor]) -> Result<(), FactorialError> {
    if factors.is_empty() {
        return Err(FactorialError::NoFactors);
    }
    for (place, factor) in factors.iter().enumerate() {
        if factor.levels.len() < 2 {
            return Err(FactorialError::OneLevel(factor.name.clone()));
        }
        if factors[..place]
            .iter()
            .any(|other| other.name == factor.name)
        {
            return Err(FactorialError::Twice(factor.name.clone()));
        }
        for (place, level) in factor.levels.iter().enumerate() {
            if factor.levels[..place].contains(level) {
                return Err(FactorialError::Twice(format!("{}={level}", factor.name)));
            }
        }
    }
    Ok(())
}

fn possible_fractions(factors: usize) -> String {
    let sizes = (1..=factors.min(8)).filter(|base| generators(factors, *base).is_some());
    let sizes: Vec<String> = sizes.map(|base| (1_usize << base).to_string()).collect();
    sizes.join(", ")
}

/// The words by which the factors after the first `base` follow from those, so that main effects are confounded with as little as
/// possible: longest words first, tried until the shortest mix-up is as long as it can be.
fn generators(factors: usize, base: usize) -> Option<Vec<Generator>> {
    let added = factors.checked_sub(base)?;
    if !(2..=16).contains(&base) || added >= (1_usize << base) - base {
        return None;
    }
    let mut words: Vec<u32> = (1..1_u32 << base)
        .filter(|word| word.count_ones() >= 2)
        .collect();
    words.sort_by_key(|word| (std::cmp::Reverse(word.count_ones()), *word));
    let mut best: Option<(usize, Vec<u32>)> = None;
    let mut tries = 0;
    search(&words, added, base, &mut Vec::new(), &mut best, &mut tries);
    let (_, chosen) = best?;
    let generator = |(place, word): (usize, &u32)| Generator {
        factor: base + place,
        from: (0..base).filter(|bit| word >> bit & 1 == 1).collect(),
    };
    Some(chosen.iter().enumerate().map(generator).collect())
}

fn search(
    words: &[u32],
    left: usize,
    base: usize,
    chosen: &mut Vec<u32>,
    best: &mut Option<(usize, Vec<u32>)>,
    tries: &mut u32,
) {
    /// Sets of words to look at; the first ones are already good.
    const MOST_TRIES: u32 = 4_000;
    if left == 0 {
        *tries += 1;
        let found = resolution(chosen, base);
        if best.as_ref().is_none_or(|(known, _)| found > *known) {
            *best = Some((found, chosen.clone()));
        }
        return;
    }
    for (place, word) in words.iter().enumerate() {
        if *tries >= MOST_TRIES {
            return;
        }
        chosen.push(*word);
        search(&words[place + 1..], left - 1, base, chosen, best, tries);
        chosen.pop();
    }
}

/// The length of the shortest word that the generators make: with 4, main effects are mixed up with no pair.
fn resolution(words: &[u32], base: usize) -> usize {
    let defining: Vec<u32> = words
        .iter()
        .enumerate()
        .map(|(place, word)| word | 1 << (base + place))
        .collect();
    let product = |set: u32| {
        let chosen = defining.iter().enumerate();
        let chosen = chosen.filter(|(place, _)| set >> place & 1 == 1);
        chosen.fold(0, |product, (_, word)| product ^ word)
    };
    let lengths = (1..1_u32 << defining.len()).map(|set| product(set).count_ones() as usize);
    lengths.min().unwrap_or(usize::MAX)
}

/// The runs of one scenario under every combination, in the order of the design.
#[derive(Clone, Debug)]
pub struct EffectRuns<T> {
    /// One per combination.
    pub runs: Vec<T>,
}

/// Up to so many scenarios an effect is estimated for exactly these.
const FEW_TASKS: usize = 4;

/// An effect over scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectEstimate {
    /// The tasks that it applies to: new tasks like these, or exactly these.
    pub scope: Scope,
    /// Scale of the effect.
    pub measure: Measure,
    /// Percent less, for ratios; the metric's unit, or points of success, otherwise.
    pub value: f64,
    /// Its interval; absent without variation, or with too few runs.
    pub ci95: Option<[f64; 2]>,
    /// Two-sided; absent without variation, or with too few runs.
    pub p_value: Option<f64>,
    /// Runs do not vary at all, so that the effect on exactly these tasks is known.
    pub certain: bool,
    /// Scenarios with runs under every combination.
    pub scenarios: usize,
    /// -1: lower, 1: higher, 0: the interval holds 0.
    pub side: i8,
    /// The facts that a plan for new tasks is made of. Absent for exactly these tasks, and for the difference of two differences.
    #[serde(skip)]
    pub plan_basis: Option<PlanBasis>,
}

/// The scope of an effect over so many scenarios.
fn effect_scope(wanted: Scope, scenarios: usize) -> Scope {
    match scenarios <= FEW_TASKS {
        true => Scope::Suite,
        false => wanted,
    }
}

/// The effect of a term on a metric: scenario by scenario, on logs where all values allow it. Up to four scenarios always give
/// `suite`. None without a scenario that has runs under every combination.
pub fn metric_effect(
    scenarios: &[EffectRuns<Vec<f64>>],
    weights: &[f64],
    statistic: Statistic,
    scope: Scope,
    alpha: Level,
) -> Option<EffectEstimate> {
    let is_used = |place: usize| weights[place] != 0.0;
    let complete = |scenario: &EffectRuns<Vec<f64>>| -> Option<Vec<Option<Sample>>> {
        let samples = scenario.runs.iter().enumerate();
        samples
            .map(|(place, values)| match is_used(place) {
                true => Sample::new(values).map(Some),
                false => Some(None),
            })
            .collect()
    };
    let complete: Vec<Vec<Option<Sample>>> = scenarios.iter().filter_map(complete).collect();
    if effect_scope(scope, complete.len()) == Scope::Suite {
        return suite_metric_effect(&complete, weights, alpha);
    }
    let used = || complete.iter().flatten().flatten();
    let is_positive = used().all(|sample| statistic.of(sample) > 0.0);
    let scale = common_scale(used());
    let value = |sample: &Sample| match is_positive {
        true => libm::log(statistic.of(sample)),
        false => statistic.of(sample) * scale.inverse,
    };
    let effect = |samples: &Vec<Option<Sample>>| -> f64 {
        let terms = samples.iter().zip(weights);
        let terms = terms.filter_map(|(sample, weight)| Some(weight * value(sample.as_ref()?)));
        terms.sum()
    };
    let effects = Sample::new(&complete.iter().map(effect).collect::<Vec<f64>>())?;
    let se = effects.stddev() / sqrt(effects.count() as f64);
    let largest = effects.min().abs().max(effects.max().abs());
    let contrast = Contrast {
        mean: effects.mean(),
        se,
        df: (effects.count() - 1) as f64,
        unit: (!is_positive).then_some(scale.unit),
        varies: se > 1e-12 * largest,
        certain: false,
    };
    let plan_basis = metric_basis(&complete, weights, statistic, &effects, is_positive);
    Some(EffectEstimate {
        plan_basis: plan_basis.filter(|_| contrast.varies),
        ..contrast.estimate(Scope::Population, effects.count(), alpha)
    })
}

/// The contrast of a metric, on the scale on which it is tested.
struct Contrast {
    mean: f64,
    /// Standard error.
    se: f64,
    df: f64,
    /// The unit of a difference. Absent for ratios, which are tested on logs.
    unit: Option<f64>,
    /// The standard error is more than rounding.
    varies: bool,
    /// There is no error, so that the contrast is known.
    certain: bool,
}

impl Contrast {
    /// The estimate with its t-interval, without a basis of plans.
    fn estimate(&self, scope: Scope, scenarios: usize, alpha: Level) -> EffectEstimate {
        let Self { mean, se, df, .. } = *self;
        let reach = match self.varies {
            true => student_t_quantile(1.0 - alpha.value() / 2.0, df) * se,
            false => 0.0,
        };
        let shown = |effect: f64| match self.unit {
            None => finite((1.0 - exp(effect)) * 100.0),
            Some(unit) => finite(effect * unit),
        };
        let ends = [shown(mean - reach), shown(mean + reach)];
        let ci95 = [ends[0].min(ends[1]), ends[0].max(ends[1])];
        EffectEstimate {
            scope,
            measure: match self.unit {
                None => Measure::LogRatio,
                Some(_) => Measure::Difference,
            },
            value: shown(mean),
            ci95: self.varies.then_some(ci95),
            p_value: (self.varies).then(|| (2.0 * student_t_cdf(-(mean / se).abs(), df)).min(1.0)),
            certain: self.certain,
            scenarios,
            side: match self.varies || self.certain {
                true if mean - reach > 0.0 => 1,
                true if mean + reach < 0.0 => -1,
                _ => 0,
            },
            plan_basis: None,
        }
    }
}

/// The facts that a plan for a metric is made of. None for the difference of two differences.
fn metric_basis(
    complete: &[Vec<Option<Sample>>],
    weights: &[f64],
    statistic: Statistic,
    effects: &Sample,
    is_positive: bool,
) -> Option<PlanBasis> {
    if !is_single(weights) {
        return None;
    }
    let scale = common_scale(complete.iter().flatten().flatten());
    let unit = if is_positive { 1.0 } else { scale.unit };
    let (mut within2, mut inverse, mut cells, mut size) = (0.0, 0.0, 0.0, 0.0);
    for (place, weight) in weights
        .iter()
        .enumerate()
        .filter(|(_, weight)| **weight != 0.0)
    {
        let samples: Vec<&Sample> = complete
            .iter()
            .filter_map(|all| all[place].as_ref())
            .collect();
        let logs: Option<Vec<Sample>> = samples.iter().map(|sample| sample.logs()).collect();
        let variance = match (is_positive, &logs) {
            (true, Some(logs)) => variance_inside(logs.iter()),
            // A statistic above 0 of runs that touch it: all of the spread is booked as one between tasks.
            (true, None) => 0.0,
            (false, _) => variance_inside(samples.iter().copied()) * scale.inverse * scale.inverse,
        };
        within2 += weight * weight * variance;
        for sample in samples {
            inverse += 1.0 / sample.count() as f64;
            cells += 1.0;
            size += (-weight).max(0.0) * statistic.of(sample).abs() / unit;
        }
    }
    let spread = effects.stddev();
    Some(PlanBasis {
        components: Components::new(
            effects.count() as u64,
            cells / inverse,
            spread * spread,
            within2,
            statistic,
        ),
        measure: match is_positive {
            true => Measure::LogRatio,
            false => Measure::Difference,
        },
        unit,
        size: size / complete.len() as f64,
    })
}

/// Weights of one factor: the difference of two means, and not that of two such differences.
fn is_single(weights: &[f64]) -> bool {
    let up: f64 = weights.iter().filter(|weight| **weight > 0.0).sum();
    up < 1.0 + 1e-9
}

/// The effect on exactly these tasks: only the spread of runs inside them is error (Welch). Without two runs everywhere it has no
/// interval.
fn suite_metric_effect(
    complete: &[Vec<Option<Sample>>],
    weights: &[f64],
    alpha: Level,
) -> Option<EffectEstimate> {
    let used = || {
        let cells = complete
            .iter()
            .flat_map(|scenario| scenario.iter().zip(weights));
        cells.filter_map(|(sample, weight)| Some((sample.as_ref()?, *weight)))
    };
    let scenarios = complete.len() as f64;
    let is_positive = used().all(|(sample, _)| sample.min() > 0.0);
    let scale = common_scale(used().map(|(sample, _)| sample));
    let (mut mean, mut variance, mut spread, mut largest) = (0.0, 0.0, 0.0, 0.0_f64);
    let mut repeats = !complete.is_empty();
    for (sample, weight) in used() {
        let (value, error, size) = match is_positive {
            true => {
                let logs = sample.logs()?;
                let size = logs.min().abs().max(logs.max().abs());
                (logs.mean(), logs.standard_error(), size)
            }
            false => {
                let size = sample.min().abs().max(sample.max().abs());
                (
                    sample.mean() * scale.inverse,
                    sample.standard_error() * scale.inverse,
                    size * scale.inverse,
                )
            }
        };
        repeats &= sample.count() > 1;
        let share = weight / scenarios;
        let term = share * share * error * error;
        mean += share * value;
        variance += term;
        spread += term * term / (sample.count().max(2) - 1) as f64;
        largest = largest.max(size);
    }
    if complete.is_empty() {
        return None;
    }
    let se = sqrt(variance);
    let varies = repeats && se > 1e-12 * largest;
    let contrast = Contrast {
        mean,
        se,
        df: variance * variance / spread,
        unit: (!is_positive).then_some(scale.unit),
        varies,
        certain: repeats && !varies && mean.abs() > 1e-12 * largest,
    };
    Some(contrast.estimate(Scope::Suite, complete.len(), alpha))
}

/// The effect of a term on success, in points. Never trusts a spread below half of what chance inside the tasks makes, and allows
/// for kinds of tasks that were not seen. Up to four scenarios always give `suite`. None without a scenario that has judged trials
/// under every combination.
pub fn success_effect(
    scenarios: &[EffectRuns<Tally>],
    weights: &[f64],
    scope: Scope,
    alpha: Level,
) -> Option<EffectEstimate> {
    let is_complete = |scenario: &&EffectRuns<Tally>| {
        let runs = scenario.runs.iter().zip(weights);
        let mut used = runs.filter(|(_, weight)| **weight != 0.0);
        used.all(|(tally, _)| tally.trials() > 0)
    };
    let complete: Vec<&EffectRuns<Tally>> = scenarios.iter().filter(is_complete).collect();
    if effect_scope(scope, complete.len()) == Scope::Suite {
        return suite_success_effect(&complete, weights, alpha);
    }
    let effect = |scenario: &&EffectRuns<Tally>| -> f64 {
        let runs = scenario.runs.iter().zip(weights);
        let used = runs.filter(|(_, weight)| **weight != 0.0);
        used.map(|(tally, weight)| weight * tally.successes() as f64 / tally.trials() as f64)
            .sum()
    };
    let floor: f64 = weights
        .iter()
        .enumerate()
        .filter(|(_, weight)| **weight != 0.0)
        .map(|(place, weight)| {
            let tallies: Vec<Tally> = complete
                .iter()
                .map(|scenario| scenario.runs[place])
                .collect();
            weight * weight * chance_inside(&tallies)
        })
        .sum();
    let fit = TaskT::new(complete.iter().map(effect).collect(), floor / 2.0)?;
    let bounds = fit.capped_bounds(alpha.value()).bounds;
    let side = match () {
        () if bounds.lower > 0.0 => 1,
        () if bounds.upper < 0.0 => -1,
        () => 0,
    };
    // The largest effect that there can be: 1 for a factor, 2 for the difference of two differences.
    let most: f64 = weights.iter().filter(|weight| **weight > 0.0).sum();
    let unseen = match side {
        0 => most * unseen_share(complete.len(), alpha.value()),
        _ => 0.0,
    };
    let (lower, upper) = match side {
        0 => (bounds.lower.min(-unseen), bounds.upper.max(unseen)),
        _ => (bounds.lower, bounds.upper),
    };
    Some(EffectEstimate {
        scope: Scope::Population,
        measure: Measure::Difference,
        value: fit.mean * 100.0,
        ci95: Some([lower.max(-most) * 100.0, upper.min(most) * 100.0]),
        p_value: Some(fit.p_value()),
        certain: false,
        scenarios: complete.len(),
        side,
        plan_basis: is_single(weights).then(|| success_basis(&complete, weights, &fit, floor)),
    })
}

/// The facts that a plan for success is made of; `chance` is the variance of a task's effect by chance alone.
fn success_basis(
    complete: &[&EffectRuns<Tally>],
    weights: &[f64],
    fit: &TaskT,
    chance: f64,
) -> PlanBasis {
    let used = || {
        let cells = complete
            .iter()
            .flat_map(|scenario| scenario.runs.iter().zip(weights));
        cells.filter_map(|(tally, weight)| (*weight != 0.0).then_some(tally))
    };
    let cells = used().count() as f64;
    let repetitions = cells / used().map(|tally| 1.0 / tally.trials() as f64).sum::<f64>();
    let rates = used().filter_map(|tally| tally.rate());
    let components = Components::new(
        complete.len() as u64,
        repetitions,
        fit.variance,
        chance * repetitions,
        Statistic::Mean,
    );
    PlanBasis {
        components: components.with_success_rate(rates.sum::<f64>() / cells),
        measure: Measure::Difference,
        unit: 1.0,
        size: 1.0,
    }
}

/// The effect on exactly these tasks: the combinations on either side of the contrast are read as the tasks of two modes.
fn suite_success_effect(
    complete: &[&EffectRuns<Tally>],
    weights: &[f64],
    alpha: Level,
) -> Option<EffectEstimate> {
    let side = |is_meant: fn(f64) -> bool| -> Vec<Tally> {
        let of_scenario = |scenario: &&EffectRuns<Tally>| {
            let runs = scenario.runs.iter().zip(weights);
            let meant = runs.filter(|(_, weight)| is_meant(**weight));
            meant.map(|(tally, _)| *tally).collect::<Vec<Tally>>()
        };
        complete.iter().flat_map(of_scenario).collect()
    };
    let most: f64 = weights.iter().filter(|weight| **weight > 0.0).sum();
    let found = suite_sides(
        &side(|weight| weight > 0.0),
        &side(|weight| weight < 0.0),
        alpha,
    );
    let ends = found.lower.zip(found.upper);
    Some(EffectEstimate {
        scope: Scope::Suite,
        measure: Measure::Difference,
        value: found.estimate? * most * 100.0,
        ci95: ends.map(|(lower, upper)| [lower * most * 100.0, upper * most * 100.0]),
        p_value: found.p_value,
        certain: false,
        scenarios: complete.len(),
        side: match ends {
            Some((lower, _)) if lower > 0.0 => 1,
            Some((_, upper)) if upper < 0.0 => -1,
            _ => 0,
        },
        plan_basis: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switches(count: usize) -> Vec<Factor> {
        (0..count)
            .map(|number| Factor {
                name: format!("f{number}"),
                levels: vec!["off".into(), "on".into()],
            })
            .collect()
    }

    #[test]
    fn four_switches_fit_into_eight_runs_without_mixing_main_effects_with_pairs() {
        let design = Factorial::new(switches(4), FactorialRuns::Fraction(8)).unwrap();
        assert_eq!(design.runs.len(), 8);
        assert_eq!(design.runs[0], [0, 0, 0, 0]);
        for term in design.main_effects() {
            assert_eq!(design.aliases(&term), []);
            let weights = design.weights(&term).unwrap();
            assert!(weights.iter().sum::<f64>().abs() < 1e-12);
        }
        let pair = &design.interactions()[0];
        assert_eq!(design.aliases(pair).len(), 1);
        assert_eq!(design.name(pair), "f0 × f1");
    }

    #[test]
    fn every_fraction_is_balanced_and_starts_with_everything_off() {
        for (factors, runs) in [(3, 4), (5, 16), (5, 8), (6, 8), (6, 16), (7, 8), (7, 16)] {
            let design = Factorial::new(switches(factors), FactorialRuns::Fraction(runs)).unwrap();
            assert_eq!(design.runs[0], vec![0; factors]);
            let distinct: std::collections::BTreeSet<_> = design.runs.iter().collect();
            assert_eq!(distinct.len(), runs);
            for factor in 0..factors {
                let on = design.runs.iter().filter(|run| run[factor] == 1).count();
                assert_eq!(on * 2, runs, "{factors} in {runs}");
            }
            let main = design.main_effects();
            let mixed = |term: &EffectTerm| {
                design
                    .aliases(term)
                    .iter()
                    .any(|other| main.contains(other))
            };
            assert!(!main.iter().any(mixed), "{factors} in {runs}");
        }
    }

    #[test]
    fn impossible_designs_say_what_is_possible() {
        let error = Factorial::new(switches(4), FactorialRuns::Fraction(6)).unwrap_err();
        assert!(error.to_string().contains("expected one of 8"), "{error}");
        let mut three = switches(2);
        three[1].levels.push("more".into());
        assert_eq!(
            Factorial::new(three.clone(), FactorialRuns::Full)
                .unwrap()
                .runs
                .len(),
            6
        );
        assert!(Factorial::new(three, FactorialRuns::Fraction(4)).is_err());
        assert!(Factorial::new(switches(9), FactorialRuns::Full).is_err());
    }

    #[test]
    fn known_effects_are_found_again() {
        let design = Factorial::new(switches(4), FactorialRuns::Fraction(8)).unwrap();
        // The first switch halves, the second does nothing, the third and fourth only help together.
        let scenario = |number: usize| EffectRuns {
            runs: design
                .runs
                .iter()
                .map(|run| {
                    let noise =
                        1.0 + 0.01 * ((number * 7 + run[1] * 3 + run[0] * number) % 5) as f64;
                    let halved = if run[0] == 1 { 0.5 } else { 1.0 };
                    vec![1000.0 * halved * noise * (1.0 + number as f64)]
                })
                .collect::<Vec<_>>(),
        };
        let scenarios: Vec<_> = (0..8).map(scenario).collect();
        let effect = |term: &EffectTerm| {
            let weights = design.weights(term).unwrap();
            metric_effect(
                &scenarios,
                &weights,
                Statistic::Median,
                Scope::Population,
                Level::ALPHA_05,
            )
            .unwrap()
        };
        let main = design.main_effects();
        let first = effect(&main[0]);
        assert!((first.value - 50.0).abs() < 1.5, "{first:?}");
        assert_eq!((first.side, effect(&main[2]).side), (-1, 0));
    }

    #[test]
    fn success_has_effects_in_points() {
        let design = Factorial::new(switches(2), FactorialRuns::Full).unwrap();
        let scenario = |number: u64| EffectRuns {
            runs: design
                .runs
                .iter()
                .map(|run| Tally::new(3 + 4 * run[0] as u64 + number % 2, 10).unwrap())
                .collect::<Vec<_>>(),
        };
        let scenarios: Vec<_> = (0..10).map(scenario).collect();
        let weights = design.weights(&design.main_effects()[0]).unwrap();
        let found =
            success_effect(&scenarios, &weights, Scope::Population, Level::ALPHA_05).unwrap();
        assert!(
            (found.value - 40.0).abs() < 1e-9 && found.side == 1,
            "{found:?}"
        );
    }

    #[test]
    fn one_switch_on_few_tasks_is_the_comparison_of_two_modes() {
        let design = Factorial::new(switches(1), FactorialRuns::Full).unwrap();
        let weights = design.weights(&design.main_effects()[0]).unwrap();
        let counts = [[12, 18], [9, 15], [14, 14]];
        let tally = |passed: u64| Tally::new(passed, 20).unwrap();
        let scenarios = counts.map(|[off, on]| EffectRuns {
            runs: vec![tally(off), tally(on)],
        });
        let found =
            success_effect(&scenarios, &weights, Scope::Population, Level::ALPHA_05).unwrap();
        let side = |place: usize| counts.map(|counts| tally(counts[place]));
        let same = crate::suite_difference(&side(1), &side(0), Level::ALPHA_05).unwrap();
        assert_eq!(found.scope, Scope::Suite);
        assert!((found.value - 100.0 * same.estimate.unwrap()).abs() < 1e-9);
        assert!((found.ci95.unwrap()[0] - 100.0 * same.lower.unwrap()).abs() < 1e-9);
        assert_eq!(found.p_value, same.p_value);

        let runs = |shift: f64| vec![10.0 + shift, 12.0 + shift, 11.5 + 2.0 * shift];
        let scenarios: Vec<_> = [0.0, 3.0]
            .map(|task| EffectRuns {
                runs: vec![runs(task), runs(task + 4.0)],
            })
            .into();
        let found = metric_effect(
            &scenarios,
            &weights,
            Statistic::Median,
            Scope::Population,
            Level::ALPHA_05,
        );
        let found = found.unwrap();
        let pairs = |place: usize| {
            let runs = scenarios.iter();
            runs.map(|scenario| scenario.runs[place].clone())
                .collect::<Vec<_>>()
        };
        let options = crate::PairedOptions {
            scope: Scope::Suite,
            ..Default::default()
        };
        let same = crate::paired_log_ratio(&pairs(1), &pairs(0), &options).unwrap();
        assert!((found.value - same.reduction_pct.unwrap()).abs() < 1e-9);
        assert!((found.ci95.unwrap()[0] - same.lower.unwrap()).abs() < 1e-9);
        assert!((found.p_value.unwrap() - same.p_value.unwrap()).abs() < 1e-12);
    }
}
