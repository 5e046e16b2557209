//! Trials held against gates: what passes, what fails, and that nothing passes which the data do not show.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use assize_report::{
    Analysis, Gate, GateContext, GateResult, Planned, PlannedArm, Reference, SummaryBuilder,
    gate_bounds_note, judge_gates, worst,
};
use assize_stats::GateVerdict::{self, Fail, Inconclusive, Pass};
use assize_stats::Scope;
use serde_json::{Value, json};

/// A row of Assize; `changes` are laid over it.
fn row(mode: &str, scenario: &str, iteration: u64, changes: Value) -> Value {
    let mut row = json!({
        "schemaVersion": 1, "runId": "r", "scenarioId": scenario, "mode": mode, "model": "m",
        "iteration": iteration, "success": true, "outcome": "pass",
        "tokens": {"total": 1000 + 10 * iteration}, "timing": {"wallMs": 2000 + 20 * iteration},
        "completionReason": "stop", "extensions": {}
    });
    for (name, value) in changes.as_object().unwrap() {
        row[name] = value.clone();
    }
    row
}

/// Five scenarios, six runs each; `change` says what is different in a run.
fn run(mode: &str, change: impl Fn(u64, u64) -> Value) -> Vec<Value> {
    let cells = (0..5).flat_map(|scenario| (0..6).map(move |iteration| (scenario, iteration)));
    let row = |(scenario, iteration): (u64, u64)| {
        row(
            mode,
            &format!("s{scenario}"),
            iteration,
            change(scenario, iteration),
        )
    };
    cells.map(row).collect()
}

fn as_usual(_: u64, _: u64) -> Value {
    json!({})
}

fn tokens(factor: f64) -> impl Fn(u64, u64) -> Value {
    move |scenario, iteration| {
        let total = (1000 + 500 * scenario + 7 * ((iteration * 5 + scenario) % 6)) as f64;
        json!({"tokens": {"total": total * factor}})
    }
}

fn builder(rows: &[Value]) -> SummaryBuilder {
    let mut builder = SummaryBuilder::default();
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    builder.read(lines.join("\n").as_bytes(), None).unwrap();
    builder
}

fn judge(rows: &[Value], gate: &str, mut context: GateContext) -> Vec<GateResult> {
    context.gates = vec![gate.parse::<Gate>().unwrap()];
    judge_gates(&mut builder(rows), &mut context, &Analysis::default())
}

fn check(rows: &[Value], gate: &str, expected: GateVerdict) -> GateResult {
    let results = judge(rows, gate, GateContext::default());
    assert_eq!(worst(&results), Some(expected), "{results:#?}");
    results.into_iter().next_back().unwrap()
}

fn against(reference: &[Value]) -> GateContext {
    GateContext {
        reference: Some(Reference {
            name: "main".to_owned(),
            trials: builder(reference),
            planned: None,
        }),
        ..GateContext::default()
    }
}

fn check_against(
    rows: &[Value],
    reference: &[Value],
    gate: &str,
    expected: GateVerdict,
) -> GateResult {
    let results = judge(rows, gate, against(reference));
    assert_eq!(worst(&results), Some(expected), "{results:#?}");
    results.into_iter().next_back().unwrap()
}

fn reason(result: &GateResult) -> &str {
    result.reason.as_deref().unwrap_or_default()
}

#[test]
fn a_rate_passes_fails_or_stays_open() {
    let perfect = run("a", as_usual);
    let shown = check(&perfect, "success >= 0.9", Pass);
    assert_eq!(
        shown.line(),
        "success >= 0.9 · a: 100 % (92 % to 100 %), 30 trials"
    );
    let mixed = run(
        "a",
        |_, iteration| json!({"success": iteration > 0, "outcome": if iteration > 0 { "pass" } else { "fail" }}),
    );
    let open = check(&mixed, "success >= 0.9", Inconclusive);
    assert!(reason(&open).contains("both sides"), "{open:?}");
    check(&mixed, "success >= 0.97", Fail);
    check(&mixed, "success < 0.97", Pass);
}

#[test]
fn several_tries_are_held_against_their_chances() {
    let rows = run("a", as_usual);
    check(&rows, "pass_hat(2) >= 0.2", Pass);
    let open = check(&rows, "pass_at(7) >= 0.1", Inconclusive);
    assert!(reason(&open).contains("7 judged trials"), "{open:?}");
}

#[test]
fn a_metric_is_held_against_a_limit_by_its_statistic() {
    let rows = run("a", as_usual);
    let shown = check(&rows, "tokens_total < 1040", Pass);
    assert_eq!((shown.value, shown.trials), (Some(1025.0), 30));
    check(&rows, "mean(tokens_total) < 1025.5", Inconclusive);
    check(&rows, "max(tokens_total) <= 1050", Pass);
    check(&rows, "max(tokens_total) < 1050", Fail);
    check(&rows, "p95(tokens_total) > 1060", Fail);
}

#[test]
fn one_run_per_scenario_is_no_evidence_but_its_largest_value_is_a_fact() {
    let rows: Vec<Value> = (0..5)
        .map(|n| row("a", &format!("s{n}"), 0, json!({})))
        .collect();
    let open = check(&rows, "tokens_total < 5000", Inconclusive);
    assert!(reason(&open).contains("was run once"), "{open:?}");
    check(&rows, "max(tokens_total) < 5000", Pass);
}

#[test]
fn a_mode_is_not_worse_than_the_baseline_of_its_run() {
    let both = |factor| [run("plain", tokens(1.0)), run("new", tokens(factor))].concat();
    let shown = check(&both(1.02), "tokens_total <= baseline + 5%", Pass);
    assert_eq!(
        (shown.mode.as_deref(), shown.baseline.as_deref()),
        (Some("new"), Some("plain"))
    );
    assert!(
        shown.line().contains("+2 % against plain (+2 % to +2 %)"),
        "{}",
        shown.line()
    );
    check(&both(1.2), "tokens_total <= baseline + 5%", Fail);
    check(&both(1.0), "tokens_total < baseline", Inconclusive);
    check(&both(0.7), "tokens_total <= baseline - 25%", Pass);
    check(&both(0.8), "tokens_total <= baseline - 25%", Fail);
    check(&both(1.02), "tokens_total <= baseline + 100", Pass);
    check(&both(1.02), "p95(tokens_total) <= baseline + 10%", Pass);
    check(&both(1.5), "p95(tokens_total) <= baseline + 10%", Fail);
}

#[test]
fn a_mode_is_compared_with_itself_in_another_run() {
    let (old, new) = (run("a", as_usual), run("a", as_usual));
    check_against(&new, &old, "success >= baseline - 10pp", Pass);
    check_against(&new, &old, "success >= baseline - 1pp", Inconclusive);
    check_against(&new, &old, "pass_hat(2) >= baseline - 90pp", Pass);
    let failing = run(
        "a",
        |_, n| json!({"success": n > 2, "outcome": if n > 2 { "pass" } else { "fail" }}),
    );
    let shown = check_against(&failing, &old, "success >= baseline - 10pp", Fail);
    assert!(
        shown.line().contains("-50 points against main"),
        "{}",
        shown.line()
    );
}

#[test]
fn every_mode_must_pass_unless_the_gate_names_some() {
    let failing = run("bad", |_, _| json!({"success": false, "outcome": "fail"}));
    let rows = [run("good", as_usual), failing].concat();
    check(&rows, "success >= 0.9", Fail);
    let mut gate: Gate = "success >= 0.9".parse().unwrap();
    gate.modes = Some(vec!["good".to_owned()]);
    let mut context = GateContext {
        gates: vec![gate],
        ..GateContext::default()
    };
    let results = judge_gates(&mut builder(&rows), &mut context, &Analysis::default());
    assert_eq!((results.len(), worst(&results)), (1, Some(Pass)));
    context.gates[0].modes = Some(vec!["good".to_owned(), "absent".to_owned()]);
    let results = judge_gates(&mut builder(&rows), &mut context, &Analysis::default());
    assert_eq!((results.len(), worst(&results)), (2, Some(Inconclusive)));
}

#[test]
fn what_is_missing_never_passes() {
    let open = |rows: &[Value], gate: &str, words: &str| {
        let result = check(rows, gate, Inconclusive);
        assert!(reason(&result).contains(words), "{result:?}");
    };
    let rows = run("a", as_usual);
    open(&[], "success >= 0.1", "no trials");
    open(&rows, "success >= baseline - 50pp", "there is no baseline");
    open(
        &rows,
        "cost_total_usd < 1",
        "no trial measured `cost_total_usd`",
    );
    let void = run("a", |_, n| match n < 2 {
        true => json!({"outcome": "void", "success": false}),
        false => json!({}),
    });
    open(&void, "success >= 0.1", "only 20 of 30 trials were judged");
    let unmeasured = run("a", |_, n| {
        if n < 2 {
            json!({"tokens": {}})
        } else {
            json!({})
        }
    });
    open(
        &unmeasured,
        "tokens_total < 5000",
        "only 20 of 30 trials were measured",
    );
    let one_lost = run("a", |s, _| match s == 0 {
        true => json!({"outcome": "void", "success": false}),
        false => json!({}),
    });
    open(&one_lost, "success >= 0.1", "no trial on s0 was judged");
}

#[test]
fn a_missing_baseline_never_passes() {
    let rows = run("a", as_usual);
    let open = |reference: &[Value], words: &str| {
        let result = check_against(&rows, reference, "success >= baseline - 50pp", Inconclusive);
        assert!(reason(&result).contains(words), "{result:?}");
    };
    open(&[], "no live trial of mode a");
    open(&run("b", as_usual), "no live trial of mode a");
    open(
        &run("a", |_, _| json!({"simulated": true})),
        "no live trial of mode a",
    );
    open(&rows[..6], "only 1 of 5 scenarios are in both");
    open(
        &run("a", |_, _| json!({"outcome": "void", "success": false})),
        "of the baseline were judged",
    );
}

#[test]
fn another_model_of_the_baseline_is_said() {
    let other = run("a", |_, _| json!({"model": "newer"}));
    let shown = check_against(
        &other,
        &run("a", as_usual),
        "success >= baseline - 20pp",
        Pass,
    );
    assert_eq!(shown.notes, ["the baseline ran with m"]);
}

#[test]
fn trials_and_modes_that_were_planned_and_not_run_are_missing() {
    let planned = |modes: &[&str], repetitions| GateContext {
        planned: Some(Planned {
            arms: modes
                .iter()
                .map(|mode| PlannedArm {
                    mode: (*mode).to_owned(),
                    model: "m".to_owned(),
                    repetitions: None,
                })
                .collect(),
            scenarios: (0..5).map(|n| format!("s{n}")).collect(),
            tasks: 0,
            repetitions,
        }),
        ..GateContext::default()
    };
    let rows = run("a", as_usual);
    let verdict = |context| worst(&judge(&rows, "success >= 0.5", context));
    assert_eq!(verdict(planned(&["a"], 6)), Some(Pass));
    assert_eq!(verdict(planned(&["a"], 7)), Some(Pass));
    assert_eq!(verdict(planned(&["a"], 8)), Some(Inconclusive));
    assert_eq!(verdict(planned(&["a", "b"], 6)), Some(Inconclusive));
}

#[test]
fn a_clock_that_was_stopped_shows_no_upper_limit() {
    let timeouts = |share: u64| {
        run("a", move |_, n| match n < share {
            true => {
                json!({"success": false, "outcome": "fail", "censored": true, "timing": {"wallMs": 9000}})
            }
            false => json!({}),
        })
    };
    check(&timeouts(1), "latency_wall_ms < 5000", Pass);
    let open = check(&timeouts(4), "latency_wall_ms < 20000", Inconclusive);
    assert_eq!(open.upper_bound, None);
    assert!(
        open.notes[0].contains("20 trials ran out of time"),
        "{open:?}"
    );
    check(&timeouts(1), "max(latency_wall_ms) < 20000", Inconclusive);
    check(&timeouts(4), "latency_wall_ms < 5000", Fail);
    check_against(
        &timeouts(1),
        &timeouts(1),
        "latency_wall_ms <= baseline + 300%",
        Inconclusive,
    );
    let early = run(
        "a",
        |_, n| json!({"timing": {"wallMs": 2000 + n}, "censored": n == 0}),
    );
    let open = check_against(
        &early,
        &run("a", as_usual),
        "latency_wall_ms <= baseline + 50%",
        Inconclusive,
    );
    assert_eq!(open.upper_bound, None);
}

#[test]
fn ratios_of_zero_ask_for_another_margin() {
    let zero = run("a", |_, _| json!({"extensions": {"x": 0}}));
    let open = check_against(&zero, &zero, "x <= baseline + 10%", Inconclusive);
    assert!(reason(&open).contains("baseline + 5"), "{open:?}");
    check_against(&zero, &zero, "x <= baseline + 1", Pass);
}

#[test]
fn results_are_plain_json() {
    let result = check(&run("a", as_usual), "success >= 0.9", Pass);
    let json = serde_json::to_value(&result).unwrap();
    assert_eq!(
        (&json["verdict"], &json["measure"]),
        (&json!("pass"), &json!("value"))
    );
    assert_eq!(json["reason"], Value::Null);
}

#[test]
fn the_note_about_bounds_names_the_gates_that_speak_of_new_tasks() {
    let population = || GateContext {
        scope: Scope::Population,
        ..GateContext::default()
    };
    let rows = run("a", as_usual);
    let note = |gates: Vec<GateResult>| gate_bounds_note(&gates).unwrap();
    let success = judge(&rows, "success >= 0.5", GateContext::default());
    let tries = judge(&rows, "pass_at(2) >= 0.5", GateContext::default());
    assert!(note(success.clone()).contains("hold for exactly these tasks;"));
    let both = note([success, tries].concat());
    assert!(
        both.contains("those of several tries hold for tasks like these"),
        "{both}"
    );
    let new = note(judge(&rows, "success >= 0.5", population()));
    assert!(
        new.contains("those of success hold for tasks like these"),
        "{new}"
    );
    // A gate without a number has its scope, too.
    let one_task: Vec<Value> = (0..6).map(|run| row("a", "s", run, json!({}))).collect();
    let open = judge(&one_task, "success >= 0.5", population());
    assert_eq!(
        (open[0].verdict, open[0].scope),
        (Inconclusive, Scope::Population)
    );
}
