//! `assize doctor`: which agents are here, whether they are the tested ones, and whether they can be reached through the
//! proxy. For the last, each is really started, with an LLM that refuses everything, so nothing is spent.

use crate::cli::DoctorArguments;
use crate::commands::UsageError;
use crate::exit::Exit;
use crate::suite::suggest;
use crate::terminal::{one_line, plain, print, say};
use anyhow::Result;
use assize_agents::capture::{Capture, CaptureSettings, CapturedProvider, Service};
use assize_agents::{CommandProvider, Recipe};
use assize_contracts::{
    CreateSessionParams, PermissionConfig, ProviderConfig, ProviderError, SessionProvider,
};
use assize_process::Command;
use comfy_table::{Table, presets};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// How long an agent may take to tell its version.
const VERSION_LIMIT: Duration = Duration::from_secs(30);

/// How long an agent may take to its first request.
const REACH_LIMIT: Duration = Duration::from_secs(90);

/// What is known of one agent.
struct Finding {
    recipe: &'static Recipe,
    program: Option<PathBuf>,
    version: Option<String>,
    /// The variable with a key that is set.
    key: Option<&'static str>,
    reached: Option<Result<(), String>>,
}

pub(crate) fn doctor(arguments: &DoctorArguments) -> Result<Exit> {
    let recipes = chosen(&arguments.agents)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut findings = Vec::new();
    for recipe in recipes {
        let finding = runtime.block_on(examine(recipe, !arguments.quick));
        if arguments.json {
            print(finding.json().to_string());
        }
        findings.push(finding);
    }
    if !arguments.json {
        print(table(&findings).to_string());
        findings.iter().flat_map(Finding::advice).for_each(say);
    }
    Ok(Exit::Done)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Recipe>> {
    let all = Recipe::built_in();
    let find = |name: &String| {
        let found = all.iter().find(|recipe| recipe.name == *name);
        found.ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(|recipe| recipe.name.as_str()).collect();
            let message = format!("no agent is called `{name}`");
            anyhow::Error::new(UsageError {
                message,
                hint: suggest(name, &known),
            })
        })
    };
    match names.is_empty() {
        true => Ok(all.iter().collect()),
        false => names.iter().map(find).collect(),
    }
}

async fn examine(recipe: &'static Recipe, try_it: bool) -> Finding {
    let program = in_path(recipe.program());
    let is_set = |name: &&String| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let mut finding = Finding {
        recipe,
        key: recipe.keys.iter().find(is_set).map(String::as_str),
        version: None,
        reached: None,
        program,
    };
    if let Some(program) = &finding.program {
        finding.version = version(program).await;
        if try_it {
            finding.reached = Some(reach(recipe).await);
        }
    }
    finding
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|directory| directory.join(program));
    places.find(|place| place.is_file())
}

/// The first word that looks like a version.
async fn version(program: &Path) -> Option<String> {
    let home = tempfile::tempdir().ok()?;
    let output = Command::new(program, home.path())
        .arg("--version")
        .pass_usual_env()
        .env("HOME", home.path())
        .timeout(VERSION_LIMIT)
        .run_to_end()
        .await
        .ok()?;
    let said = format!("{} {}", output.stdout.text(), output.stderr.text());
    let is_version = |word: &&str| {
        let word = word.trim_start_matches('v');
        word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')
    };
    let word = said.split_whitespace().find(is_version)?;
    let word = word.trim_start_matches('v').trim_end_matches('.');
    Some(one_line(word, 40))
}

/// Starts the agent by its recipe behind the proxy, and waits for its first request to a model.
async fn reach(recipe: &'static Recipe) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let (heard, mut hears) = mpsc::unbounded_channel();
    let server = tokio::spawn(refuse_everything(listener, heard));
    let llm = format!("http://{address}");
    let prompting = prompt(recipe, &llm);
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

async fn prompt(recipe: &Recipe, llm: &str) -> Result<(), ProviderError> {
    let settings = CaptureSettings {
        upstreams: BTreeMap::from([
            (Service::Anthropic, llm.to_owned()),
            (Service::OpenAi, format!("{llm}/v1")),
            (Service::Gemini, llm.to_owned()),
        ]),
        ..CaptureSettings::default()
    };
    let inner = Arc::new(CommandProvider::with_recipe(recipe.clone()));
    let provider = CapturedProvider::new(inner, Capture::new(settings));
    let workspace =
        tempfile::tempdir().map_err(|error| ProviderError::service(error.to_string()))?;
    let params = CreateSessionParams {
        model: provider
            .default_model(&Default::default())
            .unwrap_or_default(),
        workdir: workspace.path().to_owned(),
        // An agent without a key does not even ask.
        environment: Arc::new(
            recipe
                .keys
                .iter()
                .map(|name| (name.clone(), "doctor".to_owned()))
                .collect(),
        ),
        permissions: PermissionConfig {
            auto_approve: true,
            ..PermissionConfig::default()
        },
        ..CreateSessionParams::default()
    };
    provider
        .init(&ProviderConfig {
            port: 0,
            model: params.model.clone(),
            mode: "doctor".to_owned(),
            permissions: params.permissions.clone(),
            environment: BTreeMap::new(),
            workdir: workspace.path().to_owned(),
            provider_overrides: Default::default(),
        })
        .await?;
    let session = provider.create_session(&params).await?;
    provider
        .prompt(&session, "Say hello.", REACH_LIMIT)
        .await
        .map(drop)
}

/// An LLM that knows nobody. It tells of every request to a model.
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
        // Nobody may be listening any more.
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
        json!({
            "agent": self.recipe.name,
            "program": self.recipe.program(),
            "path": self.program,
            "version": self.version,
            "testedVersion": self.recipe.tested,
            "install": self.recipe.install,
            "keys": self.recipe.keys,
            "keySet": self.key,
            "reached": self.reached.as_ref().map(Result::is_ok),
            "problem": self.reached.as_ref().and_then(|reached| reached.as_ref().err()),
        })
    }

    fn cells(&self) -> [String; 5] {
        let version = match (&self.program, &self.version) {
            (None, _) => "not installed".to_owned(),
            (Some(_), None) => "installed".to_owned(),
            (Some(_), Some(version)) => version.clone(),
        };
        let reached = match &self.reached {
            None => String::new(),
            Some(Ok(())) => "reached".to_owned(),
            Some(Err(_)) => "not reached".to_owned(),
        };
        [
            self.recipe.name.clone(),
            version,
            self.recipe.tested.clone().unwrap_or_default(),
            self.key
                .map_or("none set".to_owned(), |name| format!("{name} is set")),
            reached,
        ]
    }

    /// What to do about what is missing.
    fn advice(&self) -> Vec<String> {
        let name = &self.recipe.name;
        if self.program.is_none() {
            let install = self
                .recipe
                .install
                .as_deref()
                .unwrap_or("see its documentation");
            return vec![format!(
                "{name}: `{}` is in no directory of PATH\n  hint: {install}",
                self.recipe.program()
            )];
        }
        let mut advice = Vec::new();
        if let Some(Err(problem)) = &self.reached {
            advice.push(format!("{name}: {}", one_line(&plain(problem), 300)));
        }
        if self.key.is_none() {
            advice.push(format!(
                "{name}: no key\n  hint: set {}",
                self.recipe.keys.join(" or ")
            ));
        }
        advice
    }
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
