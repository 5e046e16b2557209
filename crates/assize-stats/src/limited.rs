//! Runs cut off by a limit. Direction comes from pairs of runs, which need no guess about what a cut-off run would have
//! taken; a size exists only within the limit.

use libm::{exp, log, sqrt};
use serde::Serialize;

use crate::error::{StatsError, same_length};
use crate::interval::Level;
use crate::sample::{Sample, finite, sum};
use crate::special::{student_t_cdf, student_t_quantile};
use crate::task_t::ROUNDING;
use crate::warning::{Warning, Warnings};

/// Above this share of runs at the limit, the size within the limit covers too little and is withheld.
const MOST_CUT: f64 = 0.5;

/// The effect of a limit on a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitKind {
    /// The value of a cut-off run is the limit itself.
    Time,
    /// The value of a cut-off run is a lower bound: tokens, cost, turns.
    Tokens,
}

/// The runs of one task under both modes.
#[derive(Clone, Copy, Debug)]
pub struct LimitedRuns<'a> {
    /// Values of A.
    pub a: &'a [f64],
    /// Values of B.
    pub b: &'a [f64],
    /// Marks A's runs that were cut off.
    pub cut_a: &'a [bool],
    /// Marks B's runs that were cut off.
    pub cut_b: &'a [bool],
}

/// The direction of a limited comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitedVerdict {
    /// A takes more.
    More,
    /// A takes less.
    Less,
    /// The data fit both.
    Inconclusive,
}

/// A compared with B where runs were cut off. The interval is absent for fewer than two tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitedComparison {
    /// Mean over tasks of the share of pairs in which A takes more, minus the share in which it takes less.
    pub score: Option<f64>,
    /// Lower bound of the score.
    pub lower: Option<f64>,
    /// Upper bound of the score.
    pub upper: Option<f64>,
    /// Two-sided p-value of a score of 0.
    pub p_value: Option<f64>,
    /// Share of A's runs at the limit.
    pub cut_share_a: Option<f64>,
    /// Share of B's runs at the limit.
    pub cut_share_b: Option<f64>,
    /// The score of each task.
    pub per_scenario: Vec<f64>,
    /// Times only: A divided by B within the limit; absent when most runs of a mode reached it.
    pub ratio: Option<f64>,
    /// Lower bound of the ratio.
    pub ratio_lower: Option<f64>,
    /// Upper bound of the ratio.
    pub ratio_upper: Option<f64>,
    /// Mean over tasks of what A's runs recorded until they ended or were cut off.
    pub recorded_a: Option<f64>,
    /// The same for B.
    pub recorded_b: Option<f64>,
    /// The largest of the tasks' limits; only for times.
    pub limit: Option<f64>,
    /// The smallest of the tasks' limits; only for times.
    pub smallest_limit: Option<f64>,
    /// The direction.
    pub verdict: LimitedVerdict,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Compares two modes on tasks where some runs were cut off by a limit. Values that are not finite are left out, and so
/// are tasks without a value of both modes.
pub fn limited_comparison(
    tasks: &[LimitedRuns<'_>],
    kind: LimitKind,
    alpha: Level,
) -> Result<LimitedComparison, StatsError> {
    for task in tasks {
        same_length(task.a.len(), task.cut_a.len())?;
        same_length(task.b.len(), task.cut_b.len())?;
    }
    let tasks: Vec<Task> = tasks
        .iter()
        .filter_map(|task| Task::new(task, kind))
        .collect();
    let scores: Vec<f64> = tasks.iter().map(|task| task.score(kind)).collect();
    let mut answer = LimitedComparison::empty(&tasks);
    answer.take_scores(&scores, &tasks, alpha);
    if kind == LimitKind::Time {
        let limits = || tasks.iter().filter_map(|task| task.limit);
        answer.limit = limits().reduce(f64::max);
        answer.smallest_limit = limits().reduce(f64::min);
        answer.take_ratio(&tasks, alpha);
    }
    answer
        .warnings
        .add_if(scores.len() == 1, Warning::SingleScenario);
    Ok(answer)
}

impl LimitedComparison {
    fn empty(tasks: &[Task]) -> Self {
        let share = |side: fn(&Task) -> &Vec<Run>| {
            let runs = tasks.iter().map(|task| side(task).len()).sum::<usize>();
            let cut = tasks.iter().flat_map(side).filter(|run| run.cut).count();
            (runs > 0).then(|| cut as f64 / runs as f64)
        };
        let recorded = |side: fn(&Task) -> &Vec<Run>| {
            mean(
                tasks
                    .iter()
                    .map(|task| mean(side(task).iter().map(|run| run.recorded))),
            )
        };
        let mut warnings = Warnings::default();
        let cut = |task: &Task| task.a.iter().chain(&task.b).any(|run| run.cut);
        warnings.add_if(tasks.iter().any(cut), Warning::CutOff);
        Self {
            score: None,
            lower: None,
            upper: None,
            p_value: None,
            cut_share_a: share(|task| &task.a),
            cut_share_b: share(|task| &task.b),
            per_scenario: Vec::new(),
            ratio: None,
            ratio_lower: None,
            ratio_upper: None,
            recorded_a: (!tasks.is_empty()).then(|| recorded(|task| &task.a)),
            recorded_b: (!tasks.is_empty()).then(|| recorded(|task| &task.b)),
            limit: None,
            smallest_limit: None,
            verdict: LimitedVerdict::Inconclusive,
            warnings,
        }
    }

    fn take_scores(&mut self, scores: &[f64], tasks: &[Task], alpha: Level) {
        let Some(sample) = Sample::new(scores) else {
            return;
        };
        self.score = Some(sample.mean());
        self.per_scenario = scores.to_vec();
        if scores.len() < 2 {
            return;
        }
        let floor = mean(tasks.iter().map(Task::chance)) / 2.0;
        let variance = (sample.stddev() * sample.stddev()).max(floor);
        let error = sqrt(variance / scores.len() as f64);
        let df = (scores.len() - 1) as f64;
        let reach = t_of(alpha, df) * error;
        let (lower, upper) = (sample.mean() - reach, sample.mean() + reach);
        self.lower = Some(lower.clamp(-1.0, 1.0));
        self.upper = Some(upper.clamp(-1.0, 1.0));
        self.p_value = Some(2.0 * student_t_cdf(-(sample.mean() / error).abs(), df));
        self.verdict = if lower > ROUNDING {
            LimitedVerdict::More
        } else if upper < -ROUNDING {
            LimitedVerdict::Less
        } else {
            LimitedVerdict::Inconclusive
        };
    }

    /// The ratio of the mean times within the limit.
    fn take_ratio(&mut self, tasks: &[Task], alpha: Level) {
        let mostly_cut = |share: Option<f64>| share.is_none_or(|share| share > MOST_CUT);
        if mostly_cut(self.cut_share_a) || mostly_cut(self.cut_share_b) {
            self.warnings.add(Warning::SizeWithheld);
            return;
        }
        let within = |runs: &[Run]| mean(runs.iter().map(|run| run.value));
        let logs: Vec<f64> = tasks
            .iter()
            .map(|task| log(within(&task.a) / within(&task.b)))
            .collect();
        let Some(sample) = Sample::new(&logs).filter(|sample| sample.count() == tasks.len()) else {
            return;
        };
        self.ratio = Some(finite(exp(sample.mean())));
        if sample.count() >= 2 {
            let reach = t_of(alpha, (sample.count() - 1) as f64) * sample.standard_error();
            self.ratio_lower = Some(finite(exp(sample.mean() - reach)));
            self.ratio_upper = Some(finite(exp(sample.mean() + reach)));
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Run {
    recorded: f64,
    /// The value to compare: for times not above the task's limit.
    value: f64,
    /// Cut off, or at the limit that all runs of the task are held to.
    cut: bool,
}

/// The runs of one task, held to its smallest limit.
struct Task {
    a: Vec<Run>,
    b: Vec<Run>,
    limit: Option<f64>,
}

impl Task {
    fn new(runs: &LimitedRuns<'_>, kind: LimitKind) -> Option<Self> {
        let read = |values: &[f64], cut: &[bool]| -> Vec<Run> {
            let pairs = values
                .iter()
                .zip(cut)
                .filter(|(value, _)| value.is_finite());
            pairs
                .map(|(&value, &cut)| Run {
                    recorded: value,
                    value,
                    cut,
                })
                .collect()
        };
        let mut task = Self {
            a: read(runs.a, runs.cut_a),
            b: read(runs.b, runs.cut_b),
            limit: None,
        };
        if task.a.is_empty() || task.b.is_empty() {
            return None;
        }
        if kind == LimitKind::Time {
            task.hold_to_limit();
        }
        Some(task)
    }

    fn hold_to_limit(&mut self) {
        let cut = self.a.iter().chain(&self.b).filter(|run| run.cut);
        self.limit = cut.map(|run| run.value).reduce(f64::min);
        if let Some(limit) = self.limit {
            for run in self.a.iter_mut().chain(&mut self.b) {
                run.cut = run.value >= limit;
                run.value = run.value.min(limit);
            }
        }
    }

    /// Share of pairs in which A takes more, minus the share in which it takes less.
    fn score(&self, kind: LimitKind) -> f64 {
        // Times are all held to one limit, so that every value is as good as a complete one.
        let is_known = |run: &&Run| kind == LimitKind::Time || !run.cut;
        let more = pairs_above(self.a.iter(), self.b.iter().filter(is_known));
        let less = pairs_above(self.b.iter(), self.a.iter().filter(is_known));
        (more as f64 - less as f64) / (self.a.len() as f64 * self.b.len() as f64)
    }

    /// The variance of the score by chance alone.
    fn chance(&self) -> f64 {
        let (a, b) = (self.a.len() as f64, self.b.len() as f64);
        (a + b + 1.0) / (3.0 * a * b)
    }
}

/// The number of pairs whose upper run lies above the lower one.
fn pairs_above<'a>(
    uppers: impl Iterator<Item = &'a Run>,
    lowers: impl Iterator<Item = &'a Run>,
) -> u64 {
    let mut lowers: Vec<f64> = lowers.map(|run| run.value).collect();
    lowers.sort_unstable_by(f64::total_cmp);
    uppers
        .map(|upper| lowers.partition_point(|&lower| lower < upper.value) as u64)
        .sum()
}

/// The mean of at least one number.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    sum(values.iter().copied()) / values.len() as f64
}

fn t_of(alpha: Level, df: f64) -> f64 {
    -student_t_quantile(alpha.value() / 2.0, df)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(a: &[f64], b: &[f64], cut: &[bool], kind: LimitKind) -> LimitedComparison {
        let complete = vec![false; b.len()];
        let task = LimitedRuns {
            a,
            b,
            cut_a: cut,
            cut_b: &complete,
        };
        limited_comparison(&[task, task], kind, Level::ALPHA_05).unwrap()
    }

    #[test]
    fn a_cut_off_run_never_counts_as_cheaper() {
        let cheap = compare(&[10.0], &[20.0], &[true], LimitKind::Tokens);
        assert_eq!(cheap.score, Some(0.0));
        let dear = compare(&[30.0], &[20.0], &[true], LimitKind::Tokens);
        assert_eq!(dear.score, Some(1.0));
    }

    #[test]
    fn different_limits_are_made_equal() {
        let answer = compare(&[60.0, 60.0], &[50.0, 90.0], &[true, true], LimitKind::Time);
        assert_eq!(answer.score, Some(0.5));
        assert_eq!(
            (answer.cut_share_a, answer.cut_share_b),
            (Some(1.0), Some(0.5))
        );
        assert!(answer.ratio.is_none() && answer.warnings.contains(Warning::SizeWithheld));
    }

    #[test]
    fn nothing_gives_no_number() {
        let none = limited_comparison(&[], LimitKind::Time, Level::ALPHA_05).unwrap();
        assert_eq!(
            (none.score, none.lower, none.cut_share_a),
            (None, None, None)
        );
    }
}
