//! Random data with a known truth.

use assize_stats::Tally;
use assize_stats::special::{beta_quantile, normal_quantile};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The number of scenarios, and of runs of each under each mode.
#[derive(Clone, Copy)]
pub(crate) struct Design {
    pub(crate) scenarios: usize,
    pub(crate) repetitions: usize,
}

pub(crate) const DESIGNS: [Design; 4] = [
    Design {
        scenarios: 5,
        repetitions: 3,
    },
    Design {
        scenarios: 5,
        repetitions: 10,
    },
    Design {
        scenarios: 10,
        repetitions: 3,
    },
    Design {
        scenarios: 10,
        repetitions: 10,
    },
];

/// Spread of runs inside a scenario, on the log scale.
pub(crate) const INSIDE: f64 = 0.4;
/// Spread between scenarios, on the log scale.
pub(crate) const BETWEEN: f64 = 0.6;
/// ln of the typical value.
pub(crate) const LEVEL: f64 = 5.0;

/// Spread of the mode's effect between scenarios, on the log scale.
pub(crate) const EFFECT_SPREAD: f64 = 0.15;
/// The difference that a gate tolerates.
pub(crate) const MARGIN: f64 = 0.1;

/// True when an interval holds the truth.
pub(crate) fn holds(lower: f64, upper: f64, truth: f64) -> bool {
    lower <= truth && truth <= upper
}

/// Source of chance of one simulation.
pub(crate) struct World(Xoshiro256PlusPlus);

impl World {
    pub(crate) fn new(seed: u64, study: &str, simulation: u64) -> Self {
        let mix =
            |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let hash = study
            .bytes()
            .chain(simulation.to_le_bytes())
            .fold(seed ^ 0xcbf2_9ce4_8422_2325, mix);
        Self(Xoshiro256PlusPlus::seed_from_u64(hash))
    }

    pub(crate) fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Methods must not share their draws between simulations, or all of them share one error.
    pub(crate) fn seed(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub(crate) fn normal(&mut self) -> f64 {
        normal_quantile(self.unit())
    }

    /// Mean 0, standard deviation 1, long to the right.
    pub(crate) fn skewed(&mut self) -> f64 {
        -libm::log(self.unit()) - 1.0
    }

    /// Between half of the planned runs, but at least 2, and all of them.
    pub(crate) fn some_lost(&mut self, planned: usize) -> usize {
        let least = (planned / 2).max(2);
        least + (self.unit() * (planned + 1 - least) as f64) as usize
    }

    /// Between 2 runs and nearly twice the planned number.
    pub(crate) fn very_unequal(&mut self, planned: usize) -> usize {
        2 + (self.unit() * (2 * planned - 3) as f64) as usize
    }

    /// Log-normal runs around a level on the log scale.
    pub(crate) fn runs(&mut self, level: f64, count: usize) -> Vec<f64> {
        (0..count)
            .map(|_| libm::exp(level + INSIDE * self.normal()))
            .collect()
    }

    /// The success probability of a scenario, with the mean and the correlation of repeated trials; `share` says
    /// where among all scenarios it stands, so that two modes can share their hard scenarios.
    pub(crate) fn difficulty(mean: f64, correlation: f64, share: f64) -> f64 {
        let size = 1.0 / correlation - 1.0;
        beta_quantile(share, mean * size, (1.0 - mean) * size)
    }

    pub(crate) fn tally(&mut self, probability: f64, trials: usize) -> Tally {
        let successes = (0..trials).filter(|_| self.unit() < probability).count();
        Tally::new(successes as u64, trials as u64).expect("successes are among the trials")
    }
}
