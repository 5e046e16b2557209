//! `tool`: which tools are called, how often, with what and in which order.

use super::check::{Look, Seen, Sentence, Subject};
use super::json::JsonPath;
use super::text::{Matcher, bounded};
use crate::spec::{Fields, Spec, quoted};
use assize_contracts::{ConfigError, TraceEvent};
use serde_json::Value;
use std::sync::Arc;

pub(super) const TOOLS_UNKNOWN: &str = "it is unknown which tools were called; \
    let the agent report its calls (`output: events`) or read its traffic (`capture`)";

pub(super) const KEYS: [&str; 6] = ["called", "order", "only", "with", "at_least", "at_most"];

pub(super) enum ToolCheck {
    Called(Called),
    Order(Vec<String>),
    Only(Vec<String>),
}

/// A tool that is called a number of times with certain arguments.
pub(super) struct Called {
    tool: String,
    with: Vec<Argument>,
    at_least: u64,
    at_most: Option<u64>,
    written: Value,
}

struct Argument {
    place: ArgumentPlace,
    expected: Matcher,
}

enum ArgumentPlace {
    Name(String),
    Path(JsonPath),
}

impl ToolCheck {
    pub(super) fn parse(spec: &Spec<'_>) -> Result<Self, ConfigError> {
        let fields = spec.fields(&KEYS)?;
        match (
            fields.get("called"),
            fields.get("order"),
            fields.get("only"),
        ) {
            (Some(called), None, None) => {
                let written = bounded(spec.value);
                Called::parse(called.text()?, &fields, written).map(Self::Called)
            }
            (None, Some(order), None) => {
                spec.fields(&["order"])?;
                order.texts().map(Self::Order)
            }
            (None, None, Some(only)) => {
                spec.fields(&["only"])?;
                let names = only.items()?;
                let names: Result<_, _> = names.iter().map(Spec::text).collect();
                names.map(Self::Only)
            }
            _ => Err(spec.nothing_asked(&KEYS[..3])),
        }
    }

    pub(super) fn sentence(&self) -> Sentence {
        let (label, words, expected) = match self {
            Self::Called(called) => ("called", called.words(), called.written.clone()),
            Self::Order(tools) => {
                let words = format!("{} are called in this order", quoted(tools));
                ("order", words, Value::from(tools.clone()))
            }
            Self::Only(tools) if tools.is_empty() => {
                let words = "no tool is called".to_owned();
                ("only", words, Value::from(tools.clone()))
            }
            Self::Only(tools) => {
                let words = format!("no tool but {} is called", quoted(tools));
                ("only", words, Value::from(tools.clone()))
            }
        };
        Sentence {
            label: format!("tool-{label}"),
            words,
            expected,
        }
    }

    pub(super) fn look(&self, subject: &Subject<'_>) -> Look {
        match self {
            Self::Called(called) => called.look(subject),
            Self::Order(tools) => {
                let calls = names(subject)?;
                let mut ahead = calls.iter();
                let holds = tools.iter().all(|tool| ahead.any(|name| name == tool));
                let actual = calls.iter().take(super::NAMED).copied().collect();
                Ok(Seen::new(holds, actual))
            }
            Self::Only(tools) => {
                let mut strange = names(subject)?;
                strange.retain(|name| !tools.iter().any(|tool| tool == name));
                let actual = strange.iter().take(super::NAMED).copied().collect();
                Ok(Seen::new(strange.is_empty(), actual))
            }
        }
    }
}

impl Called {
    fn parse(tool: String, fields: &Fields<'_>, written: Value) -> Result<Self, ConfigError> {
        let with = fields.get("with").map(|spec| parse_arguments(&spec));
        let at_most = fields.get("at_most").map(|spec| spec.count()).transpose()?;
        let at_least = match fields.get("at_least") {
            Some(spec) => {
                let count = spec.count()?;
                if at_most.is_some_and(|most| most < count) {
                    return Err(spec.error("`at_least` is more than `at_most`"));
                }
                count
            }
            // "Called" alone means at least once; `at_most: 0` means never.
            None => at_most.map_or(1, |most| most.min(1)),
        };
        Ok(Self {
            tool,
            with: with.transpose()?.unwrap_or_default(),
            at_least,
            at_most,
            written,
        })
    }

    fn words(&self) -> String {
        let tool = &self.tool;
        let with = match self.with.len() {
            0 => "",
            _ => " with the given arguments",
        };
        let times = match (self.at_least, self.at_most) {
            (_, Some(0)) => return format!("`{tool}` is not called{with}"),
            (1, None) => String::new(),
            (least, None) => format!(" at least {least} times"),
            (0 | 1, Some(most)) => format!(" at most {most} times"),
            (least, Some(most)) => format!(" {least} to {most} times"),
        };
        format!("`{tool}` is called{times}{with}")
    }

    fn look(&self, subject: &Subject<'_>) -> Look {
        let calls = names(subject)?;
        let mut count = calls.iter().filter(|name| **name == self.tool).count() as u64;
        if !self.with.is_empty() && count > 0 {
            count = self.count_with_arguments(subject)?;
        }
        let holds = count >= self.at_least && self.at_most.is_none_or(|most| count <= most);
        Ok(Seen::new(holds, Value::from(count)))
    }

    fn count_with_arguments(&self, subject: &Subject<'_>) -> Result<u64, &'static str> {
        if traced(subject).is_empty() {
            return Err("without calls in the trace the arguments of tools are unknown");
        }
        let events = subject.context.trace.iter().flat_map(|trace| &trace.events);
        Ok(events.filter(|event| self.is_call(event)).count() as u64)
    }

    fn is_call(&self, event: &TraceEvent) -> bool {
        let TraceEvent::ToolCall { name, input, .. } = event else {
            return false;
        };
        *name == self.tool && self.with.iter().all(|argument| argument.is_in(input))
    }
}

impl Argument {
    fn is_in(&self, input: &Value) -> bool {
        match &self.place {
            ArgumentPlace::Name(name) => input
                .get(name)
                .is_some_and(|value| self.expected.is_match(value)),
            ArgumentPlace::Path(path) => path
                .select(input)
                .iter()
                .any(|value| self.expected.is_match(value)),
        }
    }
}

fn parse_arguments(spec: &Spec<'_>) -> Result<Vec<Argument>, ConfigError> {
    spec.entries()?
        .into_iter()
        .map(|(key, spec)| {
            let place = if key.starts_with('$') {
                ArgumentPlace::Path(JsonPath::parse(key, &spec)?)
            } else {
                ArgumentPlace::Name(key.to_owned())
            };
            let expected = Matcher::parse(&spec)?;
            Ok(Argument { place, expected })
        })
        .collect()
}

/// The tools called, in order: from the trace where it has any, else from the result. That none was called only the
/// result can show: a trace without any may come from an agent whose calls are invisible.
fn names<'a>(subject: &Subject<'a>) -> Result<Vec<&'a str>, &'static str> {
    let traced = traced(subject);
    if !traced.is_empty() {
        return Ok(traced);
    }
    let result = subject.context.result.as_deref();
    let reported = result.and_then(|result| result.metrics.tool_calls.as_ref());
    let reported = reported.ok_or(TOOLS_UNKNOWN)?;
    Ok(reported.iter().map(|call| call.name.as_str()).collect())
}

fn traced<'a>(subject: &Subject<'a>) -> Vec<&'a str> {
    let events = subject.context.trace.iter().flat_map(|trace| &trace.events);
    let name = |event: &'a Arc<TraceEvent>| match &**event {
        TraceEvent::ToolCall { name, .. } => Some(name.as_str()),
        _ => None,
    };
    events.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{answering, error_in, scenario, score_of};
    use assize_contracts::{
        PromptResult, ScorerResult, SessionTrace, TokenBreakdown, ToolCallRecord, TraceEvent,
    };
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn call(name: &str, input: Value) -> TraceEvent {
        TraceEvent::ToolCall {
            name: name.to_owned(),
            input,
            output: Value::Null,
            duration_ms: None,
            success: Some(true),
            error: None,
            context: None,
        }
    }

    fn check(tool: Value, expected: bool) {
        let events = vec![
            call("Read", json!({"file_path": "a.py"})),
            call("Bash", json!({"command": "pytest -q", "timeout": 60})),
            call("Edit", json!({"edits": [{"old": "a", "new": "b"}]})),
            call("Bash", json!({"command": "ls"})),
        ];
        let mut context = answering("");
        let trace = SessionTrace::from_events("t".into(), events, TokenBreakdown::default());
        context.trace = Some(Arc::new(trace));
        let result = score_of(&scenario(json!([{"tool": tool}])), &context);
        assert_eq!(result.error, None);
        assert_eq!(result.success, expected, "{tool}: {:?}", result.details);
    }

    #[test]
    fn calls_are_counted() {
        check(json!({"called": "Bash"}), true);
        check(json!({"called": "bash"}), false);
        check(json!({"called": "Bash", "at_most": 1}), false);
        check(json!({"called": "Bash", "atLeast": 2, "atMost": 2}), true);
        check(json!({"called": "Write", "at_most": 3}), false);
        check(json!({"called": "Write", "at_most": 0}), true);
    }

    #[test]
    fn arguments_are_matched_by_value_pattern_and_path() {
        check(json!({"called": "Bash", "with": {"command": "ls"}}), true);
        check(
            json!({"called": "Bash", "with": {"command": {"matches": "^pytest"}}, "at_most": 1}),
            true,
        );
        check(
            json!({"called": "Bash", "with": {"command": "ls", "timeout": 60}}),
            false,
        );
        check(
            json!({"called": "Edit", "with": {"$.edits[*].new": "b"}}),
            true,
        );
        check(
            json!({"called": "Edit", "with": {"$.edits[*].new": "c"}}),
            false,
        );
        check(
            json!({"called": "Bash", "with": {"timeout": {"equals": 60}}}),
            true,
        );
    }

    #[test]
    fn order_leaves_room_for_other_calls_and_only_does_not() {
        check(json!({"order": ["Read", "Edit"]}), true);
        check(json!({"order": ["Edit", "Read"]}), false);
        check(json!({"order": ["Bash", "Bash", "Bash"]}), false);
        check(json!({"only": ["Read", "Bash", "Edit"]}), true);
        check(json!({"only": ["Read", "Bash"]}), false);
    }

    /// The score of a session of which only this is known about tools. Its trace has no calls.
    fn score_without_calls(tool_calls: Option<Vec<ToolCallRecord>>, check: Value) -> ScorerResult {
        let mut context = answering("");
        let mut result = PromptResult::default();
        result.metrics.tool_calls = tool_calls;
        context.result = Some(Arc::new(result));
        context.trace = Some(Arc::default());
        score_of(&scenario(json!([check])), &context)
    }

    #[test]
    fn calls_that_nobody_can_see_are_not_zero_calls() {
        for (check, if_none) in [
            (json!({"tool": {"called": "Bash"}}), false),
            (json!({"tool": {"called": "Bash", "at_most": 0}}), true),
            (json!({"not": {"tool": {"called": "Bash"}}}), true),
            (
                json!({"tool": {"called": "Bash", "with": {"command": "ls"}}}),
                false,
            ),
            (json!({"tool": {"only": []}}), true),
            (json!({"tool": {"order": ["Bash"]}}), false),
        ] {
            let unknown = score_without_calls(None, check.clone());
            assert_eq!(unknown.details[0].actual, None, "{check}");
            assert!(
                unknown.error.unwrap().contains("`output: events`"),
                "{check}"
            );
            let known = score_without_calls(Some(Vec::new()), check.clone());
            assert_eq!((known.success, known.error), (if_none, None), "{check}");
        }
    }

    #[test]
    fn without_calls_in_the_trace_arguments_are_unknown() {
        let events = vec![call("Bash", json!({"command": "ls"}))];
        let trace = SessionTrace::from_events("t".into(), events, TokenBreakdown::default());
        let score = |tool: &str| {
            let check = json!({"tool": {"called": tool, "with": {"command": "ls"}}});
            score_without_calls(Some(trace.tool_call_records()), check)
        };
        assert!(score("Bash").error.unwrap().contains("arguments"));
        assert_eq!(score("Read").error, None);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let path = |tool: Value| error_in(json!([{ "tool": tool }])).path.join(".");
        let called = json!({"called": "a", "at_least": 3, "at_most": 2});
        assert_eq!(path(called), "checks.0.tool.at_least");
        assert_eq!(path(json!({"order": ["a"], "only": []})), "checks.0.tool");
        assert_eq!(
            path(json!({"order": ["a"], "at_most": 2})),
            "checks.0.tool.at_most"
        );
        assert_eq!(
            path(json!({"called": "a", "with": {"$..[": 1}})),
            "checks.0.tool.with.$..["
        );
    }
}
