//! The checks of `run` before the first trial: programs, keys, the judge and MCP servers. Nothing here asks a model.
//! Workspaces are tried by the engine, which uses them afterwards.

use crate::commands::containers;
use crate::commands::doctor::{located, version};
use crate::suite::{LoadedSuite, is_path, judges, read_recipe};
use crate::terminal::{one_line, warn};
use anyhow::Result;
use assize_agents::{AcpProvider, Credential, Recipe, SignIn, try_mcp_servers};
use assize_contracts::{CreateSessionParams, JsonMap, unix_ms_now};
use assize_engine::{Mode, ProfileSuite};
use assize_llm::{Api, Endpoint};
use assize_secrets::Redactor;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// The time limit of a service to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A login that ends sooner than this may not last as long as the run.
const SHORT_LIFE_MINUTES: i64 = 60;

/// Something that keeps a run from starting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Obstacle {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// The reasons why a run was not started.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(|obstacle| obstacle.message.as_str()).collect::<Vec<_>>().join("; "))]
pub(crate) struct PreflightError(pub(crate) Vec<Obstacle>);

/// The extent of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything.
    All,
    /// Only programs and keys: the rest has worked before.
    ProgramsAndKeys,
}

/// A program that modes run, and what it needs.
struct Needed<'a> {
    modes: Vec<&'a str>,
    provider: &'a str,
    overrides: Cow<'a, JsonMap>,
    environment: &'a BTreeMap<String, String>,
    recipe: Option<Recipe>,
    program: String,
    /// It runs in containers only: what this machine has does not matter.
    is_housed: bool,
}

/// Looks at everything, and fails with all that is missing. Returns the versions of the agents.
pub(crate) fn check(suite: &LoadedSuite, scope: Scope) -> Result<JsonMap> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let (mut obstacles, versions) = runtime.block_on(look(&suite.profile, scope));
    without_secrets(&suite.profile, &mut obstacles);
    match obstacles.is_empty() {
        true => Ok(versions),
        false => Err(PreflightError(obstacles).into()),
    }
}

/// Servers and programs repeat in their errors what they were sent.
fn without_secrets(profile: &ProfileSuite, obstacles: &mut [Obstacle]) {
    let redactor = Redactor::new(&profile.secrets);
    for obstacle in obstacles {
        redactor.clean(&mut obstacle.message);
        redactor.clean(&mut obstacle.hint);
    }
}

/// The obstacles of a run, as far as they can be known without starting or asking anything.
pub(crate) fn foresee(suite: &LoadedSuite) -> Vec<Obstacle> {
    let profile = &suite.profile;
    let mut obstacles = Vec::new();
    for needed in needed(profile) {
        if !needed.is_housed {
            obstacles.extend(needed.runnable(&profile.directory).err());
        }
        obstacles.extend(needed.signs_in().err());
    }
    obstacles.extend(missing_keys(profile));
    obstacles
}

async fn look(profile: &ProfileSuite, scope: Scope) -> (Vec<Obstacle>, JsonMap) {
    let mut obstacles = Vec::new();
    let mut versions = JsonMap::new();
    for needed in needed(profile) {
        match needed.runnable(&profile.directory) {
            _ if needed.is_housed => {}
            Err(obstacle) => obstacles.push(obstacle),
            Ok(path) => versions.extend(needed.version(&path).await),
        }
        match needed.signs_in() {
            Ok(found) => needed.note(&mut versions, found),
            Err(obstacle) => obstacles.push(obstacle),
        }
    }
    obstacles.extend(missing_keys(profile));
    if scope == Scope::All {
        for judge in judges(&profile.description) {
            obstacles.extend(unreachable(&Asked::judge(&judge)).await);
        }
        obstacles.extend(containers::prepare(profile).await);
        let limit = profile.execution.preflight;
        // Servers that are programs may be missing for the same reason as the agents.
        if obstacles.is_empty() && !limit.is_zero() {
            obstacles.extend(servers(profile, limit).await);
        }
    }
    (obstacles, versions)
}

/// The programs that modes run, each once: those of agents, and those of runners.
fn needed(profile: &ProfileSuite) -> Vec<Needed<'_>> {
    let mut all: Vec<Needed<'_>> = Vec::new();
    for mode in &profile.modes {
        let agent = (!profile.scenarios.is_empty()).then(|| of_mode(mode, &profile.directory));
        let runners = runners_of(profile, mode);
        let runners = runners.filter_map(|runner| of_runner(mode, runner, &profile.directory));
        let agent = agent.flatten().map(|agent| Needed {
            is_housed: containers::is_housed(profile, mode),
            ..agent
        });
        for needed in agent.into_iter().chain(runners) {
            let is_same = |known: &&mut Needed<'_>| {
                known.provider == needed.provider
                    && known.program == needed.program
                    && known.overrides == needed.overrides
                    && known.environment == needed.environment
                    && known.is_housed == needed.is_housed
            };
            match all.iter_mut().find(is_same) {
                Some(known) => known.modes.push(&mode.name),
                None => all.push(needed),
            }
        }
    }
    all
}

/// The runners of a mode, as the suite has them.
fn runners_of<'a>(profile: &'a ProfileSuite, mode: &'a Mode) -> impl Iterator<Item = &'a JsonMap> {
    let written = profile.description.get("runners").and_then(Value::as_array);
    let written = written.into_iter().flatten().filter_map(Value::as_object);
    let is_used = |runner: &&JsonMap| {
        let id = runner.get("id").and_then(Value::as_str);
        mode.runners
            .values()
            .any(|used| Some(used.id.as_str()) == id)
    };
    written.filter(is_used)
}

/// The program of a runner: its own, or that of its agent.
fn of_runner<'a>(mode: &'a Mode, runner: &'a JsonMap, directory: &Path) -> Option<Needed<'a>> {
    let config = runner.get("config").and_then(Value::as_object)?;
    let (provider, settings) = match runner.get("uses").and_then(Value::as_str)? {
        "command" => ("command", config),
        "agent" => {
            let provider = config.get("provider").and_then(Value::as_object)?;
            (provider.get("uses").and_then(Value::as_str)?, provider)
        }
        _ => return None,
    };
    let settings = settings.iter().filter(|(key, _)| *key != "uses");
    let settings = settings.map(|(key, value)| (key.clone(), value.clone()));
    needed_of(mode, provider, Cow::Owned(settings.collect()), directory)
}

/// None for providers that run no program of their own.
fn of_mode<'a>(mode: &'a Mode, directory: &Path) -> Option<Needed<'a>> {
    needed_of(
        mode,
        &mode.provider,
        Cow::Borrowed(&mode.overrides),
        directory,
    )
}

fn needed_of<'a>(
    mode: &'a Mode,
    provider: &'a str,
    overrides: Cow<'a, JsonMap>,
    directory: &Path,
) -> Option<Needed<'a>> {
    let built_in = |name: &str| {
        let mut recipes = Recipe::built_in().iter();
        recipes.find(|recipe| recipe.name == name).cloned()
    };
    let (recipe, program) = match provider {
        "command" => {
            let program = overrides.get("command")?.as_array()?.first()?.as_str()?;
            let program = program.replace("{suite}", &absolute(directory).to_string_lossy());
            // Other names in braces are known only in a session.
            (None, (!program.contains('{')).then_some(program)?)
        }
        "acp" => {
            let recipe = AcpProvider::recipe(&overrides).ok()?;
            let program = recipe.program().to_owned();
            (Some(recipe), program)
        }
        uses if is_path(uses) => {
            let recipe = read_recipe(&directory.join(uses)).ok()?;
            let program = recipe.program().to_owned();
            (Some(recipe), program)
        }
        uses => {
            let recipe = built_in(uses)?;
            let program = recipe.program().to_owned();
            (Some(recipe), program)
        }
    };
    let own = overrides.get("program").and_then(Value::as_str);
    let program = match (own, &recipe) {
        (Some(own), Some(_)) => own.to_owned(),
        _ => program,
    };
    Some(Needed {
        modes: vec![&mode.name],
        provider,
        overrides,
        environment: &mode.environment,
        program,
        recipe,
        is_housed: false,
    })
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl Needed<'_> {
    fn modes(&self) -> String {
        let names: Vec<String> = self.modes.iter().map(|mode| format!("`{mode}`")).collect();
        match names.len() {
            1 => format!("mode {}", names[0]),
            _ => format!("modes {}", names.join(", ")),
        }
    }

    fn located(&self, directory: &Path) -> Option<PathBuf> {
        match self.environment.get("PATH") {
            Some(path) if !self.program.contains('/') => std::env::split_paths(path)
                .map(|place| place.join(&self.program))
                .find(|place| place.is_file()),
            _ => located(&self.program, directory),
        }
    }

    /// The path of the program, if it can be started.
    fn runnable(&self, directory: &Path) -> Result<PathBuf, Obstacle> {
        let path = self.located(directory);
        let path = path.ok_or_else(|| self.missing_program())?;
        let mode = path.metadata().map(|found| found.permissions().mode());
        match mode.is_ok_and(|mode| mode & 0o111 == 0) {
            false => Ok(path),
            true => Err(Obstacle {
                message: format!(
                    "{}: the program `{}` of `{}` is not executable",
                    self.modes(),
                    self.program,
                    self.provider
                ),
                hint: format!("chmod +x {}", path.display()),
            }),
        }
    }

    fn missing_program(&self) -> Obstacle {
        let place = match self.program.contains('/') {
            true => "is no file",
            false => "is in no directory of PATH",
        };
        let install = self
            .recipe
            .as_ref()
            .and_then(|recipe| recipe.install.as_deref());
        Obstacle {
            message: format!(
                "{}: the program `{}` of `{}` {place}",
                self.modes(),
                self.program,
                self.provider
            ),
            hint: match install {
                Some(install) => format!("install it: {install}"),
                None => "install it, or name another one in the suite".to_owned(),
            },
        }
    }

    /// The version of an agent that has a recipe, by its name.
    async fn version(&self, path: &Path) -> Option<(String, Value)> {
        let recipe = self.recipe.as_ref()?;
        let version = version(path).await;
        Some((
            recipe.name.clone(),
            json!({"path": path, "version": version, "testedVersion": recipe.tested}),
        ))
    }

    /// Writes beside an agent's version how each of its modes signs in.
    fn note(&self, versions: &mut JsonMap, found: Option<SignIn>) {
        let entry = self
            .recipe
            .as_ref()
            .and_then(|recipe| versions.get_mut(&recipe.name));
        let (Some(Value::Object(entry)), Some(found)) = (entry, found) else {
            return;
        };
        let by_mode = entry.entry("signIn").or_insert_with(|| json!({}));
        for mode in &self.modes {
            by_mode[*mode] = found.to_json();
        }
    }

    /// The way the agent signs in, or the obstacle. Reports which of several credentials is used, and when it ends soon.
    fn signs_in(&self) -> Result<Option<SignIn>, Obstacle> {
        let Some(recipe) = &self.recipe else {
            return Ok(None);
        };
        let found = recipe.sign_in(&self.overrides, self.environment);
        let found = found.map_err(|error| Obstacle {
            message: format!("{}: {}", self.modes(), error.message),
            hint: error.hint,
        });
        let is_built_in = Recipe::built_in()
            .iter()
            .any(|known| known.name == recipe.name);
        match found {
            Ok(Some(found)) => {
                self.report_sign_in(&recipe.name, &found);
                Ok(Some(found))
            }
            // The author of a recipe lists variables that are passed on where they are set.
            Err(obstacle) if !is_built_in => {
                warn(&obstacle.message);
                Ok(None)
            }
            other => other,
        }
    }

    fn report_sign_in(&self, agent: &str, found: &SignIn) {
        let with = match &found.with {
            Credential::Variable(name) => format!("`{name}`"),
            Credential::Stored { file, .. } => format!("the login at {}", file.display()),
        };
        if !found.not_used.is_empty() {
            let others: Vec<String> = found
                .not_used
                .iter()
                .map(|name| format!("`{name}`"))
                .collect();
            let others = others.join(" and ");
            let modes = self.modes();
            warn(&format!(
                "{modes}: `{agent}` signs in with {with}, which goes before {others}"
            ));
        }
        if let Credential::Stored {
            expires_ms: Some(at),
            ..
        } = &found.with
        {
            let minutes = (at - unix_ms_now()) / 60_000;
            if minutes < SHORT_LIFE_MINUTES {
                let modes = self.modes();
                warn(&format!(
                    "{modes}: {with} ends in {minutes} min, trials after that are void"
                ));
            }
        }
    }
}

/// A model that Assize asks itself, by a key.
struct Asked {
    who: String,
    key: String,
    has_key: bool,
    base_url: Option<String>,
    base_url_variable: &'static str,
    service: String,
    hint: String,
}

impl Asked {
    /// By settings with `api`, `base_url` and `key_env`. Variables of `environment` go before those of Assize's own.
    fn new(who: String, settings: &JsonMap, environment: &BTreeMap<String, String>) -> Self {
        let text = |names: [&str; 2]| {
            let mut found = names
                .iter()
                .filter_map(|name| settings.get(*name)?.as_str());
            found.next().map(str::to_owned)
        };
        let api = text(["api", "api"]).and_then(|api| Api::named(&api));
        let api = api.unwrap_or(Api::OpenAiChat);
        let key = text(["key_env", "keyEnv"]).unwrap_or_else(|| api.key_variable().to_owned());
        let is_set = |name: &str| {
            let host = || std::env::var(name).ok();
            let value = environment.get(name).cloned().or_else(host);
            value.is_some_and(|value| !value.is_empty())
        };
        Self {
            has_key: settings.contains_key("key") || is_set(&key),
            hint: format!("export {key}=…, or name another variable by `key_env`"),
            key,
            who,
            base_url: text(["base_url", "baseUrl"]),
            base_url_variable: api.base_url_variable(),
            service: Endpoint::of(api).base_url,
        }
    }

    fn judge(settings: &JsonMap) -> Self {
        let asked = Self::new("the judge".to_owned(), settings, &BTreeMap::new());
        Self {
            hint: format!(
                "export {}=…, or name another variable by `judge: {{ key_env: … }}`",
                asked.key
            ),
            ..asked
        }
    }

    /// True when the environment names another service.
    fn is_elsewhere(&self, environment: &BTreeMap<String, String>) -> bool {
        let name = self.base_url_variable;
        environment.contains_key(name) || std::env::var_os(name).is_some()
    }

    /// A service of one's own may want no key.
    fn missing_key(&self) -> Option<Obstacle> {
        let key = &self.key;
        (self.base_url.is_none() && !self.has_key).then(|| Obstacle {
            message: format!("{} has no key: `{key}` is not set", self.who),
            hint: self.hint.clone(),
        })
    }
}

/// The keys that are missing for models that Assize asks itself: `chat`, the runner `llm`, judges.
fn missing_keys(profile: &ProfileSuite) -> Vec<Obstacle> {
    let judges = judges(&profile.description);
    let mut asked: Vec<Asked> = judges.iter().map(Asked::judge).collect();
    // Recordings need no key, and another service may want none.
    let capture = profile.description.get("capture");
    let is_redirected = capture.is_some_and(|capture| {
        let names = |key: &str| capture.get(key).is_some_and(|value| !value.is_null());
        names("upstream") || names("cassette")
    });
    for mode in profile.modes.iter().filter(|_| !is_redirected) {
        let name = &mode.name;
        if mode.provider == "chat" && !profile.scenarios.is_empty() {
            let who = format!("mode `{name}`: `chat`");
            let chat = Asked::new(who, &mode.overrides, &mode.environment);
            asked.extend((!chat.is_elsewhere(&mode.environment)).then_some(chat));
        }
        let is_llm = |runner: &&JsonMap| runner.get("uses").and_then(Value::as_str) == Some("llm");
        for runner in runners_of(profile, mode).filter(is_llm) {
            let id = runner.get("id").and_then(Value::as_str).unwrap_or_default();
            let config = runner.get("config").and_then(Value::as_object);
            asked.extend(config.map(|config| {
                let who = format!("mode `{name}`: the runner `{id}`");
                Asked::new(who, config, &BTreeMap::new())
            }));
        }
    }
    let mut missing: Vec<Obstacle> = asked.iter().filter_map(Asked::missing_key).collect();
    missing.dedup();
    missing
}

/// The obstacle, if the service cannot be reached. One that lacks its key is not tried.
async fn unreachable(asked: &Asked) -> Option<Obstacle> {
    if asked.missing_key().is_some() {
        return None;
    }
    let url = asked.base_url.as_deref().unwrap_or(&asked.service);
    let error = reach(url).await.err()?;
    Some(Obstacle {
        message: format!("{} cannot be reached at `{url}`: {error}", asked.who),
        hint: "check `judge: { base_url: … }` and the network".to_owned(),
    })
}

/// Connects to a service, without asking anything.
async fn reach(url: &str) -> Result<(), String> {
    let proxies = [
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
    ];
    let Some((address, is_local)) = address(url) else {
        return Ok(());
    };
    // Another machine makes the connection.
    if !is_local && proxies.iter().any(|name| std::env::var_os(name).is_some()) {
        return Ok(());
    }
    match tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect(&address)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!(
            "no connection within {} s",
            CONNECT_LIMIT.as_secs()
        )),
    }
}

/// Host and port of a URL, and whether it is this machine.
fn address(url: &str) -> Option<(String, bool)> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let is_local = ["127.", "localhost", "[::1]"]
        .iter()
        .any(|local| host.starts_with(local));
    let port = if scheme == "http" { 80 } else { 443 };
    match has_port {
        true => Some((host.to_owned(), is_local)),
        false => Some((format!("{host}:{port}"), is_local)),
    }
}

/// Starts the MCP servers of every mode once, as long as there is time.
async fn servers(profile: &ProfileSuite, limit: Duration) -> Vec<Obstacle> {
    let began = Instant::now();
    let mut tried: Vec<(&JsonMap, &BTreeMap<String, String>)> = Vec::new();
    let mut obstacles = Vec::new();
    let modes = profile.modes.iter();
    for mode in modes.filter(|mode| !containers::is_housed(profile, mode)) {
        let key = (&*mode.overrides, &*mode.environment);
        let left = limit.saturating_sub(began.elapsed());
        if left.is_zero() || tried.contains(&key) {
            continue;
        }
        tried.push(key);
        let sessions = CreateSessionParams {
            environment: Arc::clone(&mode.environment),
            provider_overrides: Arc::clone(&mode.overrides),
            sandbox: profile.sandbox(mode, None),
            ..CreateSessionParams::default()
        };
        let trying = try_mcp_servers(&sessions, &profile.directory, left);
        // A server that is not ready in time shows it in the first trial.
        let Ok(Err(error)) = tokio::time::timeout(left, trying).await else {
            continue;
        };
        if began.elapsed() >= limit {
            break;
        }
        obstacles.push(Obstacle {
            message: format!("mode `{}`: {}", mode.name, one_line(&error, 600)),
            hint: "start the server by hand to see what it says; its command is in `mcp_servers`"
                .to_owned(),
        });
    }
    obstacles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_port_of_their_scheme() {
        for (url, address_and_place) in [
            ("https://api.openai.com/v1", ("api.openai.com:443", false)),
            ("http://127.0.0.1:4000/v1", ("127.0.0.1:4000", true)),
            ("http://me:secret@llm.local?x", ("llm.local:80", false)),
        ] {
            let (host, is_local) = address_and_place;
            assert_eq!(address(url), Some((host.to_owned(), is_local)));
        }
    }
}
