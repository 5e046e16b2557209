//! `factors:` in a suite: modes, effects, fractions, problems.

use crate::support::Suite;
use serde_json::Value;

const SUITE: &str = "\
name: factors
provider: { uses: simulated, model: m, latency_ms: 0, scenario_spread: 0.05, success_rate: 0.5, tokens: { input: { median: 9000, spread: 0.2 }, output: { median: 900, spread: 0.2 } } }
factors:
  short: { provider_overrides: { tokens: { input: { median: 3000, spread: 0.2 }, output: { median: 300, spread: 0.2 } } } }
  skilled: { on: { provider_overrides: { success_rate: 1.0 } } }
  polite: { system_instructions: 'Please.' }
  loud: { environment: { LOUD: '1' } }
factorial: { runs: 8, interactions: [[short, skilled]] }
scenarios: { paths: ['many.yaml'] }
execution: { repetitions: 3, concurrency: 8 }
";

fn suite(text: &str) -> Suite {
    let suite = Suite::of(text);
    suite.write(
        "many.yaml",
        "id: s\nprompt: do it\nvars: { n: [1, 2, 3, 4, 5, 6, 7, 8] }\n",
    );
    suite
}

#[test]
fn four_switches_in_eight_modes_tell_which_part_earns_its_place() {
    let suite = suite(SUITE);
    suite.done(&["run", "--quiet"]);
    let modes: std::collections::BTreeSet<String> = suite
        .rows()
        .iter()
        .map(|row| row["mode"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(modes.len(), 8);
    assert!(modes.contains("none") && modes.contains("short+skilled+polite+loud"));
    let lines = suite.done(&["compare", "--json"]);
    let effects: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line.get("effect").is_some())
        .collect();
    let find = |effect: &str, metric: &str| {
        let is_meant = |found: &&Value| found["effect"] == effect && found["metric"] == metric;
        effects
            .iter()
            .find(is_meant)
            .unwrap_or_else(|| panic!("{effect} {metric}"))
    };
    assert_eq!(find("short", "tokens_active")["verdict"], "better");
    assert_eq!(find("skilled", "success")["verdict"], "better");
    assert_eq!(find("polite", "success")["verdict"], "inconclusive");
    let value = find("skilled", "success")["estimate"]["value"]
        .as_f64()
        .unwrap();
    assert!((35.0..65.0).contains(&value), "{value}");
    // Four main effects and one declared pair, each on success and tokens.
    assert_eq!(find("short", "tokens_active")["familySize"], 10);
    let pair = find("short × polite", "success");
    assert_eq!(
        (&pair["exploratory"], &pair["aliases"][0]),
        (&Value::Bool(true), &Value::from("skilled × loud"))
    );
    assert_eq!(find("short × skilled", "success")["exploratory"], false);
    // Pairs of modes are exploratory: the family is that of the effects.
    let pairs = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(
        pairs
            .filter(|line| line.get("modeA").is_some())
            .all(|line| line["exploratory"] == true)
    );
    let text = suite.done(&["compare"]);
    assert!(text.contains("✓ short: better"), "{text}");
    // What was not declared stands under a heading of its own, and after "cannot tell" comes what would help.
    let heading = text.find("Exploratory: not declared beforehand").unwrap();
    assert!(text.find("short × polite").unwrap() > heading, "{text}");
    assert!(text.find("short × skilled").unwrap() < heading, "{text}");
    let advice = find("polite", "success")["advice"].as_str().unwrap();
    assert!(
        advice.contains("This design sees only differences above"),
        "{advice}"
    );
    assert!(find("short", "tokens_active").get("advice").is_none());
    let report = std::fs::read_to_string(suite.run_directory().join("report/report.md")).unwrap();
    assert!(report.contains("## Effects of the factors"), "{report}");
    let plan: Value = serde_json::from_str(&suite.done(&["plan", "--json"])).unwrap();
    assert_eq!(
        (&plan["arms"], &plan["questions"]),
        (&Value::from(8), &Value::from(10))
    );
    // Planned from the effects themselves, which average over all modes and so vary less than pairs of them.
    let of_success = &plan["metrics"][0];
    let factors = ["short", "skilled", "polite", "loud"];
    assert!(factors.contains(&of_success["comparison"].as_str().unwrap()));
    let seen = of_success["detectable"]["value"].as_f64().unwrap();
    assert!(seen < 60.0, "{plan:#}");
}

#[test]
fn a_full_factorial_is_resumed_like_any_other_run() {
    let full = SUITE.replace(
        "factorial: { runs: 8, interactions: [[short, skilled]] }\n",
        "",
    );
    let suite = suite(&full);
    let plan = suite.done(&["run", "--dry-run"]);
    assert_eq!(plan.lines().count(), 16 * 8 * 3);
    suite.done(&["run", "--quiet", "-n", "1"]);
    suite.done(&["run", "--quiet", "--resume", "last", "-n", "2"]);
    assert_eq!(suite.rows().len(), 16 * 8 * 2);
}

#[test]
fn factors_that_cannot_be_are_refused_where_they_stand() {
    for (from, to, part) in [
        (
            "runs: 8",
            "runs: 6",
            "cannot be balanced, expected one of 8",
        ),
        ("skilled]]", "clever]]", "unknown factor `clever`"),
        (
            "factorial: {",
            "interactions: [[short, loud]]\nfactorial: {",
            "`interactions` beside `factors`",
        ),
        (
            "loud: { environment: { LOUD: '1' } }",
            "loud: 3",
            "expected factors by name",
        ),
        (
            "factorial: {",
            "modes: { plain: {} }\nfactorial: {",
            "`modes` beside `factors`",
        ),
        (
            "loud: { environment",
            "loud: { enviroment",
            "unknown key `enviroment`",
        ),
    ] {
        let suite = suite(&SUITE.replace(from, to));
        let outcome = suite.assize(&["check"]);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        assert!(outcome.stderr.contains(part), "{part}: {outcome:#?}");
    }
}

/// The effect of one factor on one metric, as `compare --json` tells it.
fn effect(suite: &Suite, effect: &str, metric: &str) -> Value {
    let lines = suite.done(&["compare", "--json"]);
    let mut lines = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .find(|found| found["effect"] == effect && found["metric"] == metric)
        .unwrap_or_else(|| panic!("{effect} {metric}"))
}

/// Changes the stored rows of a run.
fn edit(suite: &Suite, change: impl Fn(&mut Value)) {
    let path = suite.run_directory().join("rows.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let rows = text.lines().map(|line| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        change(&mut row);
        format!("{row}\n")
    });
    std::fs::write(&path, rows.collect::<String>()).unwrap();
}

#[test]
fn failures_that_turn_void_decide_no_effect() {
    let suite = suite(SUITE);
    suite.done(&["run", "--quiet"]);
    edit(&suite, |row| {
        let is_polite = row["mode"].as_str().unwrap().contains("polite");
        if is_polite && row["outcome"] == "fail" {
            row["outcome"] = "void".into();
            row["voidCause"] = "llm_error".into();
        }
    });
    let found = effect(&suite, "polite", "success");
    assert_eq!(
        (&found["verdict"], &found["voidDecides"]),
        (&Value::from("inconclusive"), &Value::Bool(true)),
        "{found}"
    );
    assert_eq!(found["estimate"]["side"], 1, "{found}");
    let text = suite.done(&["compare"]);
    assert!(text.contains("void trials decide"), "{text}");
}

#[test]
fn few_tasks_have_effects_on_exactly_these() {
    let suite = Suite::of(SUITE);
    suite.write("many.yaml", "id: s\nprompt: do it\n");
    suite.done(&["run", "--quiet"]);
    let tokens = effect(&suite, "short", "tokens_active");
    assert_eq!(tokens["verdict"], "better", "{tokens}");
    assert_eq!(tokens["estimate"]["scope"], "suite");
    let success = effect(&suite, "skilled", "success");
    assert!(success["pAdjusted"].is_number(), "{success}");
    let text = suite.done(&["compare"]);
    assert!(text.contains("on exactly this task"), "{text}");
}

#[test]
fn runs_cut_off_by_a_limit_still_tell_the_direction_of_an_effect() {
    let suite = suite(SUITE);
    suite.done(&["run", "--quiet"]);
    edit(&suite, |row| {
        if row["iteration"] == 0 && row["scenarioId"].as_str().unwrap().contains('1') {
            row["censored"] = true.into();
        }
    });
    let found = effect(&suite, "short", "tokens_active");
    assert_eq!(found["verdict"], "better", "{found}");
    assert!(
        found["limited"]["score"].as_f64().unwrap() < -0.9,
        "{found}"
    );
    let text = suite.done(&["compare"]);
    assert!(text.contains("no size is given"), "{text}");
}
