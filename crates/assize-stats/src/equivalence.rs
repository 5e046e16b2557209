//! Equivalence: two one-sided tests show that a difference is small, which a high p-value never does.

use serde::Serialize;

use crate::effect::{Effect, Measure, ScenarioEffects};
use crate::error::StatsError;
use crate::interval::Level;
use crate::sample::{Sample, Screened};
use crate::warning::{Warning, Warnings};

/// Result of two one-sided tests. Absent p-values mean too few differences.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tost {
    /// Small when the mean lies clearly above `low`.
    pub p_lower: Option<f64>,
    /// Small when the mean lies clearly below `high`.
    pub p_upper: Option<f64>,
    /// The larger of the two.
    pub p_value: Option<f64>,
    /// True when the mean lies within the range at error rate alpha.
    pub equivalent: bool,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Tests whether the mean of the differences lies between `low` and `high`.
pub fn tost(differences: &[f64], low: f64, high: f64, alpha: Level) -> Result<Tost, StatsError> {
    if !(low < high && low.is_finite() && high.is_finite()) {
        return Err(StatsError::EmptyRange { low, high });
    }
    let screened = Screened::new(differences);
    let mut warnings = Warnings::default();
    warnings.add_if(screened.non_finite > 0, Warning::NonFiniteDropped);
    let unit = screened.sample.as_ref().map(Sample::scale);
    let effect = screened
        .sample
        .as_ref()
        .zip(unit)
        .and_then(|(sample, scale)| {
            let values = sample.scaled(scale.inverse).values().to_vec();
            Effect::population(&ScenarioEffects {
                values,
                measure: Measure::Difference,
                unit: scale.unit,
            })
        });
    let Some(effect) = effect else {
        warnings.add(Warning::TooFewValues);
        return Ok(Tost {
            p_lower: None,
            p_upper: None,
            p_value: None,
            equivalent: false,
            warnings,
        });
    };
    let mut answer = within(&effect, low / effect.unit, high / effect.unit, alpha);
    answer.warnings.extend(&warnings);
    Ok(answer)
}

/// The two tests on an effect's own scale. Without variation the mean itself decides.
pub(crate) fn within(effect: &Effect, low: f64, high: f64, alpha: Level) -> Tost {
    let decided = |is_within: bool| if is_within { 0.0 } else { 1.0 };
    let p_lower = effect.p_above(low).unwrap_or(decided(effect.mean > low));
    let p_upper = effect.p_below(high).unwrap_or(decided(effect.mean < high));
    let p_value = p_lower.max(p_upper);
    let mut warnings = Warnings::default();
    warnings.add_if(effect.is_constant(), Warning::NoVariation);
    Tost {
        p_lower: Some(p_lower),
        p_upper: Some(p_upper),
        p_value: Some(p_value),
        equivalent: p_value <= alpha.value(),
        warnings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_runs_are_equivalent() {
        let answer = tost(&[0.0; 5], -0.1, 0.1, Level::ALPHA_05).unwrap();
        assert!(answer.equivalent);
        assert!(answer.warnings.contains(Warning::NoVariation));
    }

    #[test]
    fn one_difference_shows_nothing() {
        assert!(!tost(&[0.0], -0.1, 0.1, Level::ALPHA_05).unwrap().equivalent);
        assert!(tost(&[0.0], 0.1, -0.1, Level::ALPHA_05).is_err());
    }
}
