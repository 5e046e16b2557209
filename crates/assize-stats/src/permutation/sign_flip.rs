//! Sign flips: if the mode made no difference, each scenario's difference could as well have had the other sign.

use serde::Serialize;

use super::column::{Extreme, Share};
use super::{Alternative, PermutationOptions, relabel};
use crate::random::{Generator, Stream, coins};
use crate::sample::Screened;
use crate::warning::{Warning, Warnings};

/// Up to this many differences all sign patterns are enumerated.
const ENUMERATED_SIGNS: usize = 15;

/// Result of a sign-flip test.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SignFlipTest {
    /// Share of sign patterns at least as extreme.
    pub p_value: f64,
    pub mean_difference: f64,
    /// True when all patterns were enumerated.
    pub exact: bool,
    /// The smallest p-value this test could have given.
    pub min_attainable_p: f64,
    /// Standard error of `p_value`; 0 when exact.
    pub mc_error: f64,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Tests whether differences are centred on zero by flipping their signs: the check for new tasks like these.
pub fn sign_flip_test(differences: &[f64], options: &PermutationOptions) -> SignFlipTest {
    let stream = Stream::for_purpose(options.seed, "sign-flip");
    sign_flip_from(differences, options, stream)
}

/// The same with the draws of a given stream.
pub(crate) fn sign_flip_from(
    differences: &[f64],
    options: &PermutationOptions,
    stream: Stream,
) -> SignFlipTest {
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

fn random_signed_sum(values: &[f64], generator: &mut Generator) -> f64 {
    let mut sum = 0.0;
    for chunk in values.chunks(64) {
        let signs = coins(generator);
        for (place, value) in chunk.iter().enumerate() {
            sum += if signs >> place & 1 == 1 {
                *value
            } else {
                -value
            };
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

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
