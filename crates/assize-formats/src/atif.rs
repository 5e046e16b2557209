//! ATIF, the trajectory format of Harbor: written as v1.7, read from v1.0 on.
//!
//! The format forbids keys of one's own, so everything that it has no place for is under `extra.assize`. Reading a
//! document that Assize wrote gives the same trace back.

mod document;
mod read;
mod restore;
mod write;

pub use read::{Imported, read};
pub use write::write;

/// The version that is written.
pub const VERSION: &str = "ATIF-v1.7";

/// The beginning of every version.
const FAMILY: &str = "ATIF-v";

/// The newest version that is known: 1.8 adds audio, which traces have no place for.
const NEWEST_MINOR: u32 = 8;

/// A document that is no trajectory.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AtifError {
    /// Not JSON, or not an object with steps.
    #[error("it is no ATIF trajectory: {0}")]
    Malformed(String),
    /// An unknown version.
    #[error("found the version `{found}`, expected `ATIF-v1.0` to `{VERSION}`")]
    Version {
        /// As in the document.
        found: String,
    },
}

/// True for the beginning of a document that says it is ATIF.
pub fn is_atif(document: &serde_json::Value) -> bool {
    let version = document.get("schema_version");
    version
        .and_then(serde_json::Value::as_str)
        .is_some_and(|version| version.starts_with(FAMILY))
}
