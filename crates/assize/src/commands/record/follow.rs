//! The command while it runs: what it prints goes on as it comes, a signal ends it in good order.

use super::{environment, with_addresses};
use crate::cli::RecordArguments;
use crate::commands::Obstructed;
use crate::terminal::say;
use anyhow::{Context, Result};
use assize_agents::capture::CapturedSession;
use assize_process::{
    Bound, Chunk, Command, Exit, RawMode, Running, Signal, Stdin, Stream, Terminal,
};
use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::signal::unix::{SignalKind, signal};

/// The time in which a command must end after Ctrl-C.
const GRACE: Duration = Duration::from_secs(5);

/// The time in which the output of a command that has ended may still come.
const LAST_WORDS: Duration = Duration::from_secs(1);

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
    let directory = std::env::current_dir().context("cannot find the current directory")?;
    let mut command = Command::from_argv(argv, directory)
        .bound(ALL)
        .polite(Signal::SIGINT, GRACE)
        // Without a terminal to type into, an agent that waits for more would wait forever.
        .stdin(match std::io::stdin().is_terminal() {
            true => Stdin::Closed,
            false => Stdin::Piped,
        });
    command.timeout = arguments.timeout.map(Duration::from_millis);
    command.env = std::env::vars_os().collect();
    let variables = session.variables(environment).into_iter();
    Ok(variables.fold(command, |command, (name, value)| command.env(name, value)))
}

/// True when a user sits in front of the command: then it gets a terminal, and everything typed reaches it.
pub(super) fn is_interactive(json: bool) -> bool {
    !json && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Runs the command to its end in a terminal of its own, which shows through in ours.
pub(super) async fn follow_in_terminal(mut command: Command) -> Result<Exit> {
    let mut terminal = Terminal::new().context("cannot open a terminal for the command")?;
    command.terminal = Some(terminal.path().to_owned());
    let started = command.start().await;
    let mut running = started.map_err(not_started)?;
    terminal.let_go();
    let raw = RawMode::new().context("cannot prepare the terminal")?;
    let shown = show(terminal.host()?);
    type_into(terminal.host()?);
    let mut resized = signal(SignalKind::window_change())?;
    let mut terminated = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            chunk = running.next() => if chunk?.is_none() { break },
            _ = resized.recv() => terminal.fit(),
            _ = terminated.recv() => running.cancel(),
        }
    }
    let exit = running.wait().await?;
    // The last words may still be on their way.
    let _ = tokio::time::timeout(LAST_WORDS, shown).await;
    drop(raw);
    Ok(exit)
}

/// Shows the command's output, until all writers have closed it.
fn show(mut host: File) -> tokio::task::JoinHandle<()> {
    tokio::task::spawn_blocking(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = host.read(&mut buffer) {
            let mut stdout = std::io::stdout().lock();
            let written = stdout.write_all(&buffer[..read]);
            if written.and_then(|()| stdout.flush()).is_err() {
                return;
            }
        }
    })
}

/// Passes on what is typed. A thread of its own, since a read of stdin cannot be given up.
fn type_into(mut host: File) {
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = vec![0; 4 << 10];
        while let Ok(read @ 1..) = stdin.read(&mut buffer) {
            if host.write_all(&buffer[..read]).is_err() {
                return;
            }
        }
    });
}

/// The system's number says less than the reason that was found for it.
fn not_started(error: assize_process::Error) -> anyhow::Error {
    match &error {
        assize_process::Error::NotStarted {
            program,
            hint: Some(reason),
            ..
        } => Obstructed {
            message: format!("cannot start `{}`: {reason}", program.display()),
            hint: "after `--` comes the program with its arguments, as you would type it"
                .to_owned(),
        }
        .into(),
        _ => anyhow::anyhow!(error.explained()),
    }
}

/// Runs the command to its end.
pub(super) async fn follow(command: Command, json: bool) -> Result<Exit> {
    let started = command.start().await;
    let mut running = started.map_err(not_started)?;
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

/// Passes this process's piped input on to the command.
fn feed(running: &mut Running) {
    let Some(mut input) = running.take_stdin() else {
        return;
    };
    // A thread of its own, since a read of stdin cannot be given up.
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<Vec<u8>>(4);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = stdin.read(&mut buffer) {
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
