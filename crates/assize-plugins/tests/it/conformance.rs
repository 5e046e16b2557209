//! The conformance report that authors of plugins get.

use crate::support::{LONG, example, faulty, spec};
use assize_plugins::{CallLimits, PluginSpec, conformance};
use std::time::Duration;

fn problems(spec: PluginSpec) -> Vec<String> {
    let findings = conformance::test(spec, &[]).unwrap();
    let problem = |finding: conformance::Finding| {
        let problem = finding.problem?;
        Some(format!("{}: {}: {problem}", finding.subject, finding.check))
    };
    findings.into_iter().filter_map(problem).collect()
}

#[test]
fn a_program_in_rust_conforms() {
    let words = example("words");
    let found = problems(PluginSpec {
        limits: CallLimits::same(LONG),
        ..spec(&[words.to_str().unwrap()])
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_careless_plugin_is_told_what_is_wrong() {
    let found = problems(PluginSpec {
        limits: CallLimits::same(Duration::from_secs(2)),
        ..faulty("none")
    });
    let all = found.join("\n");
    assert!(
        all.contains("an unknown method is answered with error -32601"),
        "{all}"
    );
    assert!(
        all.contains("a broken line and unknown notifications are survived"),
        "{all}"
    );
}

#[test]
fn a_program_that_does_not_start_is_one_finding() {
    let found = problems(faulty("no start"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("the database is not there"), "{found:?}");
}
