//! Finds the place where a series of numbers changed, if it can be distinguished from chance.

use serde::Serialize;

use crate::random::{Stream, index};
use crate::sample::Sample;

/// The fewest numbers among which a single change can be distinguished from chance at an error rate of 5 %.
pub const FEWEST_FOR_CHANGE: usize = 8;

/// Below this many on a side, one odd number would be a change.
const SMALLEST_SIDE: usize = 2;

/// Up to here all orders are looked at.
const EXACT: usize = 8;

const SHUFFLES: usize = 9_999;

/// The likeliest place of a single change of level.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangePoint {
    /// The first number after the change.
    pub at: usize,
    /// Median of the numbers before it.
    pub before: f64,
    /// Median of the numbers from it on.
    pub after: f64,
    /// The share of random orders in which the numbers seem to change as much somewhere.
    pub p_value: f64,
}

/// Looks for one change of level: the split with the largest standardised sum of ranks, held against the same numbers in
/// random order. None for fewer than [`FEWEST_FOR_CHANGE`] finite numbers. Small p-values alone mean that something changed.
pub fn change_point(values: &[f64], seed: u64) -> Option<ChangePoint> {
    if values.len() < FEWEST_FOR_CHANGE || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut ranks = ranks(values);
    let split = best_split(&ranks);
    let median = |part: &[f64]| Sample::new(part).map(|part| part.quantile(0.5));
    Some(ChangePoint {
        at: split.at,
        before: median(&values[..split.at])?,
        after: median(&values[split.at..])?,
        p_value: p_value(&mut ranks, split.size, seed),
    })
}

struct Split {
    at: usize,
    size: f64,
}

/// Ranks from the middle, ties sharing theirs: extreme numbers weigh no more than their place.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let above = values.iter().filter(|other| *other > value).count() as f64;
        (below - above) / 2.0
    };
    values.iter().map(rank).collect()
}

fn best_split(ranks: &[f64]) -> Split {
    let count = ranks.len();
    let mut best = Split {
        at: SMALLEST_SIDE,
        size: -1.0,
    };
    let mut sum: f64 = 0.0;
    for at in 1..=count - SMALLEST_SIDE {
        sum += ranks[at - 1];
        let size = sum.abs() / libm::sqrt((at * (count - at)) as f64);
        // Equal splits: the earlier one, whatever rounding does.
        if at >= SMALLEST_SIDE && size > best.size + 1e-12 {
            best = Split { at, size };
        }
    }
    best
}

fn p_value(ranks: &mut [f64], observed: f64, seed: u64) -> f64 {
    let is_extreme = |ranks: &[f64]| best_split(ranks).size >= observed - 1e-9;
    if ranks.len() <= EXACT {
        let (mut extreme, mut all) = (0_u32, 0_u32);
        let length = ranks.len();
        each_order(ranks, length, &mut |ranks| {
            all += 1;
            extreme += u32::from(is_extreme(ranks));
        });
        return f64::from(extreme) / f64::from(all);
    }
    let mut generator = Stream::for_purpose(seed, "change-point").generator(0);
    let mut extreme = 0;
    for _ in 0..SHUFFLES {
        for last in (1..ranks.len()).rev() {
            ranks.swap(last, index(&mut generator, last + 1));
        }
        extreme += usize::from(is_extreme(ranks));
    }
    (extreme + 1) as f64 / (SHUFFLES + 1) as f64
}

/// Heap's algorithm.
fn each_order(ranks: &mut [f64], free: usize, visit: &mut impl FnMut(&[f64])) {
    if free <= 1 {
        return visit(ranks);
    }
    for place in 0..free {
        each_order(ranks, free - 1, visit);
        if place + 1 < free {
            let other = if free.is_multiple_of(2) { place } else { 0 };
            ranks.swap(other, free - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clear_step_is_found_where_it_is() {
        let values = [10.0, 11.0, 9.0, 10.5, 20.0, 21.0, 19.0, 20.5];
        let change = change_point(&values, 42).unwrap();
        assert_eq!((change.at, change.before, change.after), (4, 10.25, 20.25));
        // Of 8! orders, those with the four small ones first or last: 2 · 4! · 4!.
        assert!((change.p_value - 1152.0 / 40_320.0).abs() < 1e-12);
        let longer: Vec<f64> = (0..30)
            .map(|n| {
                if n < 22 {
                    f64::from(n % 3)
                } else {
                    f64::from(n % 3) + 5.0
                }
            })
            .collect();
        let change = change_point(&longer, 42).unwrap();
        assert_eq!(change.at, 22);
        assert!(change.p_value <= 0.001);
    }

    #[test]
    fn noise_and_constants_show_no_change() {
        let noise = [3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0, 5.5, 3.5, 5.8, 0.9];
        assert!(change_point(&noise, 42).unwrap().p_value > 0.1);
        assert_eq!(change_point(&[7.0; 12], 42).unwrap().p_value, 1.0);
        let outlier = [1.0, 1.1, 0.9, 1.05, 99.0, 1.02, 0.98, 1.01, 1.03, 0.97];
        assert!(change_point(&outlier, 42).unwrap().p_value > 0.1);
    }

    #[test]
    fn few_or_broken_numbers_say_nothing() {
        assert_eq!(change_point(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0], 42), None);
        assert_eq!(change_point(&[f64::NAN; 9], 42), None);
    }

    #[test]
    fn chance_alone_is_rarely_called_a_change() {
        let mut generator = Stream::for_purpose(1, "test").generator(0);
        let mut called = 0;
        for _ in 0..40 {
            let values: Vec<f64> = (0..12)
                .map(|_| crate::random::unit(&mut generator))
                .collect();
            called += u32::from(change_point(&values, 42).unwrap().p_value <= 0.05);
        }
        assert!(called <= 6, "{called} of 40, expected about 2");
    }
}
