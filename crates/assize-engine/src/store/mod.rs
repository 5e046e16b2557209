//! The run directory: one writer, append-only, the row as the commit of everything else about a trial.
//!
//! ```text
//! <results>/<run-id>/
//!   manifest.json      what was run: resolved suite, plan, versions, fingerprint, units
//!   rows.jsonl         one row per trial: the commit
//!   runs.jsonl         one run record per trial of a task
//!   scores.jsonl       the scores of evaluators
//!   analysis.jsonl     one bundle of findings per trial that has a trace
//!   traces/            traces.zst (one zstd frame per trace) and index.jsonl (where each one lies)
//!   workspaces/        what agents left in theirs, one compressed archive per attempt
//!   warmup.jsonl       the warm-up trial, kept apart
//!   superseded.jsonl   rows that were replaced: void ones run again, and those scored again
//!   superseded-scores.jsonl   scores of tasks that were scored again
//!   looks.jsonl        every state of the data at which verdicts were shown
//!   round.json         in merged runs: what shards that go on from it need to know
//!   scoring.commit     a scoring that is being put in place; whoever finds it completes that
//!   digest.json        the numbers that are followed over runs; made again when rows or manifest change
//!   overview.json      what a list of runs shows; made again when rows or manifest change
//!   index              where rows and records lie; made again from the rows when it is missing or stale
//!   lock               held while a process writes
//! ```

mod directory;
mod error;
mod files;
mod index;
mod looks;
mod manifest;
mod merge;
mod outside;
mod overview;
mod part;
mod reader;
mod record_id;
mod repair;
mod run_file;
mod run_records;
mod scoring;
mod trace_pack;
mod writer;

pub use assize_contracts::CellKey;
pub(crate) use directory::OpenRun;
pub(crate) use directory::list_named;
pub use directory::{DerivedFrom, RunDirectory, has_runs, list};
pub use error::StoreError;
pub use index::RowCounts;
pub use looks::{append_look, read_looks};
pub use manifest::new_run_id;
pub(crate) use manifest::sorted;
pub use manifest::{Manifest, PlanRecord, RunState, ShardRecord, TaskPlan};
pub use merge::{Merged, MergedShard, MergedSource, Superseded, merge, restore_shard, runs_below};
pub use outside::clean_trace;
pub(crate) use outside::{Outside, clean_name};
pub use overview::{RunOverview, overviews};
pub use part::{PartMarks, write_part};
pub use reader::RowReader;
pub(crate) use record_id::RecordIds;
pub(crate) use repair::repair;
pub use run_file::RunFile;
pub(crate) use run_records::RunRecords;
pub(crate) use scoring::Scoring;
pub use trace_pack::TraceReader;
pub(crate) use writer::{
    Encoder, SeenMetrics, TaskRecords, TrialRecord, Writer, WriterHandle, WrittenRun,
};
