//! A file of prices in the form of LiteLLM (dollars per token, by model) or of models.dev (dollars per million, by
//! service and model).

use super::rates::{ModelRates, Rates};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::Path;

/// Larger than any list of models.
const MAX_FILE: u64 = 64 << 20;

/// The reason why a file of prices cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PriceFileError {
    /// It cannot be read.
    #[error("cannot read the prices in `{path}`")]
    Unreadable {
        /// The file.
        path: String,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// It is something else.
    #[error("`{path}` holds no prices: {message}")]
    Foreign {
        /// The file.
        path: String,
        /// The value found and the value expected.
        message: String,
    },
}

#[derive(Debug)]
pub(super) struct PriceFile {
    version: String,
    models: HashMap<String, ModelRates>,
}

impl PriceFile {
    pub(super) fn read(path: &Path) -> Result<Self, PriceFileError> {
        let shown = || path.display().to_string();
        let unreadable = |source| PriceFileError::Unreadable {
            path: shown(),
            source,
        };
        let size = std::fs::metadata(path).map_err(unreadable)?.len();
        let foreign = |message| PriceFileError::Foreign {
            path: shown(),
            message,
        };
        if size > MAX_FILE {
            return Err(foreign(format!(
                "{size} bytes are more than any list of models has"
            )));
        }
        let text = std::fs::read(path).map_err(unreadable)?;
        let models = parse(&text).map_err(foreign)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hash = blake3::hash(&text).to_hex();
        Ok(Self {
            version: format!("{name} ({})", &hash[..12]),
            models,
        })
    }

    /// The file's name and what it held.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// The prices of a model: by its name, by its name without the service before it, and by either without a date.
    pub(super) fn rates(&self, model: &str) -> Option<&ModelRates> {
        let model = model.to_lowercase();
        let bare = model.rsplit('/').next().unwrap_or(&model);
        [&*model, bare, without_date(&model), without_date(bare)]
            .into_iter()
            .find_map(|name| self.models.get(name))
    }
}

pub(super) fn parse(text: &[u8]) -> Result<HashMap<String, ModelRates>, String> {
    let value: Value =
        serde_json::from_slice(text).map_err(|error| format!("it is not JSON ({error})"))?;
    let Value::Object(entries) = value else {
        return Err("expected an object of models".into());
    };
    let is_by_service = entries.values().any(|entry| entry["models"].is_object());
    let models = match is_by_service {
        true => by_service(&entries),
        false => by_model(&entries),
    };
    match models.is_empty() {
        true => Err("expected `input_cost_per_token` of models (LiteLLM), or services with `models` and their `cost` (models.dev)".into()),
        false => Ok(models),
    }
}

/// LiteLLM's form.
fn by_model(entries: &Map<String, Value>) -> HashMap<String, ModelRates> {
    let priced = entries.iter().filter(|(name, entry)| {
        *name != "sample_spec" && entry["input_cost_per_token"].is_number()
    });
    let mut models = HashMap::new();
    for (name, entry) in priced {
        models.insert(name.to_lowercase(), litellm_rates(entry));
    }
    models
}

fn litellm_rates(entry: &Value) -> ModelRates {
    let rates = |suffix: &str| {
        let rate = |name: &str| rate(&entry[format!("{name}{suffix}")]);
        Rates {
            input: rate("input_cost_per_token"),
            output: rate("output_cost_per_token"),
            cache_read: rate("cache_read_input_token_cost"),
            cache_write_5m: rate("cache_creation_input_token_cost"),
            cache_write_1h: rate("cache_creation_input_token_cost_above_1hr"),
            reasoning: rate("output_cost_per_reasoning_token"),
        }
    };
    let mut thresholds: Vec<u64> = Vec::new();
    for name in entry.as_object().into_iter().flat_map(Map::keys) {
        thresholds.extend(threshold(name).filter(|found| !thresholds.contains(found)));
    }
    thresholds.sort_unstable();
    let tier = |thousands: u64| {
        (
            thousands * 1000,
            rates(&format!("_above_{thousands}k_tokens")),
        )
    };
    ModelRates {
        base: rates(""),
        tiers: thresholds.into_iter().map(tier).collect(),
    }
}

/// The thousands in `…_above_200k_tokens`.
fn threshold(name: &str) -> Option<u64> {
    let (_, rest) = name.rsplit_once("_above_")?;
    let thousands: u64 = rest.strip_suffix("k_tokens")?.parse().ok()?;
    (thousands < 1_000_000).then_some(thousands)
}

/// Makers of models, listed before those who resell them or give them away with a subscription.
const MAKERS: [&str; 8] = [
    "anthropic",
    "openai",
    "google",
    "xai",
    "mistral",
    "deepseek",
    "moonshotai",
    "alibaba",
];

/// The form of models.dev.
fn by_service(entries: &Map<String, Value>) -> HashMap<String, ModelRates> {
    let mut models = HashMap::new();
    let makers = MAKERS
        .iter()
        .filter_map(|name| entries.get_key_value(*name));
    let others = entries
        .iter()
        .filter(|(name, _)| !MAKERS.contains(&name.as_str()));
    for (service, entry) in makers.chain(others) {
        let priced = entry["models"].as_object().into_iter().flatten();
        for (name, model) in priced.filter(|(_, model)| model["cost"]["input"].is_number()) {
            let rates = models_dev_rates(&model["cost"]);
            let name = name.to_lowercase();
            models.insert(format!("{}/{name}", service.to_lowercase()), rates.clone());
            if rates.base.input > Some(0.0) {
                models.entry(name).or_insert(rates);
            }
        }
    }
    models
}

fn models_dev_rates(cost: &Value) -> ModelRates {
    let rates = |cost: &Value| {
        let rate = |name: &str| rate(&cost[name]).map(|million| million / 1e6);
        Rates {
            input: rate("input"),
            output: rate("output"),
            cache_read: rate("cache_read"),
            cache_write_5m: rate("cache_write"),
            cache_write_1h: None,
            reasoning: rate("reasoning"),
        }
    };
    let listed = cost["tiers"].as_array().into_iter().flatten();
    let mut tiers: Vec<(u64, Rates)> = listed
        .filter_map(|tier| Some((tier["tier"]["size"].as_u64()?, rates(tier))))
        .collect();
    if tiers.is_empty() && cost["context_over_200k"].is_object() {
        tiers.push((200_000, rates(&cost["context_over_200k"])));
    }
    tiers.sort_by_key(|(size, _)| *size);
    ModelRates {
        base: rates(cost),
        tiers,
    }
}

/// A price below nothing is none.
fn rate(value: &Value) -> Option<f64> {
    value.as_f64().filter(|rate| *rate >= 0.0)
}

/// Models are often named with the day of their making: `-2025-09-29`, `-20250929`, `@20250929`.
fn without_date(model: &str) -> &str {
    let is_date = |date: &str, form: &str| {
        date.bytes()
            .zip(form.bytes())
            .enumerate()
            .all(|(place, pair)| match pair {
                (b'@', b'-') => place == 0,
                (byte, b'd') => byte.is_ascii_digit(),
                (byte, mark) => byte == mark,
            })
    };
    let cut = |form: &str| {
        let (name, date) = model.split_at_checked(model.len().checked_sub(form.len())?)?;
        is_date(date, form).then_some(name)
    };
    let forms = ["-dddd-dd-dd", "-dddddddd"];
    forms.into_iter().find_map(cut).unwrap_or(model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prices::{Prices, Purchase};
    use assize_contracts::TokenBreakdown;
    use serde_json::json;

    fn prices(name: &str, content: &Value) -> Prices {
        let directory = std::env::temp_dir().join(format!("assize-prices-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join(name);
        std::fs::write(&path, content.to_string()).unwrap();
        Prices::with_file(&path).unwrap()
    }

    fn cost(
        prices: &Prices,
        model: &str,
        input: u64,
        cache_read: u64,
        written_1h: u64,
    ) -> Option<f64> {
        let purchase = Purchase {
            model,
            tokens: TokenBreakdown {
                input: Some(input),
                output: Some(0),
                reasoning: Some(10),
                cache_read: Some(cache_read),
                cache_write: Some(written_1h),
                ..TokenBreakdown::default()
            },
            cache_write_1h: Some(written_1h),
            ..Purchase::default()
        };
        prices
            .of_request(&purchase)?
            .breakdown
            .total_usd
            .map(|usd| usd.value())
    }

    #[test]
    fn litellm_prices_with_tiers_cache_and_reasoning() {
        let prices = prices(
            "litellm.json",
            &json!({
                "sample_spec": {"input_cost_per_token": 1},
                "house/Model-1": {
                    "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
                    "output_cost_per_reasoning_token": 3e-6,
                    "cache_read_input_token_cost": 1e-7,
                    "cache_creation_input_token_cost": 1.25e-6,
                    "cache_creation_input_token_cost_above_1hr": 2e-6,
                    "input_cost_per_token_above_128k_tokens": 4e-6,
                    "input_cost_per_token_above_256k_tokens": 8e-6,
                },
                "embedding": {"mode": "embedding"},
            }),
        );
        let cost =
            |input, read, written| cost(&prices, "house/model-1", input, read, written).unwrap();
        assert_eq!(cost(100, 0, 0), 0.00013);
        assert_eq!(cost(100, 1000, 100), 0.00043);
        assert_eq!(cost(128_000, 0, 0), 0.12803);
        assert_eq!(cost(128_001, 0, 0), 0.512034);
        assert_eq!(cost(256_001, 0, 0), 2.048038);
        assert!(prices.version().starts_with("litellm.json ("));
        assert!(prices.version().ends_with(super::super::TABLE));
    }

    #[test]
    fn models_dev_prices_are_per_million_and_go_before_the_table() {
        let prices = prices(
            "models-dev.json",
            &json!({
                "a-subscription": {"models": {"claude-sonnet-4-5": {"cost": {"input": 0, "output": 0}}}},
                "acme": {"models": {
                    "claude-sonnet-4-5": {"cost": {"input": 1, "output": 2, "cache_read": 0.5,
                        "tiers": [{"input": 10, "tier": {"size": 200000}}]}},
                    "free": {"name": "no cost given"},
                }},
            }),
        );
        let cost = |model, input| cost(&prices, model, input, 0, 0);
        assert_eq!(cost("claude-sonnet-4-5", 1000), Some(0.00102));
        assert_eq!(cost("acme/claude-sonnet-4-5-20250929", 1000), Some(0.00102));
        assert_eq!(cost("claude-sonnet-4-5", 200_001), Some(2.00003));
        assert_eq!(cost("a-subscription/claude-sonnet-4-5", 1000), Some(0.0));
        assert_eq!(cost("free", 1), None);
        // Models that the file leaves out are in the table.
        assert!(cost("claude-haiku-4-5", 1000).is_some());
    }

    #[test]
    fn other_files_are_refused_with_what_was_expected() {
        let check = |text: &str, expected: &str| {
            let message = parse(text.as_bytes()).unwrap_err();
            assert!(message.contains(expected), "{message}");
        };
        check("{", "it is not JSON");
        check("[]", "expected an object of models");
        check(r#"{"a": 1, "b": {"input": 2}}"#, "LiteLLM");
        check(r#"{"a": {"models": {"b": {}}}}"#, "models.dev");
        let error = Prices::with_file(Path::new("/no/such/file.json")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read the prices in `/no/such/file.json`"
        );
    }

    #[test]
    fn dates_are_taken_off_and_versions_are_not() {
        for (model, expected) in [
            ("claude-x-4-5-20250929", "claude-x-4-5"),
            ("claude-x@20250929", "claude-x"),
            ("gpt-5-2025-08-07", "gpt-5"),
            ("gpt-5.1", "gpt-5.1"),
            ("m-12345678-beta", "m-12345678-beta"),
            ("20250929", "20250929"),
            ("é-20250929", "é"),
            ("", ""),
        ] {
            assert_eq!(without_date(model), expected);
        }
    }
}
