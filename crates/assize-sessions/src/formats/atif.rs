//! ATIF trajectories, as other tools and `assize export atif` write them. Reading them is `assize-formats`'.

use super::document::LARGEST_DOCUMENT;
use super::{Head, LogFormat, has_ending};
use crate::draft::{Detail, Draft};
use crate::log::{LogFile, ReadError};
use assize_formats::atif;
use serde_json::Value;
use std::path::Path;

pub(crate) struct Atif;

impl LogFormat for Atif {
    fn agent(&self) -> &'static str {
        "atif"
    }

    fn is_log_name(&self, path: &Path) -> bool {
        has_ending(path, "json")
    }

    fn recognizes(&self, head: &Head<'_>) -> bool {
        head.begins_with_object_of(&["schema_version", "steps"])
            && memchr::memmem::find(head.bytes, b"\"ATIF-v").is_some()
    }

    fn read(&self, log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError> {
        let content = |message: String| ReadError::Content {
            path: log.path().to_owned(),
            message,
        };
        let text = log.document(LARGEST_DOCUMENT)?;
        let document: Value =
            serde_json::from_slice(&text).map_err(|error| content(format!("not JSON: {error}")))?;
        let read = atif::read(document).map_err(|error| content(error.to_string()))?;
        Ok(vec![Draft::of_trace(
            self.agent(),
            read.session.trace,
            detail,
        )])
    }
}
