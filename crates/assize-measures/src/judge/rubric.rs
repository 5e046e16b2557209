//! The criteria of a judge, which hold or not, or are on a scale with a bound.

use crate::spec::Spec;
use assize_contracts::{BaseScenario, Better, ConfigError};
use serde_json::{Value, json};

/// The criteria of a scenario.
#[derive(Debug)]
pub(super) struct Rubric {
    pub(super) instructions: String,
    pub(super) criteria: Vec<Criterion>,
}

/// One thing that is judged.
#[derive(Debug)]
pub(super) struct Criterion {
    pub(super) id: String,
    pub(super) description: String,
    pub(super) scale: Option<Scale>,
    pub(super) weight: u64,
    pub(super) required: bool,
}

/// Scores from one number to another, and which of them pass.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    pub(super) lowest: f64,
    pub(super) highest: f64,
    comparison: Comparison,
    bound: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    AtLeast,
    MoreThan,
    AtMost,
    LessThan,
    Equal,
}

impl Rubric {
    /// The scenario's own, or the usual one. Absent where the scenario says `rubric: false`: it is left to other scorers.
    pub(super) fn of(scenario: &BaseScenario) -> Result<Option<Self>, ConfigError> {
        let value = match &scenario.rubric {
            None => return Ok(Some(Self::usual())),
            Some(Value::Bool(false)) => return Ok(None),
            Some(value) => value,
        };
        let spec = Spec::at(&["rubric"], value);
        let fields = spec.fields(&["instructions", "criteria"])?;
        let instructions = fields.get("instructions").map(|spec| spec.text());
        let criteria = fields
            .get("criteria")
            .ok_or_else(|| spec.error("expected `criteria`: what to judge"))?;
        let mut known: Vec<Criterion> = Vec::new();
        for item in criteria.items()? {
            let criterion = Criterion::parse(&item)?;
            if known.iter().any(|other| other.id == criterion.id) {
                return Err(item.error(format!("the id `{}` is given twice", criterion.id)));
            }
            known.push(criterion);
        }
        if known.is_empty() {
            return Err(criteria.error("expected at least one criterion"));
        }
        Ok(Some(Self {
            instructions: instructions.transpose()?.unwrap_or_default(),
            criteria: known,
        }))
    }

    /// The criteria where a scenario names none: the task is done, and the way there was good.
    fn usual() -> Self {
        let success = Criterion {
            id: "success".to_owned(),
            description: "The agent did what the task asks, completely and correctly.".to_owned(),
            scale: None,
            weight: 1,
            required: true,
        };
        let efficiency = Criterion {
            id: "trajectory_efficiency".to_owned(),
            description: "The agent took an optimal path. 5: no step could be left out. 3: some detours or repeated steps. \
                          1: most steps did not help."
                .to_owned(),
            scale: Some(Scale {
                lowest: 1.0,
                highest: 5.0,
                comparison: Comparison::AtLeast,
                bound: 3.0,
            }),
            weight: 1,
            required: false,
        };
        Self {
            instructions: String::new(),
            criteria: vec![success, efficiency],
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<usize> {
        self.criteria
            .iter()
            .position(|criterion| criterion.id == id)
    }
}

impl Criterion {
    /// Scores that decide one way and the other: those of a vote for and against, or the ends of the scale and its bound.
    pub(super) fn possible_scores(&self) -> Vec<f64> {
        match &self.scale {
            None => vec![0.0, 1.0],
            Some(scale) => vec![scale.lowest, scale.bound, scale.highest],
        }
    }

    fn parse(spec: &Spec<'_>) -> Result<Self, ConfigError> {
        let fields = spec.fields(&["id", "description", "scale", "pass", "weight", "required"])?;
        let id_spec = fields.get("id");
        let id_spec = id_spec.ok_or_else(|| spec.error("expected `id`: a short name"))?;
        let id = id_spec.text()?;
        if id.trim().is_empty() {
            return Err(id_spec.error("an id must not be empty"));
        }
        let description = fields
            .get("description")
            .map(|text| text.text())
            .transpose()?;
        let required = fields.get("required").map(|flag| flag.flag()).transpose()?;
        let scale = match (fields.get("scale"), fields.get("pass")) {
            (Some(scale), Some(pass)) => Some(Scale::parse(&scale, &pass)?),
            (Some(_), None) => {
                return Err(spec.error("expected `pass`: which scores pass, such as `\">= 4\"`"));
            }
            (None, Some(pass)) => {
                return Err(pass.error("there is no `scale` that it could be a bound of"));
            }
            (None, None) => None,
        };
        Ok(Self {
            description: description
                .ok_or_else(|| spec.error("expected `description`: what must hold"))?,
            id,
            scale,
            weight: fields.weight()?,
            required: required.unwrap_or(true),
        })
    }

    /// The passing value, for the record.
    pub(super) fn expected(&self) -> Value {
        match &self.scale {
            Some(scale) => json!(scale.bound_in_words()),
            None => json!(true),
        }
    }
}

impl Scale {
    fn parse(scale: &Spec<'_>, pass: &Spec<'_>) -> Result<Self, ConfigError> {
        let ends: Vec<f64> = scale
            .items()?
            .iter()
            .filter_map(|end| end.value.as_f64())
            .collect();
        let [lowest, highest] = ends[..] else {
            return Err(scale.error("expected the lowest and the highest score, such as `[1, 5]`"));
        };
        if lowest >= highest {
            return Err(scale.error("the highest score must be above the lowest"));
        }
        let text = pass.text()?;
        let (comparison, bound) = bound(&text).ok_or_else(|| {
            pass.error(format!("found `{text}`, expected a bound such as `>= 4`"))
        })?;
        let scale = Self {
            lowest,
            highest,
            comparison,
            bound,
        };
        match scale.passes(lowest) == scale.passes(highest) && comparison != Comparison::Equal {
            true => Err(pass.error(format!(
                "of the scores {lowest} to {highest} all pass or none"
            ))),
            false => Ok(scale),
        }
    }

    pub(super) fn holds(&self, score: f64) -> bool {
        (self.lowest..=self.highest).contains(&score)
    }

    pub(super) fn passes(&self, score: f64) -> bool {
        match self.comparison {
            Comparison::AtLeast => score >= self.bound,
            Comparison::MoreThan => score > self.bound,
            Comparison::AtMost => score <= self.bound,
            Comparison::LessThan => score < self.bound,
            Comparison::Equal => score == self.bound,
        }
    }

    /// The end of the scale that passes. Absent where one score in the middle is asked for.
    pub(super) fn better(&self) -> Option<Better> {
        match self.comparison {
            Comparison::AtLeast | Comparison::MoreThan => Some(Better::Higher),
            Comparison::AtMost | Comparison::LessThan => Some(Better::Lower),
            Comparison::Equal => None,
        }
    }

    fn bound_in_words(&self) -> String {
        let sign = match self.comparison {
            Comparison::AtLeast => ">=",
            Comparison::MoreThan => ">",
            Comparison::AtMost => "<=",
            Comparison::LessThan => "<",
            Comparison::Equal => "==",
        };
        format!("{sign} {}", self.bound)
    }
}

/// `>= 4` and the like; a number alone is the least that passes.
fn bound(text: &str) -> Option<(Comparison, f64)> {
    let signs = [
        (">=", Comparison::AtLeast),
        ("<=", Comparison::AtMost),
        ("==", Comparison::Equal),
        (">", Comparison::MoreThan),
        ("<", Comparison::LessThan),
        ("", Comparison::AtLeast),
    ];
    let (comparison, number) = signs
        .into_iter()
        .find_map(|(sign, comparison)| Some((comparison, text.trim().strip_prefix(sign)?)))?;
    let number: f64 = number.trim().parse().ok()?;
    number.is_finite().then_some((comparison, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rubric: Value) -> Result<Rubric, ConfigError> {
        let mut scenario = BaseScenario::new("s", "p");
        scenario.rubric = Some(rubric);
        Rubric::of(&scenario).map(Option::unwrap)
    }

    #[test]
    fn bounds_are_read_and_applied() {
        let check = |pass: Value, passing: &[f64]| {
            let rubric = parse(
                json!({"criteria": [{"id": "a", "description": "d", "scale": [1, 5], "pass": pass}]}),
            );
            let scale = rubric.unwrap().criteria.remove(0).scale.unwrap();
            let passed: Vec<f64> = [1.0, 2.0, 3.0, 4.0, 5.0]
                .into_iter()
                .filter(|score| scale.passes(*score))
                .collect();
            assert_eq!(passed, passing);
        };
        check(json!(">= 4"), &[4.0, 5.0]);
        check(json!(4), &[4.0, 5.0]);
        check(json!("> 4"), &[5.0]);
        check(json!("<=2"), &[1.0, 2.0]);
        check(json!("< 2"), &[1.0]);
        check(json!("== 3"), &[3.0]);
    }

    #[test]
    fn mistakes_are_found_with_their_place() {
        let check = |rubric: Value, place: &str, message: &str| {
            let error = parse(rubric).unwrap_err();
            assert_eq!(error.path.join("."), place);
            assert!(error.message.contains(message), "{}", error.message);
        };
        let one = |criterion: Value| json!({"criteria": [criterion]});
        check(json!([]), "rubric", "expected an object");
        check(json!({}), "rubric", "expected `criteria`");
        check(json!({"criteria": []}), "rubric.criteria", "at least one");
        check(
            one(json!({"description": "d"})),
            "rubric.criteria.0",
            "expected `id`",
        );
        check(
            one(json!({"id": "a"})),
            "rubric.criteria.0",
            "expected `description`",
        );
        check(
            one(json!({"id": "a", "description": "d", "scael": [1, 2]})),
            "rubric.criteria.0.scael",
            "unknown key",
        );
        check(
            one(json!({"id": "a", "description": "d", "scale": [1, 5]})),
            "rubric.criteria.0",
            "expected `pass`",
        );
        check(
            one(json!({"id": "a", "description": "d", "pass": 3})),
            "rubric.criteria.0.pass",
            "no `scale`",
        );
        check(
            one(json!({"id": "a", "description": "d", "scale": [5, 1], "pass": 3})),
            "rubric.criteria.0.scale",
            "above the lowest",
        );
        check(
            one(json!({"id": "a", "description": "d", "scale": [1, 5], "pass": ">= 6"})),
            "rubric.criteria.0.pass",
            "all pass or none",
        );
        check(
            one(json!({"id": "a", "description": "d", "scale": [1, 5], "pass": "good"})),
            "rubric.criteria.0.pass",
            "such as `>= 4`",
        );
        check(
            one(json!({"id": " ", "description": "d"})),
            "rubric.criteria.0.id",
            "must not be empty",
        );
        check(
            one(json!({"id": "a", "description": "d", "weight": 0})),
            "rubric.criteria.0.weight",
            "at least 1",
        );
        let twice =
            json!({"criteria": [{"id": "a", "description": "d"}, {"id": "a", "description": "e"}]});
        check(twice, "rubric.criteria.1", "given twice");
    }
}
