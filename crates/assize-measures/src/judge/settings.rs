//! The model that judges, and its settings.

use crate::spec::nearest;
use assize_contracts::{BoxError, JsonMap};
use assize_llm::{Api, ApiKey, Endpoint};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

const KEYS: [&str; 10] = [
    "api",
    "base_url",
    "model",
    "key",
    "votes",
    "timeout_ms",
    "retries",
    "temperature",
    "max_output_tokens",
    "prices_file",
];
const MOST_VOTES: u64 = 25;

/// Settings of a judge.
pub(super) struct Settings {
    pub(super) endpoint: Endpoint,
    pub(super) model: String,
    pub(super) votes: u64,
    pub(super) temperature: Option<f64>,
    pub(super) max_output_tokens: Option<u32>,
    pub(super) prices_file: Option<PathBuf>,
}

impl Settings {
    pub(super) fn parse(settings: &JsonMap) -> Result<Self, BoxError> {
        if let Some(key) = settings.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(match nearest(key, &KEYS) {
                Some(meant) => format!("unknown key `{key}`, did you mean `{meant}`?"),
                None => format!("unknown key `{key}`, known keys: {}", KEYS.join(", ")),
            }
            .into());
        }
        let text = |key: &str| settings.get(key).and_then(Value::as_str);
        let mut endpoint = Endpoint::of(api(text("api"))?);
        if let Some(base_url) = text("base_url") {
            endpoint.base_url = base_url.to_owned();
        }
        endpoint.key = text("key").map(ApiKey::new);
        if let Some(millis) = count(settings, "timeout_ms", 1..=3_600_000)? {
            endpoint.timeout = Duration::from_millis(millis);
        }
        if let Some(retries) = count(settings, "retries", 0..=10)? {
            endpoint.max_retries = retries as u32;
        }
        let model = text("model").filter(|model| !model.is_empty());
        Ok(Self {
            endpoint,
            model: model
                .ok_or("expected `model`: the model that judges")?
                .to_owned(),
            votes: count(settings, "votes", 1..=MOST_VOTES)?.unwrap_or(1),
            temperature: settings.get("temperature").and_then(Value::as_f64),
            max_output_tokens: count(settings, "max_output_tokens", 1..=1_000_000)?
                .map(|tokens| tokens as u32),
            prices_file: text("prices_file").map(PathBuf::from),
        })
    }
}

fn api(name: Option<&str>) -> Result<Api, BoxError> {
    name.and_then(Api::named).ok_or_else(|| {
        format!(
            "expected `api`: one of `anthropic`, `openai`, `openai-responses`, `gemini`, found `{}`",
            name.unwrap_or("nothing")
        )
        .into()
    })
}

fn count(
    settings: &JsonMap,
    key: &str,
    allowed: std::ops::RangeInclusive<u64>,
) -> Result<Option<u64>, BoxError> {
    let Some(value) = settings.get(key) else {
        return Ok(None);
    };
    match value.as_u64().filter(|count| allowed.contains(count)) {
        Some(count) => Ok(Some(count)),
        None => {
            let (least, most) = (allowed.start(), allowed.end());
            Err(
                format!("`{key}`: expected a whole number from {least} to {most}, found {value}")
                    .into(),
            )
        }
    }
}
