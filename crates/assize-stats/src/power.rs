//! Planning: what a design can see, and what it would take to see more.

use libm::{ceil, sqrt};
use serde::Serialize;

use crate::error::{StatsError, non_negative};
use crate::interval::Level;
use crate::special::student_t_quantile;

/// More scenarios than this are no plan.
const MOST_SCENARIOS: u64 = 1_000_000;

/// A design and the variances it meets, on the scale of the comparison (logs for ratios).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerInputs {
    pub scenarios: u64,
    /// Runs of each scenario under each mode.
    pub repetitions: f64,
    /// Variance of the true effect between scenarios.
    pub omega2: f64,
    /// Variance of runs of A inside a scenario.
    pub sigma_a2: f64,
    /// Variance of runs of B inside a scenario.
    pub sigma_b2: f64,
    /// The effect that should be seen.
    pub delta: f64,
}

/// The smallest effect that the design detects, and the size needed for a smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PowerPlan {
    /// Smallest effect found with the wanted power; absent for fewer than two scenarios.
    pub min_detectable_effect: Option<f64>,
    /// Repetitions that would show `delta` with these scenarios; absent when no number is enough.
    pub repetitions_needed: Option<u64>,
    /// Scenarios that would show `delta` with these repetitions; absent when no sensible number is enough.
    pub scenarios_needed: Option<u64>,
}

/// Plans a paired comparison with error rate `alpha`.
pub fn power_plan(
    inputs: &PowerInputs,
    alpha: Level,
    power: Level,
) -> Result<PowerPlan, StatsError> {
    for (name, value) in [
        ("omega2", inputs.omega2),
        ("sigmaA2", inputs.sigma_a2),
        ("sigmaB2", inputs.sigma_b2),
        ("delta", inputs.delta),
        ("repetitions", inputs.repetitions),
    ] {
        non_negative(name, value)?;
    }
    let planner = Planner {
        inputs: *inputs,
        alpha,
        power,
    };
    Ok(PowerPlan {
        min_detectable_effect: planner
            .detectable(inputs.scenarios)
            .filter(|effect| effect.is_finite()),
        repetitions_needed: planner.repetitions_needed(),
        scenarios_needed: planner.scenarios_needed(),
    })
}

struct Planner {
    inputs: PowerInputs,
    alpha: Level,
    power: Level,
}

impl Planner {
    /// Detectable effect in standard errors.
    fn reach(&self, scenarios: u64) -> Option<f64> {
        let df = scenarios.checked_sub(1).filter(|&df| df > 0)? as f64;
        Some(
            student_t_quantile(1.0 - self.alpha.value() / 2.0, df)
                + student_t_quantile(self.power.value(), df),
        )
    }

    fn detectable(&self, scenarios: u64) -> Option<f64> {
        let PowerInputs {
            omega2,
            sigma_a2,
            sigma_b2,
            repetitions,
            ..
        } = self.inputs;
        let variance = (omega2 + (sigma_a2 + sigma_b2) / repetitions.max(1.0)) / scenarios as f64;
        Some(self.reach(scenarios)? * sqrt(variance))
    }

    fn repetitions_needed(&self) -> Option<u64> {
        let PowerInputs {
            scenarios,
            omega2,
            sigma_a2,
            sigma_b2,
            delta,
            ..
        } = self.inputs;
        let share = delta / self.reach(scenarios)?;
        let room = scenarios as f64 * share * share - omega2;
        let needed = ceil((sigma_a2 + sigma_b2) / room);
        (room > 0.0 && needed < u64::MAX as f64).then_some((needed as u64).max(1))
    }

    /// The detectable effect falls as scenarios are added, so the smallest number is found by bisection.
    fn scenarios_needed(&self) -> Option<u64> {
        let is_enough = |scenarios: u64| {
            self.detectable(scenarios)
                .is_some_and(|effect| effect <= self.inputs.delta)
        };
        if self.inputs.delta == 0.0 || !is_enough(MOST_SCENARIOS) {
            return None;
        }
        let (mut too_few, mut enough) = (1, MOST_SCENARIOS);
        while enough - too_few > 1 {
            let middle = (too_few + enough) / 2;
            if is_enough(middle) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        Some(enough)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUTS: PowerInputs = PowerInputs {
        scenarios: 8,
        repetitions: 5.0,
        omega2: 0.02,
        sigma_a2: 0.15,
        sigma_b2: 0.15,
        delta: 0.2,
    };

    fn plan(inputs: PowerInputs) -> PowerPlan {
        power_plan(&inputs, Level::ALPHA_05, Level::POWER_80).unwrap()
    }

    #[test]
    fn the_needed_scenarios_are_the_first_that_suffice() {
        let needed = plan(INPUTS).scenarios_needed.unwrap();
        let with = |scenarios| {
            plan(PowerInputs {
                scenarios,
                ..INPUTS
            })
            .min_detectable_effect
            .unwrap()
        };
        assert!(with(needed) <= 0.2 && with(needed - 1) > 0.2);
    }

    #[test]
    fn one_scenario_detects_nothing() {
        assert_eq!(
            plan(PowerInputs {
                scenarios: 1,
                ..INPUTS
            })
            .min_detectable_effect,
            None
        );
        assert!(
            power_plan(
                &PowerInputs {
                    omega2: f64::NAN,
                    ..INPUTS
                },
                Level::ALPHA_05,
                Level::POWER_80
            )
            .is_err()
        );
    }

    #[test]
    fn nothing_is_needed_to_see_no_effect() {
        let plan = plan(PowerInputs {
            delta: 0.0,
            ..INPUTS
        });
        assert_eq!(
            (plan.repetitions_needed, plan.scenarios_needed),
            (None, None)
        );
    }
}
