//! The page as a file: its content, the notes about what it leaves out, and that nothing in it can act.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use assize_contracts::{SessionTrace, TokenBreakdown, TraceEvent};
use assize_report::{Analysis, HtmlReport, PageLimits, Row, Summary, SummaryBuilder};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn row(mode: &str, scenario: &str, iteration: u64, outcome: &str) -> Value {
    json!({
        "schemaVersion": 1, "runId": "r", "scenarioId": scenario, "mode": mode, "model": "m", "iteration": iteration,
        "success": outcome == "pass", "outcome": outcome, "simulated": true, "position": iteration,
        "tokens": {"input": 90 + iteration, "output": 10, "total": 100 + iteration, "active": 100 + iteration},
        "timing": {"wallMs": 1000 + 10 * iteration, "segments": []}, "cost": {"totalUsd": 0.1}, "costSource": "reported",
        "toolCalls": {"total": 2, "byCategory": {}, "failed": 0, "retried": 0, "errorRate": 0,
            "records": [{"name": "read", "category": "read"}, {"name": "edit", "category": "edit"}]},
        "checkpointDetails": [{"id": "c", "description": "it holds", "passed": outcome == "pass"}],
        "completionReason": "stop", "extensions": {}
    })
}

fn summarize(rows: &[Value]) -> Summary {
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    let mut builder = SummaryBuilder::default();
    builder.read(lines.join("\n").as_bytes(), None).unwrap();
    builder.finish(&Analysis::default()).unwrap()
}

/// The page of rows that all have the same trace, if any.
fn page(rows: &[Value], trace: Option<&SessionTrace>, limits: PageLimits) -> String {
    let summary = summarize(rows);
    let mut page = HtmlReport::new(&summary, limits);
    for row in rows {
        let json = row.to_string();
        let added = page.add(&Row::parse(json.as_bytes()).unwrap(), json.as_bytes(), None);
        if let (Some(trace), Some(added)) = (trace, added)
            && let Some(wanted) = page.wants_trace_of(added)
        {
            page.add_trace(wanted, trace, &BTreeMap::new());
        }
    }
    let mut out = Vec::new();
    page.write(&mut out, "a <title>").unwrap();
    String::from_utf8(out).unwrap()
}

fn two_modes(repetitions: u64) -> Vec<Value> {
    let cells = (0..repetitions).flat_map(|n| {
        let outcome = if n % 5 == 4 { "fail" } else { "pass" };
        ["s1", "s2"].map(|scenario| {
            [
                row("plain", scenario, n, "pass"),
                row("docs", scenario, n, outcome),
            ]
        })
    });
    cells.flatten().collect()
}

fn calls(count: usize, output: &str) -> SessionTrace {
    let call = |number| TraceEvent::ToolCall {
        name: "bash".into(),
        input: json!({"step": number}),
        output: output.into(),
        duration_ms: None,
        success: Some(true),
        error: None,
        context: None,
    };
    let events: Vec<TraceEvent> = (0..count).map(call).collect();
    SessionTrace::from_events("s".into(), events, TokenBreakdown::default())
}

/// The data that the page's script reads, with the trials as it unpacks them; numbers are left out.
fn data(page: &str) -> Value {
    let json = page.split("id=\"data\">").nth(1).unwrap();
    let json = json.split("</script>").next().unwrap();
    let mut data: Value = serde_json::from_str(json).unwrap();
    let packed = data["trials"].take();
    let mut trials = vec![json!({}); packed["count"].as_u64().unwrap() as usize];
    for (name, column) in packed.as_object().unwrap() {
        let at = || each(column["at"].as_array().unwrap());
        let values: Vec<Value> = match column {
            Value::Array(_) if name == "numbers" || name == "least" => continue,
            Value::Array(values) => values.clone(),
            Value::Object(form) if form.contains_key("same") => {
                vec![column["same"].clone(); trials.len()]
            }
            Value::Object(form) if form.contains_key("words") => {
                let place =
                    |place: Value| column["words"][place.as_u64().unwrap() as usize].clone();
                at().into_iter().map(place).collect()
            }
            _ => continue,
        };
        assert_eq!(values.len(), trials.len(), "{name}");
        for (trial, value) in trials.iter_mut().zip(values) {
            trial[name] = value;
        }
    }
    data["trials"] = trials.into();
    data
}

/// Numbers, with those that stand for several repeated.
fn each(numbers: &[Value]) -> Vec<Value> {
    let repeated = |number: &Value| match number {
        Value::Array(repeated) => {
            vec![repeated[0].clone(); repeated[1].as_u64().unwrap() as usize]
        }
        number => vec![number.clone()],
    };
    numbers.iter().flat_map(repeated).collect()
}

#[test]
fn everything_is_there_and_the_simulation_is_named() {
    let page = page(
        &two_modes(5),
        Some(&calls(3, "fine")),
        PageLimits::default(),
    );
    for id in [
        "verdict",
        "glance",
        "comparison",
        "measurements",
        "scenarios",
        "tools",
        "checks",
        "failures",
        "trials",
        "cautions",
        "glossary",
    ] {
        assert!(page.contains(&format!("<section id=\"{id}\"")), "{id}");
    }
    assert!(page.contains("<strong>Simulated.</strong>"));
    assert!(page.contains("default-src 'none'"));
    assert_eq!(data(&page)["trials"].as_array().unwrap().len(), 20);
    assert_eq!(page.matches("id=\"trace-").count(), 20);
}

#[test]
fn names_and_traces_cannot_act() {
    let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}\u{1b}[2J";
    let mut rows = two_modes(3);
    for row in &mut rows {
        let mode = format!("{hostile}{}", row["mode"].as_str().unwrap());
        row["mode"] = json!(mode);
        row["scenarioId"] = json!(hostile);
        row["error"] = json!(hostile);
        row["checkpointDetails"] =
            json!([{"id": hostile, "description": hostile, "passed": false, "actual": hostile}]);
        row["toolCalls"]["records"] = json!([{"name": hostile}, {"name": "x"}]);
    }
    let text = page(&rows, Some(&calls(2, hostile)), PageLimits::default());
    // The page's own scripts: the data, the Markdown, the traces and the program.
    let scripts = text.matches("<script").count();
    assert_eq!(scripts, text.matches("</script>").count());
    assert_eq!(scripts, 3 + text.matches("id=\"trace-").count());
    assert!(!text.contains("<img") && !text.contains(['\u{202e}', '\u{1b}']));
    assert!(
        data(&text)["trials"][0]["error"]
            .as_str()
            .unwrap()
            .contains("‹U+202E›")
    );
}

/// Text becomes markup only through `maud`: by its type. The exceptions are the page's own style and script, and JSON without `<`.
#[test]
fn raw_markup_is_made_only_of_the_style_and_the_script() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/html");
    let mut folders = vec![source];
    let mut raw = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(path).unwrap();
                raw.extend(
                    text.match_indices("PreEscaped(")
                        .map(|(place, _)| text[place..].split(')').next().unwrap().to_owned()),
                );
            }
        }
    }
    raw.sort();
    assert_eq!(raw, ["PreEscaped(SCRIPT", "PreEscaped(STYLE"]);
}

#[test]
fn when_not_all_trials_fit_failed_ones_come_first_and_the_page_says_so() {
    let limits = PageLimits {
        trials: 40,
        traces: 8,
        trace_bytes: 100_000,
    };
    let page = page(&two_modes(100), Some(&calls(3, "fine")), limits);
    let data = data(&page);
    let trials = data["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 40);
    let failed = trials
        .iter()
        .filter(|trial| trial["outcome"] == "fail")
        .count();
    assert_eq!(failed, 16, "as many as leave room for some that passed");
    assert!(page.contains("40 of 400 trials are listed"));
    assert!(page.contains("8 of them can be opened"));
    assert_eq!(page.matches("id=\"trace-").count(), 8);
}

#[test]
fn five_hundred_long_traces_stay_below_twenty_megabytes() {
    let trace = calls(60, &"a long output <of> a tool\n".repeat(400));
    let page = page(&two_modes(125), Some(&trace), PageLimits::default());
    assert_eq!(page.matches("id=\"trace-").count(), 500);
    assert!(page.len() < 20_000_000, "{} bytes", page.len());
    assert!(page.contains("\"cut\":") || page.contains("\"dropped\":"));
}

#[test]
fn endless_messages_do_not_make_an_endless_page() {
    let mut rows = two_modes(25);
    let long = "\u{202e}<".repeat(500);
    let check =
        json!({"id": "c", "description": long, "passed": false, "actual": long, "expected": long});
    for row in &mut rows {
        row["error"] = json!(long);
        row["checkpointDetails"] = json!(vec![check.clone(); 20]);
    }
    let page = page(&rows, Some(&calls(20, &long)), PageLimits::default());
    assert!(page.len() < 20_000_000, "{} bytes", page.len());
    assert_eq!(data(&page)["trials"][99]["isBare"], true);
}

#[test]
fn odd_sets_of_trials_have_a_page() {
    let void = |n| row("a", "s", n, "void");
    let mut timeout = row("a", "s", 0, "fail");
    timeout["censored"] = json!(true);
    let huge = |n: u64| {
        let mut row = row("a", "s", n, "pass");
        row["tokens"] = json!({"total": 1e308, "active": -1e308});
        row["extensions"] = json!({"x": 1e300, "日本語": n});
        row
    };
    for rows in [
        vec![],
        vec![row("a", "s", 0, "pass")],
        (0..3).map(void).collect(),
        vec![timeout],
        (0..6).map(huge).collect(),
    ] {
        let page = page(&rows, None, PageLimits::default());
        assert!(page.ends_with("</html>\n"));
        assert!(!page.contains("NaN"), "{rows:?}");
    }
}

#[test]
fn a_page_of_many_scenarios_stays_small_and_counts_all_of_them() {
    let rows: Vec<Value> = (0..3000)
        .map(|number| row("plain", &format!("t{number}"), 0, "pass"))
        .collect();
    let page = page(&rows, None, PageLimits::default());
    assert!(page.contains("3000 scenarios · 3000 trials"));
    assert!(page.contains("2000 of 3000 scenarios are not listed one by one"));
    let data = data(&page);
    assert_eq!(data["scenarios"].as_array().unwrap().len(), 1000);
    assert_eq!(data["trials"].as_array().unwrap().len(), 1000);
    assert!(page.len() < 1 << 20, "{}", page.len());
}
