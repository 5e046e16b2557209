//! Labels over many trials: accuracy, F1, precision and recall per label, and the confusion matrix.
//!
//! A row reports a label by two texts among its extensions: `<name>` is the label that came out, `<name>_expected` the right one.

use serde::Serialize;
use std::collections::BTreeMap;

/// More labels than these are no classes; the rest is counted together.
const MOST_LABELS: usize = 60;

/// The name under which labels beyond that are counted.
const OTHERS: &str = "(others)";

/// Counts of each label that came out, by the label that was expected.
#[derive(Debug, Default)]
pub(crate) struct Confusion {
    counts: BTreeMap<(String, String), u64>,
    labels: BTreeMap<String, ()>,
}

impl Confusion {
    pub(crate) fn add(&mut self, expected: &str, actual: &str) {
        let key = (self.known(expected), self.known(actual));
        *self.counts.entry(key).or_default() += 1;
    }

    fn known(&mut self, label: &str) -> String {
        if self.labels.contains_key(label) {
            return label.to_owned();
        }
        if self.labels.len() >= MOST_LABELS {
            return OTHERS.to_owned();
        }
        self.labels.insert(label.to_owned(), ());
        label.to_owned()
    }
}

/// The classification results of a mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Classification {
    /// Trials that gave a label.
    pub trials: u64,
    /// The share with the expected label.
    pub accuracy: f64,
    /// The mean of all labels' F1.
    pub macro_f1: f64,
    /// F1 over all decisions. The same as accuracy, since every trial has one label.
    pub micro_f1: f64,
    /// Each label.
    pub classes: Vec<LabelSummary>,
    /// By expected label (rows) and actual one (columns), both in the order of `classes`.
    pub matrix: Vec<Vec<u64>>,
}

/// The results of one label.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSummary {
    pub label: String,
    /// Trials that expected it.
    pub support: u64,
    /// Of those that gave it, the share that expected it. Absent when none gave it.
    pub precision: Option<f64>,
    /// Of those that expected it, the share that gave it. Absent when none expected it.
    pub recall: Option<f64>,
    /// The harmonic mean of both; 0 when nothing was right.
    pub f1: f64,
}

impl Confusion {
    pub(crate) fn summarize(&self) -> Classification {
        let mut labels: Vec<&str> = Vec::new();
        for (expected, actual) in self.counts.keys() {
            for label in [expected, actual] {
                if !labels.contains(&label.as_str()) {
                    labels.push(label);
                }
            }
        }
        labels.sort_unstable();
        let count = |expected: &str, actual: &str| {
            let key = (expected.to_owned(), actual.to_owned());
            self.counts.get(&key).copied().unwrap_or(0)
        };
        let row = |expected: &&str| {
            labels
                .iter()
                .map(|actual| count(expected, actual))
                .collect()
        };
        let matrix: Vec<Vec<u64>> = labels.iter().map(row).collect();
        let classes: Vec<LabelSummary> = labels
            .iter()
            .enumerate()
            .map(|(place, label)| class(label, place, &matrix))
            .collect();
        let trials: u64 = matrix.iter().flatten().sum();
        let right: u64 = (0..labels.len()).map(|place| matrix[place][place]).sum();
        let accuracy = share(right, trials).unwrap_or(0.0);
        let f1: f64 = classes.iter().map(|class| class.f1).sum();
        Classification {
            trials,
            accuracy,
            macro_f1: f1 / classes.len().max(1) as f64,
            micro_f1: accuracy,
            classes,
            matrix,
        }
    }
}

fn class(label: &str, place: usize, matrix: &[Vec<u64>]) -> LabelSummary {
    let right = matrix[place][place];
    let support: u64 = matrix[place].iter().sum();
    let given: u64 = matrix.iter().map(|row| row[place]).sum();
    LabelSummary {
        label: label.to_owned(),
        support,
        precision: share(right, given),
        recall: share(right, support),
        f1: share(2 * right, support + given).unwrap_or(0.0),
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str, u64)]) -> Classification {
        let mut confusion = Confusion::default();
        for (expected, actual, count) in pairs {
            (0..*count).for_each(|_| confusion.add(expected, actual));
        }
        confusion.summarize()
    }

    /// Reference values of scikit-learn's `classification_report`.
    #[test]
    fn figures_are_those_of_the_textbook() {
        let found = of(&[
            ("a", "a", 3),
            ("a", "b", 1),
            ("b", "b", 2),
            ("b", "c", 1),
            ("c", "a", 1),
            ("c", "c", 2),
        ]);
        assert_eq!(
            (found.trials, found.accuracy, found.micro_f1),
            (10, 0.7, 0.7)
        );
        let rounded = |value: f64| (value * 1e4).round() / 1e4;
        assert_eq!(rounded(found.macro_f1), 0.6944);
        let a = &found.classes[0];
        assert_eq!(
            (a.label.as_str(), a.support, a.precision, a.recall, a.f1),
            ("a", 4, Some(0.75), Some(0.75), 0.75)
        );
        assert_eq!(found.matrix, [[3, 1, 0], [0, 2, 1], [1, 0, 2]]);
    }

    #[test]
    fn a_label_that_nobody_gave_has_no_precision() {
        let found = of(&[("a", "b", 2)]);
        assert_eq!(
            (found.classes[0].precision, found.classes[0].recall),
            (None, Some(0.0))
        );
        assert_eq!(
            (found.classes[1].precision, found.classes[1].recall),
            (Some(0.0), None)
        );
        assert_eq!(found.macro_f1, 0.0);
    }

    #[test]
    fn endless_labels_do_not_fill_the_memory() {
        let mut confusion = Confusion::default();
        for number in 0..10_000 {
            confusion.add("a", &format!("label {number}"));
        }
        let found = confusion.summarize();
        assert!(found.classes.len() <= MOST_LABELS + 1);
        assert_eq!(found.trials, 10_000);
    }
}
