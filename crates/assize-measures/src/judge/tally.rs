//! From votes to one result: the majority for what holds or not, the median on a scale, and how much the votes agree.

use super::rubric::{Criterion, Rubric};
use super::verdict::{Ballot, Verdict};
use assize_contracts::{CustomMetric, Metric, ScorerCheckResult, ScorerResult};
use assize_stats::{RatingLevel, krippendorff_alpha};
use serde_json::{Value, json};

/// The result of complete votes. A criterion on which a vote says nothing has failed in that vote.
pub(super) fn count(rubric: &Rubric, ballots: &[Ballot]) -> ScorerResult {
    let mut result = ScorerResult {
        success: true,
        ..ScorerResult::default()
    };
    for (place, criterion) in rubric.criteria.iter().enumerate() {
        let votes: Vec<Option<&Verdict>> = ballots
            .iter()
            .map(|ballot| ballot.0[place].as_ref())
            .collect();
        let detail = decide(criterion, &votes);
        result.metrics.extend(scale_metric(criterion, &votes));
        result.total += criterion.weight;
        if detail.passed {
            result.passed += criterion.weight;
        } else if criterion.required {
            result.success = false;
        }
        result.details.push(detail);
    }
    result.metrics.extend(agreement(rubric, ballots));
    result
}

fn decide(criterion: &Criterion, votes: &[Option<&Verdict>]) -> ScorerCheckResult {
    let verdict = middle(criterion, votes);
    ScorerCheckResult {
        id: criterion.id.clone(),
        description: criterion.description.clone(),
        passed: passes(criterion, verdict),
        actual: Some(found(criterion, verdict, votes)),
        expected: Some(criterion.expected()),
        error: None,
    }
}

fn middle<'a>(criterion: &Criterion, votes: &[Option<&'a Verdict>]) -> Option<&'a Verdict> {
    match &criterion.scale {
        None => majority(votes),
        Some(_) => median(votes),
    }
}

fn passes(criterion: &Criterion, verdict: Option<&Verdict>) -> bool {
    match (&criterion.scale, verdict) {
        (_, None) => false,
        (None, Some(verdict)) => verdict.score == 1.0,
        (Some(scale), Some(verdict)) => scale.passes(verdict.score),
    }
}

/// True when a single different vote would have changed the outcome.
fn hangs_on_one_vote(rubric: &Rubric, ballots: &[Ballot]) -> bool {
    let required = || {
        let all = rubric.criteria.iter().enumerate();
        all.filter(|(_, criterion)| criterion.required)
    };
    let votes = |place: usize| -> Vec<Option<&Verdict>> {
        ballots
            .iter()
            .map(|ballot| ballot.0[place].as_ref())
            .collect()
    };
    let holds =
        |place: usize, criterion: &Criterion| passes(criterion, middle(criterion, &votes(place)));
    let could_be = |place: usize, criterion: &Criterion, voter: usize, wanted: bool| {
        criterion.possible_scores().into_iter().any(|score| {
            let other = Verdict {
                score,
                rationale: String::new(),
            };
            let mut votes = votes(place);
            votes[voter] = Some(&other);
            passes(criterion, middle(criterion, &votes)) == wanted
        })
    };
    let passed = required().all(|(place, criterion)| holds(place, criterion));
    (0..ballots.len()).any(|voter| match passed {
        true => required().any(|(place, criterion)| could_be(place, criterion, voter, false)),
        false => required().all(|(place, criterion)| {
            holds(place, criterion) || could_be(place, criterion, voter, true)
        }),
    })
}

/// A score on a scale is a number of the trial, on which modes are compared. Absent without a verdict.
fn scale_metric(criterion: &Criterion, votes: &[Option<&Verdict>]) -> Option<CustomMetric> {
    let scale = criterion.scale.as_ref()?;
    let score = median(votes)?.score;
    let id = &criterion.id;
    // Metrics of the judging have names of the same form.
    let plain = format!("judge_{id}");
    let name = match Metric::built_in(&plain) {
        Some(_) => format!("judge_score_{id}"),
        None => plain,
    };
    let (words, lowest, highest) = (id.replace('_', " "), scale.lowest, scale.highest);
    let metric = CustomMetric::number(name, score, "points")?;
    let metric = metric.labelled(format!("{words} from {lowest} to {highest}"));
    Some(match scale.better() {
        Some(better) => metric.better(better),
        None => metric,
    })
}

/// The verdict of more than half of the votes; a tie, or half without a verdict, is no pass.
fn majority<'a>(votes: &[Option<&'a Verdict>]) -> Option<&'a Verdict> {
    let given = |score: f64| {
        votes
            .iter()
            .flatten()
            .filter(move |verdict| verdict.score == score)
    };
    let has_passed = given(1.0).count() * 2 > votes.len();
    given(f64::from(u8::from(has_passed))).next().copied()
}

/// The middle score, the lower one of two. A vote without a verdict counts as below all others.
fn median<'a>(votes: &[Option<&'a Verdict>]) -> Option<&'a Verdict> {
    let mut sorted = votes.to_vec();
    let score =
        |verdict: &Option<&Verdict>| verdict.map_or(f64::NEG_INFINITY, |verdict| verdict.score);
    sorted.sort_by(|a, b| score(a).total_cmp(&score(b)));
    sorted.get((sorted.len().max(1) - 1) / 2).copied().flatten()
}

/// The verdict with its rationale, and all votes when there are several.
fn found(criterion: &Criterion, verdict: Option<&Verdict>, votes: &[Option<&Verdict>]) -> Value {
    let shown = |verdict: Option<&Verdict>| match (verdict, &criterion.scale) {
        (None, _) => Value::Null,
        (Some(verdict), Some(_)) => number(verdict.score),
        (Some(verdict), None) => json!(verdict.score == 1.0),
    };
    let mut found = json!({
        "verdict": shown(verdict),
        "rationale": verdict.map_or("the judge gave no verdict on this", |verdict| &verdict.rationale),
    });
    if votes.len() > 1 {
        found["votes"] = votes.iter().map(|vote| shown(*vote)).collect();
        if let Some(scale) = &criterion.scale {
            found["scale"] = json!([number(scale.lowest), number(scale.highest)]);
        }
    }
    found
}

fn number(score: f64) -> Value {
    match score.fract() == 0.0 {
        true => json!(score as i64),
        false => json!(score),
    }
}

/// The share of equal pairs of votes, and the same beyond chance.
fn agreement(rubric: &Rubric, ballots: &[Ballot]) -> Vec<CustomMetric> {
    if ballots.len() < 2 {
        return Vec::new();
    }
    let scores: Vec<Vec<Option<f64>>> = ballots
        .iter()
        .map(|ballot| ratings(rubric, ballot))
        .collect();
    let mut metrics = Vec::new();
    metrics.extend(CustomMetric::number(
        "judge_agreement",
        agreeing_pairs(&scores),
        "ratio",
    ));
    let alpha = krippendorff_alpha(&scores, RatingLevel::Interval).ok();
    let alpha = alpha.and_then(|found| found.alpha);
    metrics.extend(alpha.and_then(|alpha| CustomMetric::number("judge_alpha", alpha, "")));
    let hangs = f64::from(u8::from(hangs_on_one_vote(rubric, ballots)));
    metrics.extend(CustomMetric::number(
        "judge_hangs_on_one_vote",
        hangs,
        "ratio",
    ));
    metrics
}

/// Scores from 0 to 1, so that scales of different lengths can be held together.
fn ratings(rubric: &Rubric, ballot: &Ballot) -> Vec<Option<f64>> {
    let pairs = rubric.criteria.iter().zip(&ballot.0);
    let rating = |(criterion, verdict): (&Criterion, &Option<Verdict>)| {
        let score = verdict.as_ref()?.score;
        Some(match &criterion.scale {
            Some(scale) => (score - scale.lowest) / (scale.highest - scale.lowest),
            None => score,
        })
    };
    pairs.map(rating).collect()
}

/// Of all pairs of votes on the same criterion, the share that is equal.
fn agreeing_pairs(scores: &[Vec<Option<f64>>]) -> f64 {
    let (mut equal, mut pairs) = (0_u32, 0_u32);
    for (number, one) in scores.iter().enumerate() {
        for other in &scores[number + 1..] {
            for (a, b) in one.iter().zip(other) {
                pairs += 1;
                equal += u32::from(a == b);
            }
        }
    }
    f64::from(equal) / f64::from(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_contracts::{BaseScenario, Better};

    fn rubric() -> Rubric {
        let mut scenario = BaseScenario::new("s", "p");
        scenario.rubric = Some(json!({"criteria": [
            {"id": "done", "description": "d", "weight": 3},
            {"id": "clear", "description": "d", "scale": [1, 5], "pass": ">= 4", "required": false},
        ]}));
        Rubric::of(&scenario).unwrap().unwrap()
    }

    fn ballot(done: Option<f64>, clear: Option<f64>) -> Ballot {
        let verdict = |score: Option<f64>| {
            Some(Verdict {
                score: score?,
                rationale: "because".into(),
            })
        };
        Ballot(vec![verdict(done), verdict(clear)])
    }

    fn check(ballots: &[Ballot], passed: [bool; 2]) -> ScorerResult {
        let result = count(&rubric(), ballots);
        let found: Vec<bool> = result.details.iter().map(|detail| detail.passed).collect();
        assert_eq!(found, passed);
        assert_eq!(result.success, passed[0], "the other is not required");
        assert_eq!(result.total, 4);
        result
    }

    #[test]
    fn one_vote_decides_alone() {
        let result = check(&[ballot(Some(1.0), Some(3.0))], [true, false]);
        assert_eq!(result.passed, 3);
        assert_eq!(
            result.details[1].actual,
            Some(json!({"verdict": 3, "rationale": "because"}))
        );
        assert_eq!(result.details[1].expected, Some(json!(">= 4")));
        let [clear] = &result.metrics[..] else {
            panic!("{:?}", result.metrics);
        };
        assert_eq!(clear.name, "judge_clear");
        assert_eq!(clear.better, Some(Better::Higher));
    }

    #[test]
    fn several_votes_decide_by_majority_and_median() {
        let votes = [
            ballot(Some(1.0), Some(5.0)),
            ballot(Some(0.0), Some(4.0)),
            ballot(Some(1.0), Some(1.0)),
        ];
        let result = check(&votes, [true, true]);
        assert_eq!(
            result.details[1].actual.as_ref().unwrap()["votes"],
            json!([5, 4, 1])
        );
        let names: Vec<&str> = result
            .metrics
            .iter()
            .map(|metric| metric.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "judge_clear",
                "judge_agreement",
                "judge_alpha",
                "judge_hangs_on_one_vote"
            ]
        );
        assert_eq!(
            result.details[1].actual.as_ref().unwrap()["scale"],
            json!([1, 5])
        );
        check(
            &[ballot(Some(1.0), Some(5.0)), ballot(Some(0.0), Some(3.0))],
            [false, false],
        );
    }

    #[test]
    fn an_outcome_hangs_on_one_vote_where_another_would_change_it() {
        let hangs = |done: [f64; 3]| {
            let ballots = done.map(|done| ballot(Some(done), Some(3.0)));
            hangs_on_one_vote(&rubric(), &ballots)
        };
        assert!(hangs([1.0, 1.0, 0.0]) && hangs([0.0, 1.0, 0.0]));
        assert!(!hangs([1.0, 1.0, 1.0]) && !hangs([0.0, 0.0, 0.0]));
        let scaled = |scores: [f64; 3]| {
            let mut rubric = rubric();
            rubric.criteria[1].required = true;
            let ballots = scores.map(|score| ballot(Some(1.0), Some(score)));
            hangs_on_one_vote(&rubric, &ballots)
        };
        assert!(scaled([5.0, 4.0, 1.0]) && scaled([5.0, 3.0, 1.0]));
        assert!(!scaled([5.0, 4.0, 4.0]) && !scaled([3.0, 2.0, 1.0]));
    }

    #[test]
    fn a_scale_is_a_metric_under_a_name_that_means_nothing_else() {
        let mut scenario = BaseScenario::new("s", "p");
        let scale = |id: &str, pass: &str| json!({"id": id, "description": "d", "scale": [0, 10], "pass": pass});
        scenario.rubric =
            Some(json!({"criteria": [scale("calls", "<= 3"), scale("tone", "== 5")]}));
        let rubric = Rubric::of(&scenario).unwrap().unwrap();
        let result = count(&rubric, &[ballot(Some(2.0), None)]);
        let [calls] = &result.metrics[..] else {
            panic!("no verdict, no number: {:?}", result.metrics);
        };
        assert_eq!(calls.name, "judge_score_calls");
        assert_eq!(calls.better, Some(Better::Lower));
        assert_eq!(rubric.criteria[1].scale.as_ref().unwrap().better(), None);
    }

    #[test]
    fn a_missing_verdict_is_a_failure() {
        check(&[ballot(None, None)], [false, false]);
        check(
            &[
                ballot(Some(1.0), Some(5.0)),
                ballot(None, Some(5.0)),
                ballot(None, None),
            ],
            [false, true],
        );
        check(
            &[
                ballot(Some(1.0), None),
                ballot(Some(1.0), None),
                ballot(None, Some(5.0)),
            ],
            [true, false],
        );
    }
}
