//! `assize doctor`: which agents are here, whether they are the tested ones, and whether they can be reached through the
//! proxy. For the last, each is really started, with an LLM that refuses everything, so nothing is spent.

use crate::cli::DoctorArguments;
use crate::commands::UsageError;
use crate::exit::Exit;
use crate::suite::{Agent, SuiteError, agents_of, find, is_path, suggest};
use crate::terminal::{one_line, plain, print, print_json, say};
use anyhow::Result;
use assize_agents::capture::{Capture, CaptureSettings, CapturedProvider, Service};
use assize_agents::{Credential, Recipe, SignIn, SignInError};
use assize_contracts::{CreateSessionParams, ProviderConfig, ProviderError, SessionProvider};
use assize_process::container::Engine;
use assize_process::workspace::{default_root, survey};
use assize_process::{Command, GuardVersion};
use comfy_table::{Table, presets};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// The time limit of an agent to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(30);

/// The time limit of an agent up to its first request.
const REACH_LIMIT: Duration = Duration::from_secs(90);

/// The findings about one agent.
struct Finding {
    agent: Agent,
    /// The program that is looked for.
    program: String,
    path: Option<PathBuf>,
    version: Option<String>,
    /// The credential it signs in with, or the missing one.
    sign_in: Result<Option<SignIn>, SignInError>,
    reached: Option<Result<(), String>>,
}

pub(crate) fn doctor(arguments: &DoctorArguments) -> Result<Exit> {
    let agents = chosen(&arguments.agents)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut findings = Vec::new();
    for agent in agents {
        let finding = runtime.block_on(examine(agent, !arguments.quick));
        if arguments.json {
            print(finding.json().to_string());
        }
        findings.push(finding);
    }
    if !arguments.json {
        print(table(&findings).to_string());
        findings.iter().flat_map(Finding::advice).for_each(say);
    }
    if arguments.agents.is_empty() {
        print_workspaces(arguments.json)?;
        let engine = runtime.block_on(Engine::find(None));
        let engine = engine.map_err(|error| error.explained());
        print_sandboxes(arguments.json, &engine);
    }
    Ok(Exit::Done)
}

/// The methods by which workspaces can be made here, the best first.
fn print_workspaces(as_json: bool) -> Result<()> {
    let root = default_root()?;
    let found = survey(&root);
    if as_json {
        let found = found.iter().map(|found| {
            json!({
                "method": found.method,
                "works": found.works.is_ok(),
                "reason": found.works.as_ref().err(),
            })
        });
        print_json(json!({ "workspaces": Vec::from_iter(found) }).to_string());
        return Ok(());
    }
    let best = found.iter().find(|found| found.works.is_ok());
    if let Some(best) = best {
        print(format!("workspaces are made by {}", best.method.as_str()));
    }
    for found in &found {
        if let Err(reason) = &found.works {
            let reason = one_line(reason, 200);
            say(format!("{} does not work: {reason}", found.method.as_str()));
        }
    }
    Ok(())
}

/// The sandboxes that this machine has, and the reasons why it lacks others.
fn print_sandboxes(as_json: bool, engine: &Result<Engine, String>) {
    let guard = GuardVersion::of_this_machine();
    if as_json {
        let guard = json!({
            "level": "guard",
            "works": guard.is_ok(),
            "version": guard.as_ref().ok().map(|version| version.0),
            "missing": guard.as_ref().map_or_else(|_| Vec::new(), |version| version.missing()),
            "reason": guard.as_ref().err(),
        });
        let container = json!({
            "level": "container",
            "works": engine.is_ok(),
            "engine": engine.as_ref().ok().map(|engine| engine.kind().as_str()),
            "reason": engine.as_ref().err(),
        });
        print_json(json!({ "sandbox": [guard, container] }).to_string());
        return;
    }
    match guard {
        Ok(version) => {
            print(format!("agents are kept by guard (Landlock {})", version.0));
            for missing in version.missing() {
                say(format!("guard is not whole: {missing}"));
            }
        }
        Err(reason) => {
            print("agents are kept by no sandbox");
            say(format!("guard does not work: {reason}"));
        }
    }
    match engine {
        Ok(engine) => print(format!("containers are run by {}", engine.kind().as_str())),
        Err(reason) => say(format!(
            "container does not work: {}",
            one_line(reason, 200)
        )),
    }
}

/// Agents by name, by a recipe's file, or all of a suite.
fn chosen(names: &[String]) -> Result<Vec<Agent>> {
    let all = Recipe::built_in();
    if names.is_empty() {
        return Ok(all.iter().cloned().map(Agent::new).collect());
    }
    let mut chosen = Vec::new();
    for name in names {
        if let Some(recipe) = all.iter().find(|recipe| recipe.name == *name) {
            chosen.push(Agent::new(recipe.clone()));
        } else if is_path(name) || Path::new(name).exists() {
            chosen.extend(in_file(Path::new(name))?);
        } else {
            let known: Vec<&str> = all.iter().map(|recipe| recipe.name.as_str()).collect();
            return Err(anyhow::Error::new(UsageError {
                message: format!("no agent is called `{name}`"),
                hint: suggest(name, &known),
            }));
        }
    }
    Ok(chosen)
}

fn in_file(path: &Path) -> Result<Vec<Agent>> {
    let agents = agents_of(&find(path).map_err(SuiteError::from)?)?;
    if agents.is_empty() {
        let message = format!(
            "no mode of `{}` runs an agent by a recipe or `acp`",
            path.display()
        );
        let hint = Some("`assize check` looks at everything else".to_owned());
        return Err(anyhow::Error::new(UsageError { message, hint }));
    }
    Ok(agents)
}

async fn examine(agent: Agent, try_it: bool) -> Finding {
    let named = agent.settings.get("program").and_then(Value::as_str);
    let program = named.unwrap_or(agent.recipe.program()).to_owned();
    let mut finding = Finding {
        path: located(&program, &agent.directory),
        sign_in: agent.recipe.sign_in(&agent.settings, &agent.environment),
        version: None,
        reached: None,
        program,
        agent,
    };
    if let Some(path) = &finding.path {
        finding.version = version(path).await;
        if try_it {
            finding.reached = Some(reach(&finding.agent).await);
        }
    }
    finding
}

/// A path is relative to the suite; anything else is looked for in PATH.
pub(super) fn located(program: &str, directory: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        let path = std::path::absolute(directory.join(program)).ok()?;
        return path.is_file().then_some(path);
    }
    let mut places = assize_process::places_in_path(program).into_iter();
    places.find(|place| place.is_file())
}

/// The first word that looks like a version.
pub(super) async fn version(program: &Path) -> Option<String> {
    let home = assize_secrets::private_directory("assize-doctor-").ok()?;
    let output = Command::new(program, home.path())
        .arg("--version")
        .pass_usual_env()
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .timeout(VERSION_LIMIT)
        .run_to_end()
        .await
        .ok()?;
    let printed = format!("{} {}", output.stdout.text(), output.stderr.text());
    let is_version = |word: &&str| {
        let word = word.trim_start_matches('v');
        word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')
    };
    let word = printed.split_whitespace().find(is_version)?;
    let word = word.trim_start_matches('v').trim_end_matches('.');
    Some(one_line(word, 40))
}

/// Starts the agent by its recipe behind the proxy, and waits for its first request to a model.
async fn reach(agent: &Agent) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let (heard, mut hears) = mpsc::unbounded_channel();
    let server = tokio::spawn(refuse_everything(listener, heard));
    let llm = format!("http://{address}");
    let prompting = prompt(agent, &llm);
    let reached = tokio::select! {
        biased;
        Some(()) = hears.recv() => Ok(()),
        ended = prompting => match hears.try_recv() {
            Ok(()) => Ok(()),
            Err(_) => Err(ended.err().map_or_else(
                || "it ended without asking a model".to_owned(),
                |error| error.message,
            )),
        },
        () = tokio::time::sleep(REACH_LIMIT) => {
            Err(format!("no request to a model within {} s", REACH_LIMIT.as_secs()))
        }
    };
    server.abort();
    reached
}

async fn prompt(agent: &Agent, llm: &str) -> Result<(), ProviderError> {
    let settings = CaptureSettings {
        upstreams: BTreeMap::from([
            (Service::Anthropic, llm.to_owned()),
            (Service::OpenAi, format!("{llm}/v1")),
            (Service::Gemini, llm.to_owned()),
        ]),
        ..CaptureSettings::default()
    };
    let provider = CapturedProvider::new(Arc::clone(&agent.provider), Capture::new(settings));
    let workspace = assize_secrets::private_directory("assize-doctor-")
        .map_err(|error| ProviderError::service(error.to_string()))?;
    // An agent without a key does not even ask.
    let keys = agent.recipe.keys.iter();
    let mut environment: BTreeMap<String, String> = keys
        .map(|name| (name.clone(), "doctor".to_owned()))
        .collect();
    environment.extend(agent.environment.clone());
    let model = agent.model.clone();
    let params = CreateSessionParams {
        model: model
            .or_else(|| provider.default_model(&agent.settings))
            .unwrap_or_default(),
        workdir: workspace.path().to_owned(),
        environment: Arc::new(environment),
        permissions: agent.permissions.clone(),
        provider_overrides: Arc::new(agent.settings.clone()),
        ..CreateSessionParams::default()
    };
    provider
        .init(&ProviderConfig {
            port: 0,
            model: params.model.clone(),
            mode: "doctor".to_owned(),
            permissions: params.permissions.clone(),
            environment: BTreeMap::new(),
            workdir: agent.directory.clone(),
            provider_overrides: agent.settings.clone(),
        })
        .await?;
    let session = provider.create_session(&params).await?;
    provider
        .prompt(&session, "Say hello.", REACH_LIMIT)
        .await
        .map(drop)
}

/// An LLM that rejects every key. It reports every request to a model.
async fn refuse_everything(listener: TcpListener, heard: mpsc::UnboundedSender<()>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(refuse(stream, heard.clone()));
    }
}

async fn refuse(mut stream: TcpStream, heard: mpsc::UnboundedSender<()>) -> std::io::Result<()> {
    const BODY: &str =
        r#"{"error":{"type":"authentication_error","message":"assize doctor","code":401}}"#;
    let mut head = vec![0; 4096];
    let length = stream.read(&mut head).await?;
    if head[..length].starts_with(b"POST ") {
        // The listener may be gone.
        let _ = heard.send(());
    }
    let answer = format!(
        "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{BODY}",
        BODY.len()
    );
    stream.write_all(answer.as_bytes()).await
}

impl Finding {
    fn json(&self) -> Value {
        let Recipe {
            name,
            install,
            tested,
            keys,
            ..
        } = &self.agent.recipe;
        json!({
            "agent": name,
            "modes": self.agent.modes,
            "program": self.program,
            "path": self.path,
            "version": self.version,
            "testedVersion": tested,
            "install": install,
            "keys": keys,
            "keySet": self.key(),
            "signIn": self.sign_in.as_ref().ok().map(|found| found.as_ref().map(SignIn::to_json)),
            "newerThanTested": self.is_newer(),
            "reached": self.reached.as_ref().map(Result::is_ok),
            "problem": self.reached.as_ref().and_then(|reached| reached.as_ref().err()),
        })
    }

    fn cells(&self) -> [String; 5] {
        let version = match (&self.path, &self.version) {
            (None, _) => "not installed".to_owned(),
            (Some(_), None) => "installed".to_owned(),
            (Some(_), Some(version)) => version.clone(),
        };
        let key = match &self.sign_in {
            Ok(None) => String::new(),
            Ok(Some(found)) => match &found.with {
                Credential::Variable(name) => format!("{name} is set"),
                Credential::Stored { .. } => "stored login".to_owned(),
            },
            Err(_) if self.is_keyless() => "none set".to_owned(),
            Err(_) => "no login".to_owned(),
        };
        let reached = match &self.reached {
            None => String::new(),
            Some(Ok(())) => "reached".to_owned(),
            Some(Err(_)) => "not reached".to_owned(),
        };
        let tested = self.agent.recipe.tested.clone().unwrap_or_default();
        [self.name(), version, tested, key, reached].map(|cell| plain(&cell))
    }

    /// The variable that it signs in with.
    fn key(&self) -> Option<&str> {
        match &self.sign_in.as_ref().ok()?.as_ref()?.with {
            Credential::Variable(name) => Some(name),
            Credential::Stored { .. } => None,
        }
    }

    /// No login was asked for, and there is no key.
    fn is_keyless(&self) -> bool {
        self.sign_in.is_err() && !self.agent.settings.contains_key("login")
    }

    /// True when it is newer than any version that was tested.
    fn is_newer(&self) -> Option<bool> {
        let tested = self.agent.recipe.tested.as_deref()?;
        Some(numbers(self.version.as_deref()?) > numbers(tested))
    }

    /// The agent, with its modes where a suite has some.
    fn name(&self) -> String {
        let name = &self.agent.recipe.name;
        match self.agent.modes.is_empty() {
            true => name.clone(),
            false => format!("{name} ({})", self.agent.modes.join(", ")),
        }
    }

    /// Advice about missing parts.
    fn advice(&self) -> Vec<String> {
        let recipe = &self.agent.recipe;
        let advice = |what: String, hint: &str| {
            let what = one_line(&format!("{}: {what}", self.name()), 600);
            format!("{what}\n  hint: {}", one_line(hint, 400))
        };
        if self.path.is_none() {
            let place = match self.program.contains('/') {
                true => "is no file",
                false => "is in no directory of PATH",
            };
            let install = recipe.install.as_deref();
            let install = install.unwrap_or("its recipe can say how one gets it: `install`");
            return vec![advice(format!("`{}` {place}", self.program), install)];
        }
        let unreached = self
            .reached
            .as_ref()
            .and_then(|reached| reached.as_ref().err());
        let unreached = unreached.map(|error| {
            let hint = "its recipe must hand `{anthropic_url}`, `{openai_url}` or `{gemini_url}` on to it, or the agent must heed the usual variables";
            advice(error.clone(), hint)
        });
        let signed = match &self.sign_in {
            Err(_) if self.is_keyless() => Some(advice(
                "no key".to_owned(),
                &format!("set {}", recipe.keys.join(" or ")),
            )),
            Err(error) => Some(advice(error.message.clone(), &error.hint)),
            Ok(Some(found)) if !found.not_used.is_empty() => {
                let used = match &found.with {
                    Credential::Variable(name) => name.clone(),
                    Credential::Stored { file, .. } => format!("the login at {}", file.display()),
                };
                let others = found.not_used.join(" and ");
                let what = format!("{used} goes before {others}, which is set as well");
                Some(advice(what, "unset the one that is not meant"))
            }
            Ok(_) => None,
        };
        let newer = self.version.as_ref().zip(recipe.tested.as_ref());
        let newer = newer.filter(|_| self.is_newer() == Some(true));
        let newer = newer.map(|(version, tested)| {
            let what = format!("{version} is newer than {tested}, the newest one that was tested");
            let hint = "compare one trial's tokens and tools with what the agent shows, or install the tested version";
            advice(what, hint)
        });
        unreached.into_iter().chain(signed).chain(newer).collect()
    }
}

/// A version as numbers, which order it: 0.9 is older than 0.10.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).take(3).collect()
}

fn table(findings: &[Finding]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["Agent", "Version", "Tested", "Key", "Through the proxy"]);
    for finding in findings {
        table.add_row(finding.cells());
    }
    table
}
