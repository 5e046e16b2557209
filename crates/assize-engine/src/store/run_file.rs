//! The files of a run directory. Their names are defined here only.

use std::path::{Path, PathBuf};

/// A file or folder of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunFile {
    /// The resolved suite, plan, versions, fingerprint and catalog of metrics.
    Manifest,
    /// One row per trial: the commit.
    Rows,
    /// One run record per trial of a task.
    RunRecords,
    /// Scores of tasks, by evaluators.
    Scores,
    /// One bundle of findings per trial that has a trace.
    Analysis,
    /// The folder of traces: one pack of zstd frames and its index.
    Traces,
    /// The folder of workspaces that agents left, one compressed archive per attempt.
    Workspaces,
    /// The warm-up trial, kept apart.
    Warmup,
    /// Rows that were replaced: void ones that were run again, and those scored again.
    Superseded,
    /// Scores of tasks that were scored again.
    SupersededScores,
    /// Every state of the data at which verdicts were shown.
    Looks,
    /// The facts about a merged run that shards of the next round need.
    Round,
    /// The overview for lists of runs; made again when rows or manifest change.
    Overview,
    /// The diagnostic log.
    Log,
    /// The folder of reports.
    Report,
    /// The part of the run that is already in an object store.
    Uploaded,
    /// Held while a process writes.
    Lock,
}

impl RunFile {
    /// The name inside the run directory.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manifest => "manifest.json",
            Self::Rows => "rows.jsonl",
            Self::RunRecords => "runs.jsonl",
            Self::Scores => "scores.jsonl",
            Self::Analysis => "analysis.jsonl",
            Self::Traces => "traces",
            Self::Workspaces => "workspaces",
            Self::Warmup => "warmup.jsonl",
            Self::Superseded => "superseded.jsonl",
            Self::SupersededScores => "superseded-scores.jsonl",
            Self::Looks => "looks.jsonl",
            Self::Round => "round.json",
            Self::Overview => "overview.json",
            Self::Log => "log.jsonl",
            Self::Report => "report",
            Self::Uploaded => "uploaded.json",
            Self::Lock => "lock",
        }
    }

    /// The path in this run directory.
    pub fn within(self, run: &Path) -> PathBuf {
        run.join(self.name())
    }
}
