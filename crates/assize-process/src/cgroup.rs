//! A cgroup v2 for one tree, where one can be made. It kills without races and counts what a walk cannot.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::Duration;

use nix::unistd::Pid;

/// The directory in which this process may try to make cgroups: its own one. Absent without cgroup v2.
pub(crate) fn parent() -> Option<PathBuf> {
    static PARENT: OnceLock<Option<PathBuf>> = OnceLock::new();
    PARENT.get_or_init(find_parent).clone()
}

/// Kills what a lost keeper left in its cgroup, as far as there is one.
pub(crate) fn end_orphaned(keeper: u32) {
    if let Some(parent) = parent() {
        let directory = path(&parent, keeper);
        let _ = fs::write(directory.join("cgroup.kill"), "1");
        // Removable only when the killed are gone; an empty one left behind does no harm.
        for _ in 0..50 {
            match fs::remove_dir(&directory) {
                Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                    sleep(Duration::from_millis(10));
                }
                _ => break,
            }
        }
    }
}

/// A cgroup of ours, removed on drop.
pub(crate) struct Cgroup {
    path: PathBuf,
    directory: File,
}

impl Cgroup {
    /// Makes the cgroup of this keeper. `None` is usual: without root or delegation it is not allowed.
    pub(crate) fn create(parent: &Path) -> Option<Self> {
        let path = path(parent, std::process::id());
        // One with our number can only be the empty rest of a keeper that was killed.
        let _ = fs::remove_dir(&path);
        fs::create_dir(&path).ok()?;
        let Ok(directory) = File::open(&path) else {
            let _ = fs::remove_dir(&path);
            return None;
        };
        Some(Self { path, directory })
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Kills every process in it at once, including those being forked.
    pub(crate) fn kill(&self) {
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }

    /// Those in it now, without the dead.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        let list = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        let pids = list.lines().filter_map(|pid| pid.parse().ok());
        pids.map(Pid::from_raw).collect()
    }

    /// User and system time.
    pub(crate) fn cpu(&self) -> Option<(Duration, Duration)> {
        let stat = fs::read_to_string(self.path.join("cpu.stat")).ok()?;
        let field = |name| {
            let line = stat.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok().map(Duration::from_micros)
        };
        Some((field("user_usec ")?, field("system_usec ")?))
    }

    /// Absent unless the memory controller is delegated.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        fs::read_to_string(self.path.join("memory.peak"))
            .ok()?
            .trim()
            .parse()
            .ok()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

fn path(parent: &Path, keeper: u32) -> PathBuf {
    parent.join(format!("assize-{keeper}"))
}

fn find_parent() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(mount_point(&mounts)?.join(own))
}

/// In a line of mountinfo the mount point is the fifth field; the type follows the separator ` - `.
fn mount_point(mounts: &str) -> Option<PathBuf> {
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    line.split(' ').nth(4).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_is_found_among_others() {
        let mounts = "22 1 0:20 / /proc rw - proc proc rw\n\
                      30 22 0:26 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(mount_point("22 1 0:20 / /proc rw - proc proc rw\n"), None);
    }
}
