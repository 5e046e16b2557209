//! Settings that a suite gives to a provider: read with errors that name the place and the nearest known key.

use assize_contracts::{ConfigError, JsonMap};
use assize_process::host_variable;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// Reads a provider's settings.
pub(crate) fn read<T: DeserializeOwned>(overrides: &JsonMap) -> Result<T, ConfigError> {
    read_value(&Value::Object(overrides.clone()))
}

/// Reads a value; the error names the place in it.
pub(crate) fn read_value<T: DeserializeOwned>(value: &Value) -> Result<T, ConfigError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().iter().map(ToString::to_string);
        ConfigError::at(path.filter(|part| part != "?"), error.inner().to_string())
    })
}

/// A variable of a session: the one its mode sets, else that of the host. An empty one counts as unset.
pub(crate) fn variable(environment: &BTreeMap<String, String>, name: &str) -> Option<String> {
    match environment.get(name) {
        Some(value) => Some(value.clone()).filter(|value| !value.is_empty()),
        None => host_variable(name),
    }
}

/// An error about one setting.
pub(crate) fn setting_error(key: &str, message: impl Into<String>) -> ConfigError {
    ConfigError::at([key], message)
}
