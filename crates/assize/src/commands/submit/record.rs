//! The record of a submission: a directory with the job file, the shards, their logs, and `submission.json`.

use crate::cli::SchedulerArgument;
use crate::commands::rounds::RoundRecord;
use crate::commands::{Obstructed, UsageError};
use crate::private;
use anyhow::{Context, Result};
use assize_contracts::Timestamp;
use assize_engine::store::RunFile;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};

const FILE: &str = "submission.json";
const ENVIRONMENT: &str = "environment";

/// Everything that is needed to look after a submission later. Holds no value of any environment variable.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Submission {
    pub(super) id: String,
    pub(super) on: SchedulerArgument,
    pub(super) created_at: Timestamp,
    /// The suite file, by its absolute path.
    pub(super) suite: PathBuf,
    pub(super) shards: u32,
    /// The job in the words of its scheduler. Absent before it is submitted.
    pub(super) job: Option<String>,
    /// Job file in the directory.
    pub(super) job_file: String,
    /// Flags of `assize run` for every shard.
    pub(super) run_flags: Vec<String>,
    /// Names of the variables that shards get.
    pub(super) variables: Vec<String>,
    /// The object store that shards upload to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) results: Option<String>,
    /// The namespace of a Kubernetes job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    /// The Python that drives a Ray job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) python: Option<PathBuf>,
    /// Looks or limits are declared, so that shards read `round.json`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_rounds: bool,
    #[serde(skip)]
    pub(super) directory: PathBuf,
}

impl Submission {
    /// Makes the directory; only this user may look into it.
    pub(super) fn create(&self) -> Result<()> {
        for directory in [self.directory.clone(), self.shards_directory(), self.logs()] {
            private::directory(&directory)
                .with_context(|| format!("cannot create `{}`", directory.display()))?;
        }
        if self.has_rounds {
            self.write_file(RunFile::Round.name(), &RoundRecord::first().text())?;
        }
        self.write()
    }

    pub(super) fn write(&self) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        self.write_file(FILE, &text)
    }

    /// Writes a file that only this user can read, at once.
    pub(super) fn write_file(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.directory.join(name);
        let beside = self.directory.join(format!(".{name}.new"));
        let written = private::file(&beside)
            .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_data()))
            .and_then(|()| std::fs::rename(&beside, &path));
        written.with_context(|| format!("cannot write `{}`", path.display()))
    }

    /// A submission by its id, a part of it, `last`, or its directory.
    pub(super) fn find(all: &Path, wanted: &str) -> Result<Self> {
        if Path::new(wanted).join(FILE).is_file() {
            return Self::read(Path::new(wanted));
        }
        let mut found: Vec<PathBuf> = std::fs::read_dir(all)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.join(FILE).is_file())
            .collect();
        found.sort();
        let name = |path: &PathBuf| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        if wanted != "last" {
            found.retain(|path| name(path).contains(wanted));
            if found.len() > 1 {
                let names: Vec<String> = found.iter().map(name).collect();
                let message = format!(
                    "`{wanted}` fits {} submissions: {}",
                    names.len(),
                    names.join(", ")
                );
                return Err(UsageError::new(message).into());
            }
        }
        match found.pop() {
            Some(path) => Self::read(&path),
            None => Err(Obstructed {
                message: format!("no submission `{wanted}` in `{}`", all.display()),
                hint: "give its directory, or `--suite PATH` for the suite that was submitted"
                    .to_owned(),
            }
            .into()),
        }
    }

    fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(FILE);
        let text =
            std::fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let read: Self = serde_json::from_slice(&text)
            .with_context(|| format!("`{}` is not a submission", path.display()))?;
        let directory = std::path::absolute(directory)?;
        Ok(Self { directory, ..read })
    }

    /// The directory of the shards' runs.
    pub(super) fn shards_directory(&self) -> PathBuf {
        self.directory.join("shards")
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    /// The merged run, unless it is wanted elsewhere.
    pub(super) fn merged(&self) -> PathBuf {
        self.directory.join("merged")
    }

    /// The file with the facts about earlier rounds that the present shards need.
    pub(super) fn round_file(&self) -> PathBuf {
        RunFile::Round.within(&self.directory)
    }

    /// The round that shards run now. Absent where no looks are declared, or nothing was merged.
    pub(super) fn round(&self) -> Result<Option<RoundRecord>> {
        match self.has_rounds {
            true => RoundRecord::read(&self.round_file()).map(Some),
            false => Ok(None),
        }
    }

    /// The file with values of environment variables, while shards need it.
    pub(super) fn environment_file(&self) -> PathBuf {
        self.directory.join(ENVIRONMENT)
    }

    pub(super) fn write_environment(&self, content: &str) -> Result<()> {
        self.write_file(ENVIRONMENT, content.as_bytes())
    }

    /// Removes the values; called when no shard needs them any more.
    pub(super) fn remove_environment(&self) -> Result<()> {
        let path = self.environment_file();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove `{}`", path.display()))
            }
            _ => Ok(()),
        }
    }
}
