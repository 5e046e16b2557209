//! The limit of open files. Every running program costs the host a few descriptors, and the usual soft limit of 1024
//! is too small for hundreds at once.

use std::io;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

static BEFORE_RAISING: OnceLock<u64> = OnceLock::new();

/// Raises this process's soft limit of open files to the hard one and returns it. Programs started afterwards get the
/// old limit, because some of them cannot live with a large one.
pub fn raise_open_files() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
        let _ = BEFORE_RAISING.set(soft);
    }
    Ok(hard)
}

/// The limit to give to programs, if it is another than the host's.
pub(crate) fn before_raising() -> Option<u64> {
    BEFORE_RAISING.get().copied()
}
