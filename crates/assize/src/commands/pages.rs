//! The content of the pages beside the summary: trials, traces and findings, out of the directories of runs.

use crate::commands::changes::Changes;
use crate::commands::show::{final_answer, instructions_of, prompt_of};
use crate::commands::verdict::Source;
use anyhow::{Context, Result};
use assize_contracts::{AnalysisResult, ProfileRow, SessionAnalysisBundle, SessionTrace};
use assize_engine::store::{CellKey, Manifest, RunDirectory, RunFile, TraceReader};
use assize_measures::analyzers::{FIVE, TIME};
use assize_report::{FindingsPage, HtmlReport, PageLimits, Row, Summary, WantedTrace, read_rows};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Sessions that are explained for a page where the run kept no findings; `assize analyze` explains all.
const MOST_EXPLAINED: usize = 500;

/// The pages that are made of rows, traces and findings.
pub(super) struct Pages<'a> {
    pub(super) html: Option<HtmlReport<'a>>,
    pub(super) findings: Option<FindingsPage<'a>>,
}

/// The pages while rows are read.
pub(super) struct PagesDraft<'a> {
    summary: &'a Summary,
    sources: &'a [Source],
    pages: Pages<'a>,
    /// By source. Absent for rows that belong to no run.
    runs: Vec<Option<StoredRun>>,
    /// Trials whose traces are opened, in the order of rows.
    sessions: Vec<Session>,
}

/// The data of a run beside its rows, and the part of it that its rows refer to.
struct StoredRun {
    run: RunDirectory,
    traces: TraceReader,
    analysis: PathBuf,
    /// The places of the modes that its rows count for.
    modes: HashMap<String, HashMap<String, usize>>,
    /// Sessions that would be explained.
    explained: usize,
}

/// A trial whose trace may be needed.
struct Session {
    source: usize,
    key: CellKey,
    /// The mode that its findings count for, where they are wanted.
    mode: Option<usize>,
    /// Its place on the page, where the trace is shown.
    shown: Option<WantedTrace>,
    /// Its row, where the trace is shown.
    row: Option<Box<ProfileRow>>,
}

impl<'a> PagesDraft<'a> {
    pub(super) fn new(
        summary: &'a Summary,
        sources: &'a [Source],
        html: bool,
        findings: bool,
    ) -> Result<Self> {
        let open = |source: &Source| match html || findings {
            true => StoredRun::open(source),
            false => Ok(None),
        };
        let runs: Vec<Option<StoredRun>> = sources.iter().map(open).collect::<Result<_>>()?;
        let page = || {
            let mut page = HtmlReport::new(summary, PageLimits::default());
            runs.iter()
                .flatten()
                .for_each(|run| run.describe(&mut page));
            page
        };
        let html = html.then(page);
        // Without traces there is nothing to find anything in.
        let has_sessions = runs.iter().flatten().any(StoredRun::has_sessions);
        let findings = findings && (has_sessions || has_logs(sources));
        Ok(Self {
            summary,
            sources,
            pages: Pages {
                html,
                findings: findings.then(|| FindingsPage::new(summary)),
            },
            runs,
            sessions: Vec::new(),
        })
    }

    /// True when rows are needed at all.
    pub(super) fn wants_rows(&self) -> bool {
        self.pages.html.is_some() || self.pages.findings.is_some()
    }

    /// Adds a row; `json` is the text that it was read from.
    pub(super) fn add(&mut self, source: usize, row: &Row<'_>, json: &[u8]) {
        let suite = self.sources[source].suite.as_deref();
        let Pages { html, findings } = &mut self.pages;
        let added = html.as_mut().and_then(|page| page.add(row, json, suite));
        #[cfg(feature = "sessions")]
        if self.sources[source].logs.is_some() {
            let mode = findings
                .as_ref()
                .and_then(|_| self.summary.mode_of(row, suite));
            let mode = mode.filter(|_| self.sessions.len() < MOST_EXPLAINED);
            let shown = html.as_mut().zip(added);
            let shown = shown.and_then(|(page, trial)| page.wants_trace_of(trial));
            if mode.is_some() || shown.is_some() {
                self.sessions.push(Session {
                    source,
                    key: row.key(),
                    mode,
                    shown,
                    row: None,
                });
            }
            return;
        }
        let Some(run) = &mut self.runs[source] else {
            return;
        };
        let mode = findings
            .as_ref()
            .and_then(|_| self.summary.mode_of(row, suite));
        if let Some(mode) = mode {
            run.know_mode(row, mode);
        }
        if run.traces.is_empty() {
            return;
        }
        let key = row.key();
        if !run.traces.has(&key) {
            return;
        }
        let mode = mode.filter(|_| run.explained < MOST_EXPLAINED);
        run.explained += usize::from(mode.is_some());
        let shown = html.as_mut().zip(added);
        let shown = shown.and_then(|(page, trial)| page.wants_trace_of(trial));
        if mode.is_some() || shown.is_some() {
            let row = shown.and_then(|_| serde_json::from_slice(json).ok());
            self.sessions.push(Session {
                source,
                key,
                mode,
                shown,
                row,
            });
        }
    }

    /// Opens every trace that is needed once, for all pages.
    pub(super) fn finish(mut self) -> Result<Pages<'a>> {
        #[cfg(feature = "sessions")]
        for session in &self.sessions {
            let logs = &self.sources[session.source].logs;
            if let Some(trace) = logs.as_ref().and_then(|logs| logs.trace(&session.key)) {
                let found = crate::commands::imported::explain(&trace);
                self.pages
                    .add_trace(session.shown, session.mode, &trace, Some(found));
            }
        }
        for (source, run) in self.runs.iter().enumerate() {
            let Some(run) = run else { continue };
            let sessions = self.sessions.iter();
            let sessions: Vec<&Session> = sessions
                .filter(|session| session.source == source)
                .collect();
            self.pages.add_run(run, &sessions)?;
        }
        Ok(self.pages)
    }
}

impl Pages<'_> {
    fn add_run(&mut self, run: &StoredRun, sessions: &[&Session]) -> Result<()> {
        let shown = sessions.iter().filter(|session| session.shown.is_some());
        let shown: HashSet<&CellKey> = shown.map(|session| &session.key).collect();
        let mut stored = HashMap::new();
        let mut has_findings = false;
        each_bundle(&run.analysis, |bundle| {
            has_findings = true;
            let mode = run.mode(&bundle.mode, &bundle.model);
            if let (Some(page), Some(mode)) = (&mut self.findings, mode) {
                page.add(mode, &bundle.results);
            }
            let key = CellKey::of_findings(&bundle);
            if shown.contains(&key) {
                stored.insert(key, bundle.results);
            }
        })?;
        let mut changes = Changes::of(&run.run);
        for session in sessions {
            let mode = session.mode.filter(|_| !has_findings);
            if mode.is_none() && session.shown.is_none() {
                continue;
            }
            // A trace that cannot be read any more is one that no page shows.
            if let Ok(Some(trace)) = run.traces.trace(&session.key) {
                let found = stored.remove(&session.key);
                self.add_trace(session.shown, mode, &trace, found);
            }
            let diff = session.row.as_ref().and_then(|row| changes.diff(row));
            if let (Some(page), Some(shown), Some(diff)) = (&mut self.html, session.shown, diff) {
                page.add_diff(shown, &diff.text);
            }
        }
        Ok(())
    }

    /// Adds a trace to the pages that want it. Findings that were not made when the trial ran are made now.
    fn add_trace(
        &mut self,
        shown: Option<WantedTrace>,
        mode: Option<usize>,
        trace: &SessionTrace,
        found: Option<BTreeMap<String, AnalysisResult>>,
    ) {
        let mut found = found.unwrap_or_else(|| explain(trace));
        if let (Some(page), Some(mode)) = (&mut self.findings, mode) {
            page.add(mode, &found);
        }
        if let (Some(page), Some(shown)) = (&mut self.html, shown) {
            let time = found.entry("time".to_owned());
            time.or_insert_with(|| TIME.find(trace));
            page.add_trace(shown, trace, &found);
            page.add_answer(shown, final_answer(trace).unwrap_or_default());
        }
    }
}

#[cfg(feature = "sessions")]
fn has_logs(sources: &[Source]) -> bool {
    sources.iter().any(|source| source.logs.is_some())
}

#[cfg(not(feature = "sessions"))]
fn has_logs(_: &[Source]) -> bool {
    false
}

/// The findings of the usual analyzers in a trace.
fn explain(trace: &SessionTrace) -> BTreeMap<String, AnalysisResult> {
    let found = FIVE.iter().map(|analyzer| analyzer.find(trace));
    found.map(|found| (found.analyzer.clone(), found)).collect()
}

impl StoredRun {
    fn open(source: &Source) -> Result<Option<Self>> {
        let Some(run) = &source.run else {
            return Ok(None);
        };
        let analysis = RunFile::Analysis.within(run);
        let run = RunDirectory::open(run)?;
        let run = Self {
            traces: run.traces()?,
            analysis,
            run,
            modes: HashMap::new(),
            explained: 0,
        };
        Ok(Some(run))
    }

    /// True when there is anything beside the rows.
    fn has_sessions(&self) -> bool {
        !self.traces.is_empty() || self.analysis.exists()
    }

    /// Adds prompts and instructions to the page.
    fn describe(&self, page: &mut HtmlReport<'_>) {
        let suite = &self.run.manifest().suite;
        let names = |of: &str| suite.get(of).and_then(Value::as_object);
        for scenario in names("scenarios").into_iter().flat_map(|all| all.keys()) {
            let prompt = prompt_of(&self.run, scenario);
            page.add_prompt(scenario, &prompt.unwrap_or_default());
        }
        for (mode, settings) in names("modes").into_iter().flatten() {
            let instructions = instructions_of(&self.run, mode);
            page.add_instructions(mode, &instructions.unwrap_or_default());
            for (label, value) in mode_settings(settings) {
                page.add_setting(mode, label, &value);
            }
        }
        for (label, value) in origin(self.run.manifest()) {
            page.add_fact(&label, &value);
        }
    }

    fn know_mode(&mut self, row: &Row<'_>, mode: usize) {
        if self.mode(&row.mode, &row.model) != Some(mode) {
            let models = self.modes.entry(row.mode.to_string()).or_default();
            models.insert(row.model.to_string(), mode);
        }
    }

    fn mode(&self, mode: &str, model: &str) -> Option<usize> {
        self.modes.get(mode)?.get(model).copied()
    }
}

/// Every complete bundle of a file; a run without analyzers has none.
fn each_bundle(path: &Path, mut visit: impl FnMut(SessionAnalysisBundle)) -> Result<()> {
    let file = match File::open(path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
        }
    };
    read_rows(file, |bytes| {
        if let Ok(bundle) = serde_json::from_slice(bytes.json) {
            visit(bundle);
        }
        Ok(())
    })?;
    Ok(())
}

/// The settings of a mode, as the suite has them: provider and model, instructions and surroundings.
fn mode_settings(mode: &Value) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    let provider = mode.get("provider");
    let uses = provider.and_then(|provider| provider.get("uses")?.as_str());
    settings.extend(uses.map(|uses| ("provider", uses.to_owned())));
    let overrides = |key: &str| {
        let own = ["provider_overrides", "providerOverrides"].iter();
        let mut own = own.filter_map(|name| mode.get(*name)?.get(key));
        own.next().or_else(|| provider?.get(key))
    };
    let model = overrides("model").and_then(Value::as_str);
    settings.extend(model.map(|model| ("model", model.to_owned())));
    let instructions = ["system_instructions", "systemInstructions", "instructions"].iter();
    let instructions = instructions
        .filter_map(|key| mode.get(*key)?.as_str())
        .filter(|instructions| !instructions.is_empty());
    settings.extend(instructions.map(|instructions| ("instructions", instructions.to_owned())));
    let skills = mode
        .get("skills")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    settings.extend(
        skills
            .filter_map(Value::as_str)
            .map(|skill| ("skills", skill.to_owned())),
    );
    for key in ["mcp_servers", "mcpServers"] {
        let servers = mode
            .get(key)
            .or_else(|| overrides(key))
            .and_then(Value::as_object);
        let names = servers.into_iter().flat_map(|servers| servers.keys());
        settings.extend(names.map(|name| ("servers", name.clone())));
    }
    let variables = mode.get("environment").and_then(Value::as_object);
    let names = variables.into_iter().flat_map(|variables| variables.keys());
    settings.extend(names.map(|name| ("environment", name.clone())));
    // Further settings of the provider, such as its command.
    let known = ["uses", "model", "mcp_servers", "mcpServers"];
    let others = provider.and_then(Value::as_object).into_iter().flatten();
    let others = others.filter(|(key, _)| !known.contains(&key.as_str()));
    settings.extend(others.map(|(key, value)| ("settings", setting_line(key, value))));
    settings
}

fn setting_line(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{key}: {text}"),
        Value::Array(words) if words.iter().all(Value::is_string) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            format!("{key}: {}", words.join(" "))
        }
        other => format!("{key}: {other}"),
    }
}

/// The machine of a run, and its versions.
fn origin(manifest: &Manifest) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let provenance = &manifest.provenance;
    if let Some(git) = provenance.get("git").filter(|git| !git.is_null()) {
        let commit = git
            .get("commit")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let dirty = match git.get("dirty").and_then(Value::as_bool) {
            Some(true) => " with changes",
            _ => "",
        };
        let short: String = commit.chars().take(10).collect();
        facts.push(("commit".to_owned(), format!("{short}{dirty}")));
    }
    facts.push(("assize".to_owned(), manifest.assize_version.clone()));
    let agents = provenance.get("agents").and_then(Value::as_object);
    for (agent, found) in agents.into_iter().flatten() {
        if let Some(version) = found.get("version").and_then(Value::as_str) {
            facts.push((agent.clone(), version.to_owned()));
        }
    }
    facts
}
