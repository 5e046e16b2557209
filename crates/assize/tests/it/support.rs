//! Suites in temporary directories, and the program run on them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The program under test, in a directory and with a plain environment.
pub(crate) fn assize(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assize"));
    command
        .current_dir(directory)
        .env_remove("CLICOLOR_FORCE")
        .env_remove("GITHUB_STEP_SUMMARY")
        // The last run of one test is not that of another.
        .env("XDG_STATE_HOME", "/dev/null/none")
        .env("NO_COLOR", "1");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ASSIZE_")) {
        command.env_remove(name);
    }
    command
}

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A directory with a suite of two simulated modes and two scenarios that runs in no time.
pub(crate) struct Suite(pub(crate) TempDir);

pub(crate) const SUITE: &str = "\
provider: { uses: simulated, latency_ms: 0 }
modes: { plain: {}, other: {} }
scenarios: { paths: ['scenarios/*.yaml'] }
execution: { repetitions: 3 }
";

impl Suite {
    pub(crate) fn new() -> Self {
        Self::of(SUITE)
    }

    pub(crate) fn of(suite: &str) -> Self {
        let made = Self(TempDir::new().unwrap());
        made.write("assize.yaml", suite);
        made.write(
            "scenarios/one.yaml",
            "id: one\nprompt: do one thing\ntags: [small]\n",
        );
        made.write("scenarios/two.yaml", "id: two\nprompt: do two things\n");
        made
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn assize(&self, arguments: &[&str]) -> Outcome {
        assize(self.path()).args(arguments).output().unwrap().into()
    }

    /// Runs a command that must end well and gives its stdout.
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let outcome = self.assize(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:#?}");
        outcome.stdout
    }

    /// The newest run's directory.
    pub(crate) fn run_directory(&self) -> PathBuf {
        let mut runs: Vec<PathBuf> = std::fs::read_dir(self.path().join(".assize/runs"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.join("manifest.json").exists())
            .collect();
        runs.sort();
        runs.pop().unwrap()
    }

    pub(crate) fn rows(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.run_directory().join("rows.jsonl")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}
