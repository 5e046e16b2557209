//! Directories of sessions for what is no work: homes, temporary files, prompts. They lie beside the workspaces, hidden from
//! other sessions, and what a killed process left is removed by the next.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{Home, Workspaces, default_root, remove_tree};
use crate::error::{Error, Result};

/// A fresh directory that only this user can enter. Removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _room: ScratchRoom,
}

/// The place of all scratch directories of this process. It goes with the last of them, so whoever makes many one after
/// another holds it.
#[derive(Debug, Clone)]
pub struct ScratchRoom(Arc<Home>);

static ROOM: Mutex<Weak<Home>> = Mutex::new(Weak::new());

impl ScratchRoom {
    /// Makes the place, or finds the one there is.
    pub fn open() -> Result<Self> {
        let mut room = ROOM.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(home) = room.upgrade() {
            return Ok(Self(home));
        }
        let home = Workspaces::open(&default_root()?)?.home;
        *room = Arc::downgrade(&home);
        Ok(Self(home))
    }
}

impl Scratch {
    /// Makes one.
    pub fn new() -> Result<Self> {
        let room = ScratchRoom::open()?;
        let path = room.0.reserve("session-");
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(Error::file("create", &path))?;
        Ok(Self { path, _room: room })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now goes with the room.
        let _ = remove_tree(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_directories_are_private_and_end_with_their_values() {
        let (one, other) = (Scratch::new().unwrap(), Scratch::new().unwrap());
        assert_ne!(one.path(), other.path());
        assert_eq!(one.path().parent(), other.path().parent());
        let path = one.path().to_owned();
        fs::write(path.join("file"), "").unwrap();
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }
}
