//! Puts a run directory back into order after a crash: cuts half-written lines, drops records whose row never came.

use super::RunFile;
use super::error::{StoreError, io};
use super::files;
use super::reader::Lines;
use super::record_id::{CellSet, RecordIds};
use super::trace_pack::{self, IndexEntry};
use assize_contracts::CellKey;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Repairs the directory and returns the cells that are done.
pub(crate) fn repair(run: &Path, ids: RecordIds) -> Result<CellSet, StoreError> {
    for file in [
        RunFile::Rows,
        RunFile::Analysis,
        RunFile::RunRecords,
        RunFile::Scores,
        RunFile::Warmup,
        RunFile::Superseded,
    ] {
        cut_torn_line(&file.within(run))?;
    }
    cut_torn_line(&RunFile::Traces.within(run).join(trace_pack::INDEX))?;
    let done = committed(&RunFile::Rows.within(run), ids)?;
    drop_uncommitted(run, &done)?;
    tracing::info!(run = %run.display(), "repaired the run directory");
    Ok(done)
}

/// Drops everything about trials that are not done.
pub(crate) fn drop_uncommitted(run: &Path, done: &CellSet) -> Result<(), StoreError> {
    for file in [RunFile::Rows, RunFile::Analysis] {
        keep_committed::<CellKey>(&file.within(run), |key| done.contains(key))?;
    }
    drop_task_records(run, done)?;
    drop_traces(&RunFile::Traces.within(run), done)
}

fn committed(rows: &Path, ids: RecordIds) -> Result<CellSet, StoreError> {
    let mut lines = Lines::open(rows)?;
    let mut done = CellSet::new(ids);
    while let Some(key) = lines.parse::<CellKey>("row")? {
        if !done.insert(&key) {
            return Err(StoreError::Corrupt {
                path: rows.to_owned(),
                line: lines.number,
                expected: "row of its own",
                reason: format!(
                    "repetition {} of `{}` in mode `{}` is given twice",
                    key.iteration, key.scenario_id, key.mode
                ),
            });
        }
    }
    Ok(done)
}

/// Run records and scores are known by the run record's id.
fn drop_task_records(run: &Path, done: &CellSet) -> Result<(), StoreError> {
    #[derive(Deserialize)]
    struct Run {
        id: String,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Score {
        run_id: String,
    }
    keep_committed::<Run>(&RunFile::RunRecords.within(run), |record| {
        done.contains_record(&record.id)
    })?;
    keep_committed::<Score>(&RunFile::Scores.within(run), |score| {
        done.contains_record(&score.run_id)
    })
}

fn drop_traces(directory: &Path, done: &CellSet) -> Result<(), StoreError> {
    let index = directory.join(trace_pack::INDEX);
    keep_committed::<IndexEntry>(&index, |entry| done.contains(&entry.key))?;
    let mut lines = Lines::open(&index)?;
    let mut end = 0;
    while let Some(entry) = lines.parse::<IndexEntry>("trace index entry")? {
        // A damaged place must not decide what is cut.
        let Some(entry_end) = entry.offset.checked_add(entry.length) else {
            return Ok(());
        };
        end = end.max(entry_end);
    }
    cut_pack(&directory.join(trace_pack::PACK), end)
}

/// Drops the records that have no row. The file is rewritten only if there are any.
fn keep_committed<T: DeserializeOwned>(
    path: &Path,
    has_row: impl Fn(&T) -> bool,
) -> Result<(), StoreError> {
    let is_committed =
        |line: &[u8]| serde_json::from_slice::<T>(line).is_ok_and(|record| has_row(&record));
    let mut lines = Lines::open(path)?;
    let mut all_committed = true;
    while let (true, Some(line)) = (all_committed, lines.next()?) {
        all_committed = is_committed(line);
    }
    if all_committed {
        return Ok(());
    }
    let mut lines = Lines::open(path)?;
    files::replace_by(path, |file| {
        while let Some(line) = lines.next()? {
            if is_committed(line) {
                file.write_all(line).map_err(io("write", path))?;
            }
        }
        Ok(())
    })
}

/// Cuts what follows the last line break.
fn cut_torn_line(path: &Path) -> Result<(), StoreError> {
    const CHUNK: u64 = 1 << 16;
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io("repair", path)(error)),
    };
    let length = file.metadata().map_err(io("read", path))?.len();
    let mut end = length;
    let mut chunk = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(start))
            .map_err(io("read", path))?;
        chunk.clear();
        (&mut file)
            .take(end - start)
            .read_to_end(&mut chunk)
            .map_err(io("read", path))?;
        if let Some(place) = chunk.iter().rposition(|byte| *byte == b'\n') {
            end = start + place as u64 + 1;
            break;
        }
        end = start;
    }
    if end < length {
        file.set_len(end).map_err(io("repair", path))?;
    }
    Ok(())
}

/// Cuts frames that the index does not know. Where it may be the index that is damaged, a copy of what is cut is kept.
fn cut_pack(path: &Path, end: u64) -> Result<(), StoreError> {
    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(());
    };
    if metadata.len() <= end {
        return Ok(());
    }
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(io("repair", path))?;
    if !starts_frame(&mut file, end).map_err(io("read", path))? {
        copy_rest(&mut file, end, &path.with_extension("cut"))?;
    }
    file.set_len(end).map_err(io("repair", path))
}

/// True when a frame begins at the cut, as it does when a trial was under way.
fn starts_frame(file: &mut File, at: u64) -> std::io::Result<bool> {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    file.seek(SeekFrom::Start(at))?;
    let mut start = Vec::new();
    file.take(4).read_to_end(&mut start)?;
    Ok(MAGIC.starts_with(&start))
}

fn copy_rest(file: &mut File, from: u64, to: &Path) -> Result<(), StoreError> {
    file.seek(SeekFrom::Start(from)).map_err(io("read", to))?;
    let mut copy = files::create(to)?;
    std::io::copy(file, &mut copy).map_err(io("write", to))?;
    copy.sync_data().map_err(io("write", to))
}
