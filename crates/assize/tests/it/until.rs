//! `execution.until`, counted looks, and one mode against itself.

use crate::support::Suite;
use serde_json::Value;

fn suite(until: &str, other_tokens: u32) -> Suite {
    let mode = |tokens: u32| {
        format!(
            "{{ provider_overrides: {{ tokens: {{ input: {{ median: {tokens}, spread: 0.3 }}, output: {{ median: 10, spread: 0.1 }} }} }} }}"
        )
    };
    let text = format!(
        "name: early\nprovider: {{ uses: simulated, model: m, latency_ms: 0, success_rate: 1, scenario_spread: 0.2 }}\n\
         modes:\n  plain: {}\n  other: {}\nscenarios: {{ paths: ['many.yaml'] }}\n\
         execution: {{ repetitions: 4, concurrency: 8, warmup: false{until} }}\nanalysis: {{ primary: [tokens_active] }}\n",
        mode(9000),
        mode(other_tokens)
    );
    let suite = Suite::of(&text);
    suite.write(
        "many.yaml",
        "id: s\nprompt: do it\nvars: { n: [1, 2, 3, 4, 5, 6, 7, 8] }\n",
    );
    suite
}

const UNTIL: &str = ", until: { decided: true, looks: 5, max_repetitions: 10 }";

fn looks(suite: &Suite) -> Vec<Value> {
    let path = suite.run_directory().join("looks.jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_clear_difference_stops_early_and_says_so() {
    let suite = suite(UNTIL, 3000);
    let outcome = suite.assize(&["run"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let rows = suite.rows().len();
    assert!(rows < 160, "{rows} of 160 trials");
    assert_eq!(rows % 16, 0, "whole rounds");
    assert!(
        outcome.stderr.contains("look 1 of 5 after 2 repetitions"),
        "{outcome:#?}"
    );
    assert!(
        outcome.stdout.contains("fewer active tokens"),
        "{outcome:#?}"
    );
    assert!(
        outcome
            .stdout
            .contains("declared before the first trial (obrien-fleming)"),
        "{outcome:#?}"
    );
    let found = looks(&suite);
    assert!(
        found.iter().all(|look| look["declared"] == true),
        "{found:?}"
    );
    let last = found.last().unwrap();
    assert_eq!(last["decided"][0]["verdict"], "better");
    assert_eq!(last["stopped"].as_array().unwrap().len(), 2);
    let manifest = std::fs::read_to_string(suite.run_directory().join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["state"], "complete");
    assert_eq!(manifest["reading"]["until"]["max_repetitions"], 10);
    // Looking again at the same state is not another look, and nothing is left to do.
    suite.done(&["compare"]);
    suite.done(&["report"]);
    suite.done(&["run", "--resume", "last", "--quiet"]);
    assert_eq!(suite.rows().len(), rows);
    assert_eq!(looks(&suite).len(), found.len());
}

#[test]
fn no_difference_goes_on_to_the_planned_end() {
    let suite = suite(UNTIL, 9000);
    suite.done(&["run", "--quiet"]);
    assert_eq!(suite.rows().len(), 160);
    let found = looks(&suite);
    assert_eq!(found.len(), 5, "{found:?}");
    let rounds: Vec<f64> = found
        .iter()
        .map(|look| look["rounds"].as_f64().unwrap())
        .collect();
    assert_eq!(rounds, [2.0, 4.0, 6.0, 8.0, 10.0]);
}

#[test]
fn what_cannot_be_decided_is_given_up() {
    let until = ", until: { looks: 5, max_repetitions: 10, futility: true }";
    let suite = suite(until, 9000);
    let outcome = suite.assize(&["run"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(suite.rows().len() < 160, "{}", suite.rows().len());
    assert!(outcome.stderr.contains("hardly be decided"), "{outcome:#?}");
}

#[test]
fn anytime_may_be_looked_at_after_every_round() {
    let until = ", until: { method: anytime, max_repetitions: 12 }";
    let suite = suite(until, 3000);
    let outcome = suite.assize(&["run"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(suite.rows().len() < 12 * 16);
    assert!(outcome.stdout.contains("(anytime)"), "{outcome:#?}");
}

#[test]
fn a_rule_cannot_be_declared_after_the_first_trial() {
    let suite = suite("", 9000);
    suite.done(&["run", "--quiet", "-n", "1"]);
    let path = suite.path().join("assize.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replace("warmup: false", "warmup: false, until: { decided: true }"),
    )
    .unwrap();
    let outcome = suite.assize(&["run", "--resume", "last", "-n", "4"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    assert!(outcome.stderr.contains("cannot change"), "{outcome:#?}");
}

#[test]
fn later_looks_that_were_not_declared_are_counted_and_paid_for() {
    let suite = suite("", 8000);
    suite.done(&["run", "--quiet", "-n", "2"]);
    assert_eq!(looks(&suite).len(), 1);
    let p = |suite: &Suite| {
        let line = suite.done(&["compare", "--json"]);
        let found: Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
        (
            found["paired"]["pValue"].as_f64().unwrap(),
            found["pAdjusted"].as_f64().unwrap(),
        )
    };
    let (raw, adjusted) = p(&suite);
    assert!((raw - adjusted).abs() < 1e-12);
    suite.done(&["run", "--quiet", "--resume", "last", "-n", "3"]);
    let third = suite.assize(&["run", "--resume", "last", "-n", "4"]);
    assert!(
        third.stdout.contains("Look 3 at a growing run"),
        "{third:#?}"
    );
    assert!(third.stdout.contains("multiplied by 3"), "{third:#?}");
    let (raw, adjusted) = p(&suite);
    assert!(
        (adjusted - (3.0 * raw).min(1.0)).abs() < 1e-12,
        "{raw} {adjusted}"
    );
    assert_eq!(looks(&suite).len(), 3);
    suite.done(&["report"]);
    let summary =
        std::fs::read_to_string(suite.run_directory().join("report/data/summary.json")).unwrap();
    assert!(summary.contains("optional-stopping"), "{summary}");
}

#[test]
fn looks_that_cannot_be_counted_are_said_and_nothing_fails() {
    let suite = suite("", 8000);
    suite.done(&["run", "--quiet", "-n", "2"]);
    let path = suite.run_directory().join("looks.jsonl");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let outcome = suite.assize(&["compare"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(outcome.stderr.contains("cannot be counted"), "{outcome:#?}");
}

#[test]
fn looks_survive_a_kill_between_them() {
    let text = UNTIL.replace("max_repetitions: 10", "max_repetitions: 40");
    let suite = suite(&text, 9000);
    let path = suite.path().join("assize.yaml");
    let slow = std::fs::read_to_string(&path)
        .unwrap()
        .replace("latency_ms: 0", "latency_ms: 3");
    std::fs::write(&path, slow).unwrap();
    let mut child = crate::support::assize(suite.path())
        .args(["run", "--quiet"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let is_looked_at = || {
        let runs = std::fs::read_dir(suite.path().join(".assize/runs")).ok()?;
        let run = runs
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .find(|path| path.is_dir())?;
        std::fs::read_to_string(run.join("looks.jsonl")).ok()
    };
    while is_looked_at().is_none_or(|text| text.is_empty()) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    suite.done(&["run", "--resume", "last", "--quiet"]);
    let rounds: Vec<f64> = looks(&suite)
        .iter()
        .map(|look| look["rounds"].as_f64().unwrap())
        .collect();
    assert_eq!(rounds, [8.0, 16.0, 24.0, 32.0, 40.0]);
}

#[test]
fn one_mode_against_itself_shows_the_noise_and_later_reports_remember_it() {
    let suite = suite("", 3000);
    let outcome = suite.assize(&["run", "--aa"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(
        outcome.stdout.contains("A/A: plain against itself"),
        "{outcome:#?}"
    );
    assert!(
        outcome.stdout.contains("% in active tokens"),
        "{outcome:#?}"
    );
    let modes: std::collections::BTreeSet<String> = suite
        .rows()
        .iter()
        .map(|row| row["mode"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        modes.into_iter().collect::<Vec<_>>(),
        ["plain", "plain (again)"]
    );
    suite.done(&["run", "--resume", "last", "-n", "5", "--quiet"]);
    assert_eq!(suite.rows().len(), 8 * 2 * 5);
    let later = suite.done(&["run"]);
    assert!(
        later.contains("Noise of this set-up: two runs of the same mode"),
        "{later}"
    );
    // An A/A run is nothing to plan a comparison from.
    let plan = suite.assize(&["plan", "--aa", "--mode", "other", "-n", "2", "--yes"]);
    assert!(
        plan.stdout.contains("A/A: other against itself"),
        "{plan:#?}"
    );
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    for (until, part) in [
        (", until: { looks: 0 }", "expected at least 1"),
        (", until: { decided: false }", "stops nothing"),
        (
            ", until: { metrics: [success] }",
            "unknown metric to decide by `success`",
        ),
        (", until: { decided: true }, order: random", "whole blocks"),
        (", until: { methd: anytime }", "unknown key `methd`"),
        (", budget: { usd: -1 }", "at least 0"),
    ] {
        let suite = suite(until, 9000);
        let outcome = suite.assize(&["check"]);
        assert_eq!(outcome.code, Some(2), "{until}: {outcome:#?}");
        assert!(outcome.stderr.contains(part), "{until}: {outcome:#?}");
    }
}

#[test]
fn rules_about_metrics_that_do_not_decide_are_refused() {
    for (metrics, part) in [
        ("[nonsense]", "unknown metric to decide by `nonsense`"),
        ("[]", "found no metric, expected at least one"),
    ] {
        let suite = suite(&format!(", until: {{ metrics: {metrics} }}"), 9000);
        let outcome = suite.assize(&["check"]);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        assert!(outcome.stderr.contains(part), "{outcome:#?}");
    }
}
