//! `assize import FORMAT PATH`: what others wrote, looked at and made usable here. One entry per format.

mod assertion;
mod cases;
mod evals_json;
mod harbor;
mod plugin_eval;
mod promptfoo;
mod triggers;

pub(super) use cases::{Cases, JudgeChoice, SuiteDraft};

use crate::cli::ImportArguments;
use crate::commands::UsageError;
use crate::exit::Exit;
use crate::suite::suggest;
use anyhow::Result;
use std::path::Path;

/// A format that can be imported.
struct Format {
    name: &'static str,
    import: fn(&ImportArguments) -> Result<Exit>,
}

const FORMATS: [Format; 5] = [
    Format {
        name: "harbor",
        import: harbor::import,
    },
    Format {
        name: "evals-json",
        import: |arguments| cases::import(arguments, evals_json::read),
    },
    Format {
        name: "triggers",
        import: |arguments| cases::import(arguments, triggers::read),
    },
    Format {
        name: "claude-plugin-eval",
        import: |arguments| cases::import(arguments, plugin_eval::read),
    },
    Format {
        name: "promptfoo",
        import: |arguments| cases::import(arguments, promptfoo::read),
    },
];

pub(crate) fn import(arguments: &ImportArguments) -> Result<Exit> {
    let named = FORMATS
        .iter()
        .find(|format| format.name == arguments.format);
    match named {
        Some(format) => (format.import)(arguments),
        None => {
            let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            Err(UsageError {
                message: format!("unknown format `{}`", arguments.format),
                hint: suggest(&arguments.format, &known)
                    .or_else(|| Some(format!("known are {}", known.join(", ")))),
            }
            .into())
        }
    }
}

/// The tasks of a skill: a file that is named, else everything that its directory `evals` has.
pub(super) fn tasks_of_skill(skill: &Path, named: Option<&Path>) -> Result<Cases> {
    if let Some(path) = named {
        return read_any(path);
    }
    let evals = skill.join("evals");
    let mut found = Cases::default();
    let names = [
        "evals.json",
        "triggers.json",
        "trigger_evals.json",
        "trigger-evals.json",
    ];
    for path in names.map(|name| evals.join(name)) {
        if path.is_file() {
            found.add(read_any(&path)?);
        }
    }
    if has_cases(&evals) {
        found.add(plugin_eval::read(&evals)?);
    }
    if found.is_empty() {
        return Err(UsageError {
            message: format!("`{}` has no tasks to try it on", skill.display()),
            hint: Some(
                "write `evals/triggers.json`: [{\"query\": \"Review this change\", \"should_trigger\": true}, …], \
                 or `evals/evals.json`; or name a file: `--tasks FILE`"
                    .to_owned(),
            ),
        }
        .into());
    }
    Ok(found)
}

/// Whatever of the formats a path is in.
fn read_any(path: &Path) -> Result<Cases> {
    if path.is_dir() {
        return match has_cases(path) {
            true => plugin_eval::read(path),
            false => evals_json::read(path),
        };
    }
    let is_yaml = path
        .extension()
        .is_some_and(|ending| ending == "yaml" || ending == "yml");
    if is_yaml {
        return promptfoo::read(path);
    }
    let value = cases::read_value(path)?;
    match value.is_array() {
        true => triggers::read(path),
        false => evals_json::read(path),
    }
}

/// Directories with a prompt or a case each.
fn has_cases(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|case| {
        ["prompt.md", "case.yaml", "case.yml"]
            .iter()
            .any(|name| case.join(name).is_file())
    })
}
