//! The first process of a container: this binary, mounted into it. It idles until its stdin ends, passes signals on to
//! everything in the container, buries the dead, and forwards a port of the loopback to a Unix socket of the host.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::sys;

/// The first argument that makes the binary the first process of a container. The name of the container follows, then,
/// where there is something to forward, a port and a socket.
pub(crate) const MARKER: &str = "__inside";

/// Printed when everything is in place.
pub(super) const READY: &str = "assize-container-ready";

const PASSED_ON: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Does all that and does not return.
pub(crate) fn run_inside(arguments: impl Iterator<Item = OsString>) -> ! {
    let code = match idle(arguments.skip(1)) {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(io::stderr(), "assize inside the container: {error}");
            1
        }
    };
    sys::exit_now(code)
}

fn idle(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let mut signals = SigSet::empty();
    for signal in PASSED_ON.into_iter().chain([Signal::SIGCHLD]) {
        signals.add(signal);
    }
    // Before any other thread exists, so that all have it.
    signals.thread_block()?;
    if let (Some(port), Some(socket)) = (arguments.next(), arguments.next()) {
        let port = port.to_string_lossy().parse();
        let port = port.map_err(|_| io::Error::other("found no port to forward"))?;
        forward(port, PathBuf::from(socket))?;
    }
    end_with_stdin();
    writeln!(io::stdout(), "{READY}")?;
    io::stdout().flush()?;
    loop {
        match signals.wait() {
            Ok(Signal::SIGCHLD) => bury(),
            // To everybody in the container but this process.
            Ok(signal) => drop(kill(Pid::from_raw(-1), signal)),
            Err(_) => {}
        }
    }
}

fn bury() {
    while !matches!(
        waitpid(None, Some(WaitPidFlag::WNOHANG)),
        Ok(WaitStatus::StillAlive) | Err(_)
    ) {}
}

/// The process that started the container holds the other end; with it the container ends.
fn end_with_stdin() {
    thread::spawn(|| {
        let mut buffer = [0; 64];
        while matches!(io::stdin().read(&mut buffer), Ok(1..)) {}
        sys::exit_now(0);
    });
}

fn forward(port: u16, socket: PathBuf) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    thread::spawn(move || {
        loop {
            match listener.accept() {
                Ok((client, _)) => {
                    let socket = socket.clone();
                    thread::spawn(move || drop(join(client, &socket)));
                }
                // Too many open files, for example: those under way will end.
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    });
    Ok(())
}

/// Carries bytes both ways until both sides are done.
fn join(client: TcpStream, socket: &Path) -> io::Result<()> {
    client.set_nodelay(true)?;
    let host = UnixStream::connect(socket)?;
    let (mut from_client, mut to_host) = (client.try_clone()?, host.try_clone()?);
    let up = thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_host);
        let _ = to_host.shutdown(Shutdown::Write);
    });
    let (mut from_host, mut to_client) = (host, client);
    let _ = io::copy(&mut from_host, &mut to_client);
    let _ = to_client.shutdown(Shutdown::Write);
    let _ = up.join();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn bytes_go_both_ways_and_an_end_is_passed_on() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let host = UnixListener::bind(&socket).unwrap();
        let echo = thread::spawn(move || {
            let (mut stream, _) = host.accept().unwrap();
            let mut said = String::new();
            stream.read_to_string(&mut said).unwrap();
            stream.write_all(said.to_uppercase().as_bytes()).unwrap();
        });
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        forward(port, socket).unwrap();
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        client.write_all(b"hello").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        echo.join().unwrap();
        assert_eq!(answer, "HELLO");
    }
}
