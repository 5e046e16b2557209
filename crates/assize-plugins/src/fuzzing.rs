//! Bodies that property tests and fuzz targets share: every text that a plugin writes is handled.

use crate::protocol::{LogParams, ProgressParams};
use crate::wire::{self, Incoming};
use assize_contracts::{ProfileRow, PromptResult, ScorerResult, SessionTrace};

/// Reads every line as a message of a plugin.
pub fn plugin_messages(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        match wire::look_at(line) {
            Incoming::Answer(_) | Incoming::StrayAnswer => {
                let _ = wire::result::<SessionTrace>(line);
                let _ = wire::result::<PromptResult>(line);
                let _ = wire::result::<ScorerResult>(line);
                let _ = wire::result::<ProfileRow>(line);
            }
            Incoming::Request { id, .. } => {
                let answer = wire::answer(&id, Ok(serde_json::Value::Null));
                assert!(answer.is_ok_and(|answer| answer.ends_with(b"\n")));
            }
            Incoming::Notification { .. } => {
                let _ = wire::params::<LogParams>(line);
                let _ = wire::params::<ProgressParams>(line);
            }
            Incoming::Text | Incoming::Broken(_) => {}
        }
    }
}
