//! The kits' types are made from the schema of the protocol; what is checked in is what would be made now.

mod python;
mod typescript;

use serde_json::{Map, Value};
use std::path::Path;

/// The definitions of the protocol's schema, sorted by name.
fn definitions() -> Vec<(String, Value)> {
    let schema = serde_json::to_value(assize_plugins::protocol::schema()).unwrap();
    let definitions = schema["$defs"].as_object().unwrap().clone();
    let mut sorted: Vec<_> = definitions.into_iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    sorted
}

/// A property of an object.
struct Property<'a> {
    name: &'a str,
    schema: &'a Value,
    /// It may be missing. A field with a default is always written, so readers can rely on it.
    is_optional: bool,
}

fn properties(object: &Value) -> Option<Vec<Property<'_>>> {
    let properties: &Map<String, Value> = object.get("properties")?.as_object()?;
    let required: Vec<&str> = match object.get("required").and_then(Value::as_array) {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    Some(
        properties
            .iter()
            .map(|(name, schema)| Property {
                name,
                schema,
                is_optional: !required.contains(&name.as_str()) && schema.get("default").is_none(),
            })
            .collect(),
    )
}

fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// The alternatives of a choice.
fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema
        .get("anyOf")
        .or_else(|| schema.get("oneOf"))?
        .as_array()
}

fn description(schema: &Value) -> Option<&str> {
    schema.get("description")?.as_str()
}

/// The types of a schema without structure: `["number", "null"]`.
fn simple_types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn check(path: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../sdk")
        .join(path);
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, made).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == made,
        "{} differs from the contracts; `UPDATE_SCHEMAS=1 cargo test kit_types` writes it anew",
        path.display()
    );
}

#[test]
fn the_schema_of_the_protocol_is_checked_in() {
    let schema = serde_json::to_string_pretty(&assize_plugins::protocol::schema()).unwrap();
    check(
        "../schemas/plugin-protocol.schema.json",
        &format!("{schema}\n"),
    );
}

#[test]
fn the_types_of_the_typescript_kit_are_those_of_the_contracts() {
    check(
        "typescript/src/records.ts",
        &typescript::generate(&definitions()),
    );
}

#[test]
fn the_types_of_the_python_kit_are_those_of_the_contracts() {
    check(
        "python/assize/records.py",
        &python::generate(&definitions()),
    );
}
