//! `assize skill test` and `assize instructions ablate`, with the simulated agent; and the example.

use crate::support::{Suite, assize};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/skills")
}

fn skill() -> Suite {
    let suite = Suite::new();
    suite.write(
        "skills/review/SKILL.md",
        "---\nname: review\ndescription: Reviews code.\n---\n\nRead everything first.\n",
    );
    suite
}

#[test]
fn a_skill_is_tested_on_its_own_tasks() {
    let suite = Suite::new();
    let directory = example().join("skills/review");
    let directory = directory.to_str().unwrap();
    let simulated = [
        "--agent",
        "simulated",
        "-n",
        "12",
        "--set",
        "skill_effect=0.5",
        "--set",
        "success_rate=0.3",
    ];
    let arguments = [
        &["skill", "test", directory, "--json"],
        simulated.as_slice(),
    ]
    .concat();
    let told: Value = serde_json::from_str(&suite.done(&arguments)).unwrap();
    assert_eq!(told["skill"], "review");
    let with = &told["modes"]["with-review"];
    assert_eq!(with["runs"], 7 * 12);
    let recall = &with["triggers"]["recall"];
    assert!(recall["rate"].as_f64().unwrap() > 0.75, "{recall}");
    assert_eq!(recall["ci95"].as_array().unwrap().len(), 2);
    // The stand-in uses the skill whatever the task, so it triggers falsely.
    assert!(with["triggers"]["falseTriggers"]["rate"].as_f64().unwrap() > 0.5);
    assert!(with["triggers"]["precision"]["rate"].as_f64().unwrap() < 0.8);
    let helps = told["answers"]["does it help?"].as_str().unwrap();
    assert!(helps.contains("higher"), "{helps}");
    assert!(
        suite
            .path()
            .join(".assize/skills/review/assize.yaml")
            .is_file()
    );
    let shown = suite.assize(&[&["skill", "test", directory], simulated.as_slice()].concat());
    for part in [
        "does it trigger?",
        "recall",
        "does it help?",
        "what does it cost?",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    assert!(shown.stderr.contains("need a judge"), "{}", shown.stderr);
}

#[test]
fn a_skill_without_tasks_or_with_mistakes_is_refused_with_the_way_out() {
    let suite = skill();
    let told = suite.assize(&["skill", "test", "skills/review", "--agent", "simulated"]);
    assert_eq!(told.code, Some(2), "{told:#?}");
    assert!(told.stderr.contains("has no tasks"), "{told:#?}");
    assert!(told.stderr.contains("triggers.json"), "{told:#?}");
    suite.write("skills/review/SKILL.md", "nothing");
    let told = suite.assize(&["skill", "test", "skills/review"]);
    assert_eq!(told.code, Some(2), "{told:#?}");
    assert!(
        told.stderr.contains("SKILL.md:1: found no front matter"),
        "{told:#?}"
    );
}

#[test]
fn the_example_says_when_the_skill_triggers() {
    let suite = Suite::new();
    let output = assize(suite.path())
        .args(["run", example().to_str().unwrap(), "--output", "runs"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("skill in with-review: recall "), "{said}");
    let report = std::fs::read_dir(suite.path().join("runs")).unwrap();
    let report = report.map(|run| run.unwrap().path().join("report/report.md"));
    let report = std::fs::read_to_string(report.last().unwrap()).unwrap();
    assert!(
        report.contains("## Use of skills") && report.contains("## Does it trigger"),
        "{report}"
    );
}

#[test]
fn recorded_sessions_show_the_skill_to_both_detectors() {
    let suite = Suite::new();
    let replay = example().join("replay");
    let output = assize(suite.path())
        .args([
            "run",
            replay.to_str().unwrap(),
            "-q",
            "--output",
            ".assize/runs",
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    for row in suite.rows() {
        let found = &row["extensions"];
        let is_with = row["mode"] == "with";
        assert_eq!(found["skill_activated"], u8::from(is_with), "{row:#}");
        assert_eq!(found["skill_offered"], u8::from(is_with));
        assert_eq!(found["skill_detectors_agree"], 1);
        if is_with {
            assert_eq!(found["skill_activation_turn"], 2);
        }
    }
}

fn ablation(suite: &Suite, arguments: &[&str]) -> Value {
    let directory = example().join("ablation");
    let file = directory.join("CLAUDE.md");
    let usual = [
        "instructions",
        "ablate",
        file.to_str().unwrap(),
        "--suite",
        "suite",
        "--yes",
        "--json",
    ];
    for name in [
        "assize.yaml",
        "scenarios/task-1.yaml",
        "scenarios/task-2.yaml",
        "scenarios/task-3.yaml",
        "scenarios/task-4.yaml",
        "scenarios/task-5.yaml",
    ] {
        let text = std::fs::read_to_string(directory.join(name)).unwrap();
        suite.write(&format!("suite/{name}"), text);
    }
    serde_json::from_str(&suite.done(&[usual.as_slice(), arguments].concat())).unwrap()
}

#[test]
fn sections_that_matter_are_found_and_the_rest_can_go() {
    let suite = Suite::new();
    let told = ablation(&suite, &[]);
    let sentence = told["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("This 1 section helps: “Tests”; these "),
        "{sentence}"
    );
    assert!(
        sentence.contains("“Questions” of them: success is higher without"),
        "{sentence}"
    );
    assert!(
        sentence.contains("have no effect that this budget could show"),
        "{sentence}"
    );
    assert_eq!(told["confirmed"].as_array().unwrap().len(), 8);
    // What was printed beforehand is what was spent.
    let runs = std::fs::read_dir(suite.path().join("suite/.assize/runs")).unwrap();
    let rows: usize = runs
        .map(|run| {
            std::fs::read_to_string(run.unwrap().path().join("rows.jsonl"))
                .unwrap_or_default()
                .lines()
                .count()
        })
        .sum();
    assert_eq!(rows as u64, told["trials"].as_u64().unwrap());
}

#[test]
fn the_budget_is_said_before_anything_is_spent() {
    let suite = Suite::new();
    suite.write("CLAUDE.md", "# One\na\n# Two\nb\n# Three\nc\n");
    let told = suite.assize(&["instructions", "ablate", "CLAUDE.md", "--dry-run"]);
    assert_eq!(told.code, Some(0), "{told:#?}");
    for part in [
        "3 sections",
        "no screening",
        "5 arms × 2 scenarios",
        "20 points",
    ] {
        assert!(told.stderr.contains(part), "{part}: {}", told.stderr);
    }
    assert!(!suite.path().join(".assize").exists());
    let few = suite.assize(&["instructions", "ablate", "CLAUDE.md", "--max-trials", "3"]);
    assert_eq!(few.code, Some(2), "{few:#?}");
    assert!(few.stderr.contains("3 trials show nothing"), "{few:#?}");
    suite.write("ONE.md", "Only this.\n");
    let one = suite.assize(&["instructions", "ablate", "ONE.md"]);
    assert_eq!(one.code, Some(2), "{one:#?}");
    suite.write(
        "assize.yaml",
        "provider: { uses: mini-swe-agent }\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
    );
    let unable = suite.assize(&["instructions", "ablate", "CLAUDE.md", "--dry-run"]);
    assert_eq!(unable.code, Some(2), "{unable:#?}");
    assert!(
        unable
            .stderr
            .contains("`mini-swe-agent` reads no instruction file"),
        "{unable:#?}"
    );
}
