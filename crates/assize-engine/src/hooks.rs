//! Calls the hooks: only the registered ones, one at a time per set unless it allows more.

use crate::event::Listener;
use crate::guard::guarded;
use crate::suite::Mode;
use crate::watch::watched;
use assize_contracts::{
    AfterScenarioContext, BaseScenario, BeforeScenarioContext, BoxError, HookEvent, PluginError,
    RunContext, RunHooks,
};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::Mutex;

/// All sets of hooks of a run.
pub(crate) struct Hooks {
    sets: Vec<HookSet>,
    listener: Arc<dyn Listener>,
}

struct HookSet {
    hooks: Arc<dyn RunHooks>,
    turn: Mutex<()>,
}

impl HookSet {
    async fn in_turn<T>(
        &self,
        listener: &dyn Listener,
        event: HookEvent,
        call: impl Future<Output = Result<T, BoxError>>,
    ) -> Result<T, BoxError> {
        let _turn = if self.hooks.concurrent() {
            None
        } else {
            Some(self.turn.lock().await)
        };
        watched(listener, &["hook", event.as_str()], guarded(call)).await
    }
}

impl Hooks {
    pub(crate) fn new(hooks: &[Arc<dyn RunHooks>], listener: Arc<dyn Listener>) -> Self {
        let set = |hooks: &Arc<dyn RunHooks>| HookSet {
            hooks: Arc::clone(hooks),
            turn: Mutex::new(()),
        };
        Self {
            sets: hooks.iter().map(set).collect(),
            listener,
        }
    }

    /// Passes the hooks the variables of processes that are started for the modes.
    pub(crate) fn announce_environments(&self, modes: &[Mode]) {
        for set in &self.sets {
            for mode in modes {
                set.hooks.mode_resolved(&mode.name, &mode.environment);
            }
        }
    }

    pub(crate) fn has(&self, event: HookEvent) -> bool {
        self.sets
            .iter()
            .any(|set| set.hooks.events().contains(&event))
    }

    fn having(&self, event: HookEvent) -> impl Iterator<Item = &HookSet> {
        self.sets
            .iter()
            .filter(move |set| set.hooks.events().contains(&event))
    }

    async fn call<T>(
        &self,
        set: &HookSet,
        event: HookEvent,
        call: impl Future<Output = Result<T, BoxError>>,
    ) -> Result<T, BoxError> {
        set.in_turn(&*self.listener, event, call).await
    }

    /// The scenario to use: the given one, or what the hooks put in its place.
    pub(crate) async fn before_scenario(
        &self,
        mut context: BeforeScenarioContext,
        errors: &mut Vec<PluginError>,
    ) -> Arc<BaseScenario> {
        for set in self.having(HookEvent::BeforeScenario) {
            let call = set.hooks.before_scenario(&context);
            match self.call(set, HookEvent::BeforeScenario, call).await {
                Ok(Some(replacement)) => context.scenario = Arc::new(replacement),
                Ok(None) => {}
                Err(error) => errors.push(hook_error(HookEvent::BeforeScenario, &error)),
            }
        }
        context.scenario
    }

    pub(crate) async fn after_scenario(&self, context: &AfterScenarioContext) -> Vec<PluginError> {
        let mut errors = Vec::new();
        for set in self.having(HookEvent::AfterScenario) {
            let call = set.hooks.after_scenario(context);
            let called = self.call(set, HookEvent::AfterScenario, call).await;
            note(&mut errors, HookEvent::AfterScenario, called);
        }
        errors
    }

    /// `event` is one of the two mode hooks.
    pub(crate) async fn around_mode(&self, event: HookEvent, mode: &str) -> Vec<PluginError> {
        let mut errors = Vec::new();
        for set in self.having(event) {
            let call = match event {
                HookEvent::BeforeMode => set.hooks.before_mode(mode),
                _ => set.hooks.after_mode(mode),
            };
            note(&mut errors, event, self.call(set, event, call).await);
        }
        errors
    }

    /// `event` is one of the two run hooks.
    pub(crate) async fn around_run(
        &self,
        event: HookEvent,
        context: &RunContext,
    ) -> Vec<PluginError> {
        let mut errors = Vec::new();
        for set in self.having(event) {
            let call = match event {
                HookEvent::BeforeRun => set.hooks.before_run(context),
                _ => set.hooks.after_run(context),
            };
            note(&mut errors, event, self.call(set, event, call).await);
        }
        errors
    }
}

fn note(errors: &mut Vec<PluginError>, event: HookEvent, result: Result<(), BoxError>) {
    if let Err(error) = result {
        errors.push(hook_error(event, &error));
    }
}

fn hook_error(event: HookEvent, error: &BoxError) -> PluginError {
    PluginError {
        hook: event.as_str().to_owned(),
        message: error.to_string(),
    }
}
