//! A directory with a suite whose agent lives in a container, and what podman says.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The image that `tests/containers/install.sh` makes.
pub(crate) const IMAGE: &str = "localhost/assize-test:1";

pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// One scenario under one mode of a shell script as agent.
    pub(crate) fn of(script: &str, suite: &str, scenario: &str) -> Self {
        let place = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let argv = serde_json::to_string(&["sh", "-c", script]).unwrap();
        place.write(
            "assize.yaml",
            &format!(
                "modes: {{ shell: {{ environment: {{ SOME_KEY: abc }}, provider: {{ uses: command, command: {argv} }} }} }}\n\
                 scenarios: {{ paths: [s.yaml] }}\n{suite}\n"
            ),
        );
        place.write("s.yaml", &format!("id: s\nprompt: hello\n{scenario}\n"));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn append(&self, name: &str, content: &str) {
        let before = std::fs::read_to_string(self.path(name)).unwrap();
        self.write(name, &(before + content));
    }

    pub(crate) fn replace(&self, name: &str, what: &str, by: &str) {
        let before = std::fs::read_to_string(self.path(name)).unwrap();
        assert!(before.contains(what), "`{what}` is not in {before}");
        self.write(name, &before.replace(what, by));
    }

    pub(crate) fn make_executable(&self, name: &str) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The Harbor tasks of `tests/containers/tasks`.
    pub(crate) fn copy_tasks(&self) {
        let tasks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/containers/tasks");
        let copied = Command::new("cp")
            .arg("-R")
            .arg(tasks)
            .arg(self.path("tasks"))
            .status();
        assert!(copied.unwrap().success());
    }

    pub(crate) fn assize(&self, arguments: &[&str]) -> Command {
        let program = std::env::var("ASSIZE_TEST_STATIC");
        let program = program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_assize").to_owned());
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Vec<Value> {
        let arguments = [&["run", "-q", "--skip-warmup"], arguments].concat();
        self.rows_of(self.assize(&arguments).output().unwrap())
    }

    pub(crate) fn run_with(&self, variable: &str, value: &str) -> Vec<Value> {
        let mut run = self.assize(&["run", "-q", "--skip-warmup"]);
        self.rows_of(run.env(variable, value).output().unwrap())
    }

    fn rows_of(&self, output: Output) -> Vec<Value> {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!([Some(0), Some(5)].contains(&output.status.code()), "{said}");
        let rows = std::fs::read_to_string(self.last_run().join("rows.jsonl"));
        let rows = rows.unwrap_or_else(|error| panic!("{error}: {said}"));
        rows.lines()
            .map(|row| serde_json::from_str(row).unwrap())
            .collect()
    }

    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let output = self.assize(arguments).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let output = self.assize(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn has_run(&self) -> bool {
        self.path(".assize/runs").is_dir()
    }

    fn last_run(&self) -> PathBuf {
        let runs = std::fs::read_dir(self.path(".assize/runs")).unwrap();
        runs.map(|run| run.unwrap().path()).max().unwrap()
    }

    pub(crate) fn run_id(&self) -> String {
        self.last_run()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    }

    pub(crate) fn manifest(&self) -> Value {
        let text = std::fs::read_to_string(self.last_run().join("manifest.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

/// The output of podman. Absent when it fails.
pub(crate) fn podman(arguments: &[&str]) -> Option<String> {
    let output = Command::new("podman")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The containers of a run, by their label.
pub(crate) fn containers(run: &str) -> Vec<String> {
    let filter = format!("label=assize.run={run}");
    let names = podman(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]).unwrap();
    names.split_whitespace().map(str::to_owned).collect()
}

pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A label of an owner on this machine that has ended: the form is that of a living one, the start that of no process.
pub(crate) fn dead_owner() -> String {
    use std::os::unix::fs::MetadataExt;
    let read = |path: &str| std::fs::read_to_string(path).unwrap().trim().to_owned();
    let namespace = std::fs::metadata("/proc/self/ns/pid").unwrap().ino();
    let boot = read("/proc/sys/kernel/random/boot_id");
    format!(
        "{}:{boot}:{namespace}:{}:1",
        read("/etc/machine-id"),
        std::process::id()
    )
}

/// A service of Messages that always says the same.
pub(crate) struct Llm(TcpListener);

impl Llm {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.try_clone().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                std::thread::spawn(move || answer(&mut stream));
            }
        });
        Self(own)
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }
}

fn answer(stream: &mut std::net::TcpStream) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"));
        if body.len()
            >= length
                .and_then(|length| length.trim().parse().ok())
                .unwrap_or(0)
        {
            break;
        }
    }
    let body = r#"{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"pong"}],"stop_reason":"end_turn","usage":{"input_tokens":11,"output_tokens":7}}"#;
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
}

/// Podman as a service that speaks docker's API.
pub(crate) struct Service {
    process: Child,
    pub(crate) address: String,
    _directory: tempfile::TempDir,
}

impl Service {
    pub(crate) fn start(kind: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = match kind {
            "unix" => format!("unix://{}/podman.sock", directory.path().display()),
            _ => {
                let free = TcpListener::bind("127.0.0.1:0").unwrap();
                format!("tcp://{}", free.local_addr().unwrap())
            }
        };
        let process = Command::new("podman")
            .args(["system", "service", "--time", "0", &address])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("podman serves docker's API", || {
            let asked = Command::new("docker")
                .arg("version")
                .env("DOCKER_HOST", &address)
                .output();
            asked.is_ok_and(|output| output.status.success())
        });
        Self {
            process,
            address,
            _directory: directory,
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The test image with the node of this machine in it, and the libraries that it needs.
pub(crate) fn node_image() -> String {
    let script = r#"
        set -e
        root=$(mktemp -d); trap 'rm -rf "$root"' EXIT
        node=$(readlink -f "$(command -v node)"); npm=$(readlink -f "$(command -v npm)")
        modules=$(dirname "$(dirname "$npm")")
        mkdir -p "$root/usr/local/bin" "$root/usr/local/lib/node_modules" "$root/etc/ssl/certs"
        cp "$node" "$root/usr/local/bin/node"
        cp -R "$modules" "$root/usr/local/lib/node_modules/npm"
        ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
        for library in $(ldd "$node" | grep -o '/[^ ]*'); do
            mkdir -p "$root$(dirname "$library")"; cp -L "$library" "$root$library"
        done
        mkdir -p "$root/usr/bin"; ln -s /bin/env "$root/usr/bin/env"
        cp -L "${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}" "$root/etc/ssl/certs/ca-certificates.crt" 2>/dev/null || true
        cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
        printf 'FROM localhost/assize-test:1\nCOPY . /\n' > "$root/Dockerfile"
        podman build --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 -q -t localhost/assize-test-node:1 "$root" >/dev/null
    "#;
    let made = Command::new("sh").args(["-c", script]).output().unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    "localhost/assize-test-node:1".to_owned()
}

/// The settings of npm on this machine, for npm inside.
pub(crate) fn npm_variables() -> Vec<String> {
    let registry = Command::new("npm")
        .args(["config", "get", "registry"])
        .output()
        .unwrap();
    let registry = String::from_utf8_lossy(&registry.stdout).trim().to_owned();
    // What the machine trusts, as `node_image` puts it there.
    let mut variables = vec![
        format!("NPM_CONFIG_REGISTRY={registry}"),
        "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt".to_owned(),
    ];
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"] {
        if let Ok(value) = std::env::var(name) {
            variables.push(format!("{name}={value}"));
        }
    }
    variables
}

/// The scripted LLM of `tests/fake-llm`, which orders one shell command.
pub(crate) struct ScriptedLlm {
    process: Child,
    pub(crate) port: u16,
}

impl ScriptedLlm {
    pub(crate) fn start(command: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fake-llm/fake_llm.py");
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let process = Command::new("python3")
            .arg(script)
            .args(["--port", &port.to_string(), "--command", command])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the scripted LLM listens", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self { process, port }
    }
}

impl Drop for ScriptedLlm {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
