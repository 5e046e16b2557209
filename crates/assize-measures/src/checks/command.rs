//! `command`: a program run in the workspace after the agent has ended. Starting and bounding it is left to a
//! [`CommandRunner`].

use super::check::{Look, Seen, Sentence, Subject};
use super::file::inner_path;
use super::harbor::{HarborSpec, Rewards};
use crate::spec::Spec;
use assize_contracts::{BoxError, ConfigError, ScorerContext, async_trait};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const KEYS: [&str; 5] = ["run", "exit", "timeout_ms", "files", "in"];
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the programs that checks ask for.
#[async_trait]
pub trait CommandRunner: Send + Sync {
    /// Called once per command check and trial, after the agent has ended; trials concurrently. The program and all it
    /// started must be gone when this returns. An error means that it could not be run: the trial is void.
    async fn run(&self, spec: &CommandSpec<'_>) -> Result<CommandOutcome, BoxError>;

    /// Called once per `harbor` check and trial, after the agent has ended, while its container is still there. An error means
    /// that nothing is known about the agent: the trial is void.
    async fn verify(&self, spec: &HarborSpec<'_>) -> Result<Rewards, BoxError> {
        let _ = spec;
        Err("tasks of Harbor cannot be verified here".into())
    }
}

/// The place where the command of a check runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CheckPlace {
    /// In a fresh container of the agent's image where the agent was in one, else on this machine.
    #[default]
    LikeAgent,
    /// On this machine.
    Host,
}

/// A program to run.
#[derive(Debug, Clone, Copy)]
pub struct CommandSpec<'a> {
    /// A line for the shell.
    pub run: &'a str,
    /// The directory to run it in.
    pub workspace: &'a Path,
    /// Files to place first: path in the workspace, which may be one of the agent's links, to path of the source.
    pub files: &'a BTreeMap<String, PathBuf>,
    /// Its time limit.
    pub timeout: Duration,
    /// The mode's variables.
    pub environment: &'a BTreeMap<String, String>,
    /// The place where it runs.
    pub place: CheckPlace,
    /// The trial.
    pub context: &'a ScorerContext,
}

/// The exit of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// Its exit code. Absent when time ran out or a signal ended it.
    pub exit: Option<i32>,
    /// Its output, at least the end of it.
    pub output: String,
}

pub(super) struct CommandCheck {
    run: String,
    exit: i32,
    timeout: Duration,
    files: BTreeMap<String, PathBuf>,
    place: CheckPlace,
}

impl CommandCheck {
    pub(super) fn parse(spec: &Spec<'_>) -> Result<Self, ConfigError> {
        let fields = spec.fields(&KEYS)?;
        let run = match fields.get("run") {
            Some(spec) => spec.text()?,
            None => return Err(spec.error("expected `run`: a command")),
        };
        let exit = fields.get("exit").map(|spec| {
            let code = spec.count()?;
            i32::try_from(code).map_err(|_| spec.error("expected an exit code"))
        });
        let timeout = fields.get("timeout_ms").map(|spec| spec.count());
        let files = fields.get("files").map(|spec| parse_files(&spec));
        let place = fields.get("in").map(|spec| match spec.text()?.as_str() {
            "container" => Ok(CheckPlace::LikeAgent),
            "host" => Ok(CheckPlace::Host),
            other => Err(spec.error(format!("found `{other}`, expected `container` or `host`"))),
        });
        Ok(Self {
            run,
            exit: exit.transpose()?.unwrap_or(0),
            timeout: timeout
                .transpose()?
                .map_or(DEFAULT_TIMEOUT, Duration::from_millis),
            files: files.transpose()?.unwrap_or_default(),
            place: place.transpose()?.unwrap_or_default(),
        })
    }

    pub(super) fn sentence(&self) -> Sentence {
        Sentence {
            label: "command".to_owned(),
            words: format!(
                "`{}` exits with {}",
                super::excerpt(&self.run, 80),
                self.exit
            ),
            expected: json!({ "exit": self.exit }),
        }
    }

    pub(super) async fn look(&self, subject: &Subject<'_>) -> Look {
        let workspace = subject.workspace()?;
        let commands = subject.commands.ok_or("commands cannot be run here")?;
        let spec = CommandSpec {
            run: &self.run,
            workspace,
            files: &self.files,
            timeout: self.timeout,
            environment: &subject.context.environment,
            place: self.place,
            context: subject.context,
        };
        let outcome = commands
            .run(&spec)
            .await
            .map_err(|error| format!("the command could not be run: {error}"))?;
        let holds = outcome.exit == Some(self.exit);
        let actual = json!({ "exit": outcome.exit, "output": end_of(&outcome.output) });
        let doubt = doubt(outcome.exit).filter(|_| !holds);
        Ok(Seen::new(holds, actual).doubted(doubt))
    }
}

/// A command that did not get to say anything has not denied anything either.
fn doubt(exit: Option<i32>) -> Option<&'static str> {
    match exit {
        None => Some("the command did not come to an end of its own"),
        // The exit codes of shells for a program that is missing or cannot be executed.
        Some(126 | 127) => Some("the shell could not run the command"),
        Some(_) => None,
    }
}

fn parse_files(spec: &Spec<'_>) -> Result<BTreeMap<String, PathBuf>, ConfigError> {
    spec.entries()?
        .into_iter()
        .map(|(target, source)| {
            let name = Value::from(target);
            let target = inner_path(&source.with_value(&name))?;
            Ok((target, PathBuf::from(source.text()?)))
        })
        .collect()
}

/// The last lines of a program's output, which usually hold the error.
pub(super) fn end_of(output: &str) -> String {
    let output = output.trim_end();
    if output.len() <= super::ACTUAL_LENGTH {
        return output.to_owned();
    }
    let start = output.ceil_char_boundary(output.len() - super::ACTUAL_LENGTH);
    format!("…{}", &output[start..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::ChecksScorer;
    use crate::checks::tests::{answering, error_in, scenario};
    use assize_contracts::{Scorer, ScorerResult};
    use std::sync::Arc;

    /// Exits with the number in the command line, or cannot be run.
    struct Scripted;

    #[async_trait]
    impl CommandRunner for Scripted {
        async fn run(&self, spec: &CommandSpec<'_>) -> Result<CommandOutcome, BoxError> {
            assert_eq!(spec.workspace, Path::new("w"));
            let exit = match spec.run {
                "hangs" => None,
                code => Some(code.parse()?),
            };
            Ok(CommandOutcome {
                exit,
                output: format!("took {:?}\n", spec.timeout),
            })
        }
    }

    fn score(scorer: &ChecksScorer, command: Value) -> ScorerResult {
        score_check(scorer, json!({ "command": command }))
    }

    fn score_check(scorer: &ChecksScorer, check: Value) -> ScorerResult {
        let mut context = answering("");
        context.workspace = Some("w".into());
        let scenario = scenario(json!([check]));
        pollster::block_on(scorer.evaluate(&scenario, &context)).unwrap()
    }

    #[test]
    fn the_exit_code_decides() {
        let scorer = ChecksScorer::with_commands(Arc::new(Scripted));
        assert!(score(&scorer, json!({"run": "0"})).success);
        assert!(score(&scorer, json!({"run": "3", "exit": 3, "timeoutMs": 9})).success);
        let result = score(&scorer, json!({"run": "1"}));
        assert_eq!((result.success, result.error), (false, None));
        let actual = json!({"exit": 1, "output": "took 60s"});
        assert_eq!(result.details[0].actual, Some(actual));
    }

    #[test]
    fn a_command_that_cannot_be_run_is_no_failure_of_the_agent() {
        let scorer = ChecksScorer::with_commands(Arc::new(Scripted));
        assert!(score(&scorer, json!({"run": "x"})).error.is_some());
        let error = score(&ChecksScorer::new(), json!({"run": "0"})).error;
        assert_eq!(
            error.unwrap(),
            "check `command-1`: commands cannot be run here"
        );
    }

    #[test]
    fn a_command_that_said_nothing_has_not_denied_anything() {
        let scorer = ChecksScorer::with_commands(Arc::new(Scripted));
        for run in ["hangs", "127", "126"] {
            let result = score(&scorer, json!({ "run": run }));
            assert_eq!((result.success, result.error), (false, None));
            let result = score_check(&scorer, json!({"not": {"command": {"run": run}}}));
            assert!(!result.success && result.error.is_some(), "{run}");
            assert!(result.details[0].actual.is_some());
        }
        let negated = |command: Value| score_check(&scorer, json!({"not": {"command": command}}));
        assert!(negated(json!({"run": "1"})).success);
        let result = negated(json!({"run": "127", "exit": 127}));
        assert_eq!((result.success, result.error), (false, None));
    }

    #[test]
    fn files_are_placed_inside_the_workspace() {
        let command = json!({"run": "0", "files": {"../x": "a"}});
        let error = error_in(json!([{ "command": command }]));
        assert_eq!(error.path.join("."), "checks.0.command.files.../x");
    }
}
