//! All plugin programs of a suite: started together, known by what they serve, ended together.

use crate::error::StartError;
use crate::log::Redact;
use crate::program::{PluginProgram, PluginSpec};
use assize_contracts::Plugins;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Starts plugin programs and keeps them until it is dropped.
///
/// They live on a small runtime of their own: a suite is checked before the runtime of its run exists.
pub struct PluginHost {
    runtime: Option<Runtime>,
    programs: Vec<Arc<PluginProgram>>,
}

/// A plugin that could not be started, by its place in the list.
#[derive(Debug)]
pub struct Unstarted {
    /// The index of its spec.
    pub number: usize,
    /// The reason.
    pub error: StartError,
}

impl PluginHost {
    /// A host without programs.
    pub fn new() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("assize-plugins")
            .enable_all()
            .build()?;
        Ok(Self {
            runtime: Some(runtime),
            programs: Vec::new(),
        })
    }

    /// Starts all of them, side by side, and returns those that could not be started. Blocks; not for async code.
    pub fn start(&mut self, specs: Vec<PluginSpec>) -> Vec<Unstarted> {
        let Some(runtime) = &self.runtime else {
            return Vec::new();
        };
        let programs: Vec<Arc<PluginProgram>> = specs
            .into_iter()
            .map(|spec| PluginProgram::new(spec, runtime.handle().clone()))
            .collect();
        let tasks: Vec<_> = programs
            .iter()
            .cloned()
            .map(|program| runtime.spawn(async move { program.start().await.map(drop) }))
            .collect();
        let mut unstarted = Vec::new();
        for (number, task) in tasks.into_iter().enumerate() {
            let started = runtime.block_on(task);
            let started = started
                .unwrap_or_else(|error| Err(StartError::new(format!("the start broke: {error}"))));
            unstarted.extend(started.err().map(|error| Unstarted { number, error }));
        }
        self.programs.extend(programs);
        unstarted
    }

    /// Does something async with a program, from code that is not.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.runtime.as_ref().map(|runtime| runtime.block_on(work))
    }

    /// The programs, in the order in which they were declared.
    pub fn programs(&self) -> &[Arc<PluginProgram>] {
        &self.programs
    }

    /// Everything that the programs serve, ready to be named in a suite.
    pub fn plugins(&self) -> Plugins {
        let served = self.programs.iter().map(PluginProgram::served);
        served.fold(Plugins::new(), Plugins::and)
    }

    /// Keeps what the plugins say in `<id>.log` files in this directory.
    pub fn keep_logs_in(&self, directory: &Path, redact: &Redact) -> std::io::Result<()> {
        if self.programs.is_empty() {
            return Ok(());
        }
        let mut private = std::fs::DirBuilder::new();
        private.recursive(true).mode(0o700).create(directory)?;
        for program in &self.programs {
            program.log_to(
                &directory.join(format!("{}.log", program.id())),
                Arc::clone(redact),
            )?;
        }
        Ok(())
    }

    /// Lets all programs end. Blocks; not for async code.
    pub fn end(&self) {
        let Some(runtime) = &self.runtime else { return };
        let tasks: Vec<_> = self
            .programs
            .iter()
            .cloned()
            .map(|program| runtime.spawn(async move { program.end().await }))
            .collect();
        for task in tasks {
            let _ = runtime.block_on(task);
        }
    }
}

impl Drop for PluginHost {
    /// Programs that are still there are ended by their keepers.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
