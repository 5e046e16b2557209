//! The judge of a suite: its settings, with the key from the environment, given to every scorer that uses it.

use super::Loader;
use crate::suite::file::{JudgeSpec, LATER, SuiteFile};
use crate::suite::scenario::LoadedScenario;
use assize_contracts::{BaseScenario, JsonMap};
use assize_llm::Api;
use assize_measures::JudgeScorer;
use assize_process::host_variable;
use assize_secrets::Secrets;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

impl Loader<'_> {
    /// What the `judge` scorer is made of. The key goes nowhere else, and into no record.
    pub(super) fn judge(
        &mut self,
        file: &SuiteFile,
        directory: &Path,
        secrets: &Secrets,
    ) -> Option<JsonMap> {
        let judge = file.judge.as_ref()?;
        let key = self.judge_key(judge);
        if let Some((name, key)) = &key {
            secrets.add(name.as_str(), key.as_str());
        }
        let settings = json!({
            "api": judge.api,
            "base_url": judge.base_url,
            "model": judge.model,
            "key": key.map(|(_, key)| key),
            "votes": judge.votes,
            "timeout_ms": judge.timeout_ms,
            "retries": judge.retries,
            "temperature": judge.temperature,
            "max_output_tokens": judge.max_output_tokens,
            "prices_file": file.prices.file.as_ref().map(|path| directory.join(path)),
        });
        let Value::Object(mut settings) = settings else {
            return None;
        };
        settings.retain(|_, value| !value.is_null());
        // A scorer of its own may complete the settings.
        if file.scorer.is_none()
            && let Err(error) = JudgeScorer::from_settings(&settings)
        {
            self.problem(&["judge"], error.to_string());
            return None;
        }
        Some(settings)
    }

    /// The variable that is named, or else the usual one of the API if it is set.
    fn judge_key(&mut self, judge: &JudgeSpec) -> Option<(String, String)> {
        let read = |name: &str| Some((name.to_owned(), host_variable(name)?));
        if let Some(name) = &judge.key_env {
            let found = read(name);
            if found.is_none() {
                let message = format!("the environment variable `{name}` is not set");
                let problem = self.document.problem(&["judge", "key_env"], message);
                self.add(problem.hint(format!("set it: `export {name}=…`")));
            }
            return found;
        }
        read(Api::named(judge.api.as_deref()?)?.key_variable())
    }

    /// The suite's `scorer`, or else the checks, joined by the judge where there is one.
    pub(super) fn scorer_settings(
        &mut self,
        file: &SuiteFile,
        judge: Option<&JsonMap>,
    ) -> Option<JsonMap> {
        let usual = match judge {
            Some(_) => json!({"composite": [{"uses": "checks"}, {"uses": "judge"}]}),
            None => json!({"uses": "checks"}),
        };
        let mut settings = match &file.scorer {
            Some(settings) => settings.clone(),
            None => usual.as_object()?.clone(),
        };
        let Some(judge) = judge else {
            return Some(settings);
        };
        let add = |entry: &mut JsonMap| {
            if uses(entry, "judge") {
                for (key, value) in judge {
                    entry.entry(key).or_insert_with(|| value.clone());
                }
            }
        };
        add(&mut settings);
        let several = settings.get_mut("composite").and_then(Value::as_array_mut);
        for entry in several
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            add(entry);
        }
        Some(settings)
    }

    /// A rubric that nobody reads is a mistake, unless a plugin may read it.
    pub(super) fn forgotten_rubric(&mut self, settings: &JsonMap, scenarios: &[LoadedScenario]) {
        if !uses(settings, "checks") || !self.problems.is_empty() {
            return;
        }
        let found = scenarios
            .iter()
            .find(|loaded| loaded.scenario.rubric.is_some());
        if let Some(LoadedScenario { document, .. }) = found {
            let message = "the rubric is read by no scorer of the suite";
            let problem = document.explain(&["rubric".to_owned()], message, LATER);
            self.problems
                .push(problem.hint("add `judge: { api: …, model: … }` to the suite"));
        }
    }
}

/// A judge alone makes no checks, which their author may not know.
pub(super) fn ignored_checks(file: &SuiteFile, scenarios: &[Arc<BaseScenario>]) -> Option<String> {
    let settings = file.scorer.as_ref()?;
    let ignored = scenarios.iter().find(|one| !one.checks.is_empty())?;
    uses(settings, "judge").then(|| {
        let id = &ignored.id;
        format!(
            "the checks of `{id}` are not made, because the scorer `judge` reads rubrics only; for both write \
             `scorer: {{ composite: [ {{ uses: checks }}, {{ uses: judge }} ] }}`"
        )
    })
}

/// Whether this is, or holds, the scorer `judge`.
pub(super) fn uses_judge(settings: &JsonMap) -> bool {
    let several = settings.get("composite").and_then(Value::as_array);
    let mut entries = several.into_iter().flatten().filter_map(Value::as_object);
    uses(settings, "judge") || entries.any(|entry| uses(entry, "judge"))
}

fn uses(settings: &JsonMap, name: &str) -> bool {
    settings.get("uses").and_then(Value::as_str) == Some(name)
}
