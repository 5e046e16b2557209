//! Interfaces of TypeScript.

use super::{Property, alternatives, description, properties, reference, simple_types};
use serde_json::Value;

const HEAD: &str = "\
// Made from the contracts in Rust by `UPDATE_SCHEMAS=1 cargo test kit_types`. Not for editing.
";

/// The specification has no null here, and neither should people have to check for it: a provider that cannot see tools or
/// time turns is the exception.
const NEVER_NULL: [(&str, &str); 2] = [("PromptMetrics", "toolCalls"), ("Turn", "durationMs")];

/// Times that are `Date`s in the specification. They go over the wire as text.
const DATES: [(&str, &str); 4] = [
    ("RunRecord", "completedAt"),
    ("RunRecord", "startedAt"),
    ("ScoreRecord", "createdAt"),
    ("TaskEvent", "timestamp"),
];

pub(super) fn generate(definitions: &[(String, Value)]) -> String {
    let mut text = HEAD.to_owned();
    for (name, schema) in definitions {
        text.push('\n');
        comment(&mut text, "", schema);
        match properties(schema) {
            Some(properties) => {
                text.push_str(&format!("export interface {name} {{\n"));
                for property in &properties {
                    comment(&mut text, "  ", property.schema);
                    let place = (name.as_str(), property.name);
                    let mut line = line(property);
                    if NEVER_NULL.contains(&place) {
                        line = line.replace(" | null", "");
                    }
                    if DATES.contains(&place) {
                        line = line.replace("Timestamp", "Date");
                    }
                    text.push_str(&format!("  {line}\n"));
                }
                text.push_str("}\n");
            }
            None => text.push_str(&format!("export type {name} = {}\n", of(schema))),
        }
    }
    text
}

fn comment(text: &mut String, indent: &str, schema: &Value) {
    if let Some(words) = description(schema) {
        let words = words
            .replace("*/", "*\\/")
            .replace("\n\n", " ")
            .replace('\n', " ");
        text.push_str(&format!("{indent}/** {words} */\n"));
    }
}

fn line(property: &Property<'_>) -> String {
    let mark = if property.is_optional { "?" } else { "" };
    format!("readonly {}{mark}: {}", property.name, of(property.schema))
}

fn of(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        return name.to_owned();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return union(values.iter().map(Value::to_string));
    }
    if let Some(choices) = alternatives(schema) {
        return union(choices.iter().map(of));
    }
    match simple_types(schema).as_slice() {
        [] => "unknown".to_owned(),
        types => union(types.iter().map(|name| simple(name, schema))),
    }
}

fn simple(name: &str, schema: &Value) -> String {
    match name {
        "integer" | "number" => "number".to_owned(),
        "array" => {
            let item = schema.get("items").map_or("unknown".to_owned(), of);
            match item.contains(' ') {
                true => format!("readonly ({item})[]"),
                false => format!("readonly {item}[]"),
            }
        }
        "object" => object(schema),
        other => other.to_owned(),
    }
}

fn object(schema: &Value) -> String {
    match properties(schema) {
        Some(properties) => {
            let lines: Vec<String> = properties.iter().map(line).collect();
            format!("{{ {} }}", lines.join("; "))
        }
        None => {
            let value = schema
                .get("additionalProperties")
                .map_or("unknown".to_owned(), of);
            format!("Readonly<Record<string, {value}>>")
        }
    }
}

fn union(kinds: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for kind in kinds.filter(|kind| !kind.is_empty()) {
        if !different.contains(&kind) {
            different.push(kind);
        }
    }
    different.join(" | ")
}
