//! The agreement of a judge's votes over all trials, and the number of outcomes that hang on a single vote.

use crate::caution::count;
use crate::{Caution, CautionCode, Row, percent};
use assize_contracts::{Catalog, Outcome};
use assize_stats::{BootstrapOptions, Level, VoteSums, pooled_alpha};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// Below this agreement votes are too little to lean on (Krippendorff 2018).
const ENOUGH: f64 = 0.667;
/// An interval needs no more resamples than this.
const MOST_RESAMPLES: usize = 2000;

/// The agreement of a judge's votes, over all trials and criteria together.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JudgeSummary {
    /// Trials that were judged by several votes.
    pub trials: u64,
    /// Krippendorff's alpha: 1 is perfect, 0 is chance. Absent when all votes are the same.
    pub alpha: Option<f64>,
    /// Its interval, over trials.
    pub ci95: Option<[f64; 2]>,
    /// Trials whose outcome one vote would have changed. Absent where rows do not record it.
    pub hang_on_one_vote: Option<u64>,
    #[serde(skip)]
    level: Level,
}

/// The counts of votes while rows are read.
#[derive(Debug, Default)]
pub(crate) struct JudgeTally {
    trials: Vec<VoteSums>,
    hanging: u64,
    /// Trials that record whether they hang on one vote.
    recorded: u64,
}

impl JudgeTally {
    pub(crate) fn add(&mut self, row: &Row<'_>, catalog: &Catalog) {
        if row.outcome() == Outcome::Void {
            return;
        }
        let mut sums = VoteSums::default();
        for check in &row.checkpoint_details {
            sums.add_item(&check.actual.0);
        }
        if sums.is_empty() {
            return;
        }
        self.trials.push(sums);
        if let Some(hangs) = row.hangs_on_one_vote(catalog) {
            self.recorded += 1;
            self.hanging += u64::from(hangs);
        }
    }

    /// None where no trial had several votes.
    pub(crate) fn summary(&self, level: Level, resamples: usize) -> Option<JudgeSummary> {
        let options = BootstrapOptions {
            resamples: resamples.min(MOST_RESAMPLES),
            confidence_level: level,
            ..BootstrapOptions::default()
        };
        let found = pooled_alpha(&self.trials, &options);
        (!self.trials.is_empty()).then(|| JudgeSummary {
            trials: self.trials.len() as u64,
            alpha: found.alpha,
            ci95: found.ci95,
            hang_on_one_vote: (self.recorded as usize == self.trials.len()).then_some(self.hanging),
            level,
        })
    }
}

impl JudgeSummary {
    /// `The judge's votes agree with alpha 0.82 (95 % interval 0.70 to 0.91; 40 trials). …`.
    pub fn sentence(&self) -> String {
        let trials = count(self.trials, "trial", "trials");
        let level = crate::comparison::level_percent(self.level);
        let agreement = match (self.alpha, self.ci95) {
            (None, _) => format!("The judge's votes are all the same ({trials})."),
            (Some(alpha), None) => {
                format!("The judge's votes agree with alpha {alpha:.2} ({trials}).")
            }
            (Some(alpha), Some([low, high])) => format!(
                "The judge's votes agree with alpha {alpha:.2} ({level} interval {low:.2} to {high:.2}; {trials})."
            ),
        };
        let hanging = self.hang_on_one_vote.map(|hanging| {
            let share = percent(hanging as f64 / self.trials as f64);
            format!(" The outcome of {hanging} of {trials} ({share}) hangs on one vote.")
        });
        format!("{agreement}{}", hanging.unwrap_or_default())
    }

    /// Votes that agree little more than by chance carry no verdict.
    pub(crate) fn caution(&self) -> Option<Caution> {
        let is_low = self.alpha.is_some_and(|alpha| alpha < ENOUGH);
        is_low.then(|| {
            Caution::about_all(
                CautionCode::JudgeDisagrees,
                format!(
                    "{} Below {ENOUGH} a clearer rubric or more votes are needed.",
                    self.sentence()
                ),
            )
        })
    }
}

/// The votes in what a check found, on a scale from 0 to 1. Empty for checks that are no votes.
#[derive(Debug, Default)]
pub(crate) struct Votes(pub(crate) Vec<f64>);

impl Votes {
    fn new(votes: &Value, scale: Option<[f64; 2]>) -> Self {
        let vote = |vote: &Value| match (vote, scale) {
            (Value::Bool(holds), _) => Some(f64::from(u8::from(*holds))),
            (Value::Number(score), Some([low, high])) if high > low => {
                Some((score.as_f64()? - low) / (high - low))
            }
            _ => None,
        };
        let votes = votes.as_array().map_or(&[][..], Vec::as_slice);
        Self(votes.iter().filter_map(vote).collect())
    }
}

impl<'de> Deserialize<'de> for Votes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(VotesVisitor)
    }
}

struct VotesVisitor;

impl<'de> Visitor<'de> for VotesVisitor {
    type Value = Votes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Votes, A::Error> {
        let (mut votes, mut scale) = (Value::Null, None);
        while let Some(name) = items.next_key::<Cow<'de, str>>()? {
            match &*name {
                "votes" => votes = items.next_value()?,
                "scale" => {
                    let ends: Value = items.next_value()?;
                    scale = ends[0].as_f64().zip(ends[1].as_f64()).map(<[f64; 2]>::from);
                }
                _ => drop(items.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Votes::new(&votes, scale))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Votes, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Votes::default())
    }

    fn visit_unit<E>(self) -> Result<Votes, E> {
        Ok(Votes::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Votes, E> {
        Ok(Votes::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Votes, E> {
        Ok(Votes::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Votes, E> {
        Ok(Votes::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Votes, E> {
        Ok(Votes::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Votes, E> {
        Ok(Votes::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_contracts::{Metric, MetricKind};

    fn tally(trials: &[(&str, bool, u8)]) -> JudgeSummary {
        let mut tally = JudgeTally::default();
        for (votes, passed, hangs) in trials {
            let json = format!(
                r#"{{"scenarioId":"s","mode":"m","iteration":0,"success":{passed},
                    "checkpointDetails":[{{"id":"a","passed":true,"actual":[1,"x"]}},
                        {{"id":"judge:b","passed":{passed},"actual":{{"verdict":1,"votes":{votes},"scale":[1,5]}}}}],
                    "extensions":{{"judge_hangs_on_one_vote":{hangs}}}}}"#
            );
            tally.add(&Row::parse(json.as_bytes()).unwrap(), &Catalog::default());
        }
        tally.summary(Level::CONFIDENCE_95, 500).unwrap()
    }

    #[test]
    fn a_metric_says_by_its_catalog_that_a_trial_hangs_on_one_vote() {
        let json = br#"{"scenarioId":"s","mode":"m","iteration":0,"success":true,"extensions":{"close_call":1}}"#;
        let row = Row::parse(json).unwrap();
        let mut catalog = Catalog::default();
        assert_eq!(row.hangs_on_one_vote(&catalog), None);
        catalog.insert(Metric {
            kind: MetricKind::HangsOnOneVote,
            ..Metric::named("close_call")
        });
        assert_eq!(row.hangs_on_one_vote(&catalog), Some(true));
    }

    #[test]
    fn votes_are_pooled_over_trials_and_criteria() {
        let found = tally(&[
            ("[true,true,true]", true, 0),
            ("[false,false,false]", false, 0),
            ("[1,1,1]", false, 0),
            ("[5,5,5]", true, 0),
            ("[true,true,false]", true, 1),
        ]);
        let alpha = found.alpha.unwrap();
        assert!((alpha - 0.75).abs() < 1e-12, "{alpha}");
        assert_eq!(found.hang_on_one_vote, Some(1));
        assert!(found.caution().is_none());
        let said = found.sentence();
        assert!(
            said.ends_with("The outcome of 1 of 5 trials (20 %) hangs on one vote."),
            "{said}"
        );
    }

    #[test]
    fn votes_by_chance_are_a_caution() {
        let found = tally(&[
            ("[true,false,true]", true, 1),
            ("[false,true,false]", false, 1),
        ]);
        let caution = found.caution().unwrap();
        assert_eq!(caution.code, CautionCode::JudgeDisagrees);
        assert!(caution.text.contains("Below 0.667"), "{}", caution.text);
        let same = tally(&[("[true,true]", true, 0)]);
        assert_eq!((same.alpha, same.caution()), (None, None));
    }
}
