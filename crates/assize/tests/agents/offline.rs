//! A directory with a suite, and the program run on it in a network namespace where only the scripted LLM answers.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

/// The address of the scripted LLM inside the namespace.
pub(crate) const LLM: &str = "http://127.0.0.1:8099";

pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// An installed agent.
pub(crate) fn program(name: &str) -> PathBuf {
    programs().join(name)
}

/// True when other versions than the pinned ones are asked for.
pub(crate) fn has_own_programs() -> bool {
    std::env::var_os("ASSIZE_TEST_AGENTS").is_some()
}

fn programs() -> PathBuf {
    let own = std::env::var_os("ASSIZE_TEST_AGENTS").map(PathBuf::from);
    own.unwrap_or_else(|| repository().join(".cache/agents/bin"))
}

/// The reason why tests without a network cannot run here.
pub(crate) fn why_no_namespace() -> Option<String> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = || {
        let mount = ["mount", "--bind", "/dev/null", "/etc/resolv.conf"];
        let made = Command::new("unshare").arg("-rnm").args(mount).output();
        let said = match made {
            Ok(output) if output.status.success() => return None,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        Some(format!("no network namespace can be made here: {said}"))
    };
    REASON.get_or_init(reason).clone()
}

pub(crate) struct Offline {
    directory: TempDir,
    llm_options: Vec<String>,
    environment: Vec<(String, String)>,
}

/// Longer than anything here may take.
const LIMIT: Duration = Duration::from_secs(300);

impl Offline {
    /// Files by path and content.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let made = Self {
            directory: tempfile::tempdir().unwrap(),
            llm_options: Vec::new(),
            environment: Vec::new(),
        };
        made.write("tmp/.keep", "");
        made.write("home/.keep", "");
        for (name, content) in files {
            made.write(name, content);
        }
        made
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Runs a command beside the scripted LLM. Nothing that it starts may be left when it has ended.
    pub(crate) fn command(&self, argv: &[&str]) -> Output {
        let path = format!(
            "{}:{}",
            programs().display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let output = Command::new("unshare")
            .args(["-rnm", "python3"])
            .arg(repository().join("tests/fake-llm/offline.py"))
            .args(["--limit", &LIMIT.as_secs().to_string()])
            .args(["--names", "names.txt", "--left", "left.txt"])
            .args(["--log", "wire.jsonl"])
            .args(&self.llm_options)
            .arg("--")
            .args(argv)
            .current_dir(self.directory.path())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"))
            // Assize remembers its last run there; the home shows what agents leave.
            .env("XDG_STATE_HOME", self.path("state"))
            .env("TMPDIR", self.path("tmp"))
            .envs(self.environment.iter().cloned())
            .output()
            .unwrap();
        assert_eq!(self.read("left.txt"), "", "left behind by {argv:?}");
        output
    }

    /// The same with options for the scripted LLM.
    pub(crate) fn with_llm(mut self, options: &[&str]) -> Self {
        self.llm_options = options.iter().map(|&option| option.to_owned()).collect();
        self
    }

    /// The same with variables.
    pub(crate) fn with_environment(mut self, variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.environment = variables.iter().map(owned).collect();
        self
    }

    /// The same with one more variable.
    pub(crate) fn and_environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The program under test, which must end well.
    pub(crate) fn assize(&self, arguments: &[&str]) -> String {
        let output = self.command(&[&[env!("CARGO_BIN_EXE_assize")], arguments].concat());
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.status.success(), "{arguments:?}: {said}");
        said
    }

    /// Runs the suite and gives its rows.
    pub(crate) fn run(&self, arguments: &[&str]) -> Vec<Value> {
        let usual = [env!("CARGO_BIN_EXE_assize"), "run", "--quiet", "--yes"];
        let usual = [usual.as_slice(), &["--skip-warmup"], arguments].concat();
        let output = self.command(&usual);
        // 5: nothing was judged, which some tests are about.
        let is_over = matches!(output.status.code(), Some(0 | 5));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(is_over, "{arguments:?}: {said}");
        lines(&self.run_directory().join("rows.jsonl"))
    }

    pub(crate) fn run_directory(&self) -> PathBuf {
        let runs = std::fs::read_dir(self.path(".assize/runs")).unwrap();
        runs.map(|entry| entry.unwrap().path()).max().unwrap()
    }

    /// The trace of the trial at that position.
    pub(crate) fn trace(&self, position: usize) -> Value {
        let shown = self.command(&[
            env!("CARGO_BIN_EXE_assize"),
            "show",
            &format!("last/{position}"),
            "--json",
        ]);
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        shown["trace"].clone()
    }

    /// The requests and answers of the LLM.
    pub(crate) fn wire(&self) -> Vec<Value> {
        lines(&self.path("wire.jsonl"))
    }

    /// Hosts whose address was looked up.
    pub(crate) fn names(&self) -> String {
        let names = self.read("names.txt");
        // Cline's feature flags and metrics, which nothing turns off.
        let of_cline = ["data.cline.bot", "otel.cline.bot"];
        let unknown = names.lines().filter(|name| !of_cline.contains(name));
        unknown.collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(crate) fn only_the_scripted_llm_is_there() {
    let offline = Offline::new(&[]);
    let script = "import sys, urllib.request as u
print(u.urlopen(sys.argv[1] + '/v1/models').status)
try: u.urlopen('http://192.0.2.1/', timeout=5)
except OSError as e: print(e.reason.strerror)
try: u.urlopen('http://telemetry.example/', timeout=5)
except OSError as e: print('no such name')";
    let output = offline.command(&["python3", "-c", script, LLM]);
    let said = String::from_utf8(output.stdout).unwrap();
    let expected = "200\nNetwork is unreachable\nno such name\n";
    assert_eq!(said, expected, "{:?}", output.stderr);
    assert!(offline.names().contains("telemetry.example"));
    assert_eq!(offline.wire().len(), 1);
}

pub(crate) fn what_is_left_behind_is_seen() {
    let leave = ["sh", "-c", "setsid sleep 1000 > /dev/null 2>&1 &"];
    let offline = Offline::new(&[]);
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let seen = std::panic::catch_unwind(|| offline.command(&leave));
    std::panic::set_hook(quiet);
    assert!(seen.is_err());
    assert_eq!(offline.read("left.txt"), "sleep 1000\n");
}
