//! `waste`: work that a session did for nothing: files read again unchanged, calls that fail again and again, context that was discarded
//! and filled again, prompts that the cache had and was not asked for.

use super::TraceAnalyzer;
use super::findings::Findings;
use super::grouped::FastMap;
use super::trace_view::{Unreported, is_failure, known};
use assize_contracts::{AnalysisResult, ModelCall, SessionTrace, TraceEvent};
use serde_json::Value;
use std::collections::BTreeMap;

/// Findings `waste_repeated_reads`, `waste_failing_loops`, `waste_context_refills` and `waste_cache_misses`, with their tokens where the
/// trace has them, and tables of what was read and what failed. What depends on a tool call that did not report its end is left out.
pub const WASTE: TraceAnalyzer = TraceAnalyzer {
    name: "waste",
    find: analyze,
};

/// So many failures of the same call in a row are a loop.
const LOOP: usize = 3;

/// Shorter prompts are not cached by anybody.
const SHORTEST_CACHED: u64 = 1024;

/// Smaller contexts are not worth a compaction.
const SMALLEST_CONTEXT: u64 = 10_000;

fn analyze(trace: &SessionTrace) -> AnalysisResult {
    let reads = known(trace, |unreported| repeated_reads(trace, unreported));
    let loops = known(trace, |unreported| failing_loops(trace, unreported));
    let refills = context_refills(trace);
    let misses = cache_misses(trace);
    let mut findings = Findings::default();
    let repeated = reads.map(|reads| describe_reads(&reads, &mut findings));
    if let Some(loops) = &loops {
        describe_loops(loops, &mut findings);
    }
    findings.count("waste_context_refills", refills.len(), "refills");
    let refilled = total(refills.iter().copied());
    findings.number(
        "waste_refilled_tokens",
        (!refills.is_empty()).then_some(refilled as f64),
        "tokens",
    );
    findings.count("waste_cache_misses", misses.len(), "calls");
    let missed = total(misses.iter().map(|miss| miss.tokens));
    findings.number(
        "waste_missed_tokens",
        (!misses.is_empty()).then_some(missed as f64),
        "tokens",
    );
    let known =
        |count: Option<usize>| count.map_or("unknown".to_owned(), |count| count.to_string());
    let summary = format!(
        "{} reads repeated, {} failing loops, {} context refills, {} cache misses",
        known(repeated),
        known(loops.map(|loops| loops.len())),
        refills.len(),
        misses.len()
    );
    findings.into_result("waste", summary)
}

/// The number of repeated reads.
fn describe_reads(reads: &BTreeMap<&str, usize>, findings: &mut Findings) -> usize {
    let repeated = reads.values().map(|times| times - 1).sum();
    findings.count("waste_repeated_reads", repeated, "calls");
    let rows = reads
        .iter()
        .map(|(what, times)| vec![(*what).to_owned(), times.to_string()]);
    findings.table(
        "waste_read_again",
        &["what", "times"],
        sorted(rows.collect()),
    );
    repeated
}

fn describe_loops(loops: &[(String, usize)], findings: &mut Findings) {
    let failed: usize = loops.iter().map(|(_, length)| length).sum();
    findings.count("waste_failing_loops", loops.len(), "loops");
    findings.count("waste_failing_calls", failed, "calls");
    let rows = loops
        .iter()
        .map(|(what, length)| vec![what.clone(), length.to_string()]);
    findings.table(
        "waste_failed_again",
        &["call", "times"],
        sorted(rows.collect()),
    );
}

/// The largest first.
fn sorted(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let times = |row: &Vec<String>| row[1].parse::<usize>().unwrap_or(0);
    rows.sort_by(|a, b| times(b).cmp(&times(a)).then_with(|| a[0].cmp(&b[0])));
    rows
}

/// Files that were read more than once, in the same part, while nothing wrote to them.
fn repeated_reads(trace: &SessionTrace, unreported: Unreported) -> BTreeMap<&str, usize> {
    let mut since_change: FastMap<(&str, &Value), usize> = FastMap::default();
    let mut most: BTreeMap<&str, usize> = BTreeMap::new();
    for event in &trace.events {
        let TraceEvent::ToolCall { name, input, .. } = &**event else {
            continue;
        };
        let Some(path) = path_of(input) else {
            // A command may change anything.
            if is_shell(name) {
                since_change.clear();
            }
            continue;
        };
        if is_reader(name) && !is_failure(event, unreported) {
            let times = since_change.entry((path, input)).or_default();
            *times += 1;
            if *times > 1 {
                let known = most.entry(path).or_default();
                *known = (*known).max(*times);
            }
        } else if !is_reader(name) {
            since_change.retain(|(known, _), _| *known != path);
        }
    }
    most
}

fn path_of(input: &Value) -> Option<&str> {
    let keys = ["file_path", "filePath", "path", "absolute_path", "file"];
    keys.iter().find_map(|key| input.get(key)?.as_str())
}

fn is_reader(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit("__").next().unwrap_or_default();
    matches!(
        last,
        "read"
            | "read_file"
            | "readfile"
            | "view"
            | "cat"
            | "open_file"
            | "view_file"
            | "read_many_files"
    )
}

fn is_shell(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["bash", "shell", "exec", "command", "terminal"]
        .iter()
        .any(|word| name.contains(word))
}

/// Runs of the same call that fails, each with what it is and how long it is.
fn failing_loops(trace: &SessionTrace, unreported: Unreported) -> Vec<(String, usize)> {
    let mut loops = Vec::new();
    let mut current: Option<(&str, &Value, usize)> = None;
    let mut end = |run: Option<(&str, &Value, usize)>| {
        if let Some((name, input, length)) = run
            && length >= LOOP
        {
            loops.push((called(name, input), length));
        }
    };
    for event in &trace.events {
        let TraceEvent::ToolCall { name, input, .. } = &**event else {
            continue;
        };
        let has_failed = is_failure(event, unreported);
        current = match current.take() {
            Some((known, same, length)) if has_failed && known == name && same == input => {
                Some((known, same, length + 1))
            }
            run => {
                end(run);
                has_failed.then_some((name.as_str(), input, 1))
            }
        };
    }
    end(current);
    loops
}

fn called(name: &str, input: &Value) -> String {
    let text = ["command", "cmd"]
        .iter()
        .find_map(|key| input.get(key)?.as_str());
    match text.or_else(|| path_of(input)) {
        Some(text) => format!("{name} {text}"),
        None => name.to_owned(),
    }
}

/// Logs may claim any number of tokens.
fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// The prompt of a call. Absent where a part of it is unknown.
fn prompt(call: &ModelCall) -> Option<u64> {
    let tokens = &call.tokens;
    let cached = tokens
        .cache_read
        .unwrap_or(0)
        .saturating_add(tokens.cache_write.unwrap_or(0));
    Some(tokens.input?.saturating_add(cached))
}

/// Consecutive calls of one agent and model.
fn pairs(trace: &SessionTrace) -> Vec<(&ModelCall, &ModelCall)> {
    let mut last: FastMap<(Option<&str>, &str), &ModelCall> = FastMap::default();
    let mut pairs = Vec::new();
    for call in trace
        .model_calls
        .iter()
        .filter(|call| !call.side && !call.is_refused())
    {
        let key = (call.agent_id.as_deref(), call.model.as_str());
        if let Some(before) = last.insert(key, call) {
            pairs.push((before, call));
        }
    }
    pairs
}

/// Half of the context or more was gone: a compaction, or the history was cleared.
fn is_cut(before: u64, after: u64) -> bool {
    before >= SMALLEST_CONTEXT && after <= before / 2
}

/// For every time the context was cut: the tokens that it grew by again, until the next cut or the end.
fn context_refills(trace: &SessionTrace) -> Vec<u64> {
    let mut refills = Vec::new();
    let mut cuts: FastMap<(Option<&str>, &str), (u64, u64)> = FastMap::default();
    for (before, call) in pairs(trace) {
        let key = (call.agent_id.as_deref(), call.model.as_str());
        let (Some(earlier), Some(now)) = (prompt(before), prompt(call)) else {
            continue;
        };
        if is_cut(earlier, now) {
            let ended = cuts.insert(key, (now, now));
            refills.extend(ended.map(|(low, high)| high.saturating_sub(low)));
        } else if let Some((_, high)) = cuts.get_mut(&key) {
            *high = now.max(*high);
        }
    }
    refills.extend(
        cuts.into_values()
            .map(|(low, high)| high.saturating_sub(low)),
    );
    refills
}

/// A call whose prompt began like the one before it and was not read from the cache.
#[derive(Debug, Clone, Copy)]
pub struct CacheMiss<'a> {
    pub call: &'a ModelCall,
    /// Tokens that the call before had sent already and that were sent again at full price.
    pub tokens: u64,
}

/// Calls that read less than half of the previous prompt from the cache, where the agent uses one at all.
pub fn cache_misses(trace: &SessionTrace) -> Vec<CacheMiss<'_>> {
    let uses_cache = trace
        .model_calls
        .iter()
        .any(|call| call.tokens.cache_read.unwrap_or(0) > 0);
    if !uses_cache {
        return Vec::new();
    }
    let miss = |(before, call): (&ModelCall, &'_ ModelCall)| {
        let (earlier, now) = (prompt(before)?, prompt(call)?);
        let read = call.tokens.cache_read?;
        let expected = earlier.min(now);
        let is_miss = expected >= SHORTEST_CACHED && !is_cut(earlier, now) && read < expected / 2;
        is_miss.then(|| expected - read)
    };
    pairs(trace)
        .into_iter()
        .filter_map(|(before, call)| {
            let tokens = miss((before, call))?;
            Some(CacheMiss { call, tokens })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzers::testing::unreported_call;
    use assize_contracts::{TokenBreakdown, Usd};
    use serde_json::json;

    fn tool(name: &str, input: Value, success: bool) -> TraceEvent {
        TraceEvent::ToolCall {
            name: name.to_owned(),
            input,
            output: Value::Null,
            duration_ms: None,
            success: Some(success),
            error: None,
            context: None,
        }
    }

    fn trace(events: Vec<TraceEvent>) -> SessionTrace {
        SessionTrace::from_events("s".to_owned(), events, TokenBreakdown::default())
    }

    fn read(path: &str) -> TraceEvent {
        tool("Read", json!({"file_path": path}), true)
    }

    #[test]
    fn a_file_read_again_is_waste_unless_it_may_have_changed() {
        let edit = tool(
            "Edit",
            json!({"file_path": "a.rs", "old_string": "x"}),
            true,
        );
        let bash = tool("Bash", json!({"command": "make"}), true);
        let session = trace(vec![
            read("a.rs"),
            read("b.rs"),
            read("a.rs"),
            edit,
            read("a.rs"),
            read("b.rs"),
            bash,
            read("b.rs"),
        ]);
        assert_eq!(
            repeated_reads(&session, Unreported::Worked),
            BTreeMap::from([("a.rs", 2), ("b.rs", 2)])
        );
    }

    #[test]
    fn the_same_failing_call_in_a_row_is_a_loop() {
        let fails = |command: &str| tool("Bash", json!({"command": command}), false);
        let session = trace(vec![
            fails("make"),
            fails("make"),
            fails("make"),
            fails("ls"),
            fails("make"),
            fails("make"),
        ]);
        let loops = failing_loops(&session, Unreported::Worked);
        assert_eq!(loops, [("Bash make".to_owned(), 3)]);
    }

    #[test]
    fn calls_that_report_no_end_leave_loops_and_repeated_reads_unknown() {
        let unreported = |times: usize| {
            let make = unreported_call("bash", json!({"command": "make"}));
            trace(vec![make; times])
        };
        let result = WASTE.find(&unreported(3));
        assert!(!result.findings.contains_key("waste_failing_loops"));
        assert_eq!(
            result.summary,
            "0 reads repeated, unknown failing loops, 0 context refills, 0 cache misses"
        );
        // Two are no loop, whether they failed or not.
        let result = WASTE.find(&unreported(2));
        assert!(result.findings.contains_key("waste_failing_loops"));
        let read = unreported_call("Read", json!({"file_path": "a.rs"}));
        let result = WASTE.find(&trace(vec![read.clone(), read]));
        assert!(!result.findings.contains_key("waste_repeated_reads"));
    }

    fn call(input: u64, read: u64, written: u64) -> ModelCall {
        ModelCall {
            model: "m".to_owned(),
            tokens: TokenBreakdown {
                input: Some(input),
                cache_read: Some(read),
                cache_write: Some(written),
                output: Some(1),
                ..TokenBreakdown::default()
            }
            .with_totals(),
            cost_usd: Usd::new(0.1),
            ..ModelCall::default()
        }
    }

    #[test]
    fn context_that_is_cut_and_grows_again_is_refilled_and_no_cache_miss() {
        let mut session = trace(Vec::new());
        session.model_calls = vec![
            call(10, 0, 40_000),
            call(10, 40_000, 5_000),
            call(10, 0, 8_000),
            call(10, 8_000, 20_000),
        ];
        assert_eq!(context_refills(&session), [20_000]);
        assert!(cache_misses(&session).is_empty());
    }

    #[test]
    fn a_prompt_that_the_cache_had_and_did_not_give_is_a_miss() {
        let mut session = trace(Vec::new());
        session.model_calls = vec![
            call(10, 0, 40_000),
            call(10, 40_010, 500),
            call(41_000, 0, 0),
        ];
        let misses: Vec<u64> = cache_misses(&session)
            .iter()
            .map(|miss| miss.tokens)
            .collect();
        assert_eq!(misses, [40_520]);
        let summary = WASTE.find(&session).summary;
        assert_eq!(
            summary,
            "0 reads repeated, 0 failing loops, 0 context refills, 1 cache misses"
        );
    }
}
