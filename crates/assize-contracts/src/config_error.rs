//! A mistake in what people configure: a setting, a check, a task.

/// A value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// Its place: keys and list positions from the outside in.
    pub path: Vec<String>,
    /// The value found and the value expected.
    pub message: String,
    /// A way out, shown on a line of its own.
    pub hint: Option<String>,
}

impl ConfigError {
    /// An error without a hint.
    pub fn at<P: Into<String>>(
        path: impl IntoIterator<Item = P>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            path: path.into_iter().map(Into::into).collect(),
            message: message.into(),
            hint: None,
        }
    }

    /// The same error with a hint.
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}
