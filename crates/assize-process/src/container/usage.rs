//! The resource use of a container, read from its cgroup on this machine. Unknown for containers elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Resources that all processes of a container used since its start. Absent where the system does not report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContainerUse {
    /// CPU time.
    pub cpu: Option<Duration>,
    /// The most memory in use at one time, with the page cache, in bytes.
    pub peak_memory: Option<u64>,
    /// Processes that the system killed because the memory was used up.
    pub oom_kills: Option<u64>,
}

/// The directories of a container's counters.
#[derive(Debug, Clone, Default)]
pub(super) struct Cgroups {
    cpu: Option<PathBuf>,
    memory: Option<PathBuf>,
    /// Version 2 of cgroups: one directory for everything.
    unified: Option<PathBuf>,
}

impl Cgroups {
    /// Those of a process with `name` in its command line. A process id of another machine may be any process here.
    pub(super) fn of(pid: u32, name: &str) -> Option<Self> {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let is_ours = line
            .split(|&byte| byte == 0)
            .any(|word| word == name.as_bytes());
        if !is_ours {
            return None;
        }
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        Some(Self::locate(&groups, &mounts))
    }

    fn locate(groups: &str, mounts: &str) -> Self {
        let of = |controller: &str| {
            let path = groups.lines().find_map(|line| {
                let (_, rest) = line.split_once(':')?;
                let (controllers, path) = rest.split_once(':')?;
                let is_it = controllers.split(',').any(|each| each == controller);
                is_it.then(|| path.trim_start_matches('/'))
            })?;
            Some(mount_point(mounts, controller)?.join(path))
        };
        Self {
            cpu: of("cpuacct"),
            memory: of("memory"),
            unified: of(""),
        }
    }

    pub(super) fn read(&self) -> ContainerUse {
        ContainerUse {
            cpu: self.cpu(),
            peak_memory: self.peak_memory(),
            oom_kills: self.oom_kills(),
        }
    }

    fn cpu(&self) -> Option<Duration> {
        let from_v1 =
            || number(&self.cpu.as_ref()?.join("cpuacct.usage")).map(Duration::from_nanos);
        let from_v2 = || {
            let file = self.unified.as_ref()?.join("cpu.stat");
            field(&file, "usage_usec").map(Duration::from_micros)
        };
        from_v1().or_else(from_v2)
    }

    fn peak_memory(&self) -> Option<u64> {
        let from_v1 = || number(&self.memory.as_ref()?.join("memory.max_usage_in_bytes"));
        let from_v2 = || number(&self.unified.as_ref()?.join("memory.peak"));
        from_v1().or_else(from_v2)
    }

    fn oom_kills(&self) -> Option<u64> {
        let from_v1 = || {
            field(
                &self.memory.as_ref()?.join("memory.oom_control"),
                "oom_kill",
            )
        };
        let from_v2 = || field(&self.unified.as_ref()?.join("memory.events"), "oom_kill");
        from_v1().or_else(from_v2)
    }
}

/// In a line of mountinfo the mount point is the fifth field; type and options follow the separator ` - `.
fn mount_point(mounts: &str, controller: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (place, what) = line.split_once(" - ")?;
        let mut what = what.split(' ');
        let kind = what.next()?;
        let options = what.nth(1).unwrap_or_default();
        let is_it = match controller {
            "" => kind == "cgroup2",
            name => kind == "cgroup" && options.split(',').any(|option| option == name),
        };
        is_it.then(|| place.split(' ').nth(4).map(PathBuf::from))?
    })
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// A number behind a name, as in `oom_kill 2`.
fn field(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let (known, value) = line.split_once(' ')?;
        (known == name).then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "30 22 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
        31 22 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        32 22 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";

    #[test]
    fn groups_of_both_versions_are_found() {
        let groups = "4:memory:/pod/a\n2:cpu,cpuacct:/pod/a\n1:cpu:/x\n0::/pod/b\n";
        let found = Cgroups::locate(groups, MOUNTS);
        assert_eq!(found.memory, Some("/sys/fs/cgroup/memory/pod/a".into()));
        assert_eq!(found.cpu, Some("/sys/fs/cgroup/cpu,cpuacct/pod/a".into()));
        assert_eq!(found.unified, Some("/sys/fs/cgroup/unified/pod/b".into()));
    }

    #[test]
    fn a_process_that_is_a_stranger_tells_nothing() {
        assert!(Cgroups::of(std::process::id(), "assize-x-1").is_none());
    }

    #[test]
    fn what_is_not_there_is_absent() {
        assert_eq!(Cgroups::default().read(), ContainerUse::default());
    }
}
