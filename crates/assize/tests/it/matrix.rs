//! The GitHub workflow of docs/scale.md: its `run:` steps, executed in order, with artifacts passed on as the actions do.

use crate::support::Suite;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const DOCUMENT: &str = include_str!("../../../../docs/scale.md");

fn workflow() -> Value {
    let start = DOCUMENT
        .find("```yaml .github/workflows/agents.yml\n")
        .unwrap();
    let text = &DOCUMENT[start..];
    let text = &text[text.find('\n').unwrap() + 1..];
    serde_saphyr::from_str(&text[..text.find("```").unwrap()]).unwrap()
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp")
        .arg("-r")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(copied.success());
}

struct Runner<'a> {
    suite: &'a Suite,
    artifacts: PathBuf,
}

impl Runner<'_> {
    /// A job on a fresh machine: a checkout, then step by step.
    fn job(&self, steps: &Value, machine: &str, matrix: &str) {
        let checkout = self.suite.path().join(machine);
        std::fs::create_dir(&checkout).unwrap();
        for step in steps.as_array().unwrap() {
            let text = |value: &Value| {
                value
                    .as_str()
                    .unwrap()
                    .replace("${{ matrix.shard }}", matrix)
            };
            if let Some(run) = step.get("run") {
                self.run(&text(run), &checkout);
                continue;
            }
            let (uses, with) = (step["uses"].as_str().unwrap(), &step["with"]);
            match uses.split('@').next().unwrap() {
                "actions/checkout" => {
                    for name in ["assize.yaml", "scenarios"] {
                        std::fs::create_dir_all(checkout.join("evals")).unwrap();
                        copy(
                            &self.suite.path().join(name),
                            &checkout.join("evals").join(name),
                        );
                    }
                }
                "actions/upload-artifact" => {
                    copy(
                        &checkout.join(text(&with["path"])),
                        &self.artifacts.join(text(&with["name"])),
                    );
                }
                // Every artifact becomes a directory of its name.
                "actions/download-artifact" => {
                    copy(&self.artifacts, &checkout.join(text(&with["path"])));
                }
                other => panic!("{other}"),
            }
        }
    }

    fn run(&self, script: &str, directory: &Path) {
        let program = Path::new(env!("CARGO_BIN_EXE_assize")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let done = Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", script])
            .current_dir(directory)
            .env("PATH", path)
            .env("CI", "true")
            .env("XDG_STATE_HOME", "/dev/null/none")
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{script}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
}

#[test]
fn the_steps_of_the_documented_workflow_run_in_order() {
    let suite = Suite::of(
        "name: docs\n\
         provider: { uses: simulated, latency_ms: 0, success_rate: 1 }\n\
         modes: { plain: {}, other: {} }\n\
         scenarios: { paths: ['scenarios/*.yaml'] }\n\
         execution: { repetitions: 5 }\n\
         gates: [ 'success >= 0.5' ]\n",
    );
    let artifacts = suite.path().join("artifacts");
    std::fs::create_dir(&artifacts).unwrap();
    let workflow = workflow();
    let runner = Runner {
        suite: &suite,
        artifacts: artifacts.clone(),
    };
    let jobs = &workflow["jobs"];
    let shards = jobs["shard"]["strategy"]["matrix"]["shard"]
        .as_array()
        .unwrap();
    assert_eq!(shards.len(), 3);
    for shard in shards {
        let shard = shard.to_string();
        runner.job(&jobs["shard"]["steps"], &format!("runner-{shard}"), &shard);
    }
    runner.job(&jobs["verdict"]["steps"], "runner-verdict", "");
    assert!(artifacts.join("report/report.html").exists());
    let rows =
        std::fs::read_to_string(suite.path().join("runner-verdict/merged/rows.jsonl")).unwrap();
    assert_eq!(rows.lines().count(), 20);
}
