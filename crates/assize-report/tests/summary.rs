//! Rows of every odd kind, and what a summary makes of them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use assize_report::{Analysis, Summary, SummaryBuilder, closing_line, sentence};
use assize_stats::{Direction, Verdict};
use serde_json::{Value, json};

/// A row of Assize; `changes` are laid over it.
fn row(mode: &str, scenario: &str, iteration: i64, changes: Value) -> Value {
    let mut row = json!({
        "schemaVersion": 1, "runId": "r", "scenarioId": scenario, "mode": mode, "model": "m",
        "iteration": iteration, "success": true, "outcome": "pass",
        "tokens": {"input": 100 + iteration, "output": 10, "total": 110 + iteration, "active": 110 + iteration},
        "timing": {"wallMs": 1000 + 10 * iteration, "segments": []},
        "toolCalls": {"total": 2, "byCategory": {}, "failed": 0, "retried": 0, "errorRate": 0, "records": []},
        "cost": {"totalUsd": 0.1}, "costSource": "reported",
        "checkpointDetails": [], "completionReason": "stop", "extensions": {}
    });
    let fields = row.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        fields.insert(name.clone(), value.clone());
    }
    row
}

fn summarize_with(rows: &[Value], analysis: &Analysis) -> Summary {
    let mut builder = SummaryBuilder::default();
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    builder.read(lines.join("\n").as_bytes(), None).unwrap();
    builder.finish(analysis).unwrap()
}

fn summarize(rows: &[Value]) -> Summary {
    summarize_with(rows, &Analysis::default())
}

fn codes(summary: &Summary) -> Vec<&str> {
    let codes = summary.cautions.iter().map(|caution| caution.code.as_str());
    codes.collect()
}

/// Both modes on six scenarios; the candidate takes 0.7 of the baseline's tokens and time.
fn two_modes() -> Vec<Value> {
    let mut rows = Vec::new();
    for scenario in 0..6 {
        for iteration in 0..5 {
            let size = (1000 + 300 * scenario + 17 * ((iteration * 7 + scenario * 3) % 5)) as f64;
            for (mode, factor) in [("plain", 1.0), ("with-docs", 0.7)] {
                let tokens = (size * factor).round();
                rows.push(row(
                    mode,
                    &format!("s{scenario}"),
                    iteration,
                    json!({"tokens": {"total": tokens, "active": tokens}, "timing": {"wallMs": tokens * 3.0}}),
                ));
            }
        }
    }
    rows
}

#[test]
fn nothing_gives_an_empty_summary_that_says_so() {
    let summary = summarize(&[]);
    assert_eq!(codes(&summary), ["no-trials"]);
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["modes"], json!({}));
    assert_eq!(json["comparisons"], json!([]));
}

#[test]
fn one_row_is_described_and_not_compared() {
    let summary = summarize(&[row("plain", "a", 0, json!({}))]);
    let json = serde_json::to_value(&summary).unwrap();
    let mode = &json["modes"]["plain"];
    assert_eq!(mode["runs"], 1);
    assert_eq!(mode["success"]["rate"], 1.0);
    assert_eq!(mode["metrics"]["tokens_total"]["median"], 110.0);
    assert_eq!(json["scenarios"]["a"]["modes"]["plain"]["runs"], 1);
    assert!(summary.comparisons.is_empty());
}

#[test]
fn the_json_has_the_documented_keys() {
    let json = serde_json::to_value(summarize(&two_modes())).unwrap();
    let keys =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(
        keys(&json),
        [
            "rulesVersion",
            "modes",
            "scenarios",
            "comparisons",
            "cautions",
            "metrics"
        ]
    );
    assert_eq!(json["rulesVersion"], 2);
    let mode = &json["modes"]["plain"];
    assert_eq!(keys(mode)[..3], ["runs", "success", "metrics"]);
    assert_eq!(
        keys(&mode["success"]),
        [
            "passed",
            "trials",
            "void",
            "voidUnrelated",
            "rate",
            "ci95",
            "scope",
            "voidBounds"
        ]
    );
    assert_eq!(
        keys(&mode["metrics"]["tokens_active"]),
        [
            "count",
            "mean",
            "median",
            "p90",
            "p95",
            "min",
            "max",
            "iqr",
            "cv",
            "stddev",
            "typicalTask"
        ]
    );
    assert_eq!(keys(&json["cautions"][0]), ["code", "text", "where"]);
}

#[test]
fn a_clear_difference_is_said_in_words() {
    let summary = summarize(&two_modes());
    let tokens = summary
        .decisive()
        .find(|found| found.metric() == "tokens_active")
        .unwrap();
    assert_eq!(tokens.verdict(), Verdict::Better);
    assert_eq!(
        sentence(tokens),
        "On tasks like these, with-docs had 30 % fewer active tokens than plain (95 % interval 30 % to 30 %; \
         1195 against 1706; 6 tasks x 5 runs, paired; p < 0.0001, adjusted < 0.0001). Lower in 6 of 6 scenarios. One run each: with-docs is better 100 % \
         of the time."
    );
    let closing = closing_line(summary.decisive()).unwrap();
    assert!(
        closing
            .starts_with("with-docs: 30 % fewer active tokens (30 % to 30 %; 1195 against 1706)"),
        "{closing}"
    );
    assert!(closing.contains("cannot tell for success"), "{closing}");
}

#[test]
fn void_trials_are_in_no_metric_and_widen_the_bounds() {
    let void = json!({"outcome": "void", "success": false, "tokens": {"total": 99999}});
    let summary = summarize(&[row("plain", "a", 0, json!({})), row("plain", "a", 1, void)]);
    let mode = summary.modes.find("plain").unwrap();
    assert_eq!(
        (mode.runs, mode.success.trials, mode.success.void),
        (2, 1, 1)
    );
    assert_eq!(mode.success.void_bounds, Some([0.5, 1.0]));
    assert_eq!(mode.metrics.find("tokens_total").unwrap().count, 1);
    assert!(codes(&summary).contains(&"void"));
}

#[test]
fn only_void_trials_leave_everything_unknown() {
    let void = || json!({"outcome": "void", "success": false});
    let summary = summarize(&[row("a", "s", 0, void()), row("b", "s", 0, void())]);
    let mode = summary.modes.find("a").unwrap();
    assert_eq!((mode.success.rate, mode.success.ci95), (None, None));
    assert!(mode.metrics.is_empty());
    for comparison in &summary.comparisons {
        assert_eq!(comparison.verdict(), Verdict::NotComparable);
        assert!(sentence(comparison).contains("cannot be compared"));
    }
}

#[test]
fn times_that_were_all_cut_off_have_no_median() {
    let cut = || json!({"outcome": "fail", "success": false, "censored": true, "completionReason": "timeout"});
    let rows: Vec<Value> = (0..4).map(|n| row("a", "s", n, cut())).collect();
    let summary = summarize(&rows);
    let time = summary
        .modes
        .find("a")
        .unwrap()
        .metrics
        .find("latency_wall_ms")
        .unwrap();
    assert_eq!((time.count, time.median, time.censored), (4, None, 4));
    assert!(codes(&summary).contains(&"cut-off"));
}

#[test]
fn one_cut_off_time_in_four_leaves_the_median_and_takes_the_p90() {
    let mut rows: Vec<Value> = (0..3).map(|n| row("a", "s", n, json!({}))).collect();
    rows.push(row(
        "a",
        "s",
        3,
        json!({"censored": true, "timing": {"wallMs": 5000}}),
    ));
    let summary = summarize(&rows);
    let time = summary
        .modes
        .find("a")
        .unwrap()
        .metrics
        .find("latency_wall_ms")
        .unwrap();
    assert_eq!((time.median, time.p90), (Some(1010.0), None));
}

#[test]
fn constant_metrics_get_no_invented_p_value() {
    let same = || json!({"timing": {"wallMs": 1000}, "tokens": {"total": 50, "active": 50}});
    let mut rows = Vec::new();
    for scenario in ["x", "y", "z"] {
        for iteration in 0..3 {
            rows.push(row("a", scenario, iteration, same()));
            rows.push(row("b", scenario, iteration, same()));
        }
    }
    let summary = summarize(&rows);
    for comparison in summary.decisive() {
        assert_eq!(
            comparison.verdict(),
            Verdict::Inconclusive,
            "{}",
            sentence(comparison)
        );
    }
    assert!(codes(&summary).contains(&"no-variation"));
}

#[test]
fn unknown_extensions_are_described_but_need_a_direction_for_a_verdict() {
    let mut rows = two_modes();
    for (number, row) in rows.iter_mut().enumerate() {
        let value = if row["mode"] == "plain" { 10.0 } else { 20.0 };
        row["extensions"] =
            json!({"my_metric": value + (number % 7) as f64, "label": "x", "odd": [1, {"a": 2}]});
    }
    let found = |analysis: &Analysis| {
        let summary = summarize_with(&rows, analysis);
        assert!(
            summary
                .modes
                .find("plain")
                .unwrap()
                .metrics
                .find("label")
                .is_none()
        );
        let mut all = summary.comparisons.iter();
        all.find(|found| found.metric() == "my_metric")
            .unwrap()
            .verdict()
    };
    assert_eq!(found(&Analysis::default()), Verdict::NotComparable);
    let mut declared = Analysis {
        directions: [("my_metric".to_owned(), Direction::Higher)].into(),
        ..Analysis::default()
    };
    assert_eq!(found(&declared), Verdict::Higher);
    declared.primary = Some(vec!["my_metric".to_owned()]);
    assert_eq!(found(&declared), Verdict::Better);
}

#[test]
fn a_foreign_failure_of_zeros_counts_as_failed_and_measures_nothing() {
    let foreign = |iteration: i64, success: bool, tokens: u64| {
        json!({
            "runId": "r", "scenarioId": "s", "mode": "a", "model": "m", "iteration": iteration, "success": success,
            "tokens": {"input": tokens, "output": 0, "total": tokens, "active": tokens},
            "timing": {"wallMs": tokens, "segments": []}, "toolCalls": {"total": 0, "failed": 0},
            "cost": {"totalUsd": 0}, "extensions": {"x": 0}
        })
    };
    let summary = summarize(&[foreign(0, true, 500), foreign(1, false, 0)]);
    let mode = summary.modes.find("a").unwrap();
    assert_eq!((mode.success.passed, mode.success.trials), (1, 2));
    assert_eq!(mode.metrics.find("tokens_total").unwrap().min, 500.0);
    assert_eq!(mode.metrics.find("x").unwrap().count, 1);
    assert!(mode.metrics.find("cost_total_usd").is_none());
    assert!(codes(&summary).contains(&"unmeasured"));
    assert!(codes(&summary).contains(&"unknown-cost"));
}

#[test]
fn duplicate_rows_count_once_and_are_said() {
    let one = row("a", "s", 0, json!({}));
    let summary = summarize(&[one.clone(), one, row("a", "s", 1, json!({}))]);
    assert_eq!(summary.modes.find("a").unwrap().runs, 2);
    assert!(codes(&summary).contains(&"duplicate-rows"));
}

#[test]
fn simulated_trials_are_never_mixed_with_live_ones() {
    let mut rows = Vec::new();
    for iteration in 0..3 {
        rows.push(row("a", "s", iteration, json!({})));
        rows.push(row("a", "s", iteration + 10, json!({"simulated": true})));
        rows.push(row("b", "s", iteration, json!({})));
    }
    let summary = summarize(&rows);
    let names: Vec<&str> = summary.modes.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a [live]", "a [simulated]", "b [live]"]);
    assert!(
        summary
            .comparisons
            .iter()
            .all(|found| found.mode_a() == "b [live]" && found.mode_b() == "a [live]")
    );
    assert!(codes(&summary).starts_with(&["simulated"]));
}

#[test]
fn modes_are_compared_within_a_model() {
    let mut rows = Vec::new();
    for model in ["small", "large"] {
        for mode in ["a", "b"] {
            for iteration in 0..3 {
                rows.push(row(mode, "s", iteration, json!({"model": model})));
            }
        }
    }
    let summary = summarize(&rows);
    let pairs: Vec<(&str, &str)> = summary
        .pairs()
        .map(|pair| (pair[0].mode_a(), pair[0].mode_b()))
        .collect();
    assert_eq!(
        pairs,
        [("b (small)", "a (small)"), ("b (large)", "a (large)")]
    );
}

#[test]
fn models_are_compared_where_there_is_one_mode() {
    let rows: Vec<Value> = (0..6)
        .map(|n| {
            row(
                "a",
                "s",
                n,
                json!({"model": if n % 2 == 0 { "small" } else { "large" }}),
            )
        })
        .collect();
    let summary = summarize(&rows);
    let pairs: Vec<(&str, &str)> = summary
        .pairs()
        .map(|pair| (pair[0].mode_a(), pair[0].mode_b()))
        .collect();
    assert_eq!(pairs, [("a (large)", "a (small)")]);
}

#[test]
fn suites_are_kept_apart() {
    let mut builder = SummaryBuilder::default();
    for suite in ["one", "two"] {
        for mode in ["a", "b"] {
            let line = row(mode, "s", 0, json!({})).to_string();
            builder.read(line.as_bytes(), Some(suite)).unwrap();
        }
    }
    let summary = builder.finish(&Analysis::default()).unwrap();
    assert_eq!(summary.modes.len(), 4);
    assert!(codes(&summary).contains(&"several-suites"));
    for pair in summary.pairs() {
        assert_eq!(
            pair[0].mode_a().split_once('@').unwrap().1,
            pair[0].mode_b().split_once('@').unwrap().1
        );
    }
}

#[test]
fn a_torn_last_row_is_left_out_and_said_while_a_broken_one_is_an_error() {
    let good = row("a", "s", 0, json!({})).to_string();
    let mut builder = SummaryBuilder::default();
    builder
        .read(format!("{good}\n{}", &good[..50]).as_bytes(), None)
        .unwrap();
    let summary = builder.finish(&Analysis::default()).unwrap();
    assert!(codes(&summary).contains(&"torn-row"));

    let broken = format!("{good}\n{{\"mode\": 3}}\n{good}\n");
    let error = SummaryBuilder::default()
        .read(broken.as_bytes(), None)
        .unwrap_err();
    assert!(error.to_string().starts_with("row 2: "), "{error}");
}

#[test]
fn names_of_every_script_stay_what_they_are() {
    for name in [
        "日本語",
        "a\u{301}",
        "\u{202e}evil",
        "🙂\u{200d}🙂",
        "",
        "tab\tnew\nline",
        "\"quoted\\",
    ] {
        let summary = summarize(&[row(name, name, 0, json!({"extensions": {name: 1}}))]);
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["modes"][name]["metrics"][name]["count"], 1, "{name:?}");
    }
}

#[test]
fn a_category_nobody_used_is_zero_calls_where_tools_were_seen() {
    let calls = |categories: Value| json!({"toolCalls": {"total": 1, "byCategory": categories}});
    let summary = summarize(&[
        row("a", "s", 0, calls(json!({"shell": 3}))),
        row("a", "s", 1, calls(json!({}))),
        row(
            "a",
            "s",
            2,
            json!({"toolCalls": {"total": null, "byCategory": {}}}),
        ),
    ]);
    let shell = summary
        .modes
        .find("a")
        .unwrap()
        .metrics
        .find("tool_calls_category_shell")
        .unwrap();
    assert_eq!((shell.count, shell.min), (2, 0.0));
}

#[test]
fn an_unknown_baseline_is_refused_with_the_known_ones() {
    let mut builder = SummaryBuilder::default();
    builder
        .read(row("a", "s", 0, json!({})).to_string().as_bytes(), None)
        .unwrap();
    let analysis = Analysis {
        baseline: Some("z".to_owned()),
        ..Analysis::default()
    };
    let error = builder.finish(&analysis).unwrap_err();
    assert_eq!(error.to_string(), "unknown baseline `z` (modes here: a)");
}

#[test]
fn of_many_scenarios_those_that_did_not_pass_are_told_and_all_count() {
    let check = |holds: bool| json!([{"id": "accuracy", "description": "", "passed": holds}]);
    let rows: Vec<Value> = (0..2500)
        .map(|number| {
            let fails = number >= 2490;
            let changes = match fails {
                true => {
                    json!({"success": false, "outcome": "fail", "checkpointDetails": check(false)})
                }
                false => json!({"checkpointDetails": check(true)}),
            };
            row("table", &format!("t{number}"), 0, changes)
        })
        .collect();
    let summary = summarize(&rows);
    assert_eq!(summary.scenarios.len(), 1000);
    assert_eq!(summary.scenario_count(), 2500);
    for listed in ["t0", "t2490", "t2499"] {
        assert!(summary.scenarios.find(listed).is_some(), "{listed}");
    }
    assert!(summary.scenarios.find("t1500").is_none());
    let mode = summary.modes.find("table").unwrap();
    assert_eq!((mode.runs, mode.success.passed), (2500, 2490));
    assert_eq!(mode.metrics.find("tokens_total").unwrap().count, 2500);
    assert_eq!(mode.checks.find("accuracy (all)"), Some(&(2490, 2500)));
    assert_eq!(mode.checks.find("t2499/accuracy"), Some(&(0, 1)));
    assert_eq!(json!(summary)["scenariosLeftOut"], 1500);
    let page = assize_report::render_markdown(&summary, "many");
    assert!(
        page.contains("1500 of 2500 scenarios are not listed one by one"),
        "{page}"
    );
    let junit = assize_report::render_junit(&summary, "many");
    assert!(junit.contains(r#"name="scenarios_left_out" value="1500""#));
    assert_eq!(junit.matches("<testcase").count(), 1000);
    let all = Analysis {
        most_scenarios: usize::MAX,
        ..Analysis::default()
    };
    assert_eq!(summarize_with(&rows, &all).scenarios.len(), 2500);
}

#[test]
fn every_scenario_is_counted_where_somebody_asks_also_those_that_are_not_told() {
    let trial = |mode: &str, number: u32, passes: bool| {
        let outcome = if passes { "pass" } else { "fail" };
        let changes = json!({"success": passes, "outcome": outcome});
        row(mode, &format!("t{number}"), 0, changes)
    };
    let rows: Vec<Value> = (0..1500)
        .flat_map(|number| {
            [
                trial("old", number, true),
                trial("new", number, number != 1400),
            ]
        })
        .chain([trial("new", 1500, true)])
        .collect();
    let changes = |counts_scenarios| {
        let analysis = Analysis {
            counts_scenarios,
            most_scenarios: if counts_scenarios { 10 } else { usize::MAX },
            resamples: 200,
            ..Analysis::default()
        };
        let summary = summarize_with(&rows, &analysis);
        json!(assize_report::scenario_changes(&summary, "new", "old"))
    };
    let counted = changes(true);
    assert_eq!(counted, changes(false));
    assert_eq!(counted.as_array().unwrap().len(), 1501);
    assert_eq!(counted[1400]["change"], "regressed");
    assert_eq!(counted[1500]["change"], "new");
}

#[test]
fn cells_of_one_trial_and_of_several_measure_alike() {
    let rows = |trials: i64| -> Vec<Value> {
        let extension = |n: i64| match n % 2 {
            0 => json!({"extensions": {"even": n}}),
            _ => json!({}),
        };
        (0..trials)
            .map(|n| row("m", "s", n, extension(n)))
            .collect()
    };
    for (trials, even, tokens) in [(1, 1, 110.0), (2, 1, 110.5), (5, 3, 112.0)] {
        let summary = summarize(&rows(trials));
        let metrics = &summary.modes.find("m").unwrap().metrics;
        assert_eq!(metrics.find("even").unwrap().count, even);
        assert_eq!(metrics.find("tokens_total").unwrap().median, Some(tokens));
    }
}
