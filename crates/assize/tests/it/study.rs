//! Simulated experiments as rows, sent through `assize compare --json` with fixed seeds: a part of `make study`. A change of
//! any verdict is a failure; `UPDATE_STUDY=1` writes the verdicts down anew.

#[path = "../../../assize-report/tests/study/experiment.rs"]
mod experiment;

use crate::sandbox::Sandbox;
use experiment::{Chance, KINDS, Kind, rows};
use std::fmt::Write;
use std::path::Path;

/// Reports of each kind.
const REPORTS: u64 = 8;

/// One letter per verdict: `b`etter, `w`orse, `e`quivalent, `i`nconclusive, `n`ot comparable.
fn letters(kind: &Kind, seed: u64) -> String {
    let sandbox = Sandbox::new(&[("rows.jsonl", &rows(kind, &mut Chance(seed)))]);
    let told = sandbox.done(&["compare", "rows.jsonl", "--json"]);
    let verdicts = experiment::declared_verdicts(&told).unwrap();
    verdicts.iter().map(|word| &word[..1]).collect()
}

#[test]
fn simulated_reports_come_to_the_verdicts_written_down() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut found = String::new();
    for kind in &KINDS {
        let seeds: Vec<u64> = (0..REPORTS).collect();
        let told: Vec<String> = std::thread::scope(|scope| {
            let parts = seeds.chunks(seeds.len().div_ceil(threads));
            let handles: Vec<_> = parts
                .map(|part| scope.spawn(|| part.iter().map(|seed| letters(kind, *seed)).collect()))
                .collect();
            let parts = handles
                .into_iter()
                .map(|handle| -> Vec<String> { handle.join().unwrap() });
            parts.flatten().collect()
        });
        writeln!(found, "{}: {}", kind.name, told.join(" ")).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/study.txt");
    if std::env::var_os("UPDATE_STUDY").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(found, expected, "a verdict has changed");
    // Of the kinds without a difference, the last one aside, hardly any report may claim one.
    let all: Vec<&str> = found.lines().collect();
    let claims = all[..all.len() - 1]
        .iter()
        .flat_map(|line| line.split(": ").nth(1).unwrap_or("").split(' '))
        .filter(|letters| letters.contains(['b', 'w']))
        .count();
    assert!(claims <= 12, "{claims} of {} reports claim", REPORTS * 15);
}
