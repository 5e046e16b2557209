//! Void trials of a run: their reasons, and when a mode has had enough of them.

use assize_contracts::{Outcome, ProfileRow};
use assize_secrets::Redactor;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The cause of a mode's void trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidReason {
    pub mode: String,
    /// The reason in words, secrets removed: that of the first such trial.
    pub reason: String,
    /// The number of void trials with this cause.
    pub trials: u64,
    /// The first such trial's place in the plan.
    pub position: Option<u64>,
    /// No more trials of the mode were started, because its first ones were all void for this reason.
    pub stopped: bool,
}

/// Counts void trials during a run.
pub(crate) struct Voids {
    /// The trials at the start of a mode that may be void for the same reason; 0 for any number.
    limit: u32,
    redactor: Redactor,
    modes: Mutex<BTreeMap<String, ModeVoids>>,
    has_stopped_any: AtomicBool,
}

#[derive(Default)]
struct ModeVoids {
    trials: u64,
    /// By what is the same in all messages of a reason.
    reasons: BTreeMap<String, VoidReason>,
    is_stopped: bool,
}

impl Voids {
    pub(crate) fn new(limit: u32, redactor: Redactor) -> Self {
        Self {
            limit,
            redactor,
            modes: Mutex::default(),
            has_stopped_any: AtomicBool::new(false),
        }
    }

    /// Takes a finished trial. Returns the reason when it is the one that stops its mode.
    pub(crate) fn add(&self, row: &ProfileRow) -> Option<VoidReason> {
        let mut modes = self.modes();
        let mode = modes.entry(row.mode.clone()).or_default();
        mode.trials += 1;
        if row.outcome != Some(Outcome::Void) {
            return None;
        }
        let reason = mode
            .reasons
            .entry(kind_of(row))
            .or_insert_with(|| VoidReason {
                mode: row.mode.clone(),
                reason: self.redactor.text(&in_words(row)).into_owned(),
                trials: 0,
                position: row.position,
                stopped: false,
            });
        reason.trials += 1;
        let is_first = reason.trials == mode.trials;
        let is_last_straw = self.limit > 0 && reason.trials == u64::from(self.limit);
        if !(is_first && is_last_straw) {
            return None;
        }
        mode.is_stopped = true;
        self.has_stopped_any.store(true, Ordering::Release);
        reason.stopped = true;
        Some(reason.clone())
    }

    /// True if any mode was stopped.
    pub(crate) fn has_stopped_any(&self) -> bool {
        self.has_stopped_any.load(Ordering::Acquire)
    }

    /// True if no more trials of the mode are started.
    pub(crate) fn has_stopped(&self, mode: &str) -> bool {
        self.modes().get(mode).is_some_and(|mode| mode.is_stopped)
    }

    /// All reasons, mode by mode, the most frequent first.
    pub(crate) fn reasons(&self) -> Vec<VoidReason> {
        let modes = self.modes();
        let mut all = Vec::new();
        for mode in modes.values() {
            let mut reasons: Vec<VoidReason> = mode.reasons.values().cloned().collect();
            reasons.sort_by_key(|reason| std::cmp::Reverse(reason.trials));
            all.extend(reasons);
        }
        all
    }

    fn modes(&self) -> MutexGuard<'_, BTreeMap<String, ModeVoids>> {
        self.modes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn in_words(row: &ProfileRow) -> String {
    let words = row.error.as_deref().or(row.error_code.as_deref());
    words.unwrap_or("no reason is known").to_owned()
}

/// A reason without what differs from trial to trial: paths of workspaces, ports, times, ids.
fn kind_of(row: &ProfileRow) -> String {
    let code = row.error_code.as_deref().unwrap_or_default();
    let message = row.error.as_deref().unwrap_or_default();
    let varies = |word: &str| word.contains('/') || word.contains(|c: char| c.is_ascii_digit());
    let words = message.split_whitespace();
    let words = words.map(|word| if varies(word) { "…" } else { word });
    format!("{code} {}", words.collect::<Vec<_>>().join(" "))
}
