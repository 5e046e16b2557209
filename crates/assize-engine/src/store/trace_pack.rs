//! Traces: one zstd frame each in one file, and an index of where each lies. `zstd -dc traces.zst` shows them all.

use super::RunFile;
use super::error::{StoreError, io};
use super::reader::Lines;
use assize_contracts::CellKey;
use assize_contracts::SessionTrace;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

pub(crate) const PACK: &str = "traces.zst";
pub(crate) const INDEX: &str = "index.jsonl";

/// No agent produces more; a frame that claims to is damaged or hostile.
const LARGEST_TRACE: u64 = 1 << 30;

/// The place of a trace in the pack.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IndexEntry {
    #[serde(flatten)]
    pub(crate) key: CellKey,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Opens single traces of a run.
pub struct TraceReader {
    path: PathBuf,
    places: HashMap<CellKey, (u64, u64)>,
}

impl TraceReader {
    pub(crate) fn open(run: &Path) -> Result<Self, StoreError> {
        let directory = RunFile::Traces.within(run);
        let mut lines = Lines::open(&directory.join(INDEX))?;
        let mut places = HashMap::new();
        while let Some(entry) = lines.parse::<IndexEntry>("trace index entry")? {
            places.insert(entry.key, (entry.offset, entry.length));
        }
        Ok(Self {
            path: directory.join(PACK),
            places,
        })
    }

    /// Knows one trace only.
    pub(crate) fn of_entry(run: &Path, entry: IndexEntry) -> Self {
        Self {
            path: RunFile::Traces.within(run).join(PACK),
            places: HashMap::from([(entry.key, (entry.offset, entry.length))]),
        }
    }

    /// True when no trace was stored.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// True if a trace of the trial was stored.
    pub fn has(&self, key: &CellKey) -> bool {
        self.places.contains_key(key)
    }

    /// The trace of one trial. Absent when none was stored.
    pub fn trace(&self, key: &CellKey) -> Result<Option<SessionTrace>, StoreError> {
        let Some(&(offset, length)) = self.places.get(key) else {
            return Ok(None);
        };
        let mut file = File::open(&self.path).map_err(io("read", &self.path))?;
        let size = file.metadata().map_err(io("read", &self.path))?.len();
        if offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(StoreError::Corrupt {
                path: self.path.clone(),
                line: 1,
                expected: "trace",
                reason: format!(
                    "the index says {length} bytes from {offset}, but the file has {size}"
                ),
            });
        }
        file.seek(SeekFrom::Start(offset))
            .map_err(io("read", &self.path))?;
        let mut text = Vec::new();
        zstd::Decoder::new(file.take(length))
            .and_then(|decoder| decoder.take(LARGEST_TRACE).read_to_end(&mut text))
            .map_err(io("read", &self.path))?;
        let corrupt = |error: serde_json::Error| StoreError::Corrupt {
            path: self.path.clone(),
            line: 1,
            expected: "trace",
            reason: error.to_string(),
        };
        serde_json::from_slice(&text).map(Some).map_err(corrupt)
    }
}
