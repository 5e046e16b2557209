//! Programs of schedulers: started without the user's environment, which they might send along.

use crate::commands::Obstructed;
use anyhow::{Result, anyhow};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Variables that the programs of schedulers need themselves.
const KEPT: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "SLURM_CONF",
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "SSL_CERT_FILE",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// A call of such a program.
pub(super) struct Tool {
    name: String,
    command: Command,
}

impl Tool {
    pub(super) fn new(name: &str) -> Self {
        let mut command = Command::new(name);
        command.env_clear().stdin(Stdio::null());
        for kept in KEPT {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        Self {
            name: name.to_owned(),
            command,
        }
    }

    pub(super) fn within(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    pub(super) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub(super) fn args<const N: usize>(mut self, arguments: [&str; N]) -> Self {
        self.command.args(arguments);
        self
    }

    /// Runs it to its end and returns what it prints.
    pub(super) fn output(mut self) -> Result<String> {
        let output = self.command.output().map_err(|error| Obstructed {
            message: format!("cannot start `{}`: {error}", self.name),
            hint: format!(
                "run this where `{}` is installed; `--dry-run` shows what would be submitted",
                self.name
            ),
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(anyhow!(
            "`{}` failed ({}): {}",
            self.name,
            output.status,
            stderr.trim()
        ))
    }
}

/// The program is not there.
pub(super) fn is_missing(error: &anyhow::Error) -> bool {
    error.is::<Obstructed>()
}
