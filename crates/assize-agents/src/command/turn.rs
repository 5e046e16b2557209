//! One prompt: what the program wrote, how it ended, and what that means.

use super::invocation::Invocation;
use super::settings::{CommandSettings, SuccessExit};
use crate::output::{LlmFailure, Story};
use assize_contracts::{
    CompletionReason, EventPlace, Millis, ProgramUse, PromptMetrics, PromptResult, ProviderError,
    Timestamp, TimingBreakdown, TimingSegment, TokenBreakdown, TraceEvent,
};
use assize_process::{Captured, Chunk, Exit, LineSplitter, Running, Status, Stopped, Stream};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The length of stderr that explains a failure.
const LAST_WORDS: usize = 500;

/// A program under way.
pub(super) struct Turn {
    settings: CommandSettings,
    events_file: Option<EventsFile>,
    started_ms: i64,
    /// The program's time limit.
    limit: Duration,
    first_output: Option<Duration>,
    lines: Option<LineSplitter>,
    story: Story,
    stdout: Captured,
    stderr: Captured,
}

/// A turn that is over.
pub(super) struct Ended {
    pub(super) story: Story,
    pub(super) result: Result<PromptResult, ProviderError>,
}

/// A file that the program appends events to.
pub(super) struct EventsFile {
    path: PathBuf,
    /// Earlier content is not part of this turn.
    start: u64,
}

impl EventsFile {
    pub(super) fn new(path: PathBuf) -> Self {
        let start = std::fs::metadata(&path).map_or(0, |file| file.len());
        Self { path, start }
    }

    fn read(&self, limit: u64) -> std::io::Result<Vec<u8>> {
        // Opening a pipe would wait for a writer.
        if !std::fs::metadata(&self.path)?.is_file() {
            return Err(std::io::Error::other("it is not a regular file"));
        }
        let mut file = File::open(&self.path)?;
        // A program may also begin its file anew.
        if file.metadata()?.len() >= self.start {
            file.seek(SeekFrom::Start(self.start))?;
        }
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Turn {
    pub(super) fn new(
        invocation: &Invocation,
        events_file: Option<EventsFile>,
        started: SystemTime,
        limit: Duration,
    ) -> Self {
        let settings = invocation.settings.clone();
        let since_1970 = started.duration_since(UNIX_EPOCH).unwrap_or_default();
        let lines = settings
            .has_events_on_stdout()
            .then(|| LineSplitter::new(settings.max_output as usize));
        Self {
            story: Story::new(settings.output),
            settings,
            events_file,
            started_ms: since_1970.as_millis() as i64,
            limit,
            first_output: None,
            lines,
            stdout: Captured::default(),
            stderr: Captured::default(),
        }
    }

    /// The program continues a session that took so many tokens and answers before.
    pub(super) fn after(mut self, tokens: Option<TokenBreakdown>, answers: u64) -> Self {
        self.story.earlier = tokens;
        self.story.answers = answers;
        self
    }

    /// Takes all output and waits for the end of the program and everything it started.
    pub(super) async fn follow(
        mut self,
        mut running: Running,
    ) -> Result<Ended, assize_process::Error> {
        while let Some(chunk) = running.next().await? {
            self.take(chunk);
        }
        let exit = running.wait().await?;
        Ok(self.conclude(&exit))
    }

    fn take(&mut self, chunk: Chunk) {
        match (chunk.stream, &mut self.lines) {
            (Stream::Stderr, _) => self.stderr.push(chunk),
            (Stream::Stdout, lines) => {
                self.first_output.get_or_insert(chunk.at);
                match lines {
                    Some(lines) => {
                        for line in lines.push(&chunk) {
                            let at = self.started_ms + line.at.as_millis() as i64;
                            self.story.take(&line.text(), Some(at));
                        }
                    }
                    None => self.stdout.push(chunk),
                }
            }
        }
    }

    fn conclude(mut self, exit: &Exit) -> Ended {
        let ended_ms = self.started_ms + exit.wall.as_millis() as i64;
        if let Some(line) = self.lines.take().and_then(LineSplitter::finish) {
            self.story.take(&line.text(), Some(ended_ms));
        }
        if exit.stopped == Some(Stopped::TimedOut) {
            let limit = i64::try_from(self.limit.as_millis()).unwrap_or(i64::MAX);
            let over = self.started_ms.saturating_add(limit);
            self.story.forget_ends_since(over);
        }
        // The end of a stream may be missing without a later chunk to show it.
        self.stdout.cut = exit.stdout.seen - exit.stdout.kept;
        if self.settings.has_events_on_stdout() && self.stdout.cut > 0 {
            let message = format!(
                "{} bytes of output were cut, and events with them",
                self.stdout.cut
            );
            self.note(message, true, ended_ms);
        }
        self.read_events_file(ended_ms);
        if let Some(complaint) = self.story.complaint() {
            self.note(complaint, true, ended_ms);
        }
        if self.story.answer.is_empty() && !self.settings.has_events_on_stdout() {
            self.answer_with_stdout(ended_ms);
        }
        let failure = self.failure(exit);
        if exit.survivors > 0 {
            let message = format!("{} processes could not be ended", exit.survivors);
            self.note(message, true, ended_ms);
        }
        match &failure {
            // The program has reported it itself.
            Some(_) if self.story.fatal.is_some() => {}
            Some(failure) => self.note(failure.message.clone(), false, ended_ms),
            None if exit.stopped == Some(Stopped::TimedOut) => {
                let message = "the time was over, and the program was ended";
                self.note(message.to_owned(), false, ended_ms);
            }
            None => {}
        }
        let result = self.result(exit);
        Ended {
            story: self.story,
            result: match failure {
                Some(failure) => Err(failure.with_partial(result)),
                None => Ok(result),
            },
        }
    }

    fn read_events_file(&mut self, at: i64) {
        let Some(file) = &self.events_file else {
            return;
        };
        match file.read(self.settings.max_output) {
            Ok(bytes) => {
                for line in String::from_utf8_lossy(&bytes).lines() {
                    self.story.take(line, None);
                }
            }
            Err(error) => {
                let message = format!("no events in `{}`: {error}", file.path().display());
                self.note(message, true, at);
            }
        }
    }

    fn answer_with_stdout(&mut self, at: i64) {
        let text = self.stdout.text().trim_end().to_owned();
        if text.is_empty() {
            return;
        }
        self.story.events.push(Arc::new(TraceEvent::TextOutput {
            content: text.clone(),
            token_count: None,
            context: place(at),
        }));
        self.story.answer = text;
    }

    fn note(&mut self, message: String, recoverable: bool, at: i64) {
        self.story.events.push(Arc::new(TraceEvent::Error {
            message,
            recoverable,
            context: place(at),
        }));
    }

    /// The reason why the turn is no answer. A timeout is none: its result is what was used until then.
    fn failure(&self, exit: &Exit) -> Option<ProviderError> {
        match (exit.stopped, exit.status) {
            (Some(Stopped::TimedOut), _) => None,
            (Some(Stopped::Cancelled), _) => {
                let message = "the program was ended from outside";
                Some(ProviderError::service(message).with_code("program_cancelled"))
            }
            _ if self.story.fatal.is_some() => {
                let message = self.story.fatal.clone().unwrap_or_default();
                Some(ProviderError::agent(message).with_code("agent_error"))
            }
            _ if self.story.llm_failure.is_some() => {
                self.story.llm_failure.as_ref().map(LlmFailure::error)
            }
            _ if self.story.is_at_limit => None,
            (None, Some(Status::Exited(0))) if self.is_without_end() => {
                let message = "the agent ended without saying that it is done";
                Some(ProviderError::agent(message).with_code("no_result"))
            }
            (None, Some(Status::Exited(0))) => None,
            (None, _) if self.settings.success_exit == SuccessExit::Any => None,
            (None, Some(status)) => {
                let code = match status {
                    Status::Exited(code) => format!("exit_{code}"),
                    Status::Signalled(signal) => format!("signal_{signal}"),
                };
                let mut message = format!("the program ended with {status}");
                let words = self.last_words();
                if !words.is_empty() {
                    message.push_str(&format!(": {words}"));
                }
                Some(ProviderError::agent(message).with_code(code))
            }
            (None, None) => Some(ProviderError::agent("the program could not be ended")),
        }
    }

    /// The reason of its end, in its own words: agents write errors to either stream.
    fn last_words(&self) -> String {
        let words = self.stderr.last_words(LAST_WORDS);
        match words.is_empty() {
            true => last(&self.story.answer, LAST_WORDS),
            false => words,
        }
    }

    /// An exit code is no proof: some agents end with 0 whatever happened.
    fn is_without_end(&self) -> bool {
        self.settings.output.reports_end() && !self.story.is_done
    }

    fn result(&self, exit: &Exit) -> PromptResult {
        let segment = |end: Duration| TimingSegment {
            label: "first_output".to_owned(),
            start_ms: Millis::default(),
            end_ms: Millis::from(end),
        };
        let story = &self.story;
        // Only events show the use of tools; without them it is unknown.
        let knows_tools = self.settings.output.has_events();
        PromptResult {
            text: story.answer.clone(),
            metrics: PromptMetrics {
                tokens: story.tokens.unwrap_or_default(),
                timing: TimingBreakdown {
                    wall_ms: Some(Millis::from(exit.wall)),
                    segments: self.first_output.map(segment).into_iter().collect(),
                },
                tool_calls: knows_tools.then(|| story.tool_calls()),
                cost: story.cost,
                program: Some(program_use(exit)),
                ..PromptMetrics::default()
            },
            completion_reason: match exit.stopped {
                Some(Stopped::TimedOut) => CompletionReason::Timeout,
                _ if self.failure(exit).is_some() => CompletionReason::Error,
                _ if self.story.is_at_limit => CompletionReason::ToolLimit,
                _ => CompletionReason::Stop,
            },
        }
    }
}

/// The end of a text.
fn last(text: &str, most: usize) -> String {
    let text = text.trim();
    let skipped = text.chars().count().saturating_sub(most);
    text.chars().skip(skipped).collect()
}

fn program_use(exit: &Exit) -> ProgramUse {
    let (exit_code, signal) = match exit.status {
        Some(Status::Exited(code)) => (Some(code), None),
        Some(Status::Signalled(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    ProgramUse {
        exit_code,
        signal,
        cpu_ms: exit.cpu.map(|cpu| Millis::from(cpu.total())),
        peak_memory_bytes: exit.peak_memory.map(|peak| peak.bytes),
        oom_kills: None,
    }
}

fn place(at: i64) -> Option<Box<EventPlace>> {
    Some(Box::new(EventPlace {
        timestamp: Some(Timestamp::from_unix_ms(at)),
        ..EventPlace::default()
    }))
}
