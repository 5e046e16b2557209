//! `assize submit`: job files, secrets, and the whole way with a stand-in for Slurm. The real schedulers are in tests/machines.

use crate::support::{Outcome, Suite, assize};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const SECRET: &str = "hunter2-correct-horse-battery";

const SUITE: &str = "\
name: nightly
provider: { uses: simulated, latency_ms: 0 }
modes:
  plain: {}
  other: { environment: { SERVICE_TOKEN: '${env:SERVICE_TOKEN}' } }
scenarios: { paths: ['scenarios/*.yaml'] }
execution: { repetitions: 4, warmup: false, concurrency: 2, limits: { simulated: 4 } }
";

/// Runs the elements of an array one after another, as Slurm would on one node: nothing of the submitter's environment comes along.
const SBATCH: &str = r##"#!/bin/sh
echo "sbatch $*" >> "$HOME/calls"
env >> "$HOME/seen-environment"
for script in "$@"; do :; done
array=$(sed -n 's/^#SBATCH --array=//p' "$script" | sed 's/%.*//')
case " $*" in *--array=*) array=$(echo "$*" | sed 's/.*--array=\([^ ]*\).*/\1/') ;; esac
for range in $(echo "$array" | tr , ' '); do
    for element in $(seq "${range%-*}" "${range#*-}"); do
        if [ -e "$HOME/fail-$element" ]; then continue; fi
        env -i SLURM_ARRAY_TASK_ID="$element" SLURM_ARRAY_JOB_ID=7 HOME=/nonexistent \
            sh "$script" > "$(dirname "$script")/logs/shard-$element.log" 2>&1 || echo "element $element: $?" >> "$HOME/calls"
    done
done
echo 7
"##;

struct Cluster {
    suite: Suite,
}

impl Cluster {
    fn new() -> Self {
        let suite = Suite::of(SUITE);
        for (name, script) in [
            ("sbatch", SBATCH),
            (
                "squeue",
                "#!/bin/sh\ncat \"$HOME/queue\" 2>/dev/null || true\n",
            ),
            (
                "scancel",
                "#!/bin/sh\necho \"scancel $*\" >> \"$HOME/calls\"\n",
            ),
        ] {
            let path = suite.write(&format!("bin/{name}"), script);
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { suite }
    }

    fn assize(&self, arguments: &[&str]) -> Outcome {
        let path = format!(
            "{}:{}",
            self.suite.path().join("bin").display(),
            std::env::var("PATH").unwrap()
        );
        let mut command = assize(self.suite.path());
        command
            .env("PATH", path)
            .env("HOME", self.suite.path())
            .env("SERVICE_TOKEN", SECRET);
        command.args(arguments).output().unwrap().into()
    }

    fn done(&self, arguments: &[&str]) -> Outcome {
        let outcome = self.assize(arguments);
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        outcome
    }

    fn submission(&self) -> PathBuf {
        let all = self.suite.path().join(".assize/submissions");
        let mut all: Vec<PathBuf> = std::fs::read_dir(all)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        all.sort();
        all.pop().unwrap()
    }

    fn calls(&self) -> String {
        std::fs::read_to_string(self.suite.path().join("calls")).unwrap_or_default()
    }
}

/// Files below a directory that hold the secret.
fn files_with_secret(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            let content = std::fs::read(&path).unwrap();
            let is_in = content
                .windows(SECRET.len())
                .any(|part| part == SECRET.as_bytes());
            if is_in {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn a_suite_goes_to_slurm_and_comes_back_as_one_run() {
    let cluster = Cluster::new();
    let submitted = cluster.done(&["submit", "--on", "slurm", "--shards", "3", "--", "-n", "2"]);
    assert!(submitted.stderr.contains("Slurm job 7"), "{submitted:#?}");
    let submission = cluster.submission();
    let environment = submission.join("environment");
    assert_eq!(
        std::fs::metadata(&environment)
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    assert_eq!(
        files_with_secret(cluster.suite.path()),
        [environment.as_path()]
    );

    let status = cluster.done(&["submit", "status", "--json"]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(
        (&status["complete"], &status["trials"]),
        (&3.into(), &8.into())
    );

    let collected = cluster.done(&["submit", "collect"]);
    assert!(collected.stdout.contains("report"), "{collected:#?}");
    assert!(submission.join("merged/report/report.html").exists());
    assert!(!environment.exists(), "collect removes the values");
    assert_eq!(
        files_with_secret(cluster.suite.path()),
        [""; 0].map(PathBuf::from)
    );
    let seen = std::fs::read_to_string(cluster.suite.path().join("seen-environment")).unwrap();
    assert!(
        !seen.contains("SERVICE_TOKEN"),
        "the scheduler's programs see none of it"
    );
}

#[test]
fn unfinished_shards_are_named_and_submitted_again() {
    let cluster = Cluster::new();
    cluster.suite.write("fail-2", "");
    cluster.done(&["submit", "--on", "slurm", "--shards", "3"]);
    let status = cluster.assize(&["submit", "status"]);
    assert_eq!(status.code, Some(5), "{status:#?}");
    assert!(status.stderr.contains("shards 2"), "{status:#?}");
    let collected = cluster.assize(&["submit", "collect"]);
    assert_eq!(collected.code, Some(5), "{collected:#?}");
    assert!(
        collected.stderr.contains("assize submit retry"),
        "{collected:#?}"
    );
    std::fs::remove_file(cluster.suite.path().join("fail-2")).unwrap();
    cluster.done(&["submit", "retry"]);
    assert!(
        cluster.calls().contains("--array=2 "),
        "{}",
        cluster.calls()
    );
    assert!(cluster.submission().join("environment").exists());
    let collected = cluster.done(&["submit", "collect"]);
    assert!(
        collected.stderr.contains("16 of 16 trials"),
        "{collected:#?}"
    );
    assert!(!cluster.submission().join("environment").exists());
}

#[test]
fn wait_collects_in_the_end_and_cancel_removes_the_values() {
    let cluster = Cluster::new();
    let waited = cluster.done(&["submit", "--on", "slurm", "--shards", "2", "--wait"]);
    assert!(waited.stderr.contains("16 of 16 trials"), "{waited:#?}");

    cluster.done(&["submit", "--on", "slurm", "--shards", "2"]);
    cluster.suite.write("queue", "RUNNING\nPENDING\n");
    let early = cluster.assize(&["submit", "collect"]);
    assert_eq!(early.code, Some(2), "{early:#?}");
    assert!(
        cluster.submission().join("environment").exists(),
        "shards still need it"
    );
    cluster.done(&["submit", "cancel"]);
    assert!(cluster.calls().contains("scancel 7"));
    assert!(!cluster.submission().join("environment").exists());
}

#[test]
fn a_submission_that_fails_leaves_no_values_behind() {
    let cluster = Cluster::new();
    cluster.suite.write(
        "bin/sbatch",
        "#!/bin/sh\necho 'no such partition' >&2\nexit 1\n",
    );
    let failed = cluster.assize(&["submit", "--on", "slurm", "--shards", "2"]);
    assert_eq!(failed.code, Some(1), "{failed:#?}");
    assert!(failed.stderr.contains("no such partition"), "{failed:#?}");
    assert_eq!(
        files_with_secret(cluster.suite.path()),
        [""; 0].map(PathBuf::from)
    );
}

#[test]
fn dry_runs_print_the_job_file_and_write_nothing() {
    let cluster = Cluster::new();
    for (on, expected) in [
        ("slurm", "#SBATCH --array=1-40%8"),
        ("kubernetes", "completionMode: Indexed"),
        ("ray", "def run_shard("),
    ] {
        let shown = cluster.done(&[
            "submit",
            "--on",
            on,
            "--shards",
            "40",
            "--at-once",
            "8",
            "--image",
            "registry/suite:1",
            "--claim",
            "results",
            "--dry-run",
        ]);
        assert!(shown.stdout.contains(expected), "{on}: {shown:#?}");
        assert!(
            !shown.stdout.contains(SECRET) && !shown.stderr.contains(SECRET),
            "{on}"
        );
    }
    assert!(!cluster.suite.path().join(".assize").exists());
    let lacking = cluster.assize(&["submit", "--on", "kubernetes", "--shards", "2", "--dry-run"]);
    assert_eq!(lacking.code, Some(2), "{lacking:#?}");
    assert!(lacking.stderr.contains("--image"), "{lacking:#?}");
    let own = cluster.assize(&[
        "submit", "--on", "slurm", "--shards", "2", "--", "--shard", "1/2",
    ]);
    assert_eq!(own.code, Some(2), "{own:#?}");
    let wrong = cluster.assize(&["submit", "--on", "slurm", "--shards", "2", "--", "--what"]);
    assert_eq!(wrong.code, Some(2), "{wrong:#?}");
    assert!(wrong.stderr.contains("flags after `--`"), "{wrong:#?}");
    let none = cluster.assize(&["submit", "--shards", "2"]);
    assert_eq!(none.code, Some(2), "{none:#?}");
}

#[test]
fn templates_are_plain_files() {
    let cluster = Cluster::new();
    let printed = cluster.done(&["submit", "template", "slurm"]);
    let own = printed.stdout.replace(
        "#SBATCH --requeue",
        "#SBATCH --partition=night\n#SBATCH --requeue",
    );
    cluster.suite.write("own.sh", own);
    let shown = cluster.done(&[
        "submit",
        "--on",
        "slurm",
        "--shards",
        "2",
        "--template",
        "own.sh",
        "--dry-run",
    ]);
    assert!(shown.stdout.contains("--partition=night"), "{shown:#?}");
    assert!(!shown.stdout.contains("{{"), "{shown:#?}");
    cluster
        .suite
        .write("wrong.sh", "#!/bin/sh\n{{shard_count}}\n");
    let wrong = cluster.assize(&[
        "submit",
        "--on",
        "slurm",
        "--shards",
        "2",
        "--template",
        "wrong.sh",
        "--dry-run",
    ]);
    assert_eq!(wrong.code, Some(2), "{wrong:#?}");
    assert!(
        wrong.stderr.contains("wrong.sh:2") && wrong.stderr.contains("known names"),
        "{wrong:#?}"
    );
}

/// The manifest is also read with the types of the Kubernetes API, by tests/machines.
#[test]
fn the_manifest_for_kubernetes_reads_as_it_did() {
    let cluster = Cluster::new();
    let shown = cluster.done(&[
        "submit",
        "--on",
        "kubernetes",
        "--shards",
        "40",
        "--at-once",
        "8",
        "--image",
        "registry.example/suite:1",
        "--claim",
        "results",
        "--suite-path",
        "/suite/assize.yaml",
        "--dry-run",
        "--",
        "-n",
        "5",
    ]);
    let id = regex_id(&shown.stdout);
    let manifest = shown.stdout.replace(&id, "ID");
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/machines/kubernetes/job.yaml");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &manifest).unwrap();
    }
    assert_eq!(manifest, std::fs::read_to_string(golden).unwrap());
    assert!(shown.stderr.contains("create secret generic"), "{shown:#?}");
    assert!(
        shown
            .stderr
            .contains("--from-literal=SERVICE_TOKEN=\"$SERVICE_TOKEN\""),
        "{shown:#?}"
    );
}

/// The id of the submission, without the suite's name.
fn regex_id(manifest: &str) -> String {
    let place = manifest.find("/results/").unwrap() + "/results/".len();
    manifest[place..]
        .chars()
        .take("20261118-010203-00ff".len())
        .collect()
}

#[test]
fn shards_upload_parts_resume_elsewhere_and_merge_from_a_store() {
    let suite = Suite::of(
        "provider: { uses: simulated, latency_ms: 200 }\n\
         modes: { plain: {}, other: {} }\n\
         scenarios: { paths: ['scenarios/*.yaml'] }\n\
         execution: { repetitions: 5, warmup: false, concurrency: 1 }\n",
    );
    let store = suite.path().join("store");
    let url = format!("file://{}", store.display());
    let shard = |number: &str, output: &str| {
        let mut command = assize(suite.path());
        command.env("ASSIZE_UPLOAD_SECONDS", "0.05");
        command.args([
            "run",
            "-q",
            "--shard",
            number,
            "--resume",
            "auto",
            "--output",
            output,
            "--results",
            &url,
        ]);
        command
    };
    // The first machine is lost in the middle, with its disk.
    let mut lost = shard("1/2", "machine-1").spawn().unwrap();
    while !store.exists() || walk(&store).len() < 3 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(lost.try_wait().unwrap().is_none(), "it is under way");
    lost.kill().unwrap();
    lost.wait().unwrap();
    std::fs::remove_dir_all(suite.path().join("machine-1")).unwrap();
    let parts = |directory: &Path| walk(directory).len();
    let before = parts(&store);
    assert!(before > 0, "some parts were uploaded before");
    let resumed: Outcome = shard("1/2", "machine-2").output().unwrap().into();
    assert_eq!(resumed.code, Some(0), "{resumed:#?}");
    assert!(parts(&store) > before);
    let second: Outcome = shard("2/2", "machine-3").output().unwrap().into();
    assert_eq!(second.code, Some(0), "{second:#?}");
    let after = parts(&store);
    let again: Outcome = shard("2/2", "machine-3").output().unwrap().into();
    assert_eq!(again.code, Some(0), "{again:#?}");
    assert_eq!(parts(&store), after, "what is there is not uploaded again");

    let merged = suite.done(&["merge", &url, "--out", "merged", "--json"]);
    let merged: Value = serde_json::from_str(&merged).unwrap();
    assert_eq!(
        (&merged["rows"], &merged["repeated"]),
        (&20.into(), &0.into()),
        "{merged}"
    );
    suite.done(&["show", "merged/7"]);
    let left: Vec<String> = std::fs::read_dir(suite.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(".downloaded"))
        .collect();
    assert!(left.is_empty(), "{left:?}");

    let refused = suite.assize(&[
        "run",
        "--shard",
        "1/2",
        "--results",
        "s3://me:hunter2@bucket/x",
    ]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(!refused.stderr.contains("hunter2"), "{refused:#?}");
}

fn walk(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            found.push(path);
        }
    }
    found
}
