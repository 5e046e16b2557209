//! Turns the last text of a model or an agent into the output of the task, as text or as JSON in a declared form.

use super::excerpt;
use assize_contracts::{ConfigError, RunnerSetup};
use serde::Deserialize;
use serde_json::Value;

/// The form of the output.
#[derive(Deserialize, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum OutputForm {
    /// The text itself.
    #[default]
    Text,
    /// The JSON in it: all of it, or the last fenced block that is JSON.
    Json,
}

/// The rules by which answers become outputs.
pub(super) struct Answers {
    form: OutputForm,
    schema: Option<Schema>,
}

struct Schema {
    value: Value,
    validator: jsonschema::Validator,
}

/// The reason why an answer is no output: the phase and the reason.
pub(super) struct NoOutput {
    pub(super) phase: &'static str,
    pub(super) message: String,
}

impl Answers {
    /// `schema` is a JSON Schema or the name of its file; answers are then JSON.
    pub(super) fn new(
        form: OutputForm,
        schema: Option<Value>,
        setup: &RunnerSetup<'_>,
    ) -> Result<Self, ConfigError> {
        let schema = schema.map(|schema| read(schema, setup)).transpose()?;
        Ok(Self {
            form: match schema {
                Some(_) => OutputForm::Json,
                None => form,
            },
            schema,
        })
    }

    /// The schema, for services that can be held to one.
    pub(super) fn schema(&self) -> Option<&Value> {
        self.schema.as_ref().map(|schema| &schema.value)
    }

    /// Of what the configuration may only name.
    pub(super) fn content_hash(&self) -> Option<String> {
        let text = self.schema()?.to_string();
        Some(blake3::hash(text.as_bytes()).to_hex()[..32].to_owned())
    }

    pub(super) fn output(&self, text: String) -> Result<Value, NoOutput> {
        if self.form == OutputForm::Text {
            return Ok(Value::String(text));
        }
        let value = json_in(&text).ok_or_else(|| NoOutput {
            phase: "parse-output",
            message: format!(
                "found no JSON in the answer `{}`",
                excerpt(text.trim(), 200)
            ),
        })?;
        let schema = self.schema.as_ref();
        match schema.and_then(|schema| schema.validator.validate(&value).err()) {
            Some(error) => Err(NoOutput {
                phase: "validate-output",
                message: format!(
                    "the answer does not fit the schema: {} {error}",
                    error.instance_path()
                ),
            }),
            None => Ok(value),
        }
    }
}

fn read(schema: Value, setup: &RunnerSetup<'_>) -> Result<Schema, ConfigError> {
    let wrong = |reason: String| crate::settings::setting_error("schema", reason);
    let value = match schema {
        Value::String(name) => {
            let text = std::fs::read(setup.directory.join(&name))
                .map_err(|error| wrong(format!("`{name}`: {error}")))?;
            serde_json::from_slice(&text).map_err(|error| wrong(format!("`{name}`: {error}")))?
        }
        inline => inline,
    };
    let validator = jsonschema::validator_for(&value)
        .map_err(|error| wrong(format!("invalid JSON Schema: {error}")))?;
    Ok(Schema { value, validator })
}

/// The whole text as JSON, else its last fenced block that is JSON.
pub(super) fn json_in(text: &str) -> Option<Value> {
    let whole = text.trim();
    serde_json::from_str(whole).ok().or_else(|| {
        let parts: Vec<&str> = whole.split("```").collect();
        let fenced = parts.into_iter().skip(1).step_by(2);
        // The rest of the line after the opening fence is the language.
        let blocks: Vec<&str> = fenced
            .filter_map(|part| Some(part.split_once('\n')?.1))
            .collect();
        let mut blocks = blocks.into_iter().rev();
        blocks.find_map(|block| serde_json::from_str(block).ok())
    })
}
