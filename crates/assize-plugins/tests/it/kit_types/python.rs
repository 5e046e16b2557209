//! Typed dictionaries of Python.

use super::{Property, alternatives, description, properties, reference, simple_types};
use serde_json::Value;

const HEAD: &str = "\
\"\"\"Made from the contracts in Rust by `UPDATE_SCHEMAS=1 cargo test kit_types`. Not for editing.\"\"\"

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict, Union
";

pub(super) fn generate(definitions: &[(String, Value)]) -> String {
    let mut text = HEAD.to_owned();
    for (name, schema) in definitions {
        match properties(schema) {
            Some(properties) => dictionary(&mut text, name, schema, &properties),
            None => choice(&mut text, name, schema),
        }
    }
    text
}

fn dictionary(text: &mut String, name: &str, schema: &Value, properties: &[Property<'_>]) {
    // Keywords cannot be names of attributes.
    if properties
        .iter()
        .any(|property| ["from", "pass"].contains(&property.name))
    {
        let fields: Vec<String> = properties
            .iter()
            .map(|property| format!("\"{}\": {:?}", property.name, field(property)))
            .collect();
        text.push_str(&format!(
            "\n\n{name} = TypedDict(\"{name}\", {{{}}})\n",
            fields.join(", ")
        ));
        return;
    }
    text.push_str(&format!("\n\nclass {name}(TypedDict):\n"));
    let words = description(schema).unwrap_or_default();
    let words = words
        .replace('\\', "\\\\")
        .replace("\n\n", " ")
        .replace('\n', " ");
    text.push_str(&format!("    \"\"\"{words}\"\"\"\n"));
    if !properties.is_empty() {
        text.push('\n');
    }
    for property in properties {
        if let Some(words) = description(property.schema) {
            text.push_str(&format!(
                "    #: {}\n",
                words.replace("\n\n", " ").replace('\n', " ")
            ));
        }
        text.push_str(&format!("    {}: {}\n", property.name, field(property)));
    }
}

/// Objects that have no name of their own get one from what distinguishes them.
fn choice(text: &mut String, name: &str, schema: &Value) {
    let mut kinds = Vec::new();
    for alternative in alternatives(schema).into_iter().flatten() {
        match properties(alternative) {
            Some(properties) => {
                let tag = alternative
                    .pointer("/properties/type/const")
                    .and_then(Value::as_str);
                let own = format!("{name}{}", camel(tag.unwrap_or("Object")));
                dictionary(text, &own, alternative, &properties);
                kinds.push(format!("\"{own}\""));
            }
            None => kinds.push(of(alternative)),
        }
    }
    let kind = match kinds.is_empty() {
        true => of(schema),
        false => format!("Union[{}]", kinds.join(", ")),
    };
    text.push_str(&format!("\n\n{name} = {kind}\n"));
}

fn camel(words: &str) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + rest
    };
    words.split('_').map(capital).collect()
}

fn field(property: &Property<'_>) -> String {
    match property.is_optional {
        true => format!("NotRequired[{}]", of(property.schema)),
        false => of(property.schema),
    }
}

fn of(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        return name.to_owned();
    }
    if let Some(value) = schema.get("const") {
        return format!("Literal[{value}]");
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return format!("Literal[{}]", values.join(", "));
    }
    let kinds: Vec<String> = match alternatives(schema) {
        Some(choices) => choices.iter().map(of).collect(),
        None => simple_types(schema)
            .iter()
            .map(|name| simple(name, schema))
            .collect(),
    };
    match kinds.as_slice() {
        [] => "Any".to_owned(),
        [kind] => kind.clone(),
        kinds => format!("Union[{}]", kinds.join(", ")),
    }
}

fn simple(name: &str, schema: &Value) -> String {
    match name {
        "string" => "str".to_owned(),
        "integer" => "int".to_owned(),
        "number" => "float".to_owned(),
        "boolean" => "bool".to_owned(),
        "null" => "None".to_owned(),
        "array" => format!("list[{}]", schema.get("items").map_or("Any".to_owned(), of)),
        _ => {
            let value = schema
                .get("additionalProperties")
                .map_or("Any".to_owned(), of);
            format!("dict[str, {value}]")
        }
    }
}
