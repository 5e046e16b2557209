//! The plugin's side, for plugins written in Rust: serves a registry of contracts on stdin and stdout.

use crate::protocol::*;
use crate::wire::{self, Incoming};
use assize_contracts::{
    BoxError, Evaluator, EvaluatorSetup, Fault, JsonMap, Nature, Plugins, ProviderError,
    ProviderScope, ProviderSource, Runner, RunnerSetup, Scorer, SessionProvider,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Serves the plugins until stdin is closed. `main` of a plugin program in Rust:
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     assize_plugins::serve("words", env!("CARGO_PKG_VERSION"), |_options| assize_contracts::Plugins::new())
/// }
/// ```
///
/// `plugins` makes them from the `options` in the suite. A registry has at most one mode resolver and one set of hooks here.
pub fn serve(name: &str, version: &str, plugins: impl Fn(&JsonMap) -> Plugins) -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    else {
        return ExitCode::FAILURE;
    };
    let mut session = Session {
        info: Info {
            name: name.to_owned(),
            version: version.to_owned(),
        },
        served: None,
        underway: Arc::default(),
    };
    let mut stdin = std::io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = LONGEST_MESSAGE as u64 + 1;
        match (&mut stdin).take(limit).read_until(b'\n', &mut line) {
            Ok(1..) if line.len() <= LONGEST_MESSAGE => session.hear(&line, &plugins, &runtime),
            Ok(0) => break,
            _ => return ExitCode::FAILURE,
        }
    }
    runtime.shutdown_timeout(Duration::from_secs(1));
    ExitCode::SUCCESS
}

struct Session {
    info: Info,
    served: Option<Arc<Served>>,
    underway: Arc<Mutex<HashMap<String, Underway>>>,
}

/// A request that is not answered yet.
struct Underway {
    handle: JoinHandle<()>,
    is_hook: bool,
}

impl Session {
    fn hear(
        &mut self,
        line: &[u8],
        plugins: &impl Fn(&JsonMap) -> Plugins,
        runtime: &tokio::runtime::Runtime,
    ) {
        match wire::look_at(line) {
            Incoming::Request { id, method } if method == "initialize" => {
                let outcome = read::<InitializeParams>(line).map(|params| {
                    let served = Arc::new(Served::new(plugins(&params.options)));
                    let offer = served.offer(self.info.clone());
                    self.served = Some(served);
                    json!(offer)
                });
                write(&id, outcome);
            }
            Incoming::Request { id, method } => {
                let served = self.served.clone();
                let (line, underway) = (line.to_vec(), Arc::clone(&self.underway));
                let key = id.to_string();
                let is_hook = method.starts_with("hooks/");
                let task = async move {
                    let outcome = match served {
                        Some(served) => served.call(&method, &line).await,
                        None => Err(error(codes::INTERNAL, "`initialize` comes first")),
                    };
                    let was_wanted = locked(&underway).remove(&id.to_string()).is_some();
                    if was_wanted {
                        write(&id, outcome);
                    }
                };
                // Locked until the handle is in: the task must find itself there when it ends.
                let mut underway = locked(&self.underway);
                let handle = runtime.spawn(task);
                underway.insert(key, Underway { handle, is_hook });
            }
            Incoming::Notification { method } if method == "$/cancel" => self.cancel(line, runtime),
            _ => {}
        }
    }

    fn cancel(&self, line: &[u8], runtime: &tokio::runtime::Runtime) {
        let Ok(CancelParams { id }) = wire::params(line) else {
            return;
        };
        let Some(Underway { handle, is_hook }) = locked(&self.underway).remove(&id.to_string())
        else {
            return;
        };
        handle.abort();
        let answer = move || write(&json!(id), Err(error(codes::CANCELLED, "cancelled")));
        if !is_hook {
            return answer();
        }
        // The host that cancelled a hook continues when it is answered, so it must be over by then.
        runtime.spawn(async move {
            let _ = handle.await;
            answer();
        });
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One write per message, so that answers of several threads do not mix.
fn write(id: &Value, outcome: Result<Value, RpcError>) {
    let too_long = |problem: crate::CallError| Err(error(codes::INTERNAL, problem.to_string()));
    let line = wire::answer(id, outcome).or_else(|problem| wire::answer(id, too_long(problem)));
    if let Ok(line) = line {
        let mut stdout = std::io::stdout().lock();
        // The host is gone when this fails, and stdin will end, too.
        let _ = stdout.write_all(&line).and_then(|()| stdout.flush());
    }
}

fn error(code: i64, message: impl Into<String>) -> RpcError {
    RpcError {
        code,
        message: message.into(),
        data: None,
    }
}

fn read<P: DeserializeOwned>(line: &[u8]) -> Result<P, RpcError> {
    wire::params(line).map_err(|problem| error(codes::BAD_PARAMS, problem))
}

fn reply(outcome: Result<impl Serialize, BoxError>) -> Result<Value, RpcError> {
    match outcome {
        Ok(result) => serde_json::to_value(result)
            .map_err(|problem| error(codes::INTERNAL, problem.to_string())),
        Err(problem) => Err(error(codes::FAILED, problem.to_string())),
    }
}

fn provider_reply(outcome: Result<impl Serialize, ProviderError>) -> Result<Value, RpcError> {
    outcome.map_or_else(
        |problem| {
            let data = FailureData {
                fault: Some(problem.fault).filter(|fault| *fault == Fault::Agent),
                code: problem.code,
                partial: problem.partial.map(|partial| *partial),
                void_cause: problem.void_cause,
            };
            Err(RpcError {
                data: Some(json!(data)),
                ..error(codes::FAILED, problem.message)
            })
        },
        |result| reply(Ok(result)),
    )
}

/// A registry with everything made that has to be.
struct Served {
    plugins: Plugins,
    providers: BTreeMap<String, Arc<dyn SessionProvider>>,
    runners: BTreeMap<String, Arc<dyn Runner>>,
}

impl Served {
    fn new(plugins: Plugins) -> Self {
        let instance = |(id, source): (&String, &ProviderSource)| (id.clone(), source.instance());
        let providers = plugins.providers().iter().map(instance).collect();
        let (config, directory) = (JsonMap::new(), Path::new("."));
        let runners = plugins.runners().iter().filter_map(|(id, source)| {
            let setup = RunnerSetup {
                id,
                task_type: source.task_type().unwrap_or_default(),
                config: &config,
                directory,
                prices_file: None,
                plugins: &plugins,
            };
            Some((id.clone(), source.make(&setup).ok()?))
        });
        Self {
            runners: runners.collect(),
            providers,
            plugins,
        }
    }

    fn offer(&self, info: Info) -> InitializeResult {
        let plugins = &self.plugins;
        let hooks = plugins.hook_sets().values().next();
        let capabilities = Capabilities {
            providers: self
                .providers
                .values()
                .map(|provider| offered(&**provider))
                .collect(),
            scorers: plugins
                .scorers()
                .keys()
                .map(|id| ScorerOffer { id: id.clone() })
                .collect(),
            collectors: plugins
                .collectors()
                .keys()
                .map(|id| CollectorOffer { id: id.clone() })
                .collect(),
            analyzers: plugins
                .analyzers()
                .keys()
                .map(|name| AnalyzerOffer { name: name.clone() })
                .collect(),
            mode_resolver: plugins
                .mode_resolvers()
                .values()
                .next()
                .map(|_| ModeResolverOffer {}),
            hooks: hooks.map(|hooks| HooksOffer {
                events: hooks.events().to_vec(),
                concurrent: hooks.concurrent(),
            }),
            runners: self
                .runners
                .values()
                .map(|runner| RunnerOffer {
                    id: runner.id().to_owned(),
                    r#type: runner.task_type().to_owned(),
                    version: runner.version().to_owned(),
                })
                .collect(),
            evaluators: plugins
                .evaluators()
                .iter()
                .map(|(id, evaluator)| EvaluatorOffer {
                    id: id.clone(),
                    metrics: evaluator.metrics().to_vec(),
                })
                .collect(),
            concurrency: None,
        };
        InitializeResult {
            protocol_version: PROTOCOL_VERSION,
            info,
            capabilities,
        }
    }

    async fn call(&self, method: &str, line: &[u8]) -> Result<Value, RpcError> {
        match method.split_once('/') {
            Some(("provider", method)) => self.call_provider(method, line).await,
            Some(("hooks", method)) => self.call_hooks(method, line).await,
            Some(("scorer", "evaluate")) => {
                let ScorerEvaluateParams {
                    scorer,
                    scenario,
                    context,
                    settings,
                } = read(line)?;
                let scorer = self.scorer(&scorer, &settings)?;
                reply(scorer.evaluate(&scenario, &context).await)
            }
            Some(("collector", "collect")) => {
                let params: CollectorCollectParams<'_> = read(line)?;
                let collector = named(self.plugins.collectors(), &params.collector)?;
                let trace = params.trace.as_deref();
                reply(
                    collector
                        .collect(&params.result, &params.scenario, &params.mode, trace)
                        .await,
                )
            }
            Some(("analyzer", "analyze")) => {
                let params: AnalyzerAnalyzeParams<'_> = read(line)?;
                let analyzer = named(self.plugins.analyzers(), &params.analyzer)?;
                reply(
                    analyzer
                        .analyze(&params.trace, &params.scenario, &params.mode)
                        .await,
                )
            }
            Some(("modeResolver", "resolve")) => {
                let ModeParams { mode } = read(line)?;
                let resolver = first(self.plugins.mode_resolvers())?;
                reply(resolver.resolve(&mode).await)
            }
            Some(("runner", "execute")) => self.execute(line).await,
            Some(("evaluator", "evaluate")) => self.evaluate(line).await,
            Some(("evaluator", "evaluateScenario")) => self.evaluate_scenario(line).await,
            _ => Err(error(
                codes::UNKNOWN_METHOD,
                format!("there is no method `{method}`"),
            )),
        }
    }

    async fn execute(&self, line: &[u8]) -> Result<Value, RpcError> {
        let RunnerExecuteParams {
            runner,
            task,
            config,
            setting,
        } = read(line)?;
        let runner = named(&self.runners, &runner)?;
        reply(match setting.map(ExecutionSetting::into_setting) {
            Some(setting) => runner.execute_in(&task, &config, &setting).await,
            None => runner.execute(&task, &config).await,
        })
    }

    async fn evaluate(&self, line: &[u8]) -> Result<Value, RpcError> {
        let EvaluatorEvaluateParams {
            evaluator,
            run,
            task,
            config,
        } = read(line)?;
        let evaluator = self.evaluator(&evaluator, &config)?;
        reply(evaluator.evaluate(&run, &task).await)
    }

    async fn evaluate_scenario(&self, line: &[u8]) -> Result<Value, RpcError> {
        let EvaluatorEvaluateScenarioParams {
            evaluator,
            run,
            task,
            config,
        } = read(line)?;
        let evaluator = self.evaluator(&evaluator, &config)?;
        reply(evaluator.evaluate_scenario(&run, &task).await)
    }

    fn scorer(&self, id: &str, settings: &JsonMap) -> Result<Arc<dyn Scorer>, RpcError> {
        let make = named(self.plugins.scorers(), id)?;
        make(settings).map_err(|problem| error(codes::BAD_PARAMS, problem.to_string()))
    }

    fn evaluator(&self, id: &str, config: &JsonMap) -> Result<Arc<dyn Evaluator>, RpcError> {
        let source = named(self.plugins.evaluators(), id)?;
        let setup = EvaluatorSetup {
            id,
            config,
            directory: Path::new("."),
            plugins: &self.plugins,
        };
        let made = source.make(&setup);
        made.map_err(|problem| error(codes::BAD_PARAMS, problem.to_string()))
    }

    async fn call_provider(&self, method: &str, line: &[u8]) -> Result<Value, RpcError> {
        match method {
            "init" => {
                let ProviderInitParams { provider, config } = read(line)?;
                provider_reply(named(&self.providers, &provider)?.init(&config).await)
            }
            "createSession" => {
                let ProviderCreateSessionParams { provider, params } = read(line)?;
                provider_reply(
                    named(&self.providers, &provider)?
                        .create_session(&params)
                        .await,
                )
            }
            "prompt" => {
                let ProviderPromptParams {
                    provider,
                    handle,
                    text,
                    timeout_ms,
                } = read(line)?;
                let provider = named(&self.providers, &provider)?;
                provider_reply(
                    provider
                        .prompt(&handle, &text, Duration::from_millis(timeout_ms))
                        .await,
                )
            }
            "exportSession" => {
                let ProviderSessionParams { provider, handle } = read(line)?;
                provider_reply(
                    named(&self.providers, &provider)?
                        .export_session(&handle)
                        .await,
                )
            }
            "destroySession" => {
                let ProviderSessionParams { provider, handle } = read(line)?;
                provider_reply(
                    named(&self.providers, &provider)?
                        .destroy_session(&handle)
                        .await,
                )
            }
            "shutdown" => {
                let ProviderShutdownParams { provider } = read(line)?;
                provider_reply(named(&self.providers, &provider)?.shutdown().await)
            }
            _ => Err(error(
                codes::UNKNOWN_METHOD,
                format!("there is no method `provider/{method}`"),
            )),
        }
    }

    async fn call_hooks(&self, method: &str, line: &[u8]) -> Result<Value, RpcError> {
        let hooks = first(self.plugins.hook_sets())?;
        match method {
            "beforeScenario" => {
                let BeforeScenarioParams { context } = read(line)?;
                reply(hooks.before_scenario(&context).await)
            }
            "afterScenario" => {
                let AfterScenarioParams { context } = read(line)?;
                reply(hooks.after_scenario(&context).await)
            }
            "beforeMode" => reply(hooks.before_mode(&read::<ModeParams<'_>>(line)?.mode).await),
            "afterMode" => reply(hooks.after_mode(&read::<ModeParams<'_>>(line)?.mode).await),
            "beforeRun" => reply(
                hooks
                    .before_run(&read::<RunParams<'_>>(line)?.context)
                    .await,
            ),
            "afterRun" => reply(hooks.after_run(&read::<RunParams<'_>>(line)?.context).await),
            _ => Err(error(
                codes::UNKNOWN_METHOD,
                format!("there is no method `hooks/{method}`"),
            )),
        }
    }
}

fn offered(provider: &dyn SessionProvider) -> ProviderOffer {
    ProviderOffer {
        id: provider.id().to_owned(),
        scope: match provider.scope() {
            ProviderScope::Session => OfferedScope::Session,
            ProviderScope::Mode => OfferedScope::Mode,
        },
        concurrency: Some(provider.concurrency()),
        default_model: provider.default_model(&JsonMap::new()),
        may_cost: Some(provider.may_cost()),
        nature: match provider.nature() {
            Nature::Live => OfferedNature::Live,
            Nature::Replayed => OfferedNature::Replayed,
            Nature::Simulated => OfferedNature::Simulated,
        },
        timeout_grace_ms: u64::try_from(provider.timeout_grace().as_millis()).ok(),
    }
}

fn named<'a, T>(plugins: &'a BTreeMap<String, T>, id: &str) -> Result<&'a T, RpcError> {
    plugins
        .get(id)
        .ok_or_else(|| error(codes::BAD_PARAMS, format!("there is no `{id}` here")))
}

fn first<T>(plugins: &BTreeMap<String, T>) -> Result<&T, RpcError> {
    plugins
        .values()
        .next()
        .ok_or_else(|| error(codes::UNKNOWN_METHOD, "nothing of the kind is served here"))
}
