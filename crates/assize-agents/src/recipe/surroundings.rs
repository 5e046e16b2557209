//! The surroundings of a model in a session: skills, an instruction file, subagents and settings, each put where the agent looks.
//!
//! The recipe names the places. An agent that looks in several places is given one of them.

use super::Recipe;
use crate::settings::{read_value, setting_error};
use crate::skill::Skill;
use assize_contracts::{ConfigError, JsonMap};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The places where an agent looks for something.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Places {
    /// The one place in a session's home where it is put.
    pub(crate) home: String,
    /// Places in a project, below any of its directories. The files on trial are removed from there.
    #[serde(default)]
    pub(crate) project: Vec<String>,
}

/// The places where an agent looks for subagents, and their form.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubagentPlaces {
    /// The directory in a session's home.
    pub(crate) home: String,
    #[serde(default)]
    pub(crate) project: Vec<String>,
    #[serde(default)]
    pub(crate) form: SubagentForm,
}

/// The form of an agent's subagents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SubagentForm {
    /// As they are: Claude Code's own form.
    #[default]
    ClaudeCode,
    /// Markdown with a name and a description.
    Markdown,
    /// The same, marked as no main agent.
    Opencode,
    /// A TOML file each.
    Codex,
}

/// The parts that a mode gives to its sessions, in the form that a provider's settings have.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Surroundings {
    skills: Vec<GivenSkill>,
    instructions: Option<GivenText>,
    agents: Vec<GivenAgent>,
    settings: JsonMap,
}

#[derive(Debug, Clone, Deserialize)]
struct GivenSkill {
    name: String,
    path: PathBuf,
    hash: String,
}

#[derive(Debug, Clone, Deserialize)]
struct GivenText {
    text: String,
}

#[derive(Debug, Clone, Deserialize)]
struct GivenAgent {
    name: String,
    description: String,
    body: String,
    text: String,
}

impl Surroundings {
    /// The keys of a mode's surroundings among a provider's settings.
    pub(crate) const KEYS: [&'static str; 4] = ["skills", "instructions", "agents", "settings"];

    /// Takes a mode's surroundings out of a provider's settings.
    pub(crate) fn take(settings: &mut JsonMap) -> Result<Self, ConfigError> {
        let own = Self::KEYS
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), settings.remove(key)?)));
        let own: JsonMap = own.collect();
        read_value(&Value::Object(own))
    }

    fn is_empty(&self) -> bool {
        self.skills.is_empty()
            && self.instructions.is_none()
            && self.agents.is_empty()
            && self.settings.is_empty()
    }
}

/// Roots of skills and names of instruction files in projects, over all agents: a thing that one agent would miss may be found by another.
pub fn project_places() -> ProjectPlaces {
    let mut places = ProjectPlaces::default();
    for recipe in Recipe::built_in() {
        let skills = recipe.skills.iter().flat_map(|known| &known.project);
        let agents = recipe.subagents.iter().flat_map(|known| &known.project);
        let texts = recipe
            .instruction_file
            .iter()
            .flat_map(|known| &known.project);
        places.skills.extend(skills.cloned());
        places.agents.extend(agents.cloned());
        places.instructions.extend(texts.cloned());
    }
    for list in [
        &mut places.skills,
        &mut places.agents,
        &mut places.instructions,
    ] {
        list.sort();
        list.dedup();
    }
    places
}

/// The places where agents look in projects.
#[derive(Debug, Clone, Default)]
pub struct ProjectPlaces {
    /// Directories of skills.
    pub skills: Vec<String>,
    /// Directories of subagents.
    pub agents: Vec<String>,
    /// Instruction files.
    pub instructions: Vec<String>,
}

impl Recipe {
    /// Refuses what the agent has no place for.
    pub(crate) fn check_surroundings(
        &self,
        given: &Surroundings,
        is_isolated: bool,
    ) -> Result<(), ConfigError> {
        let name = &self.name;
        let wishes = [
            ("skills", !given.skills.is_empty(), self.skills.is_some()),
            (
                "instructions",
                given.instructions.is_some(),
                self.instruction_file.is_some(),
            ),
            ("agents", !given.agents.is_empty(), self.subagents.is_some()),
            (
                "settings",
                !given.settings.is_empty(),
                self.settings_file.is_some(),
            ),
        ];
        for (key, is_wanted, has_place) in wishes {
            if is_wanted && !has_place {
                let what = match key {
                    "skills" => "has no skills",
                    "instructions" => "reads no instruction file",
                    "agents" => "has no subagents that could be given",
                    _ => "has no settings file",
                };
                return Err(ConfigError {
                    hint: self.hint_instead(key),
                    ..setting_error(key, format!("`{name}` {what}"))
                });
            }
            if is_wanted && !is_isolated {
                let message = format!(
                    "an agent in your own home has the {key} of that home, and nothing is written there"
                );
                let hint = "leave `isolated: false` out: sessions have fresh homes";
                return Err(setting_error(key, message).with_hint(hint));
            }
        }
        Ok(())
    }

    fn hint_instead(&self, key: &str) -> Option<String> {
        let has = |recipe: &&Recipe| match key {
            "skills" => recipe.skills.is_some(),
            "instructions" => recipe.instruction_file.is_some(),
            "agents" => recipe.subagents.is_some(),
            _ => recipe.settings_file.is_some(),
        };
        let known: Vec<String> = Recipe::built_in()
            .iter()
            .filter(has)
            .map(|recipe| format!("`{}`", recipe.name))
            .collect();
        let instead = match key {
            "instructions" => "; `system_instructions: …` goes to every agent",
            _ => "",
        };
        Some(format!("agents that do: {}{instead}", known.join(", ")))
    }

    /// Puts everything into a session's home.
    pub(crate) fn install(&self, given: &Surroundings, home: &Path) -> Result<(), String> {
        if given.is_empty() {
            return Ok(());
        }
        if let Some(places) = &self.skills {
            for skill in &given.skills {
                let target = home.join(&places.home).join(&skill.name);
                Skill::install(&skill.path, &skill.hash, &target)?;
            }
        }
        if let (Some(places), Some(given)) = (&self.instruction_file, &given.instructions) {
            append(&home.join(&places.home), &given.text)?;
        }
        if let Some(places) = &self.subagents {
            for agent in &given.agents {
                let name = &agent.name;
                let file = match places.form {
                    SubagentForm::Codex => format!("{name}.toml"),
                    _ => format!("{name}.md"),
                };
                let path = home.join(&places.home).join(file);
                write(&path, &places.form.written(agent))?;
            }
        }
        match &self.settings_file {
            Some(file) if !given.settings.is_empty() => {
                merge_settings(&home.join(file), &given.settings)
            }
            _ => Ok(()),
        }
    }
}

impl SubagentForm {
    fn written(self, agent: &GivenAgent) -> String {
        let GivenAgent {
            name,
            description,
            body,
            text,
        } = agent;
        // A text of JSON is one of YAML and of TOML.
        let (name, description) = (json!(name), json!(description));
        match self {
            Self::ClaudeCode => text.clone(),
            Self::Markdown => {
                format!("---\nname: {name}\ndescription: {description}\n---\n\n{body}\n")
            }
            Self::Opencode => {
                format!("---\ndescription: {description}\nmode: subagent\n---\n\n{body}\n")
            }
            Self::Codex => {
                let body = json!(body);
                format!(
                    "name = {name}\ndescription = {description}\ndeveloper_instructions = {body}\n"
                )
            }
        }
    }
}

/// System instructions may lie in the same file.
fn append(path: &Path, text: &str) -> Result<(), String> {
    let before = fs::read_to_string(path).unwrap_or_default();
    let whole = match before.trim().is_empty() {
        true => text.to_owned(),
        false => format!("{}\n\n{text}", before.trim_end()),
    };
    write(path, &whole)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let written = path
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}

/// The suite's settings go over those of the recipe, key by key.
fn merge_settings(path: &Path, settings: &JsonMap) -> Result<(), String> {
    let before = fs::read_to_string(path).unwrap_or_default();
    let is_toml = path.extension().is_some_and(|ending| ending == "toml");
    if is_toml {
        let mut lines = Vec::new();
        dotted_keys("", settings, &mut lines);
        // Keys of the whole file come before its first table.
        return write(path, &format!("{}\n{before}", lines.join("\n")));
    }
    let mut all: Value = match before.trim() {
        "" => json!({}),
        text => serde_saphyr::from_str(text)
            .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?,
    };
    merge(&mut all, &Value::Object(settings.clone()));
    // JSON is YAML, too.
    write(path, &format!("{all:#}\n"))
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                match into.get_mut(key) {
                    Some(known) => merge(known, value),
                    None => drop(into.insert(key.clone(), value.clone())),
                }
            }
        }
        (into, from) => into.clone_from(from),
    }
}

/// `a.b = 1` for every value, because tables would swallow what comes after them.
fn dotted_keys(prefix: &str, map: &JsonMap, lines: &mut Vec<String>) {
    for (key, value) in map {
        let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let key = match !key.is_empty() && key.chars().all(is_bare) {
            true => key.clone(),
            false => json!(key).to_string(),
        };
        let path = match prefix {
            "" => key,
            prefix => format!("{prefix}.{key}"),
        };
        match value {
            Value::Object(inner) if !inner.is_empty() => dotted_keys(&path, inner, lines),
            Value::Null => {}
            value => lines.push(format!("{path} = {}", toml_value(value))),
        }
    }
}

fn toml_value(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let pairs = map.iter().filter(|(_, value)| !value.is_null());
            let pairs: Vec<String> = pairs
                .map(|(key, value)| format!("{} = {}", json!(key), toml_value(value)))
                .collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(name: &str) -> &'static Recipe {
        let mut recipes = Recipe::built_in().iter();
        recipes.find(|recipe| recipe.name == name).unwrap()
    }

    fn given(value: Value) -> Surroundings {
        let mut settings = value.as_object().unwrap().clone();
        Surroundings::take(&mut settings).unwrap()
    }

    #[test]
    fn settings_go_over_those_of_the_recipe() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("settings.json");
        fs::write(&path, r#"{"a": {"b": 1, "c": 2}}"#).unwrap();
        let settings = json!({"a": {"c": 3}, "d": [true]});
        merge_settings(&path, settings.as_object().unwrap()).unwrap();
        let read: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(read, json!({"a": {"b": 1, "c": 3}, "d": [true]}));
        let path = home.path().join("config.toml");
        fs::write(&path, "[mcp_servers.docs]\nurl = \"x\"\n").unwrap();
        let settings = json!({"tools": {"web search": false}, "x": "a\"b", "l": [1, {"k": "v"}]});
        merge_settings(&path, settings.as_object().unwrap()).unwrap();
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(
            written,
            "tools.\"web search\" = false\nx = \"a\\\"b\"\nl = [1, { \"k\" = \"v\" }]\n[mcp_servers.docs]\nurl = \"x\"\n"
        );
    }

    #[test]
    fn what_an_agent_has_no_place_for_is_refused() {
        let skill = given(json!({"skills": [{"name": "a", "path": "/a", "hash": ""}]}));
        let refused = recipe("mini-swe-agent").check_surroundings(&skill, true);
        assert!(refused.unwrap_err().message.contains("has no skills"));
        let at_home = recipe("claude-code").check_surroundings(&skill, false);
        assert!(at_home.unwrap_err().message.contains("your own home"));
        assert!(recipe("codex").check_surroundings(&skill, true).is_ok());
    }

    #[test]
    fn the_four_agents_with_readers_have_places_for_everything() {
        for name in ["claude-code", "codex", "opencode", "gemini"] {
            let recipe = recipe(name);
            assert!(
                recipe.skills.is_some()
                    && recipe.instruction_file.is_some()
                    && recipe.subagents.is_some()
                    && recipe.settings_file.is_some(),
                "{name}"
            );
        }
        let places = project_places();
        assert!(places.skills.contains(&".claude/skills".to_owned()));
        assert!(places.instructions.contains(&"AGENTS.md".to_owned()));
    }

    #[test]
    fn subagents_are_written_as_the_agent_reads_them() {
        let agents = json!({"agents": [{"name": "r", "description": "Looks: \"twice\"", "body": "Be brief.", "text": "whole"}]});
        let given = given(agents);
        let written = |form: SubagentForm| form.written(&given.agents[0]);
        assert_eq!(written(SubagentForm::ClaudeCode), "whole");
        assert!(written(SubagentForm::Opencode).contains("mode: subagent"));
        assert!(written(SubagentForm::Codex).contains("description = \"Looks: \\\"twice\\\"\""));
    }
}
