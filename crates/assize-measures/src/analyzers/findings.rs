//! Collecting findings. A number that is not finite was not found, so it is left out.

use assize_contracts::{AnalysisFinding, AnalysisResult, Number};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Findings(BTreeMap<String, AnalysisFinding>);

impl Findings {
    pub(super) fn count(&mut self, key: &str, count: usize, unit: &str) {
        self.number(key, Some(count as f64), unit);
    }

    /// Left out when the count is unknown.
    pub(super) fn known_count(&mut self, key: &str, count: Option<usize>, unit: &str) {
        self.number(key, count.map(|count| count as f64), unit);
    }

    pub(super) fn number(&mut self, key: &str, value: Option<f64>, unit: &str) {
        let unit = unit.to_owned();
        if let Some(value) = value.and_then(Number::new) {
            self.insert(key, AnalysisFinding::Number { value, unit });
        }
    }

    pub(super) fn ratio(&mut self, key: &str, value: Option<f64>, label: &str) {
        let label = label.to_owned();
        if let Some(value) = value.and_then(Number::new) {
            self.insert(key, AnalysisFinding::Ratio { value, label });
        }
    }

    pub(super) fn text(&mut self, key: &str, value: &str) {
        let value = value.to_owned();
        self.insert(key, AnalysisFinding::String { value });
    }

    pub(super) fn list(&mut self, key: &str, values: Vec<String>) {
        self.insert(key, AnalysisFinding::List { values });
    }

    pub(super) fn table(&mut self, key: &str, headers: &[&str], rows: Vec<Vec<String>>) {
        let headers = headers.iter().map(|&header| header.to_owned()).collect();
        self.insert(key, AnalysisFinding::Table { headers, rows });
    }

    pub(super) fn into_result(self, analyzer: &str, summary: String) -> AnalysisResult {
        AnalysisResult {
            analyzer: analyzer.to_owned(),
            findings: self.0,
            summary,
        }
    }

    fn insert(&mut self, key: &str, finding: AnalysisFinding) {
        self.0.insert(key.to_owned(), finding);
    }
}

/// Absent when there is nothing to divide by.
pub(super) fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
