//! `evals/evals.json` of a skill: prompts with expectations, in the form of skill-creator.

use super::assertion::{Made, made_of, unused_keys};
use super::cases::{Cases, inside, read_value};
use crate::commands::UsageError;
use anyhow::Result;
use assize_agents::SKILL_FILE;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const KNOWN: [&str; 8] = [
    "id",
    "name",
    "prompt",
    "expected_output",
    "files",
    "assertions",
    "expectations",
    "should_trigger",
];

/// A file, or the directory of a skill that has one.
pub(super) fn read(path: &Path) -> Result<Cases> {
    let inner = [path.join("evals/evals.json"), path.join("evals.json")];
    let file = match path.is_dir() {
        true => inner.into_iter().find(|file| file.is_file()),
        false => Some(path.to_owned()),
    };
    let Some(file) = file else {
        return Err(UsageError {
            message: format!("`{}` has no evals/evals.json", path.display()),
            hint: None,
        }
        .into());
    };
    let value = read_value(&file)?;
    let mut cases = Cases {
        skill: skill_above(&file),
        ..Cases::default()
    };
    let evals = value.get("evals").and_then(Value::as_array);
    let Some(evals) = evals.or_else(|| value.as_array()) else {
        return Err(UsageError {
            message: format!("`{}` has no list `evals`", file.display()),
            hint: Some(
                "expected { \"skill_name\": …, \"evals\": [ { \"prompt\": … } ] }".to_owned(),
            ),
        }
        .into());
    };
    let directory = file.parent().unwrap_or(Path::new("."));
    for (number, eval) in evals.iter().enumerate() {
        read_eval(&mut cases, number, eval, directory);
    }
    for key in value.as_object().into_iter().flat_map(|map| map.keys()) {
        if !["skill_name", "evals"].contains(&key.as_str()) {
            cases.left_out("the file", format!("`{key}` has no equivalent"));
        }
    }
    cases.name_apart();
    Ok(cases)
}

/// The skill whose directory a file of tasks lies in.
pub(super) fn skill_above(file: &Path) -> Option<PathBuf> {
    let full = std::path::absolute(file).ok()?;
    let mut above = full.ancestors().skip(1).take(3);
    above
        .find(|directory| directory.join(SKILL_FILE).is_file())
        .map(Path::to_owned)
}

fn read_eval(cases: &mut Cases, number: usize, eval: &Value, directory: &Path) {
    let id = match &eval["id"] {
        Value::String(id) => id.clone(),
        Value::Number(id) => format!("eval-{id}"),
        _ => format!("eval-{}", number + 1),
    };
    let place = format!("eval `{id}`");
    let Some(prompt) = eval["prompt"]
        .as_str()
        .filter(|prompt| !prompt.trim().is_empty())
    else {
        return cases.left_out(&place, "it has no `prompt`");
    };
    let mut scenario = json!({
        "id": super::cases::slug(&id),
        "prompt": prompt,
        "workspace": {},
    });
    match &eval["should_trigger"] {
        Value::Null => scenario["should_trigger"] = true.into(),
        Value::Bool(should) => scenario["should_trigger"] = (*should).into(),
        other => cases.left_out(
            &place,
            format!("`should_trigger` is {other}, not true or false"),
        ),
    }
    if let Some(name) = eval["name"].as_str() {
        scenario["name"] = name.into();
    }
    let (mut checks, mut criteria) = (Vec::new(), Vec::new());
    for key in ["assertions", "expectations"] {
        for assertion in one_or_many(&eval[key]) {
            match read_assertion(assertion) {
                Made::Checks(made) => checks.extend(made),
                Made::Criterion(text) => criteria.push(text),
                Made::Nothing(reason) => cases.left_out(&place, reason),
            }
            if assertion.get("type").is_some() {
                let unused = unused_keys(assertion).into_iter();
                unused.for_each(|reason| cases.left_out(&place, reason));
            }
        }
    }
    let expected = match &eval["expected_output"] {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    if criteria.is_empty() && !expected.is_empty() {
        criteria.push(format!("The result is what was expected: {expected}"));
    }
    if !checks.is_empty() {
        scenario["checks"] = checks.into();
    }
    if !criteria.is_empty() {
        scenario["rubric"] = rubric(&expected, &criteria);
    }
    add_files(cases, &mut scenario, eval, &place, directory);
    for key in eval.as_object().into_iter().flat_map(|map| map.keys()) {
        if !KNOWN.contains(&key.as_str()) {
            cases.left_out(&place, format!("`{key}` has no equivalent"));
        }
    }
    cases.scenarios.push(scenario);
}

/// The items of a list; anything else is a list of one.
pub(super) fn one_or_many(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
}

/// A sentence is for a judge; an object may be something that a program checks.
fn read_assertion(assertion: &Value) -> Made {
    if let Some(text) = assertion.as_str() {
        return match text.trim().is_empty() {
            true => Made::Nothing("an expectation is empty".to_owned()),
            false => Made::Criterion(text.trim().to_owned()),
        };
    }
    if assertion.get("type").is_some() {
        return made_of(assertion);
    }
    let text = ["text", "description", "assertion", "expectation", "name"]
        .iter()
        .find_map(|key| assertion.get(key)?.as_str());
    match text {
        Some(text) => Made::Criterion(text.to_owned()),
        None => Made::Nothing("an expectation says nothing".to_owned()),
    }
}

pub(super) fn rubric(instructions: &str, criteria: &[String]) -> Value {
    let criteria: Vec<Value> = criteria
        .iter()
        .enumerate()
        .map(|(number, text)| json!({"id": format!("c{}", number + 1), "description": text}))
        .collect();
    let mut rubric = json!({ "criteria": criteria });
    if !instructions.is_empty() {
        rubric["instructions"] = format!("Expected: {instructions}").into();
    }
    rubric
}

/// Files lie beside the evals or in the skill, and keep their names in the workspace.
fn add_files(cases: &mut Cases, scenario: &mut Value, eval: &Value, place: &str, directory: &Path) {
    let id = scenario["id"].as_str().unwrap_or("case").to_owned();
    let mut has_files = false;
    for file in one_or_many(&eval["files"]) {
        let name = file.as_str().or_else(|| file.get("path")?.as_str());
        let Some(path) = name.and_then(inside) else {
            cases.left_out(place, format!("the file {file} lies outside of the skill"));
            continue;
        };
        let above = directory.parent().unwrap_or(directory);
        let source = [directory.join(&path), above.join(&path)];
        let Some(source) = source.into_iter().find(|source| source.exists()) else {
            cases.left_out(place, format!("there is no file `{}`", path.display()));
            continue;
        };
        // `evals/files/a.csv` is `a.csv` to the agent.
        let kept = path
            .strip_prefix("evals/files")
            .or_else(|_| path.strip_prefix("files"))
            .unwrap_or(&path);
        let target = Path::new("files").join(&id).join(kept);
        cases.files.push((target, source));
        has_files = true;
    }
    if has_files {
        scenario["workspace"] = json!({"from": format!("files/{id}")});
    }
}
