//! Saves reading a whole run: the number of rows, the offsets of each row and its records, the cells that are done.
//!
//! The file `index` is derived from the rows and is never trusted over them: it names the file of rows it was made of, and is made
//! again when that is not the present one. Whatever is found through it is checked against the key that was looked for.

use super::directory::record_ids;
use super::error::{StoreError, io};
use super::manifest::Manifest;
use super::reader::Lines;
use super::record_id::{CellSet, RecordIds};
use super::trace_pack::{self, IndexEntry};
use super::{RunFile, files};
use assize_contracts::{CellKey, Outcome};
use foldhash::fast::FixedState;
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const FILE: &str = "index";
const ROWS: &str = RunFile::Rows.name();
const RUNS: &str = RunFile::RunRecords.name();
const SCORES: &str = RunFile::Scores.name();

/// Changes with the form of the file.
const MAGIC: u64 = u64::from_le_bytes(*b"asz-idx1");

/// Numbers at the beginning of the file.
const HEADER: usize = 16;

/// The files beside the rows, in the order of places.
const BESIDE: [&str; 5] = [
    RUNS,
    SCORES,
    "traces/index.jsonl",
    "traces/traces.zst",
    RunFile::Analysis.name(),
];

/// Lengths that no files have: there may be half a line, or records without a row.
const NOT_CLOSED: [u64; 5] = [u64::MAX; 5];

/// The number of rows of a run, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// All of them.
    pub rows: u64,
    /// Those that passed.
    pub passed: u64,
    /// Those that failed.
    pub failed: u64,
}

impl RowCounts {
    fn add(&mut self, outcome: Outcome) {
        self.rows += 1;
        self.passed += u64::from(outcome == Outcome::Pass);
        self.failed += u64::from(outcome == Outcome::Fail);
    }
}

/// The offsets of a position's row and of its records: one more than the offset, 0 where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) row: u64,
    pub(super) run: u64,
    pub(super) scores: u64,
    /// The line of the trace in its index.
    pub(super) trace: u64,
}

/// A file as it was when something was made of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    seconds: u64,
    nanoseconds: u64,
}

impl Stamp {
    /// A file that is not there has no bytes.
    fn of(path: &Path) -> Self {
        let stamp = |found: std::fs::Metadata| Self {
            inode: found.ino(),
            length: found.len(),
            seconds: found.mtime() as u64,
            nanoseconds: found.mtime_nsec() as u64,
        };
        std::fs::metadata(path).map_or(Self::default(), stamp)
    }
}

/// The part of the file that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    rows: Stamp,
    counts: RowCounts,
    /// Positions that have places.
    positions: u64,
    /// Lengths of the files beside the rows, for a run that was closed in good order.
    beside: [u64; 5],
}

impl Header {
    fn numbers(&self) -> [u64; HEADER] {
        let Self {
            rows,
            counts,
            positions,
            beside,
        } = self;
        let mut numbers = [0; HEADER];
        numbers[..9].copy_from_slice(&[
            MAGIC,
            rows.inode,
            rows.length,
            rows.seconds,
            rows.nanoseconds,
            counts.rows,
            counts.passed,
            counts.failed,
            *positions,
        ]);
        numbers[9..14].copy_from_slice(beside);
        numbers[14] = numbers[..14].iter().fold(0, mixed);
        numbers
    }

    /// The header of a run's index, if it was made of the rows that are there.
    fn read(file: &File, run: &Path) -> Option<Self> {
        let mut bytes = [0; HEADER * 8];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let mut numbers = [0; HEADER];
        for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            *number = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let header = Self {
            rows: Stamp {
                inode: numbers[1],
                length: numbers[2],
                seconds: numbers[3],
                nanoseconds: numbers[4],
            },
            counts: RowCounts {
                rows: numbers[5],
                passed: numbers[6],
                failed: numbers[7],
            },
            positions: numbers[8],
            beside: numbers[9..14].try_into().ok()?,
        };
        let is_whole = header.numbers() == numbers && file.metadata().ok()?.len() == header.size();
        (is_whole && header.rows == Stamp::of(&run.join(ROWS))).then_some(header)
    }

    /// Bytes of the whole file: header, places, numbers of cells.
    fn size(&self) -> u64 {
        let numbers = self.positions.wrapping_mul(4);
        let numbers = numbers.wrapping_add(self.counts.rows);
        numbers.wrapping_add(HEADER as u64).wrapping_mul(8)
    }
}

fn mixed(sum: u64, number: &u64) -> u64 {
    (sum ^ number)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
}

/// The index of a run while it is made.
#[derive(Debug, Default)]
pub(super) struct Index {
    counts: RowCounts,
    /// By position.
    places: Vec<Places>,
    /// The numbers of the cells, in the order of rows.
    cells: Vec<u64>,
}

/// The fields of a row that the index needs: its key, flat because `flatten` would keep everything else of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IndexedRow {
    scenario_id: String,
    mode: String,
    model: String,
    iteration: i64,
    position: Option<u64>,
    outcome: Option<Outcome>,
}

impl IndexedRow {
    fn into_key(self) -> CellKey {
        CellKey {
            scenario_id: self.scenario_id,
            mode: self.mode,
            model: self.model,
            iteration: self.iteration,
        }
    }
}

impl Index {
    /// Adds a row with the places of its records. Positions beyond the plan are not looked up here.
    pub(super) fn add(
        &mut self,
        cell: u64,
        outcome: Outcome,
        position: Option<u64>,
        places: Places,
        planned: u64,
    ) {
        self.counts.add(outcome);
        self.cells.push(cell);
        let Some(position) = position.filter(|position| *position < planned) else {
            return;
        };
        let position = position as usize;
        if self.places.len() <= position {
            self.places.resize(position + 1, Places::default());
        }
        // Of several rows the first counts.
        if self.places[position].row == 0 {
            self.places[position] = places;
        }
    }

    /// Makes the index from the rows.
    pub(super) fn scan(run: &Path, manifest: &Manifest) -> Result<Self, StoreError> {
        let ids = record_ids(manifest);
        let beside = Beside::scan(run, &ids)?;
        let planned = manifest.plan.cells();
        let mut index = Self::default();
        let mut lines = Lines::open(&run.join(ROWS))?;
        let mut offset = 0;
        while let Some(row) = lines.parse::<IndexedRow>("row")? {
            let (position, outcome) = (row.position, row.outcome.unwrap_or(Outcome::Void));
            let cell = ids.number(&row.into_key());
            let places = Places {
                row: offset + 1,
                ..beside.places(cell)
            };
            index.add(cell, outcome, position, places, planned);
            offset = lines.end;
        }
        Ok(index)
    }

    /// The index that is there, where the run was closed in good order and nothing was written since: everything beside its
    /// rows belongs to one of them.
    pub(super) fn of_closed(run: &Path) -> Option<Self> {
        let file = File::open(run.join(FILE)).ok()?;
        let header = Header::read(&file, run)?;
        if header.beside != lengths_beside(run) || header.counts.rows == 0 {
            return None;
        }
        let mut bytes = vec![0; header.size() as usize - HEADER * 8];
        file.read_exact_at(&mut bytes, HEADER as u64 * 8).ok()?;
        let mut numbers = bytes
            .chunks_exact(8)
            .filter_map(|number| Some(u64::from_le_bytes(number.try_into().ok()?)));
        let mut next = || numbers.next();
        let mut places = Vec::with_capacity(header.positions as usize);
        for _ in 0..header.positions {
            places.push(Places {
                row: next()?,
                run: next()?,
                scores: next()?,
                trace: next()?,
            });
        }
        Some(Self {
            counts: header.counts,
            places,
            cells: numbers.collect(),
        })
    }

    /// The cells that have rows.
    pub(super) fn done(&self, ids: RecordIds) -> CellSet {
        CellSet::of_numbers(ids, self.cells.iter().copied())
    }

    /// Writes it beside the rows. `is_closed`: nothing but what belongs to rows lies beside them.
    pub(super) fn write(&self, run: &Path, is_closed: bool) -> Result<(), StoreError> {
        let path = run.join(FILE);
        let header = Header {
            rows: Stamp::of(&run.join(ROWS)),
            counts: self.counts,
            positions: self.places.len() as u64,
            beside: match is_closed {
                true => lengths_beside(run),
                false => NOT_CLOSED,
            },
        };
        let numbers = header.numbers().into_iter();
        let places = self.places.iter();
        let places = places.flat_map(|at| [at.row, at.run, at.scores, at.trace]);
        let cells = self.cells.iter().copied();
        files::replace_quickly(&path, |file| {
            for number in numbers.chain(places).chain(cells) {
                let written = file.write_all(&number.to_le_bytes());
                written.map_err(io("write", &path))?;
            }
            Ok(())
        })
    }
}

/// The run's index, made again where it is missing or stale.
pub(super) struct StoredIndex {
    header: Header,
    source: IndexSource,
}

enum IndexSource {
    File(File),
    Made(Index),
}

impl StoredIndex {
    pub(super) fn open(run: &Path, manifest: &Manifest) -> Result<Self, StoreError> {
        let file = File::open(run.join(FILE)).ok();
        let stored = file.and_then(|file| {
            let header = Header::read(&file, run)?;
            let source = IndexSource::File(file);
            Some(Self { header, source })
        });
        match stored {
            Some(stored) => Ok(stored),
            None => Self::make(run, manifest),
        }
    }

    /// Builds the index from the rows. It is stored if possible: a run may lie in a read-only directory.
    pub(super) fn make(run: &Path, manifest: &Manifest) -> Result<Self, StoreError> {
        let rows = Stamp::of(&run.join(ROWS));
        let index = Index::scan(run, manifest)?;
        let header = Header {
            rows,
            counts: index.counts,
            positions: index.places.len() as u64,
            beside: NOT_CLOSED,
        };
        // Rows that were added meanwhile make it stale at once.
        if rows == Stamp::of(&run.join(ROWS)) && rows.length > 0 {
            let _ = index.write(run, false);
        }
        let source = IndexSource::Made(index);
        Ok(Self { header, source })
    }

    pub(super) fn counts(&self) -> RowCounts {
        self.header.counts
    }

    pub(super) fn places(&self, position: u64) -> Option<Places> {
        if position >= self.header.positions {
            return None;
        }
        let places = match &self.source {
            IndexSource::Made(index) => index.places[position as usize],
            IndexSource::File(file) => {
                let mut bytes = [0; 32];
                let offset = 8 * (HEADER as u64 + 4 * position);
                file.read_exact_at(&mut bytes, offset).ok()?;
                let mut numbers = [0; 4];
                for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
                    *number = u64::from_le_bytes(bytes.try_into().ok()?);
                }
                let [row, run, scores, trace] = numbers;
                Places {
                    row,
                    run,
                    scores,
                    trace,
                }
            }
        };
        (places.row > 0).then_some(places)
    }
}

/// The offsets of the records of cells, by the numbers of the cells.
#[derive(Default)]
struct Beside {
    places: HashMap<u64, Places, FixedState>,
}

impl Beside {
    fn scan(run: &Path, ids: &RecordIds) -> Result<Self, StoreError> {
        #[derive(Deserialize)]
        struct Run {
            id: String,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Score {
            run_id: String,
        }
        let mut all = Self::default();
        let of_run = |record: Run| ids.number_in(&record.id);
        all.add(&run.join(RUNS), of_run, |places| &mut places.run)?;
        let of_score = |score: Score| ids.number_in(&score.run_id);
        all.add(&run.join(SCORES), of_score, |places| &mut places.scores)?;
        let traces = RunFile::Traces.within(run).join(trace_pack::INDEX);
        let of_trace = |entry: IndexEntry| Some(ids.number(&entry.key));
        all.add(&traces, of_trace, |places| &mut places.trace)?;
        Ok(all)
    }

    fn add<T: for<'a> Deserialize<'a>>(
        &mut self,
        path: &Path,
        cell_of: impl Fn(T) -> Option<u64>,
        place: fn(&mut Places) -> &mut u64,
    ) -> Result<(), StoreError> {
        let mut lines = Lines::open(path)?;
        let mut offset = 0;
        while let Some(line) = lines.next()? {
            // A record that cannot be read is one that is not found.
            let cell = serde_json::from_slice(line).ok().and_then(&cell_of);
            if let Some(cell) = cell {
                let place = place(self.places.entry(cell).or_default());
                if *place == 0 {
                    *place = offset + 1;
                }
            }
            offset = lines.end;
        }
        Ok(())
    }

    fn places(&self, cell: u64) -> Places {
        self.places.get(&cell).copied().unwrap_or_default()
    }
}

fn lengths_beside(run: &Path) -> [u64; 5] {
    BESIDE.map(|name| Stamp::of(&run.join(name)).length)
}

/// Bytes derived from rows and manifest, stored beside them under a name. Absent when they were derived from others, or by another version.
pub(super) fn read_derived(run: &Path, name: &str, version: &str) -> Option<Vec<u8>> {
    let mut text = std::fs::read(run.join(name)).ok()?;
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let is_fresh = text[..end] == *source_of(run, version).as_bytes();
    text.drain(..=end);
    is_fresh.then_some(text)
}

/// Keeps it.
pub(super) fn keep_derived(
    run: &Path,
    name: &str,
    version: &str,
    text: &[u8],
) -> Result<(), StoreError> {
    let path = run.join(name);
    let source = source_of(run, version);
    files::replace_quickly(&path, |file| {
        let parts = [source.as_bytes(), b"\n", text];
        let mut parts = parts.into_iter();
        parts.try_for_each(|part| file.write_all(part).map_err(io("write", &path)))
    })
}

/// The files that something is made of, in a line.
fn source_of(run: &Path, version: &str) -> String {
    let [rows, manifest] = [RunFile::Rows, RunFile::Manifest].map(|file| {
        let Stamp {
            inode,
            length,
            seconds,
            nanoseconds,
        } = Stamp::of(&file.within(run));
        format!("{inode} {length} {seconds}.{nanoseconds}")
    });
    format!("made of rows {rows}, manifest {manifest}, by {version}")
}
