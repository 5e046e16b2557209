//! Progress of a run: a live line per mode on a terminal, an occasional line in a pipe, JSON lines for machines.

use super::{one_line, plain, print_json, say, warn};
use assize_contracts::Outcome;
use assize_engine::{Event, Listener, TrialBrief};
use assize_report::{Summary, duration, money, quantity};
use console::style;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// In a pipe, no more than one line in this time.
const CALM: Duration = Duration::from_secs(10);

/// On a terminal, no more than one redraw in this time.
const REDRAW: Duration = Duration::from_millis(100);

/// A call that was not mentioned for this long is over.
const WAITING_IS_OVER: Duration = Duration::from_secs(11);

/// Shows progress to people.
pub(crate) struct Progress {
    state: Mutex<State>,
}

struct State {
    live: Option<Live>,
    planned: u64,
    done_before: u64,
    done: u64,
    modes: Vec<(String, Counts)>,
    running: BTreeMap<Option<u64>, String>,
    /// The call that is waited for, and when that was last heard.
    waiting: Option<(String, Instant)>,
    tokens: Spent,
    cost: Spent,
    started: Instant,
    shown: Instant,
}

/// A sum in which some parts may be unknown.
#[derive(Default, Clone, Copy)]
struct Spent {
    known: f64,
    has_known: bool,
    has_unknown: bool,
}

impl Spent {
    /// Adds the amount of a trial, or the part of it that is known.
    fn add(&mut self, amount: Option<f64>, at_least: Option<f64>) {
        self.has_unknown |= amount.is_none();
        if let Some(known) = amount.or(at_least) {
            self.known += known;
            self.has_known = true;
        }
    }

    fn words(self, show: impl Fn(f64) -> String, name: &str) -> String {
        match (self.has_known, self.has_unknown) {
            (true, false) => show(self.known),
            (true, true) => format!("at least {}", show(self.known)),
            (false, _) => format!("{name} unknown"),
        }
    }
}

#[derive(Default, Clone, Copy)]
struct Counts {
    passed: u64,
    failed: u64,
    void: u64,
}

struct Live {
    bars: MultiProgress,
    total: ProgressBar,
    modes: ProgressBar,
    running: ProgressBar,
}

impl Progress {
    /// `modes` in the order in which they are shown.
    pub(crate) fn new(modes: Vec<String>) -> Self {
        let is_terminal = console::Term::stderr().features().is_attended();
        let state = State {
            live: is_terminal.then(Live::new),
            planned: 0,
            done_before: 0,
            done: 0,
            modes: modes
                .into_iter()
                .map(|mode| (mode, Counts::default()))
                .collect(),
            running: BTreeMap::new(),
            waiting: None,
            tokens: Spent::default(),
            cost: Spent::default(),
            started: Instant::now(),
            shown: Instant::now(),
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// Counts trials that were done before, so that the counts of a resumed run are those of the whole run.
    pub(crate) fn with_earlier(self, rows: impl IntoIterator<Item = (String, Outcome)>) -> Self {
        for (mode, outcome) in rows {
            self.state().count_outcome(&mode, outcome);
        }
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Progress {
    fn on_event(&self, event: &Event<'_>) {
        let mut state = self.state();
        match event {
            Event::RunStarted {
                run_id,
                cells,
                done,
                ..
            } => {
                state.planned = *cells;
                state.done_before = *done;
                let already = match done {
                    0 => String::new(),
                    done => format!(", {done} already done"),
                };
                let trials = if *cells == 1 { "trial" } else { "trials" };
                state.line(&format!("run {run_id}: {cells} {trials}{already}"));
            }
            Event::CellStarted {
                position,
                scenario_id,
                mode,
                iteration,
                ..
            } => {
                let what = format!("{mode} · {scenario_id} #{iteration}");
                state.running.insert(*position, what);
            }
            Event::TrialFinished { trial, .. } => {
                state.running.remove(&trial.position);
                state.count(trial);
            }
            Event::Waiting { call, seconds } => {
                state.waiting = Some((format!("{call}: {seconds} s"), Instant::now()));
                if state.live.is_none() {
                    state.line(&format!("{call}: {seconds} s"));
                    return;
                }
            }
            Event::WarmupFinished => {
                state.running.remove(&None);
            }
            Event::TrialCancelled { position } => {
                state.running.remove(position);
            }
            Event::Looked { text, .. } => state.line(text),
            Event::Caution(caution) => {
                let text = caution.text.clone();
                state.aside(|| warn(&text));
            }
            Event::RunFinished { .. } => state.finish(),
            _ => {}
        }
        state.show();
    }
}

impl State {
    fn count(&mut self, trial: &TrialBrief) {
        self.done += 1;
        let tokens = |tokens: u64| tokens as f64;
        self.tokens.add(
            trial.tokens_total.map(tokens),
            trial.tokens_at_least.map(tokens),
        );
        self.cost.add(
            trial.cost_usd.map(|cost| cost.value()),
            trial.cost_at_least_usd.map(|cost| cost.value()),
        );
        self.count_outcome(&trial.mode, trial.outcome);
    }

    fn count_outcome(&mut self, mode: &str, outcome: Outcome) {
        if let Some((_, counts)) = self.modes.iter_mut().find(|(known, _)| known == mode) {
            match outcome {
                Outcome::Pass => counts.passed += 1,
                Outcome::Void => counts.void += 1,
                Outcome::Fail => counts.failed += 1,
            }
        }
    }

    fn show(&mut self) {
        let pause = if self.live.is_some() { REDRAW } else { CALM };
        if self.shown.elapsed() < pause {
            return;
        }
        self.shown = Instant::now();
        match &self.live {
            Some(live) => live.draw(self),
            None => say(self.calm_line()),
        }
    }

    /// Done, counts, how long it may still take, what was used.
    fn calm_line(&self) -> String {
        let mut parts = vec![format!(
            "{}/{} trials",
            self.done_before + self.done,
            self.planned
        )];
        parts.extend(
            self.modes
                .iter()
                .map(|(mode, counts)| format!("{}: {}", plain(mode), counts.words())),
        );
        parts.extend(self.eta().map(|left| format!("about {left} left")));
        parts.extend(self.spent());
        parts.join(" · ")
    }

    /// Tokens and cost of the trials so far. Nothing before the first one.
    fn spent(&self) -> Option<String> {
        let tokens = self
            .tokens
            .words(|sum| format!("{} tokens", quantity(sum)), "tokens");
        let cost = self.cost.words(money, "cost");
        (self.done > 0).then(|| format!("{tokens} · {cost}"))
    }

    fn eta(&self) -> Option<String> {
        let left = self
            .planned
            .checked_sub(self.done_before + self.done)
            .filter(|left| *left > 0)?;
        let per_trial = self.started.elapsed().as_secs_f64() / self.done.max(1) as f64;
        (self.done > 0).then(|| duration(per_trial * left as f64 * 1e3))
    }

    fn line(&self, text: &str) {
        self.aside(|| say(plain(text)));
    }

    /// Prints without tearing the live lines.
    fn aside(&self, print: impl FnOnce()) {
        match &self.live {
            Some(live) => live.bars.suspend(print),
            None => print(),
        }
    }

    fn finish(&mut self) {
        if let Some(live) = self.live.take() {
            let _ = live.bars.clear();
        }
        self.shown = Instant::now();
    }
}

impl Counts {
    fn words(self) -> String {
        let mut words = format!("{} passed", self.passed);
        if self.failed > 0 {
            words.push_str(&format!(", {} failed", self.failed));
        }
        if self.void > 0 {
            words.push_str(&format!(", {} void", self.void));
        }
        words
    }

    fn colored(self) -> String {
        let mut words = style(format!("{} passed", self.passed))
            .for_stderr()
            .green()
            .to_string();
        if self.failed > 0 {
            words.push_str(&format!(
                ", {}",
                style(format!("{} failed", self.failed)).for_stderr().red()
            ));
        }
        if self.void > 0 {
            words.push_str(&format!(
                ", {}",
                style(format!("{} void", self.void)).for_stderr().yellow()
            ));
        }
        words
    }
}

impl Live {
    fn new() -> Self {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let bar = |template: &str| {
            let bar = bars.add(ProgressBar::new(0));
            bar.set_style(
                ProgressStyle::with_template(template)
                    .expect("a fixed template")
                    .progress_chars("━╸─"),
            );
            bar
        };
        let total = bar("{bar:30.cyan/dim} {pos}/{len} {msg}");
        let modes = bar("{msg}");
        let running = bar("{msg:.dim}");
        Self {
            bars,
            total,
            modes,
            running,
        }
    }

    fn draw(&self, state: &State) {
        self.total.set_length(state.planned);
        self.total.set_position(state.done_before + state.done);
        let left = state
            .eta()
            .map(|left| format!(" · about {left} left"))
            .unwrap_or_default();
        let spent = state
            .spent()
            .map_or_else(String::new, |spent| format!("· {spent}"));
        self.total.set_message(format!("{spent}{left}"));
        let width = state
            .modes
            .iter()
            .map(|(mode, _)| mode.chars().count())
            .max()
            .unwrap_or(0);
        let lines: Vec<String> = state
            .modes
            .iter()
            .map(|(mode, counts)| format!("  {:width$}  {}", plain(mode), counts.colored()))
            .collect();
        self.modes.set_message(lines.join("\n"));
        let running: Vec<&str> = state.running.values().take(3).map(String::as_str).collect();
        let more = match state.running.len().saturating_sub(running.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let waiting = state.waiting.as_ref();
        let waiting = waiting.filter(|(_, heard)| heard.elapsed() < WAITING_IS_OVER);
        let waiting = waiting.map(|(call, _)| format!(" · {}", plain(call)));
        let waiting = waiting.unwrap_or_default();
        self.running.set_message(one_line(
            &format!("running: {}{more}{waiting}", running.join(", ")),
            100,
        ));
    }
}

/// Writes every event as a JSON object on a line of its own.
#[derive(Default)]
pub(crate) struct JsonLines {
    /// The last event, held back until gates and cautions are printed.
    finished: Mutex<Option<String>>,
}

impl JsonLines {
    /// Prints the conclusions from the trials: gates, and reasons to be careful.
    pub(crate) fn conclude(summary: &Summary) {
        for gate in &summary.gates {
            print_json(json!({"event": "gate", "result": gate}).to_string());
        }
        for caution in &summary.cautions {
            let event = Event::Caution(caution);
            print_json(serde_json::to_string(&event).expect("events are plain data"));
        }
    }

    /// Nothing comes after this.
    pub(crate) fn finish(&self) {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.take().into_iter().for_each(print_json);
    }
}

impl Listener for JsonLines {
    fn on_event(&self, event: &Event<'_>) {
        let line = || serde_json::to_string(event).expect("events are plain data");
        match event {
            Event::RunFinished { .. } => {
                let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
                *finished = Some(line());
            }
            _ => print_json(line()),
        }
    }
}
