//! `assize run --shard` and `assize merge`: a plan divided over machines and put together again.

use crate::support::{Outcome, Suite, assize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const BLOCKS: &str = "\
provider: { uses: simulated, latency_ms: 0, tool_calls: 2 }
modes: { plain: {}, other: {}, third: {} }
scenarios: { paths: ['scenarios/*.yaml'] }
execution: { repetitions: 5, warmup: false }
";

fn rows_in(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("rows.jsonl")).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The rows in the order of the plan, without ids and times.
pub(crate) fn comparable(run: &Path) -> Vec<Value> {
    let mut rows = rows_in(run);
    rows.sort_by_key(|row| row["position"].as_u64());
    for row in &mut rows {
        for key in ["runId", "sessionId", "startedAt", "completedAt", "timing"] {
            row.as_object_mut().unwrap().remove(key);
        }
        remove_times(row);
    }
    rows
}

fn remove_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| {
                !key.ends_with("_ms") && !key.ends_with("Ms") && !key.ends_with("At")
            });
            map.values_mut().for_each(remove_times);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_times),
        _ => {}
    }
}

fn runs_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut runs: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("manifest.json").exists())
        .collect();
    runs.sort();
    runs
}

fn manifest(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("manifest.json")).unwrap()).unwrap()
}

fn run_shard(suite: &Suite, shard: &str) -> Outcome {
    suite.assize(&[
        "run", "-q", "--shard", shard, "--resume", "auto", "--output", "shards",
    ])
}

fn run_shards(suite: &Suite, count: u32) {
    for index in 1..=count {
        let outcome = run_shard(suite, &format!("{index}/{count}"));
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    }
}

#[test]
fn shards_are_whole_blocks_and_merge_into_the_run_of_one_machine() {
    let suite = Suite::of(BLOCKS);
    suite.done(&["run", "-q", "--output", "whole"]);
    let whole = runs_in(&suite.path().join("whole")).remove(0);
    run_shards(&suite, 4);
    let shards = runs_in(&suite.path().join("shards"));
    assert_eq!(shards.len(), 4);
    let mut fingerprints = BTreeSet::new();
    for shard in &shards {
        let rows = rows_in(shard);
        let blocks: BTreeSet<u64> = rows
            .iter()
            .map(|row| row["block"].as_u64().unwrap())
            .collect();
        assert_eq!(rows.len(), blocks.len() * 3, "whole blocks of three modes");
        let record = &manifest(shard)["shard"];
        assert_eq!(record["cells"], rows.len());
        fingerprints.insert(record["planFingerprint"].as_str().unwrap().to_owned());
        assert!(!shard.join("report").exists(), "a part has no verdict");
    }
    assert_eq!(fingerprints.len(), 1, "all know the same plan");
    let sizes: Vec<usize> = shards.iter().map(|shard| rows_in(shard).len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 30);
    assert!(
        sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 3,
        "{sizes:?}"
    );

    let merged = suite.assize(&["merge", "shards", "--out", "merged"]);
    assert_eq!(merged.code, Some(0), "{merged:#?}");
    let out = suite.path().join("merged");
    assert_eq!(comparable(&out), comparable(&whole));
    let id = &manifest(&out)["runId"];
    assert!(rows_in(&out).iter().all(|row| row["runId"] == *id));
    assert_eq!(manifest(&out)["state"], "complete");
    assert!(manifest(&out).get("shard").is_none());

    // An ordinary run: shown, compared, reported, every trace there, nothing to resume.
    suite.done(&["report", "merged"]);
    assert!(out.join("report/report.html").exists());
    suite.done(&["compare", "merged"]);
    for position in [0, 13, 29] {
        let (a, b) = (
            format!("merged/{position}"),
            format!("{}/{position}", whole.display()),
        );
        let timeline = |trial: &str| {
            let shown = suite.done(&["show", trial]);
            shown.lines().filter(|line| line.contains("calls")).count()
        };
        assert!(timeline(&a) > 0, "the trace came along");
        assert_eq!(timeline(&a), timeline(&b));
    }
    let resumed = suite.assize(&["run", "--resume", "merged"]);
    assert!(
        resumed.stderr.contains("nothing is missing"),
        "{resumed:#?}"
    );
    assert_eq!(rows_in(&out).len(), 30);
    suite.done(&["score", "merged", "--yes"]);
}

#[test]
fn a_restarted_shard_resumes_itself_and_never_runs_another_ones_cells() {
    let suite = Suite::of(BLOCKS);
    run_shards(&suite, 3);
    let shard = runs_in(&suite.path().join("shards")).remove(1);
    let before = rows_in(&shard);
    // As after a kill: the last two rows never came.
    let text = std::fs::read_to_string(shard.join("rows.jsonl")).unwrap();
    let kept: Vec<&str> = text.lines().take(before.len() - 2).collect();
    std::fs::write(
        shard.join("rows.jsonl"),
        format!("{}\n{{\"half", kept.join("\n")),
    )
    .unwrap();

    let missing = suite.assize(&["merge", "shards", "--out", "early"]);
    assert_eq!(missing.code, Some(5), "{missing:#?}");
    assert!(
        missing.stderr.contains("2 trials are missing"),
        "{}",
        missing.stderr
    );
    assert!(missing.stderr.contains("shard 2/3"), "{}", missing.stderr);
    assert!(missing.stderr.contains("--resume"), "{}", missing.stderr);

    assert_eq!(run_shard(&suite, "2/3").code, Some(0));
    assert_eq!(
        runs_in(&suite.path().join("shards")).len(),
        3,
        "no new directory"
    );
    let positions = |rows: &[Value]| -> BTreeSet<u64> {
        rows.iter()
            .map(|row| row["position"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(positions(&before), positions(&rows_in(&shard)));
    assert_eq!(before.len(), rows_in(&shard).len());
    // A shard that is done stays done.
    assert_eq!(run_shard(&suite, "2/3").code, Some(0));
    assert_eq!(before.len(), rows_in(&shard).len());
    suite.done(&["merge", "shards", "--out", "merged"]);
}

#[test]
fn the_command_that_merge_prints_runs_exactly_what_is_missing() {
    let suite = Suite::of(BLOCKS);
    for shard in ["1/3", "3/3"] {
        assert_eq!(run_shard(&suite, shard).code, Some(0));
    }
    let merged = suite.assize(&["merge", "shards", "--out", "merged", "--json"]);
    assert_eq!(merged.code, Some(5), "{merged:#?}");
    let merged: Value = serde_json::from_str(&merged.stdout).unwrap();
    assert_eq!(merged["absentShards"], json!(["2/3"]));
    let before: BTreeSet<String> = rows_in(&suite.path().join("merged"))
        .iter()
        .map(|row| row["startedAt"].to_string() + &row["position"].to_string())
        .collect();
    let command = shlex_words(merged["resume"].as_str().unwrap());
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    suite.done(&words[1..]);
    let rows = rows_in(&suite.path().join("merged"));
    assert_eq!(rows.len(), 30);
    let after: BTreeSet<String> = rows
        .iter()
        .map(|row| row["startedAt"].to_string() + &row["position"].to_string())
        .collect();
    assert!(before.is_subset(&after), "what was there was not run again");

    // The other way: the shard where shards run, and the same merge once more.
    suite.assize(&["merge", "shards", "--out", "again"]);
    let command = shlex_words(merged["resumeShards"][0].as_str().unwrap());
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    suite.done(&words[1..]);
    let again = suite.done(&["merge", "shards", "--out", "again", "--json"]);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["rows"], 30);
    assert_eq!(
        again["repeated"], 0,
        "copies of a trial are no repetition: {again}"
    );
}

fn shlex_words(command: &str) -> Vec<String> {
    command.split(' ').map(str::to_owned).collect()
}

#[test]
fn of_a_cell_run_twice_the_first_row_counts_and_the_other_is_listed() {
    let suite = Suite::of(BLOCKS);
    run_shards(&suite, 2);
    // A job that was started twice: the second did not see the first one's directory.
    suite.done(&["run", "-q", "--shard", "1/2", "--output", "twice"]);
    let merged = suite.assize(&["merge", "twice", "shards", "--out", "merged", "--json"]);
    assert_eq!(merged.code, Some(0), "{merged:#?}");
    let merged: Value = serde_json::from_str(&merged.stdout).unwrap();
    let first = runs_in(&suite.path().join("shards")).remove(0);
    let first_id = manifest(&first)["runId"].clone();
    assert_eq!(merged["repeated"], rows_in(&first).len());
    assert_eq!(merged["rows"], 30);
    for again in merged["superseded"].as_array().unwrap() {
        assert_eq!(again["takenFrom"], first_id);
    }
    let out = suite.path().join("merged");
    let superseded = std::fs::read_to_string(out.join("superseded.jsonl")).unwrap();
    assert_eq!(superseded.lines().count(), rows_in(&first).len());
    // Merging once more lists them again, and keeps them once.
    let more = suite.done(&["merge", "twice", "shards", "--out", "merged", "--json"]);
    let more: Value = serde_json::from_str(&more).unwrap();
    assert_eq!(more["repeated"], rows_in(&first).len());
    let superseded = std::fs::read_to_string(out.join("superseded.jsonl")).unwrap();
    assert_eq!(superseded.lines().count(), rows_in(&first).len());
    let started = |rows: Vec<Value>| -> BTreeSet<(u64, String)> {
        rows.iter()
            .map(|row| {
                (
                    row["position"].as_u64().unwrap(),
                    row["startedAt"].to_string(),
                )
            })
            .collect()
    };
    assert!(started(rows_in(&first)).is_subset(&started(rows_in(&out))));
}

#[test]
fn what_killed_merges_left_is_removed() {
    let suite = Suite::of(BLOCKS);
    run_shards(&suite, 2);
    let (old, new) = (".merging-merged-4194301", ".merging-merged-4194302");
    for name in [old, new] {
        suite.write(&format!("{name}/rows.jsonl"), "");
    }
    for part in ["rows.jsonl", ""] {
        let path = suite.path().join(old).join(part);
        let touched = std::process::Command::new("touch")
            .args(["-d", "1 hour ago"])
            .arg(path)
            .status();
        assert!(touched.unwrap().success());
    }
    suite.done(&["merge", "shards", "--out", "merged"]);
    assert!(!suite.path().join(old).exists());
    assert!(
        suite.path().join(new).exists(),
        "it may be under way elsewhere"
    );
}

#[test]
fn runs_that_do_not_belong_together_are_refused_with_the_reason() {
    let suite = Suite::of(BLOCKS);
    let check = |flags: &[&str], reason: &str| {
        let _ = std::fs::remove_dir_all(suite.path().join("shards"));
        suite.done(&["run", "-q", "--shard", "1/2", "--output", "shards"]);
        let mut second = vec!["run", "-q", "--shard", "2/2", "--output", "shards"];
        second.extend(flags);
        suite.done(&second);
        let merged = suite.assize(&["merge", "shards", "--out", "merged"]);
        assert_eq!(merged.code, Some(1), "{merged:#?}");
        assert!(merged.stderr.contains(reason), "{}", merged.stderr);
        assert!(merged.stderr.contains("hint:"), "{}", merged.stderr);
        assert!(
            !suite.path().join("merged").exists(),
            "nothing is left behind"
        );
    };
    check(&["--seed", "7"], "`execution.seed` was 42, is 7");
    check(&["-n", "4"], "`execution.repetitions` was 5, is 4");
    check(&["--mode", "plain"], "mode `other`");
    check(&["--scenario", "one"], "scenario");

    let taken = suite.assize(&["merge", "shards", "--out", "scenarios"]);
    assert_eq!(taken.code, Some(1), "{taken:#?}");
    assert!(
        taken.stderr.contains("it holds other files"),
        "{}",
        taken.stderr
    );
    assert!(suite.path().join("scenarios/one.yaml").exists());

    let nothing = suite.assize(&["merge", "scenarios", "--out", "merged"]);
    assert_eq!(nothing.code, Some(2), "{nothing:#?}");
    assert!(
        nothing.stderr.contains("there is no run in"),
        "{}",
        nothing.stderr
    );
}

#[test]
fn tasks_with_their_records_and_scores_are_merged_and_can_be_resumed() {
    let suite = Suite::of(
        "runners: [ { id: rules, uses: rules, type: intent, config: { rules: [ { when: { contains: refund }, output: { intent: refund } } ], default: { intent: other } } } ]\n\
         modes: { a: { runners: { intent: rules } }, b: { runners: { intent: rules } } }\n\
         tasks: { paths: [tasks.jsonl] }\n\
         evaluators: [ { id: exact, uses: exact } ]\n\
         execution: { repetitions: 2 }\n",
    );
    let task = |number: u32| {
        format!(
            "{{\"id\":\"t{number}\",\"type\":\"intent\",\"input\":{{\"text\":\"refund {number}\"}},\"expected\":{{\"intent\":\"refund\"}}}}\n"
        )
    };
    let tasks: String = (0..7).map(task).collect();
    suite.write("tasks.jsonl", tasks);
    let checked = suite.assize(&["check"]);
    assert_eq!(checked.code, Some(0), "{checked:#?}");
    for shard in ["1/3", "2/3"] {
        assert_eq!(run_shard(&suite, shard).code, Some(0));
    }
    let merged = suite.assize(&["merge", "shards", "--out", "merged"]);
    assert_eq!(merged.code, Some(5), "{merged:#?}");
    let out = suite.path().join("merged");
    let lines = |name: &str| {
        std::fs::read_to_string(out.join(name))
            .unwrap()
            .lines()
            .count()
    };
    let before = (
        lines("runs.jsonl"),
        lines("scores.jsonl"),
        lines("rows.jsonl"),
    );
    assert_eq!(before.0, before.2);
    assert!(before.1 >= before.0);
    // A run that was not closed in good order is repaired: records of other ids would be dropped here.
    std::fs::remove_file(out.join("index")).unwrap();
    suite.done(&["run", "-q", "--resume", "merged"]);
    assert_eq!(lines("rows.jsonl"), 28);
    assert_eq!(lines("runs.jsonl"), 28);
    assert_eq!(lines("scores.jsonl") * before.0, before.1 * 28);
    let shown = suite.done(&["show", "merged/3"]);
    assert!(shown.contains("refund"), "{shown}");
}

#[test]
fn shards_without_blocks_end_well() {
    let suite = Suite::of(BLOCKS);
    let outcome = suite.assize(&["run", "--shard", "12/20", "-n", "1", "--output", "shards"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("fewer blocks than shards"),
        "{}",
        outcome.stderr
    );
    for index in [1, 2] {
        let shard = format!("{index}/20");
        suite.done(&[
            "run", "-q", "--shard", &shard, "-n", "1", "--output", "shards",
        ]);
    }
    suite.done(&["merge", "shards", "--out", "merged"]);
}

#[test]
fn wrong_shards_are_refused_on_the_command_line() {
    let suite = Suite::of(BLOCKS);
    for shard in ["0/3", "4/3", "3", "a/b"] {
        let outcome = suite.assize(&["run", "--shard", shard]);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        assert!(outcome.stderr.contains("from 1 to N"), "{}", outcome.stderr);
    }
    let outcome = suite.assize(&["run", "--resume", "last", "--shard", "1/2"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    let planned = suite.done(&["run", "--dry-run", "--shard", "1/4"]);
    assert_eq!(planned.lines().count(), 9, "three of ten blocks: {planned}");
}

#[test]
fn shards_are_balanced_by_the_times_of_an_earlier_run() {
    let suite = Suite::of(BLOCKS);
    for name in ["three", "four"] {
        suite.write(
            &format!("scenarios/{name}.yaml"),
            format!("id: {name}\nprompt: x\n"),
        );
    }
    suite.write(
        "costs.json",
        r#"{"one": 600, "two": 600, "three": 1, "four": 1}"#,
    );
    let scenarios = |shard: &str| -> Vec<String> {
        let planned = suite.done(&[
            "run",
            "--dry-run",
            "--json",
            "-n",
            "1",
            "--shard",
            shard,
            "--shard-costs",
            "costs.json",
        ]);
        let cells = planned
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut ids: Vec<String> = cells
            .map(|cell| cell["scenarioId"].as_str().unwrap().to_owned())
            .collect();
        ids.dedup();
        ids
    };
    let (first, second) = (scenarios("1/2"), scenarios("2/2"));
    assert_eq!((first.len(), second.len()), (2, 2));
    let expensive = |ids: &[String]| ids.iter().filter(|id| *id == "one" || *id == "two").count();
    assert_eq!((expensive(&first), expensive(&second)), (1, 1));
    suite.done(&["run", "-q", "-n", "1"]);
    suite.done(&[
        "run",
        "-q",
        "-n",
        "1",
        "--shard",
        "1/2",
        "--shard-costs",
        "last",
    ]);
}

#[test]
fn resume_auto_without_a_shard_continues_an_unfinished_run_or_starts_one() {
    let suite = Suite::of(BLOCKS);
    suite.done(&["run", "-q", "--resume", "auto"]);
    let run = suite.run_directory();
    let text = std::fs::read_to_string(run.join("rows.jsonl")).unwrap();
    let kept: Vec<&str> = text.lines().take(20).collect();
    std::fs::write(run.join("rows.jsonl"), kept.join("\n") + "\n").unwrap();
    let mut unfinished = manifest(&run);
    unfinished["state"] = "running".into();
    std::fs::write(run.join("manifest.json"), unfinished.to_string()).unwrap();
    suite.done(&["run", "-q", "--resume", "auto"]);
    assert_eq!(runs_in(run.parent().unwrap()).len(), 1);
    assert_eq!(rows_in(&run).len(), 30);
    suite.done(&["run", "-q", "--resume", "auto"]);
    assert_eq!(
        runs_in(run.parent().unwrap()).len(),
        2,
        "a complete run is done with"
    );
}

#[test]
fn a_shard_can_be_killed_at_any_time() {
    let suite = Suite::of(
        "provider: { uses: simulated, latency_ms: 40 }\n\
         modes: { plain: {}, other: {} }\n\
         scenarios: { paths: ['scenarios/*.yaml'] }\n\
         execution: { repetitions: 6, warmup: false, concurrency: 2 }\n",
    );
    let flags = [
        "run", "-q", "--shard", "1/2", "--resume", "auto", "--output", "shards",
    ];
    for milliseconds in [150, 250, 350] {
        let mut child = assize(suite.path()).args(flags).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    suite.done(&flags);
    suite.done(&["run", "-q", "--shard", "2/2", "--output", "shards"]);
    let merged = suite.done(&["merge", "shards", "--out", "merged", "--json"]);
    let merged: Value = serde_json::from_str(&merged).unwrap();
    assert_eq!(
        (&merged["rows"], &merged["repeated"]),
        (&json!(24), &json!(0))
    );
}
