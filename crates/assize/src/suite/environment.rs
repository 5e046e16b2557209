//! `${env:NAME}`: the only interpolation there is. Values go to agents and are kept out of every record.

use super::document::Document;
use super::file_error::FileError;
use assize_secrets::Secrets;
use serde_json::Value;

/// The document with values of the environment put in, and what they are.
pub(super) fn interpolate(document: Document) -> Result<(Document, Secrets), Vec<FileError>> {
    let secrets = Secrets::default();
    let mut errors = Vec::new();
    let mut value = document.value().clone();
    let mut keys = Vec::new();
    fill_in(&mut value, &mut keys, &mut |keys, text| {
        replace(text, &secrets).map_err(|message| {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            errors.push(document.error(&keys, message.0).hint(message.1));
        })
    });
    if errors.is_empty() {
        Ok((document.with_value(value), secrets))
    } else {
        Err(errors)
    }
}

fn fill_in(
    value: &mut Value,
    keys: &mut Vec<String>,
    replace: &mut impl FnMut(&[String], &str) -> Result<String, ()>,
) {
    match value {
        Value::String(text) if text.contains("${") => {
            if let Ok(filled) = replace(keys, text) {
                *text = filled;
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter_mut().enumerate() {
                keys.push(number.to_string());
                fill_in(item, keys, replace);
                keys.pop();
            }
        }
        Value::Object(map) => {
            for (key, item) in map.iter_mut() {
                keys.push(key.clone());
                fill_in(item, keys, replace);
                keys.pop();
            }
        }
        _ => {}
    }
}

/// A message and a hint.
struct Wrong(String, String);

fn replace(text: &str, secrets: &Secrets) -> Result<String, Wrong> {
    const START: &str = "${env:";
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(START) {
        let Some((name, after)) = after.split_once('}') else {
            let message = format!("`{START}` is never closed");
            return Err(Wrong(message, "write `${env:NAME}`".to_owned()));
        };
        let value = std::env::var(name).map_err(|_| {
            Wrong(
                format!("the environment variable `{name}` is not set"),
                format!("set it: `export {name}=…`"),
            )
        })?;
        filled.push_str(before);
        filled.push_str(&value);
        secrets.add(name, value);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}
