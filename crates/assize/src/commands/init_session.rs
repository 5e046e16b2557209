//! `assize init --from-session`: a task from a session that a person had with an agent. A first draft: what was asked, where it
//! began, and checks from what the session ran and changed. A person makes a task of it.

mod work;

use super::init::{SCHEMAS, Written};
use super::init_agent;
use super::project_tests::tests_of;
use super::repository::Repository;
use super::session_files::{self, Origin, ReadSession};
use super::yaml_text::{block, quoted};
use crate::cli::InitArguments;
use crate::commands::{Obstructed, UsageError};
use crate::terminal::{one_line, say, warn};
use anyhow::{Context, Result};
use assize_agents::Recipe;
use assize_contracts::Timestamp;
use assize_formats::Session;
use assize_secrets::{Redactor, Secrets};
use serde_json::json;
use std::path::Path;
use work::Work;

/// The agent of suites for sessions of an unknown one.
const USUAL_AGENT: &str = "claude-code";

/// The first thing to do with the suite.
const FIRST_STEP: &str =
    "read the task in scenarios/ as an agent will, and say in its checks what a good result is";

/// Prompts after the first that are shown for a person to take or leave.
const MOST_TURNS: usize = 8;

/// The files of the suite.
pub(super) fn files(arguments: &InitArguments, path: &Path) -> Result<Vec<Written>> {
    if !path.is_file() {
        return Err(UsageError {
            message: format!("`{}` is no file", path.display()),
            hint: Some("name one session: a log of an agent, a trace, or ATIF".to_owned()),
        }
        .into());
    }
    let read = session_files::read(path).map_err(|error| explain(error, path))?;
    read.notes.iter().for_each(|note| warn(note));
    let task = Task::of(&read, arguments)?;
    let agents = agents(arguments, &read.session);
    init_agent::check_agents(&agents)?;
    let repository = task.start.as_ref().map(|start| &start.repository);
    let tests = repository.and_then(|repository| tests_of(&repository.top));
    let name = repository.map_or("sessions", |repository| &repository.name);
    Ok(vec![
        Written::text(
            "assize.yaml",
            init_agent::suite(name, &agents, tests.as_ref(), FIRST_STEP),
        ),
        Written::text(
            format!("scenarios/{}.yaml", task.id),
            task.scenario(&read.session, tests.map(|tests| tests.run)),
        ),
    ])
}

fn explain(error: anyhow::Error, path: &Path) -> anyhow::Error {
    let hint = match cfg!(feature = "sessions") {
        true => "logs of agents, traces of Assize and ATIF are read",
        false => {
            "this build reads traces of Assize and ATIF; logs of agents need the feature `sessions`: `cargo install assize --features sessions`"
        }
    };
    Obstructed {
        message: format!("`{}` is no session: {error:#}", path.display()),
        hint: hint.to_owned(),
    }
    .into()
}

/// The agents that were asked for, or the one of the session.
fn agents(arguments: &InitArguments, session: &Session) -> Vec<String> {
    if !arguments.agent.is_empty() {
        return arguments.agent.clone();
    }
    let is_known = |recipe: &Recipe| recipe.name == session.agent_name;
    match Recipe::built_in().iter().any(is_known) {
        true => vec![session.agent_name.clone()],
        false => vec![USUAL_AGENT.to_owned()],
    }
}

/// A draft of a task.
struct Task {
    id: String,
    prompt: String,
    /// Later messages of the user.
    turns: Vec<String>,
    /// Absent where git does not know it.
    start: Option<Start>,
    work: Work,
}

/// The commit that the session began from.
struct Start {
    repository: Repository,
    commit: String,
    /// The source of the commit, in words.
    found: &'static str,
    /// The directory of the session inside of the repository; empty for its top.
    below: String,
}

impl Task {
    fn of(read: &ReadSession, arguments: &InitArguments) -> Result<Self> {
        let redactor = Redactor::new(&Secrets::default());
        let clean = |text: &str| {
            let text = session_files::without_secrets(text, &redactor);
            text.trim().to_owned()
        };
        let mut messages = read
            .session
            .user_messages
            .iter()
            .map(|message| clean(&message.text));
        let prompt = messages.find(|text| !text.is_empty()).context(
            "the session holds no message of a user, so that there is nothing to ask an agent",
        )?;
        let start = Start::of(&read.origin, &read.session, arguments);
        match &start {
            Some(start) => say(format!(
                "the session began from commit {} ({})",
                start.commit.get(..10).unwrap_or(&start.commit),
                start.found
            )),
            None => warn(
                "git does not show which commit the session began from: write the workspace of the task yourself",
            ),
        }
        let top = start.as_ref().map(|start| start.repository.top.clone());
        Ok(Self {
            id: id_of(&prompt),
            turns: messages.filter(|text| !text.is_empty()).collect(),
            work: Work::of(&read.session.trace, top.as_deref(), &redactor),
            prompt,
            start,
        })
    }

    fn scenario(&self, session: &Session, project_tests: Option<String>) -> String {
        let origin = json!({
            "agent": session.agent(), "agentVersion": session.agent_version, "model": session.model,
            "sessionId": session.trace.session_id, "startedAt": first_time(session),
            "tokens": session.trace.summary.total_tokens.total, "toolCalls": session.trace.summary.total_tool_calls,
        });
        format!(
            "# yaml-language-server: $schema=../{SCHEMAS}/scenario.schema.json\n\
             # A draft from a session with {}. Before you run it:\n\
             #   - does the prompt say everything that the agent learned from you on the way?\n\
             #   - is the workspace the state in which you asked? Changes that were not committed are not in it.\n\
             #   - do the checks tell a good result from a bad one? They are made from what the session ran and changed.\n\
             id: {}\n\
             prompt: {}\n{}\
             timeout_ms: 900000\n\
             tags: [from-session]\n\
             {}\
             checks:\n{}\
             extensions:\n  from_session: {origin}\n",
            one_line(session.agent(), 40),
            self.id,
            block(
                &self
                    .prompt
                    .replace("{workspace}", "{ workspace }")
                    .replace("{iteration}", "{ iteration }"),
                "  "
            ),
            self.later_turns(),
            self.workspace(),
            self.checks(project_tests),
        )
    }

    /// Later messages often answer questions that another agent will not ask, so that they are only shown.
    fn later_turns(&self) -> String {
        if self.turns.is_empty() {
            return String::new();
        }
        let shown = self.turns.iter().take(MOST_TURNS);
        let lines = shown.map(|text| format!("#   - {}\n", quoted(&one_line(text, 300))));
        let more = match self.turns.len().saturating_sub(MOST_TURNS) {
            0 => String::new(),
            more => format!("#   … and {more} more\n"),
        };
        format!(
            "# The user went on; take what a new session would need, too:\n# turns:\n{}{more}",
            lines.collect::<String>()
        )
    }

    fn workspace(&self) -> String {
        let Some(start) = &self.start else {
            return "# The commit is unknown. Write `git: { repo: PATH, ref: COMMIT }` or `from: DIRECTORY`; this is an empty directory.\n\
                    workspace: {}\n"
                .to_owned();
        };
        let below = match start.below.as_str() {
            "" => String::new(),
            below => format!("  # The session worked in {below}/ of it.\n"),
        };
        let install = tests_of(&start.repository.top).and_then(|tests| tests.install);
        let install = install.map(|line| format!("  setup_once: [{}]\n", quoted(&line)));
        format!(
            "workspace:\n  git: {{ repo: {}, ref: {} }}          # {}\n{below}{}",
            quoted(&start.repository.from_suite),
            quoted(&start.commit),
            start.found,
            install.unwrap_or_default(),
        )
    }

    fn checks(&self, project_tests: Option<String>) -> String {
        let mut checks = String::new();
        let runs = match self.work.tests.is_empty() {
            true => project_tests.into_iter().collect(),
            false => self.work.tests.clone(),
        };
        for (number, run) in runs.iter().enumerate() {
            let id = match number {
                0 => "tests-pass".to_owned(),
                number => format!("tests-pass-{}", number + 1),
            };
            checks.push_str(&format!(
                "  - command: {{ run: {}, timeout_ms: 600000 }}\n    id: {id}\n",
                quoted(run)
            ));
        }
        if !self.work.changed.is_empty() {
            let names: Vec<String> = self.work.changed.iter().map(|name| quoted(name)).collect();
            checks.push_str(&format!(
                "  - changed: {{ only: [{}] }}\n    id: only-what-the-session-changed\n    required: false\n",
                names.join(", ")
            ));
        }
        for name in &self.work.created {
            checks.push_str(&format!(
                "  - file: {{ path: {}, exists: true }}\n    required: false\n",
                quoted(name)
            ));
        }
        if checks.is_empty() {
            checks.push_str(
                "  # Nothing was found to check: write `command`, `file` or `output` checks, see docs/scenarios.md.\n  []\n",
            );
        }
        checks
    }
}

impl Start {
    /// The commit that the log names, or the newest one before the session of the branch it was on.
    fn of(origin: &Origin, session: &Session, arguments: &InitArguments) -> Option<Self> {
        let directory = origin.directory.as_deref().map(Path::new);
        let repository = match directory {
            Some(directory) => Repository::of(directory, &arguments.directory).ok()?,
            None => Repository::around_or_here(&arguments.directory).ok()?,
        };
        let named = origin.commit.as_deref().and_then(|commit| {
            let commit = format!("{commit}^{{commit}}");
            repository.git(&[
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                &commit,
            ])
        });
        let (commit, found) = match named {
            Some(commit) => (commit, "as the log says"),
            None => (
                before(&repository, origin, session)?,
                "the last commit before the session",
            ),
        };
        let below = directory.and_then(|directory| {
            directory
                .canonicalize()
                .ok()?
                .strip_prefix(&repository.top)
                .ok()
                .map(Path::to_owned)
        });
        Some(Self {
            below: below.map_or(String::new(), |below| below.to_string_lossy().into_owned()),
            repository,
            commit,
            found,
        })
    }
}

fn before(repository: &Repository, origin: &Origin, session: &Session) -> Option<String> {
    let limit = format!("--before={}", first_time(session)?);
    let of = |branch: &str| {
        let found = repository.git(&["rev-list", "-1", &limit, "--end-of-options", branch, "--"]);
        found.filter(|commit| !commit.is_empty())
    };
    let branch = origin.branch.as_deref().filter(|branch| !branch.is_empty());
    branch.and_then(of).or_else(|| of("HEAD"))
}

fn first_time(session: &Session) -> Option<&str> {
    let sent = session
        .user_messages
        .iter()
        .find_map(|message| message.at.as_ref());
    let happened = || {
        session
            .trace
            .events
            .iter()
            .find_map(|event| event.timestamp())
    };
    let time = sent
        .or_else(happened)
        .filter(|time| time.unix_ms().is_some());
    time.map(Timestamp::as_str)
}

/// A name from the first words of the prompt.
fn id_of(prompt: &str) -> String {
    let words = prompt
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let words: Vec<String> = words.take(6).map(str::to_lowercase).collect();
    let id = words.join("-");
    match id
        .get(..id.len().min(48))
        .unwrap_or_default()
        .trim_matches('-')
    {
        "" => "from-session".to_owned(),
        id => id.to_owned(),
    }
}
