//! Directories for programs to work in: sources that are prepared once, a fresh view for every attempt, what was changed
//! in it, and the removal of it all even after a crash.
//!
//! Everything here blocks on the disk, except what is `async`; call it from a blocking task where that matters.

mod archive;
mod attributes;
mod copy;
mod git;
mod layer;
mod look;
mod mention;
mod method;
mod namespace;
mod overlay;
mod recycle;
mod remove;
mod restore;
mod scratch;
mod snapshot;
mod view;

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};

pub use archive::{Clean, Limits, Stored, StoredChange, read_changes, store, store_clean};
pub use copy::{Copied, copy_tree};
pub use layer::{Draft, Layer};
pub use look::LeftOut;
pub use method::{Availability, Method, survey};
pub use namespace::enter as enter_namespace;
pub(crate) use namespace::{PROBE, answer_probe};
pub use remove::remove_tree;
pub use restore::{Restored, restore};
pub(crate) use scratch::note_survivor;
pub use scratch::{Scratch, ScratchRoom};
pub use snapshot::{Change, ChangeKind, Looked, Node, Snapshot};
pub use view::Workspace;

/// The name of every workspace in a directory of its own, so that an agent may remove or replace it whatever is behind it.
const WORKSPACE: &str = "workspace";

/// The workspaces of this process: a directory below a shared root, removed when the last of its layers is gone. A lock
/// beside it shows others that its owner lives; the system releases it however the owner ends.
#[derive(Debug)]
pub struct Workspaces {
    home: Arc<Home>,
}

/// The directory of this process.
#[derive(Debug)]
struct Home {
    root: PathBuf,
    directory: PathBuf,
    lock_path: PathBuf,
    lock: File,
    next: AtomicU32,
    /// The method that `auto` selects here.
    best: OnceLock<Method>,
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
            // Another process cleaning up may have taken it for stale in this very moment; then the next name is as good.
            if lock.try_lock().is_ok() && is_same_file(&lock, &lock_path) {
                fs::create_dir(&directory).map_err(Error::file("create", &directory))?;
                let home = Arc::new(Home {
                    root,
                    directory,
                    lock_path,
                    lock,
                    next: AtomicU32::new(1),
                    best: OnceLock::new(),
                });
                return Ok(Self { home });
            }
        }
    }

    /// An empty workspace.
    pub fn empty(&self) -> Result<Workspace> {
        let place = self.home.reserve("");
        let path = place.join(WORKSPACE);
        fs::create_dir_all(&path).map_err(Error::file("create", &path))?;
        let start = Arc::new(Snapshot::empty());
        Ok(Workspace::new(place, start, view::View::Plain))
    }

    /// An empty directory to prepare.
    pub fn blank(&self) -> Result<Draft> {
        let draft = Draft::new(&self.home)?;
        fs::create_dir(draft.path()).map_err(Error::file("create", draft.path()))?;
        Ok(draft)
    }

    /// A copy of `template` to prepare. If the workspaces lie inside the template, they are left out.
    pub fn copy_of(&self, template: &Path) -> Result<Draft> {
        let mut draft = Draft::new(&self.home)?;
        draft.copy_from(template)?;
        Ok(draft)
    }

    /// A git repository to prepare, with one commit of a local one: no history, no other branches (a later commit may
    /// hold the solution), no remote. Submodules and large files kept elsewhere are not fetched.
    pub async fn checkout(&self, repository: &Path, revision: &str) -> Result<Draft> {
        let mut draft = Draft::new(&self.home)?;
        draft.check_out(repository, revision).await?;
        Ok(draft)
    }

    /// The method that `wanted` comes to here. An error if it does not work.
    pub fn choose(&self, wanted: Method) -> Result<Method> {
        self.home.choose(wanted)
    }
}

impl Home {
    /// A name that nothing had; nothing of that name exists yet.
    fn reserve(&self, kind: &str) -> PathBuf {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.directory.join(format!("{kind}{number}"))
    }

    fn choose(&self, wanted: Method) -> Result<Method> {
        let works = |method: &Method| method.try_in(&self.directory).is_ok();
        let best = || {
            let best = Method::BEST_FIRST.into_iter().find(works);
            best.unwrap_or(Method::Copy)
        };
        if wanted == Method::Auto {
            return Ok(*self.best.get_or_init(best));
        }
        if self.best.get() != Some(&wanted) {
            let tried = wanted.try_in(&self.directory);
            tried.map_err(|reason| wanted.refused(reason))?;
        }
        Ok(wanted)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A directory that cannot be removed now stays with an unlocked lock, and the next start tries again.
        if remove_tree(&self.directory).is_ok() {
            let _ = fs::remove_file(&self.lock_path);
        }
        let _ = self.lock.unlock();
    }
}

/// Removes the place of an attempt, whose name nothing will have again.
fn remove_place(place: &Path) -> Result<()> {
    remove_tree(place)?;
    #[cfg(target_os = "linux")]
    crate::fence::note_removed(place);
    Ok(())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| {
        let source = io::Error::other(panic);
        Err(Error::file("prepare", Path::new(WORKSPACE))(source))
    })
}

/// The default directory of workspaces: below the directory for temporary files, in one that is this
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
        let source = io::Error::new(ErrorKind::PermissionDenied, "it belongs to another user");
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

/// Removes one workspace directory if it is stale. Returns whether it was.
fn clean_one(lock_path: &Path) -> Result<bool> {
    // Another process may be cleaning as well.
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
        let draft = workspaces.copy_of(template.path()).unwrap();
        assert!(draft.path().join("file").exists());
        assert!(draft.path().join(".assize").exists());
        assert!(!draft.path().join(".assize/work").exists());
    }

    #[test]
    fn runs_beside_a_template_are_not_copied_and_do_not_count() {
        let template = tempfile::tempdir().unwrap();
        let run = template.path().join(".assize/runs/1");
        fs::create_dir_all(&run).unwrap();
        fs::create_dir(template.path().join("runs")).unwrap();
        fs::write(template.path().join("runs/file"), "x").unwrap();
        fs::write(template.path().join(".assize/note"), "x").unwrap();
        let before = Snapshot::of_source(template.path()).unwrap().fingerprint();
        fs::write(run.join("row"), "{}").unwrap();
        let after = Snapshot::of_source(template.path()).unwrap().fingerprint();
        assert_eq!(before, after);
        let root = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::open(root.path()).unwrap();
        let draft = workspaces.copy_of(template.path()).unwrap();
        assert!(draft.path().join("runs/file").exists());
        assert!(draft.path().join(".assize/note").exists());
        assert!(!draft.path().join(".assize/runs").exists());
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
