//! Many comparisons at once: Holm for the declared family, Benjamini and Hochberg for exploration.

use serde::Serialize;

/// A method of adjusting p-values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AdjustMethod {
    /// Holm 1979: keeps the chance of any false claim.
    Holm,
    /// Benjamini and Hochberg 1995: keeps the share of false claims.
    Bh,
}

/// Adjusts a family of p-values. Absent ones are no part of it and stay absent.
pub fn adjust_p_values(p_values: &[Option<f64>], method: AdjustMethod) -> Vec<Option<f64>> {
    let mut ranked: Vec<(usize, f64)> = p_values
        .iter()
        .enumerate()
        .filter_map(|(place, p)| p.filter(|p| p.is_finite()).map(|p| (place, p)))
        .collect();
    ranked.sort_by(|left, right| left.1.total_cmp(&right.1));
    let family = ranked.len();
    let mut adjusted = vec![None; p_values.len()];
    match method {
        AdjustMethod::Holm => {
            let mut highest = 0.0_f64;
            for (rank, (place, p)) in ranked.into_iter().enumerate() {
                highest = highest.max(p * (family - rank) as f64);
                adjusted[place] = Some(highest.min(1.0));
            }
        }
        AdjustMethod::Bh => {
            let mut lowest = 1.0_f64;
            for (rank, (place, p)) in ranked.into_iter().enumerate().rev() {
                lowest = lowest.min(p * family as f64 / (rank + 1) as f64);
                adjusted[place] = Some(lowest);
            }
        }
    }
    adjusted
}

/// The p-values of one family, adjusted by Holm's method.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HolmFamily {
    /// The adjusted p-values in the order given; absent where the p-value is.
    pub p_adjusted: Vec<Option<f64>>,
    /// The number of p-values in the family.
    pub family_size: usize,
}

/// Adjusts the p-values of one family by Holm's method. Absent ones are no part of it and stay absent.
pub fn holm_family(p_values: &[Option<f64>]) -> HolmFamily {
    let p_adjusted = adjust_p_values(p_values, AdjustMethod::Holm);
    HolmFamily {
        family_size: p_adjusted.iter().flatten().count(),
        p_adjusted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_p_values_do_not_enlarge_the_family() {
        let adjusted = adjust_p_values(&[Some(0.02), None, Some(0.5)], AdjustMethod::Holm);
        assert_eq!(adjusted, [Some(0.04), None, Some(0.5)]);
        assert_eq!(adjust_p_values(&[None], AdjustMethod::Bh), [None]);
    }

    #[test]
    fn adjusted_p_values_stay_in_order_and_below_one() {
        let adjusted = adjust_p_values(&[Some(0.9), Some(0.8), Some(0.7)], AdjustMethod::Holm);
        assert_eq!(adjusted, [Some(1.0), Some(1.0), Some(1.0)]);
    }
}
