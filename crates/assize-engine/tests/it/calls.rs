//! The order of calls to plugin methods: one test per row of the table that plugin authors rely on.

use crate::support::*;
use assize_contracts::testing::{Script, ScriptedPrompt};
use assize_contracts::*;
use assize_engine::{Event, Listener, RunTarget};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const AROUND: [&str; 2] = ["init", "shutdown"];

fn check(done: &Done, trial: &[&str]) {
    let mut expected = vec![AROUND[0]];
    expected.extend(trial);
    expected.push(AROUND[1]);
    assert_eq!(done.provider.calls(), expected);
}

fn failing(error: ProviderError) -> Script {
    Script::of(ScriptedPrompt::Fail(error))
}

#[tokio::test]
async fn success() {
    let done = Bench::new(vec![Script::answering("hi")]).run().await;
    check(
        &done,
        &[
            "beforeScenario",
            "createSession",
            "prompt hello",
            "exportSession",
            "collect",
            "analyze",
            "evaluate",
            "destroySession",
            "afterScenario",
        ],
    );
    let row = done.row();
    assert_eq!(row.outcome, Some(Outcome::Pass));
    assert!(row.success);
    assert_eq!(row.extensions["answer_length"], 2);
    assert_eq!(row.completion_reason, Some(CompletionReason::Stop));
}

#[tokio::test]
async fn create_session_fails() {
    let error = ProviderError::service("no server");
    let done = Bench::new(vec![Script {
        create: Err(error),
        ..Script::answering("")
    }])
    .run()
    .await;
    check(&done, &["beforeScenario", "createSession", "afterScenario"]);
    let row = done.row();
    assert_eq!(row.outcome, Some(Outcome::Void));
    assert_eq!(
        (row.session_id, row.completion_reason, row.tokens.total),
        (None, None, None)
    );
    assert_eq!(row.error.as_deref(), Some("no server"));
    assert_eq!(row.void_cause, Some(VoidCause::AgentStart));
}

const AFTER_A_FAILED_PROMPT: [&str; 8] = [
    "beforeScenario",
    "createSession",
    "prompt hello",
    "exportSession",
    "collect",
    "analyze",
    "destroySession",
    "afterScenario",
];

const AFTER_AN_ANSWER: [&str; 9] = [
    "beforeScenario",
    "createSession",
    "prompt hello",
    "exportSession",
    "collect",
    "analyze",
    "evaluate",
    "destroySession",
    "afterScenario",
];

#[tokio::test]
async fn prompt_fails_by_the_agents_fault() {
    let known = PromptResult {
        metrics: PromptMetrics {
            tokens: TokenBreakdown {
                input: Some(7),
                ..Default::default()
            },
            ..Default::default()
        },
        ..Default::default()
    };
    let error = ProviderError::agent("it gave up").with_partial(known);
    let done = Bench::new(vec![failing(error)]).run().await;
    check(&done, &AFTER_AN_ANSWER);
    let row = done.row();
    assert_eq!(row.outcome, Some(Outcome::Fail));
    assert_eq!(
        row.tokens.input,
        Some(7),
        "what was used before the failure is kept"
    );
}

#[tokio::test]
async fn nothing_is_scored_when_the_agent_left_nothing() {
    let error = ProviderError::agent("it gave up");
    let done = Bench::new(vec![failing(error)]).run().await;
    check(&done, &AFTER_A_FAILED_PROMPT);
    assert_eq!(done.row().outcome, Some(Outcome::Fail));
}

#[tokio::test]
async fn prompt_fails_by_the_services_fault() {
    let done = Bench::new(vec![failing(
        ProviderError::service("503").with_code("overloaded"),
    )])
    .run()
    .await;
    check(&done, &AFTER_A_FAILED_PROMPT);
    let row = done.row();
    assert_eq!(row.outcome, Some(Outcome::Void));
    assert!(!row.success);
    assert_eq!(row.error_code.as_deref(), Some("overloaded"));
    assert_eq!(row.void_cause, Some(VoidCause::Provider));
}

#[tokio::test]
async fn a_void_says_whether_the_mode_may_have_brought_it_about() {
    let unanswered = || {
        ProviderError::service("401")
            .with_code("llm_401")
            .with_void_cause(VoidCause::NoModelAnswer)
    };
    let row = Bench::new(vec![failing(unanswered())]).run().await.row();
    assert_eq!(row.void_cause, Some(VoidCause::NoModelAnswer));
    assert!(!row.is_void_by_mode());
    let row = Bench::new(vec![failing(
        ProviderError::service("529").with_code("llm_529"),
    )])
    .run()
    .await
    .row();
    assert_eq!(row.void_cause, Some(VoidCause::LlmError));
    assert!(row.is_void_by_mode());
    let row = Bench::new(vec![failing(ProviderError::agent("gave up"))])
        .run()
        .await
        .row();
    assert_eq!((row.void_cause, row.is_void_by_mode()), (None, false));
}

#[tokio::test]
async fn error_tool_limit_and_timeout_are_scored_and_stay_fails() {
    for reason in [
        CompletionReason::Error,
        CompletionReason::ToolLimit,
        CompletionReason::Timeout,
    ] {
        let mut bench = Bench::new(vec![ending_with(reason)]);
        let partial = ScorerResult {
            success: true,
            passed: 2,
            total: 3,
            output_valid: true,
            ..Default::default()
        };
        bench.suite.scorer = Arc::new(NotingScorer(bench.noting(Behaviour::Fine), partial));
        let done = bench.run().await;
        check(&done, &AFTER_AN_ANSWER);
        let row = done.row();
        assert_eq!((row.outcome, row.success), (Some(Outcome::Fail), false));
        assert_eq!((row.checkpoints_passed, row.checkpoints_total), (2, 3));
        assert!(row.output_valid);
    }
}

#[tokio::test]
async fn a_scorer_that_breaks_does_not_make_a_failed_trial_void() {
    let mut bench = Bench::new(vec![ending_with(CompletionReason::ToolLimit)]);
    let broken = bench.noting(Behaviour::Fails);
    bench.suite.scorer = Arc::new(NotingScorer(broken, ScorerResult::default()));
    let row = bench.run().await.row();
    assert_eq!(row.outcome, Some(Outcome::Fail));
    assert_eq!(row.error_code.as_deref(), Some("tool_limit"));
    assert_eq!(row.hook_errors[0].hook, "scorer:noting");
}

#[tokio::test]
async fn a_timeout_that_the_provider_reports_early_is_not_said_to_have_used_up_the_limit() {
    let row = Bench::new(vec![ending_with(CompletionReason::Timeout)])
        .run()
        .await
        .row();
    let error = row.error.unwrap();
    assert!(
        error.starts_with("the provider reported a timeout after "),
        "{error}"
    );
    assert!(!error.contains("no end within"), "{error}");
}

#[tokio::test]
async fn counts_of_tokens_that_contradict_their_total_are_noted() {
    let tokens = TokenBreakdown {
        input: Some(50),
        output: Some(25),
        reasoning: Some(10),
        cache_read: Some(0),
        cache_write: Some(0),
        total: Some(90),
        active: Some(90),
    };
    let result = PromptResult {
        metrics: PromptMetrics {
            tokens,
            ..Default::default()
        },
        ..Default::default()
    };
    let script = Script::of(ScriptedPrompt::Answer(Box::new(result)));
    let row = Bench::new(vec![script]).run().await.row();
    assert_eq!(row.outcome, Some(Outcome::Pass));
    assert_eq!(row.hook_errors[0].hook, "tokens");
    assert_eq!(
        row.hook_errors[0].message,
        "the parts add up to 85, but `total` is 90"
    );
}

fn ending_with(reason: CompletionReason) -> Script {
    let result = PromptResult {
        completion_reason: reason,
        ..Default::default()
    };
    Script::of(ScriptedPrompt::Answer(Box::new(result)))
}

#[tokio::test(start_paused = true)]
async fn timeout() {
    let used = TokenBreakdown {
        input: Some(5),
        output: Some(1),
        ..Default::default()
    };
    let boundary = TraceEvent::TurnBoundary {
        turn_number: 0,
        timestamp: Timestamp::from_unix_ms(0),
    };
    let trace = SessionTrace::from_events("s".into(), vec![Arc::new(boundary)], used);
    let mut bench = Bench::new(vec![Script {
        export: Ok(trace),
        ..Script::of(ScriptedPrompt::Hang)
    }]);
    bench.scenario().timeout_ms = 5_000;
    let done = bench.run().await;
    check(&done, &AFTER_A_FAILED_PROMPT);
    let row = done.row();
    assert_eq!(row.outcome, Some(Outcome::Fail));
    assert!(row.censored);
    assert_eq!(row.completion_reason, Some(CompletionReason::Timeout));
    assert_eq!(
        row.tokens.input,
        Some(5),
        "what was used until the kill is kept"
    );
    let wall = row.timing.wall_ms.unwrap().value();
    assert!((5_000.0..5_100.0).contains(&wall), "{wall}");
}

#[tokio::test]
async fn export_fails() {
    let export = Err(ProviderError::service("lost"));
    let done = Bench::new(vec![Script {
        export,
        ..Script::answering("hi")
    }])
    .run()
    .await;
    check(
        &done,
        &[
            "beforeScenario",
            "createSession",
            "prompt hello",
            "exportSession",
            "collect without trace",
            "evaluate without trace",
            "destroySession",
            "afterScenario",
        ],
    );
    let row = done.row();
    assert_eq!(row.outcome, Some(Outcome::Pass));
    assert_eq!(row.hook_errors[0].hook, "exportSession");
}

#[tokio::test]
async fn nothing_is_exported_when_nobody_wants_it() {
    let mut bench = Bench::new(vec![Script::answering("hi")]);
    bench.suite.analyzers.clear();
    bench.suite.output.session_export = false;
    let done = bench.run().await;
    assert!(!done.provider.calls().contains(&"exportSession".to_owned()));
}

#[tokio::test]
async fn a_collector_or_analyzer_breaks() {
    for behaviour in [Behaviour::Fails, Behaviour::Panics] {
        let mut bench = Bench::new(vec![Script::answering("hi")]);
        let broken = bench.noting(behaviour);
        bench
            .suite
            .collectors
            .insert(0, Arc::new(NotingCollector(broken.clone())));
        bench
            .suite
            .analyzers
            .insert(0, Arc::new(NotingAnalyzer(broken)));
        let done = bench.run().await;
        check(
            &done,
            &[
                "beforeScenario",
                "createSession",
                "prompt hello",
                "exportSession",
                "collect",
                "collect",
                "analyze",
                "analyze",
                "evaluate",
                "destroySession",
                "afterScenario",
            ],
        );
        let row = done.row();
        assert_eq!(row.outcome, Some(Outcome::Pass));
        assert_eq!(
            row.extensions["answer_length"], 2,
            "the others are not harmed"
        );
        let lost: Vec<&str> = row
            .hook_errors
            .iter()
            .map(|loss| loss.hook.as_str())
            .collect();
        assert_eq!(lost, ["collector:noting", "analyzer:noting"]);
    }
}

#[tokio::test]
async fn the_scorer_breaks_or_says_error() {
    let said = ScorerResult {
        success: true,
        error: Some("cannot judge".into()),
        ..Default::default()
    };
    let cases = [
        (Behaviour::Fails, ScorerResult::default(), "it broke"),
        (
            Behaviour::Panics,
            ScorerResult::default(),
            "plugin panicked: it panicked",
        ),
        (Behaviour::Fine, said, "cannot judge"),
    ];
    for (behaviour, result, message) in cases {
        let mut bench = Bench::new(vec![Script::answering("hi")]);
        bench.suite.scorer = Arc::new(NotingScorer(bench.noting(behaviour), result));
        let done = bench.run().await;
        assert!(done.provider.calls().ends_with(
            &["evaluate", "destroySession", "afterScenario", "shutdown"].map(str::to_owned)
        ));
        let row = done.row();
        assert_eq!(row.outcome, Some(Outcome::Void));
        assert!(!row.success);
        assert_eq!(row.error_code.as_deref(), Some("scorer_error"));
        assert_eq!(row.error.as_deref(), Some(message));
    }
}

/// Cancels the run as soon as a trial begins.
struct CancelAtFirst(CancellationToken);

impl Listener for CancelAtFirst {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::CellStarted { .. } = event {
            let cancel = self.0.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                cancel.cancel();
            });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled() {
    let bench = Bench::new(vec![Script::of(ScriptedPrompt::Hang)]);
    let cancel = CancellationToken::new();
    let target = RunTarget::New(bench.results.path().join("runs"));
    let done = bench
        .run_with(target, Arc::new(CancelAtFirst(cancel.clone())), cancel)
        .await;
    check(
        &done,
        &[
            "beforeScenario",
            "createSession",
            "prompt hello",
            "destroySession",
            "afterScenario",
        ],
    );
    assert!(done.rows().is_empty());
    assert_eq!(done.result.as_ref().unwrap().open, 1, "the cell stays open");
}

/// Keeps the rows that `afterScenario` sees.
#[derive(Default)]
struct Seeing(std::sync::Mutex<Vec<ProfileRow>>);

#[async_trait]
impl RunHooks for Seeing {
    fn events(&self) -> &[HookEvent] {
        &[HookEvent::AfterScenario]
    }

    async fn after_scenario(&self, context: &AfterScenarioContext) -> Result<(), BoxError> {
        self.0.lock().unwrap().push(context.result.clone());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn after_scenario_of_a_cancelled_trial_says_cancelled() {
    let mut bench = Bench::new(vec![Script::of(ScriptedPrompt::Hang)]);
    let seeing = Arc::new(Seeing::default());
    bench.suite.hooks = vec![seeing.clone()];
    let cancel = CancellationToken::new();
    let target = RunTarget::New(bench.results.path().join("runs"));
    bench
        .run_with(target, Arc::new(CancelAtFirst(cancel.clone())), cancel)
        .await;
    let seen = seeing.0.lock().unwrap();
    assert_eq!(seen[0].error_code.as_deref(), Some("cancelled"));
    assert_eq!(seen[0].outcome, Some(Outcome::Void));
}

/// A hook, and a scorer, that take 45 s.
struct Slow;

#[async_trait]
impl RunHooks for Slow {
    fn events(&self) -> &[HookEvent] {
        &[HookEvent::BeforeScenario]
    }

    async fn before_scenario(
        &self,
        _: &BeforeScenarioContext,
    ) -> Result<Option<BaseScenario>, BoxError> {
        tokio::time::sleep(Duration::from_secs(45)).await;
        Ok(None)
    }
}

#[async_trait]
impl Scorer for Slow {
    fn id(&self) -> &str {
        "tests"
    }

    async fn evaluate(
        &self,
        _: &BaseScenario,
        _: &ScorerContext,
    ) -> Result<ScorerResult, BoxError> {
        tokio::time::sleep(Duration::from_secs(25)).await;
        Ok(ScorerResult {
            success: true,
            ..ScorerResult::default()
        })
    }
}

#[derive(Default)]
struct Waits(std::sync::Mutex<Vec<String>>);

impl Listener for Waits {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::Waiting { call, seconds } = event {
            self.0.lock().unwrap().push(format!("{call}: {seconds} s"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn slow_calls_are_waited_for_and_said_to_be() {
    let mut bench = Bench::new(vec![Script::answering("hi")]);
    bench.suite.hooks = vec![Arc::new(Slow)];
    bench.suite.scorer = Arc::new(Slow);
    let waits = Arc::new(Waits::default());
    let target = RunTarget::New(bench.results.path().join("runs"));
    let done = bench
        .run_with(target, waits.clone(), CancellationToken::new())
        .await;
    assert_eq!(done.row().outcome, Some(Outcome::Pass));
    assert_eq!(
        *waits.0.lock().unwrap(),
        [
            "hook beforeScenario: 10 s",
            "hook beforeScenario: 20 s",
            "hook beforeScenario: 30 s",
            "hook beforeScenario: 40 s",
            "scorer tests: 10 s",
            "scorer tests: 20 s"
        ]
    );
}

#[tokio::test]
async fn a_void_attempt_is_tried_again() {
    let mut bench = Bench::new(vec![
        failing(ProviderError::service("503")),
        Script::answering("hi"),
    ]);
    bench.scenario().allowed_retries = 3;
    let done = bench.run().await;
    let calls = done.provider.calls();
    let count = |name: &str| calls.iter().filter(|call| *call == name).count();
    assert_eq!(
        (
            count("beforeScenario"),
            count("createSession"),
            count("destroySession")
        ),
        (2, 2, 2)
    );
    let row = done.row();
    assert_eq!(row.outcome, Some(Outcome::Pass));
    assert_eq!(row.attempts.len(), 1);
    assert_eq!(row.attempts[0].error.as_deref(), Some("503"));
    let seeds: Vec<u64> = done
        .provider
        .params()
        .iter()
        .map(|params| params.seed)
        .collect();
    assert_ne!(seeds[0], seeds[1], "another attempt is another draw");
}

#[tokio::test]
async fn retries_are_used_up() {
    let mut bench = Bench::new(vec![failing(ProviderError::service("503"))]);
    bench.scenario().allowed_retries = 2;
    let row = bench.run().await.row();
    assert_eq!(row.outcome, Some(Outcome::Void));
    assert_eq!(row.attempts.len(), 2);
}

#[tokio::test]
async fn a_fail_is_tried_again_only_when_asked_for() {
    for (retry_fails, attempts) in [(false, 0), (true, 1)] {
        let mut bench = Bench::new(vec![
            failing(ProviderError::agent("no")),
            Script::answering("hi"),
        ]);
        bench.scenario().allowed_retries = 1;
        bench.suite.execution.retry_fails = retry_fails;
        assert_eq!(bench.run().await.row().attempts.len(), attempts);
    }
}

#[tokio::test]
async fn a_panicking_provider_is_void_and_harms_nobody_else() {
    let scripts = vec![Script::of(ScriptedPrompt::Panic), Script::answering("hi")];
    let mut bench = Bench::new(scripts);
    bench.suite.execution.repetitions = 2;
    let rows = bench.run().await.rows();
    let outcomes: Vec<_> = rows.iter().map(|row| row.outcome.unwrap()).collect();
    assert_eq!(outcomes, [Outcome::Void, Outcome::Pass]);
    assert_eq!(rows[0].error_code.as_deref(), Some("plugin_panic"));
}

#[tokio::test]
async fn several_user_turns_become_one_result() {
    let answer = |text: &str, tokens: u64, wall: u64| {
        ScriptedPrompt::Answer(Box::new(PromptResult {
            text: text.into(),
            metrics: PromptMetrics {
                tokens: TokenBreakdown {
                    input: Some(tokens),
                    ..Default::default()
                },
                timing: TimingBreakdown {
                    wall_ms: Some(Millis::from(wall)),
                    segments: vec![],
                },
                tool_calls: Some(vec![ToolCallRecord {
                    name: "bash".into(),
                    category: "shell".into(),
                    success: Some(true),
                    duration_ms: None,
                    error: None,
                    call_ref: None,
                }]),
                cost: CostBreakdown {
                    total_usd: Usd::new(0.25),
                    ..Default::default()
                },
                ..PromptMetrics::default()
            },
            completion_reason: CompletionReason::Stop,
        }))
    };
    let script = Script {
        prompts: vec![answer("one", 10, 100), answer("last", 20, 50)],
        ..Script::answering("")
    };
    let mut bench = Bench::new(vec![script]);
    bench.scenario().turns = vec!["and now?".into()];
    let done = bench.run().await;
    let calls = done.provider.calls();
    assert_eq!(calls.iter().filter(|call| *call == "collect").count(), 1);
    assert!(calls.contains(&"prompt and now?".to_owned()));
    let row = done.row();
    assert_eq!(row.tokens.input, Some(30));
    assert_eq!(row.cost.total_usd, Usd::new(0.5));
    assert_eq!(row.tool_calls.total, Some(2));
    assert_eq!(row.timing.wall_ms, Some(Millis::from(150)));
    let labels: Vec<_> = row
        .timing
        .segments
        .iter()
        .map(|segment| segment.label.as_str())
        .collect();
    assert_eq!(labels, ["turn_1", "turn_2"]);
    assert_eq!(row.extensions["answer_length"], 4, "the last text counts");
}

#[tokio::test]
async fn hooks_go_around_everything_and_their_failures_are_noted() {
    let mut bench = Bench::new(vec![Script::answering("hi")]);
    bench.suite.modes = vec![mode("a"), mode("b")];
    bench.suite.hooks = vec![Arc::new(NotingHooks(
        bench.noting(Behaviour::Fails),
        HookEvent::ALL.to_vec(),
    ))];
    let done = bench.run().await;
    let calls = done.provider.calls();
    let outer: Vec<&str> = calls
        .iter()
        .map(String::as_str)
        .filter(|call| call.contains("Run") || call.contains("Mode") || AROUND.contains(call))
        .collect();
    assert_eq!(
        outer,
        [
            "beforeRun",
            "init",
            "beforeMode a",
            "afterMode a",
            "beforeMode b",
            "afterMode b",
            "afterRun",
            "shutdown"
        ]
    );
    for row in done.rows() {
        let hooks: Vec<&str> = row
            .hook_errors
            .iter()
            .map(|error| error.hook.as_str())
            .collect();
        assert_eq!(hooks, ["beforeScenario", "afterScenario"]);
        assert_eq!(row.outcome, Some(Outcome::Pass), "a hook decides nothing");
    }
}

struct Replacing;

#[async_trait]
impl RunHooks for Replacing {
    fn events(&self) -> &[HookEvent] {
        &[HookEvent::BeforeScenario]
    }

    async fn before_scenario(
        &self,
        context: &BeforeScenarioContext,
    ) -> Result<Option<BaseScenario>, BoxError> {
        Ok(Some(BaseScenario {
            id: "other".into(),
            prompt: "fresh".into(),
            ..(*context.scenario).clone()
        }))
    }
}

#[tokio::test]
async fn before_scenario_may_replace_the_scenario_and_the_row_keeps_the_id() {
    let mut bench = Bench::new(vec![Script::answering("hi")]);
    bench.suite.hooks = vec![Arc::new(Replacing)];
    let done = bench.run().await;
    assert!(done.provider.calls().contains(&"prompt fresh".to_owned()));
    assert_eq!(done.row().scenario_id, "s");
}

#[tokio::test]
async fn the_warm_up_is_kept_apart() {
    let mut bench = Bench::new(vec![Script::answering("hi")]);
    bench.suite.execution.warmup = true;
    let done = bench.run().await;
    assert_eq!(done.row().iteration, 0);
    let warmup = std::fs::read_to_string(done.directory().join("warmup.jsonl")).unwrap();
    let row: ProfileRow = serde_json::from_str(warmup.trim()).unwrap();
    assert_eq!(row.iteration, -1);
}

#[tokio::test]
async fn two_collectors_of_one_metric_are_said_once() {
    #[derive(Default)]
    struct Cautions(std::sync::Mutex<Vec<String>>);
    impl Listener for Cautions {
        fn on_event(&self, event: &Event<'_>) {
            if let Event::Caution(caution) = event {
                self.0.lock().unwrap().push(caution.code.to_string());
            }
        }
    }
    let mut bench = Bench::new(vec![Script::answering("hi")]);
    let again = bench.noting(Behaviour::Fine);
    bench
        .suite
        .collectors
        .push(Arc::new(NotingCollector(again)));
    bench.suite.execution.repetitions = 3;
    let cautions = Arc::new(Cautions::default());
    let target = RunTarget::New(bench.results.path().join("runs"));
    let done = bench
        .run_with(target, cautions.clone(), CancellationToken::new())
        .await;
    assert_eq!(done.rows().len(), 3);
    assert_eq!(*cautions.0.lock().unwrap(), ["metric-clash"]);
}
