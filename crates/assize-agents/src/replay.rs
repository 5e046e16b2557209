//! Plays recorded sessions with their real tokens and traces. Everything it gives is marked `replayed`.

use crate::lock;
use crate::settings::{read, setting_error};
use assize_contracts::{
    CompletionReason, Concurrency, ConfigError, CreateSessionParams, JsonMap, Nature,
    PromptMetrics, PromptResult, ProviderConfig, ProviderError, ProviderScope, SessionHandle,
    SessionProvider, SessionTrace, Timestamp, TimingBreakdown, TraceEvent, async_trait,
    fill_template,
};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// A recording larger than this is no session of an agent.
const LARGEST_RECORDING: u64 = 256 << 20;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplaySettings {
    /// The path of the recordings, relative to the suite: `sessions/{mode}-{iteration}.json`.
    session: String,
    /// The model that was recorded.
    #[serde(default, rename = "model")]
    _model: Option<String>,
    #[serde(default)]
    timing: Timing,
}

/// The speed of a replayed session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Timing {
    /// No time at all; the row has the recorded time.
    #[default]
    Fast,
    /// As long as it took when it was recorded.
    Original,
}

const PLACEHOLDERS: [&str; 4] = ["scenario", "mode", "model", "iteration"];

/// The provider `replay`.
#[derive(Default)]
pub struct ReplayProvider {
    /// The suite's directory; sessions may have a workspace of their own.
    directory: OnceLock<PathBuf>,
    recordings: Mutex<HashMap<PathBuf, Arc<SessionTrace>>>,
    sessions: Mutex<HashMap<String, ReplaySession>>,
}

struct ReplaySession {
    recording: Arc<SessionTrace>,
    timing: Timing,
    prompted: bool,
}

#[async_trait]
impl SessionProvider for ReplayProvider {
    fn id(&self) -> &str {
        "replay"
    }

    fn scope(&self) -> ProviderScope {
        ProviderScope::Session
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::ANY
    }

    fn default_model(&self, overrides: &JsonMap) -> Option<String> {
        overrides.get("model")?.as_str().map(str::to_owned)
    }

    fn may_cost(&self) -> bool {
        false
    }

    fn nature(&self) -> Nature {
        Nature::Replayed
    }

    fn check_overrides(&self, overrides: &JsonMap) -> Result<(), ConfigError> {
        let settings: ReplaySettings = read(overrides)?;
        let mut rest = settings.session.as_str();
        while let Some((_, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            if !PLACEHOLDERS.contains(&name) {
                let message = format!(
                    "unknown placeholder `{{{name}}}`, expected one of `{{{}}}`",
                    PLACEHOLDERS.join("}`, `{")
                );
                return Err(setting_error("session", message));
            }
            rest = after;
        }
        Ok(())
    }

    async fn init(&self, config: &ProviderConfig) -> Result<(), ProviderError> {
        let _ = self.directory.set(config.workdir.clone());
        Ok(())
    }

    async fn create_session(
        &self,
        params: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError> {
        let settings: ReplaySettings = read(&params.provider_overrides)
            .map_err(|error| ProviderError::service(error.message))?;
        let directory = self.directory.get().unwrap_or(&params.workdir);
        let path = directory.join(fill_in(&settings.session, params));
        let recording = self.recording(&path)?;
        let session_id = format!("replay-{:016x}", params.seed);
        let session = ReplaySession {
            recording,
            timing: settings.timing,
            prompted: false,
        };
        lock(&self.sessions).insert(session_id.clone(), session);
        let created_at = Timestamp::from_unix_ms(0);
        Ok(SessionHandle::new(session_id, self.id(), created_at))
    }

    async fn prompt(
        &self,
        handle: &SessionHandle,
        _: &str,
        timeout: Duration,
    ) -> Result<PromptResult, ProviderError> {
        let (recording, timing) = {
            let mut sessions = lock(&self.sessions);
            let session = sessions
                .get_mut(&handle.session_id)
                .ok_or_else(|| unknown(handle))?;
            if std::mem::replace(&mut session.prompted, true) {
                return Err(ProviderError::service(
                    "a recording answers one prompt only",
                ));
            }
            (Arc::clone(&session.recording), session.timing)
        };
        if let (Timing::Original, Some(total)) = (timing, recording.summary.total_duration) {
            let wait = Duration::from_secs_f64(total.value().max(0.0) / 1e3);
            tokio::time::sleep(wait.min(timeout)).await;
        }
        Ok(result_of(&recording))
    }

    async fn export_session(&self, handle: &SessionHandle) -> Result<SessionTrace, ProviderError> {
        let sessions = lock(&self.sessions);
        let session = sessions
            .get(&handle.session_id)
            .ok_or_else(|| unknown(handle))?;
        Ok(SessionTrace::clone(&session.recording))
    }

    async fn destroy_session(&self, handle: &SessionHandle) -> Result<(), ProviderError> {
        lock(&self.sessions).remove(&handle.session_id);
        Ok(())
    }
}

impl ReplayProvider {
    fn recording(&self, path: &Path) -> Result<Arc<SessionTrace>, ProviderError> {
        if let Some(known) = lock(&self.recordings).get(path) {
            return Ok(Arc::clone(known));
        }
        let recording = Arc::new(load(path).map_err(|reason| {
            let message = format!("cannot replay `{}`: {reason}", path.display());
            ProviderError::service(message).with_code("no_recording")
        })?);
        lock(&self.recordings).insert(path.to_owned(), Arc::clone(&recording));
        Ok(recording)
    }
}

fn load(path: &Path) -> Result<SessionTrace, String> {
    let size = std::fs::metadata(path)
        .map_err(|error| error.to_string())?
        .len();
    if size > LARGEST_RECORDING {
        return Err(format!("{size} bytes are more than {LARGEST_RECORDING}"));
    }
    let text = std::fs::read(path).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| format!("not a session trace: {error}"))
}

/// Names become parts of a path, so they must not be able to leave it.
fn fill_in(template: &str, params: &CreateSessionParams) -> String {
    let safe = |name: &str| name.replace(['/', '\\'], "_").replace("..", "_");
    fill_template(template, |name| {
        Some(Cow::Owned(match name {
            "scenario" => safe(&params.scenario_id),
            "mode" => safe(&params.mode),
            "model" => safe(&params.model),
            "iteration" => params.iteration.max(0).to_string(),
            _ => return None,
        }))
    })
}

fn result_of(recording: &SessionTrace) -> PromptResult {
    let text = recording
        .events
        .iter()
        .rev()
        .find_map(|event| match &**event {
            TraceEvent::TextOutput { content, .. } => Some(content.clone()),
            _ => None,
        });
    let gave_up = matches!(
        recording.events.last().map(|event| &**event),
        Some(TraceEvent::Error {
            recoverable: false,
            ..
        })
    );
    PromptResult {
        text: text.unwrap_or_default(),
        metrics: PromptMetrics {
            tokens: recording.summary.total_tokens,
            timing: TimingBreakdown {
                wall_ms: recording.summary.total_duration,
                segments: Vec::new(),
            },
            tool_calls: Some(recording.tool_call_records()),
            ..PromptMetrics::default()
        },
        completion_reason: if gave_up {
            CompletionReason::Error
        } else {
            CompletionReason::Stop
        },
    }
}

fn unknown(handle: &SessionHandle) -> ProviderError {
    ProviderError::service(format!("no session `{}`", handle.session_id))
}
