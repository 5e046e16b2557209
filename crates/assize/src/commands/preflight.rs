//! What `run` looks at before the first trial: programs, keys, the judge and MCP servers. Nothing here asks a model.
//! Workspaces are tried by the engine, which uses them afterwards.

use crate::commands::doctor::{located, version};
use crate::suite::{LoadedSuite, is_path, read_recipe};
use crate::terminal::{one_line, warn};
use anyhow::Result;
use assize_agents::{AcpProvider, Credential, Recipe, SignIn, try_mcp_servers};
use assize_contracts::{JsonMap, unix_ms_now};
use assize_engine::{Mode, ProfileSuite};
use assize_llm::{Api, Endpoint};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// How long a service may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A login that ends sooner than this may not last as long as the run.
const SHORT_LIFE_MINUTES: i64 = 60;

/// What a run cannot do without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Obstacle {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// Why a run was not started.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(|obstacle| obstacle.message.as_str()).collect::<Vec<_>>().join("; "))]
pub(crate) struct PreflightError(pub(crate) Vec<Obstacle>);

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything.
    All,
    /// Only programs and keys: the rest has worked before.
    ProgramsAndKeys,
}

/// An agent that modes run, and what it needs.
struct Needed<'a> {
    modes: Vec<&'a str>,
    provider: &'a str,
    overrides: &'a JsonMap,
    environment: &'a BTreeMap<String, String>,
    recipe: Option<Recipe>,
    program: String,
}

/// Looks at everything, and fails with all that is missing. Returns the versions of the agents.
pub(crate) fn check(suite: &LoadedSuite, scope: Scope) -> Result<JsonMap> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let (obstacles, versions) = runtime.block_on(look(&suite.profile, scope));
    match obstacles.is_empty() {
        true => Ok(versions),
        false => Err(PreflightError(obstacles).into()),
    }
}

/// What a run of the suite would stop at, as far as that can be known without starting or asking anything.
pub(crate) fn foresee(suite: &LoadedSuite) -> Vec<Obstacle> {
    let profile = &suite.profile;
    let mut obstacles = Vec::new();
    if !profile.scenarios.is_empty() {
        for needed in needed(profile) {
            if needed.located(&profile.directory).is_none() {
                obstacles.push(needed.missing_program());
            }
            obstacles.extend(needed.signs_in().err());
        }
    }
    let judge = profile.description.get("judge").map(Judge::of);
    obstacles.extend(judge.and_then(|judge| judge.missing_key()));
    obstacles
}

async fn look(profile: &ProfileSuite, scope: Scope) -> (Vec<Obstacle>, JsonMap) {
    let mut obstacles = Vec::new();
    let mut versions = JsonMap::new();
    if !profile.scenarios.is_empty() {
        for needed in needed(profile) {
            match needed.located(&profile.directory) {
                None => obstacles.push(needed.missing_program()),
                Some(path) => versions.extend(needed.version(&path).await),
            }
            match needed.signs_in() {
                Ok(found) => needed.note(&mut versions, found),
                Err(obstacle) => obstacles.push(obstacle),
            }
        }
    }
    if scope == Scope::All {
        obstacles.extend(judge(profile.description.get("judge")).await);
        let limit = profile.execution.preflight;
        // Servers that are programs may be missing for the same reason as the agents.
        if obstacles.is_empty() && !limit.is_zero() {
            obstacles.extend(servers(profile, limit).await);
        }
    }
    (obstacles, versions)
}

/// The programs that modes run, each once.
fn needed(profile: &ProfileSuite) -> Vec<Needed<'_>> {
    let mut all: Vec<Needed<'_>> = Vec::new();
    for mode in &profile.modes {
        let Some(needed) = of_mode(mode, &profile.directory) else {
            continue;
        };
        let is_same = |known: &&mut Needed<'_>| {
            known.provider == needed.provider
                && known.program == needed.program
                && known.overrides == needed.overrides
                && known.environment == needed.environment
        };
        match all.iter_mut().find(is_same) {
            Some(known) => known.modes.push(&mode.name),
            None => all.push(needed),
        }
    }
    all
}

/// None for providers that run no program of their own.
fn of_mode<'a>(mode: &'a Mode, directory: &Path) -> Option<Needed<'a>> {
    let overrides = &*mode.overrides;
    let built_in = |name: &str| {
        let mut recipes = Recipe::built_in().iter();
        recipes.find(|recipe| recipe.name == name).cloned()
    };
    let (recipe, program) = match mode.provider.as_str() {
        "command" => {
            let program = overrides.get("command")?.as_array()?.first()?.as_str()?;
            let program = program.replace("{suite}", &absolute(directory).to_string_lossy());
            // What else may stand in braces is known only in a session.
            (None, (!program.contains('{')).then_some(program)?)
        }
        "acp" => {
            let recipe = AcpProvider::recipe(overrides).ok()?;
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
    Some(Needed {
        modes: vec![&mode.name],
        provider: &mode.provider,
        overrides,
        environment: &mode.environment,
        program: match (own, &recipe) {
            (Some(own), Some(_)) => own.to_owned(),
            _ => program,
        },
        recipe,
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

    /// How the agent signs in, or what is missing for it. Says which of several credentials is used, and when it ends soon.
    fn signs_in(&self) -> Result<Option<SignIn>, Obstacle> {
        let Some(recipe) = &self.recipe else {
            return Ok(None);
        };
        let found = recipe.sign_in(self.overrides, self.environment);
        let found = found.map_err(|problem| Obstacle {
            message: format!("{}: {}", self.modes(), problem.message),
            hint: problem.hint,
        });
        let is_built_in = Recipe::built_in()
            .iter()
            .any(|known| known.name == recipe.name);
        match found {
            Ok(Some(found)) => {
                self.tell(&recipe.name, &found);
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

    fn tell(&self, agent: &str, found: &SignIn) {
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

/// What a suite says about its judge.
struct Judge<'a> {
    key: &'a str,
    base_url: Option<&'a str>,
    service: String,
}

impl<'a> Judge<'a> {
    fn of(written: &'a Value) -> Self {
        let text = |key: &str| written.get(key).and_then(Value::as_str);
        let api = text("api").and_then(Api::named).unwrap_or(Api::OpenAiChat);
        let (key, service) = (api.key_variable(), Endpoint::of(api).base_url);
        Self {
            key: text("key_env").or_else(|| text("keyEnv")).unwrap_or(key),
            base_url: text("base_url").or_else(|| text("baseUrl")),
            service,
        }
    }

    fn missing_key(&self) -> Option<Obstacle> {
        let key = self.key;
        let has_key = std::env::var(key).is_ok_and(|value| !value.is_empty());
        (self.base_url.is_none() && !has_key).then(|| Obstacle {
            message: format!("the judge has no key: `{key}` is not set"),
            hint: format!("export {key}=…, or name another variable by `judge: {{ key_env: … }}`"),
        })
    }
}

/// Whether the judge can be asked: its key and a connection to its service.
async fn judge(written: Option<&Value>) -> Option<Obstacle> {
    let judge = Judge::of(written?);
    if let Some(obstacle) = judge.missing_key() {
        return Some(obstacle);
    }
    let url = judge.base_url.unwrap_or(&judge.service);
    let problem = reach(url).await.err()?;
    Some(Obstacle {
        message: format!("the judge cannot be reached at `{url}`: {problem}"),
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
    for mode in &profile.modes {
        let key = (&*mode.overrides, &*mode.environment);
        let left = limit.saturating_sub(began.elapsed());
        if left.is_zero() || tried.contains(&key) {
            continue;
        }
        tried.push(key);
        let trying = try_mcp_servers(&mode.overrides, &mode.environment, &profile.directory, left);
        // Whoever is not ready when time is over shows it in the first trial.
        let Ok(Err(problem)) = tokio::time::timeout(left, trying).await else {
            continue;
        };
        if began.elapsed() >= limit {
            break;
        }
        obstacles.push(Obstacle {
            message: format!("mode `{}`: {}", mode.name, one_line(&problem, 600)),
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
