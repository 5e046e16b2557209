//! Six ordinary situations in which pooled counts, recorded limits and unadjusted p-values claim too much. The sentences here
//! and in docs/reading-a-report.md are the same, word for word.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use assize_report::{Analysis, Comparison, Summary, SummaryBuilder, Unfinished, sentence};
use assize_stats::{Level, Scope, Verdict};
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../../docs/reading-a-report.md");

/// One trial: what is not given is a pass that was measured.
fn row(mode: &str, task: usize, iteration: usize, extra: Value) -> Value {
    let mut row = json!({
        "schemaVersion": 2, "runId": "r", "scenarioId": format!("task-{task}"), "mode": mode, "model": "m",
        "iteration": iteration, "success": true, "outcome": "pass",
        "timing": {"wallMs": 30_000.0 + iteration as f64}, "tokens": {"total": 1000, "active": 1000},
    });
    let fields = row.as_object_mut().unwrap();
    fields.extend(extra.as_object().unwrap().clone());
    row
}

fn outcome(passes: bool) -> Value {
    json!({"success": passes, "outcome": if passes { "pass" } else { "fail" }})
}

/// The first `passed` of `trials` trials pass.
fn judged(mode: &str, task: usize, passed: usize, trials: usize) -> Vec<Value> {
    (0..trials)
        .map(|iteration| row(mode, task, iteration, outcome(iteration < passed)))
        .collect()
}

fn summarize(rows: &[Value], analysis: &Analysis) -> Summary {
    let mut builder = SummaryBuilder::default();
    let text: Vec<String> = rows.iter().map(Value::to_string).collect();
    builder.read(text.join("\n").as_bytes(), None).unwrap();
    builder.finish(analysis).unwrap()
}

fn analysis() -> Analysis {
    Analysis {
        baseline: Some("plain".to_owned()),
        resamples: 200,
        ..Analysis::default()
    }
}

fn find<'a>(summary: &'a Summary, metric: &str) -> &'a Comparison {
    let mut all = summary.comparisons.iter();
    all.find(|found| found.metric() == metric).unwrap()
}

/// The verdict on a metric, whose sentence the page must show.
fn check(rows: &[Value], metric: &str, expected: Verdict) {
    let decides = Analysis {
        primary: Some(vec![metric.to_owned()]),
        ..analysis()
    };
    let summary = summarize(rows, &decides);
    let found = find(&summary, metric);
    assert_eq!(found.verdict(), expected, "{}", sentence(found));
    check_page(&sentence(found));
}

fn check_page(sentence: &str) {
    let shown = PAGE.lines().any(|line| line.trim() == sentence);
    assert!(shown, "not in docs/reading-a-report.md:\n{sentence}");
}

#[test]
fn equal_rates_with_unequal_counts_show_no_difference() {
    let mut rows = Vec::new();
    for task in 0..6 {
        let [docs, plain] = match task < 3 {
            true => [(18, 20), (9, 10)],
            false => [(1, 10), (2, 20)],
        };
        rows.extend(judged("docs", task, docs.0, docs.1));
        rows.extend(judged("plain", task, plain.0, plain.1));
    }
    check(&rows, "success", Verdict::Inconclusive);
}

#[test]
fn void_trials_that_hide_failures_decide_nothing() {
    let mut rows = Vec::new();
    for task in 0..10 {
        let passed = 6 + task % 3;
        for iteration in 0..10 {
            let is_void = iteration >= passed && (iteration + task) % 5 < 2;
            let extra = match is_void {
                true => json!({"success": false, "outcome": "void", "voidCause": "llm_error"}),
                false => outcome(iteration < passed),
            };
            rows.push(row("docs", task, iteration, extra));
        }
        rows.extend(judged("plain", task, 5 + (task + 1) % 3, 10));
    }
    check(&rows, "success", Verdict::Inconclusive);
}

/// Times of eight tasks with five runs each, cut off at 120 s; the first mode takes `ratio` of what the second does.
fn limited(ratio: f64) -> Vec<Value> {
    let mut rows = Vec::new();
    for task in 0..8 {
        for iteration in 0..5 {
            let spread = 0.8 + 0.1 * ((task * 7 + iteration * 3) % 5) as f64;
            for (mode, factor) in [("docs", ratio), ("plain", 1.0)] {
                let shift = if mode == "docs" {
                    iteration + 2
                } else {
                    iteration
                };
                let noise = 1.0 + 0.15 * ((shift * 2 + task) % 5) as f64;
                let time = (30.0 + 12.0 * task as f64) * spread * noise * factor;
                let is_cut = time > 120.0;
                let mut extra = outcome(!is_cut);
                extra["censored"] = json!(is_cut);
                extra["timing"] = json!({"wallMs": time.min(120.0) * 1000.0});
                let tokens = (time.min(120.0) * 100.0).round();
                extra["tokens"] = json!({"total": tokens, "active": tokens});
                rows.push(row(mode, task, iteration, extra));
            }
        }
    }
    rows
}

#[test]
fn a_limit_hides_neither_slowness_nor_tokens() {
    let rows = limited(1.5);
    check(&rows, "latency_wall_ms", Verdict::Worse);
    let decides = Analysis {
        primary: Some(vec!["tokens_active".to_owned()]),
        ..analysis()
    };
    let summary = summarize(&rows, &decides);
    let tokens = find(&summary, "tokens_active");
    assert_ne!(tokens.verdict(), Verdict::Better, "{}", sentence(tokens));
    assert!(
        sentence(tokens).contains("pairs of runs"),
        "{}",
        sentence(tokens)
    );
}

fn failed_calls(events: impl Fn(&str, usize, usize) -> usize) -> Vec<Value> {
    let mut rows = Vec::new();
    for task in 0..8 {
        for iteration in 0..5 {
            for mode in ["docs", "plain"] {
                let failed = events(mode, task, iteration);
                let calls = json!({"toolCalls": {"total": 9, "failed": failed, "byCategory": {}}});
                rows.push(row(mode, task, iteration, calls));
            }
        }
    }
    rows
}

#[test]
fn rare_failures_are_counted_per_run() {
    let rare = failed_calls(|mode, task, iteration| match mode {
        "docs" => usize::from((task + iteration) % 5 < 2),
        _ => usize::from(task % 2 == 0 && iteration == 0),
    });
    check(&rare, "tool_calls_failed", Verdict::Worse);
    let none = failed_calls(|_, _, _| 0);
    check(&none, "tool_calls_failed", Verdict::Inconclusive);
}

#[test]
fn one_of_many_models_is_no_finding() {
    let mut rows = Vec::new();
    for model in ["small", "medium", "large"] {
        for task in 0..10 {
            let gain = match model {
                "small" => [2, 2, 0, 2, 1, 0, 2, 2, 0, 2][task],
                _ => 0,
            };
            for (mode, passed) in [("docs", 5 + gain), ("plain", 5)] {
                for mut row in judged(mode, task, passed, 10) {
                    row["model"] = json!(model);
                    rows.push(row);
                }
            }
        }
    }
    let summary = summarize(&rows, &analysis());
    let small = summary
        .comparisons
        .iter()
        .find(|found| found.metric() == "success" && found.mode_a().contains("small"));
    let small = small.unwrap();
    assert_eq!(
        small.verdict(),
        Verdict::Inconclusive,
        "{}",
        sentence(small)
    );
    assert!(
        sentence(small).contains("one of 3 questions asked, so it may be chance"),
        "{}",
        sentence(small)
    );
    let alone: Vec<Value> = rows
        .iter()
        .filter(|row| row["model"] == "small")
        .cloned()
        .collect();
    let summary = summarize(&alone, &analysis());
    let found = find(&summary, "success");
    assert_eq!(found.verdict(), Verdict::Better, "{}", sentence(found));
}

#[test]
fn three_tasks_speak_of_exactly_these() {
    let mut rows = Vec::new();
    for (task, [docs, plain]) in [[20, 13], [17, 9], [12, 8]].into_iter().enumerate() {
        rows.extend(judged("docs", task, docs, 20));
        rows.extend(judged("plain", task, plain, 20));
    }
    check(&rows, "success", Verdict::Better);
}

#[test]
fn all_passed_says_little_about_new_tasks() {
    let mut rows = Vec::new();
    for task in 0..10 {
        rows.extend(judged("docs", task, 5, 5));
        rows.extend(judged("plain", task, 5, 5));
    }
    check(&rows, "success", Verdict::Inconclusive);
}

#[test]
fn a_difference_on_many_tasks_is_said_with_both_rates() {
    let docs = [5, 4, 5, 3, 2, 5, 4, 1];
    let plain = [4, 2, 3, 2, 1, 5, 2, 0];
    let mut rows = Vec::new();
    for task in 0..8 {
        rows.extend(judged("docs", task, docs[task], 5));
        rows.extend(judged("plain", task, plain[task], 5));
    }
    check(&rows, "success", Verdict::Better);
}

/// Six tasks with three runs each that all have the same tokens; `docs` has `ratio` times those of `plain`.
fn constant(ratio: impl Fn(usize) -> f64) -> Vec<Value> {
    let mut rows = Vec::new();
    for task in 0..6 {
        for iteration in 0..3 {
            for (mode, factor) in [("docs", ratio(task)), ("plain", 1.0)] {
                let tokens = 1000.0 * (task + 1) as f64 * factor;
                let extra = json!({"tokens": {"total": tokens, "active": tokens}});
                rows.push(row(mode, task, iteration, extra));
            }
        }
    }
    rows
}

fn said(rows: &[Value], scope: Scope) -> (Verdict, String) {
    let analysis = Analysis {
        scope,
        ..analysis()
    };
    let summary = summarize(rows, &analysis);
    let found = find(&summary, "tokens_active");
    (found.verdict(), sentence(found))
}

#[test]
fn a_ratio_that_never_varies_is_certain_of_exactly_these_tasks() {
    let (verdict, words) = said(&constant(|_| 2.0), Scope::Suite);
    assert_eq!(verdict, Verdict::Worse, "{words}");
    assert!(
        words.contains("100 % more active tokens (exactly twice) than plain in every trial"),
        "{words}"
    );
    let (verdict, words) = said(&constant(|_| 2.0), Scope::Population);
    assert_eq!(verdict, Verdict::Inconclusive, "{words}");
    assert!(
        words.contains("On exactly these 6 tasks: exactly 100 % more active tokens (exactly twice) in every trial."),
        "{words}"
    );
    assert!(
        words.ends_with("More tasks would show how much they differ."),
        "{words}"
    );
    // The same on average is not the same in every trial.
    let mixed = |task: usize| [1.0, 4.0][task % 2];
    let (verdict, words) = said(&constant(mixed), Scope::Suite);
    assert_eq!(verdict, Verdict::Worse, "{words}");
    assert!(
        words.contains("on average") && !words.contains("every trial"),
        "{words}"
    );
    let (_, words) = said(&constant(|_| 1.0), Scope::Suite);
    assert!(
        words.contains("had the same active tokens in every trial"),
        "{words}"
    );
}

#[test]
fn few_tasks_are_named_whatever_came_out() {
    for passed in [0, 3, 5] {
        let mut rows = Vec::new();
        for task in 0..3 {
            rows.extend(judged("docs", task, passed, 5));
            rows.extend(judged("plain", task, passed, 5));
        }
        let summary = summarize(&rows, &analysis());
        for found in &summary.comparisons {
            let words = sentence(found);
            assert!(words.contains("xactly these 3 tasks"), "{passed}: {words}");
            assert!(
                words.contains("For other tasks: cannot tell from 3 tasks."),
                "{passed}: {words}"
            );
        }
        let codes: Vec<String> = summary
            .cautions
            .iter()
            .map(|caution| caution.code.to_string())
            .collect();
        assert!(!codes.contains(&"few-scenarios".to_owned()), "{codes:?}");
    }
    let (_, words) = said(&limited(1.5)[50..], Scope::Population);
    assert!(words.contains("on exactly these 3 tasks"), "{words}");
}

#[test]
fn exchanged_modes_have_the_opposite_verdict() {
    let mut uneven = Vec::new();
    for task in 0..6 {
        uneven.extend(judged("docs", task, 9, 10));
        uneven.extend(judged("plain", task, 2 + task % 3, 20 - task));
    }
    let mut few = Vec::new();
    for task in 0..3 {
        few.extend(judged("docs", task, 19, 20));
        few.extend(judged("plain", task, 6 + task, 20));
    }
    for rows in [uneven, few, limited(1.5), limited(0.6)] {
        let exchanged: Vec<Value> = rows
            .iter()
            .map(|row| {
                let mut row = row.clone();
                row["mode"] = json!(if row["mode"] == "docs" {
                    "plain"
                } else {
                    "docs"
                });
                row
            })
            .collect();
        let verdicts = |rows: &[Value]| -> Vec<Verdict> {
            let summary = summarize(rows, &analysis());
            summary.decisive().map(Comparison::verdict).collect()
        };
        let opposite = |verdict: Verdict| match verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        };
        let found = verdicts(&rows);
        assert!(found.iter().any(|verdict| opposite(*verdict) != *verdict));
        let mirrored: Vec<Verdict> = verdicts(&exchanged).into_iter().map(opposite).collect();
        assert_eq!(found, mirrored);
    }
}

#[test]
fn what_could_turn_a_verdict_is_said_only_of_a_verdict() {
    // The difference excludes zero by itself, and not among three models.
    let mut rows = Vec::new();
    for model in ["small", "medium", "large"] {
        for task in 0..10 {
            let gain = match model {
                "small" => [2, 2, 0, 2, 1, 0, 2, 2, 0, 2][task],
                _ => 0,
            };
            for (mode, passed) in [("docs", 5 + gain), ("plain", 5)] {
                for mut row in judged(mode, task, passed, 10) {
                    row["model"] = json!(model);
                    rows.push(row);
                }
            }
        }
    }
    let summary = summarize(&rows, &analysis());
    let is_said = |code: &str| {
        let mut cautions = summary.cautions.iter();
        cautions.any(|caution| caution.code.as_str() == code)
    };
    assert!(!is_said("few-tasks-could-reverse"));
}

#[test]
fn every_page_says_which_tasks_its_intervals_speak_of() {
    let page = |tasks: usize| {
        let mut rows = Vec::new();
        for task in 0..tasks {
            rows.extend(judged("docs", task, 3 + task % 2, 5));
            rows.extend(judged("plain", task, 2 + task % 3, 5));
        }
        assize_report::render_markdown(&summarize(&rows, &analysis()), "title")
    };
    let (few, many) = (page(3), page(8));
    for of in ["Intervals of success hold", "Intervals and p-values hold"] {
        assert!(
            few.contains(&format!("{of} for exactly these tasks.")),
            "{few}"
        );
        assert!(
            many.contains(&format!("{of} for tasks like these.")),
            "{many}"
        );
    }
}
/// Cut answers in every trial of `docs`: its tokens are known as lower bounds, none of which is a time limit.
fn incomplete(share: usize) -> Vec<Value> {
    let mut rows = Vec::new();
    for task in 0..8 {
        for iteration in 0..5 {
            let is_whole = iteration >= share;
            let used = 3000 + 10 * task + iteration;
            let extra = match is_whole {
                true => {
                    json!({"tokens": {"total": used, "active": used}, "cost": {"totalUsd": 0.01}, "costSource": "computed"})
                }
                false => json!({
                    "tokens": {"total": null, "active": null}, "tokensAtLeast": {"total": used, "active": used},
                    "cost": {"totalUsd": null}, "costAtLeastUsd": 0.01, "costSource": "unknown",
                }),
            };
            rows.push(row("docs", task, iteration, extra));
            let extra = json!({"tokens": {"total": 1000 + iteration, "active": 1000 + iteration}, "cost": {"totalUsd": 0.002}, "costSource": "computed"});
            rows.push(row("plain", task, iteration, extra));
        }
    }
    rows
}

#[test]
fn tokens_that_are_known_in_part_are_lower_bounds_everywhere() {
    let summary = summarize(&incomplete(5), &analysis());
    let found = find(&summary, "tokens_active");
    assert_eq!(found.verdict(), Verdict::Worse);
    check_page(&sentence(found));
    assert!(!sentence(found).contains("limit"), "{}", sentence(found));
    let page = assize_report::render_markdown(&summary, "title");
    assert!(page.contains("≥ 3037"), "{page}");
    assert!(page.contains("≥ $0.010"), "{page}");
    let docs = summary.modes.find("docs").unwrap();
    assert!(docs.cost_per_success.is_none());
    let caution = summary
        .cautions
        .iter()
        .find(|found| found.code.as_str() == "incomplete");
    assert_eq!(caution.unwrap().places, ["docs (40)"]);
}

#[test]
fn a_median_is_known_where_lower_bounds_cannot_move_it() {
    // The incomplete ones of each task are its smallest values, or its largest.
    let summary = summarize(&incomplete(1), &analysis());
    let docs = summary.modes.find("docs").unwrap();
    let tokens = docs.metrics.find("tokens_total").unwrap();
    assert_eq!(
        (tokens.median, tokens.mean, tokens.bounded),
        (None, None, 8)
    );
    assert!(tokens.at_least.unwrap().median > 3000.0);
    let mut rows = incomplete(0);
    rows[78]["tokens"] = json!({"total": null});
    rows[78]["tokensAtLeast"] = json!({"total": 90_000});
    let summary = summarize(&rows, &analysis());
    let docs = summary.modes.find("docs").unwrap();
    let tokens = docs.metrics.find("tokens_total").unwrap();
    assert_eq!(
        (tokens.median, tokens.mean, tokens.bounded),
        (Some(3037.0), None, 1)
    );
}

/// The sentence about one metric that decides.
fn sentence_about(rows: &[Value], metric: &str, more: Analysis) -> String {
    let decides = Analysis {
        primary: Some(vec![metric.to_owned()]),
        ..more
    };
    sentence(find(&summarize(rows, &decides), metric))
}

#[test]
fn runs_that_are_not_compared_did_not_all_pass() {
    let both = |task| [judged("docs", task, 4, 4), judged("plain", task, 4, 4)].concat();
    let mut rows: Vec<Value> = (0..6).flat_map(both).collect();
    let all = sentence_about(&rows, "success", analysis());
    assert!(all.starts_with("All runs passed in both modes."), "{all}");
    // A task of one mode only, all of whose runs failed.
    rows.extend(judged("docs", 6, 0, 4));
    let some = sentence_about(&rows, "success", analysis());
    assert!(
        some.starts_with("All runs that are compared passed in both modes."),
        "{some}"
    );
}

#[test]
fn unequal_numbers_of_runs_are_not_said_to_be_equal() {
    let tokens = |mode: &str, task: usize, runs: usize, size: usize| -> Vec<Value> {
        let of_run = |run: usize| json!({"tokens": {"total": size + run, "active": size + run}});
        (0..runs)
            .map(|run| row(mode, task, run, of_run(run)))
            .collect()
    };
    let both = |plain: usize| {
        let of_task = |task: usize| {
            let size = 1000 + 10 * task;
            [
                tokens("docs", task, 4, size),
                tokens("plain", task, plain, 2 * size),
            ]
            .concat()
        };
        let rows: Vec<Value> = (0..8).flat_map(of_task).collect();
        sentence_about(&rows, "tokens_active", analysis())
    };
    assert!(both(4).contains("8 tasks x 4 runs"), "{}", both(4));
    assert!(both(5).contains("8 tasks x about 4 runs"), "{}", both(5));
}

#[test]
fn one_task_says_of_rare_counts_what_would_tell() {
    let failed = |mode: &str, run: usize, failed: usize| {
        row(
            mode,
            0,
            run,
            json!({"toolCalls": {"total": 5, "failed": failed}}),
        )
    };
    let rows: Vec<Value> = (0..10)
        .flat_map(|run| [failed("docs", run, run % 2), failed("plain", run, 0)])
        .collect();
    let found = sentence_about(&rows, "tool_calls_failed", analysis());
    assert!(found.contains("one task gives no interval"), "{found}");
    assert!(found.ends_with("More tasks would tell."), "{found}");
    // The bound where nothing happened has the level of the report.
    let none: Vec<Value> = (0..10)
        .flat_map(|run| [failed("docs", run, 0), failed("plain", run, 0)])
        .collect();
    let strict = Analysis {
        confidence: Level::new(0.99).unwrap(),
        ..analysis()
    };
    let found = sentence_about(&none, "tool_calls_failed", strict);
    assert!(found.contains("at most 0.46 per run (99 %)"), "{found}");
}

#[test]
fn an_unfinished_run_says_why_a_clear_difference_is_no_verdict() {
    let mut rows: Vec<Value> = (0..8)
        .flat_map(|task| [judged("docs", task, 5, 5), judged("plain", task, 1, 5)].concat())
        .collect();
    rows.extend(judged("docs", 8, 5, 5));
    let unfinished = Analysis {
        unfinished: Some(Unfinished {
            done: 85,
            planned: 100,
        }),
        ..analysis()
    };
    let found = sentence_about(&rows, "success", unfinished);
    assert!(
        found.contains("the modes do not have the same trials yet"),
        "{found}"
    );
}
