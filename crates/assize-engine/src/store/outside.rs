//! Lists the parts of a record that came from outside and may therefore hold a secret: text by agents, tools, models and plugins.
//!
//! Ids, enums, numbers and names that Assize or the suite define are never touched, so that a record stays what it is whatever
//! the secrets are. Every field is named here: a new one does not compile until its origin has been decided.

use assize_contracts::{
    AnalysisFinding, AnalysisResult, Attempt, CustomMetric, Evidence, JsonMap, Metric, MetricKind,
    MetricValue, ModelCall, PluginError, ProfileRow, Provenance, RunError, RunRecord, ScoreRecord,
    ScoreValue, ScorerCheckResult, SessionAnalysisBundle, SessionTrace, StepSummary, TaskEvent,
    ToolCallRecord, ToolCallSummary, TraceEvent, Turn,
};
use assize_secrets::Redactor;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};

/// A record with text from outside.
pub(crate) trait Outside {
    /// Removes secrets from that text.
    fn clean(&mut self, redactor: &Redactor);
}

/// Writes a record as JSON without secrets. Changes the record itself where it holds any.
pub(crate) fn write_clean<T: serde::Serialize + Outside>(
    json: &mut Vec<u8>,
    record: &mut T,
    redactor: &Redactor,
) {
    let start = json.len();
    let write = |json: &mut Vec<u8>, record: &T| {
        serde_json::to_writer(json, record).expect("records are plain data with text keys");
    };
    write(json, record);
    if redactor.concerns(&json[start..]) {
        record.clean(redactor);
        json.truncate(start);
        write(json, record);
    }
}

/// Removes secrets from a trace.
pub fn clean_trace(trace: &mut SessionTrace, redactor: &Redactor) {
    trace.clean(redactor);
}

impl Outside for ProfileRow {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            run_id: _,
            scenario_id: _,
            mode: _,
            model: _,
            iteration: _,
            started_at: _,
            completed_at: _,
            tokens: _,
            timing,
            tool_calls,
            cost: _,
            success: _,
            checkpoints_passed: _,
            checkpoints_total: _,
            checkpoint_details,
            output_valid: _,
            provider: _,
            // Agents choose it, but that of a task is Assize's own: the caller knows.
            session_id: _,
            agent_turns: _,
            completion_reason: _,
            extensions,
            error,
            error_code,
            schema_version: _,
            outcome: _,
            void_cause: _,
            tokens_at_least: _,
            cost_at_least_usd: _,
            user_turns: _,
            attempts,
            hook_errors,
            position: _,
            block: _,
            cost_source: _,
            cost_readings: _,
            censored: _,
            not_captured: _,
            subscription: _,
            replayed: _,
            simulated: _,
        } = self;
        for segment in &mut timing.segments {
            clean_name(&mut segment.label, redactor);
        }
        tool_calls.clean(redactor);
        checkpoint_details
            .iter_mut()
            .for_each(|check| check.clean(redactor));
        clean_texts([error], redactor);
        clean_code(error_code, redactor);
        clean_metrics(extensions, redactor);
        attempts
            .iter_mut()
            .for_each(|attempt| attempt.clean(redactor));
        hook_errors
            .iter_mut()
            .for_each(|error| error.clean(redactor));
    }
}

impl Outside for ToolCallSummary {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            total: _,
            by_category,
            failed: _,
            retried: _,
            error_rate: _,
            records,
        } = self;
        clean_keys(by_category, |key| redactor.clean(key), |a, b| *a += b);
        records.iter_mut().for_each(|record| record.clean(redactor));
    }
}

impl Outside for ToolCallRecord {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            name,
            category,
            success: _,
            duration_ms: _,
            error,
            call_ref,
        } = self;
        redactor.clean(name);
        redactor.clean(category);
        clean_texts([error, call_ref], redactor);
    }
}

impl Outside for ScorerCheckResult {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            id: _,
            description,
            passed: _,
            actual,
            expected,
            error,
        } = self;
        redactor.clean(description);
        for value in [actual, expected].into_iter().flatten() {
            redactor.clean_value(value);
        }
        clean_texts([error], redactor);
    }
}

impl Outside for Attempt {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            outcome: _,
            session_id,
            tokens: _,
            cost_usd: _,
            tokens_at_least: _,
            cost_at_least_usd: _,
            wall_ms: _,
            error,
            error_code,
        } = self;
        clean_texts([session_id, error], redactor);
        clean_code(error_code, redactor);
    }
}

impl Outside for PluginError {
    fn clean(&mut self, redactor: &Redactor) {
        let Self { hook: _, message } = self;
        redactor.clean(message);
    }
}

impl Outside for Arc<SessionTrace> {
    fn clean(&mut self, redactor: &Redactor) {
        Arc::make_mut(self).clean(redactor);
    }
}

impl Outside for SessionTrace {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            schema_version: _,
            session_id,
            events,
            turns,
            summary: _,
            model_calls,
            answer,
            user_turns: _,
            skills,
            simulated: _,
            is_joined: _,
        } = self;
        for load in skills.iter_mut().flat_map(|skill| &mut skill.loads) {
            clean_texts([&mut load.agent_id], redactor);
        }
        redactor.clean(session_id);
        clean_texts([answer], redactor);
        let before = events.clone();
        for event in events.iter_mut() {
            clean_event(event, redactor);
        }
        clean_turns(turns, &before, events, redactor);
        model_calls.iter_mut().for_each(|call| call.clean(redactor));
    }
}

/// Turns hold the same events in the same order, so that each is looked for from where the last one was found.
fn clean_turns(
    turns: &mut [Turn],
    before: &[Arc<TraceEvent>],
    clean: &[Arc<TraceEvent>],
    redactor: &Redactor,
) {
    let mut next = 0;
    for event in turns.iter_mut().flat_map(|turn| &mut turn.events) {
        let rest = before.get(next..).unwrap_or_default();
        match rest.iter().position(|other| Arc::ptr_eq(other, event)) {
            Some(place) => {
                *event = Arc::clone(&clean[next + place]);
                next += place + 1;
            }
            None => {
                next = before.len();
                clean_event(event, redactor);
            }
        }
    }
}

fn clean_event(event: &mut Arc<TraceEvent>, redactor: &Redactor) {
    let json = serde_json::to_vec(&**event).expect("an event is plain data");
    if redactor.concerns(&json) {
        Arc::make_mut(event).clean(redactor);
    }
}

impl Outside for TraceEvent {
    fn clean(&mut self, redactor: &Redactor) {
        let context = match self {
            Self::TurnBoundary { .. } => return,
            Self::Reasoning {
                content, context, ..
            }
            | Self::TextOutput {
                content, context, ..
            } => {
                redactor.clean(content);
                context
            }
            Self::ToolCall {
                name,
                input,
                output,
                error,
                context,
                ..
            } => {
                redactor.clean(name);
                redactor.clean_value(input);
                redactor.clean_value(output);
                clean_texts([error], redactor);
                context
            }
            Self::Error {
                message, context, ..
            } => {
                redactor.clean(message);
                context
            }
        };
        if let Some(place) = context {
            let ids = [
                &mut place.agent_id,
                &mut place.parent_event_id,
                &mut place.call_id,
                &mut place.call_ref,
            ];
            clean_texts(ids, redactor);
        }
    }
}

impl Outside for ModelCall {
    fn clean(&mut self, redactor: &Redactor) {
        // The other fields are numbers, times and words of Assize.
        let Self {
            id,
            model,
            agent_id,
            service_tier,
            stop_reason,
            ..
        } = self;
        redactor.clean(id);
        clean_name(model, redactor);
        clean_texts([agent_id], redactor);
        clean_code(service_tier, redactor);
        clean_code(stop_reason, redactor);
    }
}

impl Outside for SessionAnalysisBundle {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            schema_version: _,
            session_id,
            scenario_id: _,
            mode: _,
            model: _,
            iteration: _,
            results,
        } = self;
        redactor.clean(session_id);
        results
            .values_mut()
            .for_each(|result| result.clean(redactor));
    }
}

impl Outside for AnalysisResult {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            analyzer: _,
            findings,
            summary,
        } = self;
        redactor.clean(summary);
        clean_keys(findings, |key| clean_name(key, redactor), |_, _| {});
        findings
            .values_mut()
            .for_each(|finding| finding.clean(redactor));
    }
}

impl Outside for AnalysisFinding {
    fn clean(&mut self, redactor: &Redactor) {
        match self {
            Self::Number { value: _, unit } => clean_name(unit, redactor),
            Self::Ratio { value: _, label } => redactor.clean(label),
            Self::String { value } => redactor.clean(value),
            Self::List { values } => values.iter_mut().for_each(|text| redactor.clean(text)),
            Self::Table { headers, rows } => {
                let cells = headers.iter_mut().chain(rows.iter_mut().flatten());
                cells.for_each(|cell| redactor.clean(cell));
            }
        }
    }
}

impl Outside for RunRecord {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            schema_version: _,
            id: _,
            task_id: _,
            task_type: _,
            status: _,
            output,
            error,
            metrics: _,
            trace,
            steps,
            started_at: _,
            completed_at: _,
            provenance,
        } = self;
        output
            .iter_mut()
            .for_each(|value| redactor.clean_value(value));
        if let Some(RunError {
            message,
            step: _,
            stack,
        }) = error
        {
            redactor.clean(message);
            clean_texts([stack], redactor);
        }
        trace.iter_mut().for_each(|event| event.clean(redactor));
        let steps = steps.iter_mut().flatten();
        steps.for_each(|step| step.clean(redactor));
        provenance.clean(redactor);
    }
}

impl Outside for TaskEvent {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            timestamp: _,
            level: _,
            step: _,
            event,
            data,
        } = self;
        clean_name(event, redactor);
        data.iter_mut()
            .for_each(|value| redactor.clean_value(value));
    }
}

impl Outside for StepSummary {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            step_id: _,
            step_name: _,
            status: _,
            latency: _,
            tokens: _,
            cost: _,
            output,
            error,
        } = self;
        output
            .iter_mut()
            .for_each(|value| redactor.clean_value(value));
        clean_texts([error], redactor);
    }
}

impl Outside for Provenance {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            runner_id: _,
            runner_version: _,
            config,
            config_hash: _,
            run_fingerprint: _,
            input_hash: _,
        } = self;
        // The suite wrote it, with values of the environment put in.
        config
            .values_mut()
            .for_each(|value| redactor.clean_value(value));
    }
}

impl Outside for ScoreRecord {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            schema_version: _,
            id: _,
            run_id: _,
            metric: _,
            meaning: _,
            value,
            target: _,
            evidence,
            evaluator_id: _,
            created_at: _,
        } = self;
        if let ScoreValue::Text(text) = value {
            redactor.clean(text);
        }
        if let Some(Evidence {
            explanation,
            snippets,
            alignment,
        }) = evidence
        {
            clean_texts([explanation], redactor);
            let snippets = snippets.iter_mut().flatten();
            snippets.for_each(|text| redactor.clean(text));
            let values = alignment.iter_mut().flat_map(|map| map.values_mut());
            values.for_each(|value| redactor.clean_value(value));
        }
    }
}

/// A metric of a collector or scorer that is seen for the first time. Built-in names are Assize's own.
impl Outside for CustomMetric {
    fn clean(&mut self, redactor: &Redactor) {
        let Self {
            name,
            value,
            unit,
            better: _,
            label,
            kind,
        } = self;
        // A name that carries one of the trial's own is made of it again, so that both stay the same.
        match kind {
            MetricKind::ToolCategory(category) => {
                redactor.clean(category);
                *name = Metric::tool_category(category).name.into_owned();
            }
            MetricKind::TimeSegment(label) => {
                clean_name(label, redactor);
                *name = Metric::time_segment(label).name.into_owned();
            }
            _ => clean_name(name, redactor),
        }
        if let MetricValue::Text(text) = value {
            redactor.clean(text);
        }
        for words in [Some(unit), label.as_mut()].into_iter().flatten() {
            if let Cow::Owned(clean) = redactor.text(words) {
                *words = Cow::Owned(clean);
            }
        }
    }
}

/// Metrics by name. Names were cleaned when they were first seen.
fn clean_metrics(metrics: &mut JsonMap, redactor: &Redactor) {
    for value in metrics.values_mut() {
        if !value.is_number() {
            redactor.clean_value(value);
        }
    }
}

fn clean_texts<'a>(texts: impl IntoIterator<Item = &'a mut Option<String>>, redactor: &Redactor) {
    for text in texts.into_iter().flatten() {
        redactor.clean(text);
    }
}

fn clean_code(code: &mut Option<String>, redactor: &Redactor) {
    if let Some(code) = code {
        clean_name(code, redactor);
    }
}

/// Cleans a name that Assize or a plugin gave. Names of Assize's own words are left alone: they reveal no secret.
pub(crate) fn clean_name(name: &mut String, redactor: &Redactor) {
    let mut words = name.split(['_', '.', ':', '-']);
    if !words.all(|word| OWN_WORDS.contains(word)) {
        redactor.clean(name);
    }
}

/// The words of names that Assize or the services of models give: metrics, findings, units, events, parts of the time, reasons to stop, errors.
static OWN_WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let others = "a acp again agent answer at auto backtracking batch broken budget by bytes cache cached call calls cancelled captured \
        cascades changed chunk code command complete completed confusion container content context count create default \
        effective effects empty encountered end ended error errors evaluator event events exceeded exit export failed failing \
        file filter finish first flex from function goal growth harbor hook http in incomplete input installed instruction \
        invalid json keeper length limit llm loops lost malformed map mapped matched max mcp memory misses model ms no not notes \
        nothing of ok once optimality out output overflow overloaded page panic patterns pause per percent permissions planning \
        plugin priority productive program progress prompt provider quality rate reads ready reason reasoning record recording \
        recovery refills refusal refused repeated request result retried retries rule runner safety scale scored scorer scoring \
        sequence server service session setup share signal signals signed skill split spread standard start started state status \
        step steps stop strategy subagents success summary supported task then thought tier time timed timeout to token tokens \
        tool tools total turn turns type types unavailable unique unreachable unsupported usage usd use used version wall waste \
        wasted without words work workspace write";
    let metrics = Metric::built_in_names().flat_map(|name| name.split('_'));
    metrics
        .chain(others.split_whitespace())
        .chain([""])
        .collect()
});

fn clean_keys<T>(
    map: &mut BTreeMap<String, T>,
    clean: impl Fn(&mut String),
    join: impl Fn(&mut T, T),
) {
    for (mut key, value) in std::mem::take(map) {
        clean(&mut key);
        match map.get_mut(&key) {
            Some(same) => join(same, value),
            None => drop(map.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_secrets::Secrets;

    fn cleaned(name: &str, secret: &str) -> String {
        let secrets = Secrets::default();
        secrets.declare("X", secret, true);
        let mut name = name.to_owned();
        clean_name(&mut name, &Redactor::new(&secrets));
        name
    }

    /// Codes of errors and findings. Metrics are in a table of their own.
    const NAMES: &str = "acp_refused acp_version agent_ended agent_error agent_not_ready backtracking_events cancelled confusion_signals \
        container_lost container_not_started context_overflow create_session_failed end_turn error_cascades error_types \
        errors_encountered evaluator_error exit export_failed failed_then_retried first_output keeper_lost llm llm_error \
        llm_failed llm_no_answer llm_timeout llm_unreachable loops_calls_without_progress max_tokens mcp_not_ready \
        mcp_tools mcp_unsupported no_model_answer no_recording no_result not_captured not_installed not_scored_again \
        not_signed_in nothing_captured optimality_notes out_of_memory permissions_unsupported planning_quality plugin_panic \
        productive_turns program_cancelled program_ended program_not_started provider_error reasoning_per_tool_call \
        recovery_patterns runner_error scorer_error session_not_ended setup_failed signal step_finish step_start \
        strategy_steps strategy_summary subagents_count subagents_share subagents_tokens subagents_work task_failed \
        time_by_turn time_in_tools time_retries time_split time_wall timeout tokens_by_call tokens_input_growth \
        tool_call_patterns tool_use total_turns unique_tools_used waste_cache_misses waste_context_refills \
        waste_failing_calls waste_failing_loops waste_repeated_reads wasted_turns wasted_turns_from_errors workspace_lost \
        workspace_setup_failed";

    #[test]
    fn names_of_assize_stay_whatever_is_secret() {
        for name in NAMES.split_whitespace().chain(Metric::built_in_names()) {
            for secret in name.split('_').chain([name, "e", "t", "_"]) {
                assert_eq!(cleaned(name, secret), name, "{secret}");
            }
        }
    }

    #[test]
    fn names_of_plugins_hold_no_secret() {
        let secret = "correct-horse";
        assert_eq!(cleaned("m_correct-horse", secret), "m_[redacted-1]");
        assert_eq!(cleaned("correct_horse", secret), "correct_horse");
        let secrets = Secrets::default();
        secrets.declare("X", secret, true);
        let redactor = Redactor::new(&secrets);
        for (kind, name) in [
            (
                MetricKind::ToolCategory("a correct-horse".into()),
                "tool_calls_category_a [redacted-1]",
            ),
            (MetricKind::Plain, "a [redacted-1]"),
        ] {
            let mut metric = CustomMetric::number("a correct-horse", 1.0, "correct-horse").unwrap();
            metric.kind = kind;
            metric.clean(&redactor);
            assert_eq!(metric.name, name);
            assert!(!format!("{metric:?}").contains(secret));
        }
    }
}
