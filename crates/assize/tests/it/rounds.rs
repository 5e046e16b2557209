//! `execution.until` and budgets over shards: a round, a merge with its look, the next round.

use crate::shards::comparable;
use crate::support::{Outcome, Suite, assize};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const UNTIL: &str = "until: { decided: true, looks: 5, max_repetitions: 10 }";

/// Three modes, of which `other` and `third` take so many tokens.
fn suite(execution: &str, other: u32, third: u32) -> Suite {
    let mode = |tokens: u32| {
        format!(
            "{{ provider_overrides: {{ tokens: {{ input: {{ median: {tokens}, spread: 0.3 }}, output: {{ median: 10, spread: 0.1 }} }} }} }}"
        )
    };
    let text = format!(
        "name: early\nprovider: {{ uses: simulated, model: m, latency_ms: 0, success_rate: 1, scenario_spread: 0.2 }}\n\
         modes:\n  plain: {}\n  other: {}\n  third: {}\nscenarios: {{ paths: ['many.yaml'] }}\n\
         execution: {{ repetitions: 4, concurrency: 8, warmup: false, {execution} }}\nanalysis: {{ primary: [tokens_active] }}\n",
        mode(9000),
        mode(other),
        mode(third)
    );
    let suite = Suite::of(&text);
    suite.write(
        "many.yaml",
        "id: s\nprompt: do it\nvars: { n: [1, 2, 3, 4, 5, 6, 7, 8] }\n",
    );
    suite
}

fn words(command: &str) -> Vec<String> {
    shlex::split(command).unwrap()
}

/// Runs a command as `merge` printed it.
fn typed(suite: &Suite, command: &str) -> Outcome {
    let words = words(command);
    assert_eq!(words[0], "assize", "{command}");
    let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    suite.assize(&arguments)
}

/// Looks without the moment and the command.
fn looks(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("looks.jsonl")).unwrap_or_default();
    let read = |line: &str| {
        let mut look: Value = serde_json::from_str(line).unwrap();
        let look_map = look.as_object_mut().unwrap();
        look_map.remove("at");
        look_map.remove("command");
        look
    };
    text.lines().map(read).collect()
}

fn manifest(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("manifest.json")).unwrap()).unwrap()
}

fn single_machine(suite: &Suite) -> PathBuf {
    suite.done(&["run", "-q", "--output", "whole"]);
    let mut runs = std::fs::read_dir(suite.path().join("whole")).unwrap();
    runs.next().unwrap().unwrap().path()
}

fn first_round(suite: &Suite, count: u32) {
    for index in 1..=count {
        let shard = format!("{index}/{count}");
        let outcome = suite.assize(&[
            "run", "--shard", &shard, "--resume", "auto", "--output", "shards",
        ]);
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        assert!(
            outcome.stderr.contains("round 1 (repetitions 1 to 2)"),
            "{outcome:#?}"
        );
    }
}

/// Round after round with the commands that `merge` prints, and the number of rounds.
fn all_rounds(suite: &Suite, count: u32) -> u32 {
    first_round(suite, count);
    for round in 1.. {
        let outcome = suite.assize(&["merge", "shards", "--out", "merged", "--json"]);
        let merged: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let looks_now = merged["round"]["looks"].as_array().unwrap();
        assert_eq!(looks_now.len(), 1, "one look per merge: {merged}");
        if outcome.code == Some(0) {
            assert_eq!(merged["round"]["isFinished"], true, "{merged}");
            assert_eq!(merged["resumeShards"], json!([]));
            return round;
        }
        assert_eq!(outcome.code, Some(5), "{outcome:#?}");
        decided_stays_decided(suite);
        assert_eq!(merged["round"]["number"], round + 1);
        let commands = merged["resumeShards"].as_array().unwrap();
        assert_eq!(commands.len(), count as usize, "{merged}");
        for command in commands {
            let outcome = typed(suite, command.as_str().unwrap());
            assert_eq!(outcome.code, Some(0), "{command}: {outcome:#?}");
        }
    }
    unreachable!("rounds end")
}

/// A mode that stops has fewer trials than the others, which must not take its verdict back.
fn decided_stays_decided(suite: &Suite) {
    let looks = looks(&suite.path().join("merged"));
    let decided = looks.iter().filter_map(|look| look["decided"].as_array());
    let compared = suite.done(&["compare", "merged", "--json"]);
    for decided in decided.flatten() {
        let mut lines = compared
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = lines.find(|found| {
            found["modeA"] == decided["modeA"] && found["metric"] == decided["metric"]
        });
        assert_eq!(found.unwrap()["verdict"], decided["verdict"], "{compared}");
    }
}

fn decides_as_one_machine(other: u32, third: u32) -> (u32, usize) {
    let suite = suite(UNTIL, other, third);
    let whole = single_machine(&suite);
    let rounds = all_rounds(&suite, 3);
    let merged = suite.path().join("merged");
    assert_eq!(looks(&merged), looks(&whole));
    assert_eq!(comparable(&merged), comparable(&whole));
    assert_eq!(manifest(&merged)["state"], "complete");
    let verdict = |run: &Path| {
        let compared = suite.done(&["compare", run.to_str().unwrap(), "--json"]);
        let lines = compared
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        // Times differ from run to run.
        let lines = lines.filter(|found| found["metric"] == "tokens_active");
        let lines = lines.map(|found| (found["verdict"].clone(), found["pAdjusted"].clone()));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(verdict(&merged), verdict(&whole));
    // An ordinary run: nothing is left to do, and looking again is no further look.
    let made = looks(&merged).len();
    suite.done(&["run", "-q", "--resume", "merged"]);
    suite.done(&["report", "merged"]);
    suite.done(&["merge", "shards", "--out", "merged"]);
    assert_eq!(looks(&merged).len(), made);
    // A job that comes late ends well.
    let late = suite.assize(&[
        "run", "--shard", "1/3", "--resume", "auto", "--output", "shards", "--after", "merged",
    ]);
    assert_eq!(late.code, Some(0), "{late:#?}");
    assert!(late.stderr.contains("no round is left"), "{late:#?}");
    // Everything can be merged from the shards alone: they know the looks.
    suite.done(&["merge", "shards", "--out", "again"]);
    let again = suite.path().join("again");
    assert_eq!(looks(&again), looks(&merged));
    let rows = comparable(&merged).len();
    (rounds, rows)
}

#[test]
fn rounds_decide_large_differences_as_one_machine_does() {
    let (rounds, rows) = decides_as_one_machine(3000, 2500);
    assert!(rounds < 5, "{rounds}");
    assert!(rows < 240, "{rows}");
}

#[test]
fn rounds_without_a_difference_go_to_the_planned_end_as_one_machine_does() {
    assert_eq!(decides_as_one_machine(9000, 9000), (5, 240));
}

#[test]
fn a_decided_mode_stops_and_the_others_go_on() {
    let (rounds, rows) = decides_as_one_machine(2500, 9000);
    assert_eq!(rounds, 5);
    assert!(rows < 240 && rows > 160, "{rows}");
}

#[test]
fn anytime_rules_work_in_rounds() {
    let suite = suite(
        "until: { method: anytime, looks: 4, max_repetitions: 8 }",
        2500,
        2500,
    );
    let whole = single_machine(&suite);
    all_rounds(&suite, 2);
    assert_eq!(looks(&suite.path().join("merged")), looks(&whole));
}

#[test]
fn a_round_with_missing_trials_is_not_looked_at() {
    let suite = suite(UNTIL, 3000, 9000);
    suite.done(&["run", "-q", "--shard", "1/3", "--output", "shards"]);
    suite.done(&["run", "-q", "--shard", "3/3", "--output", "shards"]);
    let early = suite.assize(&["merge", "shards", "--out", "merged"]);
    assert_eq!(early.code, Some(5), "{early:#?}");
    assert!(early.stderr.contains("trials are missing"), "{early:#?}");
    assert!(
        early.stderr.contains("shard 2/3: nothing was found"),
        "{early:#?}"
    );
    assert_eq!(looks(&suite.path().join("merged")), Vec::<Value>::new());
    let command = early.stderr.lines().last().unwrap().trim().to_owned();
    assert!(command.contains("--shard 2/3"), "{command}");
    assert!(!early.stderr.contains("--shard 1/3"), "{early:#?}");
    let ran = typed(&suite, &command);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let merged = suite.assize(&["merge", "shards", "--out", "merged"]);
    assert!(
        merged.stderr.contains("look 1 of 5 after 2 repetitions"),
        "{merged:#?}"
    );
    assert!(
        merged.stderr.contains("round 2 of 5 is next, 48 trials"),
        "{merged:#?}"
    );
}

#[test]
fn a_shard_knows_its_round_from_a_copied_record_and_an_object_store() {
    let suite = suite(UNTIL, 9000, 9000);
    first_round(&suite, 2);
    suite.assize(&["merge", "shards", "--out", "merged"]);
    // As an artifact of a CI system: the record alone, on a machine that has nothing else.
    std::fs::create_dir(suite.path().join("elsewhere")).unwrap();
    std::fs::copy(
        suite.path().join("merged/round.json"),
        suite.path().join("elsewhere/round.json"),
    )
    .unwrap();
    let second = suite.assize(&[
        "run",
        "--shard",
        "1/2",
        "--output",
        "fresh",
        "--after",
        "elsewhere/round.json",
    ]);
    assert_eq!(second.code, Some(0), "{second:#?}");
    assert!(
        second.stderr.contains("round 2 (repetitions 3 to 4)"),
        "{second:#?}"
    );

    let url = format!("file://{}", suite.path().join("store").display());
    for _ in 1..=2 {
        for shard in ["1/2", "2/2"] {
            let done = suite.assize(&[
                "run",
                "-q",
                "--shard",
                shard,
                "--resume",
                "auto",
                "--results",
                &url,
                "--output",
                "machine",
            ]);
            assert_eq!(done.code, Some(0), "{done:#?}");
        }
        std::fs::remove_dir_all(suite.path().join("machine")).unwrap();
        suite.assize(&["merge", &url, "--out", "from-store"]);
    }
    assert_eq!(looks(&suite.path().join("from-store")).len(), 2);
    let next = suite.assize(&["merge", &url, "--out", "from-store", "--json"]);
    let next: Value = serde_json::from_str(&next.stdout).unwrap();
    let command = next["resumeShards"][0].as_str().unwrap();
    assert!(
        command.contains("--results") && !command.contains("downloaded"),
        "{command}"
    );
    let ran = typed(&suite, command);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stderr.contains("round 3"), "{ran:#?}");
}

#[test]
fn records_that_do_not_fit_are_refused() {
    let suite = suite(UNTIL, 9000, 9000);
    first_round(&suite, 2);
    suite.assize(&["merge", "shards", "--out", "merged"]);
    let check = |arguments: &[&str], code: i32, part: &str| {
        let mut all = vec!["run", "-q", "--shard", "1/2", "--output", "other"];
        all.extend(arguments);
        let outcome = suite.assize(&all);
        assert_eq!(outcome.code, Some(code), "{outcome:#?}");
        assert!(outcome.stderr.contains(part), "{outcome:#?}");
    };
    check(&["--after", "nowhere"], 2, "cannot read");
    check(&["--after", "assize.yaml"], 1, "not the record of a round");
    check(&["--after", "merged", "--seed", "7"], 1, "another plan");
    let without_shard = suite.assize(&["run", "--after", "merged"]);
    assert_eq!(without_shard.code, Some(2), "{without_shard:#?}");
    let path = suite.path().join("assize.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("looks: 5", "looks: 2")).unwrap();
    check(&["--after", "merged"], 2, "cannot change");
    suite.done(&["run", "-q", "--shard", "1/2", "--output", "shards"]);
    let mixed = suite.assize(&["merge", "shards", "--out", "mixed"]);
    assert_eq!(mixed.code, Some(1), "{mixed:#?}");
    assert!(
        mixed.stderr.contains("`execution.until` differs"),
        "{mixed:#?}"
    );
}

#[test]
fn rounds_survive_kills_of_shards_and_of_merges() {
    let suite = suite(UNTIL, 9000, 9000);
    let path = suite.path().join("assize.yaml");
    let slow = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        slow.replace("latency_ms: 0", "latency_ms: 15")
            .replace("concurrency: 8", "concurrency: 2"),
    )
    .unwrap();
    std::fs::create_dir(suite.path().join("merged")).unwrap();
    let mut kills = 0;
    let mut after: Vec<&str> = Vec::new();
    for round in 1..=2 {
        for shard in ["1/2", "2/2"] {
            let mut flags = vec![
                "run", "-q", "--shard", shard, "--resume", "auto", "--output", "shards",
            ];
            flags.extend(&after);
            for milliseconds in [120, 200] {
                let mut child = assize(suite.path()).args(&flags).spawn().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(milliseconds));
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
            }
            suite.done(&flags);
        }
        for milliseconds in [5, 15, 30, 60] {
            let mut child = assize(suite.path())
                .args(["merge", "shards", "--out", "merged"])
                .stderr(std::process::Stdio::null())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(std::time::Duration::from_millis(milliseconds));
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
        }
        let merged = suite.assize(&["merge", "shards", "--out", "merged", "--json"]);
        assert_eq!(merged.code, Some(5), "{merged:#?}");
        let merged: Value = serde_json::from_str(&merged.stdout).unwrap();
        assert_eq!(merged["round"]["number"], round + 1, "{merged}");
        assert_eq!(merged["repeated"], 0, "{merged}");
        assert_eq!(looks(&suite.path().join("merged")).len(), round as usize);
        after = vec!["--after", "merged"];
    }
    assert!(kills > 0);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("latency_ms: 15", "latency_ms: 0")).unwrap();
}

/// Trials of 1000 tokens each, in two modes.
fn limited(tokens: u32) -> Suite {
    let text = format!(
        "name: limited\nprovider: {{ uses: simulated, model: m, latency_ms: 0, success_rate: 1, tool_calls: 1, tokens: {{ input: 990, output: 10, reasoning: 0, cache_read: 0, cache_write: 0 }} }}\n\
         modes: {{ a: {{}}, b: {{}} }}\nscenarios: {{ paths: ['many.yaml'] }}\n\
         execution: {{ repetitions: 1, concurrency: 1, warmup: false, budget: {{ tokens: {tokens} }} }}\n"
    );
    let suite = Suite::of(&text);
    suite.write(
        "many.yaml",
        "id: s\nprompt: do it\nvars: { n: [1, 2, 3, 4, 5, 6, 7] }\n",
    );
    suite
}

#[test]
fn what_some_shards_leave_of_the_budget_is_given_to_the_open_ones() {
    // Seven blocks of 2000 tokens: two shards with two blocks, one with three, whose third does not fit a third of 15000.
    let suite = limited(15_000);
    let codes: Vec<Option<i32>> = ["1/3", "2/3", "3/3"]
        .iter()
        .map(|shard| {
            suite
                .assize(&[
                    "run", "-q", "--shard", shard, "--resume", "auto", "--output", "shards",
                ])
                .code
        })
        .collect();
    assert_eq!(
        codes.iter().filter(|code| **code == Some(5)).count(),
        1,
        "{codes:?}"
    );
    let merged = suite.assize(&["merge", "shards", "--out", "merged", "--json"]);
    assert_eq!(merged.code, Some(5), "{merged:#?}");
    let merged: Value = serde_json::from_str(&merged.stdout).unwrap();
    assert_eq!(merged["missing"], 2, "{merged}");
    let commands = merged["resumeShards"].as_array().unwrap();
    assert_eq!(commands.len(), 1, "only the open shard: {merged}");
    let command = commands[0].as_str().unwrap();
    // Without the record its own share is used up.
    let stuck = typed(&suite, command.split(" --after").next().unwrap());
    assert_eq!(stuck.code, Some(5), "{stuck:#?}");
    let ran = typed(&suite, command);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let merged = suite.done(&["merge", "shards", "--out", "merged", "--json"]);
    let merged: Value = serde_json::from_str(&merged).unwrap();
    assert_eq!(merged["rows"], 14);
}

#[test]
fn what_is_given_back_never_exceeds_the_whole_budget() {
    // 13000 tokens are six blocks; the seventh must not be run, whoever has something left.
    let suite = limited(13_000);
    for _ in 0..4 {
        for shard in ["1/3", "2/3", "3/3"] {
            let mut flags = vec![
                "run", "-q", "--shard", shard, "--resume", "auto", "--output", "shards",
            ];
            if suite.path().join("merged").exists() {
                flags.extend(["--after", "merged"]);
            }
            suite.assize(&flags);
        }
        suite.assize(&["merge", "shards", "--out", "merged"]);
    }
    assert_eq!(comparable(&suite.path().join("merged")).len(), 12);
}

#[test]
fn what_a_round_leaves_is_shared_in_the_next() {
    let text = format!("{UNTIL}, budget: {{ tokens: 30000000 }}");
    let suite = suite(&text, 9000, 9000);
    first_round(&suite, 2);
    suite.assize(&["merge", "shards", "--out", "merged"]);
    let record: Value =
        serde_json::from_slice(&std::fs::read(suite.path().join("merged/round.json")).unwrap())
            .unwrap();
    let spent = record["spent"]["tokens"].as_u64().unwrap();
    assert!(spent > 0 && spent < 30_000_000, "{record}");
    let command = [
        "run", "--shard", "1/2", "--output", "shards", "--after", "merged",
    ];
    suite.done(&command);
    // A budget that the first round has used up lets no block of the second begin.
    let small = spent.to_string();
    let mut none = command.to_vec();
    none.extend(["--max-tokens", &small]);
    none[4] = "elsewhere";
    let outcome = suite.assize(&none);
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert!(outcome.stderr.contains("0 of"), "{outcome:#?}");
}

#[test]
fn printed_commands_hold_the_flags_of_the_shards() {
    let suite = limited(1_000_000);
    let known = suite.done(&["run", "--dry-run"]);
    let mut ids: Vec<&str> = known
        .lines()
        .filter_map(|line| line.split_whitespace().nth(3))
        .collect();
    ids.dedup();
    ids.truncate(2);
    let mut first = vec!["run", "-q", "--shard", "1/2", "--output", "shards"];
    first.extend(["-n", "2", "--seed", "9", "--mode", "b", "--mode", "a"]);
    for id in &ids {
        first.extend(["--scenario", id]);
    }
    suite.done(&first);
    let merged = suite.assize(&["merge", "shards", "--out", "merged", "--json"]);
    let merged: Value = serde_json::from_str(&merged.stdout).unwrap();
    let ran = typed(&suite, merged["resumeShards"][0].as_str().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let merged = suite.done(&["merge", "shards", "--out", "merged", "--json"]);
    let merged: Value = serde_json::from_str(&merged).unwrap();
    assert_eq!(
        (&merged["missing"], &merged["rows"]),
        (&json!(0), &json!(ids.len() * 2 * 2))
    );
}

/// A stand-in for Slurm that runs the elements of an array one after another.
const SBATCH: &str = r##"#!/bin/sh
for script in "$@"; do :; done
array=$(sed -n 's/^#SBATCH --array=//p' "$script" | sed 's/%.*//')
case " $*" in *--array=*) array=$(echo "$*" | sed 's/.*--array=\([^ ]*\).*/\1/') ;; esac
echo "$array" >> "$HOME/arrays"
for range in $(echo "$array" | tr , ' '); do
    for element in $(seq "${range%-*}" "${range#*-}"); do
        env -i SLURM_ARRAY_TASK_ID="$element" SLURM_ARRAY_JOB_ID=7 HOME=/nonexistent \
            sh "$script" > "$(dirname "$script")/logs/shard-$element.log" 2>&1
    done
done
echo 7
"##;

fn on_cluster(suite: &Suite, arguments: &[&str]) -> Outcome {
    for (name, script) in [("sbatch", SBATCH), ("squeue", "#!/bin/sh\n")] {
        let path = suite.write(&format!("bin/{name}"), script);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!(
        "{}:{}",
        suite.path().join("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let mut command = assize(suite.path());
    command.env("PATH", path).env("HOME", suite.path());
    command.args(arguments).output().unwrap().into()
}

fn submission(suite: &Suite) -> PathBuf {
    let mut all = std::fs::read_dir(suite.path().join(".assize/submissions")).unwrap();
    all.next().unwrap().unwrap().path()
}

#[test]
fn submit_waits_for_round_after_round() {
    let suite = suite(UNTIL, 2500, 2500);
    let whole = single_machine(&suite);
    let waited = on_cluster(
        &suite,
        &[
            "submit",
            "--on",
            "slurm",
            "--shards",
            "3",
            "--at-once",
            "2",
            "--wait",
        ],
    );
    assert_eq!(waited.code, Some(0), "{waited:#?}");
    let merged = submission(&suite).join("merged");
    assert_eq!(looks(&merged), looks(&whole));
    assert_eq!(comparable(&merged), comparable(&whole));
    let rounds = std::fs::read_to_string(suite.path().join("arrays"))
        .unwrap()
        .lines()
        .count();
    assert_eq!(rounds, looks(&whole).len());
    assert!(!submission(&suite).join("environment").exists());
}

#[test]
fn submit_goes_on_by_hand_round_by_round() {
    let suite = suite(UNTIL, 9000, 9000);
    let submitted = on_cluster(
        &suite,
        &["submit", "--on", "slurm", "--shards", "2", "--at-once", "2"],
    );
    assert_eq!(submitted.code, Some(0), "{submitted:#?}");
    let again = on_cluster(&suite, &["submit", "next"]);
    assert!(again.stderr.contains("submit collect"), "{again:#?}");
    for round in 2..=5 {
        let collected = on_cluster(&suite, &["submit", "collect"]);
        assert_eq!(collected.code, Some(5), "{collected:#?}");
        assert!(
            collected
                .stderr
                .contains(&format!("round {round} of 5 is next")),
            "{collected:#?}"
        );
        let status = on_cluster(&suite, &["submit", "status", "--json"]);
        let status: Value = serde_json::from_str(&status.stdout).unwrap();
        assert_eq!(
            (&status["round"], &status["open"]),
            (&json!(round), &json!([1, 2])),
            "{status}"
        );
        let next = on_cluster(&suite, &["submit", "next"]);
        assert_eq!(next.code, Some(0), "{next:#?}");
    }
    let collected = on_cluster(&suite, &["submit", "collect"]);
    assert_eq!(collected.code, Some(0), "{collected:#?}");
    assert_eq!(looks(&submission(&suite).join("merged")).len(), 5);
    let status = on_cluster(&suite, &["submit", "status"]);
    assert_eq!(status.code, Some(0), "{status:#?}");
}

#[test]
fn rounds_on_kubernetes_need_an_object_store() {
    let suite = suite(UNTIL, 9000, 9000);
    let arguments = [
        "submit",
        "--on",
        "kubernetes",
        "--shards",
        "2",
        "--image",
        "i:1",
        "--dry-run",
    ];
    let mut with_claim = arguments.to_vec();
    with_claim.extend(["--claim", "results"]);
    let refused = suite.assize(&with_claim);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("--results"), "{refused:#?}");
    let mut with_store = arguments.to_vec();
    with_store.extend(["--results", "s3://bucket/prefix"]);
    suite.done(&with_store);
}
