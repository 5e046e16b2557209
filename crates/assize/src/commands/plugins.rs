//! `assize plugins`: what suites can name, and a test for authors of plugin programs.

use crate::cli::{PluginsAction, PluginsArguments, PluginsTestArguments};
use crate::commands::{UsageError, plugin_programs};
use crate::exit::Exit;
use crate::terminal::{plain, print, say};
use anyhow::{Context, Result};
use assize_contracts::Plugins;
use assize_plugins::conformance::{self, Finding};
use assize_plugins::{CallLimits, PluginSpec, Transport};
use serde_json::json;
use std::time::Duration;

pub(crate) fn plugins(arguments: &PluginsArguments, plugins: &Plugins) -> Result<Exit> {
    match &arguments.action {
        None => list(arguments, plugins),
        Some(PluginsAction::Test(test)) => conform(test, arguments.json),
        Some(PluginsAction::Serve) => Err(UsageError {
            message: "this is for an `assize` with plugins of its own".to_owned(),
            hint: None,
        }
        .into()),
    }
}

/// One thing that can be named.
struct Entry {
    kind: &'static str,
    name: String,
    origin: String,
    version: String,
}

fn list(arguments: &PluginsArguments, plugins: &Plugins) -> Result<Exit> {
    let mut entries = Vec::new();
    add(&mut entries, plugins, "built in", env!("CARGO_PKG_VERSION"));
    if let Some(host) = plugin_programs(arguments.suite.as_deref())? {
        for program in host.programs() {
            let info = program.offer().map(|offer| offer.info.clone());
            let version = info.map_or_else(String::new, |info| info.version);
            add(
                &mut entries,
                &program.served(),
                &format!("plugin {}", program.id()),
                &version,
            );
        }
        host.end();
    }
    for Entry {
        kind,
        name,
        origin,
        version,
    } in entries
    {
        if arguments.json {
            print(
                json!({ "kind": kind, "name": name, "origin": origin, "version": version })
                    .to_string(),
            );
        } else {
            print(plain(&format!(
                "{kind:<14} {name:<24} {version:<10} {origin}"
            )));
        }
    }
    Ok(Exit::Done)
}

fn add(entries: &mut Vec<Entry>, plugins: &Plugins, origin: &str, version: &str) {
    let mut add = |kind, names: Vec<&String>| {
        entries.extend(names.into_iter().map(|name| Entry {
            kind,
            name: name.clone(),
            origin: origin.to_owned(),
            version: version.to_owned(),
        }));
    };
    add("provider", plugins.providers().keys().collect());
    add("scorer", plugins.scorers().keys().collect());
    add("collector", plugins.collectors().keys().collect());
    add("analyzer", plugins.analyzers().keys().collect());
    add("mode resolver", plugins.mode_resolvers().keys().collect());
    add("hooks", plugins.hook_sets().keys().collect());
    add("runner", plugins.runners().keys().collect());
    add("evaluator", plugins.evaluators().keys().collect());
}

fn conform(arguments: &PluginsTestArguments, as_json: bool) -> Result<Exit> {
    let options = match &arguments.options {
        None => Default::default(),
        Some(text) => serde_json::from_str(text).map_err(|error| UsageError {
            message: format!("`--options` is not a JSON object: {error}"),
            hint: None,
        })?,
    };
    let spec = PluginSpec {
        id: "plugin".to_owned(),
        transport: Transport::Program(arguments.command.clone()),
        options,
        directory: std::env::current_dir().context("there is no current directory")?,
        limits: CallLimits::same(Duration::from_millis(arguments.timeout)),
        ..PluginSpec::default()
    };
    let findings = conformance::test(spec, &arguments.mode).context("cannot start a runtime")?;
    for finding in &findings {
        show(finding, as_json);
    }
    let failed = findings
        .iter()
        .filter(|finding| finding.problem.is_some())
        .count();
    if !as_json {
        say(match failed {
            0 => format!("all {} checks hold", findings.len()),
            _ => format!("{failed} of {} checks do not hold", findings.len()),
        });
    }
    Ok(if failed == 0 { Exit::Done } else { Exit::Error })
}

fn show(finding: &Finding, as_json: bool) {
    let Finding {
        subject,
        check,
        problem,
    } = finding;
    if as_json {
        let holds = problem.is_none();
        print(
            json!({ "subject": subject, "check": check, "holds": holds, "problem": problem })
                .to_string(),
        );
        return;
    }
    match problem {
        None => print(plain(&format!("ok    {subject}: {check}"))),
        Some(problem) => print(plain(&format!("FAIL  {subject}: {check}\n      {problem}"))),
    }
}
