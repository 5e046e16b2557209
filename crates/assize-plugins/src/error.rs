//! Errors of starting a plugin and of calls to it.

use crate::protocol::{FailureData, RpcError};
use assize_contracts::{Fault, ProviderError};
use std::time::Duration;

/// The reason why a call to a plugin returned no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The plugin answered with an error of its own.
    #[error("{}", .0.message)]
    Refused(RpcError),
    /// The program ended, or was ended, before it answered.
    #[error("plugin `{plugin}` {how} before it answered")]
    Ended {
        plugin: String,
        /// The way it ended: `ended with exit code 3`.
        how: String,
    },
    /// The program is not there any more and is not started again.
    #[error("plugin `{plugin}` is not started again: {why}")]
    GivenUp {
        plugin: String,
        /// The message.
        why: String,
    },
    /// No answer came in time.
    #[error("plugin `{plugin}` did not answer `{method}` within {} ms", .limit.as_millis())]
    TimedOut {
        plugin: String,
        method: String,
        limit: Duration,
    },
    /// The answer does not have the shape that the method asks for.
    #[error("the plugin's answer cannot be used: {0}")]
    Unreadable(String),
    /// The request is longer than a message may be.
    #[error("the request has {bytes} bytes, more than a message may have")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The request cannot be written as JSON.
    #[error("the request cannot be written: {0}")]
    Unsendable(String),
}

impl CallError {
    /// A word for machines; becomes the row's `errorCode` where the plugin gives none.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(_) => "plugin_error",
            Self::Ended { .. } => "plugin_crashed",
            Self::GivenUp { .. } => "plugin_unavailable",
            Self::TimedOut { .. } => "plugin_timeout",
            Self::Unreadable(_) => "plugin_bad_answer",
            Self::TooLong { .. } | Self::Unsendable(_) => "plugin_bad_request",
        }
    }
}

/// An error between Assize and a plugin is never the agent's fault, unless the plugin marks it so.
impl From<CallError> for ProviderError {
    fn from(error: CallError) -> Self {
        let data = match &error {
            CallError::Refused(RpcError {
                data: Some(data), ..
            }) => FailureData::deserialize_leniently(data),
            _ => FailureData::default(),
        };
        ProviderError {
            fault: data.fault.unwrap_or(Fault::Service),
            code: Some(data.code.unwrap_or_else(|| error.code().to_owned())),
            message: error.to_string(),
            partial: data.partial.map(Box::new),
            void_cause: data.void_cause,
        }
    }
}

impl FailureData {
    /// Field by field, so that a broken one does not take the others with it.
    fn deserialize_leniently(data: &serde_json::Value) -> Self {
        let field = |name: &str| data.get(name).cloned().unwrap_or_default();
        Self {
            fault: serde_json::from_value(field("fault")).ok(),
            code: serde_json::from_value(field("code")).ok(),
            partial: serde_json::from_value(field("partial")).ok(),
            void_cause: serde_json::from_value(field("voidCause")).ok(),
        }
    }
}

/// The reason why a plugin cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct StartError {
    /// The value found and the value expected.
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
}

impl StartError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
