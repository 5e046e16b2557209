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
    /// The settings of the `judge` scorer. The key is passed to nothing else, and into no record.
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
            self.report(&["judge"], error.to_string());
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
                let error = self.document.error(&["judge", "key_env"], message);
                self.add(error.hint(format!("set it: `export {name}=…`")));
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
        secrets: &Secrets,
    ) -> Option<JsonMap> {
        let usual = match judge {
            Some(_) => json!({"composite": [{"uses": "checks"}, {"uses": "judge"}]}),
            None => json!({"uses": "checks"}),
        };
        let mut settings = match &file.scorer {
            Some(settings) => settings.clone(),
            None => usual.as_object()?.clone(),
        };
        self.complete_judge(&mut settings, judge, secrets);
        let several = settings.get_mut("composite").and_then(Value::as_array_mut);
        for entry in several
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            self.complete_judge(entry, judge, secrets);
        }
        Some(settings)
    }

    /// Fills in what a scorer `judge` does not say itself from the suite's `judge`, and its key from the environment. A key
    /// goes to no other service than its own.
    pub(super) fn complete_judge(
        &mut self,
        entry: &mut JsonMap,
        judge: Option<&JsonMap>,
        secrets: &Secrets,
    ) {
        if !uses(entry, "judge") {
            return;
        }
        let has_own_service = entry.contains_key("api") || entry.contains_key("base_url");
        let is_meant = |key: &str| key != "key" || !has_own_service;
        for (key, value) in judge.into_iter().flatten().filter(|(key, _)| is_meant(key)) {
            entry.entry(key).or_insert_with(|| value.clone());
        }
        let named = entry.remove("key_env").or_else(|| entry.remove("keyEnv"));
        if entry.contains_key("key") {
            return;
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let usual = || {
            Some(
                Api::named(entry.get("api")?.as_str()?)?
                    .key_variable()
                    .to_owned(),
            )
        };
        let Some(name) = named.as_ref().and_then(text).or_else(usual) else {
            return;
        };
        match host_variable(&name) {
            Some(key) => {
                secrets.add(name.as_str(), key.as_str());
                entry.insert("key".to_owned(), key.into());
            }
            None if named.is_some() => {
                let message = format!("the environment variable `{name}` is not set");
                let error = self.document.error(&["scorer"], message);
                self.add(error.hint(format!("set it: `export {name}=…`")));
            }
            None => {}
        }
    }

    /// A rubric that no scorer reads is a mistake, unless a plugin may read it.
    pub(super) fn forgotten_rubric(&mut self, settings: &JsonMap, scenarios: &[LoadedScenario]) {
        if !uses(settings, "checks") || !self.errors.is_empty() {
            return;
        }
        let found = scenarios
            .iter()
            .find(|loaded| loaded.scenario.rubric.is_some());
        if let Some(LoadedScenario { document, .. }) = found {
            let message = "the rubric is read by no scorer of the suite";
            let error = document.explain(&["rubric".to_owned()], message, LATER);
            self.errors
                .push(error.hint("add `judge: { api: …, model: … }` to the suite"));
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

/// True when this is, or holds, the scorer `judge`.
pub(super) fn uses_judge(settings: &JsonMap) -> bool {
    let several = settings.get("composite").and_then(Value::as_array);
    let mut entries = several.into_iter().flatten().filter_map(Value::as_object);
    uses(settings, "judge") || entries.any(|entry| uses(entry, "judge"))
}

fn uses(settings: &JsonMap, name: &str) -> bool {
    settings.get("uses").and_then(Value::as_str) == Some(name)
}

/// The judges of a suite, as its description has them: those of scorers and evaluators with what they leave to the suite's `judge`.
pub(crate) fn judges(description: &JsonMap) -> Vec<JsonMap> {
    let of_suite = description.get("judge").and_then(Value::as_object);
    let list = |value: Option<&Value>| {
        let list = value.and_then(Value::as_array).into_iter().flatten();
        let entries = list.filter_map(Value::as_object).cloned();
        entries.collect::<Vec<JsonMap>>()
    };
    let scorer = description.get("scorer").and_then(Value::as_object);
    let several = list(scorer.and_then(|scorer| scorer.get("composite")));
    let evaluators = list(description.get("evaluators")).into_iter();
    let evaluators = evaluators.map(|mut evaluator| match evaluator.remove("config") {
        Some(Value::Object(mut config)) => {
            config.extend(evaluator.remove_entry("uses"));
            config
        }
        _ => evaluator,
    });
    let entries = scorer.cloned().into_iter().chain(several).chain(evaluators);
    let named = entries.filter(|entry| uses(entry, "judge"));
    let completed = named.map(|mut entry| {
        let has_own_service = entry.contains_key("api") || entry.contains_key("base_url");
        for (key, value) in of_suite.into_iter().flatten() {
            if !(has_own_service && ["key_env", "keyEnv"].contains(&key.as_str())) {
                entry.entry(key).or_insert_with(|| value.clone());
            }
        }
        entry.remove("uses");
        entry
    });
    let mut judges: Vec<JsonMap> = of_suite.cloned().into_iter().chain(completed).collect();
    judges.dedup();
    judges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judges_are_found_wherever_they_stand() {
        let description = json!({
            "judge": {"api": "openai", "model": "m", "key_env": "JUDGE"},
            "scorer": {"composite": [{"uses": "checks"}, {"uses": "judge", "api": "anthropic"}]},
            "evaluators": [{"id": "e", "uses": "judge", "config": {"votes": 3}}],
        });
        let found = judges(description.as_object().unwrap());
        let expected = [
            json!({"api": "openai", "model": "m", "key_env": "JUDGE"}),
            json!({"api": "anthropic", "model": "m"}),
            json!({"votes": 3, "api": "openai", "model": "m", "key_env": "JUDGE"}),
        ];
        let found: Vec<Value> = found.into_iter().map(Value::Object).collect();
        assert_eq!(found, expected);
    }
}
