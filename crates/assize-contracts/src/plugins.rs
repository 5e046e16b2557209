//! Everything that can be named in a suite, by kind and name: built-ins and people's own alike.

use crate::{
    Analyzer, BoxError, Collector, ConfigError, Evaluator, JsonMap, ModeResolver, RunHooks, Runner,
    Scorer, SessionProvider,
};
use std::collections::{BTreeMap, btree_map::Entry};
use std::path::Path;
use std::sync::Arc;

type MakeProvider = Arc<dyn Fn() -> Arc<dyn SessionProvider> + Send + Sync>;
type MakeScorer = Arc<dyn Fn(&JsonMap) -> Result<Arc<dyn Scorer>, BoxError> + Send + Sync>;

type MakeRunner =
    Arc<dyn Fn(&RunnerSetup<'_>) -> Result<Arc<dyn Runner>, ConfigError> + Send + Sync>;
type MakeEvaluator =
    Arc<dyn Fn(&EvaluatorSetup<'_>) -> Result<Arc<dyn Evaluator>, ConfigError> + Send + Sync>;

/// A runner as a suite declares it.
#[derive(Clone, Copy)]
pub struct RunnerSetup<'a> {
    /// The suite's name for it.
    pub id: &'a str,
    /// The task type it shall serve.
    pub task_type: &'a str,
    /// Its configuration.
    pub config: &'a JsonMap,
    /// The suite's directory, for files that the configuration names.
    pub directory: &'a Path,
    /// The suite's own prices, for runners that compute costs.
    pub prices_file: Option<&'a Path>,
    /// The other plugins, for runners made of them.
    pub plugins: &'a Plugins,
}

/// An evaluator as a suite declares it.
#[derive(Clone, Copy)]
pub struct EvaluatorSetup<'a> {
    /// The suite's name for it.
    pub id: &'a str,
    /// Its configuration.
    pub config: &'a JsonMap,
    /// The suite's directory, for files that the configuration names.
    pub directory: &'a Path,
    /// The other plugins, for evaluators made of them.
    pub plugins: &'a Plugins,
}

/// A kind of runner that suites can use.
#[derive(Clone)]
pub struct RunnerSource {
    version: String,
    task_type: Option<String>,
    make: MakeRunner,
}

impl RunnerSource {
    /// Its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The one task type it serves. Absent: any.
    pub fn task_type(&self) -> Option<&str> {
        self.task_type.as_deref()
    }

    /// A runner as the suite wants it. An error names what is wrong with its configuration.
    pub fn make(&self, setup: &RunnerSetup<'_>) -> Result<Arc<dyn Runner>, ConfigError> {
        (self.make)(setup)
    }
}

/// A kind of evaluator that suites can use.
#[derive(Clone)]
pub struct EvaluatorSource {
    version: String,
    metrics: Vec<String>,
    make: MakeEvaluator,
}

impl EvaluatorSource {
    /// Its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The metrics it gives unless the settings name others.
    pub fn metrics(&self) -> &[String] {
        &self.metrics
    }

    /// An evaluator as the suite wants it. An error names what is wrong with its configuration.
    pub fn make(&self, setup: &EvaluatorSetup<'_>) -> Result<Arc<dyn Evaluator>, ConfigError> {
        (self.make)(setup)
    }
}

/// The source of instances of a provider.
#[derive(Clone)]
pub enum ProviderSource {
    /// As many as are wanted.
    Factory(MakeProvider),
    /// Only this one can exist.
    Single(Arc<dyn SessionProvider>),
}

impl ProviderSource {
    /// An instance to use or to ask about its settings.
    pub fn instance(&self) -> Arc<dyn SessionProvider> {
        match self {
            Self::Factory(make) => make(),
            Self::Single(provider) => Arc::clone(provider),
        }
    }
}

/// The plugins a run may use. Register, then hand it to the engine or to `assize::main_with`.
///
/// A name can be given once per kind; [`duplicates`](Self::duplicates) lists those given twice.
#[derive(Clone, Default)]
pub struct Plugins {
    providers: BTreeMap<String, ProviderSource>,
    scorers: BTreeMap<String, MakeScorer>,
    collectors: BTreeMap<String, Arc<dyn Collector>>,
    analyzers: BTreeMap<String, Arc<dyn Analyzer>>,
    mode_resolvers: BTreeMap<String, Arc<dyn ModeResolver>>,
    hooks: BTreeMap<String, Arc<dyn RunHooks>>,
    runners: BTreeMap<String, RunnerSource>,
    evaluators: BTreeMap<String, EvaluatorSource>,
    duplicates: Vec<String>,
}

impl Plugins {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a provider of which any number of instances can be made.
    pub fn provider<P: SessionProvider + 'static>(
        mut self,
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        let name = make().id().to_owned();
        let source = ProviderSource::Factory(Arc::new(move || Arc::new(make())));
        insert(
            &mut self.providers,
            &mut self.duplicates,
            "provider",
            name,
            source,
        );
        self
    }

    /// Adds a provider of which only this instance can exist.
    pub fn single_provider(mut self, provider: Arc<dyn SessionProvider>) -> Self {
        let name = provider.id().to_owned();
        let source = ProviderSource::Single(provider);
        insert(
            &mut self.providers,
            &mut self.duplicates,
            "provider",
            name,
            source,
        );
        self
    }

    /// Adds a scorer without settings.
    pub fn scorer(self, scorer: impl Scorer + 'static) -> Self {
        let name = scorer.id().to_owned();
        let scorer: Arc<dyn Scorer> = Arc::new(scorer);
        self.scorer_with(name, move |_| Ok(Arc::clone(&scorer)))
    }

    /// Adds a scorer that is made from the settings in the suite.
    pub fn scorer_with(
        mut self,
        name: impl Into<String>,
        make: impl Fn(&JsonMap) -> Result<Arc<dyn Scorer>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        insert(
            &mut self.scorers,
            &mut self.duplicates,
            "scorer",
            name.into(),
            Arc::new(make),
        );
        self
    }

    /// Adds a collector.
    pub fn collector(mut self, collector: impl Collector + 'static) -> Self {
        let name = collector.id().to_owned();
        let collector: Arc<dyn Collector> = Arc::new(collector);
        insert(
            &mut self.collectors,
            &mut self.duplicates,
            "collector",
            name,
            collector,
        );
        self
    }

    /// Adds an analyzer.
    pub fn analyzer(mut self, analyzer: impl Analyzer + 'static) -> Self {
        let name = analyzer.name().to_owned();
        let analyzer: Arc<dyn Analyzer> = Arc::new(analyzer);
        insert(
            &mut self.analyzers,
            &mut self.duplicates,
            "analyzer",
            name,
            analyzer,
        );
        self
    }

    /// Adds a mode resolver.
    pub fn mode_resolver(
        mut self,
        name: impl Into<String>,
        resolver: impl ModeResolver + 'static,
    ) -> Self {
        let resolver: Arc<dyn ModeResolver> = Arc::new(resolver);
        insert(
            &mut self.mode_resolvers,
            &mut self.duplicates,
            "mode resolver",
            name.into(),
            resolver,
        );
        self
    }

    /// Adds a set of hooks.
    pub fn hooks(mut self, name: impl Into<String>, hooks: impl RunHooks + 'static) -> Self {
        let hooks: Arc<dyn RunHooks> = Arc::new(hooks);
        insert(
            &mut self.hooks,
            &mut self.duplicates,
            "set of hooks",
            name.into(),
            hooks,
        );
        self
    }

    /// Adds a runner for the type it names.
    pub fn runner(mut self, runner: impl Runner + 'static) -> Self {
        let name = runner.id().to_owned();
        let runner: Arc<dyn Runner> = Arc::new(runner);
        let source = RunnerSource {
            version: runner.version().to_owned(),
            task_type: Some(runner.task_type().to_owned()),
            make: Arc::new(move |_| Ok(Arc::clone(&runner))),
        };
        insert(
            &mut self.runners,
            &mut self.duplicates,
            "runner",
            name,
            source,
        );
        self
    }

    /// Adds a runner that is made from the settings in the suite and serves any type.
    pub fn runner_with(
        mut self,
        name: impl Into<String>,
        version: impl Into<String>,
        make: impl Fn(&RunnerSetup<'_>) -> Result<Arc<dyn Runner>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        let source = RunnerSource {
            version: version.into(),
            task_type: None,
            make: Arc::new(make),
        };
        let name = name.into();
        insert(
            &mut self.runners,
            &mut self.duplicates,
            "runner",
            name,
            source,
        );
        self
    }

    /// Adds an evaluator without settings.
    pub fn evaluator(mut self, evaluator: impl Evaluator + 'static) -> Self {
        let name = evaluator.id().to_owned();
        let evaluator: Arc<dyn Evaluator> = Arc::new(evaluator);
        let source = EvaluatorSource {
            version: evaluator.version().to_owned(),
            metrics: evaluator.metrics().to_vec(),
            make: Arc::new(move |_| Ok(Arc::clone(&evaluator))),
        };
        insert(
            &mut self.evaluators,
            &mut self.duplicates,
            "evaluator",
            name,
            source,
        );
        self
    }

    /// Adds an evaluator that is made from the settings in the suite.
    pub fn evaluator_with(
        mut self,
        name: impl Into<String>,
        version: impl Into<String>,
        metrics: &[&str],
        make: impl Fn(&EvaluatorSetup<'_>) -> Result<Arc<dyn Evaluator>, ConfigError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let source = EvaluatorSource {
            version: version.into(),
            metrics: metrics.iter().map(|name| (*name).to_owned()).collect(),
            make: Arc::new(make),
        };
        let name = name.into();
        insert(
            &mut self.evaluators,
            &mut self.duplicates,
            "evaluator",
            name,
            source,
        );
        self
    }

    /// Adds all of another set.
    pub fn and(mut self, other: Self) -> Self {
        let duplicates = &mut self.duplicates;
        merge(&mut self.providers, duplicates, "provider", other.providers);
        merge(&mut self.scorers, duplicates, "scorer", other.scorers);
        merge(
            &mut self.collectors,
            duplicates,
            "collector",
            other.collectors,
        );
        merge(&mut self.analyzers, duplicates, "analyzer", other.analyzers);
        merge(
            &mut self.mode_resolvers,
            duplicates,
            "mode resolver",
            other.mode_resolvers,
        );
        merge(&mut self.hooks, duplicates, "set of hooks", other.hooks);
        merge(&mut self.runners, duplicates, "runner", other.runners);
        merge(
            &mut self.evaluators,
            duplicates,
            "evaluator",
            other.evaluators,
        );
        self.duplicates.extend(other.duplicates);
        self
    }

    /// The same with something made of every provider, such as a proxy in front of it.
    pub fn map_providers(mut self, change: impl Fn(ProviderSource) -> ProviderSource) -> Self {
        let providers = std::mem::take(&mut self.providers).into_iter();
        self.providers = providers
            .map(|(name, source)| (name, change(source)))
            .collect();
        self
    }

    /// The same with providers under names of their own.
    pub fn and_providers(mut self, others: BTreeMap<String, ProviderSource>) -> Self {
        merge(
            &mut self.providers,
            &mut self.duplicates,
            "provider",
            others,
        );
        self
    }

    /// Names given twice, in words: "a second collector is named `token`".
    pub fn duplicates(&self) -> &[String] {
        &self.duplicates
    }

    /// Providers by name.
    pub fn providers(&self) -> &BTreeMap<String, ProviderSource> {
        &self.providers
    }

    /// Makers of scorers by name.
    pub fn scorers(&self) -> &BTreeMap<String, MakeScorer> {
        &self.scorers
    }

    /// Collectors by name.
    pub fn collectors(&self) -> &BTreeMap<String, Arc<dyn Collector>> {
        &self.collectors
    }

    /// Analyzers by name.
    pub fn analyzers(&self) -> &BTreeMap<String, Arc<dyn Analyzer>> {
        &self.analyzers
    }

    /// Mode resolvers by name.
    pub fn mode_resolvers(&self) -> &BTreeMap<String, Arc<dyn ModeResolver>> {
        &self.mode_resolvers
    }

    /// Sets of hooks by name.
    pub fn hook_sets(&self) -> &BTreeMap<String, Arc<dyn RunHooks>> {
        &self.hooks
    }

    /// Runners by name.
    pub fn runners(&self) -> &BTreeMap<String, RunnerSource> {
        &self.runners
    }

    /// Evaluators by name.
    pub fn evaluators(&self) -> &BTreeMap<String, EvaluatorSource> {
        &self.evaluators
    }
}

fn insert<T>(
    map: &mut BTreeMap<String, T>,
    duplicates: &mut Vec<String>,
    kind: &str,
    name: String,
    value: T,
) {
    match map.entry(name) {
        Entry::Occupied(entry) => {
            duplicates.push(format!("a second {kind} is named `{}`", entry.key()));
        }
        Entry::Vacant(entry) => {
            entry.insert(value);
        }
    }
}

fn merge<T>(
    map: &mut BTreeMap<String, T>,
    duplicates: &mut Vec<String>,
    kind: &str,
    others: BTreeMap<String, T>,
) {
    for (name, value) in others {
        insert(map, duplicates, kind, name, value);
    }
}
