//! The guard: rules of the Linux kernel (Landlock) around a program and everything it starts. This file says what the rules
//! allow; the keeper puts them into force between fork and exec (`fence.rs`).
//!
//! Landlock only allows, it cannot take away: to hide a directory, everything beside it and beside each of its parents is
//! allowed. Entries that appear there later stay hidden.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The permissions of a guarded program. Everything else is refused: reading, writing, signals to others, looking into others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guard {
    /// The files that the program may read and execute around its own places.
    pub surroundings: Arc<Surroundings>,
    /// More that it may read and execute.
    pub shown: Vec<PathBuf>,
    /// Directories and files that it may also change.
    pub writable: Vec<PathBuf>,
    /// The only TCP ports that it may connect to. `None`: all of them.
    pub ports: Option<Vec<u16>>,
}

/// The files around a program, as they were when the guard was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// May be read and executed, with everything below.
    pub readable: Vec<PathBuf>,
    /// May be read and written, with everything below: terminals, `/dev/null` and the like.
    pub devices: Vec<PathBuf>,
    /// May be changed, with everything below: shared memory.
    pub writable: Vec<PathBuf>,
}

/// Devices that programs need. Others, disks and memory above all, would be a way around the guard.
const DEVICES: [&str; 10] = [
    "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "dri", "kfd",
];

/// Beginnings of names of devices that have a number.
const NUMBERED_DEVICES: [&str; 1] = ["nvidia"];

/// Files beyond this in a directory that has something to hide stay hidden, so that a crowded one costs no start-up time.
const MOST_FILES: usize = 500;

/// The strength of the guard on this machine: the version of Landlock's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuardVersion(pub u32);

impl GuardVersion {
    /// The version that everything here is made for and tested with.
    pub const WHOLE: Self = Self(6);

    /// The version of this machine. `Err` explains why there is none.
    pub fn of_this_machine() -> Result<Self, String> {
        #[cfg(target_os = "linux")]
        return match crate::sys::landlock_version() {
            Ok(version) => Ok(Self(version)),
            Err(nix::errno::Errno::EOPNOTSUPP) => {
                Err("Landlock is not enabled in this kernel (boot parameter `lsm=`)".to_owned())
            }
            Err(_) => Err("this kernel has no Landlock, which came with Linux 5.13".to_owned()),
        };
        #[cfg(not(target_os = "linux"))]
        Err("only Linux has Landlock".to_owned())
    }

    /// The actions that this version cannot prevent, in words. Empty for a whole guard.
    pub fn missing(self) -> Vec<&'static str> {
        let needs = [
            (3, "files elsewhere can be cut to nothing (needs Linux 6.2)"),
            (4, "TCP connections cannot be limited (needs Linux 6.7)"),
            (
                6,
                "other processes can be signalled and reached by abstract sockets (needs Linux 6.12)",
            ),
        ];
        let missing = needs.into_iter().filter(|(version, _)| self.0 < *version);
        missing.map(|(_, words)| words).collect()
    }

    /// True if TCP connections can be limited to some ports.
    pub fn limits_ports(self) -> bool {
        self.0 >= 4
    }
}

impl Surroundings {
    /// Everything but these directories and files. They need not exist yet; links to them do not resolve.
    pub fn without(hidden: &[PathBuf]) -> Self {
        let mounts = mounts();
        let mut places = BTreeSet::new();
        for path in hidden {
            let path = resolved(path);
            places.extend(aliases(&path, &mounts));
            places.insert(path);
        }
        let mut surroundings = Self::default();
        surroundings.add_around(Path::new("/"), &places);
        surroundings
    }

    /// Adds what lies in a directory, except hidden places. Of directories with something to hide only the rest is added.
    fn add_around(&mut self, directory: &Path, hidden: &BTreeSet<PathBuf>) {
        let Ok(entries) = fs::read_dir(directory) else {
            return;
        };
        let mut files = 0;
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            // The target of a link has its own place, which may be a hidden one.
            if kind.is_symlink() || hidden.contains(&path) {
                continue;
            }
            if path == Path::new("/dev") {
                self.add_devices();
            } else if kind.is_dir() && hides_below(&path, hidden) {
                self.add_around(&path, hidden);
            } else if kind.is_dir() {
                self.readable.push(path);
            } else if files < MOST_FILES {
                files += 1;
                self.readable.push(path);
            }
        }
    }

    fn add_devices(&mut self) {
        let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let is_numbered = |start: &&str| name.to_string_lossy().starts_with(*start);
            if DEVICES.iter().any(|known| name == *known)
                || NUMBERED_DEVICES.iter().any(is_numbered)
            {
                self.devices.push(entry.path());
            } else if name == "shm" {
                self.writable.push(entry.path());
            }
        }
    }
}

fn hides_below(directory: &Path, hidden: &BTreeSet<PathBuf>) -> bool {
    // Paths sort before what lies below them.
    let mut from = hidden.range(directory.to_path_buf()..);
    from.next().is_some_and(|path| path.starts_with(directory))
}

/// The path without links, as far as it exists.
pub fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for (depth, existing) in path.ancestors().enumerate() {
        if let Ok(real) = existing.canonicalize() {
            let missing = path.components().count() - depth;
            return path
                .components()
                .skip(missing)
                .fold(real, |real, part| real.join(part));
        }
    }
    path
}

/// A mounted file system, or a part of one.
struct Mount {
    device: OsString,
    /// The directory of the file system that is shown.
    root: PathBuf,
    /// The path at which it is shown.
    point: PathBuf,
}

fn mounts() -> Vec<Mount> {
    let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let lines = table.split(|byte| *byte == b'\n');
    lines.filter_map(Mount::read).collect()
}

impl Mount {
    /// From a line such as `36 35 98:0 /mnt1 /mnt2 rw …`.
    fn read(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ').skip(2);
        let mut word = || words.next().map(|word| OsString::from_vec(unescaped(word)));
        Some(Self {
            device: word()?,
            root: word()?.into(),
            point: word()?.into(),
        })
    }
}

/// Spaces and the like are written as `\040`.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\');
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

/// Other paths to the same directory, or to a part of it, by mounts of the same file system.
fn aliases(path: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    let around = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    let Some(own) = around.max_by_key(|mount| mount.point.components().count()) else {
        return Vec::new();
    };
    let Ok(below) = path.strip_prefix(&own.point) else {
        return Vec::new();
    };
    let inside = own.root.join(below);
    let others = mounts.iter().filter(|mount| mount.device == own.device);
    let aliases = others.filter_map(|mount| match inside.strip_prefix(&mount.root) {
        Ok(below) => Some(mount.point.join(below)),
        Err(_) => (mount.root.starts_with(&inside)).then(|| mount.point.clone()),
    });
    let is_other = |alias: &PathBuf| !alias.starts_with(path);
    aliases.filter(is_other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_left_out_and_the_rest_is_not() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for directory in ["a/suite/checks", "a/other", "a/later"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        fs::write(root.join("a/file"), "").unwrap();
        std::os::unix::fs::symlink(root.join("a/suite"), root.join("a/link")).unwrap();
        let hidden = [
            root.join("a/suite"),
            root.join("a/suite/checks"),
            root.join("a/new"),
        ];
        let around = Surroundings::without(&hidden);
        let below: BTreeSet<_> = around
            .readable
            .iter()
            .filter_map(|path| path.strip_prefix(&root).ok())
            .collect();
        assert_eq!(
            below,
            ["a/file", "a/later", "a/other"].map(Path::new).into()
        );
        assert!(around.readable.contains(&PathBuf::from("/usr")));
        assert!(!around.readable.iter().any(|path| path.starts_with("/dev")));
        assert!(around.devices.contains(&PathBuf::from("/dev/null")));
    }

    #[test]
    fn a_path_that_does_not_exist_yet_is_resolved_as_far_as_it_does() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        fs::create_dir(real.join("real")).unwrap();
        std::os::unix::fs::symlink(real.join("real"), real.join("link")).unwrap();
        assert_eq!(resolved(&real.join("link/x/y")), real.join("real/x/y"));
        assert_eq!(resolved(&real.join("link")), real.join("real"));
    }

    #[test]
    fn the_same_directory_at_other_mounts_is_found() {
        let mount = |device: &str, root: &str, point: &str| Mount {
            device: device.into(),
            root: root.into(),
            point: point.into(),
        };
        let mounts = [
            mount("8:1", "/", "/"),
            mount("8:2", "/", "/home"),
            mount("8:2", "/me", "/mnt/me"),
            mount("8:2", "/me/suite/checks", "/mnt/checks"),
            mount("8:2", "/you", "/mnt/you"),
            mount("8:1", "/me", "/mnt/else"),
        ];
        assert_eq!(
            aliases(Path::new("/home/me/suite"), &mounts),
            [PathBuf::from("/mnt/me/suite"), PathBuf::from("/mnt/checks")]
        );
    }

    #[test]
    fn spaces_in_mounts_are_read() {
        let line = b"36 35 98:0 /a\\040b /mnt\\134 rw,noatime master:1 - ext3 /dev/root rw";
        let mount = Mount::read(line).unwrap();
        assert_eq!(
            (mount.root, mount.point),
            (PathBuf::from("/a b"), PathBuf::from("/mnt\\"))
        );
        assert!(Mount::read(b"36 35").is_none());
    }

    #[test]
    fn old_kernels_lack_something() {
        assert_eq!(GuardVersion::WHOLE.missing(), Vec::<&str>::new());
        assert_eq!(GuardVersion(1).missing().len(), 3);
        assert_eq!(GuardVersion(5).missing().len(), 1);
        assert!(GuardVersion(4).limits_ports() && !GuardVersion(3).limits_ports());
    }
}
