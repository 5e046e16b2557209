//! Do raters agree more than by chance? Cohen's kappa for two, Krippendorff's alpha for any number with gaps.

use serde::Serialize;

use crate::bootstrap::{BootstrapOptions, Replicates, Request};
use crate::error::{StatsError, same_length};
use crate::interval::Method;
use crate::random::{Stream, index};
use crate::sample::Sample;

/// The weight of a disagreement by its distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KappaWeights {
    /// All disagreements are equal.
    #[default]
    None,
    /// By the number of categories between.
    Linear,
    /// By its square.
    Quadratic,
}

/// The meaning of differences between ratings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RatingLevel {
    /// Names: equal or not.
    #[default]
    Nominal,
    /// Ranks: how many ratings lie between.
    Ordinal,
    /// Numbers: the squared difference.
    Interval,
}

/// Agreement of two raters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CohensKappa {
    /// 1 is perfect, 0 is chance; absent when chance alone would agree on everything.
    pub kappa: Option<f64>,
    /// Share of items rated equally; absent without items.
    pub agreement: Option<f64>,
}

/// Agreement of raters who need not have rated everything.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KrippendorffAlpha {
    /// 1 is perfect, 0 is chance; absent when all ratings are the same or nothing was rated twice.
    pub alpha: Option<f64>,
}

/// Cohen's kappa of two raters. Items with a rating that is not finite are left out.
pub fn cohens_kappa(
    rater_a: &[f64],
    rater_b: &[f64],
    weights: KappaWeights,
) -> Result<CohensKappa, StatsError> {
    same_length(rater_a.len(), rater_b.len())?;
    let items: Vec<(f64, f64)> = rater_a
        .iter()
        .copied()
        .zip(rater_b.iter().copied())
        .collect();
    Ok(kappa(&items, weights))
}

/// Percentile interval of kappa over items; none when kappa is undefined.
pub fn cohens_kappa_ci(
    rater_a: &[f64],
    rater_b: &[f64],
    weights: KappaWeights,
    options: &BootstrapOptions,
) -> Result<Option<[f64; 2]>, StatsError> {
    same_length(rater_a.len(), rater_b.len())?;
    let items: Vec<(f64, f64)> = rater_a
        .iter()
        .copied()
        .zip(rater_b.iter().copied())
        .collect();
    Ok(interval_over_items(&items, options, |drawn| {
        kappa(drawn, weights).kappa
    }))
}

/// Krippendorff's alpha of `ratings[rater][item]`; an absent rating was not given.
pub fn krippendorff_alpha(
    ratings: &[Vec<Option<f64>>],
    level: RatingLevel,
) -> Result<KrippendorffAlpha, StatsError> {
    Ok(KrippendorffAlpha {
        alpha: alpha(&units(ratings)?, level),
    })
}

/// Percentile interval of alpha over items; none when alpha is undefined.
pub fn krippendorff_alpha_ci(
    ratings: &[Vec<Option<f64>>],
    level: RatingLevel,
    options: &BootstrapOptions,
) -> Result<Option<[f64; 2]>, StatsError> {
    Ok(interval_over_items(&units(ratings)?, options, |drawn| {
        alpha(drawn, level)
    }))
}

/// The votes on the items of one trial, as sums: all that the agreement of many trials needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VoteSums {
    votes: f64,
    sum: f64,
    squares: f64,
    /// Squared differences of all ordered pairs of votes on the same item, by the number of the others.
    apart: f64,
}

impl VoteSums {
    /// Adds the votes on one item. Fewer than two say nothing about agreement.
    pub fn add_item(&mut self, votes: &[f64]) {
        let votes: Vec<f64> = votes
            .iter()
            .copied()
            .filter(|vote| vote.is_finite())
            .collect();
        if votes.len() < 2 {
            return;
        }
        let count = votes.len() as f64;
        let sum: f64 = votes.iter().sum();
        let squares: f64 = votes.iter().map(|vote| vote * vote).sum();
        self.votes += count;
        self.sum += sum;
        self.squares += squares;
        self.apart += 2.0 * (count * squares - sum * sum).max(0.0) / (count - 1.0);
    }

    /// No item had two votes.
    pub fn is_empty(&self) -> bool {
        self.votes == 0.0
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            votes: self.votes + other.votes,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
            apart: self.apart + other.apart,
        }
    }

    /// Krippendorff's alpha of numbers. None when all votes are the same.
    fn alpha(&self) -> Option<f64> {
        let spread = self.votes * self.squares - self.sum * self.sum;
        let expected = 2.0 * spread / (self.votes - 1.0);
        (self.votes > 1.0 && spread > 1e-9 * self.votes * self.squares)
            .then(|| 1.0 - self.apart / expected)
    }
}

/// Krippendorff's alpha (of numbers) over the votes of all trials together, with a percentile interval over trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PooledAlpha {
    /// 1 is perfect, 0 is chance; absent when all votes are the same.
    pub alpha: Option<f64>,
    /// Its interval; absent with alpha, and for a single trial.
    pub ci95: Option<[f64; 2]>,
}

/// The agreement of votes over trials. Whole trials are resampled, since votes on the same trial are alike.
pub fn pooled_alpha(trials: &[VoteSums], options: &BootstrapOptions) -> PooledAlpha {
    let pooled = |drawn: &[VoteSums]| {
        let all = drawn.iter().fold(VoteSums::default(), VoteSums::plus);
        all.alpha()
    };
    PooledAlpha {
        alpha: pooled(trials),
        ci95: (trials.len() > 1)
            .then(|| interval_over_items(trials, options, pooled))
            .flatten(),
    }
}

fn kappa(items: &[(f64, f64)], weights: KappaWeights) -> CohensKappa {
    let rated: Vec<(f64, f64)> = items
        .iter()
        .copied()
        .filter(|item| item.0.is_finite() && item.1.is_finite())
        .collect();
    if rated.is_empty() {
        return CohensKappa {
            kappa: None,
            agreement: None,
        };
    }
    let categories = Categories::new(rated.iter().flat_map(|item| [item.0, item.1]));
    let size = categories.0.len();
    let (mut rows, mut columns) = (vec![0.0; size], vec![0.0; size]);
    let (mut observed, mut equal) = (0.0, 0.0);
    for item in &rated {
        let (row, column) = (categories.position(item.0), categories.position(item.1));
        rows[row] += 1.0;
        columns[column] += 1.0;
        observed += disagreement(row, column, weights);
        equal += if row == column { 1.0 } else { 0.0 };
    }
    let count = rated.len() as f64;
    let cells = (0..size).flat_map(|row| (0..size).map(move |column| (row, column)));
    let expected: f64 = cells
        .map(|(row, column)| {
            disagreement(row, column, weights) * rows[row] * columns[column] / count
        })
        .sum();
    let kappa = (expected > 0.0).then(|| 1.0 - observed / expected);
    CohensKappa {
        kappa,
        agreement: Some(equal / count),
    }
}

fn disagreement(row: usize, column: usize, weights: KappaWeights) -> f64 {
    let distance = row.abs_diff(column) as f64;
    match weights {
        KappaWeights::None => distance.min(1.0),
        KappaWeights::Linear => distance,
        KappaWeights::Quadratic => distance * distance,
    }
}

/// The ratings of each item; items rated less than twice say nothing about agreement and are left out.
fn units(ratings: &[Vec<Option<f64>>]) -> Result<Vec<Vec<f64>>, StatsError> {
    let items = ratings.first().map_or(0, Vec::len);
    for rater in ratings {
        same_length(items, rater.len())?;
    }
    let of_item = |item: usize| -> Vec<f64> {
        ratings
            .iter()
            .filter_map(|rater| rater[item])
            .filter(|rating| rating.is_finite())
            .collect()
    };
    Ok((0..items)
        .map(of_item)
        .filter(|unit| unit.len() >= 2)
        .collect())
}

fn alpha(units: &[Vec<f64>], level: RatingLevel) -> Option<f64> {
    let categories = Categories::new(units.iter().flatten().copied());
    let size = categories.0.len();
    let mut totals = vec![0.0; size];
    let mut coincidences = vec![0.0; size * size];
    for unit in units {
        let weight = 1.0 / (unit.len() - 1) as f64;
        let positions: Vec<usize> = unit
            .iter()
            .map(|&rating| categories.position(rating))
            .collect();
        for (place, &row) in positions.iter().enumerate() {
            totals[row] += 1.0;
            for (other, &column) in positions.iter().enumerate() {
                coincidences[row * size + column] += if place == other { 0.0 } else { weight };
            }
        }
    }
    let distances = categories.distances(&totals, level);
    let count: f64 = totals.iter().sum();
    let observed: f64 = coincidences
        .iter()
        .zip(&distances)
        .map(|(count, distance)| count * distance)
        .sum();
    let cells =
        (0..size * size).map(|cell| totals[cell / size] * totals[cell % size] * distances[cell]);
    let expected = cells.sum::<f64>() / (count - 1.0);
    (expected > 0.0).then(|| 1.0 - observed / expected)
}

/// Distinct ratings in ascending order.
struct Categories(Vec<f64>);

impl Categories {
    fn new(ratings: impl Iterator<Item = f64>) -> Self {
        let mut distinct: Vec<f64> = ratings.map(|rating| rating + 0.0).collect();
        distinct.sort_unstable_by(f64::total_cmp);
        distinct.dedup();
        Self(distinct)
    }

    fn position(&self, rating: f64) -> usize {
        self.0.partition_point(|category| *category < rating)
    }

    /// Squared distances of all pairs of categories, row after row.
    fn distances(&self, totals: &[f64], level: RatingLevel) -> Vec<f64> {
        let size = self.0.len();
        // Only ratios of distances matter, so ratings are scaled to survive their squares.
        let inverse = Sample::new(&self.0).map_or(1.0, |sample| sample.scale().inverse);
        let distance = |row: usize, column: usize| {
            let (low, high) = (row.min(column), row.max(column));
            let gap = match level {
                RatingLevel::Nominal => f64::from(u8::from(row != column)),
                RatingLevel::Ordinal => {
                    totals[low..=high].iter().sum::<f64>() - (totals[low] + totals[high]) / 2.0
                }
                RatingLevel::Interval => self.0[high] * inverse - self.0[low] * inverse,
            };
            gap * gap
        };
        (0..size * size)
            .map(|cell| distance(cell / size, cell % size))
            .collect()
    }
}

fn interval_over_items<T: Clone + Send + Sync>(
    items: &[T],
    options: &BootstrapOptions,
    statistic: impl Fn(&[T]) -> Option<f64> + Sync,
) -> Option<[f64; 2]> {
    let point_estimate = statistic(items)?;
    let stream = Stream::for_purpose(options.seed, "agreement");
    let draws = stream.replicates(
        options.resamples,
        Vec::new,
        |generator, drawn: &mut Vec<T>| {
            drawn.clear();
            drawn.extend((0..items.len()).map(|_| items[index(generator, items.len())].clone()));
            statistic(drawn).unwrap_or(f64::NAN)
        },
    );
    let request = Request {
        point_estimate,
        units: items.len(),
        level: options.confidence_level,
    };
    let bounds = Replicates::new(draws).bounds(Method::Percentile, &request, Vec::new)?;
    Some([bounds.lower, bounds.upper])
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [f64; 10] = [1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 4.0, 1.0, 2.0, 4.0];
    const B: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 2.0, 2.0, 4.0, 1.0, 3.0, 4.0];

    #[test]
    fn weighted_kappa_agrees_with_scikit_learn() {
        for (weights, expected) in KAPPAS {
            let kappa = cohens_kappa(&A, &B, weights).unwrap().kappa.unwrap();
            assert!((kappa - expected).abs() < 1e-12, "{weights:?} {kappa}");
        }
    }

    #[test]
    fn alpha_agrees_with_the_krippendorff_package() {
        let ratings = [
            vec![
                Some(1.0),
                Some(2.0),
                Some(3.0),
                Some(3.0),
                Some(2.0),
                Some(1.0),
                Some(4.0),
                Some(1.0),
                Some(2.0),
                None,
            ],
            vec![
                Some(1.0),
                Some(2.0),
                Some(3.0),
                Some(3.0),
                Some(2.0),
                Some(2.0),
                Some(4.0),
                Some(1.0),
                Some(2.0),
                Some(5.0),
            ],
            vec![
                None,
                Some(3.0),
                Some(3.0),
                Some(3.0),
                Some(2.0),
                Some(3.0),
                Some(4.0),
                Some(2.0),
                Some(2.0),
                Some(5.0),
            ],
        ];
        // The votes of ten trials, each on one item, are the same as those of one trial on ten.
        let sums: Vec<VoteSums> = (0..10)
            .map(|item| {
                let votes: Vec<f64> = ratings.iter().filter_map(|rater| rater[item]).collect();
                let mut sums = VoteSums::default();
                sums.add_item(&votes);
                sums
            })
            .collect();
        let pooled = pooled_alpha(&sums, &BootstrapOptions::default());
        let interval = krippendorff_alpha(&ratings, RatingLevel::Interval).unwrap();
        assert!((pooled.alpha.unwrap() - interval.alpha.unwrap()).abs() < 1e-12);
        let [lower, upper] = pooled.ci95.unwrap();
        assert!(lower < pooled.alpha.unwrap() && pooled.alpha.unwrap() <= upper);
        for (level, expected) in ALPHAS {
            let alpha = krippendorff_alpha(&ratings, level).unwrap().alpha.unwrap();
            assert!((alpha - expected).abs() < 1e-12, "{level:?} {alpha}");
        }
        let [lower, upper] =
            krippendorff_alpha_ci(&ratings, RatingLevel::Nominal, &BootstrapOptions::default())
                .unwrap()
                .unwrap();
        assert!(lower < ALPHAS[0].1 && ALPHAS[0].1 < upper);
    }

    #[test]
    fn raters_who_always_say_the_same_cannot_be_judged() {
        let kappa = cohens_kappa(&[1.0; 4], &[1.0; 4], KappaWeights::None).unwrap();
        assert_eq!((kappa.kappa, kappa.agreement), (None, Some(1.0)));
        let alpha =
            krippendorff_alpha(&[vec![Some(1.0)], vec![Some(1.0)]], RatingLevel::Nominal).unwrap();
        assert_eq!(alpha.alpha, None);
    }

    #[test]
    fn kappa_lies_within_its_interval() {
        let [lower, upper] =
            cohens_kappa_ci(&A, &B, KappaWeights::None, &BootstrapOptions::default())
                .unwrap()
                .unwrap();
        assert!(lower < KAPPAS[0].1 && KAPPAS[0].1 < upper);
    }

    const KAPPAS: [(KappaWeights, f64); 3] = [
        (KappaWeights::None, 0.6),
        (KappaWeights::Linear, 0.7619047619047619),
        (KappaWeights::Quadratic, 0.8818897637795275),
    ];
    const ALPHAS: [(RatingLevel, f64); 3] = [
        (RatingLevel::Nominal, 0.6752577319587629),
        (RatingLevel::Ordinal, 0.8048605240912934),
        (RatingLevel::Interval, 0.8621041879468846),
    ];
}
