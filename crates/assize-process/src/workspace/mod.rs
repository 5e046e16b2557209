//! Fresh directories for programs to work in, what was changed in them, and their removal even after a crash.
//!
//! Everything here blocks on the disk, except [`Workspaces::checkout`]; call it from a blocking task where that matters.

mod archive;
mod copy;
mod git;
mod remove;
mod restore;
mod snapshot;

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};

pub use archive::{Limits, Stored, store};
pub use copy::{Copied, copy_tree};
pub use remove::remove_tree;
pub use restore::{Restored, restore};
pub use snapshot::{Change, ChangeKind, Node, Snapshot};

/// The workspaces of this process: a directory below a shared root, removed when this is dropped. A lock beside it
/// tells others that its owner lives; the system releases it however the owner ends.
#[derive(Debug)]
pub struct Workspaces {
    root: PathBuf,
    directory: PathBuf,
    lock_path: PathBuf,
    lock: File,
    next: AtomicU32,
}

/// One fresh directory. Removed when dropped.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    /// What was not copied: sockets, pipes and devices, relative to the directory copied from.
    pub skipped: Vec<PathBuf>,
}

impl Workspaces {
    /// Makes a place below `root` after removing what dead processes left there.
    pub fn open(root: &Path) -> Result<Self> {
        fs::create_dir_all(root).map_err(Error::file("create", root))?;
        let root = root.canonicalize().map_err(Error::file("open", root))?;
        clean_stale(&root)?;
        loop {
            let directory = root.join(fresh_name());
            let lock_path = lock_of(&directory);
            let lock = File::create(&lock_path).map_err(Error::file("create", &lock_path))?;
            // Somebody cleaning up may have taken it for stale in this very moment; then the next name is as good.
            if lock.try_lock().is_ok() && is_same_file(&lock, &lock_path) {
                fs::create_dir(&directory).map_err(Error::file("create", &directory))?;
                return Ok(Self {
                    root,
                    directory,
                    lock_path,
                    lock,
                    next: AtomicU32::new(1),
                });
            }
        }
    }

    /// An empty workspace.
    pub fn empty(&self) -> Result<Workspace> {
        let workspace = self.reserve();
        fs::create_dir(&workspace.path).map_err(Error::file("create", &workspace.path))?;
        Ok(workspace)
    }

    /// A workspace that holds a copy of `template`. If the workspaces lie inside the template, they are left out.
    pub fn copy_of(&self, template: &Path) -> Result<Workspace> {
        let mut workspace = self.reserve();
        let copied = copy::copy_tree_without(template, &workspace.path, &self.root)?;
        workspace.skipped = copied.skipped;
        Ok(workspace)
    }

    /// A workspace that holds a git repository with one commit of a local one: no history, no other branches (a later
    /// commit may hold the solution), no remote. Submodules and large files kept elsewhere are not fetched.
    pub async fn checkout(&self, repository: &Path, revision: &str) -> Result<Workspace> {
        let workspace = self.empty()?;
        git::checkout(repository, revision, &workspace.path).await?;
        Ok(workspace)
    }

    /// A name nobody has used; the directory does not exist yet.
    fn reserve(&self) -> Workspace {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Workspace {
            path: self.directory.join(number.to_string()),
            skipped: Vec::new(),
        }
    }
}

impl Drop for Workspaces {
    fn drop(&mut self) {
        // What cannot be removed now stays with an unlocked lock, and the next start tries again.
        if remove_tree(&self.directory).is_ok() {
            let _ = fs::remove_file(&self.lock_path);
        }
        let _ = self.lock.unlock();
    }
}

impl Workspace {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it and says if that fails. Dropping does the same silently.
    pub fn remove(self) -> Result<()> {
        remove_tree(&self.path)
    }

    /// Moves it to a place where it stays, on the same filesystem or not.
    pub fn keep_at(self, destination: &Path) -> Result<()> {
        if fs::rename(&self.path, destination).is_err() {
            copy_tree(&self.path, destination)?;
        }
        Ok(())
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = remove_tree(&self.path);
    }
}

/// Where workspaces lie unless somebody says otherwise: below the directory for temporary files, in one that is this
/// user's alone. Far from the suite, so that a program that looks around finds no checks and no other project.
pub fn default_root() -> Result<PathBuf> {
    let user = nix::unistd::geteuid();
    let root = std::env::temp_dir().join(format!("assize-{user}"));
    match fs::DirBuilder::new().mode(0o700).create(&root) {
        Err(source) if source.kind() != ErrorKind::AlreadyExists => {
            return Err(Error::file("create", &root)(source));
        }
        _ => {}
    }
    let metadata = fs::symlink_metadata(&root).map_err(Error::file("open", &root))?;
    // Anybody can put something of that name there.
    if !metadata.is_dir() || metadata.uid() != user.as_raw() {
        let source = io::Error::new(ErrorKind::PermissionDenied, "it belongs to somebody else");
        return Err(Error::file("use", &root)(source));
    }
    Ok(root)
}

/// Removes the workspaces of processes that are gone, and returns how many processes that were.
pub fn clean_stale(root: &Path) -> Result<usize> {
    let mut cleaned = 0;
    for entry in fs::read_dir(root)
        .map_err(Error::file("read", root))?
        .flatten()
    {
        let lock_path = entry.path();
        if lock_path
            .extension()
            .is_some_and(|extension| extension == "lock")
            && clean_one(&lock_path)?
        {
            cleaned += 1;
        }
    }
    Ok(cleaned)
}

/// Whether it was stale.
fn clean_one(lock_path: &Path) -> Result<bool> {
    // Somebody else may be cleaning as well.
    let Ok(lock) = File::open(lock_path) else {
        return Ok(false);
    };
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(source)) => return Err(Error::file("lock", lock_path)(source)),
    }
    remove_tree(&lock_path.with_extension(""))?;
    fs::remove_file(lock_path).map_err(Error::file("remove", lock_path))?;
    Ok(true)
}

fn lock_of(directory: &Path) -> PathBuf {
    directory.with_extension("lock")
}

fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{:x}-{number}", std::process::id(), now.as_micros())
}

fn is_same_file(file: &File, path: &Path) -> bool {
    let (Ok(opened), Ok(named)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (opened.dev(), opened.ino()) == (named.dev(), named.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_ends_with_its_value() {
        let root = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::open(root.path()).unwrap();
        let (first, second) = (workspaces.empty().unwrap(), workspaces.empty().unwrap());
        assert_ne!(first.path(), second.path());
        fs::write(first.path().join("file"), "").unwrap();
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists() && second.path().exists());
        drop(workspaces);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_living_are_not_cleaned() {
        let root = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::open(root.path()).unwrap();
        let workspace = workspaces.empty().unwrap();
        assert_eq!(clean_stale(root.path()).unwrap(), 0);
        assert!(workspace.path().exists());
    }

    #[test]
    fn what_the_dead_left_is_cleaned() {
        let root = tempfile::tempdir().unwrap();
        let left = root.path().join("1-2-3");
        fs::create_dir_all(left.join("1/deep")).unwrap();
        File::create(lock_of(&left)).unwrap();
        fs::write(root.path().join("unrelated"), "").unwrap();
        assert_eq!(clean_stale(root.path()).unwrap(), 1);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_template_around_the_workspaces_is_copied_without_them() {
        let template = tempfile::tempdir().unwrap();
        fs::write(template.path().join("file"), "x").unwrap();
        let workspaces = Workspaces::open(&template.path().join(".assize/work")).unwrap();
        let workspace = workspaces.copy_of(template.path()).unwrap();
        assert!(workspace.path().join("file").exists());
        assert!(workspace.path().join(".assize").exists());
        assert!(!workspace.path().join(".assize/work").exists());
    }

    #[test]
    fn a_kept_workspace_stays() {
        let root = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::open(&root.path().join("work")).unwrap();
        let workspace = workspaces.empty().unwrap();
        fs::write(workspace.path().join("file"), "x").unwrap();
        workspace.keep_at(&root.path().join("kept")).unwrap();
        drop(workspaces);
        assert!(root.path().join("kept/file").exists());
    }
}
