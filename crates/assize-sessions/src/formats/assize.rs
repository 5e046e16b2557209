//! Assize's own traces: one JSON document each, as `assize show` and `assize export` write them and providers hand them over.

use super::document::LARGEST_DOCUMENT;
use super::{Head, LogFormat, Machine};
use crate::draft::{Detail, Draft};
use crate::log::{LogFile, ReadError};
use assize_contracts::SessionTrace;
use std::path::{Path, PathBuf};

pub(crate) struct OwnTrace;

impl LogFormat for OwnTrace {
    fn agent(&self) -> &'static str {
        "assize"
    }

    /// They lie where people put them.
    fn places(&self, _: &Machine) -> Vec<PathBuf> {
        Vec::new()
    }

    fn is_log_name(&self, path: &Path) -> bool {
        path.extension()
            .is_some_and(|extension| extension == "json")
    }

    fn recognizes(&self, head: &Head<'_>) -> bool {
        head.begins_with_object_of(&["sessionId", "events"])
    }

    fn read(&self, log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError> {
        let text = log.document(LARGEST_DOCUMENT)?;
        let trace: SessionTrace =
            serde_json::from_slice(&text).map_err(|error| ReadError::Content {
                path: log.path().to_owned(),
                message: format!("not a session trace: {error}"),
            })?;
        Ok(vec![Draft::of_trace(self.agent(), trace, detail)])
    }
}
