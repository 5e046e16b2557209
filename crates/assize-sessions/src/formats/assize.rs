//! Assize's own traces: one JSON document each, as `assize show` and `assize export` write them and providers hand them over.

use super::document::LARGEST_DOCUMENT;
use super::{Head, LogFormat, has_ending};
use crate::draft::{Detail, Draft};
use crate::log::{LogFile, ReadError};
use assize_contracts::SessionTrace;
use std::path::Path;

pub(crate) struct OwnTrace;

impl LogFormat for OwnTrace {
    fn agent(&self) -> &'static str {
        "assize"
    }

    fn is_log_name(&self, path: &Path) -> bool {
        has_ending(path, "json")
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
