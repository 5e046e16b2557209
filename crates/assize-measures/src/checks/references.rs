//! Files that a scenario's checks refer to: schemas are read into the checks, so that a stored run can be scored again
//! without them, and files to be placed get their whole path.

use super::json::Schema;
use crate::spec::Spec;
use assize_contracts::{BaseScenario, ConfigError};
use serde_json::Value;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;

const SCHEMA_SIZE: u64 = 4 << 20;

/// Replaces references to files in `output_schema` and `checks`, which are relative to this directory. To be called
/// once, when the scenario is loaded; what is no reference is left for `check_scenario` to judge.
pub fn load_references(scenario: &mut BaseScenario, directory: &Path) -> Result<(), ConfigError> {
    if let Some(schema) = &mut scenario.output_schema {
        load_schema(schema, directory, &["output_schema"])?;
    }
    for (position, check) in scenario.checks.iter_mut().enumerate() {
        load_in_check(check, directory, &position.to_string())?;
    }
    Ok(())
}

fn load_in_check(check: &mut Value, directory: &Path, position: &str) -> Result<(), ConfigError> {
    let mut path = vec!["checks", position];
    let mut body = check;
    while body.get("not").is_some() {
        path.push("not");
        body = &mut body["not"];
    }
    for kind in ["output", "file"] {
        if let Some(schema) = body.get_mut(kind).and_then(|body| body.get_mut("schema")) {
            load_schema(schema, directory, &[&path[..], &[kind, "schema"]].concat())?;
        }
    }
    let files = body.pointer_mut("/command/files");
    for source in files.and_then(Value::as_object_mut).into_iter().flatten() {
        if let Value::String(source) = source.1 {
            *source = directory.join(&*source).to_string_lossy().into_owned();
        }
    }
    Ok(())
}

fn load_schema(schema: &mut Value, directory: &Path, path: &[&str]) -> Result<(), ConfigError> {
    let Value::String(name) = schema else {
        return Ok(());
    };
    let wrong = |error: String| {
        ConfigError::at(path.iter().copied(), format!("the schema `{name}` {error}"))
    };
    let unreadable = |error: &dyn Display| wrong(format!("cannot be read: {error}"));
    let mut text = String::new();
    File::open(directory.join(&*name))
        .and_then(|file| file.take(SCHEMA_SIZE).read_to_string(&mut text))
        .map_err(|error| unreadable(&error))?;
    let read: Value = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    Schema::parse(&Spec::at(&[], &read)).map_err(|found| {
        let place = found.path.join("/");
        wrong(format!("is no use at `/{place}`: {}", found.message))
    })?;
    *schema = read;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// `name` keeps tests that run side by side apart.
    fn loaded(name: &str, checks: Value) -> Result<Value, ConfigError> {
        let directory = std::env::temp_dir().join(format!("assize-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("good.json"), r#"{"type": "object"}"#).unwrap();
        std::fs::write(directory.join("bad.json"), "{").unwrap();
        let wrong = r#"{"properties": {"a": {"type": "objct"}}}"#;
        std::fs::write(directory.join("wrong.json"), wrong).unwrap();
        let mut scenario = BaseScenario::new("s", "p");
        scenario.checks = checks.as_array().unwrap().clone();
        let loaded = load_references(&mut scenario, &directory);
        std::fs::remove_dir_all(directory).unwrap();
        loaded.map(|()| Value::Array(scenario.checks))
    }

    #[test]
    fn schemas_are_read_into_the_checks() {
        let checks = json!([{"not": {"output": {"schema": "good.json"}}}, {"file": {"path": "a"}}]);
        let expected =
            json!([{"not": {"output": {"schema": {"type": "object"}}}}, {"file": {"path": "a"}}]);
        assert_eq!(loaded("read-schemas", checks), Ok(expected));
    }

    #[test]
    fn a_schema_that_cannot_be_read_is_named_with_its_place() {
        for name in ["bad.json", "missing.json"] {
            let error = loaded("bad-schemas", json!([{"output": {"schema": name}}])).unwrap_err();
            assert_eq!(error.path, ["checks", "0", "output", "schema"]);
            assert!(error.message.contains(name));
        }
    }

    #[test]
    fn a_schema_that_is_none_is_named_with_the_place_in_it() {
        let checks = json!([{"output": {"schema": "wrong.json"}}]);
        let error = loaded("wrong-schemas", checks).unwrap_err();
        let said = "the schema `wrong.json` is no use at `/properties/a/type`: invalid JSON Schema";
        assert!(error.message.starts_with(said), "{error}");
    }

    #[test]
    fn files_to_be_placed_get_their_whole_path() {
        let checks = json!([{"command": {"run": "x", "files": {"t.py": "hidden/t.py"}}}]);
        let source = loaded("place-files", checks).unwrap()[0]["command"]["files"]["t.py"].take();
        assert!(source.as_str().unwrap().ends_with("/hidden/t.py"));
        assert!(Path::new(source.as_str().unwrap()).is_absolute());
    }
}
