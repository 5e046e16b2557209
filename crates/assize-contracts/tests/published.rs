//! Published records of another profiler are read and come back as the same JSON.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../tests/shared/harness.rs"]
mod harness;

use assize_contracts::{ProfileRow, SessionAnalysisBundle, SessionTrace};
use harness::{Test, beside};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::process::ExitCode;

const PUBLISHED: &str = "fixtures/published";

fn main() -> ExitCode {
    let tests: &[Test] = &[
        ("rows", rows),
        ("sessions", sessions),
        ("analyses", analyses),
    ];
    harness::run(PUBLISHED, tests)
}

fn rows() {
    let text = std::fs::read_to_string(beside(PUBLISHED).join("rows.jsonl")).unwrap();
    assert!(text.lines().count() >= 15);
    for line in text.lines() {
        check::<ProfileRow>(&serde_json::from_str(line).unwrap());
    }
}

fn sessions() {
    check_all_in::<SessionTrace>("sessions");
}

fn analyses() {
    check_all_in::<SessionAnalysisBundle>("analysis");
}

fn check_all_in<T: DeserializeOwned + Serialize>(folder: &str) {
    let mut count = 0;
    for entry in std::fs::read_dir(beside(PUBLISHED).join(folder)).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        check::<T>(&serde_json::from_str(&text).unwrap());
        count += 1;
    }
    assert_eq!(count, 15);
}

fn check<T: DeserializeOwned + Serialize>(original: &Value) {
    let record: T = serde_json::from_value(original.clone())
        .unwrap_or_else(|error| panic!("{error}\nin {original:#}"));
    assert_eq!(&serde_json::to_value(&record).unwrap(), original);
}
