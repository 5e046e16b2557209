//! Whole reports over simulated trials with fixed seeds: how many claim a difference that does not exist. A change of any
//! verdict changes a count. The full study is `make study`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "study/experiment.rs"]
mod experiment;

use assize_report::{Analysis, SummaryBuilder};
use assize_stats::Verdict;
use experiment::{Chance, KINDS, Kind, rows};

/// Reports of each kind.
const REPORTS: u64 = 6;

fn claims(kind: &Kind, seed: u64) -> bool {
    let mut builder = SummaryBuilder::default();
    let text = rows(kind, &mut Chance(seed));
    builder.read(text.as_bytes(), None).unwrap();
    // Verdicts rest on closed forms: resampling only makes the intervals of pooled numbers.
    let analysis = Analysis {
        resamples: 1,
        ..Analysis::default()
    };
    let summary = builder.finish(&analysis).unwrap();
    summary
        .decisive()
        .any(|found| matches!(found.verdict(), Verdict::Better | Verdict::Worse))
}

#[test]
fn reports_over_equal_modes_claim_hardly_anything() {
    let counts: Vec<(&str, usize)> = KINDS
        .iter()
        .map(|kind| {
            let seeds = 0..REPORTS;
            (kind.name, seeds.filter(|seed| claims(kind, *seed)).count())
        })
        .collect();
    assert_eq!(counts, EXPECTED, "{counts:#?}");
}

/// Reports that claim better or worse, of six each; only the last kind has a true difference.
const EXPECTED: [(&str, usize); 10] = [
    ("two modes", 1),
    ("one task", 0),
    ("three tasks", 0),
    ("four modes", 0),
    ("seven modes", 1),
    ("three models", 0),
    ("ten models", 0),
    ("40 % of one mode's failures void", 1),
    ("three modes, a third of the runs cut off", 0),
    ("20 points more in the second mode", 5),
];
