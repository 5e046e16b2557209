//! A mount namespace of this process's own: overlay mounts live in it, every program it starts inherits it, and the
//! system dissolves it with the last of them, however they end. So no mount is ever left behind.

use std::path::Path;
use std::sync::Mutex;

/// The state of this process's mount namespace: its own, or the reason why not.
static STATE: Mutex<State> = Mutex::new(State::Shared(String::new()));

enum State {
    Private,
    /// The reason, empty if it was never tried.
    Shared(String),
}

/// The first argument that makes this process try an overlay instead of being a keeper.
pub(crate) const PROBE: &str = "__try-overlay";

/// True when mounts of this process are seen by itself and its descendants only.
pub(super) fn is_private() -> bool {
    matches!(*state(), State::Private)
}

/// The reason why this process has no namespace of its own.
pub(super) fn why_not() -> String {
    match &*state() {
        State::Shared(reason) if !reason.is_empty() => reason.clone(),
        _ => "this process has no mount namespace of its own".to_owned(),
    }
}

/// Gives this process a mount namespace of its own, without root also a user namespace in which it is who it was. To be
/// called before there is a second thread. Where it fails, or overlays do not work in it, everything stays as it was.
pub fn enter(root: &Path) {
    let entered = match is_root() {
        true => become_private(),
        // In a user namespace files of other users are shown as those of `nobody` and `sudo` does not work, so it must be worth it.
        false => probe(root).and_then(|()| become_private()),
    };
    *state() = entered.map_or_else(State::Shared, |()| State::Private);
}

/// Tries an overlay below `root` in a process and namespaces of its own.
pub(super) fn probe(root: &Path) -> Result<(), String> {
    let output = std::process::Command::new(crate::keeper::executable())
        .arg(PROBE)
        .arg(root)
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The other side of [`probe`]: the reason is printed, `Err` if there is one.
pub(crate) fn answer_probe(root: &Path) -> Result<(), String> {
    become_private()?;
    super::method::try_overlay(root)
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

fn state() -> std::sync::MutexGuard<'static, State> {
    STATE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(target_os = "linux")]
fn become_private() -> Result<(), String> {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};

    if std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count) != 1 {
        return Err("threads were started before".to_owned());
    }
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let flags = match is_root() {
        true => CloneFlags::CLONE_NEWNS,
        false => CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUSER,
    };
    unshare(flags).map_err(|errno| format!("no mount namespace: {}", errno.desc()))?;
    if flags.contains(CloneFlags::CLONE_NEWUSER) {
        let map = |file: &str, content: String| {
            std::fs::write(format!("/proc/self/{file}"), content)
                .map_err(|error| format!("no user namespace: {error}"))
        };
        map("setgroups", "deny".to_owned())?;
        map("uid_map", format!("{user} {user} 1"))?;
        map("gid_map", format!("{group} {group} 1"))?;
    }
    // Mounts of others still arrive here, ours do not leave.
    let flags = MsFlags::MS_SLAVE | MsFlags::MS_REC;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
        .map_err(|errno| format!("the mount namespace is not private: {}", errno.desc()))
}

#[cfg(not(target_os = "linux"))]
fn become_private() -> Result<(), String> {
    Err("only Linux has overlays".to_owned())
}
