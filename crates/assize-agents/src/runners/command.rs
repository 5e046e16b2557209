//! `command`: a program gets the task as JSON on stdin and prints its output as JSON. It runs under the keeper.

use super::record::Execution;
use super::{Role, VERSION, excerpt, read};
use assize_contracts::{
    AtomicTask, BoxError, ConfigError, RunRecord, RunSetting, Runner, RunnerSetup, async_trait,
};
use assize_process::{Bound, Command, Stdin};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// The time in which a program must end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Bytes kept of its stderr.
const STDERR: usize = 2000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The program and its arguments.
    command: Vec<String>,
    /// Variables of the environment that it gets besides the usual ones.
    #[serde(default)]
    pass_env: Vec<String>,
    /// More output than this is a failure, in bytes.
    #[serde(default = "megabytes")]
    max_output: u64,
}

fn megabytes() -> u64 {
    8 << 20
}

/// The runner `command`.
pub(super) struct Program {
    role: Role,
    settings: Settings,
    directory: PathBuf,
}

impl Program {
    pub(super) fn new(setup: &RunnerSetup<'_>) -> Result<Self, ConfigError> {
        let settings: Settings = read(setup)?;
        if settings.command.is_empty() {
            let message = "found an empty list, expected a program and its arguments";
            return Err(crate::settings::setting_error("command", message));
        }
        let directory = std::path::absolute(setup.directory);
        Ok(Self {
            role: Role::of(setup),
            settings,
            directory: directory.unwrap_or_else(|_| setup.directory.to_owned()),
        })
    }

    fn command(&self, task: &AtomicTask, setting: &RunSetting) -> Result<Command, BoxError> {
        let mut argv = self.settings.command.clone();
        if let Some(program) = argv.first_mut().filter(|program| program.contains('/')) {
            *program = self
                .directory
                .join(&*program)
                .to_string_lossy()
                .into_owned();
        }
        let command = Command::from_argv(argv, &self.directory).pass_usual_env();
        let names = self.settings.pass_env.iter();
        let command = names.fold(command, |command, name| command.pass_env(name));
        let variables = setting.environment.iter();
        let command = variables.fold(command, |command, (name, value)| command.env(name, value));
        let cell = [
            ("ASSIZE_MODE", setting.mode.clone()),
            ("ASSIZE_MODEL", setting.model.clone()),
            ("ASSIZE_ITERATION", setting.iteration.to_string()),
            ("ASSIZE_SEED", setting.seed.to_string()),
        ];
        let command = cell
            .into_iter()
            .fold(command, |command, (name, value)| command.env(name, value));
        let mut command = command
            .stdin(Stdin::Bytes(serde_json::to_vec(task)?))
            .timeout(setting.timeout)
            .polite(assize_process::Signal::SIGTERM, GRACE);
        command.stdout = Bound {
            head: self.settings.max_output,
            tail: 0,
        };
        Ok(command)
    }
}

#[async_trait]
impl Runner for Program {
    fn id(&self) -> &str {
        &self.role.id
    }

    fn task_type(&self) -> &str {
        &self.role.task_type
    }

    fn version(&self) -> &str {
        VERSION
    }

    /// The keeper ends the program when its time is over; there must be time left to report it.
    fn timeout_grace(&self) -> Duration {
        GRACE + Duration::from_secs(15)
    }

    async fn execute(&self, task: &AtomicTask, config: &Value) -> Result<RunRecord, BoxError> {
        self.execute_in(task, config, &super::alone()).await
    }

    async fn execute_in(
        &self,
        task: &AtomicTask,
        _: &Value,
        setting: &RunSetting,
    ) -> Result<RunRecord, BoxError> {
        let mut execution = Execution::start();
        let command = self.command(task, setting)?;
        let output = command
            .run_to_end()
            .await
            .map_err(|error| error.explained())?;
        let words = output.exit.in_words(setting.timeout);
        let complaint = output.stderr.last_words(STDERR);
        execution.note("program_ended", json!({"how": words, "stderr": complaint}));
        if !output.exit.is_success() {
            let message = match complaint.is_empty() {
                true => format!("the program {words}"),
                false => format!("the program {words}: {complaint}"),
            };
            return Ok(execution.failed(task, "run", message));
        }
        if output.stdout.cut > 0 {
            let message = format!(
                "the output is longer than {} bytes",
                self.settings.max_output
            );
            return Ok(execution.failed(task, "parse-output", message));
        }
        let text = output.stdout.text();
        Ok(match serde_json::from_str(text.trim()) {
            Ok(value) => execution.completed(task, value),
            Err(error) => {
                let shown = excerpt(text.trim(), 200);
                let message = format!("the output is not JSON ({error}): `{shown}`");
                execution.failed(task, "parse-output", message)
            }
        })
    }
}
