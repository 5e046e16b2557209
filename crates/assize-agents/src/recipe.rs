//! The way to run an agent, as data: its command, its base URL, its isolation, and the meaning of each setting of a suite for it.
//!
//! Every agent that is a program is a recipe for the machinery of `command`. Those of this crate are in `recipes/`, and
//! people write their own in the same form.

mod login;
mod order;
mod sign_in;
mod surroundings;

pub(crate) use order::named_by;
pub use sign_in::{Credential, SignIn, SignInError};
pub use surroundings::{ProjectPlaces, project_places};

use crate::command::PoliteSignal;
use crate::output::OutputForm;
use crate::settings::{read_value, setting_error};
use assize_contracts::ConfigError;
use login::Login;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;
use surroundings::{Places, SubagentPlaces};

/// The way to run an agent. Texts may hold placeholders, see [`Recipe::PLACEHOLDERS`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Its name in suites.
    pub name: String,
    /// A short description.
    #[serde(default)]
    pub about: String,
    /// The way to install it.
    #[serde(default)]
    pub install: Option<String>,
    /// The way it gets into the image of a container.
    #[serde(default)]
    pub(crate) image: Option<crate::image::Installation>,
    /// The version that is known to work.
    #[serde(default)]
    pub tested: Option<String>,
    /// The LLM APIs it speaks: `anthropic`, `openai`, `gemini`.
    #[serde(default)]
    pub apis: Vec<String>,
    /// Variables with credentials, passed on where they are set and kept out of every record.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Variables that show another way to a model than a key: those of cloud services.
    #[serde(default)]
    pub other_ways: Vec<String>,
    /// Added when a session signs in by one of the keys.
    #[serde(default)]
    pub(crate) by_key: Additions,
    /// The login that the agent stores for its user, and how a session is given it.
    #[serde(default)]
    pub(crate) login: Option<Login>,
    /// Run once per session, before the first prompt.
    #[serde(default)]
    pub(crate) setup: Vec<String>,
    /// The program and its arguments for one prompt.
    pub(crate) command: Vec<String>,
    /// The same for prompts after the first, to continue the session. Without it every prompt begins anew.
    #[serde(default, rename = "continue")]
    pub(crate) continuation: Option<Vec<String>>,
    /// The same as a server that speaks the Agent Client Protocol.
    #[serde(default)]
    pub(crate) acp: Option<Vec<String>>,
    /// The way to sign in there.
    #[serde(default)]
    pub(crate) authenticate: Option<String>,
    #[serde(default)]
    pub(crate) output: OutputForm,
    /// For agents that cannot choose one themselves.
    #[serde(default)]
    pub(crate) default_model: Option<String>,
    /// Added when there is a model.
    #[serde(default)]
    pub(crate) model: Additions,
    /// Added when there are system instructions. Without it they come before the prompt.
    #[serde(default)]
    pub(crate) instructions: Option<Additions>,
    /// Added when every tool call goes without confirmation. Without it the agent cannot do that.
    #[serde(default)]
    pub(crate) auto_approve: Option<Additions>,
    /// Added when only some tools go without confirmation. Without it the agent cannot do that.
    #[serde(default)]
    pub(crate) allowed_tools: Option<ToolList>,
    /// Added when there are MCP servers. Without it the agent cannot be given any.
    #[serde(default)]
    pub(crate) mcp_servers: Option<ServerList>,
    /// The places where it looks for skills. Without it the agent has none.
    #[serde(default)]
    pub(crate) skills: Option<Places>,
    /// The file with instructions that it reads. Without it the agent reads none.
    #[serde(default)]
    pub(crate) instruction_file: Option<Places>,
    /// The places where it looks for subagents. Without it the agent cannot be given any.
    #[serde(default)]
    pub(crate) subagents: Option<SubagentPlaces>,
    /// The settings file in the session's home: JSON, YAML or TOML. Without it the agent cannot be given settings.
    #[serde(default)]
    pub(crate) settings_file: Option<String>,
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// Variables that keep the agent away from its user's own configuration.
    #[serde(default)]
    pub(crate) isolation: BTreeMap<String, String>,
    /// Files that the agent writes in its user's home, for sessions that have no home of their own. Directories end with `/`.
    #[serde(default)]
    pub(crate) home: Vec<String>,
    /// Written into the session's home.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) polite_signal: PoliteSignal,
}

/// The arguments, variables and files that a setting of the suite adds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Additions {
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
}

/// The additions for a list of allowed tools, and its form.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolList {
    #[serde(default = "the_tool")]
    pub(crate) each: String,
    #[serde(default = "comma")]
    pub(crate) join: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
}

/// The additions for MCP servers, and the text that replaces `{mcp_servers}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerList {
    /// A server that is started: `{name}`, `{command}`, `{args}`, `{argv}` and `{env}`, all but the name as JSON.
    pub(crate) program: String,
    /// A server that has a URL: `{name}`, `{url}` and `{headers}`. Without it the agent takes none.
    #[serde(default)]
    pub(crate) remote: Option<String>,
    #[serde(default = "comma")]
    pub(crate) join: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
}

fn the_tool() -> String {
    "{tool}".to_owned()
}

fn comma() -> String {
    ",".to_owned()
}

macro_rules! built_in {
    ($($name:literal),+) => {
        [$(($name, include_str!(concat!("../recipes/", $name, ".yaml")))),+]
    };
}

const BUILT_IN: [(&str, &str); 11] = built_in!(
    "aider",
    "claude-code",
    "cline",
    "codex",
    "copilot",
    "gemini",
    "goose",
    "mini-swe-agent",
    "opencode",
    "pi",
    "qwen"
);

impl Recipe {
    /// Names that may be in braces. With `:json` after the name, a value is written as inside a JSON string.
    pub const PLACEHOLDERS: [&'static str; 17] = [
        "prompt",
        "prompt_file",
        "workspace",
        "suite",
        "home",
        "model",
        "system_instructions",
        "session",
        "key",
        "options",
        "tool",
        "allowed_tools",
        "mcp_servers",
        "anthropic_url",
        "openai_url",
        "openai_root",
        "gemini_url",
    ];

    /// All recipes that come with Assize, by name.
    pub fn built_in() -> &'static [Self] {
        static RECIPES: LazyLock<Vec<Recipe>> = LazyLock::new(|| {
            let parse = |(name, text): (&str, &str)| {
                serde_saphyr::from_str(text)
                    .unwrap_or_else(|error| panic!("the recipe `{name}` is broken: {error}"))
            };
            BUILT_IN.into_iter().map(parse).collect()
        });
        &RECIPES
    }

    /// Reads a recipe and checks what its types cannot.
    pub fn from_value(value: &Value) -> Result<Self, ConfigError> {
        let recipe: Self = read_value(value)?;
        recipe.check()?;
        Ok(recipe)
    }

    /// The recipe of an agent by its program, wherever that lies.
    pub(crate) fn of_program(program: &str) -> Option<&'static Self> {
        let name = Path::new(program).file_name()?;
        let mut recipes = Self::built_in().iter();
        recipes.find(|recipe| name == recipe.program())
    }

    /// Files that the agent writes in its user's home. Directories that are not there yet are made, as the agent would.
    pub(crate) fn own_files(&self) -> Vec<PathBuf> {
        let Some(home) = assize_process::host_variable("HOME") else {
            return Vec::new();
        };
        let files = self.home.iter().map(|name| {
            let path = Path::new(&home).join(name.trim_end_matches('/'));
            if name.ends_with('/') {
                let _ = std::fs::create_dir_all(&path);
            }
            path
        });
        files.filter(|path| path.exists()).collect()
    }

    /// True when the agent can be set to work without confirmations.
    pub fn approves_everything(&self) -> bool {
        self.auto_approve.is_some()
    }

    /// The place where the agent looks for skills, below its home.
    pub(crate) fn home_of_skills(&self) -> Option<&str> {
        self.skills.as_ref().map(|places| places.home.as_str())
    }

    /// The program that is run.
    pub fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.program().is_empty() {
            return Err(setting_error(
                "command",
                "found no program, expected a program and its arguments",
            ));
        }
        self.check_placeholders()?;
        self.check_environment()?;
        self.check_apis()?;
        self.check_paths()
    }

    fn check_placeholders(&self) -> Result<(), ConfigError> {
        for (key, words) in [
            ("command", Some(&self.command)),
            ("continue", self.continuation.as_ref()),
            ("setup", Some(&self.setup)),
            ("acp", self.acp.as_ref()),
            ("by_key", Some(&self.by_key.args)),
            ("login", self.login.as_ref().map(|login| &login.added.args)),
            ("model", Some(&self.model.args)),
            (
                "instructions",
                self.instructions.as_ref().map(|added| &added.args),
            ),
            (
                "auto_approve",
                self.auto_approve.as_ref().map(|added| &added.args),
            ),
            (
                "allowed_tools",
                self.allowed_tools.as_ref().map(|list| &list.args),
            ),
            (
                "mcp_servers",
                self.mcp_servers.as_ref().map(|list| &list.args),
            ),
        ] {
            let mut words = words.into_iter().flatten();
            words.try_for_each(|word| known(key, word))?;
        }
        Ok(())
    }

    fn check_environment(&self) -> Result<(), ConfigError> {
        for (name, value) in self.environment.iter().chain(&self.isolation) {
            if name.is_empty() || name.contains(['=', '\0']) {
                let message =
                    format!("found {name:?}, expected the name of an environment variable");
                return Err(setting_error("environment", message));
            }
            known("environment", value)?;
        }
        Ok(())
    }

    fn check_apis(&self) -> Result<(), ConfigError> {
        let is_unknown = |api: &&String| !order::APIS.contains(&api.as_str());
        match self.apis.iter().find(is_unknown) {
            Some(api) => {
                let message = format!("found `{api}`, expected `anthropic`, `openai` or `gemini`");
                Err(setting_error("apis", message))
            }
            None => Ok(()),
        }
    }

    /// Refuses paths that lead out of the session's home.
    fn check_paths(&self) -> Result<(), ConfigError> {
        let instructions = self.instructions.iter().flat_map(|added| &added.files);
        let servers = self.mcp_servers.iter().flat_map(|list| &list.files);
        let files = self.files.iter().chain(instructions).chain(servers);
        let places = [
            self.skills.as_ref().map(|places| &places.home),
            self.instruction_file.as_ref().map(|places| &places.home),
            self.subagents.as_ref().map(|places| &places.home),
            self.settings_file.as_ref(),
        ];
        let leads_out = |path: &&String| {
            let mut parts = Path::new(path.as_str()).components();
            !parts.all(|part| matches!(part, Component::Normal(_)))
        };
        let mut paths = files
            .map(|(path, _)| path)
            .chain(places.into_iter().flatten());
        match paths.find(leads_out) {
            Some(path) => {
                let message = format!("found `{path}`, expected a path inside the session's home");
                Err(setting_error("files", message))
            }
            None => Ok(()),
        }
    }
}

/// Refuses what looks like a placeholder and is none.
fn known(key: &str, text: &str) -> Result<(), ConfigError> {
    for (start, _) in text.match_indices('{') {
        let Some((name, _)) = text[start + 1..].split_once('}') else {
            continue;
        };
        let name = name.strip_suffix(":json").unwrap_or(name);
        let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        if is_word && !Recipe::PLACEHOLDERS.contains(&name) {
            let found = setting_error(key, format!("unknown placeholder `{{{name}}}`"));
            let list: Vec<String> = Recipe::PLACEHOLDERS
                .map(|name| format!("`{{{name}}}`"))
                .into();
            let hint = Some(format!("known are {}", list.join(", ")));
            return Err(ConfigError { hint, ..found });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn built_in_recipes_are_named_as_their_files_and_check() {
        for ((file, _), recipe) in BUILT_IN.iter().zip(Recipe::built_in()) {
            assert_eq!(recipe.name, *file);
            recipe
                .check()
                .unwrap_or_else(|error| panic!("{file}: {error}"));
            let is_complete = !recipe.about.is_empty()
                && recipe.install.is_some()
                && recipe.tested.is_some()
                && !recipe.apis.is_empty()
                && !recipe.keys.is_empty()
                && recipe.auto_approve.is_some();
            assert!(is_complete, "{file}");
        }
    }

    fn refused(recipe: Value) -> ConfigError {
        Recipe::from_value(&recipe).unwrap_err()
    }

    #[test]
    fn what_cannot_work_is_named() {
        for (recipe, place) in [
            (json!({"name": "x", "command": []}), "command"),
            (json!({"name": "x", "command": ["a", "{promt}"]}), "command"),
            (
                json!({"name": "x", "command": ["a"], "continue": ["a", "{sesion}"]}),
                "continue",
            ),
            (
                json!({"name": "x", "command": ["a"], "environment": {"A=B": "c"}}),
                "environment",
            ),
            (
                json!({"name": "x", "command": ["a"], "apis": ["mistral"]}),
                "apis",
            ),
            (
                json!({"name": "x", "command": ["a"], "files": {"../x": ""}}),
                "files",
            ),
            (
                json!({"name": "x", "command": ["a"], "files": {"/etc/x": ""}}),
                "files",
            ),
            (
                json!({"name": "x", "command": ["a"], "mcp_servers": {"program": "", "files": {"../x": ""}}}),
                "files",
            ),
            (
                json!({"name": "x", "command": ["a"], "output": "xml"}),
                "output",
            ),
        ] {
            assert_eq!(refused(recipe).path, [place]);
        }
        assert!(
            refused(json!({"name": "x"}))
                .message
                .contains("missing field `command`")
        );
        let unknown = refused(json!({"name": "x", "command": ["a"], "comand": 1}));
        assert!(unknown.message.contains("unknown field `comand`"));
    }

    #[test]
    fn braces_that_are_no_placeholders_are_text() {
        let recipe = json!({"name": "x", "command": ["a", "{\"a\": {}}", "{", "{A}"]});
        assert!(Recipe::from_value(&recipe).is_ok());
    }
}
