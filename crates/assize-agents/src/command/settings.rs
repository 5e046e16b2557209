//! The suite's settings of a program on trial.

use crate::output::OutputForm;
use crate::settings::{read, setting_error};
use assize_contracts::{ConfigError, JsonMap};
use assize_process::Signal;
use serde::Deserialize;
use std::time::Duration;

/// The provider's own patience must outlast it, see `timeout_grace`.
pub(super) const LONGEST_GRACE: Duration = Duration::from_secs(30);

const LARGEST_OUTPUT: u64 = 1 << 30;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandSettings {
    /// The program and its arguments, with placeholders.
    pub(super) command: Vec<String>,
    /// The model when the suite names none.
    #[serde(default, rename = "model")]
    _model: Option<String>,
    /// The program costs nothing, so it runs without a confirmation.
    #[serde(default, rename = "free")]
    _free: bool,
    #[serde(default)]
    pub(crate) output: OutputForm,
    /// The file from which events are read instead of stdout, relative to the workspace.
    #[serde(default, alias = "eventsFile")]
    pub(super) events_file: Option<String>,
    /// Variables of Assize's own environment that the program gets, besides the usual ones.
    #[serde(default, alias = "passEnv")]
    pub(crate) pass_env: Vec<String>,
    #[serde(default, alias = "successExit")]
    pub(super) success_exit: SuccessExit,
    #[serde(default, alias = "politeSignal")]
    pub(crate) polite_signal: PoliteSignal,
    /// The time in which the program must end after the polite signal.
    #[serde(default = "default_grace", alias = "graceMs")]
    pub(crate) grace_ms: u64,
    /// The number of bytes of output that are kept.
    #[serde(default = "default_output", alias = "maxOutput")]
    pub(crate) max_output: u64,
}

/// The exit codes that leave the judgement to the checks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SuccessExit {
    /// Only 0; after any other the trial fails without being scored.
    #[default]
    Zero,
    /// All of them.
    Any,
}

/// The signal that asks the program to end when its time is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum PoliteSignal {
    #[default]
    #[serde(rename = "TERM", alias = "SIGTERM")]
    Term,
    #[serde(rename = "INT", alias = "SIGINT")]
    Int,
    #[serde(rename = "HUP", alias = "SIGHUP")]
    Hup,
    #[serde(rename = "QUIT", alias = "SIGQUIT")]
    Quit,
}

fn default_grace() -> u64 {
    5_000
}

fn default_output() -> u64 {
    8 << 20
}

impl CommandSettings {
    /// Reads the settings and checks what their types cannot.
    pub(super) fn checked(overrides: &JsonMap) -> Result<Self, ConfigError> {
        let settings: Self = read(overrides)?;
        settings.check()?;
        Ok(settings)
    }

    /// The usual settings for a command.
    pub(crate) fn of(command: Vec<String>) -> Self {
        Self {
            command,
            _model: None,
            _free: false,
            output: OutputForm::default(),
            events_file: None,
            pass_env: Vec::new(),
            success_exit: SuccessExit::default(),
            polite_signal: PoliteSignal::default(),
            grace_ms: default_grace(),
            max_output: default_output(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.command.first().is_none_or(String::is_empty) {
            let found = setting_error(
                "command",
                "found no program, expected a program and its arguments",
            );
            let hint = Some(
                "for example `command: [\"my-agent\", \"--prompt\", \"{prompt}\"]`".to_owned(),
            );
            return Err(ConfigError { hint, ..found });
        }
        if self.events_file.is_some() && !self.output.has_events() {
            let found = setting_error("events_file", "events are read only with `output: events`");
            let hint = Some("add `output: events`, or leave `events_file` out".to_owned());
            return Err(ConfigError { hint, ..found });
        }
        let is_no_name = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        if let Some(name) = self.pass_env.iter().find(is_no_name) {
            let message = format!("found {name:?}, expected the name of an environment variable");
            return Err(setting_error("pass_env", message));
        }
        if self.grace() > LONGEST_GRACE {
            let longest = LONGEST_GRACE.as_millis();
            let message = format!("found {}, expected at most {longest} ms", self.grace_ms);
            return Err(setting_error("grace_ms", message));
        }
        if !(1..=LARGEST_OUTPUT).contains(&self.max_output) {
            let message = format!(
                "found {}, expected between 1 and {LARGEST_OUTPUT} bytes",
                self.max_output
            );
            return Err(setting_error("max_output", message));
        }
        Ok(())
    }

    pub(super) fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }

    /// True when events come on stdout rather than in a file.
    pub(super) fn has_events_on_stdout(&self) -> bool {
        self.output.has_events() && self.events_file.is_none()
    }
}

impl From<PoliteSignal> for Signal {
    fn from(signal: PoliteSignal) -> Self {
        match signal {
            PoliteSignal::Term => Self::SIGTERM,
            PoliteSignal::Int => Self::SIGINT,
            PoliteSignal::Hup => Self::SIGHUP,
            PoliteSignal::Quit => Self::SIGQUIT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn error_in(settings: Value) -> ConfigError {
        CommandSettings::checked(settings.as_object().unwrap()).unwrap_err()
    }

    #[test]
    fn what_cannot_work_is_named_before_a_run() {
        for (settings, place) in [
            (json!({"command": []}), "command"),
            (json!({"command": [""]}), "command"),
            (json!({"command": ["a"], "events_file": "e"}), "events_file"),
            (json!({"command": ["a"], "pass_env": ["A=b"]}), "pass_env"),
            (json!({"command": ["a"], "graceMs": 60_000}), "grace_ms"),
            (json!({"command": ["a"], "max_output": 0}), "max_output"),
            (
                json!({"command": ["a"], "polite_signal": "KILL"}),
                "polite_signal",
            ),
            (json!({"command": ["a"], "output": "xml"}), "output"),
        ] {
            assert_eq!(error_in(settings).path, [place]);
        }
        assert!(
            error_in(json!({"comand": ["a"]}))
                .message
                .contains("unknown field `comand`")
        );
        assert!(
            error_in(json!({}))
                .message
                .contains("missing field `command`")
        );
    }
}
