//! The wall around agents: which one counts for a mode, and what cannot be asked of it.

use super::Loader;
use crate::suite::document::Document;
use crate::suite::file::{ModeSpec, SuiteFile};
use crate::suite::problem::Problem;
use crate::suite::scenario::LoadedScenario;
use assize_contracts::{Sandbox, SandboxPlaces};
use std::path::Path;
use std::sync::Arc;

impl Loader<'_> {
    /// The wall of a mode: its own, else the suite's, else `guard`.
    pub(super) fn sandbox_of(
        &mut self,
        file: &SuiteFile,
        name: &str,
        spec: &ModeSpec,
    ) -> Arc<Sandbox> {
        let keys: &[&str] = match spec.sandbox {
            Some(_) => &["modes", name, "sandbox"],
            None => &["sandbox"],
        };
        let sandbox = spec.sandbox.clone().or_else(|| file.sandbox.clone());
        let sandbox = sandbox.unwrap_or_default();
        if let Some(problem) = refusal(&self.document, keys, &sandbox) {
            self.add(problem);
        }
        Arc::new(sandbox)
    }

    /// The walls that scenarios ask for themselves.
    pub(super) fn check_sandboxes(&mut self, scenarios: &[LoadedScenario]) {
        for LoadedScenario { scenario, document } in scenarios {
            let own = scenario.sandbox.as_ref();
            let found = own.and_then(|own| refusal(document, &["sandbox"], own));
            found.into_iter().for_each(|problem| self.add(problem));
        }
    }

    /// The places that are hidden from agents.
    pub(super) fn places(&self, directory: &Path) -> Arc<SandboxPlaces> {
        let suite = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        Arc::new(SandboxPlaces {
            hidden: vec![suite.clone()],
            answers: Vec::new(),
            suite,
        })
    }
}

/// The reason why a wall cannot be had, at its place in the file.
fn refusal(document: &Document, keys: &[&str], sandbox: &Sandbox) -> Option<Problem> {
    match sandbox {
        Sandbox::Container(_) => {
            let problem = document.problem(keys, "`container` is not available yet");
            Some(problem.hint("`guard` keeps agents away from the checks without a container"))
        }
        _ => None,
    }
}
