//! Logs of agents as rows, so that everything that reads trials reads them: one row per session, with the groups to be compared as modes.

use crate::cli::{LogGroup, ReportArguments};
use crate::commands::sessions::{self, span};
use crate::commands::verdict::Source;
use anyhow::{Context, Result};
use assize_contracts::{
    AnalysisFinding, AnalysisResult, Catalog, Caution, CautionCode, CostBreakdown, CostReadings,
    CostSource, JsonMap, Millis, Number, Outcome, ProfileRow, RowField, SCHEMA_VERSION,
    SessionTrace, Timestamp, TimingBreakdown, TokenSum, ToolCallRecord, ToolCallSummary, Usd,
};
use assize_engine::store::{CellKey, RunDirectory};
use assize_llm::{Prices, price_calls};
use assize_measures::analyzers::{ALL, cache_misses};
use assize_sessions::{Index, Library, Session, find_below};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// Logs, and the rows that were made of them.
#[derive(Debug)]
pub(crate) struct ImportedLogs {
    library: LibraryBox,
    sessions: HashMap<CellKey, usize>,
    redact: bool,
    /// The directory of the rows until the report is written.
    _directory: TempDir,
}

/// A library says nothing about itself.
struct LibraryBox(Library);

impl std::fmt::Debug for LibraryBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} sessions", self.0.len())
    }
}

impl ImportedLogs {
    /// The trace of a row.
    pub(crate) fn trace(&self, key: &CellKey) -> Option<SessionTrace> {
        let number = *self.sessions.get(key)?;
        let session = loaded(&self.library.0, number, self.redact).ok()??;
        Some(session.trace)
    }
}

/// A session with its calls priced, and without secrets where that is wanted.
pub(crate) fn loaded(library: &Library, number: usize, redact: bool) -> Result<Option<Session>> {
    let Some(mut session) = library.load(number)? else {
        return Ok(None);
    };
    if redact {
        assize_sessions::redact(&mut session);
    }
    price_calls(&mut session.trace, &Prices::default());
    Ok(Some(session))
}

/// The rows of the logs that a source names. Nothing for runs and files of rows.
pub(crate) fn source(name: &str, arguments: &ReportArguments) -> Result<Option<Source>> {
    let path = Path::new(name);
    if !path.exists() || RunDirectory::is_run(path) {
        return Ok(None);
    }
    let mut logs = find_below(path);
    logs.retain(|file| assize_sessions::agent_of(file).is_some());
    if logs.is_empty() {
        return Ok(None);
    }
    let since = arguments
        .since
        .as_deref()
        .map(span::beginning)
        .transpose()?;
    let library = sessions::read(logs, &mut Index::none());
    let directory = assize_secrets::private_directory("assize-imported-")
        .context("cannot make a temporary directory")?;
    let rows = directory.path().join("sessions.jsonl");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&rows)?);
    let mut imported = HashMap::new();
    let mut modes: Vec<String> = Vec::new();
    let mut repetitions: HashMap<(String, String, String), i64> = HashMap::new();
    for number in 0..library.len() {
        let Some(session) = loaded(&library, number, arguments.redact)? else {
            continue;
        };
        let Some(mut row) = row(&session, arguments.by).filter(|_| is_since(&session, since))
        else {
            continue;
        };
        let repetition = repetitions
            .entry((row.scenario_id.clone(), row.mode.clone(), row.model.clone()))
            .or_default();
        row.iteration = *repetition;
        *repetition += 1;
        if !modes.contains(&row.mode) {
            modes.push(row.mode.clone());
        }
        serde_json::to_writer(&mut file, &row)?;
        file.write_all(b"\n")?;
        imported.insert(CellKey::of(&row), number);
    }
    file.flush()?;
    modes.sort();
    let mut source = Source::of_rows(rows);
    source.suite = Some("sessions".to_owned());
    source.modes = modes;
    source.analysis.prices = vec![Prices::default().version()];
    source.analysis.not_judged = true;
    let decisive = [RowField::TokensActive, RowField::WallTime];
    let decisive = decisive.map(|field| Catalog::default().name_of(field).to_owned());
    source.analysis.planned_primary = vec![decisive.to_vec()];
    source.logs = Some(Arc::new(ImportedLogs {
        library: LibraryBox(library),
        sessions: imported,
        redact: arguments.redact,
        _directory: directory,
    }));
    Ok(Some(source))
}

fn is_since(session: &Session, since: Option<i64>) -> bool {
    since.is_none_or(|since| start(session).is_some_and(|start| start >= since))
}

fn start(session: &Session) -> Option<i64> {
    let prompt = session.prompts.first().and_then(|prompt| prompt.at_ms);
    let event = || {
        session
            .trace
            .events
            .iter()
            .find_map(|event| event.timestamp()?.unix_ms())
    };
    prompt.or_else(event)
}

/// One session as a trial. Nothing for a session without a model call: it measures nothing.
fn row(session: &Session, by: LogGroup) -> Option<ProfileRow> {
    let trace = &session.trace;
    if trace.model_calls.is_empty() && trace.summary.total_tokens.total.is_none() {
        return None;
    }
    let started = start(session)?;
    let Cell {
        scenario,
        mode,
        model,
    } = cell(session, started, by);
    let sum = match trace.model_calls.is_empty() {
        true => TokenSum {
            tokens: trace.summary.total_tokens,
            at_least: None,
        },
        false => TokenSum::of_calls(&trace.model_calls),
    };
    let cost = cost(trace);
    let duration = trace.summary.total_duration;
    let ended = started.saturating_add(duration.map_or(0, |duration| duration.value() as i64));
    Some(ProfileRow {
        run_id: "sessions".to_owned(),
        scenario_id: scenario,
        mode,
        model,
        iteration: 0,
        started_at: Timestamp::from_unix_ms(started),
        completed_at: Timestamp::from_unix_ms(ended),
        tokens: sum.tokens,
        timing: TimingBreakdown {
            wall_ms: worked(trace).or(duration),
            ..TimingBreakdown::default()
        },
        tool_calls: tools(trace.tool_call_records()),
        cost: CostBreakdown {
            total_usd: cost.usd,
            ..CostBreakdown::default()
        },
        success: true,
        checkpoints_passed: 0,
        checkpoints_total: 0,
        checkpoint_details: Vec::new(),
        output_valid: true,
        provider: session.origin.agent.clone(),
        session_id: Some(trace.session_id.clone()),
        agent_turns: trace.summary.total_turns,
        completion_reason: None,
        extensions: JsonMap::new(),
        error: None,
        error_code: None,
        schema_version: Some(SCHEMA_VERSION),
        outcome: Some(Outcome::Pass),
        void_cause: None,
        tokens_at_least: sum.at_least,
        cost_at_least_usd: cost.at_least,
        user_turns: Some(session.prompts.len() as u64),
        attempts: Vec::new(),
        hook_errors: Vec::new(),
        position: None,
        block: None,
        cost_source: Some(cost.source),
        cost_readings: Some(CostReadings {
            computed_usd: cost.usd.filter(|_| cost.source == CostSource::Computed),
            ..CostReadings::default()
        }),
        censored: false,
        not_captured: false,
        subscription: false,
        replayed: false,
        simulated: trace.simulated,
    })
}

/// The place of a session among the trials that are compared.
struct Cell {
    scenario: String,
    mode: String,
    model: String,
}

fn cell(session: &Session, started: i64, by: LogGroup) -> Cell {
    let project = session.origin.cwd.as_deref().unwrap_or("unknown project");
    let model = session.model().unwrap_or("unknown model");
    let mode = match by {
        LogGroup::Week => format!("week of {}", span::week(started)),
        LogGroup::Model => model.to_owned(),
        LogGroup::Project => project.to_owned(),
        LogGroup::Agent => session.origin.agent.clone(),
    };
    // The grouping that is compared is no part of the scenario.
    let scenario = match by {
        LogGroup::Project => "sessions",
        _ => project,
    };
    let model = match by {
        LogGroup::Model => "any",
        _ => model,
    };
    Cell {
        scenario: scenario.to_owned(),
        mode,
        model: model.to_owned(),
    }
}

/// The time that the agent worked on the user's messages. Absent where the time of one is unknown.
fn worked(trace: &SessionTrace) -> Option<Millis> {
    let times = trace.user_turns.iter().map(|turn| turn.duration_ms);
    times.reduce(|sum, next| Some(sum? + next?)).flatten()
}

struct SessionCost {
    usd: Option<Usd>,
    at_least: Option<Usd>,
    source: CostSource,
}

/// The sum over calls. One call without a cost makes it a lower bound.
fn cost(trace: &SessionTrace) -> SessionCost {
    let calls = || trace.model_calls.iter().filter(|call| !call.is_refused());
    let known = calls()
        .filter_map(|call| call.cost_usd)
        .reduce(|sum, next| sum + next);
    let is_whole = calls().all(|call| call.cost_usd.is_some());
    let is_reported = calls().any(|call| call.cost_source == Some(CostSource::Reported));
    SessionCost {
        usd: known.filter(|_| is_whole),
        at_least: known.filter(|_| !is_whole),
        source: match (known.is_some() && is_whole, is_reported) {
            (false, _) => CostSource::Unknown,
            (true, true) => CostSource::Reported,
            (true, false) => CostSource::Computed,
        },
    }
}

fn tools(records: Vec<ToolCallRecord>) -> ToolCallSummary {
    let mut by_category: BTreeMap<String, u64> = BTreeMap::new();
    for record in &records {
        *by_category.entry(record.category.clone()).or_default() += 1;
    }
    let total = records.len() as u64;
    let is_known = records.iter().all(|record| record.success.is_some());
    let failed = records
        .iter()
        .filter(|record| record.success == Some(false))
        .count() as u64;
    let failed = is_known.then_some(failed);
    let rate = |failed: u64| Number::new(failed as f64 / total.max(1) as f64);
    ToolCallSummary {
        total: Some(total),
        by_category,
        failed,
        retried: None,
        error_rate: failed.and_then(rate),
        records,
    }
}

/// The caution above every comparison of imported sessions.
pub(crate) fn not_randomised() -> Caution {
    let text = "These sessions were not randomised: people chose task, model and time as they needed them, so a difference between groups may \
        come from other work and not from what the groups are named for. Run the same scenarios under both conditions (`assize init --from-session`, \
        `assize run`) to know.";
    Caution::about_all(CautionCode::NotRandomised, text)
}

/// A log does not say whether its user got what they wanted.
pub(crate) fn not_judged() -> Caution {
    let text = "These sessions were not judged: logs do not show whether the work was good, so success is unknown. Compare tokens, cost, time \
        and tools.";
    Caution::about_all(CautionCode::NothingChecked, text)
}

/// The findings of all analyzers, with the cost of the waste.
pub(crate) fn explain(trace: &SessionTrace) -> BTreeMap<String, AnalysisResult> {
    let found = ALL.iter().map(|analyzer| analyzer.find(trace));
    let mut results: BTreeMap<String, AnalysisResult> =
        found.map(|found| (found.analyzer.clone(), found)).collect();
    add_cost_of_waste(&mut results, trace);
    results
}

/// Prices what the cache had and was not asked for: the difference to reading it from there.
pub(crate) fn add_cost_of_waste(
    results: &mut BTreeMap<String, AnalysisResult>,
    trace: &SessionTrace,
) {
    let Some(waste) = results.get_mut("waste") else {
        return;
    };
    let prices = Prices::default();
    let extra = |miss: &assize_measures::analyzers::CacheMiss<'_>| {
        let paid = prices.of_call(miss.call)?.breakdown.total_usd?.value();
        let mut cached = miss.call.clone();
        let moved_from_input = miss.tokens.min(cached.tokens.input.unwrap_or(0));
        let from_write =
            (miss.tokens - moved_from_input).min(cached.tokens.cache_write.unwrap_or(0));
        cached.tokens.input = cached.tokens.input.map(|input| input - moved_from_input);
        cached.tokens.cache_write = cached
            .tokens
            .cache_write
            .map(|written| written - from_write);
        cached.cache_write_1h = cached
            .cache_write_1h
            .map(|hour| hour.saturating_sub(from_write));
        cached.tokens.cache_read = cached
            .tokens
            .cache_read
            .map(|read| read + moved_from_input + from_write);
        cached.tokens = cached.tokens.with_totals();
        let would_be = prices.of_call(&cached)?.breakdown.total_usd?.value();
        Some(paid - would_be)
    };
    let misses = cache_misses(trace);
    let costs: Option<Vec<f64>> = misses.iter().map(extra).collect();
    let Some(costs) = costs.filter(|costs| !costs.is_empty()) else {
        return;
    };
    if let Some(value) = Number::new(costs.iter().sum()) {
        let unit = "USD".to_owned();
        waste.findings.insert(
            "waste_cache_miss_cost".to_owned(),
            AnalysisFinding::Number { value, unit },
        );
        let text = format!(
            " ({} more than from the cache)",
            assize_report::money(value.value())
        );
        waste.summary.push_str(&text);
    }
}
