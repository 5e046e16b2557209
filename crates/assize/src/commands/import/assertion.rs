//! Assertions of other tools as checks or criteria.

use serde_json::{Value, json};

/// The translation of an assertion.
#[derive(Debug, PartialEq)]
pub(super) enum Made {
    /// Checks that a program makes.
    Checks(Vec<Value>),
    /// A criterion for a judge.
    Criterion(String),
    /// Nothing: the reason why.
    Nothing(String),
}

/// An assertion by its type and value. `not-` before a type negates it.
pub(super) fn made_of(assertion: &Value) -> Made {
    let text = |key: &str| assertion.get(key).and_then(Value::as_str);
    let kind = text("type").unwrap_or_default().to_owned();
    let (negated, kind) = match kind.strip_prefix("not-") {
        Some(kind) => (true, kind.to_owned()),
        None => (false, kind),
    };
    let value = ["value", "text", "pattern", "expected"]
        .iter()
        .find_map(|key| assertion.get(key))
        .unwrap_or(&Value::Null);
    if assertion.get("transform").is_some() {
        return Made::Nothing(format!("`{kind}` looks at the output after a `transform`"));
    }
    let made = of_kind(&kind, value, assertion);
    match made {
        // Not all of them is another thing than none of them.
        Made::Checks(checks) if negated && checks.len() > 1 => {
            Made::Nothing(format!("`not-{kind}` of several texts has no equivalent"))
        }
        Made::Checks(checks) => {
            let finished = checks
                .into_iter()
                .map(|check| finished(check, negated, assertion));
            Made::Checks(finished.collect())
        }
        Made::Criterion(_) if negated => Made::Nothing(format!(
            "the negation of `{kind}` cannot be judged by a criterion"
        )),
        made => made,
    }
}

/// Keys of an assertion that say something which no check and no criterion has.
pub(super) fn unused_keys(assertion: &Value) -> Vec<String> {
    const KNOWN: [&str; 25] = [
        "type",
        "value",
        "text",
        "pattern",
        "expected",
        "threshold",
        "weight",
        "min",
        "max",
        "path",
        "file",
        "tool",
        "name",
        "args",
        "input",
        "skill",
        "tools",
        "order",
        "rubric",
        "prompt",
        "criteria",
        "description",
        "id",
        "transform",
        "assert",
    ];
    let kind = assertion["type"].as_str().unwrap_or("the assertion");
    let keys = assertion.as_object().into_iter().flat_map(|map| map.keys());
    let unknown = keys.filter(|key| !KNOWN.contains(&key.as_str()));
    let mut unused: Vec<String> = unknown
        .map(|key| format!("`{key}` of `{kind}` has no equivalent"))
        .collect();
    let is_whole = |weight: &Value| weight.as_u64().is_some_and(|weight| weight <= 1000);
    if let Some(weight) = assertion.get("weight").filter(|weight| !is_whole(weight)) {
        unused.push(format!(
            "the weight {weight} of `{kind}`: weights are whole numbers up to 1000"
        ));
    }
    unused
}

/// The check with its weight, name and negation.
fn finished(check: Value, negated: bool, assertion: &Value) -> Value {
    let mut check = match negated {
        true => json!({ "not": check }),
        false => check,
    };
    if let Some(weight) = assertion
        .get("weight")
        .and_then(Value::as_u64)
        .filter(|n| (1..=1000).contains(n))
    {
        check["weight"] = weight.into();
    }
    if assertion.get("weight").and_then(Value::as_u64) == Some(0) {
        check["required"] = false.into();
    }
    check
}

fn of_kind(kind: &str, value: &Value, assertion: &Value) -> Made {
    match kind {
        _ if is_template(value) => {
            Made::Nothing(format!("the value of `{kind}` is code or a file"))
        }
        "contains" | "contains-all" | "contains-any" | "icontains" | "icontains-all"
        | "icontains-any" => text_checks(kind, value),
        "equals" | "starts-with" | "regex" | "matches" if value.is_null() => {
            Made::Nothing(format!("`{kind}` has no value"))
        }
        "equals" => match value {
            Value::Object(_) | Value::Array(_) => one(json!({"output": {"json": value}})),
            text => one(json!({"output": {"equals": as_text(text)}})),
        },
        "starts-with" => one(matches(&format!("^{}", regex::escape(&as_text(value))))),
        "regex" | "matches" => match as_text(value) {
            pattern if regex::Regex::new(&pattern).is_ok() => regex_check(&pattern, assertion),
            pattern => Made::Nothing(format!(
                "`{pattern}` is a regular expression of another language"
            )),
        },
        "is-json" => match value {
            Value::Object(_) => one(json!({"output": {"schema": value}})),
            Value::Null => one(json!({"output": {"json": true}})),
            _ => Made::Nothing("the schema of `is-json` is no object".to_owned()),
        },
        "cost" => limit_check(kind, "cost_usd", assertion),
        "latency" => limit_check(kind, "wall_ms", assertion),
        "file_exists" | "file-exists" => match text_of(assertion, &["path", "file", "value"]) {
            Some(path) => one(json!({"file": {"path": path, "exists": true}})),
            None => Made::Nothing(format!("`{kind}` names no path")),
        },
        "tool_used" | "tool-used" => tool_used(assertion),
        "tool_order" | "tool-order" => tool_order(kind, assertion),
        "skill-used" | "skill_used" => match text_of(assertion, &["skill", "value", "name"]) {
            Some(skill) => one(json!({"skill": {"used": skill}, "required": false})),
            None => Made::Nothing(format!("`{kind}` names no skill")),
        },
        "llm"
        | "llm-rubric"
        | "g-eval"
        | "model-graded-closedqa"
        | "factuality"
        | "model-graded-factuality"
        | "answer-relevance"
        | "context-faithfulness" => criterion(kind, assertion),
        "baseline" => Made::Nothing(
            "`baseline` compares with a run without the plugin; write `with: SKILL` in the suite"
                .to_owned(),
        ),
        "" => Made::Nothing("the assertion has no type".to_owned()),
        other => Made::Nothing(format!("`{other}` has no equivalent")),
    }
}

fn one(check: Value) -> Made {
    Made::Checks(vec![check])
}

fn matches(pattern: &str) -> Value {
    json!({"output": {"matches": pattern}})
}

/// Texts that the answer contains: `contains`, of any case with `i` before it, of all or any with `-all` or `-any` after it.
fn text_checks(kind: &str, value: &Value) -> Made {
    let is_any = kind.ends_with("-any");
    let texts = texts_in(value, is_any || kind.ends_with("-all"));
    if texts.is_empty() {
        return Made::Nothing(format!("`{kind}` names no text"));
    }
    let case = if kind.starts_with('i') { "(?i)" } else { "" };
    let escaped = texts.iter().map(|text| regex::escape(text));
    if is_any {
        let any = escaped.collect::<Vec<String>>().join("|");
        return one(matches(&format!("{case}{any}")));
    }
    Made::Checks(match case {
        "" => (texts.iter())
            .map(|text| json!({"output": {"contains": text}}))
            .collect(),
        _ => escaped
            .map(|text| matches(&format!("{case}{text}")))
            .collect(),
    })
}

/// The texts of a value that are not empty. A list may be written with commas.
fn texts_in(value: &Value, is_list: bool) -> Vec<String> {
    let texts = match value {
        Value::Array(items) => items.iter().map(as_text).collect(),
        Value::Null => Vec::new(),
        Value::String(list) if is_list => {
            list.split(',').map(|text| text.trim().to_owned()).collect()
        }
        other => vec![as_text(other)],
    };
    texts.into_iter().filter(|text| !text.is_empty()).collect()
}

fn limit_check(kind: &str, key: &str, assertion: &Value) -> Made {
    match number(assertion, &["threshold", "value", "max"]) {
        Some(most) => one(json!({"limit": {key: most}})),
        None => Made::Nothing(format!("`{kind}` names no threshold")),
    }
}

fn tool_order(kind: &str, assertion: &Value) -> Made {
    let mut keys = ["tools", "order", "value"].iter();
    match keys.find_map(|key| assertion.get(key)?.as_array()) {
        Some(tools) => one(json!({"tool": {"order": tools}})),
        None => Made::Nothing(format!("`{kind}` names no tools")),
    }
}

/// A rubric for a judge.
fn criterion(kind: &str, assertion: &Value) -> Made {
    let keys = [
        "value",
        "rubric",
        "prompt",
        "criteria",
        "text",
        "description",
    ];
    match text_of(assertion, &keys).or_else(|| sentences(assertion, &keys)) {
        Some(text) if kind.contains("factuality") => {
            Made::Criterion(format!("The answer agrees with this reference: {text}"))
        }
        Some(text) => Made::Criterion(text),
        None => Made::Nothing(format!("`{kind}` says nothing to judge by")),
    }
}

/// A pattern for the answer, or for a file where one is named.
fn regex_check(pattern: &str, assertion: &Value) -> Made {
    let target = text_of(assertion, &["file", "path"]);
    one(match target {
        Some(path) => json!({"file": {"path": path, "matches": pattern}}),
        None => matches(pattern),
    })
}

/// A call of the tool for skills is the use of a skill, which a mode without it cannot show: it decides nothing.
fn tool_used(assertion: &Value) -> Made {
    let Some(tool) = text_of(assertion, &["tool", "name", "value"]) else {
        return Made::Nothing("`tool_used` names no tool".to_owned());
    };
    let (least, most) = (assertion["min"].as_u64(), assertion["max"].as_u64());
    let skill = text_of(assertion, &["skill"])
        .or_else(|| text_of(&assertion["args"], &["skill", "name"]))
        .or_else(|| text_of(&assertion["input"], &["skill", "name"]));
    if tool.eq_ignore_ascii_case("skill") {
        let mut check = match (skill, most) {
            (Some(skill), Some(0)) => json!({"skill": {"unused": skill}}),
            (Some(skill), _) => json!({"skill": {"used": skill}}),
            (None, _) => tool_check(&tool, least, most),
        };
        check["required"] = false.into();
        return Made::Checks(vec![check]);
    }
    Made::Checks(vec![tool_check(&tool, least, most)])
}

fn tool_check(tool: &str, least: Option<u64>, most: Option<u64>) -> Value {
    let mut asked = json!({"called": tool});
    if let Some(least) = least {
        asked["at_least"] = least.into();
    }
    if let Some(most) = most {
        asked["at_most"] = most.into();
    }
    json!({ "tool": asked })
}

fn text_of(value: &Value, keys: &[&str]) -> Option<String> {
    let found = keys.iter().find_map(|key| value.get(key)?.as_str());
    found
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

/// Several sentences that one judge is to hold together.
fn sentences(value: &Value, keys: &[&str]) -> Option<String> {
    let found = keys.iter().find_map(|key| value.get(key)?.as_array())?;
    let texts: Option<Vec<&str>> = found.iter().map(Value::as_str).collect();
    texts
        .filter(|texts| !texts.is_empty())
        .map(|texts| texts.join("\n"))
}

fn number(value: &Value, keys: &[&str]) -> Option<f64> {
    keys.iter().find_map(|key| value.get(key)?.as_f64())
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Files and code are not read.
fn is_template(value: &Value) -> bool {
    let is_code = |text: &str| {
        text.starts_with("file://") || text.contains("{%") || text.starts_with("javascript:")
    };
    match value {
        Value::String(text) => is_code(text),
        Value::Array(items) => items.iter().any(is_template),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(assertion: Value) -> Value {
        match made_of(&assertion) {
            Made::Checks(checks) => checks.into(),
            other => panic!("{assertion}: {other:?}"),
        }
    }

    #[test]
    fn assertions_with_an_equivalent_become_checks() {
        for (assertion, expected) in [
            (
                json!({"type": "contains", "value": "a"}),
                json!([{"output": {"contains": "a"}}]),
            ),
            (
                json!({"type": "not-contains", "value": "a"}),
                json!([{"not": {"output": {"contains": "a"}}}]),
            ),
            (
                json!({"type": "contains-all", "value": ["a", "b"]}),
                json!([{"output": {"contains": "a"}}, {"output": {"contains": "b"}}]),
            ),
            (
                json!({"type": "icontains", "value": "a.b"}),
                json!([{"output": {"matches": "(?i)a\\.b"}}]),
            ),
            (
                json!({"type": "contains-any", "value": ["a", "b+"]}),
                json!([{"output": {"matches": "a|b\\+"}}]),
            ),
            (
                json!({"type": "latency", "threshold": 500}),
                json!([{"limit": {"wall_ms": 500.0}}]),
            ),
            (
                json!({"type": "tool_used", "tool": "Bash", "min": 1, "max": 3}),
                json!([{"tool": {"called": "Bash", "at_least": 1, "at_most": 3}}]),
            ),
            (
                json!({"type": "tool_used", "tool": "Skill", "skill": "x"}),
                json!([{"skill": {"used": "x"}, "required": false}]),
            ),
            (
                json!({"type": "file_exists", "path": "o.txt"}),
                json!([{"file": {"path": "o.txt", "exists": true}}]),
            ),
            (
                json!({"type": "equals", "value": "a", "weight": 2}),
                json!([{"output": {"equals": "a"}, "weight": 2}]),
            ),
        ] {
            assert_eq!(checks(assertion.clone()), expected, "{assertion}");
        }
    }

    #[test]
    fn what_needs_a_judge_is_a_criterion_and_the_rest_is_listed() {
        let rubric = json!({"type": "llm-rubric", "value": "is polite"});
        assert_eq!(made_of(&rubric), Made::Criterion("is polite".to_owned()));
        for kind in ["javascript", "python", "similar", "webhook", ""] {
            let made = made_of(&json!({"type": kind, "value": "x"}));
            assert!(matches!(made, Made::Nothing(_)), "{kind}: {made:?}");
        }
    }
}
