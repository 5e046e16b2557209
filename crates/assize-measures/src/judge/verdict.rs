//! One vote: the judge's verdicts, read strictly.

use super::rubric::{Criterion, Rubric};
use crate::spec::excerpt;
use serde_json::Value;

/// Bytes kept of a rationale.
const MAX_RATIONALE: usize = 1000;

/// A verdict for each criterion, in their order. Absent where the judge gave none.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ballot(pub(super) Vec<Option<Verdict>>);

/// The finding about one criterion.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    /// 1 or 0 for a criterion that holds or not.
    pub(super) score: f64,
    pub(super) rationale: String,
}

impl Ballot {
    /// `Err` holds the correction for the judge.
    pub(super) fn parse(answer: &str, rubric: &Rubric) -> Result<Self, String> {
        let answer: Value = serde_json::from_str(without_fence(answer))
            .map_err(|error| format!("it is not JSON ({error})"))?;
        let verdicts = answer["verdicts"]
            .as_array()
            .ok_or("it has no list `verdicts`")?;
        let mut ballot = vec![None; rubric.criteria.len()];
        for verdict in verdicts {
            let id = verdict["id"].as_str().ok_or("a verdict has no `id`")?;
            let place = rubric
                .find(id)
                .ok_or_else(|| format!("there is no criterion `{}`", excerpt(id, 40)))?;
            if ballot[place].is_some() {
                return Err(format!("there are two verdicts on `{id}`"));
            }
            ballot[place] = Some(read(verdict, &rubric.criteria[place])?);
        }
        Ok(Self(ballot))
    }
}

fn read(verdict: &Value, criterion: &Criterion) -> Result<Verdict, String> {
    let id = &criterion.id;
    let score = match &criterion.scale {
        None => verdict["pass"]
            .as_bool()
            .map(|pass| f64::from(u8::from(pass)))
            .ok_or_else(|| format!("the verdict on `{id}` has no `pass` that is true or false"))?,
        Some(scale) => verdict["score"]
            .as_f64()
            .filter(|score| scale.holds(*score))
            .ok_or_else(|| {
                let (lowest, highest) = (scale.lowest, scale.highest);
                format!("the verdict on `{id}` has no `score` from {lowest} to {highest}")
            })?,
    };
    let rationale = verdict["rationale"].as_str().unwrap_or_default();
    Ok(Verdict {
        score,
        rationale: excerpt(rationale, MAX_RATIONALE),
    })
}

/// Models like to fence JSON; nothing else may surround it.
fn without_fence(answer: &str) -> &str {
    let answer = answer.trim();
    let inner = answer
        .strip_prefix("```json")
        .or_else(|| answer.strip_prefix("```"))
        .and_then(|rest| rest.strip_suffix("```"));
    inner.unwrap_or(answer).trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_contracts::BaseScenario;
    use proptest::prelude::*;
    use serde_json::json;

    fn rubric() -> Rubric {
        let mut scenario = BaseScenario::new("s", "p");
        scenario.rubric = Some(json!({"criteria": [
            {"id": "done", "description": "d"},
            {"id": "clear", "description": "d", "scale": [1, 5], "pass": ">= 4"},
        ]}));
        Rubric::of(&scenario).unwrap().unwrap()
    }

    fn check(answer: &str, expected: Result<&[Option<f64>], &str>) {
        let ballot = Ballot::parse(answer, &rubric());
        match (ballot, expected) {
            (Ok(Ballot(verdicts)), Ok(scores)) => {
                let found: Vec<Option<f64>> = verdicts
                    .iter()
                    .map(|verdict| Some(verdict.as_ref()?.score))
                    .collect();
                assert_eq!(found, scores, "{answer}");
            }
            (Err(complaint), Err(expected)) => assert!(complaint.contains(expected), "{complaint}"),
            (found, _) => panic!("{answer}: {found:?}"),
        }
    }

    #[test]
    fn verdicts_are_read_strictly() {
        let good = r#"{"verdicts": [{"id": "clear", "rationale": "ok", "score": 4, "pass": null}, {"id": "done", "pass": true}]}"#;
        check(good, Ok(&[Some(1.0), Some(4.0)]));
        check(
            &format!("```json\n{good}\n```"),
            Ok(&[Some(1.0), Some(4.0)]),
        );
        check(
            r#"{"verdicts": [{"id": "done", "pass": false}]}"#,
            Ok(&[Some(0.0), None]),
        );
        check(r#"{"verdicts": []}"#, Ok(&[None, None]));
        check(&format!("Here you are: {good}"), Err("not JSON"));
        check(
            r#"{"verdicts": [{"id": "done", "pass": "yes"}]}"#,
            Err("no `pass`"),
        );
        check(
            r#"{"verdicts": [{"id": "clear", "score": 6}]}"#,
            Err("no `score` from 1 to 5"),
        );
        check(
            r#"{"verdicts": [{"id": "clear", "pass": true}]}"#,
            Err("no `score`"),
        );
        check(
            r#"{"verdicts": [{"id": "other", "pass": true}]}"#,
            Err("no criterion `other`"),
        );
        check(
            r#"{"verdicts": [{"id": "done", "pass": true}, {"id": "done", "pass": false}]}"#,
            Err("two verdicts"),
        );
        check("[]", Err("no list"));
    }

    proptest! {
        #[test]
        fn any_answer_is_a_ballot_or_a_complaint(answer in ".{0,200}") {
            let _ = Ballot::parse(&answer, &rubric());
        }
    }
}
