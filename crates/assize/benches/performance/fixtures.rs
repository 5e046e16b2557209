//! Suites, files and runs to measure with.

use crate::measure::{Samples, Usage, of};
use assize_contracts::Timestamp;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// A suite in a directory of its own.
pub(crate) struct Suite(TempDir);

impl Suite {
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("assize.yaml"), text).unwrap();
        fs::write(directory.path().join("s.yaml"), SCENARIO).unwrap();
        Self(directory)
    }

    /// `true`, in a workspace if files are given.
    pub(crate) fn of_programs(files: Option<&dyn Fn(&Path)>) -> Self {
        let suite = Self::new(PROGRAM);
        if let Some(fill) = files {
            fill(&suite.source());
            suite.work_in("from: source");
        }
        suite
    }

    /// `true`, without a wall.
    pub(crate) fn of_unguarded_programs() -> Self {
        Self::new(&format!("{PROGRAM}sandbox: none\n"))
    }

    /// A program that prints so many bytes of text, with so many secrets in its environment.
    pub(crate) fn of_output(bytes: usize, secrets: u32) -> Self {
        // Unlike each other from the first character on, as keys are.
        let variables = (0..secrets).map(|number| {
            let value = noise(number + 9_000, 20);
            let value: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("KEY_{number}: {{ value: k{value}, secret: true }}")
        });
        let variables = variables.collect::<Vec<_>>().join(", ");
        let suite = Self::new(
            &PROGRAM
                .replace("'true'", "cat, '{suite}/output.txt'")
                .replace("a: {}", &format!("a: {{ environment: {{ {variables} }} }}")),
        );
        let line = "running 3 tests ... ok; see src/lib.rs:42 for the rest of what happened\n";
        let output = line.repeat(bytes / line.len());
        fs::write(suite.path().join("output.txt"), output).unwrap();
        suite
    }

    /// `true`, in the checkout of a repository of so many megabytes.
    pub(crate) fn of_repository(megabytes: u32) -> Self {
        let suite = Self::new(PROGRAM);
        suite.work_in("git: { repo: source, ref: HEAD }");
        let source = suite.source();
        // Bytes that do not compress, in as many files as a large project has.
        for number in 0..megabytes * 20 {
            let parent = source.join((number / 100).to_string());
            fs::create_dir_all(&parent).unwrap();
            fs::write(parent.join(number.to_string()), noise(number, 50_000)).unwrap();
        }
        for arguments in [
            &["init", "-q"][..],
            &["add", "."],
            &[
                "-c",
                "user.name=n",
                "-c",
                "user.email=e@example.org",
                "commit",
                "-qm",
                "all",
            ],
        ] {
            let status = Command::new("git")
                .args(arguments)
                .current_dir(&source)
                .status();
            assert!(status.unwrap().success());
        }
        suite
    }

    /// Simulated sessions of ten scenarios in two modes.
    pub(crate) fn of_trials() -> Self {
        Self::of_traced_trials(false)
    }

    /// The same with the choice to store traces.
    pub(crate) fn of_traced_trials(store_traces: bool) -> Self {
        let suite = Self::new(&format!(
            "provider: {{ uses: simulated, latency_ms: 0, tool_calls: 10, events: 50, turns: 4 }}\n\
             modes: {{ a: {{}}, b: {{}} }}\nscenarios: {{ paths: ['s[0-9].yaml'] }}\n\
             execution: {{ warmup: false }}\noutput: {{ store_traces: {store_traces} }}\n"
        ));
        for number in 0..10 {
            let text = format!(
                "id: s{number}\nprompt: do it\nchecks: [ {{ output: {{ contains: done }} }} ]\n"
            );
            fs::write(suite.path().join(format!("s{number}.yaml")), text).unwrap();
        }
        suite
    }

    /// Tasks with three evaluators.
    pub(crate) fn of_tasks(count: u32) -> Self {
        let suite = Self::new(
            "modes: { table: {} }\ntasks: { paths: [tasks.jsonl] }\n\
             runners: [ { id: table, uses: rules, type: intent, config: { rules: [ { when: { contains: flight }, output: { intent: book_flight, confidence: 0.95 } } ] } } ]\n\
             evaluators: [ { id: exact, uses: exact, config: { path: intent } }, { id: sure, uses: threshold, config: { path: confidence, at_least: 0.9 } }, { id: speed, uses: latency } ]\n\
             execution: { warmup: false }\n",
        );
        let mut lines = String::new();
        for number in 0..count {
            let _ = writeln!(
                lines,
                "{{\"id\":\"task-{number}\",\"input\":\"book a flight to city {number}\",\"expected\":{{\"intent\":\"book_flight\",\"confidence\":0.9}}}}"
            );
        }
        fs::write(suite.path().join("tasks.jsonl"), lines).unwrap();
        suite
    }

    /// Gives the scenario a workspace.
    fn work_in(&self, workspace: &str) {
        let text = format!("{SCENARIO}workspace: {{ {workspace} }}\n");
        fs::write(self.path().join("s.yaml"), text).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The files of the workspace.
    pub(crate) fn source(&self) -> PathBuf {
        self.path().join("source")
    }

    pub(crate) fn assize(&self, arguments: &[&str]) -> Usage {
        of(self.path(), &program(), arguments)
    }

    /// A run with so many repetitions.
    pub(crate) fn run(&self, repetitions: u32) -> Usage {
        self.assize(&["run", "-q", "--yes", "-n", &repetitions.to_string()])
    }

    /// Processor time of an attempt, after the first one of a run with so many more: what is prepared once is no part of it, and
    /// differs from run to run by more than all attempts take.
    pub(crate) fn cpu_of_attempt(&self, more: u32) -> f64 {
        let repetitions = (more + 1).to_string();
        let arguments = ["run", "-q", "--yes", "-n", &repetitions];
        let samples = Samples::of(self.path(), &program(), &arguments);
        let rows = fs::read_to_string(self.last_run().join("rows.jsonl")).unwrap();
        let rows = rows.lines().map(|row| {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let completed = Timestamp::from(row["completedAt"].as_str().unwrap().to_owned());
            let since_1970 = Duration::from_millis(completed.unix_ms().unwrap() as u64);
            UNIX_EPOCH + since_1970
        });
        let completed: Vec<SystemTime> = rows.collect();
        let (first, last) = (completed.iter().min(), completed.iter().max());
        samples.between(*first.unwrap(), *last.unwrap()) / f64::from(more)
    }

    pub(crate) fn last_run(&self) -> PathBuf {
        let runs = fs::read_dir(self.path().join(".assize/runs")).unwrap();
        let runs = runs.map(|entry| entry.unwrap().path());
        runs.filter(|path| path.join("manifest.json").exists())
            .max()
            .unwrap()
    }

    /// The last run under other ids, until there are so many.
    pub(crate) fn copy_last_run(&self, runs: u32) {
        let from = self.last_run();
        let id = from.file_name().unwrap().to_str().unwrap();
        for number in 1..runs {
            let copied = format!("{}-{number:04x}", &id[..id.len() - 5]);
            let to = from.with_file_name(&copied);
            let _ = fs::create_dir(&to);
            fs::copy(from.join("rows.jsonl"), to.join("rows.jsonl")).unwrap();
            let manifest = fs::read_to_string(from.join("manifest.json")).unwrap();
            fs::write(to.join("manifest.json"), manifest.replace(id, &copied)).unwrap();
        }
    }
}

/// The program that is measured: the one that was built with this, unless `ASSIZE_MEASURED` names another build of it.
fn program() -> String {
    let other = std::env::var("ASSIZE_MEASURED").ok();
    other.unwrap_or_else(|| env!("CARGO_BIN_EXE_assize").to_owned())
}

const SCENARIO: &str = "id: s\nprompt: p\n";

const PROGRAM: &str = "provider: { uses: command, command: ['true'] }\nmodes: { a: {} }\n\
     scenarios: { paths: ['s.yaml'] }\nexecution: { warmup: false }\noutput: { store_traces: false }\n";

/// Files of one size, a hundred in a directory.
pub(crate) fn files(directory: &Path, count: u32, size: usize) {
    for number in 0..count {
        let parent = directory.join((number / 100).to_string());
        fs::create_dir_all(&parent).unwrap();
        fs::write(parent.join(number.to_string()), noise(number, size)).unwrap();
    }
}

/// Bytes that differ from file to file.
fn noise(seed: u32, size: usize) -> Vec<u8> {
    let mut state = u64::from(seed) + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..size).map(|_| next()).collect()
}

/// Bytes of everything in a run.
pub(crate) fn bytes_of_rows_and_tables(run: &Path) -> u64 {
    let entries = fs::read_dir(run)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| match path.is_dir() {
            true => bytes_of_rows_and_tables(&path),
            false => path.metadata().unwrap().len(),
        })
        .sum()
}
