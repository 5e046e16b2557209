//! One check: its kind, its wording, and how it is tried.

use super::changed::ChangedCheck;
use super::command::{CommandCheck, CommandRunner};
use super::file::FileCheck;
use super::harbor::HarborCheck;
use super::limit::LimitCheck;
use super::output::OutputCheck;
use super::skill::SkillCheck;
use super::text::{Text, TextTest};
use super::tool::ToolCheck;
use crate::spec::{Fields, Spec};
use assize_contracts::{ConfigError, CustomMetric, ScorerCheckResult, ScorerContext};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::Path;

const KEYS: [&str; 13] = [
    "output",
    "file",
    "command",
    "tool",
    "limit",
    "changed",
    "skill",
    "harbor",
    "not",
    "id",
    "description",
    "weight",
    "required",
];
/// The kinds of checks and their negation.
const KINDS: &[&str] = KEYS.split_at(9).0;

/// The data that checks look at.
pub(super) struct Subject<'a> {
    pub(super) context: &'a ScorerContext,
    pub(super) answer: Text<'a>,
    pub(super) commands: Option<&'a dyn CommandRunner>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(context: &'a ScorerContext, commands: Option<&'a dyn CommandRunner>) -> Self {
        Self {
            context,
            answer: Text::new(context.agent_output.as_str()),
            commands,
        }
    }

    pub(super) fn workspace(&self) -> Result<&'a Path, &'static str> {
        let workspace = self.context.workspace.as_deref();
        workspace.ok_or("the trial has no workspace")
    }
}

/// The observation of a check. `Err` where it could not look.
pub(super) type Look = Result<Seen, String>;

pub(super) struct Seen {
    holds: bool,
    actual: Value,
    doubt: Option<&'static str>,
    metrics: Vec<CustomMetric>,
}

/// A check that was made.
pub(super) struct Evaluated {
    pub(super) result: ScorerCheckResult,
    pub(super) metrics: Vec<CustomMetric>,
}

impl Seen {
    pub(super) fn new(holds: bool, actual: Value) -> Self {
        let (doubt, metrics) = (None, Vec::new());
        Self {
            holds,
            actual,
            doubt,
            metrics,
        }
    }

    /// The same with what was measured on the way.
    pub(super) fn measuring(self, metrics: Vec<CustomMetric>) -> Self {
        Self { metrics, ..self }
    }

    /// The same, with the reason why it does not prove the opposite either, if there is one.
    pub(super) fn doubted(self, doubt: Option<&'static str>) -> Self {
        Self { doubt, ..self }
    }

    /// All tests hold on the text, or what the first broken one found.
    pub(super) fn of_tests(tests: &[TextTest], text: &Text<'_>) -> Self {
        let broken_by = tests.iter().find_map(|test| test.broken_by(text));
        let holds = broken_by.is_none();
        Self::new(holds, broken_by.unwrap_or_else(|| text.excerpt()))
    }
}

/// The expectation of a check: for its id, for people and for the record.
pub(super) struct Sentence {
    pub(super) label: String,
    pub(super) words: String,
    pub(super) expected: Value,
}

impl Sentence {
    pub(super) fn of_tests(kind: &str, subject: &str, tests: &[TextTest]) -> Self {
        let words: Vec<String> = tests.iter().map(TextTest::words).collect();
        let expected = match tests {
            [test] => test.expected().clone(),
            _ => tests
                .iter()
                .map(|test| (test.key().to_owned(), test.expected().clone()))
                .collect(),
        };
        Self {
            label: format!("{kind}-{}", tests.first().map_or("", TextTest::key)),
            words: format!("{subject} {}", words.join(" and ")),
            expected,
        }
    }
}

pub(super) struct Check {
    pub(super) id: String,
    pub(super) weight: u64,
    pub(super) required: bool,
    description: String,
    expected: Value,
    negated: bool,
    body: Body,
}

enum Body {
    Output(OutputCheck),
    File(FileCheck),
    Command(CommandCheck),
    Tool(ToolCheck),
    Limit(LimitCheck),
    Changed(ChangedCheck),
    Skill(SkillCheck),
    Harbor(HarborCheck),
}

/// All checks of a scenario, each with an id of its own.
pub(super) fn parse_checks(checks: &[Value]) -> Result<Vec<Check>, ConfigError> {
    let specs: Vec<Spec<'_>> = checks
        .iter()
        .enumerate()
        .map(|(position, value)| Spec::at(&["checks", &position.to_string()], value))
        .collect();
    let mut ids = Ids::given_in(&specs)?;
    specs
        .iter()
        .map(|spec| Check::parse(spec, &mut ids))
        .collect()
}

impl Check {
    fn parse(spec: &Spec<'_>, ids: &mut Ids) -> Result<Self, ConfigError> {
        let fields = spec.fields(&KEYS)?;
        let (body, negated) = Body::parse(spec, &fields)?;
        let sentence = body.sentence();
        let id = match fields.get("id") {
            Some(spec) => spec.text()?,
            None if negated => ids.numbered(format!("not-{}", sentence.label)),
            None => ids.numbered(sentence.label),
        };
        let description = match fields.get("description") {
            Some(spec) => spec.text()?,
            None if negated => format!("not: {}", sentence.words),
            None => sentence.words,
        };
        Ok(Self {
            id,
            description,
            weight: fields.weight()?,
            required: fields
                .get("required")
                .map_or(Ok(true), |spec| spec.flag())?,
            expected: sentence.expected,
            negated,
            body,
        })
    }

    /// The kind of the check, if it looks at the workspace.
    pub(super) fn workspace_kind(&self) -> Option<&'static str> {
        match self.body {
            Body::File(_) => Some("file"),
            Body::Command(_) => Some("command"),
            Body::Changed(_) => Some("changed"),
            Body::Output(_) | Body::Tool(_) | Body::Limit(_) | Body::Skill(_) | Body::Harbor(_) => {
                None
            }
        }
    }

    /// Never fails: what could not be looked at is an error in the result.
    pub(super) async fn evaluate(&self, subject: &Subject<'_>) -> Evaluated {
        let look = self.body.look(subject).await;
        let mut metrics = Vec::new();
        let mut result = ScorerCheckResult {
            id: self.id.clone(),
            description: self.description.clone(),
            expected: Some(self.expected.clone()),
            ..ScorerCheckResult::default()
        };
        match look {
            Ok(seen) => {
                let doubt = seen.doubt.filter(|_| self.negated);
                result.passed = doubt.is_none() && seen.holds != self.negated;
                result.actual = Some(seen.actual);
                result.error = doubt.map(str::to_owned);
                metrics = seen.metrics;
            }
            Err(error) => result.error = Some(error),
        }
        Evaluated { result, metrics }
    }
}

impl Body {
    /// The body and whether it is negated. Negations are unwound here, however deep they are nested.
    fn parse(spec: &Spec<'_>, fields: &Fields<'_>) -> Result<(Self, bool), ConfigError> {
        let mut negated = false;
        let mut place = spec.clone();
        let mut named = kinds_in(fields);
        while let [("not", inner)] = named.as_slice() {
            negated = !negated;
            place = inner.clone();
            named = kinds_in(&place.fields(KINDS)?);
        }
        let [(kind, spec)] = named.as_slice() else {
            return Err(place.nothing_asked(KINDS));
        };
        let body = match *kind {
            "output" => Self::Output(OutputCheck::parse(spec)?),
            "file" => Self::File(FileCheck::parse(spec)?),
            "command" => Self::Command(CommandCheck::parse(spec)?),
            "tool" => Self::Tool(ToolCheck::parse(spec)?),
            "limit" => Self::Limit(LimitCheck::parse(spec)?),
            "skill" => Self::Skill(SkillCheck::parse(spec)?),
            "harbor" => Self::Harbor(HarborCheck::parse(spec)?),
            _ => Self::Changed(ChangedCheck::parse(spec)?),
        };
        Ok((body, negated))
    }

    fn sentence(&self) -> Sentence {
        match self {
            Self::Output(check) => check.sentence(),
            Self::File(check) => check.sentence(),
            Self::Command(check) => check.sentence(),
            Self::Tool(check) => check.sentence(),
            Self::Limit(check) => check.sentence(),
            Self::Changed(check) => check.sentence(),
            Self::Skill(check) => check.sentence(),
            Self::Harbor(check) => check.sentence(),
        }
    }

    async fn look(&self, subject: &Subject<'_>) -> Look {
        match self {
            Self::Output(check) => Ok(check.look(&subject.answer)),
            Self::File(check) => check.look(subject),
            Self::Command(check) => check.look(subject).await,
            Self::Tool(check) => check.look(subject),
            Self::Limit(check) => check.look(subject),
            Self::Changed(check) => check.look(subject),
            Self::Skill(check) => check.look(subject),
            Self::Harbor(check) => check.look(subject).await,
        }
    }
}

fn kinds_in<'a>(fields: &Fields<'a>) -> Vec<(&'static str, Spec<'a>)> {
    KINDS
        .iter()
        .filter_map(|&kind| Some((kind, fields.get(kind)?)))
        .collect()
}

/// The ids of a scenario's checks: those given, each once, and numbered ones for the rest.
struct Ids {
    taken: HashSet<String>,
    numbers: HashMap<String, u64>,
}

impl Ids {
    fn given_in(specs: &[Spec<'_>]) -> Result<Self, ConfigError> {
        let mut taken = HashSet::new();
        for spec in specs {
            let Some(spec) = spec.fields(&KEYS)?.get("id") else {
                continue;
            };
            let id = spec.text()?;
            if id.trim().is_empty() {
                return Err(spec.error("an id must not be empty"));
            }
            if !taken.insert(id.clone()) {
                return Err(spec.error(format!("a second check has the id `{id}`")));
            }
        }
        let numbers = HashMap::new();
        Ok(Self { taken, numbers })
    }

    fn numbered(&mut self, label: String) -> String {
        let number = self.numbers.entry(label.clone()).or_default();
        loop {
            *number += 1;
            let id = format!("{label}-{number}");
            if !self.taken.contains(&id) {
                return id;
            }
        }
    }
}
