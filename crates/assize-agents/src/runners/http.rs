//! `http`: a service under test gets the task by POST and answers with its output as JSON.

use super::record::Execution;
use super::template::{ValueTemplate, part};
use super::{Role, VERSION, excerpt, read};
use assize_contracts::{
    AtomicTask, BoxError, ConfigError, RunRecord, RunSetting, Runner, RunnerSetup, async_trait,
    with_causes,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// More than this is no answer, in bytes.
const LONGEST: usize = 8 << 20;

/// Time to say that there was none.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body to send, with places such as `{input.text}`. Default: the whole task.
    #[serde(default)]
    body: Option<Value>,
    /// The place of the output in the answer. Default: all of it.
    #[serde(default)]
    output: Option<String>,
}

/// The runner `http`.
pub(super) struct Service {
    role: Role,
    client: reqwest::Client,
    url: reqwest::Url,
    headers: HeaderMap,
    body: Option<ValueTemplate>,
    output: Vec<String>,
}

impl Service {
    pub(super) fn new(setup: &RunnerSetup<'_>) -> Result<Self, ConfigError> {
        let settings: Settings = read(setup)?;
        let wrong = |key: &str, message: &str| crate::settings::setting_error(key, message);
        let url = reqwest::Url::parse(&settings.url).ok();
        let is_web = |url: &reqwest::Url| matches!(url.scheme(), "http" | "https");
        let url = url.filter(is_web).ok_or_else(|| {
            wrong(
                "url",
                "expected an address that begins with `http://` or `https://`",
            )
        })?;
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        for (name, value) in &settings.headers {
            let both = (HeaderName::try_from(name), HeaderValue::try_from(value));
            let (Ok(name), Ok(value)) = both else {
                return Err(wrong(
                    "headers",
                    &format!("`{name}` is no header with a value"),
                ));
            };
            headers.insert(name, value);
        }
        let output = settings.output.as_deref().unwrap_or_default();
        let parts = output.split('.').filter(|part| !part.is_empty());
        Ok(Self {
            role: Role::of(setup),
            client: client(&url)?,
            url,
            headers,
            body: settings.body.as_ref().map(ValueTemplate::parse),
            output: parts.map(str::to_owned).collect(),
        })
    }

    /// An answer, or what it was instead. An error means that nothing answers at all.
    async fn ask(&self, body: String) -> Result<Answer, BoxError> {
        let request = self.client.post(self.url.clone());
        let sent = request
            .headers(self.headers.clone())
            .body(body)
            .send()
            .await;
        let mut response = sent.map_err(unreachable)?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if bytes.len() + chunk.len() > LONGEST {
                return Ok(Answer {
                    status,
                    body: Err(format!("the answer is longer than {LONGEST} bytes")),
                });
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Answer {
            status,
            body: Ok(String::from_utf8_lossy(&bytes).into_owned()),
        })
    }

    fn output(&self, text: &str) -> Result<Value, String> {
        let shown = || excerpt(text.trim(), 200);
        let value: Value = serde_json::from_str(text)
            .map_err(|error| format!("the answer is not JSON ({error}): `{}`", shown()))?;
        let found = part(&value, &self.output).cloned();
        found.ok_or_else(|| {
            let path = self.output.join(".");
            format!("there is nothing at `{path}` in the answer `{}`", shown())
        })
    }
}

struct Answer {
    status: u16,
    body: Result<String, String>,
}

fn client(url: &reqwest::Url) -> Result<reqwest::Client, ConfigError> {
    // Fails only when another one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    if matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]")) {
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| crate::settings::setting_error("url", format!("no HTTP client: {error}")))
}

/// The address is left out: it may hold a password.
fn unreachable(error: reqwest::Error) -> BoxError {
    let why = with_causes(&error.without_url());
    format!("the service cannot be reached: {why}").into()
}

#[async_trait]
impl Runner for Service {
    fn id(&self) -> &str {
        &self.role.id
    }

    fn task_type(&self) -> &str {
        &self.role.task_type
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn timeout_grace(&self) -> Duration {
        GRACE
    }

    async fn execute(&self, task: &AtomicTask, config: &Value) -> Result<RunRecord, BoxError> {
        self.execute_in(task, config, &super::alone()).await
    }

    async fn execute_in(
        &self,
        task: &AtomicTask,
        _: &Value,
        setting: &RunSetting,
    ) -> Result<RunRecord, BoxError> {
        let mut execution = Execution::start();
        let body = match &self.body {
            Some(template) => match template.value(task) {
                Ok(body) => body.to_string(),
                Err(message) => return Ok(execution.failed(task, "render", message)),
            },
            None => serde_json::to_string(task)?,
        };
        execution.note("request", json!({"bytes": body.len()}));
        let Ok(answer) = tokio::time::timeout(setting.timeout, self.ask(body)).await else {
            let message = format!("no answer within {} ms", setting.timeout.as_millis());
            return Ok(execution.failed(task, "request", message));
        };
        let Answer { status, body } = answer?;
        execution.note("response", json!({"status": status}));
        let text = match body {
            Ok(text) => text,
            Err(message) => return Ok(execution.failed(task, "parse-output", message)),
        };
        if !(200..300).contains(&status) {
            let message = format!(
                "the service answers {status}: `{}`",
                excerpt(text.trim(), 200)
            );
            return Ok(execution.failed(task, "request", message));
        }
        Ok(match self.output(&text) {
            Ok(output) => execution.completed(task, output),
            Err(message) => execution.failed(task, "parse-output", message),
        })
    }
}
