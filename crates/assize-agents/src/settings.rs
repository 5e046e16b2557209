//! Settings that a suite gives to a provider: read with errors that name the place and the nearest known key.

use assize_contracts::{JsonMap, OverrideProblem};
use assize_process::host_variable;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// Reads a provider's settings.
pub(crate) fn read<T: DeserializeOwned>(overrides: &JsonMap) -> Result<T, OverrideProblem> {
    let value = Value::Object(overrides.clone());
    serde_path_to_error::deserialize(&value).map_err(|error| {
        let path = error.path().iter().map(ToString::to_string);
        OverrideProblem {
            path: path.filter(|part| part != "?").collect(),
            message: error.inner().to_string(),
            hint: None,
        }
    })
}

/// A variable of a session: the one its mode sets, else that of the host. An empty one counts as unset.
pub(crate) fn variable(environment: &BTreeMap<String, String>, name: &str) -> Option<String> {
    match environment.get(name) {
        Some(value) => Some(value.clone()).filter(|value| !value.is_empty()),
        None => host_variable(name),
    }
}

/// A problem with one setting.
pub(crate) fn problem(key: &str, message: impl Into<String>) -> OverrideProblem {
    OverrideProblem {
        path: vec![key.to_owned()],
        message: message.into(),
        hint: None,
    }
}
