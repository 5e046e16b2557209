//! All relabelings: the sum of the chosen entries for every way to choose them.

use super::column::Layout;

/// The sums of all relabelings; none when there are more than `limit`.
pub(super) fn all_sums(layout: &Layout, entries: &[f64], limit: u64) -> Option<Vec<f64>> {
    let ways = layout
        .0
        .iter()
        .map(|labels| binomial_up_to(labels.runs, labels.chosen, limit));
    let total = ways.into_iter().try_fold(1_u64, |product, ways| {
        Some(product * ways?).filter(|&product| product <= limit)
    });
    let mut sums = Vec::with_capacity(usize::try_from(total?).ok()?);
    sums.push(0.0);
    let mut rest = entries;
    for labels in &layout.0 {
        let (stratum, after) = rest.split_at(labels.runs);
        let choices = subset_sums(stratum, labels.chosen);
        sums = sums
            .iter()
            .flat_map(|sum| choices.iter().map(move |choice| sum + choice))
            .collect();
        rest = after;
    }
    Some(sums)
}

/// The sums of the values under every pattern of signs.
pub(super) fn signed_sums(values: &[f64]) -> Vec<f64> {
    values.iter().fold(vec![0.0], |sums, value| {
        sums.iter()
            .flat_map(|sum| [sum + value, sum - value])
            .collect()
    })
}

/// n over k, or none above the limit.
fn binomial_up_to(n: usize, k: usize, limit: u64) -> Option<u64> {
    let mut ways = 1_u128;
    for step in 0..k.min(n - k) {
        ways = ways * (n - step) as u128 / (step + 1) as u128;
        if ways > u128::from(limit) {
            return None;
        }
    }
    u64::try_from(ways).ok()
}

/// The sums of all subsets of `size` entries. The smaller side is chosen, so the walk is short.
fn subset_sums(entries: &[f64], size: usize) -> Vec<f64> {
    let total: f64 = entries.iter().sum();
    if size * 2 > entries.len() {
        return subset_sums(entries, entries.len() - size)
            .iter()
            .map(|rest| total - rest)
            .collect();
    }
    let mut chosen: Vec<usize> = (0..size).collect();
    let mut sums = Vec::new();
    loop {
        sums.push(chosen.iter().map(|&position| entries[position]).sum());
        // The last position that can still move right; those behind it start over next to it.
        let Some(moving) = (0..size)
            .rev()
            .find(|&slot| chosen[slot] < entries.len() - size + slot)
        else {
            return sums;
        };
        chosen[moving] += 1;
        for slot in moving + 1..size {
            chosen[slot] = chosen[slot - 1] + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permutation::column::Labels;

    #[test]
    fn every_subset_is_visited_once() {
        assert_eq!(
            subset_sums(&[1.0, 2.0, 4.0, 8.0], 2),
            [3.0, 5.0, 9.0, 6.0, 10.0, 12.0]
        );
        assert_eq!(subset_sums(&[1.0, 2.0, 4.0], 2), [6.0, 5.0, 3.0]);
        assert_eq!(subset_sums(&[1.0, 2.0], 0), [0.0]);
    }

    #[test]
    fn enumeration_stops_at_the_limit() {
        let layout = Layout(vec![Labels {
            runs: 24,
            chosen: 12,
        }]);
        assert_eq!(all_sums(&layout, &[0.0; 24], 50_000), None);
        assert_eq!(binomial_up_to(50_000, 49_999, 50_000), Some(50_000));
    }
}
