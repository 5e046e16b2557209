//! pass@k (at least one of k tries succeeds) and pass^k (all of k tries succeed), without the bias of plugging in a rate.

use serde::Serialize;

use crate::interval::{Bounds, Level};
use crate::proportion::{ProportionMethod, Tally, proportion_ci};
use crate::sample::Sample;
use crate::success::success_rate;
use crate::warning::{Warning, Warnings};

/// Both probabilities of one scenario; absent when there are fewer than k trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PassK {
    /// Probability that at least one of k tries succeeds.
    pub pass_at_k: Option<f64>,
    /// Probability that all of k tries succeed.
    pub pass_hat_k: Option<f64>,
}

/// Both probabilities averaged over scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PassKSuite {
    /// Mean probability that at least one of k tries succeeds.
    pub pass_at_k: Option<f64>,
    /// Mean probability that all of k tries succeed.
    pub pass_hat_k: Option<f64>,
    /// Interval of `pass_at_k` for new scenarios like these.
    pub pass_at_k_ci: Option<[f64; 2]>,
    /// Interval of `pass_hat_k`.
    pub pass_hat_k_ci: Option<[f64; 2]>,
    /// Scenarios with at least k trials.
    pub scenarios_used: usize,
    /// Nominal coverage.
    pub confidence_level: Level,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// The probabilities of one scenario from all subsets of k of its trials.
pub fn pass_k(tally: Tally, k: u64) -> PassK {
    if k > tally.trials() {
        return PassK {
            pass_at_k: None,
            pass_hat_k: None,
        };
    }
    let failures = tally.trials() - tally.successes();
    PassK {
        pass_at_k: Some(1.0 - share_of_subsets_within(failures, tally.trials(), k)),
        pass_hat_k: Some(share_of_subsets_within(
            tally.successes(),
            tally.trials(),
            k,
        )),
    }
}

/// The unweighted mean over the scenarios that have at least k trials.
pub fn pass_k_suite(scenarios: &[Tally], k: u64, level: Level) -> PassKSuite {
    let used: Vec<Tally> = scenarios
        .iter()
        .copied()
        .filter(|tally| tally.trials() >= k && tally.trials() > 0)
        .collect();
    let mut warnings = Warnings::default();
    warnings.add_if(used.len() < scenarios.len(), Warning::KExceedsTrials);
    warnings.add_if(used.len() == 1, Warning::SingleScenario);
    warnings.add_if(used.len() < 6, Warning::FewScenarios);
    let (at, hat): (Vec<f64>, Vec<f64>) = used
        .iter()
        .filter_map(|tally| {
            pass_k(*tally, k)
                .pass_at_k
                .zip(pass_k(*tally, k).pass_hat_k)
        })
        .unzip();
    let power = k as f64;
    PassKSuite {
        pass_at_k: Sample::new(&at).map(|values| values.mean()),
        pass_hat_k: Sample::new(&hat).map(|values| values.mean()),
        pass_at_k_ci: interval(&used, &at, level, |rate| 1.0 - libm::pow(1.0 - rate, power)),
        pass_hat_k_ci: interval(&used, &hat, level, |rate| libm::pow(rate, power)),
        scenarios_used: used.len(),
        confidence_level: level,
        warnings,
    }
}

/// The share of k-subsets of `total` things that lie within `part` of them.
fn share_of_subsets_within(part: u64, total: u64, k: u64) -> f64 {
    if k > part {
        return 0.0;
    }
    (0..k)
        .map(|taken| (part - taken) as f64 / (total - taken) as f64)
        .product()
}

/// t interval of the scenario values; where they do not vary, the interval of the rate is carried over.
fn interval(
    used: &[Tally],
    values: &[f64],
    level: Level,
    of_rate: impl Fn(f64) -> f64,
) -> Option<[f64; 2]> {
    let sample = Sample::new(values)?;
    if !sample.is_constant() {
        let reach = level.t((sample.count() - 1) as f64) * sample.standard_error();
        return Some([
            (sample.mean() - reach).max(0.0),
            (sample.mean() + reach).min(1.0),
        ]);
    }
    let rate = match used {
        [single] => {
            let exact = proportion_ci(*single, ProportionMethod::ClopperPearson, level)?;
            Bounds {
                lower: exact.lower,
                upper: exact.upper,
            }
        }
        several => {
            let rate = success_rate(several, Level::new(level.complement()).ok()?);
            Bounds {
                lower: rate.lower?,
                upper: rate.upper?,
            }
        }
    };
    Some([of_rate(rate.lower), of_rate(rate.upper)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tallies(successes: &[u64], trials: u64) -> Vec<Tally> {
        successes
            .iter()
            .map(|&successes| Tally::new(successes, trials).unwrap())
            .collect()
    }

    #[test]
    fn scenarios_with_too_few_trials_are_left_out_and_said() {
        let mut scenarios = tallies(&[5, 3, 4], 5);
        scenarios.push(Tally::new(1, 2).unwrap());
        let suite = pass_k_suite(&scenarios, 3, Level::CONFIDENCE_95);
        assert_eq!(suite.scenarios_used, 3);
        assert!(suite.warnings.contains(Warning::KExceedsTrials));
    }

    #[test]
    fn passing_everything_leaves_room_for_failure() {
        let [lower, upper] = pass_k_suite(&tallies(&[5, 5, 5, 5], 5), 3, Level::CONFIDENCE_95)
            .pass_hat_k_ci
            .unwrap();
        assert_eq!(upper, 1.0);
        assert!(lower < 0.2);
    }

    #[test]
    fn no_scenario_gives_no_number() {
        let suite = pass_k_suite(&[], 3, Level::CONFIDENCE_95);
        assert_eq!(
            (suite.pass_at_k, suite.pass_hat_k_ci, suite.scenarios_used),
            (None, None, 0)
        );
    }
}
