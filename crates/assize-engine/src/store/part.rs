//! Parts of a run that grows: the trials that were finished since the last part, as a small run of its own. Merging parts gives the run.

use super::RunFile;
use super::error::{StoreError, io};
use super::files;
use super::reader::Lines;
use super::trace_pack::{self, IndexEntry};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The files that grow by whole lines.
const LINES: [RunFile; 5] = [
    RunFile::Rows,
    RunFile::Analysis,
    RunFile::RunRecords,
    RunFile::Scores,
    RunFile::Warmup,
];

/// The lengths of a run's files when a part of it was taken. Taken between commits, they cut no trial in two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PartMarks {
    /// Parts that were uploaded from this directory.
    pub parts: u32,
    lines: [u64; 5],
    trace_index: u64,
    traces: u64,
    /// Archives of workspaces that are in earlier parts.
    workspaces: BTreeSet<String>,
}

impl PartMarks {
    /// The state of a run now. Right only while nothing is written: when a trial is announced, or the run has ended.
    pub fn of(run: &Path) -> Self {
        let length = |path: PathBuf| std::fs::metadata(path).map_or(0, |found| found.len());
        let traces = RunFile::Traces.within(run);
        let archives = std::fs::read_dir(RunFile::Workspaces.within(run));
        let archives = archives.into_iter().flatten().flatten();
        Self {
            parts: 0,
            lines: LINES.map(|file| length(file.within(run))),
            trace_index: length(traces.join(trace_pack::INDEX)),
            traces: length(traces.join(trace_pack::PACK)),
            workspaces: archives
                .map(|archive| archive.file_name().to_string_lossy().into_owned())
                .collect(),
        }
    }

    /// True if nothing came since: the same trials are on both sides.
    pub fn is_as_far_as(&self, other: &Self) -> bool {
        let parts = other.parts;
        Self {
            parts,
            ..self.clone()
        } == *other
    }

    /// The marks that were noted beside a run. Those of a run that was rewritten since are not valid.
    pub fn noted(run: &Path) -> Self {
        let text = std::fs::read(RunFile::Uploaded.within(run)).unwrap_or_default();
        let noted: Self = serde_json::from_slice(&text).unwrap_or_default();
        let now = Self::of(run);
        let fits = noted
            .lines
            .iter()
            .zip(&now.lines)
            .all(|(then, now)| then <= now);
        match fits && noted.traces <= now.traces && noted.trace_index <= now.trace_index {
            true => noted,
            false => Self::default(),
        }
    }

    /// Notes the marks beside the run.
    pub fn note(&self, run: &Path) -> Result<(), StoreError> {
        let text = serde_json::to_vec(self).expect("marks are plain data");
        files::replace(&RunFile::Uploaded.within(run), &text)
    }
}

/// Writes what came between two marks as a run into a new directory, and returns the number of its rows.
pub fn write_part(
    run: &Path,
    from: &PartMarks,
    to: &PartMarks,
    part: &Path,
) -> Result<u64, StoreError> {
    files::create_directory(part)?;
    for (number, file) in LINES.into_iter().enumerate() {
        copy_range(
            &file.within(run),
            from.lines[number]..to.lines[number],
            &file.within(part),
        )?;
    }
    if to.traces > from.traces {
        write_traces(run, from, to, part)?;
    }
    let archives: Vec<&String> = to.workspaces.difference(&from.workspaces).collect();
    if !archives.is_empty() {
        let (old, new) = (
            RunFile::Workspaces.within(run),
            RunFile::Workspaces.within(part),
        );
        files::create_directory(&new)?;
        for name in archives {
            let (old, new) = (old.join(name), new.join(name));
            if std::fs::hard_link(&old, &new).is_err() {
                std::fs::copy(&old, &new).map_err(io("copy", &old))?;
            }
        }
    }
    let looks = RunFile::Looks.within(run);
    if looks.exists() {
        // Whole in every part: merging takes each look once.
        std::fs::copy(&looks, RunFile::Looks.within(part)).map_err(io("copy", &looks))?;
    }
    let manifest = RunFile::Manifest.within(run);
    std::fs::copy(&manifest, RunFile::Manifest.within(part)).map_err(io("copy", &manifest))?;
    let mut rows = Lines::open(&RunFile::Rows.within(part))?;
    while rows.advance()?.is_some() {}
    Ok(rows.number)
}

fn write_traces(
    run: &Path,
    from: &PartMarks,
    to: &PartMarks,
    part: &Path,
) -> Result<(), StoreError> {
    let (old, new) = (RunFile::Traces.within(run), RunFile::Traces.within(part));
    files::create_directory(&new)?;
    copy_range(
        &old.join(trace_pack::PACK),
        from.traces..to.traces,
        &new.join(trace_pack::PACK),
    )?;
    let mut entries = Lines::open_at(&old.join(trace_pack::INDEX), from.trace_index)?;
    let path = new.join(trace_pack::INDEX);
    let mut index = BufWriter::new(files::create(&path)?);
    while entries.end < to.trace_index {
        let Some(entry) = entries.parse::<IndexEntry>("trace index entry")? else {
            break;
        };
        let moved = IndexEntry {
            offset: entry.offset.saturating_sub(from.traces),
            ..entry
        };
        let mut line = serde_json::to_vec(&moved).expect("an index entry is plain data");
        line.push(b'\n');
        index.write_all(&line).map_err(io("write", &path))?;
    }
    index.flush().map_err(io("write", &path))
}

fn copy_range(from: &Path, range: Range<u64>, to: &Path) -> Result<(), StoreError> {
    if range.is_empty() {
        return Ok(());
    }
    let mut old = File::open(from).map_err(io("read", from))?;
    old.seek(SeekFrom::Start(range.start))
        .map_err(io("read", from))?;
    let mut new = files::create(to)?;
    std::io::copy(&mut old.take(range.end - range.start), &mut new).map_err(io("copy", from))?;
    Ok(())
}
