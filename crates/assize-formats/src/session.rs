//! A session with everything that exporters need and its trace does not hold.

use assize_contracts::{ProfileRow, SessionTrace, Timestamp, Usd};

/// A session to export, or one that was imported.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Session {
    /// Its events and model calls.
    pub trace: SessionTrace,
    /// The agent's name, such as `claude-code`. Empty where it is unknown.
    pub agent_name: String,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// The model that the agent was started with.
    pub model: Option<String>,
    /// The user's messages in order.
    pub user_messages: Vec<UserMessage>,
    /// The trial that the session belongs to. Absent for sessions from elsewhere.
    pub trial: Option<Trial>,
}

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UserMessage {
    pub text: String,
    /// Time of sending.
    pub at: Option<Timestamp>,
}

/// The trial of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The stored record.
    pub row: ProfileRow,
    /// Name of the suite.
    pub suite: String,
    /// The scenario's description.
    pub description: String,
}

impl Session {
    /// The session's name for people: the scenario where there is one, or else the session's id.
    pub fn name(&self) -> String {
        match &self.trial {
            Some(trial) => trial.row.scenario_id.clone(),
            None => format!("session {}", self.trace.session_id),
        }
    }

    /// The cost of the whole session, where its trial knows one.
    pub fn cost(&self) -> Option<Usd> {
        self.trial.as_ref()?.row.cost.total_usd
    }

    /// The agent's name, or a word for an unknown one.
    pub fn agent(&self) -> &str {
        match self.agent_name.as_str() {
            "" => "agent",
            name => name,
        }
    }
}
