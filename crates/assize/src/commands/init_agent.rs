//! `assize init --agent`: a suite for real agents in a real repository. Trials work on a checkout of their own, and the
//! project's tests are the check.

use super::init::{SCHEMAS, Written};
use crate::commands::UsageError;
use crate::suite::suggest;
use crate::terminal::{plain, warn};
use anyhow::Result;
use assize_agents::Recipe;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a project is tested.
#[derive(Debug, PartialEq, Eq)]
struct Tests {
    run: String,
    /// What has to be installed before.
    install: Option<String>,
    /// The file that tells.
    found_in: &'static str,
}

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
        (
            "assize.yaml".into(),
            suite(&repository, agents, tests.as_ref()),
        ),
        (
            "scenarios/first-task.yaml".into(),
            scenario(&repository, tests.as_ref()),
        ),
    ])
}

fn check_agents(agents: &[String]) -> Result<(), UsageError> {
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

/// The repository that trials begin with.
struct Repository {
    top: PathBuf,
    /// The way to it from the suite.
    from_suite: String,
    name: String,
    has_changes: bool,
}

impl Repository {
    fn around(directory: &Path) -> Result<Self, UsageError> {
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        // The directory may be about to be made.
        let existing = directory.ancestors().find(|place| place.is_dir());
        let existing = existing.unwrap_or(Path::new("/"));
        let Some(top) = git(existing, &["rev-parse", "--show-toplevel"]) else {
            return Err(UsageError {
                message: format!("`{}` is in no git repository", existing.display()),
                hint: Some(
                    "an agent works on a fresh checkout of a commit: `git init && git add . && git commit`, or go to a project first"
                        .to_owned(),
                ),
            });
        };
        if git(existing, &["rev-parse", "--verify", "HEAD"]).is_none() {
            return Err(UsageError {
                message: format!("the repository `{top}` has no commit yet"),
                hint: Some(
                    "an agent works on a fresh checkout of one: `git add . && git commit`"
                        .to_owned(),
                ),
            });
        }
        let top = PathBuf::from(top);
        let depth = directory
            .canonicalize()
            .unwrap_or(directory.clone())
            .strip_prefix(&top)
            .map_or(0, |below| below.components().count());
        let changed = git(existing, &["status", "--porcelain", "--untracked-files=no"]);
        Ok(Self {
            from_suite: match depth {
                0 => ".".to_owned(),
                depth => vec![".."; depth].join("/"),
            },
            name: top
                .file_name()
                .map_or("suite".into(), |name| name.to_string_lossy().into_owned()),
            has_changes: changed.is_some_and(|changed| !changed.is_empty()),
            top,
        })
    }
}

fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// How the project in a directory is tested, as its files tell.
fn tests_of(top: &Path) -> Option<Tests> {
    let has = |name: &str| top.join(name).is_file();
    let read = |name: &str| std::fs::read_to_string(top.join(name)).unwrap_or_default();
    let tests = |run: &str, install: Option<&str>, found_in| {
        Some(Tests {
            run: run.to_owned(),
            install: install.map(str::to_owned),
            found_in,
        })
    };
    if has("Cargo.toml") {
        return tests("cargo test", None, "Cargo.toml");
    }
    if has_test_script(&read("package.json")) {
        let (run, install) = match () {
            () if has("pnpm-lock.yaml") => ("pnpm test", "pnpm install --frozen-lockfile"),
            () if has("yarn.lock") => ("yarn test", "yarn install --frozen-lockfile"),
            () if has("package-lock.json") => ("npm test", "npm ci"),
            () => ("npm test", "npm install"),
        };
        return tests(run, Some(install), "package.json");
    }
    if has("pyproject.toml") || has("pytest.ini") || has("setup.py") {
        let found_in = match has("pyproject.toml") {
            true => "pyproject.toml",
            false => "pytest's settings",
        };
        return match () {
            () if has("uv.lock") => tests("uv run pytest -q", Some("uv sync"), found_in),
            () if has("poetry.lock") => {
                tests("poetry run pytest -q", Some("poetry install"), found_in)
            }
            () => tests("python3 -m pytest -q", None, found_in),
        };
    }
    if has("go.mod") {
        return tests("go test ./...", None, "go.mod");
    }
    for name in ["Makefile", "makefile"] {
        if read(name).lines().any(|line| line.starts_with("test:")) {
            return tests("make test", None, "Makefile");
        }
    }
    None
}

/// What `npm init` writes is no test.
fn has_test_script(package: &str) -> bool {
    let package: Value = serde_json::from_str(package).unwrap_or_default();
    let script = package.pointer("/scripts/test").and_then(Value::as_str);
    script.is_some_and(|script| !script.contains("no test specified"))
}

fn suite(repository: &Repository, agents: &[String], tests: Option<&Tests>) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let (question, modes) = match agents {
        [agent] => {
            let tell = match tests {
                Some(tests) => format!(
                    "Run `{}` before you change anything, and again after every change.",
                    tests.run
                ),
                None => "Make a plan first, then work step by step.".to_owned(),
            };
            let modes = format!(
                "provider: {{ uses: {agent} }}          # `model: …` in it names a model; `assize doctor {agent}` tells whether it works\n\
                 modes:\n  plain: {{}}\n  told:\n    system_instructions: {}\n",
                quoted(&tell)
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
         #   1. write what you want done into scenarios/first-task.yaml, and more tasks beside it\n\
         #   2. assize check      says what is missing: the agent, its key\n\
         #   3. assize run        asks before it spends money; `-n 1` for a first look\n\
         version: 1\n\
         name: {}\n\
         permissions: {{ auto_approve: true }}     # every trial has a checkout of its own\n\
         {modes}\
         scenarios: {{ paths: [\"scenarios/*.yaml\"] }}\n\
         execution: {{ repetitions: 5, concurrency: 2 }}\n",
        quoted(&repository.name),
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
         checks:\n{check}\
         \x20 - command: {{ run: 'test -n \"$(git status --porcelain)\"' }}\n    id: something-changed\n    description: something was changed\n",
        quoted(&repository.from_suite),
        setup.unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_command_is_found_where_projects_keep_it() {
        let found = |files: &[(&str, &str)]| {
            let place = tempfile::tempdir().unwrap();
            for (name, text) in files {
                std::fs::write(place.path().join(name), text).unwrap();
            }
            tests_of(place.path()).map(|tests| (tests.run, tests.install))
        };
        let script = r#"{"scripts": {"test": "vitest run"}}"#;
        let some =
            |run: &str, install: Option<&str>| Some((run.to_owned(), install.map(str::to_owned)));
        assert_eq!(found(&[("Cargo.toml", "")]), some("cargo test", None));
        assert_eq!(
            found(&[("package.json", script), ("package-lock.json", "")]),
            some("npm test", Some("npm ci"))
        );
        assert_eq!(
            found(&[("package.json", script), ("pnpm-lock.yaml", "")]),
            some("pnpm test", Some("pnpm install --frozen-lockfile"))
        );
        let none = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        assert_eq!(found(&[("package.json", none)]), None);
        assert_eq!(
            found(&[("pyproject.toml", ""), ("uv.lock", "")]),
            some("uv run pytest -q", Some("uv sync"))
        );
        assert_eq!(
            found(&[("pyproject.toml", "")]),
            some("python3 -m pytest -q", None)
        );
        assert_eq!(found(&[("go.mod", "")]), some("go test ./...", None));
        assert_eq!(
            found(&[("Makefile", "all:\n\ntest: all\n\tsh t.sh\n")]),
            some("make test", None)
        );
        assert_eq!(found(&[("Makefile", "all:\n")]), None);
        assert_eq!(found(&[]), None);
    }
}
