//! Data between the steps of a chain: where it comes from (`step:step-1.output.intent`), where it goes (`input.intent`).

use assize_contracts::{AtomicTask, InputMapping, ScenarioTask};
use serde_json::Value;

/// Keys and list positions from the outside in.
pub(super) type Path = Vec<String>;

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// The output of the step before, or a part of it.
    Previous(Path),
    /// The output of a step, or a part of it.
    Step { id: String, path: Path },
    /// A part of the chain's own input.
    Input(Path),
}

impl Source {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |reason: &str| {
            format!(
                "found `{text}`, expected `step:<id>`, `step:previous` or `input:<path>`{reason}"
            )
        };
        if let Some(rest) = text.strip_prefix("input:") {
            return match segments(rest) {
                Some(path) => Ok(Self::Input(names(path))),
                None => Err(wrong(" with names between dots")),
            };
        }
        let rest = text.strip_prefix("step:").ok_or_else(|| wrong(""))?;
        let mut parts = segments(rest).ok_or_else(|| wrong(" with names between dots"))?;
        let step = parts.remove(0);
        if parts.first().is_some_and(|part| part.name != "output") {
            return Err(wrong(
                ", then `.output` and a path into it (an id with dots is quoted: `step:\"a.b\".output`)",
            ));
        }
        let path = names(parts.into_iter().skip(1));
        Ok(match step.name == "previous" && !step.is_quoted {
            true => Self::Previous(path),
            false => Self::Step {
                id: step.name,
                path,
            },
        })
    }
}

/// The destination of a value: a path into the input of a step, empty for all of it.
pub(super) fn parse_target(text: &str) -> Result<Path, String> {
    let wrong = || format!("found `{text}`, expected `input` or `input.<path>`");
    let mut parts = segments(text).ok_or_else(wrong)?;
    match parts.remove(0) {
        first if first.name == "input" => Ok(names(parts)),
        _ => Err(wrong()),
    }
}

/// Puts one piece of data from the chain or from earlier steps into the input of a step.
pub(super) fn fill_in(
    step: &mut AtomicTask,
    mapping: &InputMapping,
    task: &ScenarioTask,
    outputs: &[Value],
) -> Result<(), String> {
    let value = fetch(mapping, task, outputs)?;
    let target = parse_target(&mapping.to)?;
    put(&mut step.input, &target, value)
        .map_err(|reason| format!("`{}` for `{}`: {reason}", mapping.from, mapping.to))
}

struct Segment {
    name: String,
    is_quoted: bool,
}

fn names(parts: impl IntoIterator<Item = Segment>) -> Path {
    parts.into_iter().map(|part| part.name).collect()
}

/// The names between dots, at least one. A name with dots is quoted.
fn segments(text: &str) -> Option<Vec<Segment>> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let (name, is_quoted, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (name, after) = quoted.split_once('"')?;
                (name, true, after)
            }
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                (&rest[..end], false, &rest[end..])
            }
        };
        if name.is_empty() {
            return None;
        }
        parts.push(Segment {
            name: name.to_owned(),
            is_quoted,
        });
        if after.is_empty() {
            return Some(parts);
        }
        rest = after.strip_prefix('.')?;
    }
}

/// The value at a path. Numbers are positions in lists.
pub(super) fn look_up<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, name| match value {
        Value::Object(map) => map.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Puts a value at a path, making objects on the way where there is nothing.
pub(super) fn put(place: &mut Value, path: &[String], value: Value) -> Result<(), String> {
    let Some((name, rest)) = path.split_first() else {
        *place = value;
        return Ok(());
    };
    if place.is_null() {
        *place = Value::Object(serde_json::Map::new());
    }
    let inner = match place {
        Value::Object(map) => map.entry(name.clone()).or_insert(Value::Null),
        Value::Array(items) => {
            let length = items.len();
            let number = name
                .parse::<usize>()
                .ok()
                .filter(|number| *number <= length);
            let number =
                number.ok_or_else(|| format!("`{name}` is no position in a list of {length}"))?;
            if number == length {
                items.push(Value::Null);
            }
            &mut items[number]
        }
        other => return Err(format!("`{name}` cannot be put into {}", kind_of(other))),
    };
    put(inner, rest, value)
}

/// The kind of a value, in words.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The mappings into the input of a step. Keys of `input_map` are ids, else names that only one step has.
pub(super) fn mappings_of(task: &ScenarioTask, step: usize) -> &[InputMapping] {
    let AtomicTask { id, name, .. } = &task.steps[step];
    let by_name = || {
        let is_unique = task
            .steps
            .iter()
            .filter(|other| other.name == *name)
            .count()
            == 1;
        let is_id = task.steps.iter().any(|other| other.id == *name);
        task.input_map.get(name).filter(|_| is_unique && !is_id)
    };
    let mappings = task.input_map.get(id).or_else(by_name);
    mappings.map_or(&[], Vec::as_slice)
}

/// The value that a mapping names, given the outputs of the steps so far. An error names both ends.
pub(super) fn fetch(
    mapping: &InputMapping,
    task: &ScenarioTask,
    outputs: &[Value],
) -> Result<Value, String> {
    let lost = |reason: String| format!("`{}` for `{}`: {reason}", mapping.from, mapping.to);
    let (whole, path, what) = match Source::parse(&mapping.from).map_err(lost)? {
        Source::Input(path) => (
            task.scenario_input(),
            path,
            "the scenario's input".to_owned(),
        ),
        Source::Previous(path) => {
            let step = outputs.len().checked_sub(1);
            let what = step.map_or("no step", |step| &task.steps[step].id);
            (outputs.last(), path, format!("the output of `{what}`"))
        }
        Source::Step { id, path } => {
            let step = task.steps.iter().position(|step| step.id == id);
            let output = step.and_then(|step| outputs.get(step));
            (output, path, format!("the output of `{id}`"))
        }
    };
    let whole = whole.ok_or_else(|| lost(format!("{what} is not there")))?;
    let found = look_up(whole, &path).cloned();
    found.ok_or_else(|| {
        lost(format!(
            "there is nothing at `{}` in {what}: {}",
            path.join("."),
            excerpt(whole)
        ))
    })
}

/// The beginning of a value as JSON.
fn excerpt(value: &Value) -> String {
    const LENGTH: usize = 200;
    let text = value.to_string();
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn path(parts: &[&str]) -> Path {
        parts.iter().map(|part| (*part).to_owned()).collect()
    }

    #[test]
    fn sources_are_steps_the_previous_step_or_the_input() {
        let check = |text: &str, expected: Source| {
            assert_eq!(Source::parse(text), Ok(expected), "{text}");
        };
        let step = |id: &str, parts: &[&str]| Source::Step {
            id: id.into(),
            path: path(parts),
        };
        check("step:previous", Source::Previous(path(&[])));
        check("step:previous.output.a", Source::Previous(path(&["a"])));
        check("step:step-1", step("step-1", &[]));
        check("step:step-1.output", step("step-1", &[]));
        check(
            "step:step-1.output.list.0.x",
            step("step-1", &["list", "0", "x"]),
        );
        check("step:\"a.b\".output.x", step("a.b", &["x"]));
        check("step:\"previous\".output", step("previous", &[]));
        check(
            "input:user.\"first.name\"",
            Source::Input(path(&["user", "first.name"])),
        );
    }

    #[test]
    fn what_is_no_source_is_refused() {
        for wrong in [
            "",
            "step:",
            "previous",
            "step:a.intent",
            "step:a.output.",
            "input:",
            "step:\"a",
            "input:a..b",
        ] {
            let error = Source::parse(wrong).unwrap_err();
            assert!(error.contains("expected `step:<id>`"), "{wrong}: {error}");
        }
    }

    #[test]
    fn values_are_put_where_they_belong() {
        let check = |mut input: Value, to: &str, expected: Value| {
            put(&mut input, &parse_target(to).unwrap(), json!("x")).unwrap();
            assert_eq!(input, expected, "{to}");
        };
        check(
            json!({"intent": null}),
            "input.intent",
            json!({"intent": "x"}),
        );
        check(json!(null), "input.a.b", json!({"a": {"b": "x"}}));
        check(json!("text"), "input", json!("x"));
        check(
            json!({"list": [1]}),
            "input.list.1",
            json!({"list": [1, "x"]}),
        );
    }

    #[test]
    fn a_path_into_text_is_an_error() {
        let mut input = json!("text");
        let error = put(&mut input, &path(&["intent"]), json!(1)).unwrap_err();
        assert_eq!(error, "`intent` cannot be put into text");
    }

    proptest! {
        #[test]
        fn any_text_is_a_source_or_refused(text in "(step:|input:)?[a-z\".0-9:]{0,20}") {
            let _ = Source::parse(&text);
            let _ = parse_target(&text);
        }
    }
}
