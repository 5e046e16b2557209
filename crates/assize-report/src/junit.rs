//! `junit.xml`, as CI systems read it: one testcase per scenario and mode with its pass rate, and one per gate.
//!
//! Repetitions are no testcases of their own: names that come and go would break every history of tests. The form is the
//! one that Jenkins and Surefire agree on; numbers of a testcase are in its `system-out`, since properties have no place there.

use crate::caution::count;
use crate::words::sentence;
use crate::{GateResult, ModeSummary, Reason, Summary, percent};
use assize_contracts::RowField;
use assize_stats::GateVerdict;
use std::fmt::Write;

/// With fewer judged trials than this share, a testcase is an error: it was not really run.
const COVERAGE: f64 = 0.8;

/// The whole file. `suite` is the name under which testcases are grouped.
pub fn render_junit(summary: &Summary, suite: &str) -> String {
    let mut suites: Vec<Suite> = summary
        .modes
        .iter()
        .map(|(label, mode)| mode_suite(summary, suite, label, mode))
        .collect();
    suites.extend(modes_never_run(summary, suite));
    if !summary.gates.is_empty() {
        suites.push(gate_suite(&summary.gates, suite));
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_file(&mut text, &suites, suite);
    text
}

struct Suite {
    name: String,
    properties: Vec<(String, String)>,
    cases: Vec<Case>,
}

struct Case {
    name: String,
    class: String,
    seconds: f64,
    outcome: Outcome,
    /// Trials that were tried again after failing.
    retried: u64,
    numbers: String,
}

enum Outcome {
    Passed,
    Failed(Mishap),
    Broken(Mishap),
    Skipped(String),
}

struct Mishap {
    kind: &'static str,
    message: String,
    details: String,
}

fn mode_suite(summary: &Summary, suite: &str, label: &str, mode: &ModeSummary) -> Suite {
    let name = format!("{suite}.{label}");
    let cases = summary.scenarios.iter().filter_map(|(scenario, modes)| {
        let (outcome, found) = match modes.modes.find(label) {
            Some(found) => (outcome(found), Some(found)),
            None if is_planned(summary, scenario) => (never_run(), None),
            None => return None,
        };
        Some(case(summary, [scenario, &name], outcome, found))
    });
    let mut cases: Vec<Case> = cases.collect();
    let planned = summary.planned.iter().flat_map(|plan| &plan.scenarios);
    // Where scenarios are left out, one that is not there may be one of them.
    let planned = planned.filter(|_| summary.scenarios_left_out == 0);
    let never_seen = planned.filter(|scenario| summary.scenarios.find(scenario).is_none());
    cases.extend(never_seen.map(|scenario| case(summary, [scenario, &name], never_run(), None)));
    let mut properties = properties(mode);
    let verdicts = summary.decisive().filter(|found| found.mode_a() == label);
    properties.extend(verdicts.map(|found| {
        let name = format!("verdict.{}.against.{}", found.metric(), found.mode_b());
        (name, sentence(found))
    }));
    if summary.scenarios_left_out > 0 {
        let left_out = summary.scenarios_left_out.to_string();
        properties.push(("scenarios_left_out".to_owned(), left_out));
    }
    Suite {
        properties,
        cases,
        name,
    }
}

/// Modes of the plan without a single trial.
fn modes_never_run<'a>(summary: &'a Summary, suite: &'a str) -> impl Iterator<Item = Suite> + 'a {
    let planned = summary.planned.iter();
    planned.flat_map(move |plan| {
        let missing = plan.arms.iter().filter(|arm| !was_run(summary, &arm.mode));
        missing.map(move |arm| {
            let name = format!("{suite}.{}", arm.mode);
            let cases = plan.scenarios.iter();
            let cases = cases.map(|scenario| case(summary, [scenario, &name], never_run(), None));
            Suite {
                cases: cases.collect(),
                properties: Vec::new(),
                name: name.clone(),
            }
        })
    })
}

/// Labels begin with the mode; a model, a nature or a suite may follow.
fn was_run(summary: &Summary, mode: &str) -> bool {
    let is_label_of = |label: &str| {
        let more = label.strip_prefix(mode);
        more.is_some_and(|more| more.is_empty() || more.starts_with([' ', '\'']))
    };
    summary.modes.iter().any(|(label, _)| is_label_of(label))
}

fn is_planned(summary: &Summary, scenario: &str) -> bool {
    let plan = summary.planned.as_ref();
    plan.is_some_and(|plan| plan.scenarios.iter().any(|planned| planned == scenario))
}

fn never_run() -> Outcome {
    Outcome::Skipped("no trial was run".to_owned())
}

fn case(
    summary: &Summary,
    [name, class]: [&str; 2],
    outcome: Outcome,
    mode: Option<&ModeSummary>,
) -> Case {
    let time = mode.and_then(|mode| summary.field(mode, RowField::WallTime).1);
    // The typical trial: a sum would jump with the number of repetitions.
    let milliseconds = time.map_or(0.0, |time| time.median.unwrap_or(time.max));
    Case {
        name: name.to_owned(),
        class: class.to_owned(),
        seconds: milliseconds / 1e3,
        outcome,
        retried: mode.map_or(0, |mode| mode.retried),
        numbers: mode.map(numbers).unwrap_or_default(),
    }
}

/// Any failed trial is a failure: whether it is one too many is for gates to say.
fn outcome(mode: &ModeSummary) -> Outcome {
    let success = &mode.success;
    let reasons = mode.reasons.iter().map(Reason::words);
    let details = reasons.collect::<Vec<_>>().join("\n");
    let judged = success.trials as f64 / mode.runs.max(1) as f64;
    if judged < COVERAGE {
        return Outcome::Broken(Mishap {
            kind: "void",
            message: format!(
                "{} of {} void",
                success.void,
                count(mode.runs, "trial", "trials")
            ),
            details,
        });
    }
    if success.passed == success.trials {
        return Outcome::Passed;
    }
    Outcome::Failed(Mishap {
        kind: "failed",
        message: format!(
            "{} of {} passed",
            success.passed,
            count(success.trials, "trial", "trials")
        ),
        details,
    })
}

fn properties(mode: &ModeSummary) -> Vec<(String, String)> {
    let mut properties = vec![
        ("trials".to_owned(), mode.runs.to_string()),
        ("passed".to_owned(), mode.success.passed.to_string()),
        ("void".to_owned(), mode.success.void.to_string()),
    ];
    for (name, metric) in mode.metrics.iter() {
        let median = metric
            .median
            .map(|median| (format!("{name}.median"), median.to_string()));
        properties.extend(median);
    }
    properties
}

fn numbers(mode: &ModeSummary) -> String {
    let success = &mode.success;
    let mut lines = vec![format!(
        "success: {} of {}{}, {} void",
        success.passed,
        success.trials,
        success
            .rate
            .map_or(String::new(), |rate| format!(" ({})", percent(rate))),
        success.void
    )];
    for (name, metric) in mode.metrics.iter() {
        if let Some(median) = metric.median {
            lines.push(format!("{name}: median {median}, n = {}", metric.count));
        }
    }
    lines.join("\n")
}

fn gate_suite(gates: &[GateResult], suite: &str) -> Suite {
    let name = format!("{suite}.gates");
    let case = |gate: &GateResult| {
        let mishap = |kind| Mishap {
            kind,
            message: gate.finding(),
            details: String::new(),
        };
        let mode = gate.mode.as_deref().unwrap_or("no mode");
        Case {
            name: format!("{} [{mode}]", gate.gate),
            class: name.clone(),
            seconds: 0.0,
            outcome: match gate.verdict {
                GateVerdict::Pass => Outcome::Passed,
                GateVerdict::Fail => Outcome::Failed(mishap("gate")),
                GateVerdict::Inconclusive => Outcome::Broken(mishap("inconclusive")),
            },
            retried: 0,
            numbers: gate.finding(),
        }
    };
    Suite {
        cases: gates.iter().map(case).collect(),
        properties: Vec::new(),
        name,
    }
}

impl Suite {
    fn count(&self, of: fn(&Outcome) -> bool) -> usize {
        self.cases.iter().filter(|case| of(&case.outcome)).count()
    }

    fn failures(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Failed(_)))
    }

    fn errors(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Broken(_)))
    }

    fn skipped(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Skipped(_)))
    }

    fn seconds(&self) -> f64 {
        total(self.cases.iter().map(|case| case.seconds))
    }
}

/// From 0 upwards: the sum of nothing would be -0, which no schema takes for a time.
fn total(seconds: impl Iterator<Item = f64>) -> f64 {
    seconds.fold(0.0, std::ops::Add::add)
}

fn write_file(text: &mut String, suites: &[Suite], name: &str) -> std::fmt::Result {
    let sum = |of: fn(&Suite) -> usize| suites.iter().map(of).sum::<usize>();
    let seconds = total(suites.iter().map(Suite::seconds));
    writeln!(text, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(
        text,
        r#"<testsuites name="{}" tests="{}" failures="{}" errors="{}" time="{seconds:.3}">"#,
        xml(name),
        sum(|suite| suite.cases.len()),
        sum(Suite::failures),
        sum(Suite::errors),
    )?;
    for suite in suites {
        write_suite(text, suite)?;
    }
    writeln!(text, "</testsuites>")
}

fn write_suite(text: &mut String, suite: &Suite) -> std::fmt::Result {
    writeln!(
        text,
        r#"  <testsuite name="{}" tests="{}" failures="{}" errors="{}" skipped="{}" time="{:.3}">"#,
        xml(&suite.name),
        suite.cases.len(),
        suite.failures(),
        suite.errors(),
        suite.skipped(),
        suite.seconds(),
    )?;
    if !suite.properties.is_empty() {
        writeln!(text, "    <properties>")?;
        for (name, value) in &suite.properties {
            writeln!(
                text,
                r#"      <property name="{}" value="{}"/>"#,
                xml(name),
                xml(value)
            )?;
        }
        writeln!(text, "    </properties>")?;
    }
    for case in &suite.cases {
        write_case(text, case)?;
    }
    writeln!(text, "  </testsuite>")
}

fn write_case(text: &mut String, case: &Case) -> std::fmt::Result {
    writeln!(
        text,
        r#"    <testcase name="{}" classname="{}" time="{:.3}">"#,
        xml(&case.name),
        xml(&case.class),
        case.seconds
    )?;
    let mut again = None;
    match &case.outcome {
        Outcome::Passed => again = Some("flakyFailure"),
        Outcome::Failed(mishap) => {
            write_mishap(text, "failure", mishap)?;
            again = Some("rerunFailure");
        }
        Outcome::Broken(mishap) => write_mishap(text, "error", mishap)?,
        Outcome::Skipped(why) => writeln!(text, r#"      <skipped message="{}"/>"#, xml(why))?,
    }
    if let Some(element) = again.filter(|_| case.retried > 0) {
        let trials = count(case.retried, "trial was", "trials were");
        writeln!(
            text,
            r#"      <{element} type="retried" message="{trials} tried again after failing"/>"#
        )?;
    }
    if !case.numbers.is_empty() {
        writeln!(
            text,
            "      <system-out>{}</system-out>",
            xml(&case.numbers)
        )?;
    }
    writeln!(text, "    </testcase>")
}

fn write_mishap(text: &mut String, element: &str, mishap: &Mishap) -> std::fmt::Result {
    writeln!(
        text,
        r#"      <{element} type="{}" message="{}">{}</{element}>"#,
        mishap.kind,
        xml(&mishap.message),
        xml(&mishap.details)
    )
}

/// Text inside an attribute or element. Characters that XML cannot hold, or that turn the direction of writing, become �.
fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' => safe.push_str("&#10;"),
            '\t' => safe.push_str("&#9;"),
            _ if is_forbidden(letter) => safe.push('\u{fffd}'),
            _ => safe.push(letter),
        }
    }
    safe
}

fn is_forbidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{fffe}' | '\u{ffff}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
