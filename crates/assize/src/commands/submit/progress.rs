//! The progress of a submission's shards, from their run directories or the object store.

use super::Activity;
use super::record::Submission;
use crate::cli::SchedulerArgument;
use crate::commands::results;
use crate::commands::rounds::RoundRecord;
use crate::terminal::{plain, print, say};
use anyhow::Result;
use assize_engine::store::{RunDirectory, ShardRecord, runs_below};
use serde_json::{Value, json};

/// The trials of every shard, by its number from 1.
pub(super) struct Progress {
    shards: Vec<Option<ShardProgress>>,
    /// The facts that they know about earlier rounds.
    round: Option<RoundRecord>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ShardProgress {
    pub(super) done: u64,
    pub(super) planned: u64,
}

impl Progress {
    pub(super) fn of(submission: &Submission) -> Result<Self> {
        let mut progress = Self {
            shards: vec![None; submission.shards as usize],
            round: submission.round()?,
        };
        if progress.is_finished() {
            return Ok(progress);
        }
        // Runs of earlier rounds are merged and done with.
        let round = progress.round.as_ref().map(|record| record.round);
        let is_now = |number: Option<u32>| number.is_none() || number == round;
        for path in runs_below(&submission.shards_directory())? {
            let run = RunDirectory::open(&path)?;
            let record = run.manifest().shard.as_ref();
            let number = |record: &ShardRecord| record.round.as_ref().map(|round| round.number);
            if let Some(record) = record.filter(|record| is_now(number(record))) {
                let done = run.counts()?.rows;
                progress.note(record.shard.index, done, record.cells);
            }
        }
        if let Some(url) = &submission.results {
            for parts in results::progress(url)? {
                if is_now(parts.round) {
                    progress.note(parts.shard, parts.done, parts.planned);
                }
            }
        }
        Ok(progress)
    }

    /// Of several runs of one shard the most complete one counts.
    fn note(&mut self, shard: u32, done: u64, planned: u64) {
        let place = (shard as usize)
            .checked_sub(1)
            .and_then(|place| self.shards.get_mut(place));
        if let Some(known) = place
            && known.is_none_or(|known| known.done < done || known.planned == 0)
        {
            *known = Some(ShardProgress { done, planned });
        }
    }

    /// The merged run needs no further trial.
    fn is_finished(&self) -> bool {
        self.round.as_ref().is_some_and(|record| record.is_finished)
    }

    fn is_done(shard: Option<ShardProgress>) -> bool {
        shard.is_some_and(|shard| shard.done >= shard.planned)
    }

    /// Shards with open trials, by number.
    pub(super) fn open_shards(&self) -> Vec<u32> {
        if self.is_finished() {
            return Vec::new();
        }
        let shards = self.shards.iter().zip(1..);
        shards
            .filter(|(shard, _)| !Self::is_done(**shard))
            .map(|(_, number)| number)
            .collect()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.open_shards().is_empty()
    }

    fn trials(&self) -> u64 {
        self.shards.iter().flatten().map(|shard| shard.done).sum()
    }

    pub(super) fn described(&self, submission: &Submission, active: Activity) -> Value {
        json!({
            "id": submission.id,
            "directory": submission.directory,
            "on": submission.on,
            "job": submission.job,
            "shards": submission.shards,
            "running": active.running,
            "waiting": active.waiting,
            "complete": self.shards.len() - self.open_shards().len(),
            "trials": self.trials(),
            "open": self.open_shards(),
            "round": self.round.as_ref().and_then(|record| record.of.map(|_| record.round)),
        })
    }

    pub(super) fn show(&self, submission: &Submission, active: Activity) {
        let open = self.open_shards();
        print(format!("submission {}", plain(&submission.id)));
        print(format!(
            "job        {} {}",
            submission.on.job_word(),
            submission.job.as_deref().unwrap_or("none")
        ));
        print(format!(
            "scheduler  {} running, {} waiting",
            active.running, active.waiting
        ));
        print(format!(
            "shards     {} of {} complete, {} trials done",
            self.shards.len() - open.len(),
            self.shards.len(),
            self.trials()
        ));
        if submission.on == SchedulerArgument::Kubernetes && submission.results.is_none() {
            say("trials on a volume of the cluster are not seen from here");
            return;
        }
        if let Some(record) = &self.round
            && let Some(of) = record.of
        {
            print(format!("round      {} of {of}", record.round));
        }
        let directory = plain(&submission.directory.display().to_string());
        match (open.is_empty(), active.running + active.waiting) {
            (true, _) => say(format!("next:\n  assize submit collect {directory}")),
            (false, 0) => {
                let named: Vec<String> = open.iter().take(20).map(ToString::to_string).collect();
                let more = if open.len() > 20 { " …" } else { "" };
                say(format!(
                    "unfinished, and nothing runs any more: shards {}{more}\nlogs: {directory}/logs\nto submit them again:\n  assize submit retry {directory}",
                    named.join(", ")
                ));
            }
            _ => {}
        }
    }
}
