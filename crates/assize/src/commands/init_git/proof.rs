//! Runs the tests of a commit before and after its change, as the check of the task will run them.

use super::super::project_tests::{Tests, quoted, tests_by_language, tests_of};
use super::commits::{Candidate, Commit};
use crate::programs::KeptCommands;
use crate::terminal::one_line;
use assize_contracts::ScorerContext;
use assize_measures::{CheckPlace, CommandOutcome, CommandRunner, CommandSpec};
use assize_process::workspace::{Draft, Workspaces};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Tests that take no longer are run twice, to see whether they always say the same.
const RUN_AGAIN_UNDER: Duration = Duration::from_secs(20);

/// The means of a proof.
pub(super) struct Prover<'a> {
    pub(super) workspaces: &'a Workspaces,
    pub(super) repository: &'a Path,
    /// The user's test command; `{files}` in it are the test files.
    pub(super) test: Option<&'a str>,
    /// Time for each command.
    pub(super) timeout: Duration,
    /// The end of all proofs.
    pub(super) deadline: Instant,
}

/// Evidence that a commit makes a task.
pub(super) struct Proof {
    pub(super) run: String,
    /// Installs what the tests need, in the workspace.
    pub(super) install: Option<String>,
    pub(super) before: Ended,
    pub(super) after: Ended,
}

/// The end of one run of the tests.
pub(super) struct Ended {
    pub(super) exit: Option<i32>,
    pub(super) took: Duration,
    /// The last line that it printed.
    pub(super) last_words: String,
}

impl Ended {
    fn is_success(&self) -> bool {
        self.exit == Some(0)
    }
}

impl Prover<'_> {
    /// Tests that fail before the change and pass after it. `Err` says why the commit makes no task.
    pub(super) async fn prove(
        &self,
        commit: &Commit,
        candidate: &Candidate,
    ) -> Result<Proof, String> {
        let hidden = self.hidden_files(candidate)?;
        let after = self.checkout(&commit.id).await?;
        let tests = self.tests(after.path(), candidate)?;
        let run = with_removals(&tests.run, &candidate.removed_tests);
        let state = |place| State {
            place,
            run: &run,
            files: &hidden.files,
        };
        let fixed = state(after.path());
        self.install(&tests, &fixed).await?;
        let passed = self.run(&fixed).await?;
        if !passed.is_success() {
            return Err(format!(
                "its tests do not pass with its own code: {}",
                words(&passed)
            ));
        }
        let before = self.checkout(&candidate.parent).await?;
        let broken = state(before.path());
        self.install(&tests, &broken).await?;
        let failed = self.run(&broken).await?;
        match failed.exit {
            Some(0) => return Err("its tests pass without its code".to_owned()),
            Some(126 | 127) => {
                return Err(format!(
                    "its tests could not be run before it: {}",
                    words(&failed)
                ));
            }
            None => {
                return Err(format!(
                    "its tests do not end before it: {}",
                    words(&failed)
                ));
            }
            Some(_) => {}
        }
        if failed.took.max(passed.took) < RUN_AGAIN_UNDER {
            let again = (self.run(&fixed).await?, self.run(&broken).await?);
            if !again.0.is_success() || again.1.is_success() {
                return Err("its tests say something else when they are run again".to_owned());
            }
        }
        Ok(Proof {
            run,
            install: tests.install,
            before: failed,
            after: passed,
        })
    }

    async fn checkout(&self, revision: &str) -> Result<Draft, String> {
        let checkout = self.workspaces.checkout(self.repository, revision).await;
        checkout.map_err(|error| format!("it cannot be checked out: {}", error.explained()))
    }

    fn tests(&self, top: &Path, candidate: &Candidate) -> Result<Tests, String> {
        let files: Vec<&str> = candidate
            .tests
            .iter()
            .map(|file| file.path.as_str())
            .collect();
        if let Some(template) = self.test {
            let names: Vec<String> = files.iter().map(|name| quoted(name)).collect();
            return Ok(Tests {
                run: template.replace("{files}", &names.join(" ")),
                install: tests_of(top).and_then(|tests| tests.install),
                found_in: "--test",
            });
        }
        let is_rust = |name: &&str| name.ends_with(".rs");
        let found =
            tests_of(top).filter(|tests| tests.run != "cargo test" || files.iter().any(is_rust));
        found
            .map(|tests| tests.narrowed(top, &files))
            .or_else(|| tests_by_language(top, &files))
            .ok_or_else(|| {
                "no command to run its tests was found; `--test COMMAND` names one".to_owned()
            })
    }

    /// Puts the tests where checks take hidden files from.
    fn hidden_files(&self, candidate: &Candidate) -> Result<HiddenFiles, String> {
        let failed = |error: std::io::Error| format!("its tests cannot be kept: {error}");
        let place = assize_secrets::private_directory("assize-proof-").map_err(failed)?;
        let mut files = BTreeMap::new();
        for (number, test) in candidate.tests.iter().enumerate() {
            let source = place.path().join(number.to_string());
            super::super::init::write_file(&source, &test.content, test.is_program)
                .map_err(|error| error.to_string())?;
            files.insert(test.path.clone(), source);
        }
        Ok(HiddenFiles {
            files,
            _place: place,
        })
    }

    async fn install(&self, tests: &Tests, state: &State<'_>) -> Result<(), String> {
        let Some(line) = &tests.install else {
            return Ok(());
        };
        let nothing = BTreeMap::new();
        let ended = self
            .run(&State {
                run: line,
                files: &nothing,
                place: state.place,
            })
            .await?;
        match ended.is_success() {
            true => Ok(()),
            false => Err(format!("`{line}` does not succeed: {}", words(&ended))),
        }
    }

    async fn run(&self, state: &State<'_>) -> Result<Ended, String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(OUT_OF_TIME.to_owned());
        }
        let started = Instant::now();
        let spec = CommandSpec {
            run: state.run,
            workspace: state.place,
            files: state.files,
            timeout: self.timeout.min(left),
            environment: &BTreeMap::new(),
            place: CheckPlace::Host,
            context: &ScorerContext::default(),
        };
        let outcome = KeptCommands.run(&spec).await;
        let CommandOutcome { exit, output } = outcome.map_err(|error| error.to_string())?;
        Ok(Ended {
            exit,
            took: started.elapsed(),
            last_words: last_words(&output),
        })
    }
}

/// The reason of commits that were not tried.
pub(super) const OUT_OF_TIME: &str = "the time for proofs was over; `--minutes N` gives more";

/// Test files outside of every workspace.
struct HiddenFiles {
    /// Path in the workspace to path of the source.
    files: BTreeMap<String, PathBuf>,
    _place: tempfile::TempDir,
}

/// A checkout, and how it is tested.
struct State<'a> {
    place: &'a Path,
    run: &'a str,
    files: &'a BTreeMap<String, PathBuf>,
}

/// Tests that the commit removes would still be there in the agent's workspace.
fn with_removals(run: &str, removed: &[String]) -> String {
    if removed.is_empty() {
        return run.to_owned();
    }
    let names: Vec<String> = removed.iter().map(|name| quoted(name)).collect();
    format!("rm -f {} && {run}", names.join(" "))
}

/// The end of a run in words.
pub(super) fn words(ended: &Ended) -> String {
    let exit = match ended.exit {
        Some(code) => format!("exit code {code}"),
        None => "time ran out".to_owned(),
    };
    match ended.last_words.as_str() {
        "" => exit,
        words => format!("{exit}, `{words}`"),
    }
}

fn last_words(output: &str) -> String {
    let lines = output.lines().rev().map(|line| one_line(line, 160));
    let is_telling = |line: &String| line.chars().any(char::is_alphanumeric);
    lines.into_iter().find(is_telling).unwrap_or_default()
}
