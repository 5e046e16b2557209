//! Logs of agents as sessions to be explained.

use super::panel::{Explained, Panel};
use super::{ExplainedSession, SessionAnalysisBundle};
use crate::cli::AnalyzeArguments;
use crate::commands::imported::{add_cost_of_waste, loaded};
use crate::commands::sessions;
use crate::terminal::{say, warn};
use anyhow::Result;
use assize_contracts::{BaseScenario, SCHEMA_VERSION, with_causes};
use assize_sessions::{Index, Library, ReadError, find_below};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The logs below a path.
pub(super) struct Logs {
    pub(super) sessions: Vec<LoggedSession>,
    /// Files that were read as logs.
    pub(super) paths: HashSet<PathBuf>,
}

/// A session in logs. It is loaded when it is explained.
pub(super) struct LoggedSession {
    library: Arc<Library>,
    number: usize,
    redact: bool,
}

pub(super) fn find(path: &Path, arguments: &AnalyzeArguments) -> Result<Logs> {
    let mut candidates = find_below(path);
    // Assize's own traces have a way of their own, which keeps them as they are.
    let is_directory = path.is_dir();
    candidates.retain(|file| match assize_sessions::agent_of(file) {
        Some(agent) => !matches!(agent, "assize" | "atif"),
        None => {
            // Of a file that was named, the error tells.
            let unknown = ReadError::Unknown { path: file.clone() };
            let fault = sessions::fault(&unknown, false).filter(|_| is_directory);
            fault.iter().for_each(|fault| warn(fault));
            false
        }
    });
    let paths: HashSet<PathBuf> = candidates.iter().cloned().collect();
    let library = Arc::new(sessions::read(candidates, &mut Index::none()));
    for error in library.unreadable() {
        match error {
            ReadError::Unknown { .. } => {}
            error => warn(&with_causes(error)),
        }
    }
    let flaws = assize_sessions::Uses::of(&library)
        .flaws()
        .map(|(_, flaws)| flaws.unusable_lines())
        .sum::<u64>();
    if flaws > 0 {
        say(format!(
            "{flaws} lines could not be used, or not wholly; `assize sessions` shows more"
        ));
    }
    let sessions = (0..library.len()).map(|number| LoggedSession {
        library: Arc::clone(&library),
        number,
        redact: arguments.redact,
    });
    Ok(Logs {
        sessions: sessions.collect(),
        paths,
    })
}

impl LoggedSession {
    pub(super) fn name(&self) -> String {
        self.library.name_of(self.number)
    }

    pub(super) fn explain(
        &self,
        panel: &Panel,
        timeline: bool,
    ) -> Result<Option<ExplainedSession>> {
        let Some(session) = loaded(&self.library, self.number, self.redact)? else {
            return Ok(None);
        };
        let scenario = BaseScenario::new("", "");
        let Explained {
            mut results,
            errors,
        } = panel.explain(&session.trace, &scenario, "");
        add_cost_of_waste(&mut results, &session.trace);
        let bundle = SessionAnalysisBundle {
            schema_version: Some(SCHEMA_VERSION),
            session_id: session.trace.session_id.clone(),
            scenario_id: session.origin.cwd.clone().unwrap_or_default(),
            mode: session.origin.agent.clone(),
            model: session.model().unwrap_or_default().to_owned(),
            iteration: None,
            results,
        };
        Ok(Some(ExplainedSession {
            bundle,
            errors,
            trace: timeline.then_some(session.trace),
        }))
    }
}
