//! Experiments with known truth: scenarios whose effects differ by `omega`, runs that vary by `sigma`.

use assize_stats::special::student_t_cdf;
use assize_stats::{Components, Level, LookFacts, Question, Scope, Statistic, Stopping};

/// One kind of experiment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// Scenarios.
    pub(crate) scenarios: usize,
    /// Looks, evenly spread.
    pub(crate) looks: u32,
    /// Most rounds.
    pub(crate) most: u32,
    /// The true effect, a log ratio.
    pub(crate) delta: f64,
    /// Its standard deviation between scenarios.
    pub(crate) omega: f64,
    /// The standard deviation of single runs in one mode.
    pub(crate) sigma: f64,
}

/// The rule by which looks are paid for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// Not at all.
    None,
    /// `obrien-fleming`.
    ObrienFleming,
    /// `anytime`.
    Anytime,
}

/// The results of many experiments.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Share in which a look decided.
    pub(crate) decided: f64,
    /// Rounds that were run on average.
    pub(crate) mean_rounds: f64,
}

/// A small random source, the same on every platform.
pub(crate) struct Random(u64);

impl Random {
    /// From a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A standard normal value.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }
}

/// The runs of one experiment: per scenario the differences of its rounds, A minus B.
struct Experiment {
    rounds: Vec<Vec<f64>>,
}

impl Experiment {
    fn draw(setting: &Setting, random: &mut Random) -> Self {
        let scenario = |_| {
            let effect = setting.delta + setting.omega * random.normal();
            (0..setting.most)
                .map(|_| effect + setting.sigma * (random.normal() - random.normal()))
                .collect()
        };
        Self {
            rounds: (0..setting.scenarios).map(scenario).collect(),
        }
    }

    /// The variances and the p-value after so many rounds.
    fn look(&self, rounds: usize) -> (Components, f64) {
        let count = self.rounds.len() as f64;
        let means: Vec<f64> = self
            .rounds
            .iter()
            .map(|all| all[..rounds].iter().sum::<f64>() / rounds as f64)
            .collect();
        let mean = means.iter().sum::<f64>() / count;
        let spread2 = means.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / (count - 1.0);
        let inside = self.rounds.iter().zip(&means).map(|(all, mean)| {
            all[..rounds]
                .iter()
                .map(|d| (d - mean) * (d - mean))
                .sum::<f64>()
        });
        let df = count * (rounds as f64 - 1.0);
        let within2 = if df > 0.0 {
            inside.sum::<f64>() / df
        } else {
            0.0
        };
        let t = mean / (spread2 / count).sqrt();
        let p = 2.0 * student_t_cdf(-t.abs(), count - 1.0);
        let components = Components::new(
            self.rounds.len() as u64,
            rounds as f64,
            spread2,
            within2,
            Statistic::Mean,
        );
        (components, p)
    }
}

/// Runs experiments that stop as soon as a look decides at 5 %.
pub(crate) fn sequential(setting: &Setting, rule: Rule, experiments: u32, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let (mut decided, mut rounds_run) = (0_u32, 0_u64);
    for _ in 0..experiments {
        let experiment = Experiment::draw(setting, &mut random);
        let mut earlier: Vec<f64> = Vec::new();
        let mut ended = setting.most;
        for look in 1..=setting.looks {
            let rounds = (look * setting.most).div_ceil(setting.looks);
            let (components, p) = experiment.look(rounds as usize);
            let facts = LookFacts {
                scope: Scope::Population,
                scenarios: setting.scenarios as u64,
                rounds: f64::from(rounds),
                components: Some(components),
            };
            let stopping = match rule {
                Rule::None => Stopping::Once,
                Rule::ObrienFleming => Stopping::GroupSequential {
                    earlier_rounds: earlier.clone(),
                    max_rounds: f64::from(setting.most),
                },
                Rule::Anytime => Stopping::Anytime {
                    success: Vec::new(),
                },
            };
            earlier.push(f64::from(rounds));
            // Paying never makes a p-value smaller.
            if p <= 0.05 && stopping.decides(p, &facts, Level::ALPHA_05) {
                decided += 1;
                ended = rounds;
                break;
            }
        }
        rounds_run += u64::from(ended);
    }
    Outcome {
        decided: f64::from(decided) / f64::from(experiments),
        mean_rounds: rounds_run as f64 / f64::from(experiments),
    }
}

/// The share of pilots whose range of needed scenarios holds the true need.
pub(crate) fn need_in_range(
    setting: &Setting,
    delta: f64,
    repetitions: u32,
    pilots: u32,
    seed: u64,
) -> f64 {
    let question = Question {
        delta,
        alpha: Level::ALPHA_05,
        power: Level::POWER_80,
    };
    let truth = Components {
        scenarios: setting.scenarios as u64,
        repetitions: f64::from(repetitions),
        spread2: 0.0,
        omega2: setting.omega * setting.omega,
        within2: 2.0 * setting.sigma * setting.sigma,
        statistic: Statistic::Mean,
        success_rate: None,
    };
    let runs = f64::from(repetitions);
    let need = question.scenarios_needed(&truth, runs).unwrap_or(u64::MAX);
    let mut random = Random::new(seed);
    let setting = Setting {
        most: repetitions,
        ..*setting
    };
    let mut held = 0;
    for _ in 0..pilots {
        let (components, _) = Experiment::draw(&setting, &mut random).look(repetitions as usize);
        let ends = components
            .range()
            .map(|end| question.scenarios_needed(&end, runs));
        if let [Some(low), Some(high)] = ends {
            held += u32::from((low..=high).contains(&need));
        }
    }
    f64::from(held) / f64::from(pilots)
}
