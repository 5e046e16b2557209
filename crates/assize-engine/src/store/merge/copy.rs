//! Copies what belongs to the trials that count, file by file. Lines are copied as they are but for the id of the run; frames of traces are
//! copied whole.

use super::super::error::{StoreError, io};
use super::super::files;
use super::super::index::{Index, Places};
use super::super::manifest::Manifest;
use super::super::reader::Lines;
use super::super::record_id::RecordIds;
use super::super::trace_pack::{self, IndexEntry};
use super::{MOST_NAMED, MergedSource, RowHead, RunFile, Superseded, Taken, Text, note_sources};
use crate::random::attempt_seed;
use crate::workspace::archive_name;
use assize_contracts::{CellKey, Outcome};
use foldhash::fast::FixedState;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The directory of the merged run while it is written.
pub(super) struct Target {
    path: PathBuf,
    manifest: Manifest,
    rows: Output,
    analysis: Output,
    runs: Output,
    scores: Output,
    warmup: Output,
    superseded: Output,
    superseded_scores: Output,
    looks: Output,
    /// Hashes of looks, warm-ups, superseded rows and lines of logs that are written: shards of later rounds bring the looks before them
    /// along, and a run that is added to has what its shards still have.
    known_lines: HashSet<u64, FixedState>,
    log: Output,
    trace_index: Output,
    /// Not buffered: whole frames are copied by the system.
    traces: Option<File>,
    traces_length: u64,
    index: Index,
    pub(super) repeated: u64,
    pub(super) named: Vec<Superseded>,
}

/// A file that is made when the first line comes.
struct Output {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    length: u64,
}

/// The number of rows of a run, and of those that count.
pub(super) struct RowsOfSource {
    pub(super) rows: u64,
    pub(super) taken: u64,
}

/// A row that counts, until the places of its records are known.
struct Entry {
    cell: u64,
    position: u64,
    outcome: Outcome,
    places: Places,
}

/// The trials of one run that count, by the numbers of their cells.
struct Chosen {
    ids: RecordIds,
    rows: u64,
    entries: Vec<Entry>,
    by_cell: HashMap<u64, usize, FixedState>,
    /// Archives of trials that do not count.
    left_out: HashSet<String>,
}

impl Chosen {
    fn entry(&mut self, cell: Option<u64>) -> Option<&mut Entry> {
        let place = *self.by_cell.get(&cell?)?;
        self.entries.get_mut(place)
    }
}

impl Target {
    pub(super) fn create(path: &Path, manifest: Manifest) -> Result<Self, StoreError> {
        files::create_directory(path)?;
        let output = |file: RunFile| Output::new(file.within(path));
        let traces = RunFile::Traces.within(path);
        Ok(Self {
            rows: output(RunFile::Rows),
            analysis: output(RunFile::Analysis),
            runs: output(RunFile::RunRecords),
            scores: output(RunFile::Scores),
            warmup: output(RunFile::Warmup),
            superseded: output(RunFile::Superseded),
            superseded_scores: output(RunFile::SupersededScores),
            looks: output(RunFile::Looks),
            known_lines: HashSet::default(),
            log: output(RunFile::Log),
            trace_index: Output::new(traces.join(trace_pack::INDEX)),
            traces: None,
            traces_length: 0,
            path: path.to_owned(),
            manifest,
            index: Index::default(),
            repeated: 0,
            named: Vec::new(),
        })
    }

    /// Adds the trials of a run that count.
    pub(super) fn add<'a>(
        &mut self,
        run: &Path,
        ids: RecordIds,
        number: u32,
        taken: &Taken,
        run_id_of: impl Fn(u32) -> &'a str,
    ) -> Result<RowsOfSource, StoreError> {
        let old = run_id_of(number).to_owned();
        let mut chosen = Chosen {
            ids,
            rows: 0,
            entries: Vec::new(),
            by_cell: HashMap::default(),
            left_out: HashSet::new(),
        };
        self.add_rows(run, &old, number, taken, &mut chosen, run_id_of)?;
        self.add_analysis(run, &mut chosen)?;
        self.add_task_records(run, &old, &mut chosen)?;
        self.add_traces(run, &mut chosen)?;
        self.add_others(run, &old)?;
        self.add_workspaces(run, &chosen)?;
        let planned = self.manifest.plan.cells();
        for entry in &chosen.entries {
            let position = Some(entry.position);
            let Entry {
                cell,
                outcome,
                places,
                ..
            } = *entry;
            self.index.add(cell, outcome, position, places, planned);
        }
        Ok(RowsOfSource {
            rows: chosen.rows,
            taken: chosen.entries.len() as u64,
        })
    }

    fn add_rows<'a>(
        &mut self,
        run: &Path,
        old: &str,
        number: u32,
        taken: &Taken,
        chosen: &mut Chosen,
        run_id_of: impl Fn(u32) -> &'a str,
    ) -> Result<(), StoreError> {
        let path = RunFile::Rows.within(run);
        let mut lines = Lines::open(&path)?;
        let mut line = Vec::new();
        while let Some(line_number) = lines.advance()? {
            let row = RowHead::read(lines.line(), &path, line_number)?;
            // Rows that were added since trials were chosen are left for the next time.
            let (Some(position), Some(counts)) = (row.position, taken.of(&row)) else {
                continue;
            };
            chosen.rows += 1;
            let [scenario, mode, model] = row.cell();
            let key = CellKey {
                scenario_id: scenario.to_owned(),
                mode: mode.to_owned(),
                model: model.to_owned(),
                iteration: row.iteration,
            };
            let cell = chosen.ids.number(&key);
            line.clear();
            let texts = [Some(&row.run_id), row.session_id.as_ref()];
            rename(lines.line(), texts, old, &self.manifest.run_id, &mut line);
            let is_it = counts.source == number && counts.trial == row.trial();
            if is_it && !chosen.by_cell.contains_key(&cell) {
                chosen.by_cell.insert(cell, chosen.entries.len());
                chosen.entries.push(Entry {
                    cell,
                    position,
                    outcome: row.outcome.unwrap_or(Outcome::Void),
                    places: Places {
                        row: self.rows.length + 1,
                        ..Places::default()
                    },
                });
                self.rows.write(&line)?;
            } else if counts.trial != row.trial() {
                if is_new(&mut self.known_lines, &line) {
                    self.superseded.write(&line)?;
                }
                self.note_superseded(position, old, run_id_of(counts.source));
                let seed = self.manifest.plan.seed;
                // The archive is named after the attempt; those of earlier attempts may be there, too.
                for attempt in 0..=row.attempts.len() + 1 {
                    let seed = attempt_seed(seed, row.cell(), row.iteration, attempt);
                    chosen.left_out.insert(archive_name(seed));
                }
            }
        }
        Ok(())
    }

    fn note_superseded(&mut self, position: u64, run_id: &str, taken_from: &str) {
        self.repeated += 1;
        if self.named.len() < MOST_NAMED {
            self.named.push(Superseded {
                position,
                run_id: run_id.to_owned(),
                taken_from: taken_from.to_owned(),
            });
        }
    }

    fn add_analysis(&mut self, run: &Path, chosen: &mut Chosen) -> Result<(), StoreError> {
        let mut lines = Lines::open(&RunFile::Analysis.within(run))?;
        while let Some(line) = lines.next()? {
            // Findings that cannot be read belong to nothing.
            let key: Option<CellKey> = serde_json::from_slice(line).ok();
            let cell = key.map(|key| chosen.ids.number(&key));
            if chosen.entry(cell).is_some() {
                self.analysis.write(line)?;
            }
        }
        Ok(())
    }

    fn add_task_records(
        &mut self,
        run: &Path,
        old: &str,
        chosen: &mut Chosen,
    ) -> Result<(), StoreError> {
        #[derive(Deserialize)]
        struct Run<'a> {
            #[serde(borrow)]
            id: Text<'a>,
        }
        let new = self.manifest.run_id.clone();
        let mut renamed = Vec::new();
        let mut lines = Lines::open(&RunFile::RunRecords.within(run))?;
        while let Some(line) = lines.next()? {
            let Ok(record) = serde_json::from_slice::<Run>(line) else {
                continue;
            };
            let cell = chosen.ids.number_in(&record.id.0);
            if let Some(entry) = chosen.entry(cell).filter(|entry| entry.places.run == 0) {
                entry.places.run = self.runs.length + 1;
                renamed.clear();
                rename(line, [Some(&record.id)], old, &new, &mut renamed);
                self.runs.write(&renamed)?;
            }
        }
        let mut lines = Lines::open(&RunFile::Scores.within(run))?;
        while let Some(line) = lines.next()? {
            let Ok(score) = serde_json::from_slice::<ScoreHead>(line) else {
                continue;
            };
            let cell = chosen.ids.number_in(&score.run_id.0);
            if let Some(entry) = chosen.entry(cell) {
                if entry.places.scores == 0 {
                    entry.places.scores = self.scores.length + 1;
                }
                renamed.clear();
                rename(
                    line,
                    [score.id.as_ref(), Some(&score.run_id)],
                    old,
                    &new,
                    &mut renamed,
                );
                self.scores.write(&renamed)?;
            }
        }
        Ok(())
    }

    fn add_traces(&mut self, run: &Path, chosen: &mut Chosen) -> Result<(), StoreError> {
        let directory = RunFile::Traces.within(run);
        let mut lines = Lines::open(&directory.join(trace_pack::INDEX))?;
        let pack_path = directory.join(trace_pack::PACK);
        let Ok(mut pack) = File::open(&pack_path) else {
            return Ok(());
        };
        let size = pack.metadata().map_err(io("read", &pack_path))?.len();
        // Frames that follow each other are copied at once.
        let mut waiting = 0..0;
        while let Some(entry) = lines.parse::<IndexEntry>("trace index entry")? {
            let end = entry.offset.checked_add(entry.length);
            let Some(end) = end.filter(|end| *end <= size) else {
                // A damaged place points to nothing.
                continue;
            };
            let cell = chosen.ids.number(&entry.key);
            let Some(known) = chosen
                .entry(Some(cell))
                .filter(|known| known.places.trace == 0)
            else {
                continue;
            };
            if waiting.end != entry.offset {
                self.copy_frames(&mut pack, &pack_path, &waiting)?;
                waiting = entry.offset..entry.offset;
            }
            let moved = IndexEntry {
                offset: self.traces_length + (entry.offset - waiting.start),
                ..entry
            };
            waiting.end = end;
            known.places.trace = self.trace_index.length + 1;
            if self.traces.is_none() {
                let directory = RunFile::Traces.within(&self.path);
                files::create_directory(&directory)?;
                self.traces = Some(files::create(&directory.join(trace_pack::PACK))?);
            }
            let mut line = serde_json::to_vec(&moved).expect("an index entry is plain data");
            line.push(b'\n');
            self.trace_index.write(&line)?;
        }
        self.copy_frames(&mut pack, &pack_path, &waiting)
    }

    fn copy_frames(
        &mut self,
        pack: &mut File,
        path: &Path,
        range: &std::ops::Range<u64>,
    ) -> Result<(), StoreError> {
        let (Some(traces), false) = (&mut self.traces, range.is_empty()) else {
            return Ok(());
        };
        let length = range.end - range.start;
        let sought = pack.seek(SeekFrom::Start(range.start));
        let copied = sought.and_then(|_| std::io::copy(&mut pack.take(length), traces));
        self.traces_length += copied.map_err(io("read", path))?;
        Ok(())
    }

    /// Adds records that belong to no counted trial and are kept all the same.
    fn add_others(&mut self, run: &Path, old: &str) -> Result<(), StoreError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Row<'a> {
            #[serde(borrow)]
            run_id: Text<'a>,
            #[serde(borrow, default)]
            session_id: Option<Text<'a>>,
        }
        let new = self.manifest.run_id.clone();
        let mut renamed = Vec::new();
        for (file, output) in [
            (RunFile::Warmup, &mut self.warmup),
            (RunFile::Superseded, &mut self.superseded),
        ] {
            let mut lines = Lines::open(&file.within(run))?;
            while let Some(line) = lines.next()? {
                if let Ok(row) = serde_json::from_slice::<Row>(line) {
                    renamed.clear();
                    let texts = [Some(&row.run_id), row.session_id.as_ref()];
                    rename(line, texts, old, &new, &mut renamed);
                    if is_new(&mut self.known_lines, &renamed) {
                        output.write(&renamed)?;
                    }
                }
            }
        }
        let mut lines = Lines::open(&RunFile::Looks.within(run))?;
        while let Some(line) = lines.next()? {
            if is_new(&mut self.known_lines, line) {
                self.looks.write(line)?;
            }
        }
        let mut lines = Lines::open(&RunFile::SupersededScores.within(run))?;
        while let Some(line) = lines.next()? {
            if let Ok(score) = serde_json::from_slice::<ScoreHead>(line) {
                renamed.clear();
                rename(
                    line,
                    [score.id.as_ref(), Some(&score.run_id)],
                    old,
                    &new,
                    &mut renamed,
                );
                self.superseded_scores.write(&renamed)?;
            }
        }
        let mut lines = Lines::open(&RunFile::Log.within(run))?;
        while let Some(line) = lines.next()? {
            if is_new(&mut self.known_lines, line) {
                self.log.write(line)?;
            }
        }
        Ok(())
    }

    /// Archives are never changed, so that a second name for them is enough where the file system gives one.
    fn add_workspaces(&self, run: &Path, chosen: &Chosen) -> Result<(), StoreError> {
        let Ok(archives) = std::fs::read_dir(RunFile::Workspaces.within(run)) else {
            return Ok(());
        };
        let directory = RunFile::Workspaces.within(&self.path);
        let mut is_made = false;
        for archive in archives.flatten() {
            let name = archive.file_name();
            if chosen.left_out.contains(&*name.to_string_lossy()) {
                continue;
            }
            if !is_made {
                files::create_directory(&directory)?;
                is_made = true;
            }
            let (from, to) = (archive.path(), directory.join(&name));
            if !to.exists() && std::fs::hard_link(&from, &to).is_err() {
                std::fs::copy(&from, &to).map_err(io("copy", &from))?;
            }
        }
        Ok(())
    }

    /// Makes everything durable, the manifest last: without it the directory is no run.
    pub(super) fn finish(&mut self, sources: &[MergedSource]) -> Result<(), StoreError> {
        for output in [
            &mut self.rows,
            &mut self.analysis,
            &mut self.runs,
            &mut self.scores,
            &mut self.warmup,
            &mut self.superseded,
            &mut self.superseded_scores,
            &mut self.looks,
            &mut self.log,
            &mut self.trace_index,
        ] {
            output.finish()?;
        }
        if let Some(traces) = &self.traces {
            traces.sync_data().map_err(io("write", &self.path))?;
        }
        note_sources(&mut self.manifest.provenance, sources);
        self.index.write(&self.path, true)?;
        self.manifest.write(&self.path)
    }
}

fn is_new(known: &mut HashSet<u64, FixedState>, line: &[u8]) -> bool {
    known.insert(FixedState::default().hash_one(line))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScoreHead<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    run_id: Text<'a>,
}

impl Output {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            length: 0,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        const BUFFER: usize = 1 << 18;
        let mut file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::with_capacity(BUFFER, files::create(&self.path)?),
        };
        file.write_all(bytes).map_err(io("write", &self.path))?;
        self.file = Some(file);
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), StoreError> {
        match self.file.take() {
            None => Ok(()),
            Some(file) => {
                let file = file.into_inner().map_err(|error| error.into_error());
                let written = file.and_then(|file| file.sync_data());
                written.map_err(io("write", &self.path))
            }
        }
    }
}

/// Appends the line with the new id of the run where the old one begins one of these texts. Nothing else of the line is touched, whatever
/// agents wrote into it.
fn rename<const N: usize>(
    line: &[u8],
    texts: [Option<&Text<'_>>; N],
    old: &str,
    new: &str,
    out: &mut Vec<u8>,
) {
    let start_of = |text: &Text<'_>| match &text.0 {
        // Only a text without escapes is in the line unchanged.
        Cow::Borrowed(text) => {
            let rest = text.strip_prefix(old)?;
            let is_id = rest.is_empty() || rest.starts_with('-');
            is_id.then(|| text.as_ptr() as usize - line.as_ptr() as usize)
        }
        Cow::Owned(_) => None,
    };
    let mut places: Vec<usize> = texts
        .iter()
        .flatten()
        .filter_map(|text| start_of(text))
        .collect();
    places.sort_unstable();
    let mut end = 0;
    for place in places {
        out.extend_from_slice(&line[end..place]);
        out.extend_from_slice(new.as_bytes());
        end = place + old.len();
    }
    out.extend_from_slice(&line[end..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_of_the_run_is_renamed() {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Ids<'a> {
            #[serde(borrow)]
            run_id: Text<'a>,
            #[serde(borrow, default)]
            session_id: Option<Text<'a>>,
        }
        let check = |line: &str, expected: &str| {
            let ids: Ids = serde_json::from_str(line).unwrap();
            let mut out = Vec::new();
            let texts = [Some(&ids.run_id), ids.session_id.as_ref()];
            rename(line.as_bytes(), texts, "r-1", "longer", &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check(
            r#"{"text":"runId r-1","runId":"r-1","sessionId":"r-1-0f","x":"r-1"}"#,
            r#"{"text":"runId r-1","runId":"longer","sessionId":"longer-0f","x":"r-1"}"#,
        );
        check(
            r#"{"sessionId":"agent's \"own\"","runId":"r-1"}"#,
            r#"{"sessionId":"agent's \"own\"","runId":"longer"}"#,
        );
        check(
            r#"{"sessionId":"r-10","runId":"r-1"}"#,
            r#"{"sessionId":"r-10","runId":"longer"}"#,
        );
    }
}
