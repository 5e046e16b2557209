//! The command line as an experiment, which can also be saved as a suite.

use crate::cli::TryArguments;
use crate::commands::UsageError;
use crate::suite::{FILE_NAMES, UnwrittenSuite};
use crate::terminal::one_line;
use anyhow::{Context, Result};
use assize_agents::Recipe;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Longer commands are cut in headings.
const LONGEST_NAME: usize = 60;

pub(super) struct Experiment {
    commands: Vec<TriedCommand>,
    /// Variables that the user names.
    pass_env: Vec<String>,
    repetitions: u32,
    scenario: Value,
}

/// The file of the scenario in a saved suite.
const SCENARIO_FILE: &str = "prompt.yaml";

struct TriedCommand {
    name: String,
    argv: Vec<String>,
}

impl Experiment {
    pub(super) fn new(arguments: &TryArguments) -> Result<Self> {
        let mut commands: Vec<TriedCommand> = Vec::new();
        for text in &arguments.mode {
            let name = unused_name(&commands, text);
            let argv = split(text)?;
            commands.push(TriedCommand { name, argv });
        }
        if commands.len() < 2 {
            let mut error = UsageError::new("one command cannot be compared");
            error.hint = Some("give at least two: `-m 'COMMAND' -m 'COMMAND'`".to_owned());
            return Err(error.into());
        }
        Ok(Self {
            scenario: scenario(arguments)?,
            repetitions: arguments.repetitions,
            pass_env: arguments.pass_env.clone(),
            commands,
        })
    }

    /// The names of the commands, the first being what the others are compared with.
    pub(super) fn names(&self) -> Vec<String> {
        self.commands
            .iter()
            .map(|command| command.name.clone())
            .collect()
    }

    /// The variables that the commands get besides the usual ones, as far as they are set.
    pub(super) fn passed(&self) -> Vec<String> {
        let mut names = self.pass_env.clone();
        for command in &self.commands {
            names.extend(keys_of(&command.argv));
        }
        let is_set = |name: &String| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        names.retain(is_set);
        names.sort();
        names.dedup();
        names
    }

    /// Variables that the user names and that are not set.
    pub(super) fn unset(&self) -> Vec<&str> {
        let names = self.pass_env.iter().map(String::as_str);
        names
            .filter(|name| std::env::var_os(name).is_none())
            .collect()
    }

    /// The experiment as it is run here and now.
    pub(super) fn unwritten(&self) -> UnwrittenSuite {
        let mut suite = self.suite();
        suite["name"] = json!("try");
        UnwrittenSuite {
            directory: absolute(Path::new(".")),
            suite,
            scenarios: [(SCENARIO_FILE.to_owned(), self.scenario.clone())].into(),
        }
    }

    /// Writes a suite of two files.
    pub(super) fn write(&self, directory: &Path) -> Result<()> {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create `{}`", directory.display()))?;
        let suite = yaml(
            "Commands compared on one prompt, one at a time, in turns.",
            &self.suite(),
        );
        let scenario = yaml("Every run has a directory of its own.", &self.scenario);
        for (name, text) in [(FILE_NAMES[0], suite), (SCENARIO_FILE, scenario)] {
            let path = directory.join(name);
            std::fs::write(&path, text)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        Ok(())
    }

    fn passed_to(&self, argv: &[String]) -> Vec<String> {
        let mut names = self.passed();
        let keys = keys_of(argv);
        names.retain(|name| keys.contains(name) || self.pass_env.contains(name));
        names
    }

    fn suite(&self) -> Value {
        let modes: serde_json::Map<String, Value> = self
            .commands
            .iter()
            .map(|TriedCommand { name, argv }| {
                let mut mode = json!({"provider": {"uses": "command", "command": argv}});
                let passed = self.passed_to(argv);
                if !passed.is_empty() {
                    mode["provider"]["pass_env"] = json!(passed);
                }
                (name.clone(), mode)
            })
            .collect();
        json!({
            "version": 1,
            "modes": modes,
            "scenarios": {"paths": [SCENARIO_FILE]},
            "capture": {"proxy": "auto"},
            "execution": {"repetitions": self.repetitions, "concurrency": 1, "warmup": false},
        })
    }
}

/// Variables with the credentials of a command: those of the agent it is, or the usual ones where that is not known.
fn keys_of(argv: &[String]) -> Vec<String> {
    const USUAL: [&str; 5] = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "OPENROUTER_API_KEY",
    ];
    let program = argv.first().map_or("", String::as_str);
    let program = Path::new(program).file_name().unwrap_or_default();
    let mut recipes = Recipe::built_in().iter();
    match recipes.find(|recipe| program == recipe.program()) {
        Some(recipe) => recipe.keys.clone(),
        None => USUAL.map(str::to_owned).to_vec(),
    }
}

/// YAML of an object: a key per line with its value as JSON, which is YAML; objects of objects are opened once more.
fn yaml(comment: &str, object: &Value) -> String {
    let mut text = format!("# {comment}\n");
    for (key, value) in object.as_object().into_iter().flatten() {
        match value.as_object() {
            Some(inner) if !inner.is_empty() && inner.values().all(Value::is_object) => {
                text.push_str(&format!("{key}:\n"));
                for (name, value) in inner {
                    text.push_str(&format!("  {}: {value}\n", Value::from(name.as_str())));
                }
            }
            _ => text.push_str(&format!("{key}: {value}\n")),
        }
    }
    text
}

/// A command as a shell would split it, except that nothing is expanded.
fn split(text: &str) -> Result<Vec<String>, UsageError> {
    let mut argv = shlex::split(text).ok_or_else(|| UsageError {
        message: format!("the command `{text}` has a quote that is never closed"),
        hint: Some("put the command into single quotes, and texts in it into double ones: -m 'claude -p \"{prompt}\"'".to_owned()),
    })?;
    let Some(program) = argv.first_mut() else {
        return Err(UsageError {
            message: "found an empty command".to_owned(),
            hint: Some(
                "`-m` takes a command as you would type it: -m 'claude -p {prompt}'".to_owned(),
            ),
        });
    };
    // Relative programs lie here, not where the suite is written.
    if program.contains('/') {
        let path = absolute(Path::new(&*program));
        *program = path.to_string_lossy().into_owned();
    }
    Ok(argv)
}

/// The same command may be tried twice, to see how much of a difference is luck.
fn unused_name(taken: &[TriedCommand], text: &str) -> String {
    let name = one_line(text, LONGEST_NAME);
    let names = (1..).map(|number| match number {
        1 => name.clone(),
        number => format!("{name} ({number})"),
    });
    let is_free = |name: &String| taken.iter().all(|command| command.name != *name);
    names.into_iter().find(is_free).unwrap_or(name.clone())
}

fn scenario(arguments: &TryArguments) -> Result<Value> {
    if arguments.prompt.trim().is_empty() {
        return Err(UsageError {
            message: "the prompt is empty".to_owned(),
            hint: Some("write what the commands are asked: --prompt 'Fix the tests'".to_owned()),
        }
        .into());
    }
    let workspace = arguments.workspace.as_ref();
    if let Some(missing) = workspace.filter(|directory| !directory.is_dir()) {
        let path = missing.display();
        return Err(UsageError {
            message: match missing.exists() {
                true => format!("the workspace `{path}` is no directory"),
                false => format!("there is no directory `{path}` for the workspace"),
            },
            hint: Some("`--workspace DIR` names the directory that every run gets a copy of; without it, runs begin in an empty one".to_owned()),
        }
        .into());
    }
    let workspace = match &arguments.workspace {
        Some(directory) => json!({"from": absolute(directory)}),
        None => json!({}),
    };
    let checks: Vec<Value> = arguments
        .check
        .iter()
        .map(|line| json!({"command": {"run": line}}))
        .collect();
    Ok(json!({
        "id": "prompt",
        "prompt": arguments.prompt,
        "timeout_ms": arguments.timeout,
        "workspace": workspace,
        "checks": checks,
    }))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_as_by_a_shell() {
        assert_eq!(
            split("sh -c \"a; b\" 'c d' {prompt}").unwrap(),
            ["sh", "-c", "a; b", "c d", "{prompt}"]
        );
        assert!(split("echo 'x").is_err());
        assert!(split("  ").is_err());
    }

    #[test]
    fn the_same_command_twice_gets_two_names() {
        let mut commands = Vec::new();
        for _ in 0..2 {
            let name = unused_name(&commands, "a  b");
            commands.push(TriedCommand {
                name,
                argv: Vec::new(),
            });
        }
        assert_eq!([&*commands[0].name, &*commands[1].name], ["a b", "a b (2)"]);
    }
}
