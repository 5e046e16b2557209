//! `assize schema`: the JSON Schemas of files and records, as they are checked in.

use crate::cli::SchemaArguments;
use crate::commands::UsageError;
use crate::exit::Exit;
use crate::terminal::print;
use anyhow::Result;

/// A schema by its name.
struct CheckedIn {
    name: &'static str,
    json: &'static str,
}

macro_rules! json {
    ($name:literal) => {
        include_str!(concat!("../../../../schemas/", $name, ".schema.json"))
    };
}

macro_rules! checked_in {
    ($($name:literal),+ $(,)?) => {
        &[$(CheckedIn { name: $name, json: json!($name) }),+]
    };
}

/// The schema of suite files.
pub(super) const SUITE: &str = json!("suite");

/// The schema of scenario files.
pub(super) const SCENARIO: &str = json!("scenario");

/// The schemas of everything people write or Assize stores. A test compares them with the types.
const SCHEMAS: &[CheckedIn] = checked_in![
    "suite",
    "scenario",
    "base-scenario",
    "task",
    "atomic-task",
    "row",
    "trace",
    "run-record",
    "score-record",
    "bundle",
    "prompt-result",
    "scorer-context",
    "scorer-result",
    "mode-config",
    "plugin-protocol",
];

pub(crate) fn schema(arguments: &SchemaArguments) -> Result<Exit> {
    let names: Vec<&str> = SCHEMAS.iter().map(|schema| schema.name).collect();
    let Some(wanted) = &arguments.name else {
        print(names.join("\n"));
        return Ok(Exit::Done);
    };
    match SCHEMAS.iter().find(|schema| schema.name == wanted) {
        Some(found) => {
            print(found.json.trim_end());
            Ok(Exit::Done)
        }
        None => Err(UsageError {
            message: format!("there is no schema `{wanted}`"),
            hint: crate::suite::suggest(wanted, &names),
        }
        .into()),
    }
}

#[cfg(all(test, feature = "schema"))]
mod tests {
    use super::*;
    use crate::suite::{ScenarioFile, SuiteFile};
    use assize_contracts::schema::NamedSchema;
    use schemars::schema_for;
    use std::path::Path;

    fn of_the_types() -> Vec<NamedSchema> {
        let named = |name, schema| NamedSchema { name, schema };
        let mut schemas = vec![
            named("suite", schema_for!(SuiteFile)),
            named("scenario", schema_for!(ScenarioFile)),
        ];
        schemas.extend(assize_contracts::schema::all());
        let protocol = assize_plugins::protocol::schema();
        schemas.push(named("plugin-protocol", protocol));
        schemas
    }

    /// Frozen contracts: a difference here is a change of the public interface. CONTRIBUTING.md says what that takes.
    #[test]
    fn the_checked_in_schemas_are_those_of_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
        let update = std::env::var_os("UPDATE_SCHEMAS").is_some();
        let made = of_the_types();
        for NamedSchema { name, schema } in &made {
            let json = serde_json::to_string_pretty(schema).unwrap() + "\n";
            let path = folder.join(format!("{name}.schema.json"));
            if update {
                std::fs::write(&path, &json).unwrap();
            }
            let stored = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(
                stored, json,
                "{name} differs; `UPDATE_SCHEMAS=1 cargo test schemas` writes it anew"
            );
        }
        let names = |names: &mut dyn Iterator<Item = &'static str>| names.collect::<Vec<_>>();
        assert_eq!(
            names(&mut SCHEMAS.iter().map(|schema| schema.name)),
            names(&mut made.iter().map(|schema| schema.name)),
            "`assize schema` prints other schemas"
        );
        assert_eq!(
            std::fs::read_dir(folder).unwrap().count(),
            made.len(),
            "a file too many"
        );
    }
}
