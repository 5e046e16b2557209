//! Cases of `claude plugin eval`: a directory each, with a prompt, graders and perhaps a script that lays out the files.

use super::assertion::{Made, made_of, unused_keys};
use super::cases::{Cases, inside, read_value, slug};
use super::evals_json::{one_or_many, rubric, skill_above};
use crate::commands::UsageError;
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of cases, or the plugin that has one.
pub(super) fn read(path: &Path) -> Result<Cases> {
    let directory = match path.join("evals").is_dir() {
        true => path.join("evals"),
        false => path.to_owned(),
    };
    let mut cases = Cases {
        skill: skill_above(&directory.join("case")),
        ..Cases::default()
    };
    for case in directories_of(&directory)? {
        read_case(&mut cases, &case)?;
    }
    cases.name_apart();
    Ok(cases)
}

fn directories_of(directory: &Path) -> Result<Vec<PathBuf>> {
    let is_case = |path: &PathBuf| {
        ["prompt.md", "case.yaml", "case.yml"]
            .iter()
            .any(|name| path.join(name).is_file())
    };
    if is_case(&directory.to_owned()) {
        return Ok(vec![directory.to_owned()]);
    }
    let entries = fs::read_dir(directory)
        .with_context(|| format!("cannot read `{}`", directory.display()))?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(is_case);
    found.sort();
    if found.is_empty() {
        return Err(UsageError {
            message: format!("`{}` has no case", directory.display()),
            hint: Some("a case is a directory with `prompt.md` or `case.yaml`".to_owned()),
        }
        .into());
    }
    Ok(found)
}

fn read_case(cases: &mut Cases, case: &Path) -> Result<()> {
    let name = case.file_name().map_or_else(
        || "case".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    );
    let place = format!("case `{name}`");
    let mut described = Map::new();
    for file in ["case.yaml", "case.yml"].map(|name| case.join(name)) {
        if file.is_file() {
            let value = read_value(&file)?;
            described = value.as_object().cloned().unwrap_or_default();
            if !value.is_object() {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                cases.left_out(&place, format!("`{name}` holds no keys"));
            }
        }
    }
    let prompt_file = case.join("prompt.md");
    let (matter, mut prompt) = match prompt_file.is_file() {
        true => front_matter(&prompt_file)?,
        false => (Map::new(), String::new()),
    };
    for (key, value) in matter {
        described.entry(key).or_insert(value);
    }
    if prompt.trim().is_empty() {
        let given = ["prompt", "query", "task"]
            .iter()
            .find_map(|key| described.get(*key)?.as_str());
        prompt = given.unwrap_or_default().to_owned();
    }
    if prompt.trim().is_empty() {
        cases.left_out(&place, "it has no prompt");
        return Ok(());
    }
    let id = slug(&name);
    let mut scenario = json!({"id": id, "prompt": prompt.trim(), "workspace": {}});
    let (mut checks, mut criteria) = (Vec::new(), Vec::new());
    for grader in graders(case, &described, cases, &place)? {
        match made_of(&grader) {
            Made::Checks(made) => checks.extend(made),
            Made::Criterion(text) => criteria.push(text),
            Made::Nothing(reason) => cases.left_out(&place, reason),
        }
        let unused = unused_keys(&grader).into_iter();
        unused.for_each(|reason| cases.left_out(&place, reason));
    }
    if !checks.is_empty() {
        scenario["checks"] = checks.into();
    }
    if !criteria.is_empty() {
        scenario["rubric"] = rubric("", &criteria);
    }
    read_keys(cases, &mut scenario, &described, &place);
    add_scaffold(cases, &mut scenario, case, &id);
    cases.scenarios.push(scenario);
    Ok(())
}

/// Graders of the case itself, then those in files of their own.
fn graders(
    case: &Path,
    described: &Map<String, Value>,
    cases: &mut Cases,
    place: &str,
) -> Result<Vec<Value>> {
    let mut graders: Vec<Value> = match described.get("graders") {
        Some(Value::Object(map)) if !map.contains_key("type") => map.values().cloned().collect(),
        Some(graders) => one_or_many(graders).to_vec(),
        None => Vec::new(),
    };
    // A sentence is for a judge.
    for grader in &mut graders {
        if grader.is_string() {
            *grader = json!({"type": "llm", "value": grader.take()});
        }
    }
    let entries = fs::read_dir(case.join("graders"))
        .into_iter()
        .flatten()
        .flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    for file in files {
        let ending = file.extension().and_then(|ending| ending.to_str());
        match ending {
            Some("md") => {
                let (mut matter, body) = front_matter(&file)?;
                matter.entry("type").or_insert_with(|| json!("llm"));
                if !body.trim().is_empty() && !matter.contains_key("value") {
                    let key = if matter["type"] == "llm" {
                        "value"
                    } else {
                        "description"
                    };
                    matter.insert(key.to_owned(), json!(body.trim()));
                }
                graders.push(Value::Object(matter));
            }
            Some("yaml" | "yml" | "json") => match read_value(&file)? {
                Value::Array(several) => graders.extend(several),
                one => graders.push(one),
            },
            _ => {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                cases.left_out(place, format!("the grader `{name}` is a program"));
            }
        }
    }
    Ok(graders)
}

fn read_keys(cases: &mut Cases, scenario: &mut Value, described: &Map<String, Value>, place: &str) {
    for (key, value) in described {
        match key.as_str() {
            "prompt" | "query" | "task" | "graders" | "id" => {}
            "name" | "description" if value.is_string() => scenario[key] = value.clone(),
            "tags" if one_or_many(value).iter().all(Value::is_string) => {
                scenario["tags"] = one_or_many(value).into();
            }
            "should_trigger" if value.is_boolean() => scenario["should_trigger"] = value.clone(),
            "timeout" | "timeout_s" | "timeout_seconds" if value.as_f64().is_some() => {
                let seconds = value.as_f64().unwrap_or(0.0);
                scenario["timeout_ms"] = json!((seconds * 1000.0).max(1.0) as u64);
            }
            "max_turns" if value.is_u64() => {
                let limit = json!({"limit": {"turns": value}});
                match scenario["checks"].as_array_mut() {
                    Some(checks) => checks.push(limit),
                    None => scenario["checks"] = json!([limit]),
                }
            }
            "baseline" => {
                cases.left_out(place, "`baseline` compares with a run without the plugin; write `with: SKILL` in the suite");
            }
            other => cases.left_out(place, format!("`{other}` has no equivalent")),
        }
    }
}

/// The script and the files beside it are the workspace; the script is run and removed before the agent starts.
fn add_scaffold(cases: &mut Cases, scenario: &mut Value, case: &Path, id: &str) {
    let own = ["prompt.md", "case.yaml", "case.yml", "graders"];
    let entries = fs::read_dir(case).into_iter().flatten().flatten();
    let mut has_files = false;
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if own.contains(&name.as_str()) || inside(&name).is_none() {
            continue;
        }
        cases
            .files
            .push((Path::new("files").join(id).join(&name), entry.path()));
        has_files = true;
    }
    if has_files {
        scenario["workspace"] = json!({"from": format!("files/{id}")});
    }
    if case.join("scaffold.sh").is_file() {
        scenario["workspace"]["setup"] = json!(["sh ./scaffold.sh && rm scaffold.sh"]);
    }
}

/// The keys between the two lines `---` of a file, and the text below them.
fn front_matter(path: &Path) -> Result<(Map<String, Value>, String)> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let Some(rest) = text.strip_prefix("---\n") else {
        return Ok((Map::new(), text));
    };
    let lines = rest.split_inclusive('\n');
    let mut end = 0;
    for line in lines {
        if line.trim_end() == "---" {
            let matter = &rest[..end];
            let body = rest[end + line.len()..].to_owned();
            if matter.trim().is_empty() {
                return Ok((Map::new(), body));
            }
            let read: Result<Map<String, Value>, _> = serde_saphyr::from_str(matter);
            return read.map(|matter| (matter, body)).map_err(|_| {
                let message = format!(
                    "`{}`: the text between the lines `---` is no list of keys",
                    path.display()
                );
                let hint = "expected YAML such as `type: regex`".to_owned();
                UsageError {
                    message,
                    hint: Some(hint),
                }
                .into()
            });
        }
        end += line.len();
    }
    Ok((Map::new(), text))
}
