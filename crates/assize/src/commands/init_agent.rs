//! `assize init --agent`: a suite for real agents in a real repository. Trials work on a checkout of their own, and the
//! project's tests are the check.

use super::init::{SCHEMAS, Written};
use super::project_tests::{Tests, tests_of};
use super::repository::Repository;
use crate::commands::UsageError;
use crate::suite::suggest;
use crate::terminal::{plain, warn};
use anyhow::Result;
use assize_agents::Recipe;
use serde_json::Value;
use std::path::Path;

/// The first thing to do with the suite.
const FIRST_STEP: &str =
    "write what you want done into scenarios/first-task.yaml, and more tasks beside it";

/// The files of the suite, for the repository around `directory`.
pub(super) fn files(directory: &Path, agents: &[String]) -> Result<Vec<Written>> {
    check_agents(agents)?;
    let repository = Repository::around(directory)?;
    let tests = tests_of(&repository.top);
    match &tests {
        Some(tests) => crate::terminal::say(format!(
            "tests are run by `{}`, as {} says",
            plain(&tests.run),
            tests.found_in
        )),
        None => warn(
            "no test command was found: write yours into the checks of scenarios/first-task.yaml, or nothing but a change is asked for",
        ),
    }
    if repository.has_changes {
        warn("trials begin with the last commit: what is not committed is not part of them");
    }
    Ok(vec![
        Written::text(
            "assize.yaml",
            suite(&repository.name, agents, tests.as_ref(), FIRST_STEP),
        ),
        Written::text(
            "scenarios/first-task.yaml",
            scenario(&repository, tests.as_ref()),
        ),
    ])
}

pub(super) fn check_agents(agents: &[String]) -> Result<(), UsageError> {
    let recipes = Recipe::built_in().iter();
    let known: Vec<&str> = recipes.map(|recipe| recipe.name.as_str()).collect();
    match agents.iter().find(|agent| !known.contains(&agent.as_str())) {
        Some(agent) => Err(UsageError {
            message: format!("unknown agent `{agent}`"),
            hint: suggest(agent, &known),
        }),
        None => Ok(()),
    }
}

/// The suite for these agents. `first_step` says what a person does before the first run.
pub(super) fn suite(
    name: &str,
    agents: &[String],
    tests: Option<&Tests>,
    first_step: &str,
) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let (question, modes) = match agents {
        [agent] => {
            let instructions = match tests {
                Some(tests) => format!(
                    "Run `{}` before you change anything, and again after every change.",
                    tests.run
                ),
                None => "Make a plan first, then work step by step.".to_owned(),
            };
            let modes = format!(
                "provider: {{ uses: {agent} }}          # `model: …` in it names a model; `assize doctor {agent}` shows whether it works\n\
                 modes:\n  plain: {{}}\n  told:\n    system_instructions: {}\n",
                quoted(&instructions)
            );
            ("does it pay to tell the agent how to work here?", modes)
        }
        agents => {
            let modes = agents
                .iter()
                .map(|agent| format!("  {agent}: {{ provider: {{ uses: {agent} }} }}\n"));
            let modes = format!("modes:\n{}", modes.collect::<String>());
            ("which agent is better here?", modes)
        }
    };
    format!(
        "# yaml-language-server: $schema={SCHEMAS}/suite.schema.json\n\
         # Your repository, your tests: {question}\n\
         #   1. {first_step}\n\
         #   2. assize check      says what is missing: the agent, its key\n\
         #   3. assize run        asks before it spends money; `-n 1` for a first look\n\
         version: 1\n\
         name: {}\n\
         permissions: {{ auto_approve: true }}     # every trial has a checkout of its own\n\
         {modes}\
         scenarios: {{ paths: [\"scenarios/*.yaml\"] }}\n\
         execution: {{ repetitions: 5, concurrency: 2 }}\n",
        quoted(name),
    )
}

fn scenario(repository: &Repository, tests: Option<&Tests>) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let (also, check, setup) = match tests {
        Some(tests) => {
            let install = tests.install.as_ref();
            (
                format!("  All tests must pass: `{}`.\n", tests.run),
                format!(
                    "  - command: {{ run: {}, timeout_ms: 600000 }}\n    id: tests-pass\n",
                    quoted(&tests.run)
                ),
                install.map(|line| format!("  setup_once: [{}]\n", quoted(line))),
            )
        }
        None => (
            String::new(),
            "  # - command: { run: \"make test\" }      # write how your project is tested\n"
                .to_owned(),
            None,
        ),
    };
    format!(
        "# yaml-language-server: $schema=../{SCHEMAS}/scenario.schema.json\n\
         id: first-task\n\
         # Write here what you would ask an agent. This one fits every repository.\n\
         prompt: |\n  Find a function in this repository that no test covers, and write a good test for it.\n{also}\
         timeout_ms: 900000\n\
         workspace:\n  git: {{ repo: {}, ref: HEAD }}\n{}\
         checks:\n\
         \x20 # First, because running the tests may leave files behind.\n\
         \x20 - command: {{ run: 'test -n \"$(git status --porcelain)\"' }}\n    id: something-changed\n    description: something was changed\n\
         {check}",
        quoted(&repository.from_suite),
        setup.unwrap_or_default(),
    )
}
