//! From a recipe and a session's wishes to what is run: placeholders, environment, files, options.

use super::login::StoredLogin;
use super::sign_in::SignInError;
use super::surroundings::Surroundings;
use super::{Additions, Recipe, ServerList};
use crate::command::{CommandSettings, Invocation, Plan, fill_in};
use crate::mcp::{McpServers, Reach, Server};
use crate::settings::{read, setting_error};
use crate::wall::session_directory;
use assize_contracts::{ConfigError, CreateSessionParams, JsonMap, ProviderError, VoidCause};
use assize_process::host_variable;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The APIs that have a base URL.
pub(super) const APIS: [&str; 3] = ["anthropic", "openai", "gemini"];

/// The model's name when neither suite nor provider names one.
const NO_MODEL: &str = "default";

/// Agents commit, and a fresh home has no Git identity.
const GIT_CONFIG: &str = "[user]\n\tname = agent\n\temail = agent@localhost\n";

/// The suite's settings of an agent with a recipe.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecipeSettings {
    /// Another program than the recipe's: a name or a path, relative to the suite.
    #[serde(default)]
    program: Option<String>,
    /// More arguments.
    #[serde(default)]
    args: Vec<String>,
    /// The model when the suite names none.
    #[serde(default, rename = "model")]
    _model: Option<String>,
    #[serde(default, alias = "passEnv")]
    pass_env: Vec<String>,
    /// True when the agent has a fresh home instead of its user's.
    #[serde(default = "yes")]
    isolated: bool,
    /// Whose login the agent signs in with, instead of a key.
    #[serde(default)]
    login: Option<Whose>,
    #[serde(default, alias = "mcpServers")]
    mcp_servers: McpServers,
    #[serde(default, alias = "graceMs")]
    grace_ms: Option<u64>,
    #[serde(default, alias = "maxOutput")]
    max_output: Option<u64>,
}

/// Whose login a session is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Whose {
    /// The login of the user who runs Assize.
    User,
}

fn yes() -> bool {
    true
}

impl Recipe {
    pub(crate) fn model_for(&self, overrides: &JsonMap) -> Option<String> {
        let named = overrides.get("model").and_then(|model| model.as_str());
        named
            .map(str::to_owned)
            .or_else(|| self.default_model.clone())
    }

    pub(crate) fn check_settings(&self, overrides: &JsonMap) -> Result<(), ConfigError> {
        let (settings, surroundings) = read_settings(overrides)?;
        self.check_surroundings(&surroundings, settings.isolated)?;
        if settings.program.as_deref() == Some("") {
            let message = "found no program, expected a name or a path";
            return Err(setting_error("program", message));
        }
        self.check_servers(&settings)?;
        self.check_login(&settings)?;
        self.command_settings(&settings, self.command.clone())
            .check()
    }

    fn check_servers(&self, settings: &RecipeSettings) -> Result<(), ConfigError> {
        let servers = &settings.mcp_servers;
        servers.check()?;
        let refused = |message: String| Err(setting_error("mcp_servers", message));
        let name = &self.name;
        match &self.mcp_servers {
            _ if servers.is_empty() => Ok(()),
            None => refused(format!("`{name}` cannot be given MCP servers")),
            Some(_) if !settings.isolated => {
                refused("an agent in your own home has the servers of that home".to_owned())
            }
            Some(list) if list.remote.is_none() && servers.has_urls() => {
                refused(format!("`{name}` takes no MCP servers by URL"))
            }
            Some(_) => Ok(()),
        }
    }

    fn check_login(&self, settings: &RecipeSettings) -> Result<(), ConfigError> {
        match (settings.login, &self.login) {
            (None, _) => Ok(()),
            (Some(_), None) => {
                let message = format!("`{}` stores no login that could be copied", self.name);
                let hint = format!("leave it out, and set {}", self.keys.join(" or "));
                Err(setting_error("login", message).with_hint(hint))
            }
            (Some(_), Some(_)) if !settings.isolated => {
                let message = "an agent in your own home is signed in as it is there";
                Err(setting_error("login", message))
            }
            (Some(_), Some(_)) => Ok(()),
        }
    }

    /// The variables with credentials that a session gets: with a login, no key that the agent would take instead.
    fn passed_keys(&self, settings: &RecipeSettings) -> Vec<String> {
        match (settings.login, &self.login) {
            (Some(_), Some(login)) => login.variable.iter().cloned().collect(),
            _ => self.keys.clone(),
        }
    }

    fn command_settings(&self, settings: &RecipeSettings, command: Vec<String>) -> CommandSettings {
        let mut made = CommandSettings::of(command);
        made.output = self.output;
        made.polite_signal = self.polite_signal;
        made.pass_env = [self.passed_keys(settings), settings.pass_env.clone()].concat();
        made.grace_ms = settings.grace_ms.unwrap_or(made.grace_ms);
        made.max_output = settings.max_output.unwrap_or(made.max_output);
        made
    }

    /// Makes a home for the session and says what is to be run in it.
    pub(crate) fn invocation(
        &self,
        params: &CreateSessionParams,
        suite: &Path,
    ) -> Result<Invocation, ProviderError> {
        let (settings, surroundings) = read_settings(&params.provider_overrides)
            .map_err(|error| ProviderError::service(error.message))?;
        let overrides = &params.provider_overrides;
        let login = self
            .login_for_session(overrides, &params.environment)
            .map_err(not_signed_in)?;
        let signed_in = self.sign_in(overrides, &params.environment).ok().flatten();
        let home = session_directory().map_err(no_home)?;
        let order = Order {
            login,
            recipe: self,
            settings: &settings,
            params,
            home: home.path(),
            servers: settings.mcp_servers.for_session(&params.workdir, suite),
        };
        let added = order.additions()?;
        let values = order.values();
        order.write_files(&added, &values).map_err(no_home)?;
        self.install(&surroundings, home.path())
            .map_err(not_installed)?;
        let mut params = params.clone();
        params.environment = Arc::new(order.environment(&added, &values));
        let command = self.command_settings(&settings, order.argv(&self.command, &added));
        let plan = Plan {
            setup: order.argv(&self.setup, &added),
            continuation: self
                .continuation
                .as_ref()
                .map(|template| order.argv(template, &added)),
            instructions_have_place: self.instructions.is_some(),
            writes_instructions: self
                .instructions
                .iter()
                .any(|added| !added.files.is_empty()),
            values,
            named: named_by(&order.servers),
            own: match settings.isolated {
                true => Vec::new(),
                false => self.own_files(),
            },
            is_subscription: signed_in.is_some_and(|signed_in| signed_in.is_subscription),
            scratch: Some(home),
        };
        Ok(Invocation::planned(command, &params, suite, plan))
    }
}

/// Texts by which servers may name files of the suite.
pub(crate) fn named_by(servers: &[Server]) -> Vec<String> {
    let texts = servers.iter().flat_map(|server| match &server.reach {
        Reach::Program { command, args, env } => {
            let texts = std::iter::once(command).chain(args).chain(env.values());
            texts.cloned().collect()
        }
        Reach::Url { .. } => Vec::new(),
    });
    texts.collect()
}

fn no_home(error: std::io::Error) -> ProviderError {
    ProviderError::service(format!("cannot make a home for the session: {error}"))
}

fn not_installed(message: String) -> ProviderError {
    ProviderError::service(message)
        .with_code("not_installed")
        .with_void_cause(VoidCause::AgentStart)
}

/// Settings of the recipe, and what else a mode gives to its sessions.
fn read_settings(overrides: &JsonMap) -> Result<(RecipeSettings, Surroundings), ConfigError> {
    let mut own = overrides.clone();
    let surroundings = Surroundings::take(&mut own)?;
    Ok((read(&own)?, surroundings))
}

fn not_signed_in(error: SignInError) -> ProviderError {
    let SignInError { message, hint } = error;
    ProviderError::service(format!("{message}; {hint}"))
        .with_code("not_signed_in")
        .with_void_cause(VoidCause::AgentStart)
}

/// One session's wishes.
struct Order<'a> {
    /// The user's own login, where it is used.
    login: Option<StoredLogin>,
    recipe: &'a Recipe,
    settings: &'a RecipeSettings,
    params: &'a CreateSessionParams,
    home: &'a Path,
    servers: Vec<Server>,
}

impl Order<'_> {
    fn model(&self) -> Option<&str> {
        let model = self.params.model.as_str();
        (!model.is_empty() && model != NO_MODEL).then_some(model)
    }

    /// The additions for the suite's settings, in the order in which they are added.
    fn additions(&self) -> Result<Vec<Additions>, ProviderError> {
        let recipe = self.recipe;
        let mut added = Vec::new();
        added.push(match (&self.login, &recipe.login) {
            (Some(_), Some(login)) => login.added.clone(),
            _ => recipe.by_key.clone(),
        });
        added.extend(self.model().map(|_| recipe.model.clone()));
        if !self.params.system_instructions.is_empty() {
            added.extend(recipe.instructions.clone());
        }
        let permissions = &self.params.permissions;
        let cannot = |what: &str| {
            let message = format!("`{}` has no setting to {what}", recipe.name);
            ProviderError::service(message).with_code("permissions_unsupported")
        };
        if permissions.auto_approve {
            let approve = recipe.auto_approve.clone();
            added.push(approve.ok_or_else(|| cannot("approve everything by itself"))?);
        } else if !permissions.allowed_tools.is_empty() {
            let list = recipe.allowed_tools.as_ref();
            let list = list.ok_or_else(|| cannot("allow only some tools"))?;
            added.push(Additions {
                args: list.args.clone(),
                environment: list.environment.clone(),
                files: BTreeMap::new(),
            });
        }
        if let Some(list) = recipe
            .mcp_servers
            .as_ref()
            .filter(|_| !self.servers.is_empty())
        {
            added.push(Additions {
                args: list.args.clone(),
                environment: list.environment.clone(),
                files: list.files.clone(),
            });
        }
        Ok(added)
    }

    /// Placeholders of this session; those of a prompt come later.
    fn values(&self) -> Vec<(String, String)> {
        let params = self.params;
        let tools = self.recipe.allowed_tools.as_ref().map(|list| {
            let each = |tool: &String| list.each.replace("{tool}", tool);
            let tools: Vec<String> = params.permissions.allowed_tools.iter().map(each).collect();
            tools.join(&list.join)
        });
        let openai = self.url("OPENAI_BASE_URL", "https://api.openai.com/v1");
        let gemini = "https://generativelanguage.googleapis.com";
        let values = [
            ("home", self.home.to_string_lossy().into_owned()),
            ("model", self.model().unwrap_or_default().to_owned()),
            ("system_instructions", params.system_instructions.clone()),
            ("key", self.key()),
            ("allowed_tools", tools.unwrap_or_default()),
            ("mcp_servers", self.servers_as_written()),
            (
                "anthropic_url",
                self.url("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
            ),
            ("openai_root", openai.trim_end_matches("/v1").to_owned()),
            ("openai_url", openai),
            ("gemini_url", self.url("GOOGLE_GEMINI_BASE_URL", gemini)),
        ];
        let both = |(name, value): (&str, String)| {
            let inside_json = (format!("{{{name}:json}}"), inside_json(&value));
            [inside_json, (format!("{{{name}}}"), value)]
        };
        values.into_iter().flat_map(both).collect()
    }

    fn servers_as_written(&self) -> String {
        let Some(list) = &self.recipe.mcp_servers else {
            return String::new();
        };
        let servers = self.servers.iter();
        let servers: Vec<String> = servers.map(|server| written(server, list)).collect();
        servers.join(&list.join)
    }

    /// The address of an API: the proxy's during a captured session.
    fn url(&self, variable: &str, usual: &str) -> String {
        self.variable(variable).unwrap_or_else(|| usual.to_owned())
    }

    fn key(&self) -> String {
        let known = self.recipe.keys.iter().find_map(|name| self.variable(name));
        known.unwrap_or_default()
    }

    fn variable(&self, name: &str) -> Option<String> {
        let given = self.params.environment.get(name).cloned();
        let overrides = &self.params.provider_overrides;
        given
            .or_else(|| self.recipe.base_urls_of_login(overrides).remove(name))
            .or_else(|| host_variable(name))
            .filter(|value| !value.is_empty())
    }

    /// A command with the options in their place and the suite's program, if it names one.
    fn argv(&self, template: &[String], added: &[Additions]) -> Vec<String> {
        let options = added.iter().flat_map(|added| &added.args);
        let options: Vec<String> = options.chain(&self.settings.args).cloned().collect();
        let mut argv = Vec::with_capacity(template.len() + options.len());
        for word in template {
            match word.as_str() {
                "{options}" => argv.extend_from_slice(&options),
                word => argv.push(word.to_owned()),
            }
        }
        if let (Some(program), Some(first)) = (&self.settings.program, argv.first_mut()) {
            first.clone_from(program);
        }
        argv
    }

    fn write_files(&self, added: &[Additions], values: &[(String, String)]) -> std::io::Result<()> {
        std::fs::write(self.home.join(".gitconfig"), GIT_CONFIG)?;
        std::fs::create_dir_all(self.home.join(".tmp"))?;
        let files = added.iter().flat_map(|added| &added.files);
        for (path, content) in self.recipe.files.iter().chain(files) {
            let path = self.home.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, fill_in(content, values))?;
        }
        match &self.login {
            Some(login) => write_private(&self.home.join(login.content.0), &login.content.1),
            None => Ok(()),
        }
    }

    /// The suite's own variables go before the recipe's, and those before what isolates.
    fn environment(
        &self,
        added: &[Additions],
        values: &[(String, String)],
    ) -> BTreeMap<String, String> {
        let mut templates: BTreeMap<String, String> = BTreeMap::new();
        if self.settings.isolated {
            let homes = [
                ("HOME", "{home}"),
                ("XDG_CONFIG_HOME", "{home}/.config"),
                ("XDG_DATA_HOME", "{home}/.local/share"),
                ("XDG_STATE_HOME", "{home}/.local/state"),
                ("XDG_CACHE_HOME", "{home}/.cache"),
                // Files that agents leave there go with the session.
                ("TMPDIR", "{home}/.tmp"),
            ];
            templates.extend(homes.map(|(name, path)| (name.to_owned(), path.to_owned())));
            templates.extend(self.recipe.isolation.clone());
        }
        templates.extend(self.recipe.environment.clone());
        for added in added {
            templates.extend(added.environment.clone());
        }
        let filled = templates
            .into_iter()
            .map(|(name, value)| (name, fill_in(&value, values)));
        let own = self.params.environment.iter();
        let own = own.map(|(name, value)| (name.clone(), value.clone()));
        filled.chain(own).collect()
    }
}

/// Writes a file that other users cannot read.
fn write_private(path: &Path, content: &str) -> std::io::Result<()> {
    use std::io::Write;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    assize_secrets::create_private_file(path)?.write_all(content.as_bytes())
}

/// A server as the agent's own configuration names it.
fn written(server: &Server, list: &ServerList) -> String {
    let name = ("{name}".to_owned(), server.name.clone());
    let value = |name: &str, value: Value| (name.to_owned(), value.to_string());
    match &server.reach {
        Reach::Program { command, args, env } => {
            let argv: Vec<&String> = std::iter::once(command).chain(args).collect();
            let values = [
                name,
                value("{command}", json!(command)),
                value("{args}", json!(args)),
                value("{argv}", json!(argv)),
                ("{env:toml}".to_owned(), toml_table(env)),
                value("{env}", json!(env)),
            ];
            fill_in(&list.program, &values)
        }
        Reach::Url { url, headers } => {
            let values = [
                name,
                value("{url}", json!(url)),
                ("{headers:toml}".to_owned(), toml_table(headers)),
                value("{headers}", json!(headers)),
            ];
            fill_in(list.remote.as_deref().unwrap_or_default(), &values)
        }
    }
}

/// Strings of JSON are strings of TOML, but its objects are not.
fn toml_table(map: &BTreeMap<String, String>) -> String {
    let pairs = map.iter();
    let pairs = pairs.map(|(name, value)| format!("{} = {}", json!(name), json!(value)));
    format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
}

/// As it is written between the quotes of a JSON string.
fn inside_json(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(name: &str) -> &'static Recipe {
        let mut recipes = Recipe::built_in().iter();
        recipes.find(|recipe| recipe.name == name).unwrap()
    }

    fn settings(value: Value) -> JsonMap {
        value.as_object().unwrap().clone()
    }

    /// The content of a file in an agent's home.
    fn file(agent: &str, path: &str, servers: Value) -> String {
        let params = CreateSessionParams {
            workdir: "/ws".into(),
            provider_overrides: Arc::new(settings(json!({ "mcp_servers": servers }))),
            ..CreateSessionParams::default()
        };
        let invocation = recipe(agent).invocation(&params, Path::new("/suite"));
        let home = invocation.unwrap();
        std::fs::read_to_string(home.home().unwrap().join(path)).unwrap()
    }

    fn servers() -> Value {
        json!({
            "docs": {"command": "./docs", "args": ["{workspace}", "say \"hi\""], "env": {"KEY": "a\"b"}},
            "far": {"url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "k"}},
        })
    }

    #[test]
    fn agents_find_servers_in_their_own_configuration() {
        for (agent, path, list) in [
            ("claude-code", "mcp.json", "mcpServers"),
            ("gemini", ".gemini/settings.json", "mcpServers"),
            ("qwen", ".qwen/settings.json", "mcpServers"),
            ("opencode", "opencode.json", "mcp"),
        ] {
            let found: Value = serde_json::from_str(&file(agent, path, servers())).unwrap();
            let docs = found[list]["docs"].to_string();
            for part in [
                r#""/suite/./docs""#,
                r#""/ws""#,
                r#""say \"hi\"""#,
                r#""a\"b""#,
            ] {
                assert!(docs.contains(part), "{agent}: {docs}");
            }
            let far = found[list]["far"].to_string();
            assert!(
                far.contains("127.0.0.1:1/mcp") && far.contains("X-Key"),
                "{agent}: {far}"
            );
        }
        let codex = file("codex", ".codex/config.toml", servers());
        assert!(
            codex.contains("[mcp_servers.docs]\ncommand = \"/suite/./docs\"\n"),
            "{codex}"
        );
        assert!(codex.contains(r#"env = { "KEY" = "a\"b" }"#), "{codex}");
    }

    #[test]
    fn agents_without_servers_have_a_configuration_that_can_be_read() {
        for (agent, path) in [
            ("gemini", ".gemini/settings.json"),
            ("opencode", "opencode.json"),
        ] {
            let text = file(agent, path, json!({}));
            assert!(
                serde_json::from_str::<Value>(&text).is_ok(),
                "{agent}: {text}"
            );
        }
    }

    #[test]
    fn servers_that_an_agent_cannot_have_are_refused_before_a_run() {
        let one = json!({"docs": {"command": "docs"}});
        let refused = |agent: &str, value: Value| {
            let error = recipe(agent).check_settings(&settings(value)).unwrap_err();
            assert_eq!(error.path[0], "mcp_servers", "{agent}");
            error.message
        };
        let said = refused("aider", json!({"mcp_servers": one}));
        assert_eq!(said, "`aider` cannot be given MCP servers");
        refused("codex", json!({"mcpServers": one, "isolated": false}));
        refused("codex", json!({"mcp_servers": {"docs": {}}}));
    }
}
