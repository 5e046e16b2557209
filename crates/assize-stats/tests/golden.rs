//! The stored golden cases pass, and a broken case is a failure instead of a crash.

#[path = "golden/cases.rs"]
mod cases;

fn failures(text: &str) -> Vec<String> {
    let outcomes = cases::run(text).expect("the text is a golden file");
    outcomes
        .into_iter()
        .filter_map(|outcome| Some(format!("{} {}", outcome.id, outcome.failure?)))
        .collect()
}

#[test]
fn every_golden_case_passes() {
    for text in [
        include_str!("golden/stats.json"),
        include_str!("golden/stats-2.json"),
    ] {
        let failures = failures(text);
        assert!(failures.is_empty(), "{failures:#?}");
    }
}

#[test]
fn broken_cases_fail_one_by_one() {
    let text = r#"{ "cases": [
        { "id": "unknown", "function": "no_such_function", "inputs": {}, "expected": {} },
        { "id": "missing", "function": "describe", "inputs": {}, "expected": { "count": 0 } },
        { "id": "wrong", "function": "describe", "inputs": { "values": [1] }, "expected": { "count": 2 } },
        { "id": "band", "function": "describe", "inputs": { "values": [1] }, "expected": {}, "bands": { "mean": [2, 3] } },
        { "id": "warning", "function": "describe", "inputs": { "values": [1] }, "expected": {}, "warningsInclude": ["censored"] },
        { "id": "right", "function": "describe", "inputs": { "values": [1] }, "expected": { "count": 1 } },
        { "function": 7 }
    ] }"#;
    let names: Vec<String> = failures(text)
        .iter()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        ["unknown", "missing", "wrong", "band", "warning", "case-7"]
    );
}

#[test]
fn functions_that_were_replaced_are_left_out() {
    let text = r#"{ "cases": [ { "function": "cluster_proportion_ci", "inputs": {}, "expected": { "lower": 7 } } ] }"#;
    let outcomes = cases::run(text).unwrap();
    assert_eq!(outcomes[0].replaced_by, Some("success_rate"));
    assert!(failures(text).is_empty());
}

#[test]
fn text_that_is_no_golden_file_is_an_error() {
    assert!(cases::run("[]").is_err());
    assert!(cases::run("nothing").is_err());
}
