//! Plugins that note their calls into one list, and a suite made of them.

use assize_contracts::testing::{Script, ScriptedProvider};
use assize_contracts::*;
use assize_engine::{
    EngineError, Execution, Listener, Mode, ProfileSuite, ProfileSuiteResult, RunTarget,
    run_profile_suite,
};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The behaviour of a noting plugin when it is called.
#[derive(Clone, Default)]
pub(crate) enum Behaviour {
    #[default]
    Fine,
    Fails,
    Panics,
}

impl Behaviour {
    fn act(&self) -> Result<(), BoxError> {
        match self {
            Self::Fine => Ok(()),
            Self::Fails => Err("it broke".into()),
            Self::Panics => panic!("it panicked"),
        }
    }
}

#[derive(Clone)]
pub(crate) struct Noting {
    pub(crate) log: ScriptedProvider,
    pub(crate) behaviour: Behaviour,
}

impl Noting {
    fn note(&self, call: &str) -> Result<(), BoxError> {
        self.log.note(call);
        self.behaviour.act()
    }
}

pub(crate) struct NotingScorer(pub(crate) Noting, pub(crate) ScorerResult);

#[async_trait]
impl Scorer for NotingScorer {
    fn id(&self) -> &str {
        "noting"
    }

    async fn evaluate(
        &self,
        _: &BaseScenario,
        context: &ScorerContext,
    ) -> Result<ScorerResult, BoxError> {
        let trace = if context.trace.is_some() {
            ""
        } else {
            " without trace"
        };
        self.0.note(&format!("evaluate{trace}"))?;
        Ok(self.1.clone())
    }
}

pub(crate) struct NotingCollector(pub(crate) Noting);

#[async_trait]
impl Collector for NotingCollector {
    fn id(&self) -> &str {
        "noting"
    }

    async fn collect(
        &self,
        result: &PromptResult,
        _: &BaseScenario,
        _: &str,
        trace: Option<&SessionTrace>,
    ) -> Result<Vec<CustomMetric>, BoxError> {
        self.0.note(if trace.is_some() {
            "collect"
        } else {
            "collect without trace"
        })?;
        let length = CustomMetric::number("answer_length", result.text.len() as f64, "bytes");
        Ok(length.into_iter().collect())
    }
}

pub(crate) struct NotingAnalyzer(pub(crate) Noting);

#[async_trait]
impl Analyzer for NotingAnalyzer {
    fn name(&self) -> &str {
        "noting"
    }

    async fn analyze(
        &self,
        _: &SessionTrace,
        _: &BaseScenario,
        _: &str,
    ) -> Result<AnalysisResult, BoxError> {
        self.0.note("analyze")?;
        Ok(AnalysisResult {
            analyzer: "noting".into(),
            findings: Default::default(),
            summary: "nothing".into(),
        })
    }
}

pub(crate) struct NotingHooks(pub(crate) Noting, pub(crate) Vec<HookEvent>);

#[async_trait]
impl RunHooks for NotingHooks {
    fn events(&self) -> &[HookEvent] {
        &self.1
    }

    async fn before_scenario(
        &self,
        _: &BeforeScenarioContext,
    ) -> Result<Option<BaseScenario>, BoxError> {
        self.0.note("beforeScenario").map(|()| None)
    }

    async fn after_scenario(&self, _: &AfterScenarioContext) -> Result<(), BoxError> {
        self.0.note("afterScenario")
    }

    async fn before_mode(&self, mode: &str) -> Result<(), BoxError> {
        self.0.note(&format!("beforeMode {mode}"))
    }

    async fn after_mode(&self, mode: &str) -> Result<(), BoxError> {
        self.0.note(&format!("afterMode {mode}"))
    }

    async fn before_run(&self, _: &RunContext) -> Result<(), BoxError> {
        self.0.note("beforeRun")
    }

    async fn after_run(&self, _: &RunContext) -> Result<(), BoxError> {
        self.0.note("afterRun")
    }
}

/// A suite whose plugins all note into the provider's list.
pub(crate) struct Bench {
    pub(crate) provider: ScriptedProvider,
    pub(crate) suite: ProfileSuite,
    pub(crate) results: TempDir,
}

pub(crate) const SCENARIO_HOOKS: [HookEvent; 2] =
    [HookEvent::BeforeScenario, HookEvent::AfterScenario];

impl Bench {
    pub(crate) fn new(scripts: Vec<Script>) -> Self {
        let provider = ScriptedProvider::new(scripts);
        Self::of(ProviderSource::Single(Arc::new(provider.clone())), provider)
    }

    pub(crate) fn of(source: ProviderSource, provider: ScriptedProvider) -> Self {
        let fine = Noting {
            log: provider.clone(),
            behaviour: Behaviour::Fine,
        };
        let passing = ScorerResult {
            success: true,
            output_valid: true,
            ..Default::default()
        };
        let mut suite = ProfileSuite::new(source, Arc::new(NotingScorer(fine.clone(), passing)));
        suite.modes = vec![mode("plain")];
        suite.scenarios = vec![Arc::new(BaseScenario::new("s", "hello"))];
        suite.collectors = vec![Arc::new(NotingCollector(fine.clone()))];
        suite.analyzers = vec![Arc::new(NotingAnalyzer(fine.clone()))];
        suite.hooks = vec![Arc::new(NotingHooks(fine, SCENARIO_HOOKS.to_vec()))];
        suite.execution = Execution {
            repetitions: 1,
            concurrency: 1,
            warmup: false,
            ..Execution::default()
        };
        Self {
            provider,
            suite,
            results: TempDir::new().unwrap(),
        }
    }

    pub(crate) fn noting(&self, behaviour: Behaviour) -> Noting {
        Noting {
            log: self.provider.clone(),
            behaviour,
        }
    }

    pub(crate) fn scenario(&mut self) -> &mut BaseScenario {
        Arc::get_mut(&mut self.suite.scenarios[0]).unwrap()
    }

    pub(crate) async fn run(self) -> Done {
        let cancel = CancellationToken::new();
        let target = RunTarget::New(self.results.path().join("runs"));
        self.run_with(target, Arc::new(()), cancel).await
    }

    pub(crate) async fn run_with(
        self,
        target: RunTarget,
        listener: Arc<dyn Listener>,
        cancel: CancellationToken,
    ) -> Done {
        let result = run_profile_suite(self.suite, target, listener, cancel).await;
        Done {
            provider: self.provider,
            result,
            results: self.results,
        }
    }
}

pub(crate) fn mode(name: &str) -> Mode {
    Mode {
        name: name.into(),
        provider: "scripted".into(),
        ..Mode::default()
    }
}

/// A run that is over.
pub(crate) struct Done {
    pub(crate) provider: ScriptedProvider,
    pub(crate) result: Result<ProfileSuiteResult, EngineError>,
    pub(crate) results: TempDir,
}

impl Done {
    pub(crate) fn rows(&self) -> Vec<ProfileRow> {
        let run = self.result.as_ref().unwrap().run().unwrap();
        run.rows().unwrap().map(Result::unwrap).collect()
    }

    pub(crate) fn row(&self) -> ProfileRow {
        let mut rows = self.rows();
        assert_eq!(rows.len(), 1);
        rows.remove(0)
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.result.as_ref().unwrap().directory.clone()
    }
}

/// All text in all files below a directory, compressed ones opened.
pub(crate) fn all_text(directory: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&all_text(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            let bytes = match path.extension().is_some_and(|extension| extension == "zst") {
                true => zstd::decode_all(&bytes[..]).unwrap(),
                false => bytes,
            };
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    text
}
