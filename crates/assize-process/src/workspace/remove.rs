//! Removal that does not stop at what an agent left behind: read-only directories, and thousands of them in each other.

use std::ffi::{CStr, CString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// Directories deeper than this are moved up before they are emptied, so that neither open files nor paths run out.
const DEEPEST: usize = 64;

/// Removes a directory and everything in it, also where directories were made read-only. No error if it is not there.
pub fn remove_tree(path: &Path) -> Result<()> {
    let mut attempts = 0;
    loop {
        match remove(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound && !exists(path) => return Ok(()),
            // A killed process may finish its last write while we remove.
            Err(_) if attempts < 3 => attempts += 1,
            Err(error) => return Err(Error::file("remove", path)(error)),
        }
    }
}

fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn remove(path: &Path) -> io::Result<()> {
    if !std::fs::symlink_metadata(path)?.is_dir() {
        return std::fs::remove_file(path);
    }
    empty_tree(path)?;
    std::fs::remove_dir(path)
}

/// Removes everything in a directory.
pub(super) fn empty_tree(path: &Path) -> io::Result<()> {
    let mut emptying = Emptying { moved: 0 };
    loop {
        let before = emptying.moved;
        emptying.empty(open(rustix::fs::CWD, path)?)?;
        if emptying.moved == before {
            return Ok(());
        }
    }
}

/// A directory that is being emptied, by its name in the one above it.
struct Level {
    name: CString,
    entries: Dir,
}

struct Emptying {
    /// The number of directories that were moved to the top.
    moved: u64,
}

impl Emptying {
    /// Removes everything below a directory, but for what had to be moved right into it.
    fn empty(&mut self, root: OwnedFd) -> io::Result<()> {
        let top = root.try_clone()?;
        let mut levels = vec![Level {
            name: CString::default(),
            entries: Dir::new(root)?,
        }];
        loop {
            let depth = levels.len();
            let Some(level) = levels.last_mut() else {
                return Ok(());
            };
            let Some(entry) = level.entries.read() else {
                let done = levels.pop();
                if let (Some(done), Some(parent)) = (done, levels.last()) {
                    unlink(parent.entries.fd()?, &done.name, AtFlags::REMOVEDIR)?;
                }
                continue;
            };
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let parent = level.entries.fd()?;
            let is_directory = match entry.file_type() {
                FileType::Unknown => is_directory(parent, name)?,
                kind => kind == FileType::Directory,
            };
            if !is_directory {
                unlink(parent, name, AtFlags::empty())?;
            } else if depth < DEEPEST {
                let name = name.to_owned();
                let entries = Dir::new(open(parent, &name)?)?;
                levels.push(Level { name, entries });
            } else {
                self.move_up(parent, name, top.as_fd())?;
            }
        }
    }

    fn move_up(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        top: BorrowedFd<'_>,
    ) -> io::Result<()> {
        loop {
            self.moved += 1;
            let new = format!(".moved-up-{}", self.moved);
            let renamed = rustix::fs::renameat(parent, name, top, &new);
            match renamed {
                // Whatever has that name already, it is not this one.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::ISDIR) => {}
                Err(Errno::ACCESS) => {
                    let _ = rustix::fs::fchmod(parent, Mode::RWXU);
                    let _ = rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty());
                    return Ok(rustix::fs::renameat(parent, name, top, &new)?);
                }
                other => return Ok(other?),
            }
        }
    }
}

/// Opens a directory, never through a link. Go's module cache, for one, is read-only, and some may not be entered at all.
fn open(parent: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(parent, name, flags, Mode::empty());
    match opened {
        Err(Errno::ACCESS) => {
            rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
            Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
        }
        other => Ok(other?),
    }
}

fn unlink(parent: BorrowedFd<'_>, name: &CStr, flags: AtFlags) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, flags) {
        // Nothing can be removed from a directory that may not be written.
        Err(Errno::ACCESS) => {
            rustix::fs::fchmod(parent, Mode::RWXU)?;
            Ok(rustix::fs::unlinkat(parent, name, flags)?)
        }
        Err(Errno::NOENT) => Ok(()),
        other => Ok(other?),
    }
}

fn is_directory(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<bool> {
    let status = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(status.st_mode) == FileType::Directory)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn read_only_directories_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let tree = root.path().join("tree");
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::write(tree.join("a/b/file"), "").unwrap();
        fs::set_permissions(tree.join("a/b"), fs::Permissions::from_mode(0o500)).unwrap();
        fs::set_permissions(tree.join("a"), fs::Permissions::from_mode(0o000)).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        remove_tree(&tree).unwrap();
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (tree, outside) = (root.path().join("tree"), root.path().join("outside"));
        fs::create_dir(&tree).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("link")).unwrap();
        std::os::unix::fs::symlink(&outside, root.path().join("itself")).unwrap();
        remove_tree(&tree).unwrap();
        remove_tree(&root.path().join("itself")).unwrap();
        assert!(outside.join("file").exists());
    }

    /// Deeper than paths are long, files may be open, and a stack of calls may grow.
    #[test]
    fn directories_of_any_depth_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let tree = root.path().join("tree");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join(".moved-up-1"), "").unwrap();
        let mut place: OwnedFd = fs::File::open(&tree).unwrap().into();
        for depth in 0..3_000 {
            rustix::fs::mkdirat(&place, "d", Mode::RWXU).unwrap();
            if depth % 100 == 0 {
                rustix::fs::mkdirat(&place, "beside", Mode::RWXU).unwrap();
            }
            place = open(place.as_fd(), "d").unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }
}
