//! Metrics of plugins: judged only in a declared direction, and shown in their own unit everywhere.

use crate::plugins::suite_of;
use crate::support::Suite;
use serde_json::Value;

const COLLECTOR: &str = "\
@plugin.collector('sizes')
def sizes(result, scenario, mode, trace):
    size = 2 if mode == 'doubled' else 1
    return [
        {'name': 'tokens_saved', 'value': size * 1000, 'unit': 'tokens'},
        {'name': 'answer_bytes', 'value': size * 400, 'unit': 'bytes', 'better': 'lower', 'label': 'answer size'},
        {'name': 'errors_avoided', 'value': size * 10, 'unit': 'count'},
    ]
";

/// Two modes; in the second everything is exactly twice as much, but varies a little between trials.
fn doubled() -> Suite {
    let suite = suite_of(
        "provider: { uses: simulated, latency_ms: 0, tokens: { input: 900, output: 100 } }\n\
         modes: { plain: {}, doubled: {} }\n\
         collectors: [token, latency, sizes]\n\
         analysis: { primary: [answer_bytes], resamples: 500 }\n\
         gates: ['answer_bytes <= 900']",
        &COLLECTOR.replace("size * ", "(size + len(scenario['id']) % 2 * 0.001 + sum(map(ord, result['text'] + scenario['id'])) % 7 * 0.001) * "),
    );
    for number in 0..8 {
        let id = format!("s{number}");
        suite.write(
            &format!("scenarios/{id}.yaml"),
            format!("id: {id}\nprompt: do {id}\n"),
        );
    }
    suite.done(&["run", "--yes"]);
    suite
}

fn comparison<'a>(all: &'a Value, metric: &str) -> &'a Value {
    let all = all["comparisons"].as_array().unwrap();
    all.iter().find(|found| found["metric"] == metric).unwrap()
}

#[test]
fn a_metric_is_judged_in_its_declared_direction_and_never_by_its_name() {
    let suite = doubled();
    suite.done(&["report", "last", "--format", "all"]);
    let summary = std::fs::read(suite.run_directory().join("report/data/summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    for undeclared in ["tokens_saved", "errors_avoided", "tokens_cache_read"] {
        let metric = comparison(&summary, undeclared);
        let verdict = metric["verdict"].as_str().unwrap();
        assert!(!["better", "worse"].contains(&verdict), "{metric:#}");
    }
    assert_eq!(comparison(&summary, "answer_bytes")["verdict"], "worse");
}

#[test]
fn the_unit_of_a_metric_is_shown_wherever_its_values_are() {
    let suite = doubled();
    suite.done(&["report", "last", "--format", "all", "--format", "benchmark"]);
    let run = suite.run_directory();
    let file = |name: &str| std::fs::read_to_string(run.join("report").join(name)).unwrap();

    let table = suite.done(&["runs", "show", "last"]);
    assert!(table.contains("answer size"), "{table}");
    assert!(table.contains(" bytes"), "{table}");
    let compared = suite.done(&["compare", "last", "--verbose"]);
    assert!(
        compared.contains("answer size (answer_bytes)"),
        "{compared}"
    );
    assert!(compared.contains(" bytes"), "{compared}");
    let shown = suite.done(&["show", "last/0"]);
    assert!(
        shown.contains("answer size 40") || shown.contains("answer size 80"),
        "{shown}"
    );
    assert!(
        shown.contains(" bytes") && shown.contains(" tokens"),
        "{shown}"
    );
    assert!(file("report.md").contains(" bytes"));
    assert!(file("report.html").contains(" bytes"));
    let csv = file("data/results.csv");
    let heading = csv.lines().next().unwrap();
    assert!(heading.contains(",answer_bytes (bytes),"), "{heading}");
    assert!(heading.contains(",tokens_total,"), "{heading}");
    let points: Value = serde_json::from_str(&file("data/benchmark-smaller.json")).unwrap();
    assert_eq!(points[0]["unit"], "bytes", "{points:#}");
    let gated = suite.assize(&["gate", "last"]);
    assert!(gated.stdout.contains(" bytes"), "{gated:#?}");
}

#[test]
fn the_manifest_keeps_what_plugins_declare_about_their_metrics() {
    let suite = doubled();
    let manifest = std::fs::read(suite.run_directory().join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let metrics = manifest["metrics"].as_array().unwrap();
    let found = |name: &str| {
        metrics
            .iter()
            .find(|metric| metric["name"] == name)
            .unwrap()
    };
    assert_eq!(found("answer_bytes")["better"], "lower");
    assert_eq!(found("answer_bytes")["label"], "answer size");
    assert_eq!(found("tokens_saved")["better"], Value::Null);
    assert_eq!(found("tokens_total")["better"], "lower");
    assert_eq!(manifest["metricUnits"]["answer_bytes"], "bytes");
}

/// "Metric value (number for aggregation, string for labels)", "included in reports".
const KINDS: &str = "\
@plugin.collector('kinds')
def kinds(result, scenario, mode, trace):
    return [
        {'name': 'ghx.capabilities_used', 'value': 3, 'unit': 'capabilities'},
        {'name': 'route', 'value': 'api' if scenario['id'] == 'one' else 'web', 'unit': 'label'},
    ]
";

fn kinds(modes: &str) -> Suite {
    let keys = format!(
        "provider: {{ uses: simulated, latency_ms: 0 }}\nmodes: {modes}\ncollectors: [token, kinds]\nanalysis: {{ resamples: 200 }}"
    );
    let suite = suite_of(&keys, KINDS);
    suite.done(&["run", "--yes"]);
    suite.done(&["report", "last", "--format", "all"]);
    suite
}

#[test]
fn constants_and_texts_are_told_everywhere_for_one_mode_and_for_many() {
    for modes in ["{ plain: {} }", "{ plain: {}, other: {} }"] {
        let suite = kinds(modes);
        let run = suite.run_directory();
        let file = |name: &str| std::fs::read_to_string(run.join("report").join(name)).unwrap();
        let shown = suite.done(&["show", "last/0"]);
        assert!(
            shown.contains("ghx.capabilities_used 3 capabilities"),
            "{shown}"
        );
        assert!(shown.contains("route "), "{shown}");

        let page = file("report.md");
        let cells = |start: &str| -> Vec<String> {
            let line = page.lines().find(|line| line.starts_with(start));
            let line = line.unwrap_or_else(|| panic!("{start} is not in\n{page}"));
            line.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect()
        };
        let constant = cells("| ghx.capabilities_used");
        assert_eq!(constant[1..4], ["plain", "4", "3 capabilities"], "{page}");
        let texts: Vec<Vec<String>> = ["api", "web"]
            .iter()
            .map(|value| {
                let line = page.lines().find(|line| {
                    line.starts_with("| route") && line.contains(&format!("| {value} "))
                });
                let line = line.unwrap_or_else(|| panic!("{value} is not in\n{page}"));
                line.trim_matches('|')
                    .split('|')
                    .map(|cell| cell.trim().to_owned())
                    .collect()
            })
            .collect();
        let counts = if modes.contains("other") {
            vec!["2", "2"]
        } else {
            vec!["2"]
        };
        assert!(texts.iter().all(|cells| cells[2..] == counts), "{texts:?}");

        let html = file("report.html");
        assert!(html.contains("3 capabilities"));
        assert!(html.contains("How often each text came"));
        let csv = file("data/results.csv");
        let mut lines = csv.lines();
        let heading = lines.next().unwrap();
        assert!(
            heading.ends_with(",ghx.capabilities_used (capabilities),route (label)"),
            "{heading}"
        );
        assert!(
            lines.all(|line| line.contains(",3,api") || line.contains(",3,web")),
            "{csv}"
        );
        let summary: Value = serde_json::from_str(&file("data/summary.json")).unwrap();
        let plain = &summary["modes"]["plain"];
        assert_eq!(
            plain["texts"]["route"],
            serde_json::json!({"api": 2, "web": 2})
        );
        assert_eq!(plain["metrics"]["ghx.capabilities_used"]["median"], 3.0);
    }
}

#[test]
fn what_never_varies_is_told_with_its_value() {
    let suite = kinds("{ plain: {}, other: {} }");
    let page = std::fs::read_to_string(suite.run_directory().join("report/report.md")).unwrap();
    let line = page
        .lines()
        .find(|line| line.starts_with("The same in every trial of both"));
    let line = line.unwrap_or_else(|| panic!("{page}"));
    assert!(
        line.contains("ghx.capabilities\\_used 3 capabilities")
            || line.contains("ghx.capabilities_used 3 capabilities"),
        "{line}"
    );
}
