//! Stopping early without cheating: the level that every look at growing data is held to.
//!
//! A look gets a p-value that already pays for all looks: the smallest error rate of the whole design at which this look
//! would have decided. Such p-values are adjusted for several questions like any others.

use libm::{exp, sqrt};

use crate::design::Components;
use crate::interval::{Level, Scope};
use crate::special::{normal_cdf, normal_quantile, student_t_quantile};

/// Nodes of the integration over the values that go on.
const NODES: usize = 64;
/// Looks closer together than this share of all information count as one.
const SAME_LOOK: f64 = 0.004;

/// The rule that spreads the error rate over the looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spending {
    /// Almost nothing early, almost all at the end (Lan and DeMets' version of O'Brien and Fleming).
    ObrienFleming,
    /// About the same at every look (their version of Pocock).
    Pocock,
}

impl Spending {
    /// The two-sided error rate spent up to a share of the information.
    pub fn spent(self, fraction: f64, alpha: f64) -> f64 {
        let fraction = fraction.clamp(0.0, 1.0);
        if fraction == 0.0 {
            return 0.0;
        }
        match self {
            Self::ObrienFleming => 4.0 * normal_cdf(normal_quantile(alpha / 4.0) / sqrt(fraction)),
            Self::Pocock => alpha * libm::log1p((std::f64::consts::E - 1.0) * fraction),
        }
    }
}

/// The bounds |z| of looks at these shares of the information, two-sided, with error rate `alpha` over all of them.
/// Shares must rise; a share hardly above the one before is held to the same bound.
pub fn boundaries(spending: Spending, fractions: &[f64], alpha: Level) -> Vec<f64> {
    let mut bounds: Vec<f64> = Vec::with_capacity(fractions.len());
    let mut walk: Option<Walk> = None;
    // The last look and its bound, of which a walk is made only when another look follows: that is the dear part.
    let mut last: Option<(f64, f64)> = None;
    let mut spent = 0.0;
    for &fraction in fractions {
        let fraction = fraction.clamp(1e-9, 1.0);
        if let (Some(bound), Some((before, reach))) = (bounds.last().copied(), last) {
            if fraction - before < SAME_LOOK {
                bounds.push(bound);
                continue;
            }
            walk = Some(match &walk {
                None => Walk::first(before, reach),
                Some(walk) => walk.on_to(before, reach),
            });
        }
        let target = spending.spent(fraction, alpha.value());
        let share = (target - spent).max(1e-300);
        let reach = match &walk {
            None => -normal_quantile(share / 2.0) * sqrt(fraction),
            Some(walk) => walk.reach(fraction, share),
        };
        last = Some((fraction, reach));
        spent = target;
        bounds.push(reach / sqrt(fraction));
    }
    bounds
}

/// The density of paths that no look has stopped yet, on nodes between zero and the upper bound of the last look. Below zero it is
/// the same mirrored, since paths have no preferred side.
struct Walk {
    fraction: f64,
    nodes: Vec<Node>,
}

struct Node {
    at: f64,
    /// Density times the weight of the node.
    mass: f64,
}

impl Walk {
    fn first(fraction: f64, reach: f64) -> Self {
        let density = |at: f64| normal_density(at / sqrt(fraction)) / sqrt(fraction);
        Self {
            fraction,
            nodes: nodes_between(reach, density),
        }
    }

    fn on_to(&self, fraction: f64, reach: f64) -> Self {
        let step = sqrt(fraction - self.fraction);
        let density = |at: f64| {
            let from = |node: &Node| {
                let (near, far) = ((at - node.at) / step, (at + node.at) / step);
                node.mass * (normal_density(near) + normal_density(far))
            };
            self.nodes.iter().map(from).sum::<f64>() / step
        };
        Self {
            fraction,
            nodes: nodes_between(reach, density),
        }
    }

    /// The bound that paths cross with this probability: Newton's method on the logarithm, which is nearly a parabola, inside a
    /// bracket that every step narrows.
    fn reach(&self, fraction: f64, share: f64) -> f64 {
        let step = sqrt(fraction - self.fraction);
        let crossing = |reach: f64| -> (f64, f64) {
            let (mut sum, mut slope) = (0.0, 0.0);
            for node in &self.nodes {
                let (up, down) = ((node.at - reach) / step, (-node.at - reach) / step);
                // Once for each bound.
                sum += 2.0 * node.mass * (normal_cdf(up) + normal_cdf(down));
                slope -= 2.0 * node.mass * (normal_density(up) + normal_density(down)) / step;
            }
            (sum, slope)
        };
        let wanted = libm::log(share);
        let (mut low, mut high) = (0.0, 12.0 * sqrt(fraction));
        let mut reach = high / 5.0;
        for _ in 0..100 {
            let (sum, slope) = crossing(reach);
            if sum > share {
                low = reach;
            } else {
                high = reach;
            }
            let newton = reach - (libm::log(sum) - wanted) * sum / slope;
            let next = match newton > low && newton < high {
                true => newton,
                false => (low + high) / 2.0,
            };
            let is_found = (next - reach).abs() < 1e-9;
            reach = next;
            if is_found {
                break;
            }
        }
        reach
    }
}

fn normal_density(x: f64) -> f64 {
    exp(-x * x / 2.0) / sqrt(2.0 * std::f64::consts::PI)
}

/// The upper half of the Gauss-Legendre nodes between both bounds, with the density there.
fn nodes_between(reach: f64, density: impl Fn(f64) -> f64) -> Vec<Node> {
    let (points, weights) = legendre();
    // They begin with the highest.
    let pairs = points.iter().zip(weights).take(NODES / 2);
    let node = |(point, weight): (&f64, &f64)| Node {
        at: reach * point,
        mass: reach * weight * density(reach * point),
    };
    pairs.map(node).collect()
}

/// Nodes and weights of Gauss-Legendre integration over -1 to 1, by Newton's method on the polynomial.
fn legendre() -> (&'static [f64], &'static [f64]) {
    static TABLE: std::sync::OnceLock<(Vec<f64>, Vec<f64>)> = std::sync::OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let n = NODES as f64;
        let (mut points, mut weights) = (vec![0.0; NODES], vec![0.0; NODES]);
        for place in 0..NODES {
            let mut x = libm::cos(std::f64::consts::PI * (place as f64 + 0.75) / (n + 0.5));
            let mut slope = 1.0;
            for _ in 0..100 {
                let (mut value, mut before) = (1.0, 0.0);
                for degree in 0..NODES {
                    let k = degree as f64;
                    let next = ((2.0 * k + 1.0) * x * value - k * before) / (k + 1.0);
                    (before, value) = (value, next);
                }
                slope = n * (x * value - before) / (x * x - 1.0);
                let step = value / slope;
                x -= step;
                if step.abs() < 1e-15 {
                    break;
                }
            }
            points[place] = x;
            weights[place] = 2.0 / ((1.0 - x * x) * slope * slope);
        }
        (points, weights)
    });
    (&table.0, &table.1)
}

/// The smallest error rate of the whole design at which a look with this p-value decides. The last share is that of the look.
pub fn sequential_p(spending: Spending, p: f64, fractions: &[f64]) -> f64 {
    if fractions.is_empty() || p >= 1.0 || p.is_nan() {
        return 1.0;
    }
    let p = p.max(1e-300);
    let wanted = -normal_quantile(p / 2.0);
    if wanted <= 0.0 {
        return 1.0;
    }
    // Bounds fall as the error rate rises; halving the gap between their logarithms finds the rate.
    let bound = |alpha: f64| {
        let level = Level::new(alpha).unwrap_or(Level::ALPHA_05);
        boundaries(spending, fractions, level)
            .last()
            .copied()
            .unwrap_or(f64::INFINITY)
    };
    let (low, high) = (p.min(0.5), 0.999);
    let (at_low, at_high) = (bound(low), bound(high));
    if at_high > wanted {
        return 1.0;
    }
    if at_low <= wanted {
        return low;
    }
    let mut rates = Rates {
        low,
        high,
        at_low,
        at_high,
        wanted,
    };
    rates.close_in(&bound);
    let decides = |rate: f64| match rate {
        _ if rate >= rates.high => true,
        _ if rate <= rates.low => false,
        _ => bound(rate) <= wanted,
    };
    halve((low, high), decides).min(1.0)
}

/// Halves the gap between the logarithms of two rates, of which only the higher one decides, and gives the higher one at the end.
fn halve((mut low, mut high): (f64, f64), decides: impl Fn(f64) -> bool) -> f64 {
    while high / low > 1.0005 {
        let middle = sqrt(low * high);
        if decides(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Two error rates with the wanted bound between theirs.
struct Rates {
    low: f64,
    high: f64,
    at_low: f64,
    at_high: f64,
    wanted: f64,
}

impl Rates {
    /// Moves both rates close to the one with the wanted bound. A bound is dear to work out and nearly a straight line in the
    /// normal quantile of its rate: a few secants spare most of the halving.
    fn close_in(&mut self, bound: &impl Fn(f64) -> f64) {
        for nudge in [1.0, 1.0 + NEAR, 1.0 - NEAR] {
            let rate = self.secant() * nudge;
            // Rounding may put it on or beyond an end.
            if rate <= self.low || rate >= self.high {
                continue;
            }
            let at = bound(rate);
            if at <= self.wanted {
                (self.high, self.at_high) = (rate, at);
            } else {
                (self.low, self.at_low) = (rate, at);
            }
        }
    }

    fn secant(&self) -> f64 {
        let quantile = |rate: f64| -normal_quantile(rate / 2.0);
        let share = (self.at_low - self.wanted) / (self.at_low - self.at_high);
        let (from, to) = (quantile(self.low), quantile(self.high));
        2.0 * normal_cdf(-(from + share * (to - from)))
    }
}

/// The distance from the expected rate at which the ends are searched: less than what halving leaves uncertain, more
/// than the error of a secant.
const NEAR: f64 = 2e-4;

/// The right-Haar t e-value of a t statistic of `n` values: evidence that may be looked at after every one of them. `c2` is
/// the prior's weight; 1 suits medium effects.
pub fn t_e_value(t: f64, n: f64, c2: f64) -> f64 {
    if n < 2.0 {
        return 1.0;
    }
    let (nu, r) = (n - 1.0, c2 / (n + c2));
    let t2 = t * t;
    if !t2.is_finite() {
        return sqrt(r) * libm::pow(1.0 / r, (nu + 1.0) / 2.0);
    }
    let ratio = (1.0 + t2 / nu) / (1.0 + r * t2 / nu);
    sqrt(r) * libm::pow(ratio, (nu + 1.0) / 2.0)
}

/// The p-value that holds at any look, from an ordinary two-sided one over `n` values.
pub fn anytime_p(p: f64, n: f64) -> f64 {
    if n < 2.0 || p >= 1.0 || p.is_nan() {
        return 1.0;
    }
    let t = -student_t_quantile(p.max(1e-300) / 2.0, n - 1.0);
    (1.0 / t_e_value(t, n, 1.0)).min(1.0)
}

/// The p-value that holds at any look, from rounds of values between 0 and 1 whose mean is 1/2 without a difference: one over
/// the mean capital of two gamblers who bet on either side.
pub fn anytime_p_of_rounds(rounds: &[f64]) -> Option<f64> {
    let options = crate::sequential::BettingOptions::default();
    let mut least: f64 = 1.0;
    // Evidence once reached stays, so the best of all looks counts.
    for look in 1..=rounds.len() {
        let capital = crate::sequential::betting_capital(&rounds[..look], &[0.5], &options).ok()?;
        let found = capital.first()?;
        let mean = (exp(found.log_capital_up) + exp(found.log_capital_down)) / 2.0;
        least = least.min(1.0 / mean);
    }
    Some(least)
}

/// The looks at a run so far, and how verdicts pay for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Stopping {
    /// One look, at the end.
    #[default]
    Once,
    /// Looks that were not declared: p-values are multiplied by their number, this one included.
    Undeclared {
        /// Looks at different states of the data, this one included.
        looks: u32,
    },
    /// Declared looks, at most up to so many rounds of all scenarios.
    GroupSequential {
        /// Rounds that were complete at each earlier look.
        earlier_rounds: Vec<f64>,
        /// The planned end.
        max_rounds: f64,
    },
    /// Any number of looks.
    Anytime {
        /// Rounds of pairs of modes for success: per round (mean over scenarios of A - B, plus 1) / 2.
        success: Vec<PairRounds>,
    },
}

/// The rounds of one pair of modes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairRounds {
    /// The candidate.
    pub mode_a: String,
    /// The mode it is compared with.
    pub mode_b: String,
    /// One value between 0 and 1 per complete round; 1/2 means no difference.
    pub rounds: Vec<f64>,
}

/// The looks that comparisons pay for, and those that earlier ones decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Looks {
    /// The rule by which verdicts pay.
    pub stopping: Stopping,
    /// Comparisons that an earlier declared look decided: that look counts for them.
    pub decided: Vec<Decided>,
}

/// A comparison that was decided by an earlier look.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// The candidate.
    pub mode_a: String,
    /// The mode it was compared with.
    pub mode_b: String,
    pub metric: String,
    /// The p-value that paid for the looks until then.
    pub p: f64,
}

impl Looks {
    /// The p-value of a metric that pays for all looks.
    pub fn pay(&self, p: Option<f64>, of: &Asked<'_>, facts: &LookFacts) -> Option<f64> {
        self.not_above_earlier(of, p.map(|p| self.stopping.pay(p, facts)))
    }

    /// The same for success.
    pub fn pay_success(&self, p: Option<f64>, of: &Asked<'_>, facts: &LookFacts) -> Option<f64> {
        let modes = [of.mode_a, of.mode_b];
        let now = p.map(|p| self.stopping.pay_success(p, modes, facts));
        self.not_above_earlier(of, now)
    }

    /// A decision of an earlier look is kept.
    fn not_above_earlier(&self, of: &Asked<'_>, now: Option<f64>) -> Option<f64> {
        let is_meant = |known: &&Decided| {
            known.mode_a == of.mode_a && known.mode_b == of.mode_b && known.metric == of.metric
        };
        let before = self.decided.iter().find(is_meant).map(|known| known.p);
        match (before, now) {
            (Some(before), Some(now)) => Some(before.min(now)),
            (before, now) => before.or(now),
        }
    }
}

/// One question: a metric of a pair of modes.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The candidate.
    pub mode_a: &'a str,
    /// The mode it is compared with.
    pub mode_b: &'a str,
    pub metric: &'a str,
}

/// The facts about one comparison that its look is judged by.
#[derive(Clone, Copy, Debug)]
pub struct LookFacts {
    /// The tasks that its verdict applies to.
    pub scope: Scope,
    pub scenarios: u64,
    /// Rounds that are complete.
    pub rounds: f64,
    /// The variances met, where they are known.
    pub components: Option<Components>,
}

impl LookFacts {
    /// The share of all information that so many rounds hold. Scenarios that surely differ hold most of it early; without that
    /// certainty, information grows with the rounds. One round cannot separate differences between scenarios from those between runs.
    pub fn fraction(&self, rounds: f64, max_rounds: f64) -> f64 {
        let by_rounds = (rounds / max_rounds).clamp(0.0, 1.0);
        let known = match (self.scope, &self.components) {
            (Scope::Population, Some(components)) if self.rounds >= 2.0 => {
                let [sure, _] = components.range();
                let now = sure.per_scenario(rounds);
                (now > 0.0).then(|| sure.per_scenario(max_rounds) / now)
            }
            _ => None,
        };
        known.map_or(by_rounds, |known| known.clamp(by_rounds, 1.0))
    }
}

impl Stopping {
    /// The p-value of this look that pays for all looks.
    pub fn pay(&self, p: f64, facts: &LookFacts) -> f64 {
        match self {
            Self::Once => p,
            Self::Undeclared { looks } => (p * f64::from((*looks).max(1))).min(1.0),
            Self::GroupSequential {
                earlier_rounds,
                max_rounds,
            } => {
                let fractions = fractions(earlier_rounds, *max_rounds, facts);
                sequential_p(Spending::ObrienFleming, p, &fractions).max(p)
            }
            Self::Anytime { .. } => {
                let n = match facts.scope {
                    Scope::Population => facts.scenarios as f64,
                    Scope::Suite => facts.rounds,
                };
                anytime_p(p, n).max(p)
            }
        }
    }

    /// True if a look with this p-value decides at the error rate of the whole design: the same as paying, and quicker.
    pub fn decides(&self, p: f64, facts: &LookFacts, alpha: Level) -> bool {
        match self {
            Self::GroupSequential {
                earlier_rounds,
                max_rounds,
            } => {
                let fractions = fractions(earlier_rounds, *max_rounds, facts);
                let bounds = boundaries(Spending::ObrienFleming, &fractions, alpha);
                let bound = bounds.last().copied().unwrap_or(f64::INFINITY);
                p <= 2.0 * normal_cdf(-bound)
            }
            _ => self.pay(p, facts) <= alpha.value(),
        }
    }

    /// The p-value of success: `anytime` bets on rounds where they are known.
    pub fn pay_success(&self, p: f64, pair: [&str; 2], facts: &LookFacts) -> f64 {
        if let Self::Anytime { success } = self {
            let is_meant = |known: &&PairRounds| [&*known.mode_a, &*known.mode_b] == pair;
            let rounds = success.iter().find(is_meant);
            if let Some(found) = rounds.and_then(|known| anytime_p_of_rounds(&known.rounds)) {
                return found;
            }
        }
        self.pay(p, facts)
    }

    /// Looks that verdicts pay for, this one included.
    pub fn looks(&self) -> u32 {
        match self {
            Self::Once | Self::Anytime { .. } => 1,
            Self::Undeclared { looks } => *looks,
            Self::GroupSequential { earlier_rounds, .. } => earlier_rounds.len() as u32 + 1,
        }
    }
}

/// The shares of information at all looks, this one last. They never fall.
fn fractions(earlier_rounds: &[f64], max_rounds: f64, facts: &LookFacts) -> Vec<f64> {
    let share = |rounds: f64| facts.fraction(rounds, max_rounds);
    let earlier = earlier_rounds
        .iter()
        .filter(|rounds| **rounds < facts.rounds);
    let mut fractions: Vec<f64> = earlier.map(|rounds| share(*rounds)).collect();
    fractions.push(share(facts.rounds));
    for place in 1..fractions.len() {
        fractions[place] = fractions[place].max(fractions[place - 1]);
    }
    fractions
}

/// The chance that a comparison is still decided at the planned end if the true effect is `delta` in the direction of the
/// estimate or against it, whichever is larger. `p` is the two-sided p-value now; `alpha` the level of the last look.
pub fn conditional_power(
    p: f64,
    delta: f64,
    facts: &LookFacts,
    max_rounds: f64,
    alpha: Level,
) -> f64 {
    let Some(components) = &facts.components else {
        return 1.0;
    };
    let end = components.per_scenario(max_rounds) / facts.scenarios as f64;
    if end <= 0.0 || delta <= 0.0 || end.is_nan() {
        return 1.0;
    }
    let share = (components.per_scenario(max_rounds) / components.per_scenario(facts.rounds))
        .clamp(0.0, 1.0);
    if share >= 1.0 - 1e-9 {
        return if p <= alpha.value() { 1.0 } else { 0.0 };
    }
    let z = -normal_quantile((p / 2.0).clamp(1e-300, 0.5));
    let drift = delta / sqrt(end);
    let bound = -normal_quantile(alpha.value() / 2.0);
    let chance = |z: f64| {
        let so_far = z * sqrt(share);
        normal_cdf((so_far + drift * (1.0 - share) - bound) / sqrt(1.0 - share))
    };
    chance(z).max(chance(-z))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusted_p_values_are_those_of_halving_alone() {
        for fractions in [&[0.2, 0.4, 0.6, 0.8, 1.0][..], &[0.1, 0.35, 0.9], &[0.5]] {
            for p in [1e-12, 1e-4, 0.003, 0.02, 0.04, 0.2, 0.6, 0.97] {
                let spending = Spending::ObrienFleming;
                let wanted = -normal_quantile(p / 2.0);
                let decides = |rate: f64| {
                    let bounds = boundaries(spending, fractions, Level::new(rate).unwrap());
                    *bounds.last().unwrap() <= wanted
                };
                let (low, high) = (f64::min(p, 0.5), 0.999);
                let expected = match (decides(low), decides(high)) {
                    (true, _) => low,
                    (_, false) => 1.0,
                    _ => halve((low, high), decides),
                };
                assert_eq!(
                    sequential_p(spending, p, fractions),
                    expected,
                    "{p} {fractions:?}"
                );
            }
        }
    }

    #[test]
    fn one_look_pays_nothing() {
        assert!((sequential_p(Spending::ObrienFleming, 0.03, &[1.0]) - 0.03).abs() < 1e-4);
    }

    #[test]
    fn early_looks_cost_more_than_the_last() {
        let paid = |fractions: &[f64]| sequential_p(Spending::ObrienFleming, 0.01, fractions);
        assert!(paid(&[0.2]) > paid(&[0.2, 0.4]));
        assert!(paid(&[0.2, 0.4, 0.6, 0.8, 1.0]) < 0.015);
        assert!(paid(&[0.2, 0.4, 0.6, 0.8, 1.0]) > 0.01);
    }

    #[test]
    fn a_paid_p_value_is_at_its_bound() {
        let fractions = [0.25, 0.5, 0.75];
        let paid = sequential_p(Spending::ObrienFleming, 0.004, &fractions);
        let bounds = boundaries(
            Spending::ObrienFleming,
            &fractions,
            Level::new(paid).unwrap(),
        );
        let p = 2.0 * normal_cdf(-bounds[2]);
        assert!((p - 0.004).abs() < 2e-5, "{p}");
    }

    #[test]
    fn one_round_holds_its_share_of_the_rounds() {
        let components = Components::new(8, 1.0, 0.3, 0.0, crate::statistic::Statistic::Mean);
        let facts = |rounds: f64| LookFacts {
            scope: Scope::Population,
            scenarios: 8,
            rounds,
            components: Some(components),
        };
        assert_eq!(facts(1.0).fraction(1.0, 10.0), 0.1);
        assert!(facts(2.0).fraction(2.0, 10.0) > 0.9);
    }

    #[test]
    fn a_hopeless_comparison_has_no_conditional_power() {
        let facts = LookFacts {
            scope: Scope::Population,
            scenarios: 10,
            rounds: 8.0,
            components: Some(Components::new(
                10,
                8.0,
                0.2,
                0.1,
                crate::statistic::Statistic::Mean,
            )),
        };
        assert!(conditional_power(0.9, 0.05, &facts, 10.0, Level::ALPHA_05) < 0.1);
        assert!(conditional_power(0.04, 0.5, &facts, 40.0, Level::ALPHA_05) > 0.3);
    }
}
