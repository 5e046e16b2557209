//! Rows of different versions: metrics whose meaning changed between them are not compared.

use crate::{Caution, Row, SummaryBuilder};
use assize_contracts::{Catalog, RowField, SCHEMA_VERSION};

/// The metrics that mean something else since version 2: turns are model answers of the main agent, and failed tool calls
/// follow one rule for all agents.
const CHANGED: [RowField; 4] = [
    RowField::AgentTurns,
    RowField::ToolCallsFailed,
    RowField::ToolCallsRetried,
    RowField::ToolErrorRate,
];

/// The names of the metrics whose meaning changed between versions.
pub fn changed_metrics(catalog: &Catalog) -> [String; 4] {
    CHANGED.map(|field| catalog.name_of(field).to_owned())
}

/// The sentence about metrics that changed their meaning.
pub fn not_comparable() -> String {
    format!(
        "Turns, failed and retried tool calls and their error rate are not comparable with those of earlier trials: they mean something else since version {SCHEMA_VERSION} of rows (Assize 0.2)."
    )
}

impl SummaryBuilder {
    /// True when any trial is of the first version of rows.
    pub fn has_old_trials(&self) -> bool {
        self.has_old_trials
    }

    /// True when any trial is of the current version. Rows of other profilers have none.
    pub fn has_current_trials(&self) -> bool {
        self.has_current_trials
    }

    pub(crate) fn note_version(&mut self, row: &Row<'_>) {
        match row.is_of_first_version() {
            true => self.has_old_trials = true,
            false => self.has_current_trials |= !row.is_foreign(),
        }
    }

    /// Forgets what old trials measured of changed metrics, where there are current ones to compare them with.
    pub(crate) fn keep_versions_apart(&mut self) {
        if self.has_old_trials() && self.has_current_trials() {
            self.forget_changed_metrics(|is_old| is_old);
            self.has_mixed_versions = true;
        }
    }

    /// Forgets the changed metrics of the trials that are meant.
    pub(crate) fn forget_changed_metrics(&mut self, is_meant: fn(bool) -> bool) {
        self.has_forgotten_metrics = true;
        let catalog = &self.names.catalog;
        let places = CHANGED.map(|field| self.names.metrics.find(catalog.name_of(field)));
        for arm in &mut self.arms {
            for place in places.into_iter().flatten() {
                arm.cells.forget(place, is_meant);
            }
        }
    }

    /// True when the values of a metric were left out because they mean something else.
    pub(crate) fn has_forgotten(&self, metric: &str) -> bool {
        let changed = || changed_metrics(&self.names.catalog);
        self.has_forgotten_metrics && changed().iter().any(|known| known == metric)
    }

    pub(crate) fn version_caution(&self) -> Option<Caution> {
        self.has_mixed_versions.then(|| {
            let metrics = changed_metrics(&self.names.catalog).to_vec();
            Caution::new(
                assize_contracts::CautionCode::NotComparable,
                not_comparable(),
                metrics,
            )
        })
    }
}
