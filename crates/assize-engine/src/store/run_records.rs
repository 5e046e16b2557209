//! Run records of a stored run by id, read one at a time.

use super::RunFile;
use super::error::{StoreError, io};
use super::reader::Lines;
use assize_contracts::RunRecord;
use foldhash::fast::FixedState;
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Knows where each record lies, and holds none.
pub(crate) struct RunRecords {
    path: PathBuf,
    file: Option<Mutex<File>>,
    /// By a hash of the id.
    places: HashMap<u64, Place>,
}

#[derive(Clone, Copy)]
struct Place {
    offset: u64,
    length: usize,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

impl RunRecords {
    /// A run without tasks has none.
    pub(crate) fn open(run: &Path) -> Result<Self, StoreError> {
        let path = RunFile::RunRecords.within(run);
        let mut places = HashMap::new();
        let mut lines = Lines::open(&path)?;
        let mut offset = 0;
        while let Some(line) = lines.next()? {
            let length = line.len();
            if let Ok(Id { id }) = serde_json::from_slice(line) {
                places.insert(hash(&id), Place { offset, length });
            }
            offset += length as u64;
        }
        let file = match places.is_empty() {
            true => None,
            false => Some(Mutex::new(File::open(&path).map_err(io("read", &path))?)),
        };
        Ok(Self { path, file, places })
    }

    /// The record of that id. Absent when there is none that can be read.
    pub(crate) fn find(&self, id: &str) -> Result<Option<RunRecord>, StoreError> {
        let (Some(place), Some(file)) = (self.places.get(&hash(id)), &self.file) else {
            return Ok(None);
        };
        let mut line = vec![0; place.length];
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(place.offset))
            .and_then(|_| file.read_exact(&mut line))
            .map_err(io("read", &self.path))?;
        drop(file);
        let record: Option<RunRecord> = serde_json::from_slice(&line).ok();
        Ok(record.filter(|record| record.id == id))
    }
}

fn hash(id: &str) -> u64 {
    FixedState::default().hash_one(id)
}
