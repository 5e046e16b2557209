//! The commands and changes of a session, as far as its tool calls show them.

use crate::commands::session_files;
use assize_contracts::{SessionTrace, TraceEvent};
use assize_secrets::Redactor;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Programs that run tests, as the beginning of a command.
const TEST_RUNNERS: &[&str] = &[
    "cargo test",
    "cargo nextest",
    "pytest",
    "python -m pytest",
    "python3 -m pytest",
    "python -m unittest",
    "python3 -m unittest",
    "uv run pytest",
    "poetry run pytest",
    "tox",
    "nox",
    "npm test",
    "npm run test",
    "yarn test",
    "pnpm test",
    "npx jest",
    "npx vitest",
    "jest",
    "vitest",
    "node --test",
    "bun test",
    "deno test",
    "go test",
    "make test",
    "make check",
    "ctest",
    "rspec",
    "bundle exec rspec",
    "mvn test",
    "gradle test",
    "./gradlew test",
    "dotnet test",
    "phpunit",
    "mix test",
    "swift test",
    "zig build test",
];

/// Test commands that are proposed, at most.
const MOST_TESTS: usize = 3;

/// The most files that are named. Of a session that changed more, the directories are.
const MOST_FILES: usize = 20;

/// The work of a session.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Test commands that did not fail, the last ones first.
    pub(super) tests: Vec<String>,
    /// Files that were changed, relative to the repository; directories where there are many.
    pub(super) changed: Vec<String>,
    /// Files that were written as a whole and are not there now at that commit.
    pub(super) created: Vec<String>,
}

impl Work {
    pub(super) fn of(trace: &SessionTrace, top: Option<&Path>, redactor: &Redactor) -> Self {
        let mut tests: Vec<String> = Vec::new();
        let mut changed: BTreeSet<String> = BTreeSet::new();
        let mut created: BTreeSet<String> = BTreeSet::new();
        for event in &trace.events {
            let TraceEvent::ToolCall {
                name,
                input,
                success,
                ..
            } = &**event
            else {
                continue;
            };
            let input = parsed(input);
            if let Some(command) = shell_command(name, &input) {
                for test in test_commands(&command) {
                    tests.retain(|known| *known != test);
                    if *success != Some(false) {
                        tests.push(test);
                    }
                }
            }
            if *success == Some(false) {
                continue;
            }
            for file in changed_files(name, &input) {
                let Some(path) = top.and_then(|top| inside(top, &file.path)) else {
                    continue;
                };
                if file.is_new {
                    created.insert(path.clone());
                }
                changed.insert(path);
            }
        }
        tests.reverse();
        tests.truncate(MOST_TESTS);
        let clean = |text: &String| session_files::without_secrets(text, redactor);
        Self {
            tests: tests.iter().map(clean).collect(),
            changed: summarized(changed).iter().map(clean).collect(),
            created: created.iter().take(MOST_FILES).map(clean).collect(),
        }
    }
}

/// Some agents write their arguments as JSON in a string.
fn parsed(input: &Value) -> Value {
    match input {
        Value::String(text) if text.trim_start().starts_with('{') => {
            serde_json::from_str(text).unwrap_or_else(|_| input.clone())
        }
        other => other.clone(),
    }
}

fn shell_command(tool: &str, input: &Value) -> Option<String> {
    let tool = tool.to_lowercase();
    let is_shell = ["bash", "shell", "exec", "terminal", "command", "run"]
        .iter()
        .any(|word| tool.contains(word));
    if !is_shell {
        return None;
    }
    let command = ["command", "cmd", "script"]
        .iter()
        .find_map(|key| input.get(key))?;
    match command {
        Value::String(text) => Some(text.clone()),
        // `["bash", "-lc", "cargo test"]`
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                [shell, flag, line] if shell.ends_with("sh") && flag.starts_with('-') => {
                    Some((*line).to_owned())
                }
                words => shlex::try_join(words.iter().copied()).ok(),
            }
        }
        _ => None,
    }
}

/// The parts of a command line that run tests, without what only shortens their output.
fn test_commands(line: &str) -> Vec<String> {
    let parts = line.split(['\n', ';']).flat_map(|part| part.split("&&"));
    let command = |part: &str| {
        let part = part.split('|').next().unwrap_or_default().trim();
        let part = part.trim_end_matches("2>&1").trim();
        let words = part.split_whitespace();
        let plain: Vec<&str> = words.skip_while(|word| is_assignment(word)).collect();
        let plain = plain.join(" ");
        let is_runner = |runner: &str| {
            plain
                .strip_prefix(runner)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        TEST_RUNNERS
            .iter()
            .any(|runner| is_runner(runner))
            .then(|| part.to_owned())
    };
    parts.filter_map(command).collect()
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

struct ChangedFile {
    path: String,
    is_new: bool,
}

/// Files that a tool call writes: editors name one, patches name many.
fn changed_files(tool: &str, input: &Value) -> Vec<ChangedFile> {
    let tool = tool.to_lowercase();
    let is_editor = ["edit", "write", "create", "replace", "patch", "insert"]
        .iter()
        .any(|word| tool.contains(word));
    let keys = [
        "file_path",
        "filePath",
        "path",
        "notebook_path",
        "absolute_path",
        "file",
        "target_file",
    ];
    let named = keys.iter().find_map(|key| input.get(key)?.as_str());
    let mut files: Vec<ChangedFile> = named
        .filter(|_| is_editor)
        .map(|path| ChangedFile {
            path: path.to_owned(),
            is_new: tool.contains("create"),
        })
        .into_iter()
        .collect();
    for text in strings(input) {
        files.extend(text.lines().filter_map(|line| {
            let (path, is_new) = match line.strip_prefix("*** Add File: ") {
                Some(path) => (path, true),
                None => (line.strip_prefix("*** Update File: ")?, false),
            };
            Some(ChangedFile {
                path: path.trim().to_owned(),
                is_new,
            })
        }));
    }
    files
}

/// Every text in arguments.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

/// The path relative to the repository. None for files elsewhere.
fn inside(top: &Path, path: &str) -> Option<String> {
    let path = Path::new(path);
    let relative = match path.is_absolute() {
        true => path.strip_prefix(top).ok()?,
        false => path,
    };
    let mut parts = PathBuf::new();
    for part in relative.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    let text = parts.to_str()?.to_owned();
    (!text.is_empty()).then_some(text)
}

fn summarized(files: BTreeSet<String>) -> Vec<String> {
    if files.len() <= MOST_FILES {
        return files.into_iter().collect();
    }
    let folder = |name: &String| match name.split_once('/') {
        Some((first, _)) => format!("{first}/**"),
        None => name.clone(),
    };
    let folders: BTreeSet<String> = files.iter().map(folder).collect();
    folders.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_contracts::TokenBreakdown;
    use assize_secrets::Secrets;
    use serde_json::json;

    fn work(calls: &[(&str, Value, Option<bool>)]) -> Work {
        let event = |(name, input, success): &(&str, Value, Option<bool>)| TraceEvent::ToolCall {
            name: (*name).to_owned(),
            input: input.clone(),
            output: Value::Null,
            duration_ms: None,
            success: *success,
            error: None,
            context: None,
        };
        let events: Vec<TraceEvent> = calls.iter().map(event).collect();
        let trace = SessionTrace::from_events("s".to_owned(), events, TokenBreakdown::default());
        Work::of(
            &trace,
            Some(Path::new("/repo")),
            &Redactor::new(&Secrets::default()),
        )
    }

    #[test]
    fn tests_that_ended_well_are_found_in_the_commands_of_every_agent() {
        let found = work(&[
            (
                "Bash",
                json!({ "command": "cd /repo && cargo test -p pager 2>&1 | tail -5" }),
                Some(true),
            ),
            (
                "shell",
                json!({ "command": ["bash", "-lc", "npm test"] }),
                Some(false),
            ),
            (
                "exec_command",
                json!(r#"{"cmd": "CI=1 pytest -q tests/a.py; echo done"}"#),
                None,
            ),
            ("Bash", json!({ "command": "echo cargo test" }), Some(true)),
        ]);
        assert_eq!(
            found.tests,
            ["CI=1 pytest -q tests/a.py", "cargo test -p pager"]
        );
    }

    #[test]
    fn changed_files_are_those_of_the_repository() {
        let patch =
            "*** Begin Patch\n*** Update File: src/a.rs\n*** Add File: src/b.rs\n*** End Patch";
        let found = work(&[
            (
                "Edit",
                json!({ "file_path": "/repo/src/main.rs" }),
                Some(true),
            ),
            ("Write", json!({ "file_path": "/etc/passwd" }), Some(true)),
            (
                "Write",
                json!({ "file_path": "/repo/failed.rs" }),
                Some(false),
            ),
            (
                "Read",
                json!({ "file_path": "/repo/README.md" }),
                Some(true),
            ),
            ("apply_patch", json!(patch), Some(true)),
            ("edit", json!({ "path": "../outside.rs" }), None),
        ]);
        assert_eq!(found.changed, ["src/a.rs", "src/b.rs", "src/main.rs"]);
        assert_eq!(found.created, ["src/b.rs"]);
    }

    #[test]
    fn keys_in_commands_are_removed() {
        let key = format!("sk-ant-api03-{}", "aB3dE5gH7jK9mN1pQ3sT5vW7".repeat(3));
        let found = work(&[(
            "Bash",
            json!({ "command": format!("API_KEY={key} make test") }),
            Some(true),
        )]);
        assert!(
            !found.tests[0].contains(&key) && found.tests[0].ends_with("make test"),
            "{:?}",
            found.tests
        );
    }
}
