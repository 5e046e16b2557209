//! `assize schema`: the JSON Schemas of files and records.

use crate::cli::SchemaArguments;
use crate::commands::UsageError;
use crate::exit::Exit;
use crate::suite::{ScenarioFile, SuiteFile};
use crate::terminal::print;
use anyhow::Result;
use assize_contracts::schema::NamedSchema;
use schemars::schema_for;

/// The schemas of everything people write or Assize stores.
pub(crate) fn all() -> Vec<NamedSchema> {
    let mut schemas = vec![
        NamedSchema {
            name: "suite",
            schema: schema_for!(SuiteFile),
        },
        NamedSchema {
            name: "scenario",
            schema: schema_for!(ScenarioFile),
        },
    ];
    schemas.extend(assize_contracts::schema::all());
    schemas.push(NamedSchema {
        name: "plugin-protocol",
        schema: assize_plugins::protocol::schema(),
    });
    schemas
}

pub(crate) fn schema(arguments: &SchemaArguments) -> Result<Exit> {
    let schemas = all();
    let names: Vec<&str> = schemas.iter().map(|schema| schema.name).collect();
    let Some(wanted) = &arguments.name else {
        print(names.join("\n"));
        return Ok(Exit::Done);
    };
    match schemas.iter().find(|schema| schema.name == wanted) {
        Some(found) => {
            print(serde_json::to_string_pretty(&found.schema)?);
            Ok(Exit::Done)
        }
        None => Err(UsageError {
            message: format!("there is no schema `{wanted}`"),
            hint: crate::suite::suggest(wanted, &names),
        }
        .into()),
    }
}
