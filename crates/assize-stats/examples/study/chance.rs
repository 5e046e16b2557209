//! Random numbers of one simulation, and shares over many.

use assize_stats::Tally;
use assize_stats::special::normal_quantile;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use crate::Arguments;

/// The number of tasks, and of runs of each under each mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) tasks: usize,
    pub(crate) runs: usize,
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} x {}", self.tasks, self.runs)
    }
}

/// Source of chance of one simulation.
pub(crate) struct Chance(Xoshiro256PlusPlus);

impl Chance {
    pub(crate) fn new(seed: u64, cell: &str, simulation: u64) -> Self {
        let mix =
            |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let hash = cell
            .bytes()
            .chain(simulation.to_le_bytes())
            .fold(seed ^ 0xcbf2_9ce4_8422_2325, mix);
        Self(Xoshiro256PlusPlus::seed_from_u64(hash))
    }

    pub(crate) fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn index(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }

    pub(crate) fn normal(&mut self) -> f64 {
        normal_quantile(self.unit())
    }

    pub(crate) fn tally(&mut self, rate: f64, runs: usize) -> Tally {
        let passed = (0..runs).filter(|_| self.unit() < rate).count();
        Tally::new(passed as u64, runs as u64).expect("passed runs are among the runs")
    }

    /// A count of rare events with this mean (Knuth's method).
    pub(crate) fn poisson(&mut self, mean: f64) -> f64 {
        let limit = libm::exp(-mean);
        let (mut product, mut events) = (self.unit(), 0.0);
        while product > limit {
            product *= self.unit();
            events += 1.0;
        }
        events
    }
}

/// For each of `N` claims, the share of simulations in which it came out.
pub(crate) fn shares<const N: usize>(
    arguments: &Arguments,
    cell: &str,
    simulate: impl Fn(&mut Chance) -> [bool; N] + Sync,
) -> [f64; N] {
    let add =
        |left: [u64; N], right: [u64; N]| std::array::from_fn(|place| left[place] + right[place]);
    let total = (0..arguments.simulations)
        .into_par_iter()
        .map(|simulation| {
            let mut chance = Chance::new(arguments.seed, cell, simulation);
            simulate(&mut chance).map(u64::from)
        })
        .reduce(|| [0; N], add);
    total.map(|count| count as f64 / arguments.simulations as f64)
}

/// A share in percent with one digit.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// The lowest and the highest of some shares, in percent.
pub(crate) fn range(shares: impl IntoIterator<Item = f64>) -> String {
    let (low, high) = shares
        .into_iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), share| {
            (low.min(share), high.max(share))
        });
    match percent(low) == percent(high) {
        true => percent(low),
        false => format!("{} to {}", percent(low), percent(high)),
    }
}
