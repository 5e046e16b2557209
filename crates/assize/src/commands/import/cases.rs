//! Cases of other tools as scenarios of a suite, with a list of everything that has no equivalent.

use crate::cli::ImportArguments;
use crate::commands::UsageError;
use crate::commands::yaml_text::block;
use crate::exit::Exit;
use crate::suite::{Document, FILE_NAMES, SuiteError};
use crate::terminal::{plain, print, print_json, say};
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Cases that were read, as scenarios.
#[derive(Debug, Default)]
pub(in crate::commands) struct Cases {
    /// In the form of scenario files.
    pub(in crate::commands) scenarios: Vec<Value>,
    /// Files that workspaces need: where they go in the suite, and where they are.
    pub(in crate::commands) files: Vec<(PathBuf, PathBuf)>,
    /// The skill that the cases are about, where it was found.
    pub(in crate::commands) skill: Option<PathBuf>,
    /// Parts without an equivalent, and the reasons.
    pub(in crate::commands) left_out: Vec<String>,
}

/// The model that judges criteria that no program can check.
#[derive(Debug, Clone)]
pub(in crate::commands) struct JudgeChoice {
    pub(in crate::commands) api: String,
    pub(in crate::commands) model: String,
    /// Its address, if not the API's own service.
    pub(in crate::commands) base_url: Option<String>,
}

/// The keys of a suite around imported scenarios.
#[derive(Debug, Default)]
pub(in crate::commands) struct SuiteDraft {
    /// First line of the file.
    pub(in crate::commands) comment: String,
    pub(in crate::commands) keys: Map<String, Value>,
}

impl Cases {
    pub(in crate::commands) fn is_empty(&self) -> bool {
        self.scenarios.is_empty()
    }

    pub(in crate::commands) fn add(&mut self, other: Self) {
        self.scenarios.extend(other.scenarios);
        self.files.extend(other.files);
        self.skill = self.skill.take().or(other.skill);
        self.left_out.extend(other.left_out);
    }

    pub(super) fn left_out(&mut self, place: &str, reason: impl AsRef<str>) {
        self.left_out.push(format!("{place}: {}", reason.as_ref()));
    }

    /// Criteria that need a judge.
    pub(in crate::commands) fn criteria(&self) -> usize {
        let criteria = self.scenarios.iter();
        criteria
            .filter_map(|scenario| scenario["rubric"]["criteria"].as_array())
            .map(Vec::len)
            .sum()
    }

    /// Removes the criteria: there is no judge for them.
    pub(in crate::commands) fn leave_criteria_out(&mut self) {
        for scenario in &mut self.scenarios {
            if let Some(map) = scenario.as_object_mut() {
                map.remove("rubric");
            }
        }
    }

    /// Makes every id a legal one that no other case has.
    pub(super) fn name_apart(&mut self) {
        let mut taken = BTreeSet::new();
        for scenario in &mut self.scenarios {
            let wanted = slug(scenario["id"].as_str().unwrap_or("case"));
            let id = (1..)
                .map(|number| match number {
                    1 => wanted.clone(),
                    number => format!("{wanted}-{number}"),
                })
                .find(|id| !taken.contains(id))
                .unwrap_or(wanted);
            taken.insert(id.clone());
            scenario["id"] = id.into();
        }
    }

    /// Writes a suite with these scenarios. Files of the same names are replaced.
    pub(in crate::commands) fn write(&self, directory: &Path, suite: &SuiteDraft) -> Result<()> {
        for scenario in &self.scenarios {
            let id = scenario["id"].as_str().unwrap_or("case");
            write(
                &directory.join("scenarios").join(format!("{id}.yaml")),
                &yaml(None, scenario),
            )?;
        }
        for (target, source) in &self.files {
            let target = directory.join(target);
            copy(source, &target).with_context(|| {
                format!(
                    "cannot copy `{}` to `{}`",
                    source.display(),
                    target.display()
                )
            })?;
        }
        let keys = Value::Object(suite.keys.clone());
        write(
            &directory.join(FILE_NAMES[0]),
            &yaml(Some(&suite.comment), &keys),
        )?;
        match self.left_out.is_empty() {
            true => Ok(()),
            false => write(&directory.join("LEFT-OUT.md"), &self.left_out_page()),
        }
    }

    fn left_out_page(&self) -> String {
        let lines: String = self
            .left_out
            .iter()
            .map(|line| format!("- {line}\n"))
            .collect();
        format!(
            "# What the import left out\n\nEach of these has no equivalent in a scenario.\n\n{lines}"
        )
    }
}

/// Lower-case letters, digits, `.`, `_` and `-` of a text.
pub(super) fn slug(text: &str) -> String {
    let mut made = String::new();
    for c in text.to_lowercase().chars() {
        match c {
            'a'..='z' | '0'..='9' | '.' | '_' => made.push(c),
            _ if made.ends_with('-') => {}
            _ => made.push('-'),
        }
    }
    let made: String = made.trim_matches(['-', '.']).chars().take(48).collect();
    let made = made.trim_matches(['-', '.']);
    match made.is_empty() {
        true => "case".to_owned(),
        false => made.to_owned(),
    }
}

/// Reads JSON or YAML.
pub(super) fn read_value(path: &Path) -> Result<Value> {
    let document = Document::read(path).map_err(SuiteError::from)?;
    Ok(document.value().clone())
}

/// A path below a directory, with nothing in it that leads elsewhere.
pub(super) fn inside(path: &str) -> Option<PathBuf> {
    let path = Path::new(path.trim_start_matches("./"));
    let is_inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    (is_inside && !path.as_os_str().is_empty()).then(|| path.to_owned())
}

fn copy(source: &Path, target: &Path) -> std::io::Result<()> {
    if source.is_dir() {
        fs::create_dir_all(target)?;
        for entry in fs::read_dir(source)?.flatten() {
            copy(&entry.path(), &target.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(source, target).map(drop)
}

fn write(path: &Path, text: &str) -> Result<()> {
    let written = path
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, text));
    written.with_context(|| format!("cannot write `{}`", path.display()))
}

/// A key per line: texts of several lines as blocks, lists an entry per line, all else as JSON, which is YAML.
fn yaml(comment: Option<&str>, object: &Value) -> String {
    let mut text = comment.map_or_else(String::new, |comment| format!("# {comment}\n"));
    for (key, value) in object.as_object().into_iter().flatten() {
        let written = match value {
            Value::String(lines) if lines.contains('\n') => format!(" {}", block(lines, "  ")),
            Value::Array(items) if !items.is_empty() => {
                let items = items.iter().map(|item| format!("\n  - {item}"));
                items.collect()
            }
            other => format!(" {other}"),
        };
        text.push_str(&format!("{key}:{written}\n"));
    }
    text
}

/// Reads cases, reports what becomes of them, and writes a suite where one is wanted.
pub(super) fn import(
    arguments: &ImportArguments,
    read: fn(&Path) -> Result<Cases>,
) -> Result<Exit> {
    let cases = read(&arguments.path)?;
    if cases.is_empty() {
        let path = arguments.path.display();
        return Err(UsageError::new(format!("`{path}` holds no case")).into());
    }
    if let Some(directory) = &arguments.save {
        if FILE_NAMES.iter().any(|name| directory.join(name).exists()) {
            return Err(UsageError {
                message: format!("`{}` already has a suite", directory.display()),
                hint: Some("choose another directory for --out".to_owned()),
            }
            .into());
        }
        cases.write(directory, &suite_of(&cases, directory))?;
    }
    print_cases(&cases, arguments);
    Ok(Exit::Done)
}

/// A suite that runs the cases with Claude Code; with and without the skill where they are about one.
fn suite_of(cases: &Cases, directory: &Path) -> SuiteDraft {
    let mut keys = Map::new();
    keys.insert("version".to_owned(), json!(1));
    keys.insert("provider".to_owned(), json!({"uses": "claude-code"}));
    keys.insert("permissions".to_owned(), json!({"auto_approve": true}));
    match &cases.skill {
        Some(skill) => {
            let path = relative(skill, directory);
            keys.insert("with".to_owned(), json!(path));
        }
        None => drop(keys.insert("modes".to_owned(), json!({"plain": {}}))),
    }
    keys.insert(
        "scenarios".to_owned(),
        json!({"paths": ["scenarios/*.yaml"]}),
    );
    if cases.criteria() > 0 {
        let judge = json!({"api": "anthropic", "model": "claude-sonnet-4-5", "votes": 3});
        keys.insert("judge".to_owned(), judge);
    }
    SuiteDraft {
        comment: "Imported cases. Choose the agent, the models and the judge; `assize check` looks at everything.".to_owned(),
        keys,
    }
}

/// The way from a directory to a path, by `..` where they have a root in common.
fn relative(path: &Path, from: &Path) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (path, from) = (absolute(path), absolute(from));
    let (path, from): (Vec<_>, Vec<_>) = (path.components().collect(), from.components().collect());
    let common = path.iter().zip(&from).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", from.len() - common);
    let up = up.map(str::to_owned);
    let down = path[common..]
        .iter()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

fn print_cases(cases: &Cases, arguments: &ImportArguments) {
    let checks = |scenario: &Value| scenario["checks"].as_array().map_or(0, Vec::len);
    let checks: usize = cases.scenarios.iter().map(checks).sum();
    if arguments.json {
        let json_cases = json!({
            "scenarios": cases.scenarios,
            "leftOut": cases.left_out,
            "out": arguments.save,
        });
        print_json(json_cases.to_string());
        return;
    }
    print(format!(
        "{} scenarios with {checks} checks and {} criteria for a judge",
        cases.scenarios.len(),
        cases.criteria()
    ));
    for line in &cases.left_out {
        print(plain(&format!("left out: {line}")));
    }
    match &arguments.save {
        Some(directory) => say(plain(&format!(
            "written; look at it with `assize check {0}`, run it with `assize run {0}`",
            directory.display()
        ))),
        None => say("nothing is written; `--out DIR` writes a suite"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_ids() {
        assert_eq!(slug("Fix the Bug! (v2)"), "fix-the-bug-v2");
        assert_eq!(slug("…"), "case");
        let mut cases = Cases {
            scenarios: vec![json!({"id": "A b"}), json!({"id": "a-B"})],
            ..Cases::default()
        };
        cases.name_apart();
        let ids: Vec<&str> = cases
            .scenarios
            .iter()
            .filter_map(|one| one["id"].as_str())
            .collect();
        assert_eq!(ids, ["a-b", "a-b-2"]);
    }

    #[test]
    fn paths_lead_from_the_suite_to_the_skill() {
        let way = relative(Path::new("/a/skills/x"), Path::new("/a/suites/y"));
        assert_eq!(way, "../../skills/x");
    }

    #[test]
    fn what_leads_elsewhere_is_no_file_of_a_case() {
        assert!(inside("../x").is_none() && inside("/etc/x").is_none() && inside("").is_none());
        assert_eq!(inside("./a/b"), Some("a/b".into()));
    }
}
