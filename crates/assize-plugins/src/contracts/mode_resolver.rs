//! A mode resolver in a plugin program.

use crate::program::PluginProgram;
use crate::protocol::ModeParams;
use assize_contracts::{BoxError, ModeConfig, ModeResolver, async_trait};
use std::borrow::Cow;
use std::sync::Arc;

pub(super) struct ProgramModeResolver {
    pub(super) program: Arc<PluginProgram>,
}

#[async_trait]
impl ModeResolver for ProgramModeResolver {
    async fn resolve(&self, mode: &str) -> Result<ModeConfig, BoxError> {
        let params = ModeParams {
            mode: Cow::Borrowed(mode),
        };
        Ok(self.program.call("modeResolver/resolve", params).await?)
    }
}
