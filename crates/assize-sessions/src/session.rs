//! A session that was read: its trace, and what the log holds beside it.

use assize_contracts::SessionTrace;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One session of an agent, its sub-agents included.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Events and model calls. Sub-agents carry their `agentId`. Tokens are in `modelCalls`, each once.
    pub trace: SessionTrace,
    /// Agent, version, project and files.
    pub origin: Origin,
    /// Messages of the user to the main agent, in order.
    pub prompts: Vec<Prompt>,
    /// Agents that the main one started.
    pub subagents: Vec<SubagentNote>,
    /// Moments at which the history was replaced by a summary, as places in `trace.events`: the next event comes after it.
    pub compactions: Vec<usize>,
    /// Lines that could not be used, and figures that are doubtful.
    pub flaws: Flaws,
}

impl Session {
    /// The model of most calls. Absent where the log names none.
    pub fn model(&self) -> Option<&str> {
        let mut counts: std::collections::BTreeMap<&str, usize> = Default::default();
        for call in &self.trace.model_calls {
            if !call.model.is_empty() {
                *counts.entry(&call.model).or_default() += 1;
            }
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(model, _)| model)
    }
}

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    pub text: String,
    /// Milliseconds since 1970.
    pub at_ms: Option<i64>,
}

/// An agent that the main one started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentNote {
    /// `agentId` of its events and model calls.
    pub id: String,
    /// The kind that was asked for, such as `Explore`.
    pub kind: Option<String>,
    /// `callId` of the tool call that started it.
    pub started_by: Option<String>,
}

/// The source of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The agent: `claude-code`, `codex`, …
    pub agent: String,
    /// The agent's version, as the log has it last.
    pub agent_version: Option<String>,
    /// Version of the log's form, where the log has one.
    pub format_version: Option<String>,
    /// The directory that the session worked in.
    pub cwd: Option<String>,
    /// The branch it began on.
    pub git_branch: Option<String>,
    /// The commit it began from.
    pub git_commit: Option<String>,
    /// The session it was continued or forked from.
    pub continued_from: Option<String>,
    /// The files it was read from.
    #[serde(skip)]
    pub files: Vec<PathBuf>,
}

impl Origin {
    pub(crate) fn of(agent: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            ..Self::default()
        }
    }
}

/// Defects of a log. Everything else in it was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Flaws {
    /// Lines or records, all of them.
    pub lines: u64,
    /// Lines that are not JSON.
    pub broken_lines: u64,
    /// Lines with a value of another type than expected; such a value is unknown.
    pub wrong_types: u64,
    /// Lines that were too long to be read.
    pub too_long: u64,
    /// Last lines without an end that are not JSON: half written, by an agent that still works or was killed.
    pub unfinished_lines: u64,
    /// Model calls whose final count of output was probably never written.
    pub doubtful_calls: u64,
    /// Figures that contradicted each other and were limited: a part larger than its whole.
    pub contradictions: u64,
}

impl Flaws {
    /// Both together.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            broken_lines: self.broken_lines + other.broken_lines,
            wrong_types: self.wrong_types + other.wrong_types,
            too_long: self.too_long + other.too_long,
            unfinished_lines: self.unfinished_lines + other.unfinished_lines,
            doubtful_calls: self.doubtful_calls + other.doubtful_calls,
            contradictions: self.contradictions + other.contradictions,
        }
    }

    /// Lines of which something could not be used.
    pub fn unusable_lines(&self) -> u64 {
        self.broken_lines + self.wrong_types + self.too_long + self.unfinished_lines
    }
}
