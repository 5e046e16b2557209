//! The influence of void trials: the verdict as observed, with all of them against A, and with all of them for A.

use serde::Serialize;

use super::{SuccessDifference, success_difference};
use crate::error::{StatsError, same_length};
use crate::interval::Level;
use crate::proportion::Tally;
use crate::verdict::Verdict;

/// A verdict and what the void trials could make of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VoidCheck {
    /// The verdict with the void trials left out.
    pub observed: Verdict,
    /// The verdict if A's void trials had failed and B's had passed.
    pub worst: Verdict,
    /// The verdict if A's void trials had passed and B's had failed.
    pub best: Verdict,
    /// The verdict all three agree on, else inconclusive.
    pub verdict: Verdict,
    /// The difference in the worst and in the best case.
    pub void_bounds: Option<[f64; 2]>,
    /// The lower bound of the worst case and the upper bound of the best.
    pub void_interval: Option<[f64; 2]>,
    /// The three do not agree.
    pub void_decides: bool,
}

/// Compares success of two modes whose void trials may depend on the mode; all four lists are in the order of the tasks.
pub fn void_check(
    a: &[Tally],
    b: &[Tally],
    void_a: &[u64],
    void_b: &[u64],
    alpha: Level,
) -> Result<VoidCheck, StatsError> {
    let cases = VoidCases::new(&Voided::listed(a, void_a)?, &Voided::listed(b, void_b)?)?;
    let compared = |case: &TallyCase| success_difference(&case.a, &case.b, alpha);
    let observed = compared(&cases.observed)?;
    let worst = compared(&cases.worst)?;
    let best = compared(&cases.best)?;
    let words = [&observed, &worst, &best].map(|difference| difference.verdict);
    let agree = words.iter().all(|word| *word == observed.verdict);
    let span = |low: fn(&SuccessDifference) -> Option<f64>,
                high: fn(&SuccessDifference) -> Option<f64>| {
        low(&worst).zip(high(&best)).map(|(low, high)| [low, high])
    };
    Ok(VoidCheck {
        observed: observed.verdict,
        worst: worst.verdict,
        best: best.verdict,
        verdict: if agree {
            observed.verdict
        } else {
            Verdict::Inconclusive
        },
        void_bounds: span(|worst| worst.estimate, |best| best.estimate),
        void_interval: span(|worst| worst.lower, |best| best.upper),
        void_decides: !agree,
    })
}

/// Judged and void trials of one mode on one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Voided {
    pub(crate) judged: Tally,
    /// Void trials whose cause may depend on the mode.
    pub(crate) void: u64,
}

impl Voided {
    fn listed(tallies: &[Tally], voids: &[u64]) -> Result<Vec<Self>, StatsError> {
        same_length(tallies.len(), voids.len())?;
        let pairs = tallies.iter().zip(voids);
        Ok(pairs
            .map(|(&judged, &void)| Self { judged, void })
            .collect())
    }

    fn all_failed(self) -> Tally {
        self.judged.plus(Tally::of_failed(self.void))
    }

    fn all_passed(self) -> Tally {
        self.judged.plus(Tally::of_passed(self.void))
    }
}

/// The counts of both modes in one reading of the void trials.
#[derive(Clone, Debug)]
pub(crate) struct TallyCase {
    pub(crate) a: Vec<Tally>,
    pub(crate) b: Vec<Tally>,
}

/// The three readings of the void trials.
#[derive(Clone, Debug)]
pub(crate) struct VoidCases {
    pub(crate) observed: TallyCase,
    pub(crate) worst: TallyCase,
    pub(crate) best: TallyCase,
}

impl VoidCases {
    pub(crate) fn new(a: &[Voided], b: &[Voided]) -> Result<Self, StatsError> {
        same_length(a.len(), b.len())?;
        let all = |trials: &[Voided], read: fn(Voided) -> Tally| -> Vec<Tally> {
            trials.iter().copied().map(read).collect()
        };
        Ok(Self {
            observed: TallyCase {
                a: all(a, |trials| trials.judged),
                b: all(b, |trials| trials.judged),
            },
            worst: TallyCase {
                a: all(a, Voided::all_failed),
                b: all(b, Voided::all_passed),
            },
            best: TallyCase {
                a: all(a, Voided::all_passed),
                b: all(b, Voided::all_failed),
            },
        })
    }
}
