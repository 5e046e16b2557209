//! A directory with a suite of programs, temporary files of its own, and a look at who is alive.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Long enough for a loaded machine; nothing waits for it unless something is broken.
const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct Sandbox {
    directory: tempfile::TempDir,
}

impl Sandbox {
    /// Files by path and content.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let sandbox = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(sandbox.path("tmp")).unwrap();
        for (name, content) in files {
            sandbox.write(name, content);
        }
        sandbox
    }

    /// One scenario under one mode of a shell script as agent; three lines of settings each.
    pub(crate) fn of(script: &str, suite: &str, scenario: &str) -> Self {
        let argv = serde_json::to_string(&["sh", "-c", script]).unwrap();
        let suite = format!(
            "modes: {{ shell: {{ provider: {{ uses: command, command: {argv} }} }} }}\n\
             scenarios: {{ paths: [s.yaml] }}\n{suite}\n"
        );
        let scenario = format!("id: s\nprompt: hello\n{scenario}\n");
        Self::new(&[("assize.yaml", &suite), ("s.yaml", &scenario)])
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn assize(&self, arguments: &[&str]) -> Command {
        let mut command = crate::support::assize(self.directory.path());
        command
            .args(arguments)
            .env("TMPDIR", self.path("tmp"))
            .env("ASSIZE_MARK", self.mark())
            .stdin(Stdio::null());
        command
    }

    /// Runs to the end, which must be a good one.
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let output = self.assize(arguments).output().unwrap();
        assert!(output.status.success(), "{}", words(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Its message when it refuses.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let output = self.assize(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", words(&output));
        String::from_utf8(output.stderr).unwrap()
    }

    /// Runs the suite and gives its rows. A run in which nothing was judged ends with 5.
    pub(crate) fn run(&self, arguments: &[&str]) -> Vec<Value> {
        let arguments = [&["run", "-q", "--skip-warmup"], arguments].concat();
        let output = self.assize(&arguments).output().unwrap();
        assert!(
            [Some(0), Some(5)].contains(&output.status.code()),
            "{}",
            words(&output)
        );
        let rows = self.rows();
        let is_judged = rows.iter().any(|row| row["outcome"] != "void");
        assert_eq!(output.status.success(), is_judged, "{}", words(&output));
        rows
    }

    pub(crate) fn rows(&self) -> Vec<Value> {
        let rows = std::fs::read_to_string(self.last_run().join("rows.jsonl")).unwrap();
        rows.lines()
            .map(|row| serde_json::from_str(row).unwrap())
            .collect()
    }

    pub(crate) fn last_run(&self) -> PathBuf {
        let runs = std::fs::read_dir(self.path(".assize/runs")).unwrap();
        let runs = runs.map(|run| run.unwrap().path());
        // Baselines lie among them.
        let runs = runs.filter(|run| run.join("manifest.json").exists());
        runs.max().unwrap()
    }

    /// The trace of the trial at this position.
    pub(crate) fn trace(&self, position: u64) -> Value {
        let shown = self.done(&["show", &format!("last/{position}"), "--json"]);
        serde_json::from_str::<Value>(&shown).unwrap()["trace"].clone()
    }

    /// Directories of workspaces that are still there.
    pub(crate) fn left_workspaces(&self) -> Vec<PathBuf> {
        let roots = list(&self.path("tmp"));
        let roots = roots.iter().filter(|path| path.is_dir());
        roots.flat_map(|root| list(root)).collect()
    }

    fn mark(&self) -> String {
        self.directory.path().display().to_string()
    }

    /// The living processes that know this sandbox: Assize and, with `pass_env: [ASSIZE_MARK]`, its programs.
    pub(crate) fn living(&self) -> usize {
        let mark = format!("ASSIZE_MARK={}\0", self.mark());
        let environment =
            |process: &PathBuf| std::fs::read(process.join("environ")).unwrap_or_default();
        let knows = |process: &&PathBuf| {
            environment(process)
                .windows(mark.len())
                .any(|part| part == mark.as_bytes())
        };
        list(Path::new("/proc")).iter().filter(knows).count()
    }
}

pub(crate) fn await_true(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < DEADLINE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn words(output: &Output) -> String {
    format!(
        "{}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn list(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}
