//! The one writer of a run: a thread that takes finished trials, makes them durable many at a time, then reports them.

use super::RunFile;
use super::directory::record_ids;
use super::error::StoreError;
use super::files::{self, AppendFile};
use super::index::{Index, Places};
use super::manifest::{Manifest, RunState};
use super::outside::{Outside, write_clean};
use super::record_id::RecordIds;
use super::trace_pack::{self, IndexEntry};
use crate::event::{Event, Listener, TrialBrief};
use assize_contracts::CellKey;
use assize_contracts::{
    Catalog, CustomMetric, Metric, ProfileRow, RunRecord, ScoreRecord, SessionAnalysisBundle,
    SessionTrace,
};
use assize_secrets::Redactor;
use foldhash::fast::RandomState;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Trials that may wait for the disk before trials wait for the writer.
const QUEUE: usize = 512;

/// The time that the first trial of a batch waits for others. No trial is blocked meanwhile.
const GATHER: Duration = Duration::from_millis(4);

/// Bytes that hold most rows and many traces.
const TYPICAL_RECORD: usize = 4096;

/// Traces are compressed while trials run, so speed counts for more than size.
const COMPRESSION: i32 = 1;

/// All that is kept of one trial.
pub(crate) struct TrialRecord {
    pub(crate) row: ProfileRow,
    pub(crate) trace: Option<Arc<SessionTrace>>,
    pub(crate) analysis: Option<SessionAnalysisBundle>,
    pub(crate) task: Option<TaskRecords>,
}

/// The other records of a task's trial.
pub(crate) struct TaskRecords {
    pub(crate) run: RunRecord,
    pub(crate) scores: Vec<ScoreRecord>,
}

/// Turns trials into the bytes that are stored. Works on the trial's own task, so that encoding runs in parallel.
pub(crate) struct Encoder {
    redactor: Redactor,
    store_traces: bool,
}

/// A trial as it will lie on disk. The row itself is gone by now: it is cheapest to drop where it was made.
pub(crate) struct Encoded {
    brief: TrialBrief,
    key: CellKey,
    trace: Option<StoredTrace>,
    row_line: Vec<u8>,
    analysis_line: Vec<u8>,
    run_line: Vec<u8>,
    score_lines: Vec<u8>,
}

/// A compressed trace.
struct StoredTrace {
    frame: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new(redactor: Redactor, store_traces: bool) -> Self {
        Self {
            redactor,
            store_traces,
        }
    }

    pub(crate) fn encode(&self, record: TrialRecord) -> Encoded {
        let TrialRecord {
            mut row,
            trace,
            analysis,
            mut task,
        } = record;
        let stored = |mut trace: Arc<SessionTrace>| StoredTrace {
            frame: compress(&self.line(&mut trace)),
        };
        let trace = trace.filter(|_| self.store_traces).map(stored);
        // The session of a task is its run record, whose id is Assize's own.
        if let (None, Some(session_id)) = (&task, &mut row.session_id) {
            self.redactor.clean(session_id);
        }
        Encoded {
            row_line: self.line(&mut row),
            analysis_line: analysis
                .map(|mut bundle| self.line(&mut bundle))
                .unwrap_or_default(),
            trace,
            brief: TrialBrief::of(&row),
            key: CellKey::of(&row),
            run_line: task
                .as_mut()
                .map(|task| self.line(&mut task.run))
                .unwrap_or_default(),
            score_lines: task
                .map(|mut task| self.lines(&mut task.scores))
                .unwrap_or_default(),
        }
    }

    fn lines<T: Serialize + Outside>(&self, records: &mut [T]) -> Vec<u8> {
        let mut lines = Vec::with_capacity(TYPICAL_RECORD);
        for record in records {
            self.append_line(&mut lines, record);
        }
        lines
    }

    fn line<T: Serialize + Outside>(&self, record: &mut T) -> Vec<u8> {
        // Growing step by step was a quarter of the encoding.
        let mut line = Vec::with_capacity(TYPICAL_RECORD);
        self.append_line(&mut line, record);
        line
    }

    fn append_line<T: Serialize + Outside>(&self, lines: &mut Vec<u8>, record: &mut T) {
        write_clean(lines, record, &self.redactor);
        lines.push(b'\n');
    }
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    thread_local! {
        // A new compressor for every trace would cost more than the compression.
        static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    }
    COMPRESSOR.with_borrow_mut(|slot| {
        let compressor = slot.get_or_insert_with(|| {
            zstd::bulk::Compressor::new(COMPRESSION).expect("the level is a valid one")
        });
        compressor
            .compress(bytes)
            .expect("memory is the only limit")
    })
}

/// The metrics of the run, which become known while trials run.
#[derive(Default)]
pub(crate) struct SeenMetrics(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    metrics: HashMap<String, Metric, RandomState>,
    /// There is something that the manifest does not say.
    is_news: bool,
}

impl Seen {
    fn insert(&mut self, metric: Metric) {
        self.metrics.insert(metric.name.to_string(), metric);
        self.is_news = true;
    }
}

impl SeenMetrics {
    fn knowing(catalog: &Catalog) -> Self {
        let known = catalog.iter();
        let known = known.map(|metric| (metric.name.to_string(), metric.clone()));
        Self(Mutex::new(Seen {
            metrics: known.collect(),
            is_news: false,
        }))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a metric. `define` is called only for a name not seen before.
    pub(crate) fn add(&self, name: &str, define: impl FnOnce() -> Metric) {
        let mut seen = self.seen();
        if !seen.metrics.contains_key(name) {
            seen.insert(define());
        }
    }

    /// Adds the metrics of a collector or scorer. `clean` is called for those not seen before; it may change their names.
    pub(crate) fn add_found(&self, found: &mut [CustomMetric], clean: impl Fn(&mut CustomMetric)) {
        let mut seen = self.seen();
        for metric in found {
            if seen.metrics.contains_key(&metric.name) {
                continue;
            }
            clean(metric);
            if !seen.metrics.contains_key(&metric.name) {
                seen.insert((&*metric).into());
            }
        }
    }

    /// Puts this meaning in the place of the known one: of two values of one name its value is kept.
    pub(crate) fn replace(&self, metric: Metric) {
        let mut seen = self.seen();
        if seen.metrics.get(&*metric.name) != Some(&metric) {
            seen.insert(metric);
        }
    }

    fn take_news(&self) -> Option<Catalog> {
        let mut seen = self.seen();
        let is_news = std::mem::take(&mut seen.is_news);
        is_news.then(|| seen.metrics.values().cloned().collect())
    }
}

enum Message {
    Trial(Encoded),
    Warmup(Encoded),
    /// Answered when everything before it is durable.
    Barrier(oneshot::Sender<()>),
}

/// The way to the writing thread.
pub(crate) struct Writer {
    sender: mpsc::Sender<Message>,
    thread: JoinHandle<Result<WriterThread, StoreError>>,
    pub(crate) metrics: Arc<SeenMetrics>,
}

impl Writer {
    pub(super) fn start(
        path: PathBuf,
        manifest: Manifest,
        places: Option<Index>,
        lock: File,
        listener: Arc<dyn Listener>,
        on_failure: CancellationToken,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let metrics = Arc::new(SeenMetrics::knowing(&manifest.catalog()));
        let mut writer = WriterThread::new(&path, manifest, lock, listener, Arc::clone(&metrics));
        writer.places = places;
        let thread =
            std::thread::spawn(move || writer.work(receiver).inspect_err(|_| on_failure.cancel()));
        Self {
            sender,
            thread,
            metrics,
        }
    }

    /// A way to hand trials over from another task.
    pub(crate) fn handle(&self) -> WriterHandle {
        WriterHandle(self.sender.clone())
    }

    /// Waits until everything handed over is durable.
    pub(crate) async fn flush(self) -> Result<WrittenRun, StoreError> {
        drop(self.sender);
        let thread = self.thread;
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        match joined {
            Ok(Ok(written)) => written.map(WrittenRun),
            _ => panic!("the writer does not panic"),
        }
    }
}

/// Hands trials to the writer. All handles must be gone before the writer can be flushed.
#[derive(Clone)]
pub(crate) struct WriterHandle(mpsc::Sender<Message>);

impl WriterHandle {
    /// Hands a trial over. Waits when the disk is behind. After a write error trials are dropped.
    pub(crate) async fn write(&self, trial: Encoded) {
        let _ = self.0.send(Message::Trial(trial)).await;
    }

    /// Waits until everything handed over so far is durable.
    pub(crate) async fn settled(&self) {
        let (sender, receiver) = oneshot::channel();
        if self.0.send(Message::Barrier(sender)).await.is_ok() {
            let _ = receiver.await;
        }
    }

    /// Hands the warm-up over; it is kept apart from the trials.
    pub(crate) async fn write_warmup(&self, trial: Encoded) {
        let _ = self.0.send(Message::Warmup(trial)).await;
    }
}

/// A run whose trials are all on disk; only its final state is still to be written.
pub(crate) struct WrittenRun(WriterThread);

impl WrittenRun {
    /// Trials written by this process.
    pub(crate) fn trials(&self) -> u64 {
        self.0.trials
    }

    /// Writes the final state and releases the lock.
    pub(crate) fn close(mut self, state: RunState) -> Result<(), StoreError> {
        self.0.write_index();
        self.0.manifest.state = state;
        self.0.manifest.write(&self.0.directory)
    }
}

struct WriterThread {
    directory: PathBuf,
    manifest: Manifest,
    metrics: Arc<SeenMetrics>,
    rows: AppendFile,
    analysis: AppendFile,
    runs: AppendFile,
    scores: AppendFile,
    traces: AppendFile,
    index: AppendFile,
    warmup: AppendFile,
    listener: Arc<dyn Listener>,
    trials: u64,
    batch: Batch,
    /// The offsets of all records. Absent when the index is made from the rows at the end.
    places: Option<Index>,
    ids: RecordIds,
    _lock: File,
}

/// Lines that are written together. Kept between batches: memory that is new costs more than the copy into it.
#[derive(Default)]
struct Batch {
    rows: Vec<u8>,
    analysis: Vec<u8>,
    runs: Vec<u8>,
    scores: Vec<u8>,
    index: Vec<u8>,
}

impl Batch {
    fn clear(&mut self) {
        let Self {
            rows,
            analysis,
            runs,
            scores,
            index,
        } = self;
        for lines in [rows, analysis, runs, scores, index] {
            lines.clear();
        }
    }
}

impl WriterThread {
    fn new(
        path: &Path,
        manifest: Manifest,
        lock: File,
        listener: Arc<dyn Listener>,
        metrics: Arc<SeenMetrics>,
    ) -> Self {
        let traces = RunFile::Traces.within(path);
        Self {
            places: None,
            ids: record_ids(&manifest),
            directory: path.to_owned(),
            manifest,
            metrics,
            rows: AppendFile::new(RunFile::Rows.within(path)),
            analysis: AppendFile::new(RunFile::Analysis.within(path)),
            runs: AppendFile::new(RunFile::RunRecords.within(path)),
            scores: AppendFile::new(RunFile::Scores.within(path)),
            traces: AppendFile::new(traces.join(trace_pack::PACK)),
            index: AppendFile::new(traces.join(trace_pack::INDEX)),
            warmup: AppendFile::new(RunFile::Warmup.within(path)),
            listener,
            trials: 0,
            batch: Batch::default(),
            _lock: lock,
        }
    }

    fn work(mut self, mut receiver: mpsc::Receiver<Message>) -> Result<Self, StoreError> {
        let mut batch = Vec::new();
        while receiver.blocking_recv_many(&mut batch, QUEUE) > 0 {
            // Trials that end together share the cost of making them durable.
            std::thread::sleep(GATHER);
            while batch.len() < QUEUE
                && let Ok(message) = receiver.try_recv()
            {
                batch.push(message);
            }
            self.commit(&batch)?;
            for message in batch.drain(..) {
                if let Message::Barrier(waiting) = message {
                    let _ = waiting.send(());
                }
            }
        }
        Ok(self)
    }

    /// The order is the promise: first everything about the trials, then their rows, then the word that they are done.
    fn commit(&mut self, batch: &[Message]) -> Result<(), StoreError> {
        tracing::debug!(trials = batch.len(), "commit trials");
        self.batch.clear();
        for message in batch {
            match message {
                Message::Barrier(_) => {}
                Message::Warmup(trial) => self.warmup.append(&trial.row_line)?,
                Message::Trial(trial) => {
                    self.note_places(trial);
                    self.batch.rows.extend_from_slice(&trial.row_line);
                    self.batch.analysis.extend_from_slice(&trial.analysis_line);
                    self.batch.runs.extend_from_slice(&trial.run_line);
                    self.batch.scores.extend_from_slice(&trial.score_lines);
                    self.append_trace(trial)?;
                }
            }
        }
        self.index.append(&self.batch.index)?;
        self.analysis.append(&self.batch.analysis)?;
        self.runs.append(&self.batch.runs)?;
        self.scores.append(&self.batch.scores)?;
        for file in [
            &mut self.traces,
            &mut self.index,
            &mut self.analysis,
            &mut self.runs,
            &mut self.scores,
            &mut self.warmup,
        ] {
            file.sync()?;
        }
        self.write_new_metrics()?;
        self.rows.append(&self.batch.rows)?;
        self.rows.sync()?;
        for message in batch {
            self.announce(message);
        }
        Ok(())
    }

    /// Notes the offsets of the next records.
    fn note_places(&mut self, trial: &Encoded) {
        let Some(places) = &mut self.places else {
            return;
        };
        let next = |file: &AppendFile, waiting: &Vec<u8>, has_any: bool| match has_any {
            true => file.length() + waiting.len() as u64 + 1,
            false => 0,
        };
        let batch = &self.batch;
        let found = Places {
            row: next(&self.rows, &batch.rows, true),
            run: next(&self.runs, &batch.runs, !trial.run_line.is_empty()),
            scores: next(&self.scores, &batch.scores, !trial.score_lines.is_empty()),
            trace: next(&self.index, &batch.index, trial.trace.is_some()),
        };
        let TrialBrief {
            outcome, position, ..
        } = trial.brief;
        let planned = self.manifest.plan.cells();
        places.add(
            self.ids.number(&trial.key),
            outcome,
            position,
            found,
            planned,
        );
    }

    /// The index only makes reading faster; without it the rows are read.
    fn write_index(&mut self) {
        let index = match self.places.take() {
            Some(index) => Ok(index),
            None => Index::scan(&self.directory, &self.manifest),
        };
        if let Err(error) = index.and_then(|index| index.write(&self.directory, true)) {
            tracing::info!(%error, "cannot write the index");
        }
    }

    fn append_trace(&mut self, trial: &Encoded) -> Result<(), StoreError> {
        let Some(trace) = &trial.trace else {
            return Ok(());
        };
        let directory = RunFile::Traces.within(&self.directory);
        if self.traces.length() == 0 {
            files::create_directory(&directory)?;
        }
        let entry = IndexEntry {
            key: trial.key.clone(),
            offset: self.traces.length(),
            length: trace.frame.len() as u64,
        };
        self.traces.append(&trace.frame)?;
        let index = &mut self.batch.index;
        serde_json::to_writer(&mut *index, &entry).expect("an index entry is plain data");
        index.push(b'\n');
        Ok(())
    }

    fn write_new_metrics(&mut self) -> Result<(), StoreError> {
        match self.metrics.take_news() {
            Some(metrics) => {
                self.manifest.set_metrics(metrics);
                self.manifest.write(&self.directory)
            }
            None => Ok(()),
        }
    }

    fn announce(&mut self, message: &Message) {
        let Message::Trial(trial) = message else {
            return;
        };
        self.trials += 1;
        let json = trial.row_line.trim_ascii_end();
        self.listener.on_event(&Event::TrialFinished {
            trial: &trial.brief,
            json,
        });
    }
}
