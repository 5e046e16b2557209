//! The `gates:` part of a suite: what its runs must be shown to fulfil. It changes no trial.

use assize_report::{Gate, GateError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A gate for all modes, or for some.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a gate such as \"success >= 0.9\", or one with its modes: { gate: …, modes: […] }"
)]
pub enum GateSpec {
    /// `success >= 0.9`
    AllModes(String),
    /// The same for some modes only.
    SomeModes(GateForModes),
}

/// A gate that speaks about some modes only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateForModes {
    /// `success >= 0.9`
    pub gate: String,
    /// The modes.
    pub modes: Vec<String>,
}

impl GateSpec {
    /// The gate, or what is wrong with it.
    pub(crate) fn resolve(&self) -> Result<Gate, GateError> {
        match self {
            Self::AllModes(text) => text.parse(),
            Self::SomeModes(spec) => {
                let mut gate: Gate = spec.gate.parse()?;
                gate.modes = Some(spec.modes.clone());
                Ok(gate)
            }
        }
    }
}
