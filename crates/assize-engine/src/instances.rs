//! Instances of providers: each serves some arms, started before and shut down after.

use crate::event::Listener;
use crate::guard::guarded_provider;
use crate::plan::Arm;
use crate::profile::EngineError;
use crate::suite::{Mode, ProfileSuite};
use crate::watch::watched;
use assize_contracts::{PluginError, ProviderConfig, ProviderScope, SessionProvider};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A provider that was started and serves some arms.
pub(crate) struct Instance {
    pub(crate) provider: Arc<dyn SessionProvider>,
    /// The name that modes and limits use.
    pub(crate) name: String,
    /// Only one can exist, and it serves one arm at a time.
    exclusive: bool,
}

/// All instances that are up, and which arm each serves; arms may share one.
#[derive(Default, Clone)]
pub(crate) struct Instances {
    up: Vec<Arc<Instance>>,
    by_arm: BTreeMap<usize, Arc<Instance>>,
}

impl Instances {
    /// The instance that serves the arm.
    pub(crate) fn of(&self, arm: usize) -> &Arc<Instance> {
        &self.by_arm[&arm]
    }

    /// Makes sure that the arm is served. An instance that fails to start still counts as up: what it began must be ended.
    pub(crate) async fn start(
        &mut self,
        suite: &ProfileSuite,
        number: usize,
        arm: &Arm,
        listener: &dyn Listener,
    ) -> Result<(), EngineError> {
        let mode = suite.modes_by_name()[arm.mode.as_str()];
        let shared = self.up.iter().find(|instance| {
            instance.name == mode.provider && instance.provider.scope() == ProviderScope::Session
        });
        if let Some(instance) = shared {
            self.by_arm.insert(number, Arc::clone(instance));
            return Ok(());
        }
        let instance = Arc::new(Instance {
            provider: suite.providers[&mode.provider].instance(),
            name: mode.provider.clone(),
            exclusive: suite.is_exclusive(&mode.provider),
        });
        let config = config(suite, mode, arm)?;
        self.up.push(Arc::clone(&instance));
        let call = guarded_provider(instance.provider.init(&config));
        watched(listener, &["provider", &instance.name, "init"], call)
            .await
            .map_err(|error| EngineError::ProviderInit {
                provider: mode.provider.clone(),
                message: error.message,
            })?;
        self.by_arm.insert(number, instance);
        Ok(())
    }

    /// Ends the instances that can serve only one arm at a time.
    pub(crate) async fn shut_down_exclusive(&mut self) -> Vec<PluginError> {
        let (exclusive, others) = self.up.drain(..).partition(|instance| instance.exclusive);
        self.up = others;
        shut_down(exclusive).await
    }

    /// Shuts down all instances; errors are reported, not returned.
    pub(crate) async fn shut_down(self) -> Vec<PluginError> {
        shut_down(self.up).await
    }
}

async fn shut_down(instances: Vec<Arc<Instance>>) -> Vec<PluginError> {
    let mut errors = Vec::new();
    for instance in instances {
        if let Err(error) = guarded_provider(instance.provider.shutdown()).await {
            let hook = format!("shutdown:{}", instance.name);
            errors.push(PluginError {
                hook,
                message: error.message,
            });
        }
    }
    errors
}

fn config(suite: &ProfileSuite, mode: &Mode, arm: &Arm) -> Result<ProviderConfig, EngineError> {
    Ok(ProviderConfig {
        port: free_port()?,
        model: arm.model.clone(),
        mode: arm.mode.clone(),
        permissions: suite.permissions.clone(),
        environment: (*mode.environment).clone(),
        workdir: suite.directory.clone(),
        provider_overrides: (*mode.overrides).clone(),
    })
}

fn free_port() -> Result<u16, EngineError> {
    std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|source| EngineError::NoPort { source })
}
