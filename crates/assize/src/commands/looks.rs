//! Looks at runs: every state of the data at which a verdict was shown is counted, and verdicts pay for all of them.

use crate::commands::UsageError;
use crate::commands::verdict::{self, Source};
use crate::terminal::warn;
use anyhow::Result;
use assize_contracts::{
    DecidedRecord, LookRecord, Outcome, StoppedRecord, StoppingMethod, Timestamp, UntilSpec,
};
use assize_engine::store::{RunDirectory, append_look, read_looks};
use assize_engine::{Arm, Look, ProfileSuite, Round, RunTarget, Steering, StoppedArm};
use assize_report::{Comparison, DeclaredRule, LooksReading, Summary, p_value};
use assize_stats::{
    Decided, Level, LookFacts, Looks, PairRounds, Stopping, Verdict, conditional_power,
};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Larger files of rows are not read a second time to name the state of their data.
const LARGEST_READ: u64 = 64 << 20;
/// Below this chance of deciding, going on is a waste.
const FUTILE: f64 = 0.1;
/// The effect that futility is judged by: a share of the baseline, or points divided by 100.
const TARGET: f64 = 0.2;
/// Looks where the suite does not say.
const LOOKS: u32 = 5;

/// The blocks that are complete.
struct State {
    id: String,
    blocks: u64,
    rounds: f64,
    /// Success of every trial, by scenario and repetition, then by arm. None: it could not be judged.
    passed: BTreeMap<(String, i64), BTreeMap<Arm, Option<bool>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trial<'a> {
    #[serde(borrow)]
    scenario_id: Cow<'a, str>,
    #[serde(borrow)]
    mode: Cow<'a, str>,
    #[serde(borrow, default)]
    model: Cow<'a, str>,
    iteration: i64,
    #[serde(default)]
    success: bool,
    #[serde(default)]
    outcome: Option<Outcome>,
}

impl<'a> Trial<'a> {
    /// The key of a trial, which is at the beginning of its row: the rest is not read, and the outcome not known. Absent where the
    /// row looks otherwise.
    fn key_of(json: &'a [u8]) -> Option<Self> {
        let mut key = Key::default();
        // It ends with an error where the visitor stops.
        let _ = serde_json::Deserializer::from_slice(json).deserialize_map(&mut key);
        Some(Self {
            scenario_id: key.scenario_id?.into(),
            mode: key.mode?.into(),
            model: key.model?.into(),
            iteration: key.iteration?,
            success: false,
            outcome: None,
        })
    }
}

#[derive(Default)]
struct Key<'a> {
    scenario_id: Option<&'a str>,
    mode: Option<&'a str>,
    model: Option<&'a str>,
    iteration: Option<i64>,
}

impl Key<'_> {
    fn is_whole(&self) -> bool {
        let names = [self.scenario_id, self.mode, self.model];
        self.iteration.is_some() && names.iter().all(Option::is_some)
    }
}

impl<'de> Visitor<'de> for &mut Key<'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(name) = items.next_key::<&str>()? {
            match name {
                "scenarioId" => self.scenario_id = Some(items.next_value()?),
                "mode" => self.mode = Some(items.next_value()?),
                "model" => self.model = Some(items.next_value()?),
                "iteration" => self.iteration = Some(items.next_value()?),
                _ => drop(items.next_value::<IgnoredAny>()?),
            }
            if self.is_whole() {
                break;
            }
        }
        Ok(())
    }
}

impl State {
    /// None when no block is complete, or nothing is compared.
    fn of(source: &Source, stopped: &[StoppedRecord]) -> Result<Option<Self>> {
        let Some(planned) = source.planned.as_ref().filter(|plan| plan.arms.len() > 1) else {
            return Ok(None);
        };
        let size = std::fs::metadata(&source.rows).map_or(0, |file| file.len());
        let subjects = (planned.scenarios.len() as u64 + planned.tasks).max(1);
        // A declared rule needs the rounds themselves, however many there are.
        if size > LARGEST_READ && source.until().is_none() {
            return Ok(Some(Self {
                id: format!("bytes-{size}"),
                blocks: subjects * planned.repetitions,
                rounds: planned.repetitions as f64,
                passed: BTreeMap::new(),
            }));
        }
        let mut passed: BTreeMap<(String, i64), BTreeMap<Arm, Option<bool>>> = BTreeMap::new();
        if let Some(reader) = source.open()? {
            assize_report::read_rows(reader, |bytes| {
                // Only declared rules look at outcomes. A row that may be cut off is read whole.
                let needs_all = source.until().is_some() || bytes.may_be_torn;
                let key = (!needs_all).then(|| Trial::key_of(bytes.json)).flatten();
                let trial = key.or_else(|| assize_report::parse_json(bytes.json).ok());
                if let Some(trial) = trial {
                    let arm = Arm {
                        mode: trial.mode.into_owned(),
                        model: trial.model.into_owned(),
                    };
                    let block = (trial.scenario_id.into_owned(), trial.iteration);
                    let success = (trial.outcome != Some(Outcome::Void)).then_some(trial.success);
                    passed.entry(block).or_default().insert(arm, success);
                }
                Ok(())
            })?;
        }
        let is_stopped = |arm: &assize_report::PlannedArm, iteration: i64| {
            stopped.iter().any(|stop| {
                stop.mode == arm.mode
                    && stop.model == arm.model
                    && i64::from(stop.after) <= iteration
            })
        };
        passed.retain(|(_, iteration), arms| {
            planned.arms.iter().all(|arm| {
                let arm_of = Arm {
                    mode: arm.mode.clone(),
                    model: arm.model.clone(),
                };
                arms.contains_key(&arm_of) || is_stopped(arm, *iteration)
            })
        });
        if passed.is_empty() {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        for (scenario, iteration) in passed.keys() {
            hasher.update(scenario.as_bytes());
            hasher.update(&iteration.to_le_bytes());
        }
        Ok(Some(Self {
            id: hasher.finalize().to_hex()[..16].to_owned(),
            blocks: passed.len() as u64,
            rounds: passed.len() as f64 / subjects as f64,
            passed,
        }))
    }

    /// Success of A against B round by round, over rounds that all scenarios have.
    fn rounds_of(&self, a: &Arm, b: &Arm) -> Vec<f64> {
        let mut rounds: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        let mut scenarios: BTreeSet<&str> = BTreeSet::new();
        for ((scenario, iteration), arms) in &self.passed {
            if let (Some(a), Some(b)) = (arms.get(a), arms.get(b)) {
                scenarios.insert(scenario);
                // A pair that could not be judged speaks for neither mode.
                let difference = match (a, b) {
                    (Some(a), Some(b)) => f64::from(u8::from(*a)) - f64::from(u8::from(*b)),
                    _ => 0.0,
                };
                rounds.entry(*iteration).or_default().push(difference);
            }
        }
        let complete = rounds
            .into_values()
            .filter(|round| round.len() == scenarios.len());
        complete
            .map(|round| (round.iter().sum::<f64>() / round.len() as f64 + 1.0) / 2.0)
            .collect()
    }
}

/// A rule that was declared, with everything filled in.
#[derive(Debug, Clone)]
pub(crate) struct Until {
    method: StoppingMethod,
    /// Complete rounds at which the run is looked at.
    pub(crate) rounds: Vec<u32>,
    most: u32,
    futility: bool,
    metrics: Option<Vec<String>>,
}

impl Until {
    /// The rule of a suite with so many repetitions at most. None where nothing was declared.
    pub(crate) fn of(spec: Option<&UntilSpec>, most: u32) -> Option<Self> {
        let spec = spec?;
        let is_wanted = spec.decided.unwrap_or(true) || spec.metrics.is_some();
        if !is_wanted {
            return None;
        }
        let method = spec.method.unwrap_or(StoppingMethod::ObrienFleming);
        let looks = match (spec.looks, method) {
            (Some(looks), _) => looks,
            (None, StoppingMethod::ObrienFleming) => LOOKS,
            (None, StoppingMethod::Anytime) => most,
        };
        let looks = looks.clamp(1, most);
        let mut rounds: Vec<u32> = (1..=looks)
            .map(|look| (u64::from(look) * u64::from(most)).div_ceil(u64::from(looks)) as u32)
            .collect();
        rounds.dedup();
        Some(Self {
            method,
            rounds,
            most,
            futility: spec.futility.unwrap_or(false),
            metrics: spec.metrics.clone(),
        })
    }

    /// The repetitions up to a look, which shards run together. Absent after the last look.
    pub(crate) fn round(&self, number: u32, stopped: Vec<Arm>) -> Option<Round> {
        let place = number.checked_sub(1)? as usize;
        let before = place.checked_sub(1).map(|before| self.rounds[before]);
        Some(Round {
            number,
            from: before.unwrap_or(0),
            to: *self.rounds.get(place)?,
            stopped,
        })
    }
}

/// The earlier looks at a run, and this one.
struct Found {
    records: Vec<LookRecord>,
    state: State,
    number: u32,
    is_new: bool,
}

impl Found {
    fn of(source: &Source) -> Result<Option<Self>> {
        let Some(run) = &source.run else {
            return Ok(None);
        };
        let records = read_looks(run);
        let Some(state) = State::of(source, &stopped_in(&records))? else {
            return Ok(None);
        };
        let mut states: Vec<&str> = Vec::new();
        for record in &records {
            if !states.contains(&record.state.as_str()) {
                states.push(&record.state);
            }
        }
        let known = states.iter().position(|known| *known == state.id);
        let number = known.unwrap_or(states.len()) as u32 + 1;
        Ok(Some(Self {
            is_new: known.is_none(),
            number,
            state,
            records,
        }))
    }

    /// The rule by which verdicts at this look pay for all of them.
    fn reading(&self, source: &Source) -> LooksReading {
        let until = Until::of(source.until(), source.repetitions());
        let stopping = match &until {
            None => Stopping::Undeclared { looks: self.number },
            Some(until) => match until.method {
                StoppingMethod::ObrienFleming => Stopping::GroupSequential {
                    earlier_rounds: self.earlier_rounds(),
                    max_rounds: f64::from(until.most),
                },
                StoppingMethod::Anytime => Stopping::Anytime {
                    success: pairs(source, &self.state),
                },
            },
        };
        let decided = self.records.iter().flat_map(|record| &record.decided);
        let decided = decided.map(|found| Decided {
            mode_a: found.mode_a.clone(),
            mode_b: found.mode_b.clone(),
            metric: found.metric.clone(),
            p: found.p,
        });
        LooksReading {
            looks: Looks {
                stopping,
                decided: decided.collect(),
            },
            number: self.number,
            rounds: self.state.rounds,
            declared: until.map(|until| DeclaredRule {
                method: until.method,
                looks: until.rounds.len() as u32,
            }),
        }
    }

    /// Rounds at earlier looks, each state once.
    fn earlier_rounds(&self) -> Vec<f64> {
        let mut seen: Vec<&str> = vec![&self.state.id];
        let mut rounds = Vec::new();
        for record in &self.records {
            if !seen.contains(&record.state.as_str()) {
                seen.push(&record.state);
                rounds.push(record.rounds);
            }
        }
        rounds.sort_by(f64::total_cmp);
        rounds
    }

    fn record(&self, command: &str) -> LookRecord {
        LookRecord {
            at: Timestamp::now(),
            command: command.to_owned(),
            state: self.state.id.clone(),
            blocks: self.state.blocks,
            rounds: self.state.rounds,
            declared: false,
            decided: Vec::new(),
            stopped: Vec::new(),
        }
    }
}

/// The arms that looks have stopped.
pub(crate) fn stopped_in(records: &[LookRecord]) -> Vec<StoppedRecord> {
    let all = records.iter().flat_map(|record| &record.stopped);
    all.cloned().collect()
}

/// Counts this look at a run, and returns how its verdicts pay. None where nothing is compared or the rows lie in no run.
pub(crate) fn count(source: &Source, command: &str) -> Result<Option<LooksReading>> {
    let Some(found) = Found::of(source)? else {
        return Ok(None);
    };
    if let (true, Some(run)) = (found.is_new, &source.run)
        && let Err(error) = append_look(run, &found.record(command))
    {
        warn(&format!(
            "this look at the run cannot be counted: {error}; later looks may claim too much"
        ));
    }
    Ok(Some(found.reading(source)))
}

/// Rounds of every pair of modes, named as reports name them.
fn pairs(source: &Source, state: &State) -> Vec<PairRounds> {
    let Some(planned) = &source.planned else {
        return Vec::new();
    };
    let arms: Vec<Arm> = planned
        .arms
        .iter()
        .map(|arm| Arm {
            mode: arm.mode.clone(),
            model: arm.model.clone(),
        })
        .collect();
    let mut pairs = Vec::new();
    for a in &arms {
        for b in arms.iter().filter(|b| *b != a && b.model == a.model) {
            let rounds = state.rounds_of(a, b);
            for [mode_a, mode_b] in [[a.mode.clone(), b.mode.clone()], [label(a), label(b)]] {
                pairs.push(PairRounds {
                    mode_a,
                    mode_b,
                    rounds: rounds.clone(),
                });
            }
        }
    }
    pairs
}

/// The label of an arm in reports where there are several models.
fn label(arm: &Arm) -> String {
    format!("{} ({})", arm.mode, arm.model)
}

/// Lets a run be looked at as its suite declares. A rule can only be declared before the first trial.
pub(crate) fn steer(profile: &mut ProfileSuite, target: &RunTarget) -> Result<()> {
    let declared = profile.reading.until.clone();
    if let RunTarget::Resume(run) | RunTarget::ResumeVoid(run) = target {
        let recorded = run.manifest().reading()?.until;
        if recorded != declared {
            return Err(UsageError {
                message: format!(
                    "`execution.until` of run {} was declared before its first trial and cannot change",
                    run.id()
                ),
                hint: Some(match recorded {
                    Some(_) => "restore it in the suite, or start a new run".to_owned(),
                    None => "start a new run, which will follow it".to_owned(),
                }),
            }
            .into());
        }
    }
    let Some(until) = Until::of(declared.as_ref(), profile.execution.repetitions) else {
        return Ok(());
    };
    // A shard runs one round; `assize merge` looks at all of them together.
    let is_resumed_shard = match target {
        RunTarget::Resume(run) | RunTarget::ResumeVoid(run) => run.manifest().shard.is_some(),
        RunTarget::New(_) => false,
    };
    if is_resumed_shard || profile.execution.shard.is_some() {
        return Ok(());
    }
    let arms = profile.plan()?.arms;
    profile.steering = Some(Arc::new(UntilSteering::new(until, arms, "run")));
    Ok(())
}

/// Looks at a run at declared rounds and stops what is decided.
pub(crate) struct UntilSteering {
    until: Until,
    arms: Vec<Arm>,
    /// The command that looks.
    command: &'static str,
}

impl UntilSteering {
    pub(crate) fn new(until: Until, arms: Vec<Arm>, command: &'static str) -> Self {
        Self {
            until,
            arms,
            command,
        }
    }
}

impl Steering for UntilSteering {
    fn looks(&self) -> Vec<u32> {
        self.until.rounds.clone()
    }

    fn look(&self, directory: &Path, rounds: u32) -> Look {
        self.decide(directory, rounds).unwrap_or_else(|error| {
            // Without a look the run goes on to its end, which costs more but claims nothing.
            Look {
                stopped: Vec::new(),
                text: Some(format!("look after {rounds} repetitions failed: {error:#}")),
            }
        })
    }
}

impl UntilSteering {
    /// Looks at the run unless that was done before, and keeps what was decided.
    pub(crate) fn decide(&self, directory: &Path, rounds: u32) -> Result<Look> {
        let source = Source::of_run(&RunDirectory::open(directory)?)?;
        let earlier = read_looks(directory);
        let is_this = |record: &&LookRecord| {
            record.declared && (record.rounds - f64::from(rounds)).abs() < 1e-9
        };
        if earlier.iter().any(|record| is_this(&record)) {
            return Ok(Look {
                stopped: stopped_in(&earlier).iter().map(stopped_arm).collect(),
                text: None,
            });
        }
        let Some(found) = Found::of(&source)? else {
            return Ok(Look::default());
        };
        let reading = found.reading(&source);
        let mut analysis = source.analysis.clone();
        analysis.looks = Some(reading.clone());
        // Verdicts rest on closed forms: resampling makes numbers that no look shows.
        analysis.resamples = 1;
        let summary = verdict::summarize(std::slice::from_ref(&source), &analysis)?;
        let already = stopped_in(&earlier);
        let judged = self.judge(&summary, rounds, &already);
        let record = LookRecord {
            declared: true,
            rounds: f64::from(rounds),
            decided: judged.decided.clone(),
            stopped: judged.stopped.clone(),
            ..found.record(self.command)
        };
        let kept = append_look(directory, &record);
        let number = reading.number;
        let mut text = format!(
            "look {number} of {} after {rounds} repetitions: {}",
            self.until.rounds.len(),
            judged.words.join("; ")
        );
        if let Err(error) = kept {
            text.push_str(&format!(" (not counted: {error})"));
        }
        let stopped = already.iter().chain(&judged.stopped);
        Ok(Look {
            stopped: stopped.map(stopped_arm).collect(),
            text: Some(text),
        })
    }

    /// Decides which comparisons are decided now, which cannot be any more, and which arms are therefore done.
    fn judge(&self, summary: &Summary, rounds: u32, already: &[StoppedRecord]) -> Judged {
        if !summary.effects.is_empty() {
            return self.judge_effects(summary, rounds);
        }
        let mut judged = Judged::default();
        let alpha = 1.0 - summary.confidence.value();
        let wanted = |metric: &str| match &self.until.metrics {
            Some(metrics) => metrics.iter().any(|name| name == metric),
            None => summary.primary.iter().any(|name| name == metric),
        };
        let is_stopped = |arm: &Arm| {
            let mut all = already.iter();
            all.any(|stop| stop.mode == arm.mode && stop.model == arm.model)
        };
        let mut open_baselines: BTreeSet<usize> = BTreeSet::new();
        let mut compared: BTreeSet<usize> = BTreeSet::new();
        for pair in summary.pairs() {
            let (Some(a), Some(b)) = (self.arm(pair[0].mode_a()), self.arm(pair[0].mode_b()))
            else {
                continue;
            };
            compared.insert(b);
            if is_stopped(&self.arms[a]) {
                continue;
            }
            let questions: Vec<&Comparison> =
                pair.iter().filter(|found| wanted(found.metric())).collect();
            // A metric that no trial has reported yet is open.
            let mut open = u32::from(questions.is_empty());
            let mut reason = "decided";
            for question in questions {
                let (answer, words) = self.answer(question, alpha);
                match answer {
                    Answer::Decided => judged.decided.push(decided(question)),
                    Answer::Futile => reason = "futile",
                    Answer::Open => open += 1,
                }
                let (mode, label) = (question.mode_a(), question.definition().label());
                judged.words.push(format!("{mode} {label} {words}"));
            }
            match open {
                0 => judged.stopped.push(self.stop(a, rounds, reason)),
                _ => drop(open_baselines.insert(b)),
            }
        }
        // The baseline continues as long as any mode that is compared with it.
        for baseline in compared.difference(&open_baselines) {
            if !is_stopped(&self.arms[*baseline]) {
                judged.stopped.push(self.stop(*baseline, rounds, "decided"));
            }
        }
        judged
    }

    /// The answer to a question at this look, and in words.
    fn answer(&self, question: &Comparison, alpha: f64) -> (Answer, String) {
        match question.verdict() {
            verdict @ (Verdict::Better | Verdict::Worse) => {
                let word = assize_report::verdict_word(verdict);
                (Answer::Decided, format!("decided ({word})"))
            }
            // No trial has reported the metric yet; later ones may.
            Verdict::NotComparable => (Answer::Open, "cannot be compared yet".to_owned()),
            _ if self.until.futility && is_futile(question, self.until.most, alpha) => {
                (Answer::Futile, "can hardly be decided any more".to_owned())
            }
            _ => {
                let p = p_value(adjusted(question));
                let limit = p_value(Some(alpha));
                let limit = limit.trim_start_matches("p ");
                (Answer::Open, format!("open ({p} of {limit})"))
            }
        }
    }

    /// Effects need all combinations, so that all stop together.
    fn judge_effects(&self, summary: &Summary, rounds: u32) -> Judged {
        let mut judged = Judged::default();
        let is_wanted = |metric: &String| match &self.until.metrics {
            Some(metrics) => metrics.contains(metric),
            None => true,
        };
        let declared = summary.effects.iter();
        let declared = declared.filter(|effect| !effect.exploratory && is_wanted(&effect.metric));
        let mut open = 0;
        for effect in declared {
            let is_open = matches!(
                effect.verdict,
                Verdict::Inconclusive | Verdict::NotComparable
            );
            open += u32::from(is_open);
            judged.words.push(format!(
                "{} {} {}",
                effect.effect,
                effect.label,
                if is_open { "open" } else { "decided" }
            ));
        }
        if open == 0 {
            let all = 0..self.arms.len();
            judged.stopped = all.map(|arm| self.stop(arm, rounds, "decided")).collect();
        }
        judged
    }

    fn arm(&self, name: &str) -> Option<usize> {
        let is_it = |arm: &Arm| arm.mode == name || label(arm) == name;
        self.arms.iter().position(is_it)
    }

    fn stop(&self, arm: usize, rounds: u32, reason: &str) -> StoppedRecord {
        StoppedRecord {
            mode: self.arms[arm].mode.clone(),
            model: self.arms[arm].model.clone(),
            after: rounds,
            reason: reason.to_owned(),
        }
    }
}

enum Answer {
    Decided,
    Futile,
    Open,
}

#[derive(Default)]
struct Judged {
    decided: Vec<DecidedRecord>,
    stopped: Vec<StoppedRecord>,
    words: Vec<String>,
}

fn stopped_arm(record: &StoppedRecord) -> StoppedArm {
    StoppedArm {
        arm: Arm {
            mode: record.mode.clone(),
            model: record.model.clone(),
        },
        after: record.after,
    }
}

fn adjusted(comparison: &Comparison) -> Option<f64> {
    match comparison {
        Comparison::Success(found) => found.p_adjusted,
        Comparison::Metric(found) => found.p_adjusted,
    }
}

fn decided(comparison: &Comparison) -> DecidedRecord {
    let p = match comparison {
        Comparison::Success(found) => found.p_look.or(found.p_value),
        Comparison::Metric(found) => found.p_look,
    };
    DecidedRecord {
        mode_a: comparison.mode_a().to_owned(),
        mode_b: comparison.mode_b().to_owned(),
        metric: comparison.metric().to_owned(),
        p: p.unwrap_or(1.0),
        verdict: assize_report::verdict_word(comparison.verdict()).to_owned(),
    }
}

/// The chance of deciding at the planned end is small, even if the target effect is there.
fn is_futile(comparison: &Comparison, most: u32, alpha: f64) -> bool {
    let (p, delta, facts, family) = match comparison {
        Comparison::Success(found) => (
            found.p_value,
            TARGET,
            LookFacts {
                scope: found.scope,
                scenarios: found.scenarios as u64,
                rounds: found.repetitions as f64,
                components: found.components,
            },
            found.family_size,
        ),
        Comparison::Metric(found) => (
            found.paired.as_ref().and_then(|paired| paired.p_value),
            found.plan_basis.map_or(0.0, |basis| basis.effect(TARGET)),
            LookFacts {
                scope: found.scope,
                scenarios: found.scenarios as u64,
                rounds: found.repetitions as f64,
                components: found.plan_basis.map(|basis| basis.components),
            },
            found.family_size,
        ),
    };
    let level = Level::new(alpha / family.max(1) as f64);
    match (p, level) {
        (Some(p), Ok(level)) => {
            conditional_power(p, delta, &facts, f64::from(most), level) < FUTILE
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::Trial;

    fn check(json: &str, is_read: bool) {
        let found = Trial::key_of(json.as_bytes());
        assert_eq!(found.is_some(), is_read, "{json}");
        if let Some(found) = found {
            let whole: Trial<'_> = serde_json::from_str(json).unwrap();
            let key = |trial: &Trial<'_>| {
                let names = [&trial.scenario_id, &trial.mode, &trial.model];
                (names.map(ToString::to_string), trial.iteration)
            };
            assert_eq!(key(&found), key(&whole));
        }
    }

    #[test]
    fn the_beginning_of_a_row_gives_its_key() {
        let row = r#"{"runId":"r","scenarioId":"s","mode":"m","model":"x","iteration":3,"tokens":{},"success":true}"#;
        check(row, true);
        let turned = r#"{"success":true,"iteration":-1,"list":[1,{}],"mode":"m","model":"x","scenarioId":"s"}"#;
        check(turned, true);
        // A row of another form is read whole.
        check(
            r#"{"scenarioId":"a\"b","mode":"m","model":"x","iteration":3}"#,
            false,
        );
        check(r#"{"scenarioId":"s","mode":"m","iteration":3}"#, false);
        check("[]", false);
    }
}
