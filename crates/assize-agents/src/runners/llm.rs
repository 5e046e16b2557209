//! `llm`: a model answers a prompt made from the task's input, in free text or in the form of a JSON Schema.

use super::answer::{Answers, NoOutput, OutputForm};
use super::record::Execution;
use super::template::{Prompt, Template};
use super::{Role, VERSION, read};
use assize_contracts::{
    AtomicTask, BoxError, ConfigError, CostSource, RunRecord, RunSetting, Runner, RunnerSetup,
    async_trait,
};
use assize_llm::{
    Api, ApiKey, ChatAnswer, ChatClient, ChatRequest, Endpoint, LostCall, Message, OutputSchema,
    Prices, Purchase, Tries,
};
use assize_process::host_variable;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Time to say that there was no answer.
const GRACE: Duration = Duration::from_secs(5);

/// The task's own time limit decides; this is for connections that are no longer waited for.
const LONGEST: Duration = Duration::from_secs(3600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    api: Api,
    #[serde(default)]
    base_url: Option<String>,
    /// Without it the suite's `models` say.
    #[serde(default)]
    model: Option<String>,
    /// The environment variable with the key. Default: the API's usual one, if it is set.
    #[serde(default)]
    key_env: Option<String>,
    /// Instructions; the mode's come before them.
    #[serde(default)]
    system: Option<String>,
    /// The prompt of the model. Default: the input.
    #[serde(default)]
    prompt: Option<String>,
    /// JSON Schema of the answer, or the name of its file. The answer is then JSON.
    #[serde(default)]
    schema: Option<Value>,
    #[serde(default)]
    output: OutputForm,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    max_output_tokens: Option<u32>,
    #[serde(default)]
    retries: Option<u32>,
    /// A file with prices, before the built-in table. Default: the suite's.
    #[serde(default)]
    prices: Option<String>,
}

/// The runner `llm`.
pub(super) struct Model {
    role: Role,
    client: ChatClient,
    model: Option<String>,
    system: Option<Template>,
    prompt: Prompt,
    answers: Answers,
    temperature: Option<f64>,
    max_output_tokens: Option<u32>,
    prices: Prices,
}

impl Model {
    pub(super) fn new(setup: &RunnerSetup<'_>) -> Result<Self, ConfigError> {
        let settings: Settings = read(setup)?;
        let wrong = crate::settings::setting_error;
        let mut endpoint = Endpoint::of(settings.api);
        if let Some(base_url) = settings.base_url {
            endpoint.base_url = base_url;
        }
        endpoint.timeout = LONGEST;
        endpoint.max_retries = settings.retries.unwrap_or(endpoint.max_retries);
        endpoint.key = match &settings.key_env {
            Some(name) => Some(host_variable(name).ok_or_else(|| {
                wrong(
                    "key_env",
                    format!("the environment variable `{name}` is not set"),
                )
            })?),
            None => host_variable(settings.api.key_variable()),
        }
        .map(ApiKey::new);
        let client =
            ChatClient::new(endpoint).map_err(|error| wrong("base_url", error.to_string()))?;
        let prices = match &settings.prices {
            Some(file) => Prices::with_file(&setup.directory.join(file))
                .map_err(|error| wrong("prices", error.to_string()))?,
            None => super::prices(setup)?,
        };
        Ok(Self {
            role: Role::of(setup),
            client,
            model: settings.model,
            system: settings.system.as_deref().map(Template::parse),
            prompt: Prompt::parse(settings.prompt.as_deref()),
            answers: Answers::new(settings.output, settings.schema, setup)?,
            temperature: settings.temperature,
            max_output_tokens: settings.max_output_tokens,
            prices,
        })
    }

    fn request(&self, task: &AtomicTask, setting: &RunSetting) -> Result<ChatRequest, String> {
        let own = self.system.as_ref();
        let own = own.map(|template| template.text(task)).transpose()?;
        let mode = Some(&setting.system_instructions).filter(|text| !text.is_empty());
        let system: Vec<&str> = mode.into_iter().chain(&own).map(String::as_str).collect();
        let model = match setting.model.as_str() {
            "" => self.model.as_deref(),
            chosen => Some(chosen),
        };
        Ok(ChatRequest {
            model: model
                .ok_or("no model is named, neither by the runner nor by the suite")?
                .to_owned(),
            system: (!system.is_empty()).then(|| system.join("\n\n")),
            messages: vec![Message::User(self.prompt.text(task)?)],
            output_schema: self.answers.schema().map(|schema| OutputSchema {
                name: "answer".to_owned(),
                schema: schema.clone(),
            }),
            max_output_tokens: self.max_output_tokens,
            temperature: self.temperature,
            ..ChatRequest::default()
        })
    }

    /// Notes what came and what it took. What tries without a whole answer took is unknown, and so is the sum.
    fn account(
        &self,
        answer: &ChatAnswer,
        lost: &[LostCall],
        request: &ChatRequest,
        execution: &mut Execution,
    ) {
        let usage = &answer.answer.usage;
        let model = answer.answer.model.as_deref().unwrap_or(&request.model);
        let computed = self.prices.of_request(&Purchase {
            model,
            api: Some(answer.answer.api),
            tokens: usage.tokens,
            cache_write_1h: usage.cache_write_1h,
            service_tier: usage.service_tier.as_deref(),
        });
        execution.tokens = usage.tokens.total;
        let computed = computed.and_then(|cost| cost.breakdown.total_usd);
        execution.cost = computed.or(usage.reported_cost);
        execution.cost_source = Some(match (computed, usage.reported_cost) {
            (Some(_), _) => CostSource::Computed,
            (None, Some(_)) => CostSource::Reported,
            (None, None) => CostSource::Unknown,
        });
        if !lost.is_empty() {
            (execution.tokens, execution.cost) = (None, None);
            execution.cost_source = Some(CostSource::Unknown);
        }
        execution.note(
            "llm_answer",
            json!({
                "model": model,
                "text": answer.text(),
                "tokens": usage.tokens,
                "costUsd": execution.cost,
                "stopReason": answer.answer.stop_reason,
                "retries": answer.retries,
                "durationMs": answer.duration.as_millis() as u64,
            }),
        );
    }
}

#[async_trait]
impl Runner for Model {
    fn id(&self) -> &str {
        &self.role.id
    }

    fn task_type(&self) -> &str {
        &self.role.task_type
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn timeout_grace(&self) -> Duration {
        GRACE
    }

    fn content_hash(&self) -> Option<String> {
        self.answers.content_hash()
    }

    async fn execute(&self, task: &AtomicTask, config: &Value) -> Result<RunRecord, BoxError> {
        self.execute_in(task, config, &super::alone()).await
    }

    /// An error of the service is no evidence about the capability; the model's answer is.
    async fn execute_in(
        &self,
        task: &AtomicTask,
        _: &Value,
        setting: &RunSetting,
    ) -> Result<RunRecord, BoxError> {
        let mut execution = Execution::start();
        let request = match self.request(task, setting) {
            Ok(request) => request,
            Err(message) => return Ok(execution.failed(task, "render", message)),
        };
        let Some(Message::User(prompt)) = request.messages.first() else {
            return Err("there is no prompt".into());
        };
        execution.note(
            "llm_call",
            json!({"model": request.model, "system": request.system, "prompt": prompt}),
        );
        let mut tries = Tries::default();
        let asking = self.client.send_noting(&request, &mut tries);
        let Ok(answer) = tokio::time::timeout(setting.timeout, asking).await else {
            let message = format!("no answer within {} ms", setting.timeout.as_millis());
            return Ok(execution.failed(task, "llm_call", message));
        };
        let answer = answer?;
        self.account(&answer, &tries.lost, &request, &mut execution);
        Ok(match self.answers.output(answer.text()) {
            Ok(output) => execution.completed(task, output),
            Err(NoOutput { phase, message }) => execution.failed(task, phase, message),
        })
    }
}
