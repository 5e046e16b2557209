//! `rules`: a table says which input gives which output. No LLM, no network, the same answer every time.

use super::record::Execution;
use super::template::{ValueTemplate, part};
use super::{Role, VERSION, read};
use assize_contracts::{
    AtomicTask, BoxError, ConfigError, RunRecord, Runner, RunnerSetup, Usd, as_text, async_trait,
};
use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The table: here, or the name of a JSON file with it.
    rules: Table,
    /// The output where no rule fits. Without it such a task fails.
    #[serde(default)]
    default: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Table {
    File(String),
    Rules(Vec<RuleSpec>),
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct RuleSpec {
    /// All of these must hold. Without any the rule always fits.
    #[serde(default)]
    when: Conditions,
    output: Value,
}

#[derive(Deserialize, Debug)]
#[serde(untagged)]
enum Conditions {
    One(Box<ConditionSpec>),
    Several(Vec<ConditionSpec>),
}

impl Default for Conditions {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

/// A condition on the input, or on the part of it at `at`.
#[derive(Deserialize, Debug, Default)]
#[serde(default, deny_unknown_fields)]
struct ConditionSpec {
    at: Option<String>,
    /// As text it has this in it, or all of these.
    contains: Option<OneOrMore>,
    /// As text it has one of these in it.
    any_of: Option<Vec<String>>,
    /// As text it fits this regular expression.
    matches: Option<String>,
    /// It is this value.
    equals: Option<Value>,
}

#[derive(Deserialize, Debug, Clone)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// The runner `rules`.
pub(super) struct Rules {
    role: Role,
    rules: Vec<Rule>,
    default: Option<ValueTemplate>,
    content_hash: Option<String>,
}

struct Rule {
    conditions: Vec<Condition>,
    output: ValueTemplate,
}

struct Condition {
    at: Vec<String>,
    test: Test,
}

enum Test {
    ContainsAll(Vec<String>),
    ContainsAny(Vec<String>),
    Matches(Regex),
    Equals(Value),
}

impl Rules {
    pub(super) fn new(setup: &RunnerSetup<'_>) -> Result<Self, ConfigError> {
        let Settings { rules, default } = read(setup)?;
        let (specs, content_hash) = match rules {
            Table::Rules(specs) => (specs, None),
            Table::File(name) => {
                let wrong = |reason: String| rules_error(format!("`{name}`: {reason}"));
                let text = std::fs::read(setup.directory.join(&name))
                    .map_err(|error| wrong(error.to_string()))?;
                let specs = serde_json::from_slice::<Vec<RuleSpec>>(&text)
                    .map_err(|error| wrong(format!("expected a list of rules: {error}")))?;
                (specs, Some(blake3::hash(&text).to_hex()[..32].to_owned()))
            }
        };
        let rules = specs.iter().enumerate().map(|(number, spec)| {
            rule(spec).map_err(|message| rules_error(format!("rule {}: {message}", number + 1)))
        });
        Ok(Self {
            role: Role::of(setup),
            rules: rules.collect::<Result<_, _>>()?,
            default: default.as_ref().map(ValueTemplate::parse),
            content_hash,
        })
    }
}

fn rules_error(message: String) -> ConfigError {
    crate::settings::setting_error("rules", message)
}

fn rule(spec: &RuleSpec) -> Result<Rule, String> {
    let conditions = match &spec.when {
        Conditions::One(one) => std::slice::from_ref(&**one),
        Conditions::Several(several) => several,
    };
    let mut tests = Vec::new();
    for spec in conditions {
        let at: Vec<String> = match &spec.at {
            Some(path) => path.split('.').map(str::to_owned).collect(),
            None => Vec::new(),
        };
        let before = tests.len();
        let mut add = |test| {
            let at = at.clone();
            tests.push(Condition { at, test });
        };
        match &spec.contains {
            Some(OneOrMore::One(one)) => add(Test::ContainsAll(vec![one.clone()])),
            Some(OneOrMore::More(more)) => add(Test::ContainsAll(more.clone())),
            None => {}
        }
        if let Some(any) = &spec.any_of {
            add(Test::ContainsAny(any.clone()));
        }
        if let Some(pattern) = &spec.matches {
            let regex = Regex::new(pattern).map_err(|error| error.to_string())?;
            add(Test::Matches(regex));
        }
        if let Some(value) = &spec.equals {
            add(Test::Equals(value.clone()));
        }
        if tests.len() == before {
            return Err("expected `contains`, `any_of`, `matches` or `equals`".to_owned());
        }
    }
    Ok(Rule {
        conditions: tests,
        output: ValueTemplate::parse(&spec.output),
    })
}

impl Condition {
    fn holds(&self, input: &Value) -> bool {
        let Some(value) = part(input, &self.at) else {
            return false;
        };
        let text = || match value {
            Value::String(text) => Cow::Borrowed(text.as_str()),
            other => Cow::Owned(as_text(other)),
        };
        match &self.test {
            Test::ContainsAll(parts) => {
                let text = text();
                parts.iter().all(|part| text.contains(part))
            }
            Test::ContainsAny(parts) => {
                let text = text();
                parts.iter().any(|part| text.contains(part))
            }
            Test::Matches(regex) => regex.is_match(&text()),
            Test::Equals(expected) => value == expected,
        }
    }
}

#[async_trait]
impl Runner for Rules {
    fn id(&self) -> &str {
        &self.role.id
    }

    fn task_type(&self) -> &str {
        &self.role.task_type
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn may_cost(&self) -> bool {
        false
    }

    fn content_hash(&self) -> Option<String> {
        self.content_hash.clone()
    }

    async fn execute(&self, task: &AtomicTask, _: &Value) -> Result<RunRecord, BoxError> {
        let mut execution = Execution::start();
        // A table uses no model: that much is known.
        (execution.tokens, execution.cost) = (Some(0), Some(Usd::default()));
        let fits = |rule: &Rule| rule.conditions.iter().all(|test| test.holds(&task.input));
        let number = self.rules.iter().position(fits);
        let output = match number {
            Some(number) => Some(&self.rules[number].output),
            None => self.default.as_ref(),
        };
        let Some(output) = output else {
            let message = "no rule fits the input, and there is no `default`".to_owned();
            return Ok(execution.failed(task, "match", message));
        };
        execution.note(
            "rule_matched",
            json!({"rule": number.map(|number| number + 1)}),
        );
        Ok(match output.value(task) {
            Ok(output) => execution.completed(task, output),
            Err(message) => execution.failed(task, "render", message),
        })
    }
}
