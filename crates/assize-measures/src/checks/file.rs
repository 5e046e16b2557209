//! `file`: what a file in the workspace must be after the agent has ended. The workspace is the agent's: it may hold
//! links, pipes and endless files, so only regular files inside it are read, and only up to a bound.

use super::check::{Look, Seen, Sentence, Subject};
use super::text::{Text, TextTest};
use crate::spec::Spec;
use assize_contracts::ConfigError;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

pub(super) const KEYS: [&str; 7] = [
    "path", "exists", "absent", "contains", "equals", "matches", "schema",
];
const SIZE_LIMIT: u64 = 16 << 20;

pub(super) struct FileCheck {
    path: String,
    rule: FileRule,
}

enum FileRule {
    Exists,
    Absent,
    Text(Vec<TextTest>),
}

/// The state of a path.
enum FileState {
    Missing,
    /// There, but nothing that a check would read, in words.
    Other(&'static str),
    Regular(PathBuf),
}

impl FileCheck {
    pub(super) fn parse(spec: &Spec<'_>) -> Result<Self, ConfigError> {
        let fields = spec.fields(&KEYS)?;
        let Some(path) = fields.get("path") else {
            return Err(spec.error("expected a `path`"));
        };
        let flag = |name| fields.get(name).map(|spec| spec.flag()).transpose();
        let tests = TextTest::parse_all(&fields, &KEYS[3..])?;
        let rule = match (flag("exists")?, flag("absent")?) {
            (Some(_), Some(_)) => {
                return Err(spec.error("`exists` and `absent` exclude each other"));
            }
            (Some(false), None) | (None, Some(true)) if tests.is_empty() => FileRule::Absent,
            (Some(false), None) | (None, Some(true)) => {
                return Err(spec.error("a file that is absent has no content to check"));
            }
            _ if tests.is_empty() => FileRule::Exists,
            _ => FileRule::Text(tests),
        };
        let path = inner_path(&path)?;
        Ok(Self { path, rule })
    }

    pub(super) fn sentence(&self) -> Sentence {
        let path = &self.path;
        let (label, verb, expected) = match &self.rule {
            FileRule::Exists => ("file-exists", "exists", true),
            FileRule::Absent => ("file-absent", "is absent", true),
            FileRule::Text(tests) => {
                return Sentence::of_tests("file", &format!("`{path}`"), tests);
            }
        };
        Sentence {
            label: label.to_owned(),
            words: format!("`{path}` {verb}"),
            expected: Value::Bool(expected),
        }
    }

    pub(super) fn look(&self, subject: &Subject<'_>) -> Look {
        let state = self.state(subject.workspace()?)?;
        let tests = match &self.rule {
            FileRule::Exists => return Ok(state.seen(!matches!(state, FileState::Missing))),
            FileRule::Absent => return Ok(state.seen(matches!(state, FileState::Missing))),
            FileRule::Text(tests) => tests,
        };
        let FileState::Regular(real) = &state else {
            return Ok(state.seen(false));
        };
        let text = self.read(real)?;
        Ok(Seen::of_tests(tests, &Text::new(text)))
    }

    fn state(&self, workspace: &Path) -> Result<FileState, String> {
        let unreadable = |error| format!("`{}` cannot be read: {error}", self.path);
        let workspace = workspace
            .canonicalize()
            .map_err(|error| format!("the workspace cannot be read: {error}"))?;
        let real = match workspace.join(&self.path).canonicalize() {
            Ok(real) => real,
            Err(error) if is_missing(&error) => return Ok(FileState::Missing),
            // Links in a circle lead nowhere, as one to nothing does. It is the agent's own work, so it is judged.
            Err(_) if has_link(&workspace, &self.path) => return Ok(FileState::Missing),
            Err(error) => return Err(unreadable(error)),
        };
        if !real.starts_with(&workspace) {
            return Ok(FileState::Other("a link out of the workspace"));
        }
        let metadata = fs::metadata(&real).map_err(unreadable)?;
        Ok(if metadata.is_file() {
            FileState::Regular(real)
        } else if metadata.is_dir() {
            FileState::Other("a directory")
        } else {
            FileState::Other("not a regular file")
        })
    }

    fn read(&self, real: &Path) -> Result<String, String> {
        let mut bytes = Vec::new();
        File::open(real)
            .and_then(|file| file.take(SIZE_LIMIT + 1).read_to_end(&mut bytes))
            .map_err(|error| format!("`{}` cannot be read: {error}", self.path))?;
        if bytes.len() as u64 > SIZE_LIMIT {
            return Err(format!(
                "`{}` is larger than {} MiB",
                self.path,
                SIZE_LIMIT >> 20
            ));
        }
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

impl FileState {
    fn seen(&self, holds: bool) -> Seen {
        let actual = match self {
            Self::Missing => "missing",
            Self::Other(what) => what,
            Self::Regular(_) => "a file",
        };
        Seen::new(holds, Value::from(actual))
    }
}

/// A path that stays inside the workspace as it is written.
pub(super) fn inner_path(spec: &Spec<'_>) -> Result<String, ConfigError> {
    let path = spec.text()?;
    let stays = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.is_empty() || path.contains('\0') || !Path::new(&path).components().all(stays) {
        return Err(spec.error(format!(
            "expected a path inside the workspace, found `{}`",
            super::excerpt(&path, 80)
        )));
    }
    Ok(path)
}

fn has_link(workspace: &Path, path: &str) -> bool {
    let is_link = |path: &Path| {
        let metadata = fs::symlink_metadata(workspace.join(path));
        metadata.is_ok_and(|metadata| metadata.is_symlink())
    };
    Path::new(path).ancestors().any(is_link)
}

fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{answering, error_in, scenario, score_of};
    use assize_contracts::ScorerResult;
    use serde_json::{Value, json};
    use std::path::PathBuf;

    /// A workspace of its own for each test, gone when dropped.
    struct Workspace(PathBuf);

    impl Workspace {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("assize-{name}-{}", std::process::id()));
            std::fs::create_dir_all(path.join("src/empty")).unwrap();
            std::fs::write(path.join("src/pager.py"), "for i in range(3): pass\n").unwrap();
            std::fs::write(path.join("out.json"), r#"{"ok": true}"#).unwrap();
            Self(path)
        }

        fn score(&self, file: Value) -> ScorerResult {
            let mut context = answering("");
            context.workspace = Some(self.0.clone());
            score_of(&scenario(json!([{ "file": file }])), &context)
        }

        fn check(&self, file: Value, expected: bool) {
            let result = self.score(file);
            assert_eq!(result.error, None);
            assert_eq!(result.success, expected, "{:?}", result.details);
        }
    }

    impl Drop for Workspace {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn files_are_checked_in_every_way() {
        let workspace = Workspace::new("files");
        for (file, expected) in [
            (json!({"path": "src/pager.py"}), true),
            (json!({"path": "./src/pager.py", "exists": true}), true),
            (json!({"path": "src/pager.py", "exists": false}), false),
            (json!({"path": "src/pager.py", "absent": true}), false),
            (json!({"path": "src/none.py", "absent": true}), true),
            (json!({"path": "src/pager.py/none", "exists": true}), false),
            (json!({"path": "src/empty", "exists": true}), true),
            (json!({"path": "src/empty", "contains": ""}), false),
            (json!({"path": "src/pager.py", "contains": "range("}), true),
            (
                json!({"path": "src/pager.py", "equals": "for i in range(3): pass"}),
                true,
            ),
            (
                json!({"path": "src/pager.py", "matches": r"range\(\d\)"}),
                true,
            ),
            (json!({"path": "src/none.py", "matches": "."}), false),
            (
                json!({"path": "out.json", "schema": {"required": ["ok"]}}),
                true,
            ),
            (json!({"path": "src/pager.py", "schema": {}}), false),
        ] {
            workspace.check(file, expected);
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_link_does_not_lead_out_of_the_workspace() {
        let workspace = Workspace::new("links");
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, workspace.0.join(name)).unwrap();
        };
        link("/etc", "etc");
        link("src/pager.py", "inside.py");
        link("nowhere", "dangling");
        link("there", "here");
        link("here", "there");
        workspace.check(json!({"path": "etc/passwd", "contains": "root"}), false);
        workspace.check(json!({"path": "etc/passwd", "absent": true}), false);
        workspace.check(json!({"path": "inside.py", "contains": "range"}), true);
        workspace.check(json!({"path": "dangling", "exists": true}), false);
        workspace.check(json!({"path": "here", "exists": true}), false);
        workspace.check(json!({"path": "here/below", "contains": "x"}), false);
    }

    #[test]
    fn a_file_without_end_is_not_read_to_it() {
        let workspace = Workspace::new("huge");
        let file = std::fs::File::create(workspace.0.join("huge")).unwrap();
        file.set_len(super::SIZE_LIMIT + 1).unwrap();
        let error = workspace
            .score(json!({"path": "huge", "contains": "x"}))
            .error;
        assert!(error.unwrap().ends_with("`huge` is larger than 16 MiB"));
    }

    #[test]
    fn paths_that_leave_the_workspace_are_refused_before_a_run() {
        for path in ["/etc/passwd", "../x", "a/../../x", "", "a\0b"] {
            let error = error_in(json!([{"file": {"path": path, "exists": true}}]));
            assert_eq!(error.path, ["checks", "0", "file", "path"]);
        }
        error_in(json!([{"file": {"path": "a", "absent": true, "contains": "x"}}]));
    }

    #[test]
    fn without_a_workspace_there_is_nothing_to_look_at() {
        let checks = json!([{"file": {"path": "a"}}]);
        let error = score_of(&scenario(checks), &answering("")).error;
        assert_eq!(
            error.unwrap(),
            "check `file-exists-1`: the trial has no workspace"
        );
    }
}
