//! The three ways a provider may be scoped: a mode's settings reach its own sessions only.

use crate::support::*;
use assize_contracts::testing::{Script, ScriptedProvider};
use assize_contracts::*;
use assize_engine::EngineError;
use std::collections::BTreeMap;
use std::sync::Arc;

fn two_modes(bench: &mut Bench) {
    bench.suite.modes = ["a", "b"].map(mode).to_vec();
    for mode in &mut bench.suite.modes {
        mode.environment = Arc::new(BTreeMap::from([("MODE".to_owned(), mode.name.clone())]));
        let overrides = JsonMap::from_iter([("setting".to_owned(), mode.name.clone().into())]);
        mode.overrides = Arc::new(overrides);
        mode.system_instructions = format!("be {}", mode.name);
    }
    bench.suite.hooks.clear();
    bench.suite.execution.repetitions = 2;
}

fn check_sessions(done: &Done) {
    let params = done.provider.params();
    assert_eq!(params.len(), 4);
    for session in params {
        assert_eq!(session.environment["MODE"], session.mode);
        assert_eq!(session.provider_overrides["setting"], session.mode.as_str());
        assert_eq!(session.system_instructions, format!("be {}", session.mode));
    }
    assert_eq!(done.rows().len(), 4);
}

fn check_configs(done: &Done) {
    for config in done.provider.configs() {
        assert_eq!(config.environment["MODE"], config.mode);
        assert_eq!(config.provider_overrides["setting"], config.mode.as_str());
        assert_ne!(config.port, 0);
    }
}

fn starts_and_ends(done: &Done) -> Vec<String> {
    done.provider
        .calls()
        .into_iter()
        .filter(|call| ["init", "shutdown"].contains(&call.as_str()))
        .collect()
}

#[tokio::test]
async fn a_session_scoped_provider_is_started_once_and_told_with_every_session() {
    let mut bench = Bench::new(vec![Script::answering("hi")]);
    two_modes(&mut bench);
    let done = bench.run().await;
    assert_eq!(starts_and_ends(&done), ["init", "shutdown"]);
    check_sessions(&done);
}

#[tokio::test]
async fn a_mode_scoped_provider_gets_an_instance_per_mode() {
    let provider =
        ScriptedProvider::new(vec![Script::answering("hi")]).with_scope(ProviderScope::Mode);
    let shared = provider.clone();
    let source = ProviderSource::Factory(Arc::new(move || Arc::new(shared.clone())));
    let mut bench = Bench::of(source, provider);
    two_modes(&mut bench);
    let done = bench.run().await;
    assert_eq!(
        starts_and_ends(&done),
        ["init", "init", "shutdown", "shutdown"]
    );
    assert_eq!(
        done.provider
            .configs()
            .iter()
            .map(|config| config.mode.clone())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );
    check_configs(&done);
    check_sessions(&done);
}

#[tokio::test]
async fn where_only_one_instance_can_exist_modes_run_one_after_another() {
    let provider =
        ScriptedProvider::new(vec![Script::answering("hi")]).with_scope(ProviderScope::Mode);
    let mut bench = Bench::of(ProviderSource::Single(Arc::new(provider.clone())), provider);
    two_modes(&mut bench);
    bench.suite.execution.concurrency = 4;
    let done = bench.run().await;
    assert_eq!(
        starts_and_ends(&done),
        ["init", "shutdown", "init", "shutdown"]
    );
    let modes: Vec<String> = done
        .provider
        .params()
        .into_iter()
        .map(|params| params.mode)
        .collect();
    assert_eq!(modes, ["a", "a", "b", "b"]);
    check_configs(&done);
    check_sessions(&done);
}

struct Resolver;

#[async_trait]
impl ModeResolver for Resolver {
    async fn resolve(&self, mode: &str) -> Result<ModeConfig, BoxError> {
        match mode {
            "known" => Ok(ModeConfig {
                system_instructions: "resolved".into(),
                ..Default::default()
            }),
            other => Err(format!("there is no mode `{other}`").into()),
        }
    }
}

#[tokio::test]
async fn modes_are_resolved_before_anything_is_spent() {
    let mut bench = Bench::new(vec![Script::answering("hi")]);
    bench.suite.mode_resolver = Some(Arc::new(Resolver));
    bench.suite.modes = vec![mode("known")];
    let done = bench.run().await;
    assert_eq!(done.provider.params()[0].system_instructions, "resolved");

    let mut bench = Bench::new(vec![Script::answering("hi")]);
    bench.suite.mode_resolver = Some(Arc::new(Resolver));
    bench.suite.modes = vec![mode("known"), mode("typo")];
    let done = bench.run().await;
    let error = done.result.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot resolve mode `typo`: there is no mode `typo`"
    );
    assert!(done.provider.calls().is_empty(), "nothing was started");
}

struct Unstartable;

#[async_trait]
impl SessionProvider for Unstartable {
    fn id(&self) -> &str {
        "scripted"
    }

    async fn init(&self, _: &ProviderConfig) -> Result<(), ProviderError> {
        Err(ProviderError::service("port taken"))
    }

    async fn create_session(
        &self,
        _: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError> {
        unreachable!("it never started")
    }

    async fn prompt(
        &self,
        _: &SessionHandle,
        _: &str,
        _: std::time::Duration,
    ) -> Result<PromptResult, ProviderError> {
        unreachable!("it never started")
    }

    async fn export_session(&self, _: &SessionHandle) -> Result<SessionTrace, ProviderError> {
        unreachable!("it never started")
    }

    async fn destroy_session(&self, _: &SessionHandle) -> Result<(), ProviderError> {
        unreachable!("it never started")
    }
}

#[tokio::test]
async fn a_provider_that_cannot_start_ends_the_run() {
    let provider = ScriptedProvider::new(vec![]);
    let bench = Bench::of(ProviderSource::Single(Arc::new(Unstartable)), provider);
    let done = bench.run().await;
    assert!(matches!(done.result, Err(EngineError::ProviderInit { .. })));
}
