//! Folded stacks: one line per stack with one number, as `flamegraph.pl`, inferno and speedscope read them.

use crate::session::Session;
use crate::timeline::{CallSpan, Micros, NoTimes, Timeline, ToolSpan};
use assize_contracts::{TokenBreakdown, Usd};
use std::collections::BTreeMap;

/// The number of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Tokens of model calls, by class.
    Tokens,
    /// Milliseconds.
    Time,
    /// Millionths of a US dollar.
    Cost,
}

/// Stacks of one or many sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stacks {
    /// Numbers by stack.
    pub weights: BTreeMap<String, u64>,
    /// Sessions added, without those of which no number is known.
    pub sessions: u64,
    /// Model calls whose number is unknown; they are in no stack.
    pub unknown: u64,
}

impl Stacks {
    /// Adds a session. With turns, every turn is a frame of its own.
    pub fn add(
        &mut self,
        session: &Session,
        weight: Weight,
        has_turns: bool,
    ) -> Result<(), NoTimes> {
        let unknown = self.unknown;
        let has_any = match weight {
            Weight::Time => {
                self.add_times(session, has_turns)?;
                true
            }
            Weight::Tokens | Weight::Cost => self.add_calls(session, weight, has_turns),
        };
        // A mean leaves out a session without a known number.
        let is_unknown = !has_any && self.unknown > unknown;
        self.sessions += u64::from(!is_unknown);
        Ok(())
    }

    /// One line per stack.
    pub fn lines(&self) -> String {
        let present = self.weights.iter().filter(|(_, weight)| **weight > 0);
        present
            .map(|(stack, weight)| format!("{stack} {weight}\n"))
            .collect()
    }

    fn put(&mut self, frames: &[String], weight: u64) {
        let frames: Vec<String> = frames.iter().map(|frame| clean(frame)).collect();
        let sum = self.weights.entry(frames.join(";")).or_default();
        *sum = sum.saturating_add(weight);
    }

    /// True if a number was known.
    fn add_calls(&mut self, session: &Session, weight: Weight, has_turns: bool) -> bool {
        let mut has_any = false;
        if session.trace.model_calls.is_empty() {
            has_any = self.add_totals(session, weight);
        }
        // Frames need no times, only the turn of each call.
        let timeline = Timeline::of(session).ok();
        for (index, call) in session.trace.model_calls.iter().enumerate() {
            if call.is_refused() {
                continue;
            }
            let span = timeline
                .as_ref()
                .and_then(|timeline| timeline.calls.get(index));
            let around = match (timeline.as_ref(), span) {
                (Some(timeline), Some(span)) => {
                    frames_around(session, timeline, (span.agent, span.turn), has_turns)
                }
                _ => vec![session.name()],
            };
            let stack = [around, vec![format!("chat {}", call.model)]].concat();
            let parts = match weight {
                Weight::Cost => call.cost_usd.map(|cost| vec![(None, millionths(cost))]),
                _ => classes(&call.tokens),
            };
            let Some(parts) = parts else {
                self.unknown += 1;
                continue;
            };
            has_any = true;
            for (class, count) in parts {
                let class = class.map(str::to_owned).into_iter();
                self.put(
                    &stack.iter().cloned().chain(class).collect::<Vec<_>>(),
                    count,
                );
            }
        }
        has_any
    }

    /// A session whose model calls were not seen one by one. True if its number is known.
    fn add_totals(&mut self, session: &Session, weight: Weight) -> bool {
        let stack = [session.name(), "all model calls".to_owned()];
        let parts = match weight {
            Weight::Cost => session.cost().map(|cost| vec![(None, millionths(cost))]),
            _ => classes(&session.trace.summary.total_tokens),
        };
        let Some(parts) = parts else {
            self.unknown += 1;
            return false;
        };
        for (class, count) in parts {
            let class = class.map(str::to_owned).into_iter();
            self.put(
                &stack.iter().cloned().chain(class).collect::<Vec<_>>(),
                count,
            );
        }
        true
    }

    fn add_times(&mut self, session: &Session, has_turns: bool) -> Result<(), NoTimes> {
        let timeline = Timeline::of(session)?;
        let mut children: BTreeMap<Vec<String>, Vec<(Micros, Micros)>> = BTreeMap::new();
        let mut own: Vec<(Vec<String>, (Micros, Micros))> = Vec::new();
        let root = vec![session.name()];
        own.push((root.clone(), (timeline.start, timeline.end)));
        let mut place = |parent: Vec<String>, name: String, span: (Micros, Micros)| {
            children.entry(parent.clone()).or_default().push(span);
            own.push(([parent, vec![name]].concat(), span));
        };
        if has_turns && timeline.turns.len() > 1 {
            for turn in &timeline.turns {
                place(
                    root.clone(),
                    format!("turn {}", turn.number),
                    (turn.start, turn.end),
                );
            }
        }
        for CallSpan {
            call,
            agent,
            turn,
            start,
            end,
            ..
        } in &timeline.calls
        {
            let parent = frames_around(session, &timeline, (*agent, *turn), has_turns);
            place(parent, format!("chat {}", call.model), (*start, *end));
        }
        for ToolSpan {
            name,
            agent,
            turn,
            start,
            end,
            ..
        } in &timeline.tools
        {
            let parent = frames_around(session, &timeline, (*agent, *turn), has_turns);
            place(parent, format!("tool:{name}"), (*start, *end));
        }
        // A stack that occurs several times has the children of all of them.
        let mut spans: BTreeMap<Vec<String>, Vec<(Micros, Micros)>> = BTreeMap::new();
        for (stack, span) in own {
            spans.entry(stack).or_default().push(span);
        }
        for (stack, spans) in spans {
            let total: Micros = spans.iter().map(|(start, end)| end - start).sum();
            let inner = children
                .remove(&stack)
                .map_or(0, |inner| covered(inner, &spans));
            let own = (total - inner).max(0);
            self.put(&stack, (own as u64 + 500) / 1000);
        }
        Ok(())
    }
}

/// The time that at least one of the children covers within the spans around them.
fn covered(mut children: Vec<(Micros, Micros)>, spans: &[(Micros, Micros)]) -> Micros {
    children.sort_unstable();
    let mut merged: Vec<(Micros, Micros)> = Vec::new();
    for (start, end) in children {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    let within = |(start, end): &(Micros, Micros)| -> Micros {
        let shared = merged
            .iter()
            .map(|(from, to)| (to.min(end) - from.max(start)).max(0));
        shared.sum()
    };
    spans.iter().map(within).sum()
}

/// The frames around something: the session, its turn, and for a subagent the tool that started it.
fn frames_around(
    session: &Session,
    timeline: &Timeline<'_>,
    (agent, turn): (Option<&str>, Option<usize>),
    has_turns: bool,
) -> Vec<String> {
    let mut frames = Vec::new();
    let (mut agent, mut turn) = (agent, turn);
    // A file may say that subagents started each other.
    let mut levels = timeline.subagents.len();
    while let Some(id) = agent {
        frames.push("subagent".to_owned());
        let Some(tool) = timeline.starter_of(id).filter(|_| levels > 0) else {
            break;
        };
        frames.push(format!("tool:{}", tool.name));
        (agent, turn) = (tool.agent, tool.turn);
        levels -= 1;
    }
    if has_turns
        && timeline.turns.len() > 1
        && let Some(turn) = turn.and_then(|turn| timeline.turns.get(turn))
    {
        frames.push(format!("turn {}", turn.number));
    }
    frames.push(session.name());
    frames.reverse();
    frames
}

/// Tokens by class. None where it is unknown how many there are.
fn classes(tokens: &TokenBreakdown) -> Option<Vec<(Option<&'static str>, u64)>> {
    tokens.total?;
    let classes = [
        ("input", tokens.input),
        ("cache read", tokens.cache_read),
        ("cache write", tokens.cache_write),
        ("output", tokens.output),
        ("reasoning", tokens.reasoning),
    ];
    let known = classes
        .into_iter()
        .filter_map(|(class, count)| Some((Some(class), count?)));
    Some(known.collect())
}

fn millionths(cost: Usd) -> u64 {
    (cost.value() * 1e6).round().clamp(0.0, 1e18) as u64
}

/// Names must hold neither the separator of frames nor a line break.
fn clean(name: &str) -> String {
    let replaced = |c: char| match c {
        ';' => ',',
        c if c.is_control() => ' ',
        c => c,
    };
    let name: String = name.chars().map(replaced).collect();
    match name.trim() {
        "" => "unnamed".to_owned(),
        name => name.to_owned(),
    }
}

/// Both sides of every stack, as `difffolded.pl` writes them: `stack before after`. Each number is the mean per session, so that
/// unequal numbers of sessions do not look like a difference.
pub fn difference(before: &Stacks, after: &Stacks) -> String {
    let mean = |stacks: &Stacks, stack: &str| {
        let sum = stacks.weights.get(stack).copied().unwrap_or(0);
        (sum + stacks.sessions / 2) / stacks.sessions.max(1)
    };
    let names: std::collections::BTreeSet<&String> =
        before.weights.keys().chain(after.weights.keys()).collect();
    let lines = names.into_iter().filter_map(|stack| {
        let (old, new) = (mean(before, stack), mean(after, stack));
        (old + new > 0).then(|| format!("{stack} {old} {new}\n"))
    });
    lines.collect()
}
