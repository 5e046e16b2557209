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
const MAGIC: u64 = u64::from_le_bytes(*b"asz-idx2");

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
    /// Bytes of an offset in each column of places.
    widths: [u8; COLUMNS],
}

impl Header {
    fn numbers(&self) -> [u64; HEADER] {
        let Self {
            rows,
            counts,
            positions,
            beside,
            widths,
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
        numbers[14] = u64::from(u32::from_le_bytes(*widths));
        numbers[15] = numbers[..15].iter().fold(0, mixed);
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
            widths: (numbers[14] as u32).to_le_bytes(),
        };
        let is_known = header.widths.iter().all(|width| [0, 4, 8].contains(width));
        let is_whole =
            is_known && header.numbers() == numbers && file.metadata().ok()?.len() == header.size();
        (is_whole && header.rows == Stamp::of(&run.join(ROWS))).then_some(header)
    }

    /// Bytes of the whole file: header, places, numbers of cells.
    fn size(&self) -> u64 {
        let cells = self.counts.rows.wrapping_mul(8);
        self.start(COLUMNS).wrapping_add(cells)
    }

    /// The beginning of a column of places.
    fn start(&self, column: usize) -> u64 {
        let widths = self.widths[..column].iter();
        let width = widths.map(|width| u64::from(*width)).sum();
        self.positions
            .wrapping_mul(width)
            .wrapping_add(HEADER as u64 * 8)
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
    /// By position: the places of rows, run records, scores and traces.
    places: [Offsets; COLUMNS],
    /// The numbers of the cells, in the order of rows.
    cells: Vec<u64>,
}

/// The kinds of records that have places.
const COLUMNS: usize = 4;

/// Offsets by position; 0 where there is none. A run of tasks has a million and no traces.
#[derive(Debug)]
enum Offsets {
    /// Those of files below 4 GB.
    Short(Vec<u32>),
    Long(Vec<u64>),
}

impl Default for Offsets {
    fn default() -> Self {
        Self::Short(Vec::new())
    }
}

impl Offsets {
    fn len(&self) -> usize {
        match self {
            Self::Short(offsets) => offsets.len(),
            Self::Long(offsets) => offsets.len(),
        }
    }

    fn get(&self, position: usize) -> u64 {
        let offset = match self {
            Self::Short(offsets) => offsets.get(position).map(|offset| u64::from(*offset)),
            Self::Long(offsets) => offsets.get(position).copied(),
        };
        offset.unwrap_or(0)
    }

    fn set(&mut self, position: usize, offset: u64) {
        if offset == 0 {
            return;
        }
        match (&mut *self, u32::try_from(offset)) {
            (Self::Short(offsets), Ok(offset)) => put(offsets, position, offset),
            (Self::Long(offsets), _) => put(offsets, position, offset),
            (Self::Short(offsets), Err(_)) => {
                *self = Self::Long(offsets.iter().map(|offset| u64::from(*offset)).collect());
                self.set(position, offset);
            }
        }
    }

    /// Bytes of an offset. A column without any takes no room.
    fn width(&self) -> u8 {
        match self {
            Self::Short(offsets) if offsets.is_empty() => 0,
            Self::Short(_) => 4,
            Self::Long(_) => 8,
        }
    }

    /// Reads a column of so many offsets.
    fn read(bytes: &[u8], width: u8) -> Self {
        match width {
            8 => Self::Long(bytes.chunks_exact(8).map(number).collect()),
            _ => Self::Short(
                bytes
                    .chunks_exact(4)
                    .map(|bytes| number(bytes) as u32)
                    .collect(),
            ),
        }
    }
}

fn put<T: Copy + Default>(list: &mut Vec<T>, position: usize, value: T) {
    if list.len() <= position {
        list.resize(position + 1, T::default());
    }
    list[position] = value;
}

/// A number of up to eight bytes, the smallest first.
fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
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
        // Of several rows the first counts.
        if self.places[0].get(position) == 0 {
            let Places {
                row,
                run,
                scores,
                trace,
            } = places;
            let offsets = [row, run, scores, trace];
            for (column, offset) in self.places.iter_mut().zip(offsets) {
                column.set(position, offset);
            }
        }
    }

    /// Positions that have places.
    fn positions(&self) -> usize {
        self.places[0].len()
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
        let read = |from: u64, to: u64| {
            let mut bytes = vec![0; to.checked_sub(from)? as usize];
            file.read_exact_at(&mut bytes, from).ok()?;
            Some(bytes)
        };
        let mut places: [Offsets; COLUMNS] = Default::default();
        for (column, offsets) in places.iter_mut().enumerate() {
            let bytes = read(header.start(column), header.start(column + 1))?;
            *offsets = Offsets::read(&bytes, header.widths[column]);
        }
        let cells = read(header.start(COLUMNS), header.size())?;
        Some(Self {
            counts: header.counts,
            places,
            cells: cells.chunks_exact(8).map(number).collect(),
        })
    }

    /// The cells that have rows.
    pub(super) fn done(&self, ids: RecordIds) -> CellSet {
        CellSet::of_numbers(ids, self.cells.iter().copied())
    }

    /// Writes it beside the rows. `is_closed`: nothing but what belongs to rows lies beside them.
    pub(super) fn write(&self, run: &Path, is_closed: bool) -> Result<(), StoreError> {
        let path = run.join(FILE);
        let beside = match is_closed {
            true => lengths_beside(run),
            false => NOT_CLOSED,
        };
        let header = self.header(Stamp::of(&run.join(ROWS)), beside);
        let positions = 0..self.positions();
        files::replace_quickly(&path, |file| {
            let mut write = |bytes: &[u8]| file.write_all(bytes).map_err(io("write", &path));
            for number in header.numbers() {
                write(&number.to_le_bytes())?;
            }
            for (column, width) in self.places.iter().zip(header.widths) {
                for position in positions.clone() {
                    let offset = column.get(position).to_le_bytes();
                    write(&offset[..usize::from(width)])?;
                }
            }
            let mut cells = self.cells.iter();
            cells.try_for_each(|cell| write(&cell.to_le_bytes()))
        })
    }

    fn header(&self, rows: Stamp, beside: [u64; 5]) -> Header {
        Header {
            rows,
            counts: self.counts,
            positions: self.positions() as u64,
            beside,
            widths: self.places.each_ref().map(Offsets::width),
        }
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
        let header = index.header(rows, NOT_CLOSED);
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
        let offset = |column: usize| match &self.source {
            IndexSource::Made(index) => Some(index.places[column].get(position as usize)),
            IndexSource::File(file) => {
                let width = self.header.widths[column];
                let mut bytes = [0; 8];
                let bytes = &mut bytes[..usize::from(width)];
                let offset = self.header.start(column) + u64::from(width) * position;
                file.read_exact_at(bytes, offset).ok()?;
                Some(number(bytes))
            }
        };
        let places = Places {
            row: offset(0)?,
            run: offset(1)?,
            scores: offset(2)?,
            trace: offset(3)?,
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

/// Keeps it. `source` is that of the time before the rows were read.
pub(super) fn write_derived(
    run: &Path,
    name: &str,
    source: &str,
    text: &[u8],
) -> Result<(), StoreError> {
    let path = run.join(name);
    files::replace_quickly(&path, |file| {
        let parts = [source.as_bytes(), b"\n", text];
        let mut parts = parts.into_iter();
        parts.try_for_each(|part| file.write_all(part).map_err(io("write", &path)))
    })
}

/// The files that something is made of, in a line.
pub(super) fn source_of(run: &Path, version: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn places(row: u64, scores: u64) -> Places {
        Places {
            row,
            scores,
            ..Places::default()
        }
    }

    /// An index of these places comes back from its file.
    fn check(added: &[(u64, Places)], bytes_of_places: u64) {
        let run = tempfile::tempdir().unwrap();
        std::fs::write(run.path().join(ROWS), "rows\n").unwrap();
        let mut index = Index::default();
        for (position, places) in added {
            index.add(7 + position, Outcome::Pass, Some(*position), *places, 1_000);
        }
        index.write(run.path(), true).unwrap();
        let file = File::open(run.path().join(FILE)).unwrap();
        let header = Header::read(&file, run.path()).unwrap();
        let rows = added.len() as u64;
        assert_eq!(
            header.size(),
            HEADER as u64 * 8 + bytes_of_places + 8 * rows
        );
        let stored = StoredIndex {
            header,
            source: IndexSource::File(file),
        };
        let read = Index::of_closed(run.path()).unwrap();
        assert_eq!(read.cells, index.cells);
        let made = StoredIndex {
            header: read.header(header.rows, header.beside),
            source: IndexSource::Made(read),
        };
        for (position, places) in added {
            assert_eq!(stored.places(*position), Some(*places));
            assert_eq!(made.places(*position), Some(*places));
        }
        assert_eq!((stored.places(999), made.places(2)), (None, None));
    }

    #[test]
    fn an_index_comes_back_as_it_was_and_takes_room_for_what_there_is() {
        check(&[(0, places(1, 0)), (3, places(900, 0))], 4 * 4);
        check(&[(0, places(1, 5)), (3, places(900, 77))], 4 * (4 + 4));
        let far = u64::from(u32::MAX) + 10;
        check(&[(0, places(1, 5)), (3, places(far, 77))], 4 * (8 + 4));
    }
}
