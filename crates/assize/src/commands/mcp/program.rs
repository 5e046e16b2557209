//! The program's own commands as child processes, with bounded output.

use assize_process::{Bound, Captured, Command, Exit, LineSplitter, Signal, Stream};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The part of a command's output that an agent receives.
const ANSWER: Bound = Bound {
    head: 48 << 10,
    tail: 8 << 10,
};

/// Longest line of `run --json` that is looked into.
const LONGEST_EVENT: usize = 8 << 20;

/// The time in which a run must end in good order.
const GRACE: Duration = Duration::from_secs(20);

/// A command that has ended.
pub(super) struct Ended {
    pub(super) exit: Exit,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
}

/// Runs a command to its end and keeps the beginning and the end of what it prints.
pub(super) async fn run(
    root: &Path,
    arguments: Vec<OsString>,
    timeout: Duration,
    cancel: &CancellationToken,
) -> Result<Ended, String> {
    let command = command(root, arguments, timeout)?.bound(ANSWER);
    let mut stdout = Captured::default();
    follow(command, cancel, |chunk| stdout.push(chunk))
        .await
        .map(|(exit, stderr)| Ended {
            exit,
            stdout,
            stderr,
        })
}

/// Runs a command and hands every line of its stdout to `line`, which ends the command by returning false.
pub(super) async fn run_by_line(
    root: &Path,
    arguments: Vec<OsString>,
    timeout: Option<Duration>,
    cancel: &CancellationToken,
    mut line: impl FnMut(&str) -> bool,
) -> Result<Ended, String> {
    let mut command = command(root, arguments, timeout.unwrap_or(Duration::MAX))?;
    command.timeout = timeout;
    command.stdout = Bound {
        head: u64::MAX,
        tail: 0,
    };
    command.stderr = ANSWER;
    let stop = cancel.child_token();
    let mut lines = LineSplitter::new(LONGEST_EVENT);
    let followed = follow(command, &stop, |chunk| {
        for event in lines.push(&chunk) {
            if !line(&event.text()) {
                stop.cancel();
            }
        }
    });
    let (exit, stderr) = followed.await?;
    Ok(Ended {
        exit,
        stdout: Captured::default(),
        stderr,
    })
}

fn command(root: &Path, arguments: Vec<OsString>, timeout: Duration) -> Result<Command, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("assize cannot start itself: {error}"))?;
    let mut command = Command::new(program, root)
        .args(arguments)
        .timeout(timeout)
        .polite(Signal::SIGTERM, GRACE);
    command.env = std::env::vars_os().collect();
    Ok(command.env("NO_COLOR", "1").env("COLUMNS", "140"))
}

async fn follow(
    command: Command,
    cancel: &CancellationToken,
    mut stdout: impl FnMut(assize_process::Chunk),
) -> Result<(Exit, Captured), String> {
    let failed = |error: assize_process::Error| format!("assize cannot start itself: {error}");
    let mut running = command.start().await.map_err(failed)?;
    let mut stderr = Captured::default();
    let mut is_cancelled = false;
    loop {
        let chunk = tokio::select! {
            chunk = running.next() => chunk.map_err(failed)?,
            () = cancel.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                running.cancel();
                continue;
            }
        };
        match chunk {
            Some(chunk) if chunk.stream == Stream::Stdout => stdout(chunk),
            Some(chunk) => stderr.push(chunk),
            None => break,
        }
    }
    let exit = running.wait().await.map_err(failed)?;
    Ok((exit, stderr))
}
