//! The settings that make trials of a suite comparable, as they are kept in the manifest.

use crate::suite::file::SuiteFile;
use crate::suite::load::secrets;
use crate::suite::places;
use assize_contracts::{BaseScenario, JsonMap};
use assize_engine::{Mode, ProfileSuite};
use assize_plugins::PluginHost;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// The settings that make trials of this suite comparable with each other. Values from the environment stay as they were written.
pub(super) fn describe(profile: &ProfileSuite, file: &SuiteFile, as_written: &Value) -> JsonMap {
    let written = |keys: &[&str]| {
        keys.iter()
            .try_fold(as_written, |value, key| value.get(key))
            .cloned()
    };
    let mode = |mode: &Mode| (mode.name.clone(), mode_settings(mode, as_written));
    let scenario = |scenario: &Arc<BaseScenario>| {
        let content = scenario_content(scenario, &profile.directory);
        (scenario.id.clone(), content)
    };
    let judge = written(&["judge"]);
    let scorer = written(&["scorer"]).unwrap_or_else(|| json!({"uses": "checks"}));
    let collectors: Vec<&str> = profile
        .collectors
        .iter()
        .map(|collector| collector.id())
        .collect();
    let description = json!({
        "modes": profile.modes.iter().map(mode).collect::<JsonMap>(),
        "scenarios": profile.scenarios.iter().map(scenario).collect::<JsonMap>(),
        "tasks": profile.tasks.as_ref().map(|tasks| json!({
            "hash": tasks.record.hash,
            "count": tasks.record.count,
            "pass": tasks.pass.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })),
        "runners": written(&["runners"]),
        "runnerHashes": runner_hashes(profile),
        "evaluators": written(&["evaluators"]),
        "scorer": scorer,
        "collectors": collectors,
        "permissions": {
            "autoApprove": profile.permissions.auto_approve,
            "allowedTools": profile.permissions.allowed_tools,
        },
        "retryFails": profile.execution.retry_fails,
        "modeResolver": file.mode_resolver,
        "extensions": file.extensions,
    });
    match description {
        Value::Object(mut map) => {
            // Only where there is one, so that suites without keep their fingerprint.
            map.extend(judge.map(|judge| ("judge".to_owned(), judge)));
            map.extend(written(&["sandbox"]).map(|sandbox| ("sandbox".to_owned(), sandbox)));
            map.extend(written(&["capture"]).map(|capture| ("capture".to_owned(), capture)));
            // Scenarios are described as they were written.
            for (_, part) in map.iter_mut().filter(|(name, _)| *name != "scenarios") {
                secrets::without_secrets(part);
            }
            map
        }
        _ => JsonMap::new(),
    }
}

/// The settings of a mode, its provider included.
fn mode_settings(mode: &Mode, as_written: &Value) -> Value {
    let name = mode.name.trim_end_matches(crate::suite::AGAIN);
    let own = as_written.get("modes").and_then(|modes| modes.get(name));
    let provider = own
        .and_then(|own| own.get("provider"))
        .or_else(|| as_written.get("provider"));
    let provider = match provider {
        // The short form means the same.
        Some(Value::String(name)) => json!({ "uses": name }),
        Some(other) => other.clone(),
        None => Value::Null,
    };
    let own = own.and_then(Value::as_object);
    let mut settings = own.cloned().unwrap_or_default();
    settings.insert("provider".to_owned(), provider);
    Value::Object(settings)
}

/// A scenario without its id, and without the place of the suite on this machine.
fn scenario_content(scenario: &BaseScenario, directory: &Path) -> Value {
    let mut content = serde_json::to_value(scenario).unwrap_or(Value::Null);
    if let Some(map) = content.as_object_mut() {
        map.remove("id");
        if let Some(checks) = map.get_mut("checks") {
            places::forget_directory(checks, directory);
        }
    }
    content
}

/// Hashes of the runners' configurations, with the files that they name.
fn runner_hashes(profile: &ProfileSuite) -> Option<JsonMap> {
    profile.tasks.as_ref()?;
    let runners = profile.modes.iter().flat_map(|mode| mode.runners.values());
    let hash = |used: &Arc<assize_engine::UsedRunner>| {
        (used.id.clone(), Value::from(used.config_hash.clone()))
    };
    Some(runners.map(hash).collect())
}

/// The plugin programs that took part, their versions, and their options as they were written.
pub(super) fn of_programs(host: &PluginHost, as_written: &Value) -> Value {
    let described = host.programs().iter().enumerate().map(|(number, program)| {
        let info = program.offer().map(|offer| &offer.info);
        let options = as_written.pointer(&format!("/plugins/{number}/options"));
        let mut options = options.cloned();
        options.iter_mut().for_each(secrets::without_secrets);
        json!({ "id": program.id(), "info": info, "options": options })
    });
    described.collect()
}
