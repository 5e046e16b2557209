//! The tools of the model: a shell that starts in the workspace, files that lie in it, and the tools of MCP servers.

use super::ChatSettings;
use super::servers::Servers;
use crate::recipe::named_by;
use crate::wall::{Wall, session_directory};
use assize_contracts::{CreateSessionParams, PermissionConfig, ProviderError};
use assize_llm::ToolSpec;
use assize_process::workspace::Scratch;
use assize_process::{Bound, Command};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// More of a file or of a command's output is cut.
pub(super) const LARGEST_TEXT: u64 = 64 << 10;

const MOST_ENTRIES: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Tool {
    Shell,
    ReadFile,
    WriteFile,
    ListFiles,
}

impl Tool {
    pub(super) fn all() -> Vec<Self> {
        vec![
            Self::Shell,
            Self::ReadFile,
            Self::WriteFile,
            Self::ListFiles,
        ]
    }

    fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
            Self::ListFiles => "list_files",
        }
    }

    fn spec(self) -> ToolSpec {
        let text = |description: &str| json!({"type": "string", "description": description});
        let path = text("Relative to the workspace.");
        let (description, properties, required) = match self {
            Self::Shell => (
                "Runs a shell command in the workspace and returns its output.",
                json!({"command": text("The command line.")}),
                json!(["command"]),
            ),
            Self::ReadFile => ("Reads a text file.", json!({"path": path}), json!(["path"])),
            Self::WriteFile => (
                "Writes a text file, with the directories it needs.",
                json!({"path": path, "content": text("The whole file.")}),
                json!(["path", "content"]),
            ),
            Self::ListFiles => ("Lists a directory.", json!({"path": path}), json!(["path"])),
        };
        ToolSpec {
            name: self.name().to_owned(),
            description: description.to_owned(),
            parameters: json!({
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            }),
        }
    }
}

/// The tools of one session.
pub(super) struct Workshop {
    tools: Vec<Tool>,
    servers: Servers,
    permissions: PermissionConfig,
    place: Place,
    shell_timeout: Duration,
}

/// The directory, environment and sandbox in which programs of the session are run.
struct Place {
    /// Without symbolic links.
    workspace: PathBuf,
    /// Without the key.
    environment: Vec<(String, String)>,
    pass_env: Vec<String>,
    wall: Wall,
    /// For temporary files of guarded programs.
    scratch: Option<Scratch>,
    /// Nothing in it may be read: the session has no workspace and starts in the suite's directory.
    is_hidden: bool,
}

pub(super) struct ToolOutput {
    pub(super) text: String,
    pub(super) error: Option<String>,
}

impl ToolOutput {
    pub(super) fn failed(error: impl Into<String>) -> Self {
        Self {
            text: String::new(),
            error: Some(error.into()),
        }
    }
}

impl Workshop {
    pub(super) async fn open(
        settings: &ChatSettings,
        params: &CreateSessionParams,
        suite: &Path,
    ) -> Result<Self, ProviderError> {
        let servers = settings.mcp_servers.for_session(&params.workdir, suite);
        let place = Place::new(settings, params, &named_by(&servers))
            .map_err(|error| ProviderError::service(format!("no workspace: {error}")))?;
        let patience = Duration::from_millis(settings.mcp_timeout_ms);
        Ok(Self {
            tools: settings.tools.clone(),
            servers: Servers::open(servers, |program| place.command(program), patience).await?,
            permissions: params.permissions.clone(),
            place,
            shell_timeout: Duration::from_millis(settings.shell_timeout_ms),
        })
    }

    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        let own = self.tools.iter().map(|tool| tool.spec());
        own.chain(self.servers.specs()).collect()
    }

    pub(super) async fn close(self) {
        self.servers.close().await;
    }

    pub(super) async fn run(&self, name: &str, arguments: &Value) -> ToolOutput {
        let own = self.tools.iter().find(|tool| tool.name() == name);
        if own.is_none() && !self.servers.has(name) {
            return ToolOutput::failed(format!("there is no tool `{name}`"));
        }
        let listed = &self.permissions.allowed_tools;
        if !self.permissions.auto_approve && !listed.iter().any(|allowed| allowed == name) {
            return ToolOutput::failed("denied: it was not allowed by the suite's permissions");
        }
        match own {
            Some(tool) => self.run_own(*tool, arguments).await,
            None => self.servers.call(name, arguments).await,
        }
    }

    async fn run_own(&self, tool: Tool, arguments: &Value) -> ToolOutput {
        let text = |key: &str| arguments[key].as_str().map(str::to_owned);
        let missing = |key: &str| ToolOutput::failed(format!("`{key}` is missing"));
        let done = match tool {
            Tool::Shell => match text("command") {
                Some(command) => return self.shell(&command).await,
                None => return missing("command"),
            },
            Tool::ReadFile => self.path(text("path")).and_then(|path| read(&path)),
            Tool::ListFiles => self.path(text("path")).and_then(|path| list(&path)),
            Tool::WriteFile => match text("content") {
                Some(content) => self
                    .path(text("path"))
                    .and_then(|path| write(&path, &content)),
                None => return missing("content"),
            },
        };
        match done {
            Ok(text) => ToolOutput { text, error: None },
            Err(error) => ToolOutput::failed(error.to_string()),
        }
    }

    async fn shell(&self, command: &str) -> ToolOutput {
        let bound = Bound {
            head: LARGEST_TEXT,
            tail: LARGEST_TEXT,
        };
        let done = self
            .place
            .command("sh")
            .arg("-c")
            .arg(command)
            .bound(bound)
            .timeout(self.shell_timeout)
            .run_to_end()
            .await;
        match done {
            Ok(output) => ToolOutput {
                text: format!("{}{}", output.stdout.text(), output.stderr.text()),
                error: (!output.exit.is_success())
                    .then(|| output.exit.in_words(self.shell_timeout)),
            },
            Err(error) => ToolOutput::failed(error.explained()),
        }
    }

    fn path(&self, given: Option<String>) -> io::Result<PathBuf> {
        let given = given.ok_or_else(|| io::Error::other("`path` is missing"))?;
        self.place.path(&given)
    }
}

impl Place {
    /// `named` are texts by which files of the suite may be named.
    fn new(
        settings: &ChatSettings,
        params: &CreateSessionParams,
        named: &[String],
    ) -> io::Result<Self> {
        let mut wall = Wall::of(params);
        let scratch = match wall.is_guard() {
            true => Some(session_directory()?),
            false => None,
        };
        wall.own
            .extend(scratch.iter().map(|scratch| scratch.path().to_owned()));
        wall.name_files(named.iter().map(String::as_str), &params.workdir);
        let key = settings
            .key_env
            .as_deref()
            .unwrap_or(settings.api.key_variable());
        let environment = params.environment.iter().filter(|(name, _)| *name != key);
        Ok(Self {
            workspace: params.workdir.canonicalize()?,
            environment: environment
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            pass_env: settings.pass_env.clone(),
            is_hidden: wall.is_guard() && params.sandbox.writable.is_empty(),
            wall,
            scratch,
        })
    }

    /// A program that starts in the workspace, without arguments yet.
    fn command(&self, program: &str) -> Command {
        let command = Command::new(program, &self.workspace).pass_usual_env();
        let command = match &self.scratch {
            Some(scratch) => command.env("TMPDIR", scratch.path()),
            None => command,
        };
        let passed = self.pass_env.iter();
        let command = passed.fold(command, |command, name| command.pass_env(name));
        let own = self.environment.iter();
        let command = own.fold(command, |command, (name, value)| command.env(name, value));
        self.wall.around(command)
    }

    /// A path in the workspace, wherever its links lead.
    fn path(&self, given: &str) -> io::Result<PathBuf> {
        let outside = || io::Error::other("the path leads out of the workspace");
        if self.is_hidden {
            return Err(io::Error::other("this scenario has no workspace"));
        }
        let path = self.workspace.join(given);
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(outside());
        }
        let mut existing = path.as_path();
        while !existing.exists() && !existing.is_symlink() {
            existing = existing.parent().ok_or_else(outside)?;
        }
        match existing.canonicalize()?.starts_with(&self.workspace) {
            true => Ok(path),
            false => Err(outside()),
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(LARGEST_TEXT)
        .read_to_end(&mut bytes)?;
    let cut = path.metadata()?.len().saturating_sub(bytes.len() as u64);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match cut {
        0 => text,
        cut => format!("{text}\n[{cut} bytes cut]"),
    })
}

fn write(path: &Path, content: &str) -> io::Result<String> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, content)?;
    Ok(format!("{} bytes written", content.len()))
}

fn list(path: &Path) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)?.take(MOST_ENTRIES) {
        let entry = entry?;
        let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
        names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
    }
    names.sort();
    Ok(names.join("\n"))
}
