//! Checks a chain before anything runs.

use super::flow::{Path, Source, look_up, mappings_of, parse_target, put};
use assize_contracts::{AtomicTask, ConfigError, InputMapping, ScenarioTask};
use serde_json::Value;
use std::collections::BTreeSet;

/// The JSON Schemas that runners declare for the types they serve.
pub trait DeclaredSchemas {
    /// The input schema of a type's runner.
    fn input(&self, task_type: &str) -> Option<&Value>;

    /// The output schema of a type's runner.
    fn output(&self, task_type: &str) -> Option<&Value>;
}

/// Nothing is declared.
impl DeclaredSchemas for () {
    fn input(&self, _: &str) -> Option<&Value> {
        None
    }

    fn output(&self, _: &str) -> Option<&Value> {
        None
    }
}

/// Unknown steps, forward references, duplicate ids, impossible paths, and types that do not fit the declared schemas.
pub fn check_flow(task: &ScenarioTask, schemas: &dyn DeclaredSchemas) -> Vec<ConfigError> {
    let mut check = Check {
        task,
        schemas,
        errors: Vec::new(),
    };
    check.steps();
    check.keys();
    for step in 0..task.steps.len() {
        check.step(step);
    }
    check.errors
}

struct Check<'a> {
    task: &'a ScenarioTask,
    schemas: &'a dyn DeclaredSchemas,
    errors: Vec<ConfigError>,
}

/// The known part of a value before it exists.
enum Known<'a> {
    Value(&'a Value),
    Schema(&'a Value),
    Nothing,
}

impl<'a> Check<'a> {
    fn report(&mut self, path: &[&str], message: String, hint: Option<String>) {
        self.errors.push(ConfigError {
            hint,
            ..ConfigError::at(path.iter().copied(), message)
        });
    }

    fn steps(&mut self) {
        let task = self.task;
        if task.steps.is_empty() {
            self.report(
                &["steps"],
                "found no steps, expected at least one".to_owned(),
                None,
            );
        }
        for (number, step) in task.steps.iter().enumerate() {
            if task.steps[..number].iter().any(|other| other.id == step.id) {
                let message = format!("the step id `{}` is given twice", step.id);
                self.report(&["steps", &number.to_string(), "id"], message, None);
            }
        }
    }

    /// Keys of `input_map` are ids, else names that only one step has.
    fn keys(&mut self) {
        let steps = &self.task.steps;
        for key in self.task.input_map.keys() {
            if steps.iter().any(|step| step.id == *key) {
                continue;
            }
            let message = match steps.iter().filter(|step| step.name == *key).count() {
                1 => continue,
                0 => format!("unknown step `{key}`"),
                count => format!("{count} steps are named `{key}`, so an id is needed"),
            };
            let hint = known_steps(steps);
            self.report(&["input_map", key], message, Some(hint));
        }
    }

    fn step(&mut self, step: usize) {
        let mut input = self.task.steps[step].input.clone();
        let mut written = BTreeSet::new();
        let key = self.key_of(step);
        for (number, mapping) in mappings_of(self.task, step).iter().enumerate() {
            let number = number.to_string();
            let place = ["input_map", &*key, &*number];
            let source = self.source(step, mapping, &place);
            let at_target = [place[0], place[1], place[2], "to"];
            let target = match parse_target(&mapping.to) {
                Ok(target) => target,
                Err(message) => {
                    self.report(&at_target, message, None);
                    continue;
                }
            };
            if !written.insert(target.clone()) {
                let message = format!("`{}` is written twice", mapping.to);
                self.report(&at_target, message, None);
            }
            if let Err(reason) = put(&mut input, &target, Value::Null) {
                let message = format!("`{}` is impossible: {reason}", mapping.to);
                self.report(&at_target, message, None);
            }
            if let Some(source) = source {
                self.fit(step, mapping, &target, &source, &at_target);
            }
        }
    }

    fn key_of(&self, step: usize) -> String {
        let step = &self.task.steps[step];
        match self.task.input_map.contains_key(&step.id) {
            true => step.id.clone(),
            false => step.name.clone(),
        }
    }

    /// The known part of the value that a mapping carries. `None` when the mapping is broken.
    fn source(
        &mut self,
        step: usize,
        mapping: &InputMapping,
        place: &[&str; 3],
    ) -> Option<Known<'a>> {
        let at = [place[0], place[1], place[2], "from"];
        let source = match Source::parse(&mapping.from) {
            Ok(source) => source,
            Err(message) => {
                self.report(&at, message, None);
                return None;
            }
        };
        let (origin, path) = match source {
            Source::Input(path) => return self.of_input(mapping, &path, &at),
            Source::Previous(path) => match step.checked_sub(1) {
                Some(previous) => (previous, path),
                None => {
                    let message = format!("`{}`: there is no step before the first", mapping.from);
                    self.report(&at, message, None);
                    return None;
                }
            },
            Source::Step { id, path } => (self.earlier(step, &id, mapping, &at)?, path),
        };
        let origin = &self.task.steps[origin];
        let Some(schema) = self.schemas.output(&origin.r#type) else {
            return Some(Known::Nothing);
        };
        match descend(schema, schema, &path) {
            Ok(Some(inner)) => Some(Known::Schema(inner)),
            Ok(None) => Some(Known::Nothing),
            Err(reason) => {
                let message = format!(
                    "`{}` is impossible: {reason} by the output schema of `{}`",
                    mapping.from, origin.r#type
                );
                self.report(&at, message, None);
                None
            }
        }
    }

    /// The step of that id, if it runs before this one.
    fn earlier(
        &mut self,
        step: usize,
        id: &str,
        mapping: &InputMapping,
        at: &[&str],
    ) -> Option<usize> {
        let steps = &self.task.steps;
        let found = steps.iter().position(|other| other.id == id);
        let (message, hint) = match found {
            Some(origin) if origin < step => return Some(origin),
            Some(origin) => {
                let this = &steps[step].id;
                let when = if origin == step {
                    "itself"
                } else {
                    "a later step"
                };
                let message = format!("`{}`: `{this}` cannot get data from {when}", mapping.from);
                (message, None)
            }
            None => {
                let message = format!("`{}`: unknown step `{id}`", mapping.from);
                let meant = steps.iter().find(|step| step.name == id);
                let hint = match meant {
                    Some(step) => format!("did you mean `step:{}`?", step.id),
                    None => known_steps(steps),
                };
                (message, Some(hint))
            }
        };
        self.report(at, message, hint);
        None
    }

    fn of_input(
        &mut self,
        mapping: &InputMapping,
        path: &[String],
        at: &[&str],
    ) -> Option<Known<'a>> {
        let input = self.task.scenario_input();
        let found = input.and_then(|input| look_up(input, path));
        if found.is_none() {
            let reason = match input {
                Some(_) => "names nothing in the scenario's input",
                None => "needs the scenario to have an `input`",
            };
            self.report(at, format!("`{}` {reason}", mapping.from), None);
        }
        found.map(Known::Value)
    }

    /// Checks that the input fits the schema of the step's runner.
    fn fit(
        &mut self,
        step: usize,
        mapping: &InputMapping,
        target: &Path,
        source: &Known<'_>,
        at: &[&str],
    ) {
        let task_type = &self.task.steps[step].r#type;
        let Some(schema) = self.schemas.input(task_type) else {
            return;
        };
        let wanted = match descend(schema, schema, target) {
            Ok(Some(wanted)) => wanted,
            Ok(None) => return,
            Err(reason) => {
                let message = format!(
                    "`{}` is impossible: {reason} by the input schema of `{task_type}`",
                    mapping.to
                );
                self.report(at, message, None);
                return;
            }
        };
        let found: Vec<&str> = match source {
            Known::Nothing => return,
            Known::Value(value) => vec![type_of(value)],
            Known::Schema(schema) => types(schema),
        };
        let wanted = types(wanted);
        let is_same = |a: &str, b: &str| a == b || (a, b) == ("integer", "number");
        let overlap = |a: &&str| wanted.iter().any(|b| is_same(a, b) || is_same(b, a));
        if !found.is_empty() && !wanted.is_empty() && !found.iter().any(overlap) {
            let message = format!(
                "`{}` gives {}, but `{}` of `{task_type}` takes {}",
                mapping.from,
                found.join(" or "),
                mapping.to,
                wanted.join(" or ")
            );
            self.report(at, message, None);
        }
    }
}

fn known_steps(steps: &[AtomicTask]) -> String {
    let ids: Vec<String> = steps.iter().map(|step| format!("`{}`", step.id)).collect();
    format!("known steps are {}", ids.join(", "))
}

/// The schema of a part. `None` where the schema leaves it open, an error where it rules it out.
fn descend<'a>(
    root: &'a Value,
    schema: &'a Value,
    path: &[String],
) -> Result<Option<&'a Value>, String> {
    let Some(schema) = resolved(root, schema) else {
        return Ok(None);
    };
    let Some((name, rest)) = path.split_first() else {
        return Ok(Some(schema));
    };
    let types = types(schema);
    let may_be = |kind: &str| types.is_empty() || types.contains(&kind);
    if may_be("object")
        && let Some(inner) = schema.get("properties").and_then(|known| known.get(name))
    {
        return descend(root, inner, rest);
    }
    if may_be("array") && name.parse::<usize>().is_ok() {
        return match schema.get("items") {
            Some(items) => descend(root, items, rest),
            None => Ok(None),
        };
    }
    if !may_be("object") {
        return Err(format!(
            "there can be nothing at `{name}` of {}",
            types.join(" or ")
        ));
    }
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
        && schema.get("patternProperties").is_none();
    match is_closed {
        true => Err(format!("there is no `{name}`")),
        false => Ok(None),
    }
}

/// Follows a reference inside the document. `None` for schemas that combine several others.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> Option<&'a Value> {
    const COMBINED: [&str; 6] = ["anyOf", "oneOf", "allOf", "if", "not", "$dynamicRef"];
    let mut schema = schema;
    for _ in 0..8 {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => schema = root.pointer(reference.strip_prefix('#')?)?,
            None if COMBINED.iter().any(|key| schema.get(key).is_some()) => return None,
            None => return Some(schema),
        }
    }
    None
}

/// The types a schema allows. Empty: any.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Schemas {
        output: Value,
        input: Value,
    }

    impl DeclaredSchemas for Schemas {
        fn input(&self, task_type: &str) -> Option<&Value> {
            (task_type == "b").then_some(&self.input)
        }

        fn output(&self, task_type: &str) -> Option<&Value> {
            (task_type == "a").then_some(&self.output)
        }
    }

    fn chain(input_map: Value) -> ScenarioTask {
        let step = |id: &str, kind: &str, input: Value| json!({"id": id, "name": format!("{id}-name"), "type": kind, "input": input, "metadata": {}});
        serde_json::from_value(json!({
            "id": "chain", "name": "chain", "description": "", "metadata": {},
            "input": {"user": "me", "age": 7},
            "steps": [step("one", "a", json!("text")), step("two", "b", json!({"intent": null})), step("three", "c", json!("text"))],
            "input_map": input_map,
        }))
        .unwrap()
    }

    fn check(input_map: Value, expected: &str) {
        let schemas = Schemas {
            output: json!({"type": "object", "properties": {"intent": {"type": "string"}, "sure": {"type": "number"}}, "additionalProperties": false}),
            input: json!({"type": "object", "properties": {"intent": {"type": "string"}, "age": {"type": "number"}}}),
        };
        let errors = check_flow(&chain(input_map.clone()), &schemas);
        let messages: Vec<&str> = errors.iter().map(|error| &*error.message).collect();
        match expected.is_empty() {
            true => assert!(messages.is_empty(), "{input_map}: {messages:?}"),
            false => assert!(
                messages.len() == 1 && messages[0].contains(expected),
                "{input_map}: {messages:?}, expected {expected}"
            ),
        }
    }

    fn into(step: &str, from: &str, to: &str) -> Value {
        json!({step: [{"from": from, "to": to}]})
    }

    #[test]
    fn a_chain_that_can_work_has_no_problems() {
        check(into("two", "step:one.output.intent", "input.intent"), "");
        check(
            into("two-name", "step:previous.output.intent", "input.intent"),
            "",
        );
        check(into("two", "input:age", "input.age"), "");
        check(into("three", "step:two.output.anything", "input"), "");
    }

    #[test]
    fn what_cannot_work_is_found_before_anything_runs() {
        check(into("four", "step:one", "input"), "unknown step `four`");
        check(
            into("two", "step:zero.output.x", "input.x"),
            "unknown step `zero`",
        );
        check(
            into("two", "step:three", "input.x"),
            "cannot get data from a later step",
        );
        check(
            into("two", "step:two", "input.x"),
            "cannot get data from itself",
        );
        check(
            into("one", "step:previous", "input"),
            "there is no step before the first",
        );
        check(
            into("two", "input:nobody", "input.x"),
            "names nothing in the scenario's input",
        );
        check(
            into("three", "step:two.output", "input.path"),
            "cannot be put into text",
        );
        check(into("two", "step:one.intent", "input.x"), "then `.output`");
        check(
            into("two", "step:one", "output.x"),
            "expected `input` or `input.<path>`",
        );
    }

    #[test]
    fn paths_and_types_are_held_against_declared_schemas() {
        check(
            into("two", "step:one.output.intention", "input.intent"),
            "there is no `intention`",
        );
        check(
            into("two", "step:one.output.intent.deeper", "input.intent"),
            "there can be nothing at `deeper` of string",
        );
        check(
            into("two", "step:one.output.sure", "input.intent"),
            "gives number, but `input.intent` of `b` takes string",
        );
        check(
            into("two", "input:user", "input.age"),
            "gives string, but `input.age` of `b` takes number",
        );
    }

    #[test]
    fn two_steps_cannot_have_one_id() {
        let mut task = chain(json!({}));
        task.steps[2].id = "one".into();
        let errors = check_flow(&task, &());
        assert_eq!(errors[0].message, "the step id `one` is given twice");
        assert_eq!(errors[0].path, ["steps", "2", "id"]);
    }
}
