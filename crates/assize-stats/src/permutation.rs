//! Permutation tests: is the difference larger than what shuffled labels give?
//!
//! `column` prepares a metric, `relabel` goes through all relabelings when they are few, `shuffle` draws them when they
//! are many. `sign_flip` is the same idea for one difference per scenario.

mod column;
mod relabel;
mod shuffle;
mod sign_flip;

use serde::Serialize;

use crate::random::Stream;
use crate::scenario::Matched;
use crate::warning::{Warning, Warnings};
pub(crate) use column::Column;
use column::Share;
use shuffle::count_extreme;
pub(crate) use sign_flip::sign_flip_from;
pub use sign_flip::{SignFlipTest, sign_flip_test};

/// The differences that count as at least as extreme as the observed one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alternative {
    /// Far from zero in either direction.
    #[default]
    TwoSided,
    /// A below B.
    Less,
    /// A above B.
    Greater,
}

/// Settings of a permutation test.
#[derive(Clone, Copy, Debug)]
pub struct PermutationOptions {
    /// Random relabelings when there are too many to enumerate.
    pub permutations: usize,
    /// The differences that count.
    pub alternative: Alternative,
    /// Same seed, same answer.
    pub seed: u64,
}

impl Default for PermutationOptions {
    fn default() -> Self {
        Self {
            permutations: 10_000,
            alternative: Alternative::TwoSided,
            seed: 42,
        }
    }
}

/// Result of a permutation test.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermutationTest {
    /// Never 0: the observed labels are one of the possible ones.
    pub p_value: f64,
    /// Mean of A minus mean of B; averaged over scenarios in the stratified test.
    pub observed_difference: f64,
    /// Requested number of random relabelings.
    pub permutations: usize,
    /// True when all relabelings were enumerated.
    pub exact: bool,
    /// Relabelings looked at.
    pub evaluated: u64,
    /// The smallest p-value this test could have given.
    pub min_attainable_p: f64,
    /// Standard error of `p_value` from drawing relabelings; 0 when exact.
    pub mc_error: f64,
    /// Dropped NaN and infinite values.
    pub non_finite: usize,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// The runs of one scenario under both modes.
#[derive(Clone, Debug)]
pub struct Stratum<'a> {
    /// Runs of mode A.
    pub a: &'a [f64],
    /// Runs of mode B.
    pub b: &'a [f64],
}

/// Tests whether A and B differ, for values that carry no scenario.
pub fn permutation_test(
    group_a: &[f64],
    group_b: &[f64],
    options: &PermutationOptions,
) -> PermutationTest {
    stratified_permutation_test(
        &[Stratum {
            a: group_a,
            b: group_b,
        }],
        options,
    )
}

/// Tests whether the mode matters in any scenario: labels are shuffled inside each scenario only.
pub fn stratified_permutation_test(
    strata: &[Stratum<'_>],
    options: &PermutationOptions,
) -> PermutationTest {
    let (a, b): (Vec<&[f64]>, Vec<&[f64]>) =
        strata.iter().map(|stratum| (stratum.a, stratum.b)).unzip();
    let Matched {
        pairs, non_finite, ..
    } = Matched::paired_up(&a, &b);
    let column = Column::new(&pairs, options.alternative);
    let stream = Stream::for_purpose(options.seed, "permutation");
    let mut test = test_columns(&[column], options.permutations, stream).remove(0);
    test.non_finite = non_finite;
    test.warnings
        .add_if(non_finite > 0, Warning::NonFiniteDropped);
    test
}

/// The answers of several metrics: exact where relabelings are few, else from draws shared by all columns that are laid
/// out alike. A column's answer does not depend on which others are there.
pub(crate) fn test_columns(
    columns: &[Option<Column>],
    permutations: usize,
    stream: Stream,
) -> Vec<PermutationTest> {
    let answer = |column: &Option<Column>| match column {
        Some(column) if permutations > 0 => column.enumerate(permutations),
        _ => Some(no_test(permutations)),
    };
    let mut tests: Vec<Option<PermutationTest>> = columns.iter().map(answer).collect();
    while let Some(first) = tests.iter().position(Option::is_none) {
        let layout = columns[first].as_ref().map(|column| &column.layout);
        let is_alike =
            |place: &usize| columns[*place].as_ref().map(|column| &column.layout) == layout;
        let alike: Vec<usize> = (first..columns.len())
            .filter(|place| tests[*place].is_none() && is_alike(place))
            .collect();
        let together: Vec<&Column> = alike
            .iter()
            .filter_map(|&place| columns[place].as_ref())
            .collect();
        let counts = count_extreme(&together, permutations, stream);
        for ((place, column), extreme) in alike.into_iter().zip(together).zip(counts) {
            tests[place] =
                Some(column.answer(Share::drawn(extreme, permutations as u64), permutations));
        }
    }
    tests.into_iter().flatten().collect()
}

/// The answer when there is nothing to permute.
fn no_test(permutations: usize) -> PermutationTest {
    PermutationTest {
        p_value: 1.0,
        observed_difference: 0.0,
        permutations,
        exact: false,
        evaluated: 0,
        min_attainable_p: 1.0,
        mc_error: 0.0,
        non_finite: 0,
        warnings: Warnings::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;
    use crate::scenario::Pair;

    fn test(a: &[f64], b: &[f64]) -> PermutationTest {
        permutation_test(a, b, &PermutationOptions::default())
    }

    #[test]
    fn no_permutations_or_no_values_say_nothing() {
        let none = PermutationOptions {
            permutations: 0,
            ..Default::default()
        };
        let empty = permutation_test(&[1.0, 2.0], &[5.0, 6.0], &none);
        assert_eq!(
            (empty.p_value, empty.observed_difference, empty.permutations),
            (1.0, 0.0, 0)
        );
        let empty = test(&[], &[1.0]);
        assert_eq!(
            (empty.p_value, empty.observed_difference, empty.permutations),
            (1.0, 0.0, 10_000)
        );
    }

    #[test]
    fn ties_on_a_large_level_stay_ties() {
        let level = 1e9;
        let shift = |values: [f64; 3]| values.map(|value| value + level);
        let small = test(&[1.0, 2.0, 3.0], &[3.0, 4.0, 5.0]);
        let large = test(&shift([1.0, 2.0, 3.0]), &shift([3.0, 4.0, 5.0]));
        assert_eq!(small.p_value, large.p_value);
    }

    #[test]
    fn drawn_p_values_agree_with_enumerated_ones() {
        let a = [12.0, 15.0, 11.0, 18.0, 20.0, 14.0, 13.5];
        let b = [18.0, 16.0, 17.0, 15.5, 19.0, 21.0];
        let exact = test(&a, &b);
        assert!(exact.exact);
        let (a, b) = (Sample::new(&a).unwrap(), Sample::new(&b).unwrap());
        let column = Column::new(&[Pair { a, b }], Alternative::TwoSided).unwrap();
        let draws = 200_000;
        let extreme = count_extreme(&[&column], draws, Stream::for_purpose(1, "check"))[0];
        let drawn = Share::drawn(extreme, draws as u64);
        assert!(
            (drawn.p_value - exact.p_value).abs() < 5.0 * drawn.error,
            "{} {}",
            drawn.p_value,
            exact.p_value
        );
    }

    #[test]
    fn drawn_p_values_of_many_runs_agree_with_the_normal_distribution() {
        let value = |place: usize, shift: f64| (place * 7919 % 97) as f64 * 1.3 + shift;
        // Unequal counts, and scenarios on different levels.
        let pairs: Vec<Pair> = [(300, 200, 0.0), (90, 400, 50.0), (250, 10, 9.0)]
            .iter()
            .map(|&(runs_a, runs_b, level)| {
                let a: Vec<f64> = (0..runs_a).map(|run| value(run, level + 3.0)).collect();
                let b: Vec<f64> = (0..runs_b).map(|run| value(run + 5, level)).collect();
                let (a, b) = (Sample::new(&a).unwrap(), Sample::new(&b).unwrap());
                Pair { a, b }
            })
            .collect();
        let column = Column::new(&pairs, Alternative::TwoSided).unwrap();
        let draws = 100_000;
        let extreme = count_extreme(&[&column], draws, Stream::for_purpose(1, "check"))[0];
        let drawn = Share::drawn(extreme, draws as u64);
        let normal = column.normal_p().unwrap();
        assert!((0.02..0.98).contains(&normal), "{normal}");
        assert!(
            (drawn.p_value - normal).abs() < 0.005,
            "{} {normal}",
            drawn.p_value
        );
    }

    #[test]
    fn few_runs_and_runs_that_do_not_vary_have_no_normal_p() {
        let column = |count: usize, step: f64| {
            let values: Vec<f64> = (0..count).map(|run| run as f64 * step).collect();
            let sample = Sample::new(&values).unwrap();
            let pair = Pair {
                a: sample.clone(),
                b: sample,
            };
            Column::new(&[pair], Alternative::TwoSided).unwrap()
        };
        assert_eq!(column(499, 1.0).normal_p(), None);
        assert_eq!(column(500, 0.0).normal_p(), None);
        assert_eq!(column(500, 1.0).normal_p(), Some(1.0));
    }
}
