//! Permutation tests: is the difference larger than what shuffled labels give?
//!
//! `relabel` counts over all relabelings when they are few; `shuffle` draws them when they are many.

mod relabel;
mod shuffle;

use serde::Serialize;

use crate::random::{Stream, coins};
use crate::sample::{Sample, Screened, finite};
use crate::scenario::{Matched, Pair, common_scale};
use crate::warning::{Warning, Warnings};
use shuffle::count_extreme;

/// As many relabelings are enumerated; beyond that they are drawn.
const ENUMERATED: u64 = 50_000;
/// Relative slack that makes ties hidden by rounding count as ties.
const SLACK: f64 = 1e-12;
/// Up to this many differences all sign patterns are enumerated.
const ENUMERATED_SIGNS: usize = 15;

/// Which differences count as at least as extreme as the observed one.
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

/// How to test.
#[derive(Clone, Copy, Debug)]
pub struct PermutationOptions {
    /// Random relabelings when there are too many to enumerate.
    pub permutations: usize,
    /// Which differences count.
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
    /// Whether all relabelings were enumerated.
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

/// Result of a sign-flip test.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SignFlipTest {
    /// Share of sign patterns at least as extreme.
    pub p_value: f64,
    /// Mean of the differences.
    pub mean_difference: f64,
    /// Whether all patterns were enumerated.
    pub exact: bool,
    /// The smallest p-value this test could have given.
    pub min_attainable_p: f64,
    /// Standard error of `p_value`; 0 when exact.
    pub mc_error: f64,
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

/// Tests whether differences are centred on zero by flipping their signs: the check for new tasks like these.
pub fn sign_flip_test(differences: &[f64], options: &PermutationOptions) -> SignFlipTest {
    let screened = Screened::new(differences);
    let mut warnings = Warnings::default();
    warnings.add_if(screened.non_finite > 0, Warning::NonFiniteDropped);
    let Some(sample) = screened.sample else {
        return SignFlipTest {
            p_value: 1.0,
            mean_difference: 0.0,
            exact: true,
            min_attainable_p: 1.0,
            mc_error: 0.0,
            warnings,
        };
    };
    let scaled = sample.scaled(sample.scale().inverse);
    let extreme = Extreme::new(scaled.values().iter().sum(), 1.0, options.alternative);
    let exact = scaled.count() <= ENUMERATED_SIGNS;
    let share = if exact {
        Share::enumerated(&relabel::signed_sums(scaled.values()), &extreme)
    } else {
        let stream = Stream::for_purpose(options.seed, "sign-flip");
        let sums = stream.replicates(
            options.permutations,
            || (),
            |generator, ()| random_signed_sum(scaled.values(), generator),
        );
        Share::drawn(
            sums.iter().filter(|&&sum| extreme.holds(sum)).count() as u64,
            options.permutations as u64,
        )
    };
    let sides = if options.alternative == Alternative::TwoSided {
        2.0
    } else {
        1.0
    };
    let smallest = if exact {
        sides / libm::exp2(scaled.count() as f64)
    } else {
        share.smallest
    };
    let mean_difference = sample.mean();
    SignFlipTest {
        p_value: share.p_value,
        mean_difference,
        exact,
        min_attainable_p: smallest.min(1.0),
        mc_error: share.error,
        warnings,
    }
}

fn random_signed_sum(values: &[f64], generator: &mut crate::random::Generator) -> f64 {
    let signed = |(word, chunk): (u64, &[f64])| -> f64 {
        (0..)
            .zip(chunk)
            .map(|(bit, value)| if word >> bit & 1 == 1 { *value } else { -value })
            .sum()
    };
    values
        .chunks(64)
        .map(|chunk| signed((coins(generator), chunk)))
        .sum()
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

/// How many of how many runs carry label A, for each scenario in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout(pub(crate) Vec<Labels>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Labels {
    pub(crate) runs: usize,
    pub(crate) chosen: usize,
}

/// One metric, prepared so that the test statistic of a relabeling is the sum of the chosen entries.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) layout: Layout,
    /// Scenario after scenario, ascending inside each: the order must not depend on the labels.
    pub(crate) entries: Vec<f64>,
    pub(crate) extreme: Extreme,
    observed_difference: f64,
}

impl Column {
    /// None unless at least one scenario has runs of both modes.
    pub(crate) fn new(pairs: &[Pair], alternative: Alternative) -> Option<Self> {
        if pairs.is_empty() {
            return None;
        }
        let scale = common_scale(pairs.iter().flat_map(|pair| [&pair.a, &pair.b]));
        let mut column = Builder {
            share: 1.0 / pairs.len() as f64,
            ..Builder::default()
        };
        for pair in pairs {
            column.push(
                &pair.a.scaled(scale.inverse / 2.0),
                &pair.b.scaled(scale.inverse / 2.0),
            );
        }
        let extreme = Extreme {
            offset: column.offset,
            ..Extreme::new(column.observed, column.largest, alternative)
        };
        let observed_difference = finite(column.observed * 2.0 * scale.unit);
        Some(Self {
            layout: Layout(column.labels),
            entries: column.entries,
            extreme,
            observed_difference,
        })
    }

    /// The exact answer; none when there are too many relabelings.
    fn enumerate(&self, permutations: usize) -> Option<PermutationTest> {
        let sums = relabel::all_sums(&self.layout, &self.entries, ENUMERATED)?;
        let share = Share::enumerated(&sums, &self.extreme);
        Some(PermutationTest {
            exact: true,
            ..self.answer(share, permutations)
        })
    }

    fn answer(&self, share: Share, permutations: usize) -> PermutationTest {
        PermutationTest {
            p_value: share.p_value,
            observed_difference: self.observed_difference,
            permutations,
            exact: false,
            evaluated: share.evaluated,
            min_attainable_p: share.smallest,
            mc_error: share.error,
            non_finite: 0,
            warnings: Warnings::default(),
        }
    }
}

/// Collects strata into a column. Values are at most 1/2 in magnitude, so differences cannot overflow.
#[derive(Default)]
struct Builder {
    share: f64,
    labels: Vec<Labels>,
    entries: Vec<f64>,
    offset: f64,
    observed: f64,
    largest: f64,
}

impl Builder {
    fn push(&mut self, a: &Sample, b: &Sample) {
        let mut runs = [a.values(), b.values()].concat();
        runs.sort_unstable_by(f64::total_cmp);
        // A measured value as the centre keeps differences exact, so that true ties stay ties.
        let centre = runs[runs.len() / 2];
        let total: f64 = runs.iter().map(|value| value - centre).sum();
        let chosen: f64 = a.values().iter().map(|value| value - centre).sum();
        let (count_a, count_b) = (a.count() as f64, b.count() as f64);
        // mean(A) - mean(B) = sum(A) * (1/nA + 1/nB) - total/nB
        let factor = (1.0 / count_a + 1.0 / count_b) * self.share;
        self.offset += total / count_b * self.share;
        self.observed += (chosen / count_a - (total - chosen) / count_b) * self.share;
        self.largest = runs
            .iter()
            .map(|value| (value - centre).abs())
            .fold(self.largest, f64::max);
        self.labels.push(Labels {
            runs: runs.len(),
            chosen: a.count(),
        });
        self.entries
            .extend(runs.iter().map(|value| (value - centre) * factor));
    }
}

/// Decides which sums of chosen entries are at least as extreme as the observed difference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extreme {
    offset: f64,
    threshold: f64,
    alternative: Alternative,
}

impl Extreme {
    fn new(observed: f64, largest: f64, alternative: Alternative) -> Self {
        let size = match alternative {
            Alternative::TwoSided => observed.abs(),
            Alternative::Less => -observed,
            Alternative::Greater => observed,
        };
        Self {
            offset: 0.0,
            threshold: size - SLACK * largest,
            alternative,
        }
    }

    pub(crate) fn holds(&self, sum: f64) -> bool {
        self.size(sum) >= self.threshold
    }

    fn size(&self, sum: f64) -> f64 {
        let difference = sum - self.offset;
        match self.alternative {
            Alternative::TwoSided => difference.abs(),
            Alternative::Less => -difference,
            Alternative::Greater => difference,
        }
    }
}

/// A p-value and how it came about.
struct Share {
    p_value: f64,
    evaluated: u64,
    smallest: f64,
    error: f64,
}

impl Share {
    fn enumerated(sums: &[f64], extreme: &Extreme) -> Self {
        let total = sums.len() as f64;
        let count = sums.iter().filter(|&&sum| extreme.holds(sum)).count();
        let most = sums
            .iter()
            .map(|&sum| extreme.size(sum))
            .fold(f64::NEG_INFINITY, f64::max);
        let at_most = sums
            .iter()
            .filter(|&&sum| extreme.size(sum) >= most - SLACK)
            .count();
        Self {
            p_value: count as f64 / total,
            evaluated: sums.len() as u64,
            smallest: at_most as f64 / total,
            error: 0.0,
        }
    }

    /// Counting the observed labels themselves keeps the p-value above 0 and the test valid.
    fn drawn(extreme: u64, evaluated: u64) -> Self {
        let total = evaluated as f64 + 1.0;
        let p_value = (extreme as f64 + 1.0) / total;
        Self {
            p_value,
            evaluated,
            smallest: 1.0 / total,
            error: libm::sqrt(p_value * (1.0 - p_value) / total),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_smallest_sign_flip_p_value_is_known_in_advance() {
        let test = sign_flip_test(&[-1.0, -2.0, -3.0], &PermutationOptions::default());
        assert_eq!((test.p_value, test.min_attainable_p), (0.25, 0.25));
    }

    #[test]
    fn many_differences_are_flipped_at_random() {
        let differences: Vec<f64> = (0..70).map(|value| f64::from(value % 7) - 3.0).collect();
        let test = sign_flip_test(&differences, &PermutationOptions::default());
        assert!(!test.exact);
        assert!(test.p_value > 0.9);
    }
}
