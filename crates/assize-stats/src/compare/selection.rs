//! The runs of two modes on one metric, matched by scenario.

use std::collections::{BTreeMap, BTreeSet};

use super::{Group, ModePair};
use crate::sample::{Sample, Screened};
use crate::scenario::Pair;

/// The runs that can be compared.
pub(super) struct Selection {
    pub(super) design: Matching,
    /// Matched scenarios by name; one nameless pair when the runs cannot be matched; none when a side is empty.
    pub(super) pairs: Vec<Pair>,
    pub(super) unmatched: Vec<String>,
    pub(super) non_finite: usize,
}

/// The relation between the runs of the two modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matching {
    /// By scenario.
    Labelled,
    /// The runs carry no scenario.
    Unlabelled,
    /// The modes have no scenario in common; all runs are pooled.
    Disjoint,
}

type Pieces<'a> = BTreeMap<Option<&'a str>, Vec<&'a [f64]>>;

impl Selection {
    pub(super) fn new(groups: &[Group<'_>], modes: ModePair<'_>) -> Self {
        let (a, b) = (pieces(groups, modes.a), pieces(groups, modes.b));
        if a.keys().chain(b.keys()).all(Option::is_none) {
            return Self::pooled(&a, &b, Matching::Unlabelled);
        }
        let mut selection = Self {
            design: Matching::Labelled,
            pairs: Vec::new(),
            unmatched: Vec::new(),
            non_finite: 0,
        };
        let names: BTreeSet<Option<&str>> = a.keys().chain(b.keys()).copied().collect();
        for name in names {
            selection.push(name, runs(&a, name), runs(&b, name));
        }
        if selection.pairs.is_empty() {
            return Self {
                unmatched: selection.unmatched,
                ..Self::pooled(&a, &b, Matching::Disjoint)
            };
        }
        selection
    }

    fn push(&mut self, name: Option<&str>, a: Screened, b: Screened) {
        self.non_finite += a.non_finite + b.non_finite;
        match a.sample.zip(b.sample) {
            Some((a, b)) => self.pairs.push(Pair { a, b }),
            None => self.unmatched.push(name.unwrap_or_default().to_owned()),
        }
    }

    fn pooled(a: &Pieces<'_>, b: &Pieces<'_>, design: Matching) -> Self {
        let all = |pieces: &Pieces<'_>| {
            Screened::from_parts(&pieces.values().flatten().copied().collect::<Vec<_>>())
        };
        let (a, b) = (all(a), all(b));
        let non_finite = a.non_finite + b.non_finite;
        let pairs = a
            .sample
            .zip(b.sample)
            .map(|(a, b)| Pair { a, b })
            .into_iter()
            .collect();
        Self {
            design,
            pairs,
            unmatched: Vec::new(),
            non_finite,
        }
    }

    /// All compared runs of both modes.
    pub(super) fn all_runs(&self) -> Option<Pair> {
        let all = |side: fn(&Pair) -> &Sample| {
            let parts: Vec<&[f64]> = self.pairs.iter().map(|pair| side(pair).values()).collect();
            Screened::from_parts(&parts).sample
        };
        Some(Pair {
            a: all(|pair| &pair.a)?,
            b: all(|pair| &pair.b)?,
        })
    }

    /// The usual number of runs of a scenario under one mode.
    pub(super) fn repetitions(&self) -> usize {
        let mut counts: Vec<usize> = self.counts().collect();
        counts.sort_unstable();
        counts
            .get(counts.len().saturating_sub(1) / 2)
            .copied()
            .unwrap_or(0)
    }

    /// All scenarios have that number of runs under both modes.
    pub(super) fn is_balanced(&self) -> bool {
        let usual = self.repetitions();
        self.counts().all(|runs| runs == usual)
    }

    fn counts(&self) -> impl Iterator<Item = usize> {
        let pairs = self.pairs.iter();
        pairs.flat_map(|pair| [pair.a.count(), pair.b.count()])
    }
}

fn runs(pieces: &Pieces<'_>, name: Option<&str>) -> Screened {
    Screened::from_parts(pieces.get(&name).map_or(&[], Vec::as_slice))
}

fn pieces<'a>(groups: &[Group<'a>], mode: &str) -> Pieces<'a> {
    let mut pieces = Pieces::new();
    for group in groups.iter().filter(|group| group.mode == mode) {
        pieces.entry(group.scenario).or_default().push(group.values);
    }
    pieces
}
