//! Commands that the keeper runs to end what its program only spoke for: a container, for which the program is the client.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::lookup;
use crate::wire::Order;

/// An engine that does not answer within this is stuck; what it holds is found by the next sweep.
const PATIENCE: Duration = Duration::from_secs(20);
/// Engines refuse to remove a container that is just starting or being removed by its own client.
const TRIES: usize = 3;

/// Starts the command that asks for the end. `false`: there is none, or it cannot be started.
pub(super) fn ask(order: &Order) -> bool {
    let asked = order.elsewhere.as_ref();
    asked.is_some_and(|elsewhere| start(order, &elsewhere.ask).is_some())
}

/// Runs the command that ends it, if that is due, and waits for that. `false`: it was not due.
pub(super) fn end(order: &Order, is_stopped: bool) -> bool {
    let Some(elsewhere) = &order.elsewhere else {
        return false;
    };
    if !is_stopped && !elsewhere.always {
        return false;
    }
    let deadline = Instant::now() + PATIENCE;
    for _ in 0..TRIES {
        if succeeds(order, &elsewhere.end, deadline) {
            break;
        }
        sleep(Duration::from_millis(100));
    }
    true
}

/// `true` also where another try would not help: the command cannot be started, or the time is over.
fn succeeds(order: &Order, argv: &[OsString], deadline: Instant) -> bool {
    let Some(mut child) = start(order, argv) else {
        return true;
    };
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() > deadline => {
                let _ = child.kill();
                return true;
            }
            Ok(None) => sleep(Duration::from_millis(5)),
            Ok(Some(status)) => return status.success(),
            Err(_) => return true,
        }
    }
}

fn start(order: &Order, argv: &[OsString]) -> Option<Child> {
    let (program, arguments) = argv.split_first()?;
    let candidates = lookup::candidates(program, &order.env);
    let program = candidates.into_iter().find(|path| path.is_file())?;
    Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&order.cwd)
        // Not in the keeper's own group, which must not be stopped or killed with the tree.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}
