//! A runner in a plugin program.

use crate::program::PluginProgram;
use crate::protocol::{RunnerExecuteParams, RunnerOffer};
use assize_contracts::{AtomicTask, BoxError, RunRecord, RunSetting, Runner, async_trait};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

const SLACK: Duration = Duration::from_secs(5);

pub(super) struct ProgramRunner {
    pub(super) program: Arc<PluginProgram>,
    pub(super) offer: RunnerOffer,
}

#[async_trait]
impl Runner for ProgramRunner {
    fn id(&self) -> &str {
        &self.offer.id
    }

    fn task_type(&self) -> &str {
        &self.offer.r#type
    }

    fn version(&self) -> &str {
        &self.offer.version
    }

    async fn execute(&self, task: &AtomicTask, config: &Value) -> Result<RunRecord, BoxError> {
        self.call(task, config, None, None).await
    }

    async fn execute_in(
        &self,
        task: &AtomicTask,
        config: &Value,
        setting: &RunSetting,
    ) -> Result<RunRecord, BoxError> {
        // The engine ends an execution in time; this is only so that no call is without an end.
        let limit = setting.timeout.saturating_add(SLACK);
        self.call(task, config, Some(setting), Some(limit)).await
    }
}

impl ProgramRunner {
    async fn call(
        &self,
        task: &AtomicTask,
        config: &Value,
        setting: Option<&RunSetting>,
        limit: Option<Duration>,
    ) -> Result<RunRecord, BoxError> {
        let params = RunnerExecuteParams {
            runner: Cow::Borrowed(&self.offer.id),
            task: Cow::Borrowed(task),
            config: Cow::Borrowed(config),
            setting: setting.map(Into::into),
        };
        let call = self.program.call_within("runner/execute", params, limit);
        Ok(call.await?)
    }
}
