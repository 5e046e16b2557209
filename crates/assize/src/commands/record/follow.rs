//! The command while it runs: what it prints goes on as it comes, a signal ends it in good order.

use super::{environment, with_addresses};
use crate::cli::RecordArguments;
use crate::terminal::say;
use anyhow::{Context, Result};
use assize_agents::capture::CapturedSession;
use assize_process::{Bound, Chunk, Command, Exit, Running, Signal, Stdin, Stream};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// How long a command may take to end after Ctrl-C.
const GRACE: Duration = Duration::from_secs(5);

/// Everything is passed on, nothing is kept.
const ALL: Bound = Bound {
    head: u64::MAX,
    tail: 0,
};

/// The command as it was typed, in this directory and environment, with the way through the proxy.
pub(super) fn command(arguments: &RecordArguments, session: &CapturedSession) -> Result<Command> {
    let argv = arguments.command.iter().map(|part| match part.to_str() {
        Some(text) => OsString::from(with_addresses(text, session)),
        None => part.clone(),
    });
    let directory = std::env::current_dir().context("cannot tell the current directory")?;
    let mut command = Command::from_argv(argv, directory)
        .bound(ALL)
        .polite(Signal::SIGINT, GRACE)
        // Nobody types into an agent that is recorded; one that waits for more would wait forever.
        .stdin(match std::io::stdin().is_terminal() {
            true => Stdin::Closed,
            false => Stdin::Piped,
        });
    command.timeout = arguments.timeout.map(Duration::from_millis);
    command.env = std::env::vars_os().collect();
    let variables = session.variables(environment).into_iter();
    Ok(variables.fold(command, |command, (name, value)| command.env(name, value)))
}

/// Runs the command to its end.
pub(super) async fn follow(command: Command, json: bool) -> Result<Exit> {
    let started = command.start().await;
    let mut running = started.map_err(|error| anyhow::anyhow!(error.explained()))?;
    feed(&mut running);
    let mut interrupts = 0;
    loop {
        tokio::select! {
            chunk = running.next() => match chunk? {
                Some(chunk) => pass_on(&chunk, json),
                None => break,
            },
            _ = tokio::signal::ctrl_c() => {
                interrupts += 1;
                match interrupts {
                    1 => {
                        say("\nstopping the command (again to kill it)");
                        running.cancel();
                    }
                    _ => running.kill(),
                }
            }
        }
    }
    Ok(running.wait().await?)
}

/// What is piped into us goes on to the command.
fn feed(running: &mut Running) {
    let Some(mut input) = running.take_stdin() else {
        return;
    };
    // A thread of its own, since a read of stdin cannot be given up.
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<Vec<u8>>(4);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = std::io::Read::read(&mut stdin, &mut buffer) {
            if sender.blocking_send(buffer[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        while let Some(bytes) = receiver.recv().await {
            if input.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
}

/// With `--json` stdout is for the profile alone.
fn pass_on(chunk: &Chunk, json: bool) {
    // A reader that has gone away does not end the command.
    let _ = match (chunk.stream, json) {
        (Stream::Stdout, false) => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(&chunk.bytes).and_then(|()| stdout.flush())
        }
        _ => std::io::stderr().lock().write_all(&chunk.bytes),
    };
}
