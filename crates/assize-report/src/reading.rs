//! From what a suite or a run asks for to the analysis and the gates.

use crate::{Analysis, Gate, GateError};
use assize_contracts::{
    AnalysisSpec, Better, Catalog, GateSpec, MarginSpec, ScopeName, StatisticName, StatisticSpec,
};
use assize_stats::{Direction, Level, Scope, Statistic};

/// A value of an analysis that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {message}")]
pub struct AnalysisError {
    /// The key in the analysis.
    pub key: &'static str,
    /// The value found and the value expected.
    pub message: String,
}

impl Analysis {
    /// The analysis that a suite asks for, or everything that is wrong with it.
    pub fn of(spec: &AnalysisSpec) -> Result<Self, Vec<AnalysisError>> {
        let mut errors = Vec::new();
        let mut analysis = Self {
            baseline: spec.baseline.clone(),
            primary: spec.primary.clone(),
            ..Self::default()
        };
        match &spec.statistic {
            Some(StatisticSpec::All(name)) => analysis.statistic = Some(statistic(*name)),
            Some(StatisticSpec::ByMetric(names)) => {
                let named = names.iter();
                analysis.statistics = named
                    .map(|(metric, name)| (metric.clone(), statistic(*name)))
                    .collect();
            }
            None => {}
        }
        for (metric, direction) in &spec.directions {
            let direction = match direction {
                Better::Lower => Direction::Lower,
                Better::Higher => Direction::Higher,
            };
            analysis.directions.insert(metric.clone(), direction);
        }
        if spec.scope == Some(ScopeName::Suite) {
            analysis.scope = Scope::Suite;
        }
        match spec.equivalence_margin.as_ref().map(share) {
            Some(Some(share)) => analysis.equivalence_margin = Some(share),
            Some(None) => errors.push(AnalysisError {
                key: "equivalence_margin",
                message: "expected a share above 0 and below 1, such as 5% or 0.05".to_owned(),
            }),
            None => {}
        }
        match spec.confidence.map(Level::new) {
            Some(Ok(level)) => analysis.confidence = level,
            Some(Err(error)) => errors.push(AnalysisError {
                key: "confidence",
                message: error.to_string(),
            }),
            None => {}
        }
        match spec.resamples {
            Some(resamples @ 100..=1_000_000) => analysis.resamples = resamples as usize,
            Some(found) => errors.push(AnalysisError {
                key: "resamples",
                message: format!("found {found}, expected 100 to 1000000"),
            }),
            None => {}
        }
        match errors.is_empty() {
            true => Ok(analysis),
            false => Err(errors),
        }
    }
}

fn share(margin: &MarginSpec) -> Option<f64> {
    let share = match margin {
        MarginSpec::Share(share) => *share,
        MarginSpec::Percent(text) => {
            let number = text.trim().strip_suffix('%')?.trim_end();
            number.parse::<f64>().ok()? / 100.0
        }
    };
    (share > 0.0 && share < 1.0).then_some(share)
}

/// The statistic of that name.
pub fn statistic(name: StatisticName) -> Statistic {
    match name {
        StatisticName::Median => Statistic::Median,
        StatisticName::Mean => Statistic::Mean,
        StatisticName::P90 => Statistic::P90,
        StatisticName::P95 => Statistic::P95,
        StatisticName::Min => Statistic::Min,
        StatisticName::Max => Statistic::Max,
    }
}

impl Gate {
    /// The gate that a suite asks for, on the metrics of this catalog.
    pub fn of(spec: &GateSpec, catalog: &Catalog) -> Result<Self, GateError> {
        match spec {
            GateSpec::AllModes(text) => Self::parse(text, catalog),
            GateSpec::SomeModes(spec) => {
                let mut gate = Self::parse(&spec.gate, catalog)?;
                gate.modes = Some(spec.modes.clone());
                Ok(gate)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resolve(json: serde_json::Value) -> Result<Analysis, Vec<AnalysisError>> {
        Analysis::of(&serde_json::from_value(json).unwrap())
    }

    #[test]
    fn all_keys_are_understood() {
        let analysis = resolve(json!({
            "baseline": "plain", "primary": ["success"], "statistic": {"cost_total_usd": "mean"},
            "directions": {"mine": "higher"}, "equivalence_margin": "5%", "scope": "suite",
            "confidence": 0.9, "resamples": 500
        }))
        .unwrap();
        assert_eq!(analysis.equivalence_margin, Some(0.05));
        assert_eq!(analysis.statistics["cost_total_usd"], Statistic::Mean);
        assert_eq!(analysis.statistic, None);
        assert_eq!(analysis.directions["mine"], Direction::Higher);
        assert_eq!((analysis.scope, analysis.resamples), (Scope::Suite, 500));
    }

    #[test]
    fn values_without_meaning_are_all_named() {
        let errors =
            resolve(json!({"equivalence_margin": "much", "confidence": 95, "resamples": 1}));
        let keys: Vec<&str> = errors.unwrap_err().iter().map(|error| error.key).collect();
        assert_eq!(keys, ["equivalence_margin", "confidence", "resamples"]);
    }
}
