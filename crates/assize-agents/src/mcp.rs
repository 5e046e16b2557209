//! MCP servers as suites name them: one form for every provider. Starting and calling them is up to the provider.

use assize_contracts::ConfigError;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The suite's settings of MCP servers, by name.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct McpServers(BTreeMap<String, ServerSettings>);

/// One server: a program, or a URL. The form is that of the agents' own configuration files.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ServerSettings {
    #[serde(rename = "type")]
    transport: Option<Transport>,
    command: Option<CommandLine>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
}

/// Need not be said, since it follows from the other keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Transport {
    Stdio,
    #[serde(alias = "streamable-http")]
    Http,
}

/// A program, or a program with its first arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a program, or a list of a program and arguments"
)]
enum CommandLine {
    Program(String),
    WithArguments(Vec<String>),
}

/// A server as one session meets it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) reach: Reach,
}

/// The way to reach a server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Started for the session, spoken to on stdin and stdout.
    Program {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
    },
    /// Already there, spoken to by streamable HTTP.
    Url {
        url: String,
        headers: BTreeMap<String, String>,
    },
}

/// Names become parts of tools' names.
const LONGEST_NAME: usize = 32;

/// Stands between a server's name and a tool's.
pub(crate) const SEPARATOR: &str = "__";

impl McpServers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when one of them is reached by its URL.
    pub(crate) fn has_urls(&self) -> bool {
        self.0.values().any(|server| server.url.is_some())
    }

    /// Checks what the types cannot.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let place = |name: &str, key: Option<&str>, message: String| ConfigError {
            path: ["mcp_servers", name]
                .into_iter()
                .chain(key)
                .map(str::to_owned)
                .collect(),
            message,
            hint: None,
        };
        self.0.iter().try_for_each(|(name, server)| {
            check_name(name).map_err(|message| place(name, None, message))?;
            server
                .check()
                .map_err(|(key, message)| place(name, key, message))
        })
    }

    /// The servers with the session's own places put in.
    pub(crate) fn for_session(&self, workspace: &Path, suite: &Path) -> Vec<Server> {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (workspace, suite) = (absolute(workspace), absolute(suite));
        let place = |path: &Path| path.to_string_lossy().into_owned();
        let values = [
            ("{workspace}".to_owned(), place(&workspace)),
            ("{suite}".to_owned(), place(&suite)),
        ];
        let fill_in = |text: &String| crate::command::fill_in(text, &values);
        let each = |(name, server): (&String, &ServerSettings)| Server {
            name: name.clone(),
            reach: server.reach(&fill_in, &suite),
        };
        self.0.iter().map(each).collect()
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_good = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.len() <= LONGEST_NAME
        && name.chars().all(is_plain)
        && !name.contains(SEPARATOR)
        && !name.ends_with('_');
    is_good.then_some(()).ok_or_else(|| {
        format!(
            "found the name {name:?}, expected a letter and up to {} letters, digits, `-` or single `_`",
            LONGEST_NAME - 1
        )
    })
}

impl ServerSettings {
    /// Says which key is wrong, and why.
    fn check(&self) -> Result<(), (Option<&'static str>, String)> {
        let wrong = |key: &'static str, message: &str| Err((Some(key), message.to_owned()));
        let is_url = self.url.is_some();
        match (&self.command, &self.url) {
            (None, None) => {
                let message = "found neither `command` nor `url`, expected one of them";
                return Err((None, message.to_owned()));
            }
            (Some(_), Some(_)) => {
                return wrong(
                    "url",
                    "a server is reached by `command` or by `url`, not both",
                );
            }
            (Some(_), None) if self.argv().first().is_none_or(String::is_empty) => {
                return wrong("command", "found no program, expected one");
            }
            _ => {}
        }
        match self.transport {
            Some(Transport::Stdio) if is_url => return wrong("type", "a URL is not `stdio`"),
            Some(Transport::Http) if !is_url => return wrong("type", "a program is not `http`"),
            _ => {}
        }
        if is_url && !(self.args.is_empty() && self.env.is_empty()) {
            return wrong(
                "url",
                "`args` and `env` are for programs; a URL has `headers`",
            );
        }
        if !is_url && !self.headers.is_empty() {
            return wrong("headers", "`headers` are for URLs; a program has `env`");
        }
        let is_no_name = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        if let Some(name) = self.env.keys().find(is_no_name) {
            let message = format!("found {name:?}, expected the name of an environment variable");
            return wrong("env", &message);
        }
        if let Some(url) = &self.url {
            check_url(url).or_else(|message| wrong("url", &message))?;
        }
        // A value may be a secret, so it is not repeated.
        let is_header = |(name, value): (&String, &String)| {
            HeaderName::try_from(name).is_ok() && HeaderValue::try_from(value).is_ok()
        };
        match self.headers.iter().find(|header| !is_header(*header)) {
            Some((name, _)) => wrong("headers", &format!("{name:?} is no header with its value")),
            None => Ok(()),
        }
    }

    fn argv(&self) -> Vec<String> {
        let mut argv = match &self.command {
            Some(CommandLine::Program(program)) => vec![program.clone()],
            Some(CommandLine::WithArguments(argv)) => argv.clone(),
            None => Vec::new(),
        };
        argv.extend_from_slice(&self.args);
        argv
    }

    fn reach(&self, fill_in: &impl Fn(&String) -> String, suite: &Path) -> Reach {
        let filled = |map: &BTreeMap<String, String>| {
            let each = |(name, value): (&String, &String)| (name.clone(), fill_in(value));
            map.iter().map(each).collect()
        };
        if let Some(url) = &self.url {
            return Reach::Url {
                url: fill_in(url),
                headers: filled(&self.headers),
            };
        }
        let argv = self.argv();
        let mut argv = argv.iter().map(fill_in);
        let program = argv.next().unwrap_or_default();
        Reach::Program {
            command: match program.contains('/') {
                true => suite.join(program).to_string_lossy().into_owned(),
                false => program,
            },
            args: argv.collect(),
            env: filled(&self.env),
        }
    }
}

/// Without repeating the URL, which may hold a secret.
fn check_url(url: &str) -> Result<(), String> {
    let expected = "expected a URL such as `http://127.0.0.1:8000/mcp`";
    let url = reqwest::Url::parse(url).map_err(|error| format!("{error}, {expected}"))?;
    match url.scheme() {
        "http" | "https" => Ok(()),
        other => Err(format!("found the scheme `{other}`, {expected}")),
    }
}

/// The path of a program, for protocols that want the whole path; the name alone where it is not found.
pub(crate) fn found(program: &str) -> PathBuf {
    let places = assize_process::places_in_path(program).into_iter();
    let mut files = places.filter(|path| path.is_absolute() && path.is_file());
    files.next().unwrap_or_else(|| program.into())
}

impl fmt::Debug for ServerSettings {
    /// Without values that may be secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServerSettings")
            .field("command", &self.command)
            .field("env", &self.env.keys())
            .field("headers", &self.headers.keys())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn servers(settings: Value) -> McpServers {
        serde_json::from_value(settings).unwrap()
    }

    fn refused(settings: Value) -> ConfigError {
        servers(settings).check().unwrap_err()
    }

    #[test]
    fn what_cannot_work_is_named_before_a_run() {
        for (server, key) in [
            (json!({"command": ""}), "command"),
            (json!({"command": []}), "command"),
            (json!({"command": "a", "url": "http://x"}), "url"),
            (json!({"url": "nowhere"}), "url"),
            (json!({"url": "ftp://x"}), "url"),
            (json!({"url": "http://x", "args": ["a"]}), "url"),
            (json!({"url": "http://x", "type": "stdio"}), "type"),
            (json!({"command": "a", "type": "http"}), "type"),
            (json!({"command": "a", "headers": {"A": "b"}}), "headers"),
            (
                json!({"url": "http://x", "headers": {"A b": "c"}}),
                "headers",
            ),
            (json!({"command": "a", "env": {"A=B": "c"}}), "env"),
        ] {
            let error = refused(json!({ "docs": server }));
            assert_eq!(error.path, ["mcp_servers", "docs", key]);
        }
        assert_eq!(refused(json!({"docs": {}})).path, ["mcp_servers", "docs"]);
        for name in ["", "a__b", "a_", "1a", "ä", "a b", &"a".repeat(33)] {
            let error = refused(json!({ name: {"command": "a"} }));
            assert_eq!(error.path, ["mcp_servers", name]);
        }
    }

    #[test]
    fn a_session_has_its_own_places() {
        let settings = json!({
            "files": {"command": ["npx", "server"], "args": ["{workspace}"], "env": {"AT": "{suite}/x"}},
            "own": {"command": "./server.py"},
            "remote": {"type": "http", "url": "http://x/{workspace}", "headers": {"A": "b"}},
        });
        let servers = servers(settings).for_session(Path::new("/ws"), Path::new("/suite"));
        let program = |command: &str, args: &[&str], env: Value| Reach::Program {
            command: command.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            env: serde_json::from_value(env).unwrap(),
        };
        let expected = [
            program("npx", &["server", "/ws"], json!({"AT": "/suite/x"})),
            program("/suite/./server.py", &[], json!({})),
            Reach::Url {
                url: "http://x//ws".to_owned(),
                headers: serde_json::from_value(json!({"A": "b"})).unwrap(),
            },
        ];
        assert!(servers.into_iter().map(|server| server.reach).eq(expected));
    }

    #[test]
    fn secrets_are_in_no_message() {
        let settings = json!({
            "a": {"command": "x", "env": {"KEY": "hush"}},
            "b": {"url": "http://x", "headers": {"Authorization": "hush\n"}},
        });
        let shown = format!("{:?}", servers(settings.clone()));
        assert!(shown.contains("KEY") && !shown.contains("hush"), "{shown}");
        let said = refused(settings).message;
        assert!(
            said.contains("Authorization") && !said.contains("hush"),
            "{said}"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_either_refused_or_used(name in ".{0,40}", command in ".{0,20}", url in proptest::option::of(".{0,20}"), value in ".{0,8}") {
            let servers = servers(json!({ name: {"command": command, "url": url, "env": {value.clone(): value}} }));
            if servers.check().is_ok() {
                prop_assert_eq!(servers.for_session(Path::new("/ws"), Path::new("/suite")).len(), 1);
            }
        }
    }
}
