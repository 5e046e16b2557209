//! Hooks that are commands: the context comes as JSON on stdin, another exit code than 0 is the hook's error.

use assize_contracts::{
    AfterScenarioContext, BaseScenario, BeforeScenarioContext, BoxError, HookEvent, RunContext,
    RunHooks, async_trait,
};
use assize_process::{Command, Stdin};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The length of stderr that explains a failure.
const LAST_WORDS: usize = 500;

/// Commands for some of the six hooks.
pub(crate) struct HookCommands {
    events: Vec<HookEvent>,
    /// Lines for the shell, one for each event.
    lines: Vec<String>,
    directory: PathBuf,
    pass_env: Vec<String>,
    /// Zero: as long as it takes.
    timeout: Duration,
    /// Variables of each mode.
    environments: Mutex<BTreeMap<String, Environment>>,
}

type Environment = Arc<BTreeMap<String, String>>;

impl HookCommands {
    /// Commands that run in `directory`, within `timeout` each.
    pub(crate) fn new(
        commands: Vec<(HookEvent, String)>,
        directory: PathBuf,
        timeout: Duration,
    ) -> Self {
        let (events, lines) = commands.into_iter().unzip();
        Self {
            events,
            lines,
            directory,
            pass_env: Vec::new(),
            timeout,
            environments: Mutex::default(),
        }
    }

    /// With these variables of Assize's own environment.
    pub(crate) fn passing(mut self, names: &[String]) -> Self {
        self.pass_env = names.to_vec();
        self
    }

    /// Runs the command and returns its output. It gets the environment of the mode, if it is called for one.
    async fn call(
        &self,
        event: HookEvent,
        mode: Option<&str>,
        context: &impl Serialize,
    ) -> Result<String, BoxError> {
        let Some(position) = self.events.iter().position(|known| *known == event) else {
            return Ok(String::new());
        };
        let line = &self.lines[position];
        let command = Command::from_argv(["sh", "-c", line], &self.directory)
            .pass_usual_env()
            .env("ASSIZE_HOOK", event.as_str())
            .stdin(Stdin::Bytes(serde_json::to_vec(context)?));
        let mut command = match self.timeout.is_zero() {
            true => command,
            false => command.timeout(self.timeout),
        };
        for name in &self.pass_env {
            command = command.pass_env(name);
        }
        let environment = mode.and_then(|mode| self.environments().get(mode).cloned());
        for (name, value) in environment.iter().flat_map(|variables| variables.iter()) {
            command = command.env(name, value);
        }
        let output = command
            .run_to_end()
            .await
            .map_err(|error| error.explained())?;
        if output.exit.is_success() {
            return Ok(output.stdout.text().into_owned());
        }
        let ending = output.exit.in_words(self.timeout);
        let words = output.stderr.last_words(LAST_WORDS);
        let colon = if words.is_empty() { "" } else { ": " };
        Err(format!("`{line}` {ending}{colon}{words}").into())
    }

    fn environments(&self) -> MutexGuard<'_, BTreeMap<String, Environment>> {
        self.environments
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl RunHooks for HookCommands {
    fn events(&self) -> &[HookEvent] {
        &self.events
    }

    fn mode_resolved(&self, mode: &str, environment: &Environment) {
        self.environments()
            .insert(mode.to_owned(), Arc::clone(environment));
    }

    async fn before_scenario(
        &self,
        context: &BeforeScenarioContext,
    ) -> Result<Option<BaseScenario>, BoxError> {
        let mode = Some(&*context.mode);
        let printed = self.call(HookEvent::BeforeScenario, mode, context).await?;
        // Scripts also print what they do; only an object is an answer.
        if !printed.trim_start().starts_with('{') {
            return Ok(None);
        }
        let scenario = serde_json::from_str(&printed)
            .map_err(|error| format!("it printed no scenario: {error}"))?;
        Ok(Some(scenario))
    }

    async fn after_scenario(&self, context: &AfterScenarioContext) -> Result<(), BoxError> {
        let mode = Some(&*context.before.mode);
        let printed = self.call(HookEvent::AfterScenario, mode, context).await;
        printed.map(drop)
    }

    async fn before_mode(&self, mode: &str) -> Result<(), BoxError> {
        self.call(HookEvent::BeforeMode, Some(mode), &json!({"mode": mode}))
            .await
            .map(drop)
    }

    async fn after_mode(&self, mode: &str) -> Result<(), BoxError> {
        self.call(HookEvent::AfterMode, Some(mode), &json!({"mode": mode}))
            .await
            .map(drop)
    }

    async fn before_run(&self, context: &RunContext) -> Result<(), BoxError> {
        let printed = self.call(HookEvent::BeforeRun, None, context).await;
        printed.map(drop)
    }

    async fn after_run(&self, context: &RunContext) -> Result<(), BoxError> {
        let printed = self.call(HookEvent::AfterRun, None, context).await;
        printed.map(drop)
    }
}
