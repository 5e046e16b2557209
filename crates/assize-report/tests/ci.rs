//! The files that CI systems read: JUnit checked against the schema that Jenkins and Surefire use, job pages within
//! their limit, points for charts.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use assize_report::{
    Analysis, GateContext, Planned, PlannedArm, Summary, SummaryBuilder, judge_gates,
    render_benchmark, render_job_summary, render_junit,
};
use assize_stats::Direction;
use proptest::prelude::*;
use serde_json::{Value, json};

const HOSTILE: &str = "]]><x a=\"1\">&amp;\u{0}\u{1b}[2J\u{fffe}\u{202e}\n\t'é🦀| @me <script>";

fn row(mode: &str, scenario: &str, iteration: u64, outcome: &str) -> Value {
    json!({
        "schemaVersion": 1, "runId": "r", "scenarioId": scenario, "mode": mode, "model": "m", "iteration": iteration,
        "success": outcome == "pass", "outcome": outcome, "tokens": {"total": 100 + iteration},
        "timing": {"wallMs": 1500}, "completionReason": "stop", "extensions": {}
    })
}

fn summary(rows: &[Value], gates: &[&str], planned: Option<Planned>) -> Summary {
    let mut builder = SummaryBuilder::default();
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    builder.read(lines.join("\n").as_bytes(), None).unwrap();
    let mut context = GateContext {
        gates: gates.iter().map(|gate| gate.parse().unwrap()).collect(),
        planned,
        reference: None,
        ..GateContext::default()
    };
    let analysis = Analysis {
        resamples: 100,
        ..Analysis::default()
    };
    let gates = judge_gates(&mut builder, &mut context, &analysis);
    let mut summary = builder.finish(&analysis).unwrap();
    summary.gates = gates;
    summary.planned = context.planned;
    summary
}

#[derive(Debug)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    children: Vec<Element>,
    text: String,
}

impl Element {
    fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        &found.unwrap_or_else(|| panic!("no {name} in {self:?}")).1
    }

    fn number(&self, name: &str) -> usize {
        self.attribute(name).parse().unwrap()
    }

    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> + 'a {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// A strict reader of the part of XML that is written.
struct Xml<'a>(&'a str);

impl<'a> Xml<'a> {
    fn parse(text: &'a str) -> Element {
        let legal = |c: char| matches!(c, '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        assert!(text.chars().all(legal), "a character that XML cannot hold");
        let body = text
            .strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
            .unwrap();
        let mut xml = Self(body);
        let root = xml.element();
        assert_eq!(xml.0.trim(), "", "something behind the root");
        root
    }

    fn element(&mut self) -> Element {
        let (head, rest) = self.0.strip_prefix('<').unwrap().split_once('>').unwrap();
        self.0 = rest;
        let (head, is_empty) = match head.strip_suffix('/') {
            Some(head) => (head, true),
            None => (head, false),
        };
        let (name, attributes) = head.split_once(' ').unwrap_or((head, ""));
        let mut element = Element {
            name: name.to_owned(),
            attributes: Self::attributes(attributes),
            children: Vec::new(),
            text: String::new(),
        };
        if is_empty {
            return element;
        }
        loop {
            let (text, rest) = self.0.split_at(self.0.find('<').unwrap());
            element.text.push_str(&Self::unescaped(text));
            self.0 = rest;
            if let Some(end) = self.0.strip_prefix("</") {
                let (closed, rest) = end.split_once('>').unwrap();
                assert_eq!(closed, element.name);
                self.0 = rest;
                break;
            }
            element.children.push(self.element());
        }
        element
    }

    fn attributes(mut text: &str) -> Vec<(String, String)> {
        let mut attributes: Vec<(String, String)> = Vec::new();
        while !text.trim().is_empty() {
            let (name, rest) = text.trim_start().split_once("=\"").unwrap();
            let (value, rest) = rest.split_once('"').unwrap();
            assert!(!value.contains(['<', '\n']), "raw markup in {value}");
            assert!(
                attributes.iter().all(|(known, _)| known != name),
                "{name} twice"
            );
            attributes.push((name.to_owned(), Self::unescaped(value)));
            text = rest;
        }
        attributes
    }

    fn unescaped(text: &str) -> String {
        let mut plain = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('&') {
            let (entity, after) = after.split_once(';').unwrap();
            plain.push_str(before);
            plain.push(match entity {
                "amp" => '&',
                "lt" => '<',
                "gt" => '>',
                "quot" => '"',
                "#9" => '\t',
                "#10" => '\n',
                other => panic!("unknown entity {other}"),
            });
            rest = after;
        }
        plain + rest
    }
}

/// A rule of the schema: element, allowed children, required and further attributes.
type Rule = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

const RULES: [Rule; 13] = [
    (
        "testsuites",
        &["testsuite"],
        &[],
        &["name", "time", "tests", "failures", "errors"],
    ),
    (
        "testsuite",
        &[
            "testsuite",
            "properties",
            "testcase",
            "system-out",
            "system-err",
        ],
        &["name", "tests", "failures", "errors"],
        &[
            "time",
            "skipped",
            "timestamp",
            "hostname",
            "id",
            "package",
            "group",
            "file",
            "log",
            "url",
        ],
    ),
    ("properties", &["property"], &[], &[]),
    ("property", &[], &["name", "value"], &[]),
    (
        "testcase",
        &[
            "skipped",
            "error",
            "failure",
            "rerunFailure",
            "rerunError",
            "flakyFailure",
            "flakyError",
            "system-out",
            "system-err",
        ],
        &["name"],
        &["time", "classname", "group"],
    ),
    ("failure", &[], &[], &["type", "message"]),
    ("error", &[], &[], &["type", "message"]),
    ("skipped", &[], &[], &["type", "message"]),
    (
        "rerunFailure",
        &["stackTrace", "system-out", "system-err"],
        &["type"],
        &["message"],
    ),
    (
        "flakyFailure",
        &["stackTrace", "system-out", "system-err"],
        &["type"],
        &["message"],
    ),
    ("system-out", &[], &[], &[]),
    ("system-err", &[], &[], &[]),
    ("stackTrace", &[], &[], &[]),
];

fn check_against_schema(element: &Element) {
    let rule = RULES.iter().find(|(name, ..)| *name == element.name);
    let (_, children, required, further) = rule.unwrap_or_else(|| panic!("unknown {element:?}"));
    for name in *required {
        element.attribute(name);
    }
    for (name, value) in &element.attributes {
        assert!(
            required.contains(&name.as_str()) || further.contains(&name.as_str()),
            "{name} in {element:?}"
        );
        if name == "time" {
            assert!(
                value.chars().all(|c| c.is_ascii_digit() || c == '.'),
                "time {value}"
            );
        }
    }
    for child in &element.children {
        assert!(
            children.contains(&child.name.as_str()),
            "{} in {}",
            child.name,
            element.name
        );
        check_against_schema(child);
    }
    let holds_text = [
        "failure",
        "error",
        "skipped",
        "system-out",
        "rerunFailure",
        "flakyFailure",
    ];
    assert!(
        holds_text.contains(&element.name.as_str()) || element.text.trim().is_empty(),
        "{element:?}"
    );
}

fn junit(summary: &Summary, suite: &str) -> Element {
    let root = Xml::parse(&render_junit(summary, suite));
    assert_eq!(root.name, "testsuites");
    check_against_schema(&root);
    let mut sums = [0; 3];
    for suite in root.named("testsuite") {
        let with = |element: &str| {
            suite
                .named("testcase")
                .filter(|case| case.named(element).count() > 0)
                .count()
        };
        assert_eq!(suite.number("tests"), suite.named("testcase").count());
        assert_eq!(suite.number("failures"), with("failure"));
        assert_eq!(suite.number("errors"), with("error"));
        assert_eq!(suite.number("skipped"), with("skipped"));
        for (sum, name) in sums.iter_mut().zip(["tests", "failures", "errors"]) {
            *sum += suite.number(name);
        }
    }
    assert_eq!(
        sums,
        ["tests", "failures", "errors"].map(|name| root.number(name))
    );
    root
}

#[test]
fn a_testcase_is_a_scenario_in_a_mode_with_its_pass_rate() {
    let rows = [
        row("a", "good", 0, "pass"),
        row("a", "good", 1, "pass"),
        row("a", "bad", 0, "pass"),
        row("a", "bad", 1, "fail"),
        row("a", "lost", 0, "void"),
        row("b", "good", 0, "pass"),
    ];
    let planned = Planned {
        arms: ["a", "b", "c"]
            .map(|mode| PlannedArm {
                mode: mode.to_owned(),
                model: "m".to_owned(),
                repetitions: None,
            })
            .to_vec(),
        scenarios: ["good", "bad", "lost", "later"].map(str::to_owned).to_vec(),
        tasks: 0,
        repetitions: 2,
    };
    let root = junit(&summary(&rows, &["success >= 0.2"], Some(planned)), "docs");
    let suites: Vec<&str> = root
        .named("testsuite")
        .map(|suite| suite.attribute("name"))
        .collect();
    assert_eq!(suites, ["docs.a", "docs.b", "docs.c", "docs.gates"]);
    let a = root.named("testsuite").next().unwrap();
    let shown: Vec<(&str, &str, &str)> = a
        .named("testcase")
        .map(|case| {
            let outcome = &case.children[0];
            let message = if outcome.name == "system-out" {
                ""
            } else {
                outcome.attribute("message")
            };
            (case.attribute("name"), outcome.name.as_str(), message)
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("good", "system-out", ""),
            ("bad", "failure", "1 of 2 trials passed"),
            ("lost", "error", "1 of 1 trial void"),
            ("later", "skipped", "no trial was run"),
        ]
    );
    let case = a.named("testcase").next().unwrap();
    assert_eq!(
        (case.attribute("classname"), case.attribute("time")),
        ("docs.a", "1.500")
    );
    assert!(
        case.children[0]
            .text
            .contains("tokens_total: median 100.5, n = 2")
    );
    let gates = root.named("testsuite").last().unwrap();
    assert_eq!(
        (gates.number("tests"), gates.number("errors")),
        (3, 3),
        "a, b and the missing c"
    );
}

#[test]
fn success_after_failed_attempts_is_flaky() {
    let mut flaky = row("a", "s", 0, "pass");
    flaky["attempts"] = json!([{"outcome": "fail"}]);
    let root = junit(&summary(&[flaky], &[], None), "docs");
    let case = root.children[0].named("testcase").next().unwrap();
    assert_eq!(case.children[0].name, "flakyFailure");
}

#[test]
fn hostile_names_stay_text() {
    let root = junit(
        &summary(
            &[row(HOSTILE, HOSTILE, 0, "fail")],
            &["success < 0.9"],
            None,
        ),
        HOSTILE,
    );
    let case = root.children[0].named("testcase").next().unwrap();
    let shown = case.attribute("name");
    assert!(
        shown.starts_with("]]><x a=\"1\">&amp;\u{fffd}\u{fffd}[2J\u{fffd}\u{fffd}\n\t'é🦀"),
        "{shown:?}"
    );
}

#[test]
fn an_empty_run_is_an_empty_file() {
    assert_eq!(junit(&summary(&[], &[], None), "docs").children.len(), 0);
}

proptest! {
    #[test]
    fn any_name_gives_a_file_that_fits_the_schema(name in "\\PC{1,20}|.{1,20}", suite in any::<String>()) {
        junit(&summary(&[row(&name, &name, 0, "fail")], &[], None), &suite);
    }
}

fn many(scenarios: u64) -> Vec<Value> {
    let cells = (0..scenarios).flat_map(|scenario| [("a", scenario), ("b", scenario)]);
    cells
        .map(|(mode, scenario)| row(mode, &format!("scenario-{scenario}"), 0, "pass"))
        .collect()
}

#[test]
fn a_job_page_shows_gates_verdict_and_table() {
    let page = render_job_summary(
        &summary(&many(6), &["success >= 0.5"], None),
        "docs",
        512 << 10,
    );
    for words in [
        "## docs",
        "✅ pass | success &gt;= 0.5 | a |",
        "| a | 6 of 6 (100 %) | 0 |",
        "<details>",
        "scenario-5",
    ] {
        assert!(page.contains(words), "no `{words}` in\n{page}");
    }
    assert!(!page.contains("Cut here"));
}

#[test]
fn a_job_page_keeps_its_limit_and_says_what_was_cut() {
    let summary = summary(&many(1_000), &["success >= 0.5"], None);
    let whole = render_job_summary(&summary, "docs", usize::MAX);
    assert!(whole.len() > 20_000);
    for limit in [0, 10, 100, 1_000, 20_000] {
        let page = render_job_summary(&summary, "docs", limit);
        assert!(page.len() <= limit);
        assert_eq!(
            page.matches("<details>").count(),
            page.matches("</details>").count()
        );
        assert!(limit < 100 || page.ends_with("of the run.*\n"), "{page}");
    }
    let page = render_job_summary(&summary, "docs", 20_000);
    assert!(page.contains("✅ pass"), "details are cut first");
}

#[test]
fn text_of_agents_does_nothing_on_a_job_page() {
    let page = render_job_summary(
        &summary(&[row(HOSTILE, HOSTILE, 0, "pass")], &[], None),
        HOSTILE,
        1 << 20,
    );
    for active in ["<script", "<x", "@me", "\u{1b}", "\u{202e}"] {
        assert!(!page.contains(active), "{active:?} in {page}");
    }
}

#[test]
fn charts_get_points_by_direction() {
    let summary = summary(&many(2), &[], None);
    let points = |direction| -> Vec<Value> {
        serde_json::from_str(&render_benchmark(&summary, "docs", direction)).unwrap()
    };
    let smaller = points(Direction::Lower);
    assert_eq!(
        smaller[0],
        json!({"name": "docs/a tokens_total", "unit": "tokens", "value": 100.0, "range": "± 0", "extra": "n=2"})
    );
    assert_eq!(smaller[1]["unit"], "ms");
    let bigger = points(Direction::Higher);
    assert_eq!(bigger[0]["name"], "docs/a success");
    assert_eq!(bigger.len(), 6);
    assert!(smaller.iter().all(
        |point| point["value"].is_f64() && !point["name"].as_str().unwrap().contains("success")
    ));
}
