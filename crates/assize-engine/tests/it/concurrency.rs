//! The number of trials that run at once, and the order in which they wait.

use crate::support::*;
use assize_contracts::testing::{Script, ScriptedProvider};
use assize_contracts::*;
use assize_engine::{Mode, Order};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A provider that takes a second per prompt and notes how many run at once.
struct Slow {
    id: &'static str,
    concurrency: Concurrency,
    running: AtomicUsize,
    most: Arc<AtomicUsize>,
    started: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl SessionProvider for Slow {
    fn id(&self) -> &str {
        self.id
    }

    fn scope(&self) -> ProviderScope {
        ProviderScope::Session
    }

    fn concurrency(&self) -> Concurrency {
        self.concurrency
    }

    async fn create_session(
        &self,
        params: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError> {
        self.started.lock().unwrap().push(params.mode.clone());
        let session_id = format!(
            "{}-{}-{}",
            params.mode, params.scenario_id, params.iteration
        );
        let created_at = Timestamp::from_unix_ms(0);
        Ok(SessionHandle::new(session_id, self.id, created_at))
    }

    async fn prompt(
        &self,
        _: &SessionHandle,
        _: &str,
        _: Duration,
    ) -> Result<PromptResult, ProviderError> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        Ok(PromptResult::default())
    }

    async fn export_session(&self, _: &SessionHandle) -> Result<SessionTrace, ProviderError> {
        Ok(SessionTrace::default())
    }

    async fn destroy_session(&self, _: &SessionHandle) -> Result<(), ProviderError> {
        Ok(())
    }
}

struct Measured {
    bench: Bench,
    most: BTreeMap<&'static str, Arc<AtomicUsize>>,
    started: Arc<Mutex<Vec<String>>>,
}

/// Modes `fast-…` and `slow-…` on providers of those names.
fn bench(repetitions: u32) -> Measured {
    bench_of(repetitions, Concurrency::ANY)
}

fn bench_of(repetitions: u32, concurrency: Concurrency) -> Measured {
    let mut bench = Bench::of(
        ProviderSource::Single(Arc::new(ScriptedProvider::new(vec![Script::answering("")]))),
        ScriptedProvider::new(vec![]),
    );
    let started = Arc::new(Mutex::new(Vec::new()));
    let mut most = BTreeMap::new();
    bench.suite.providers.clear();
    bench.suite.modes.clear();
    for id in ["one", "two"] {
        let counter = Arc::new(AtomicUsize::new(0));
        most.insert(id, Arc::clone(&counter));
        let provider = Slow {
            id,
            concurrency,
            running: AtomicUsize::new(0),
            most: counter,
            started: Arc::clone(&started),
        };
        bench
            .suite
            .providers
            .insert(id.into(), ProviderSource::Single(Arc::new(provider)));
        bench.suite.modes.push(Mode {
            name: id.into(),
            provider: id.into(),
            ..Mode::default()
        });
    }
    bench.suite.hooks.clear();
    bench.suite.execution.repetitions = repetitions;
    Measured {
        bench,
        most,
        started,
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_run_at_once_and_the_limit_is_used() {
    let mut measured = bench(20);
    measured.bench.suite.execution.concurrency = 6;
    measured.bench.suite.execution.limits = BTreeMap::from([("one".to_owned(), 2)]);
    let started = tokio::time::Instant::now();
    let done = measured.bench.run().await;
    assert_eq!(done.rows().len(), 40);
    assert_eq!(measured.most["one"].load(Ordering::SeqCst), 2);
    assert_eq!(
        measured.most["two"].load(Ordering::SeqCst),
        4,
        "the other takes the free places"
    );
    assert_eq!(started.elapsed().as_secs(), 10, "20 trials, two at a time");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_declares_nothing_has_one_session_at_a_time_per_instance() {
    let provider = ScriptedProvider::new(vec![]);
    assert_eq!(Undeclared(provider).concurrency(), Concurrency::ONE);
    let mut measured = bench_of(5, Concurrency::ONE);
    measured.bench.suite.execution.concurrency = 6;
    let started = tokio::time::Instant::now();
    let done = measured.bench.run().await;
    assert_eq!(done.rows().len(), 10);
    for id in ["one", "two"] {
        assert_eq!(measured.most[id].load(Ordering::SeqCst), 1, "{id}");
    }
    assert_eq!(
        started.elapsed().as_secs(),
        5,
        "the two instances work side by side"
    );
}

#[tokio::test(start_paused = true)]
async fn a_provider_has_as_many_sessions_at_once_as_it_declares() {
    let three = serde_json::from_str("3").unwrap();
    let mut measured = bench_of(9, three);
    measured.bench.suite.execution.concurrency = 20;
    measured.bench.run().await;
    assert_eq!(measured.most["one"].load(Ordering::SeqCst), 3);
    let any: Concurrency = serde_json::from_str("\"any\"").unwrap();
    assert_eq!(any, Concurrency::ANY);
}

/// A provider that declares nothing.
struct Undeclared(ScriptedProvider);

#[async_trait]
impl SessionProvider for Undeclared {
    fn id(&self) -> &str {
        "undeclared"
    }

    async fn create_session(
        &self,
        params: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError> {
        self.0.create_session(params).await
    }

    async fn prompt(
        &self,
        handle: &SessionHandle,
        text: &str,
        timeout: Duration,
    ) -> Result<PromptResult, ProviderError> {
        self.0.prompt(handle, text, timeout).await
    }

    async fn export_session(&self, handle: &SessionHandle) -> Result<SessionTrace, ProviderError> {
        self.0.export_session(handle).await
    }

    async fn destroy_session(&self, handle: &SessionHandle) -> Result<(), ProviderError> {
        self.0.destroy_session(handle).await
    }
}

#[tokio::test(start_paused = true)]
async fn modes_are_served_fairly() {
    let mut measured = bench(20);
    measured.bench.suite.execution.concurrency = 3;
    let done = measured.bench.run().await;
    assert_eq!(done.rows().len(), 40);
    let started = measured.started.lock().unwrap();
    for count in 1..=started.len() {
        let ones = started[..count]
            .iter()
            .filter(|mode| *mode == "one")
            .count();
        assert!(
            ones.abs_diff(count - ones) <= 2,
            "after {count} starts {ones} were of mode `one`"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_order_is_the_planned_one() {
    let mut measured = bench(3);
    measured.bench.suite.execution.order = Order::Sequential;
    measured.bench.run().await;
    assert_eq!(
        *measured.started.lock().unwrap(),
        ["one", "one", "one", "two", "two", "two"]
    );
}

#[tokio::test]
async fn nothing_more_starts_after_the_first_failure_when_asked_for() {
    let mut bench = Bench::new(vec![Script::answering("hi")]);
    bench.suite.scorer = Arc::new(NotingScorer(
        bench.noting(Behaviour::Fine),
        ScorerResult::default(),
    ));
    bench.suite.execution.repetitions = 50;
    bench.suite.execution.fail_fast = true;
    let done = bench.run().await;
    assert_eq!(done.rows().len(), 1);
    assert_eq!(done.result.as_ref().unwrap().open, 49);
}
