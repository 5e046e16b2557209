//! The workspace of one attempt: what it held at its beginning, what was changed since, and its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::layer::{Layer, Overlay};
use super::look::Look;
use super::overlay::touched;
use super::recycle::{self, Slot};
use super::snapshot::{Entry, NewFiles};
use super::{Change, Looked, Snapshot, WORKSPACE, copy_tree, remove_place};
use crate::error::Result;

/// One fresh directory. Removed when dropped.
#[derive(Debug)]
pub struct Workspace {
    /// The directory around it, a name that no other workspace had.
    place: PathBuf,
    pub(super) path: PathBuf,
    start: Arc<Snapshot>,
    view: View,
    /// Its place may be another attempt's by now.
    has_ended: bool,
}

/// The mechanism behind a workspace.
#[derive(Debug)]
pub(super) enum View {
    /// A directory of its own.
    Plain,
    /// Layers.
    Overlay(Overlay),
    /// A copy that serves again.
    Recycled {
        /// Absent once it must not serve again.
        slot: Option<Slot>,
        layer: Arc<Layer>,
    },
}

impl Workspace {
    pub(super) fn new(place: PathBuf, start: Arc<Snapshot>, view: View) -> Self {
        Self {
            path: place.join(WORKSPACE),
            place,
            start,
            view,
            has_ended: false,
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory around it, which nothing else uses: an agent may replace its workspace there.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Its content at the beginning.
    pub fn start(&self) -> &Arc<Snapshot> {
        &self.start
    }

    /// Takes what it holds now as its beginning, after set-up commands for example.
    pub fn settle(&mut self) -> Result<()> {
        match &mut self.view {
            View::Overlay(overlay) => {
                let (upper, start) = (overlay.upper(), &self.start);
                let look = Look::default();
                let now = touched(start, &upper, &self.path, (NewFiles::Hashed, &look))?;
                if upper.exists() {
                    overlay.add_upper()?;
                    self.start = Arc::new(start.updated(now));
                }
            }
            View::Plain | View::Recycled { .. } => {
                self.start = Arc::new(self.start.of_now(&self.path)?);
            }
        }
        Ok(())
    }

    /// The changes since its beginning, by path.
    pub fn changes(&self) -> Result<Vec<Change>> {
        self.look(&|| false).map(|looked| looked.changes)
    }

    /// The same with what was left out, because there is too much of it or because `stop` returned true.
    pub fn look(&self, stop: &dyn Fn() -> bool) -> Result<Looked> {
        match &self.view {
            View::Overlay(overlay) => {
                let (upper, look) = (overlay.upper(), Look::until(stop));
                let now = touched(&self.start, &upper, &self.path, (NewFiles::Unread, &look))?;
                let now = now.iter().map(|(path, entry)| (path, entry.as_ref()));
                Ok(Looked {
                    changes: self.start.changes_among(now),
                    left_out: look.left_out(),
                })
            }
            View::Plain | View::Recycled { .. } => self.start.look(&self.path, stop),
        }
    }

    /// Keeps it from serving again: something of the attempt may still be at work in it.
    pub fn distrust(&mut self) {
        if let View::Recycled { slot, .. } = &mut self.view {
            *slot = None;
        }
    }

    /// Notes what was done to it before its attempt begins.
    pub(super) fn restart(&mut self, now: impl IntoIterator<Item = (PathBuf, Option<Entry>)>) {
        self.start = Arc::new(self.start.updated(now));
        if let View::Recycled {
            slot: Some(slot), ..
        } = &mut self.view
        {
            slot.start = Arc::clone(&self.start);
            slot.is_stale = false;
        }
    }

    /// Removes it and says if that fails. Dropping does the same silently.
    pub fn remove(mut self) -> Result<()> {
        self.end()
    }

    /// Moves it to a place where it stays, on the same filesystem or not.
    pub fn keep_at(mut self, destination: &Path) -> Result<()> {
        self.distrust();
        if fs::rename(&self.path, destination).is_err() {
            copy_tree(&self.path, destination)?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.has_ended, true) {
            return Ok(());
        }
        match std::mem::replace(&mut self.view, View::Plain) {
            View::Plain => {}
            View::Overlay(overlay) => drop(overlay),
            View::Recycled { slot: None, .. } => {}
            View::Recycled {
                slot: Some(slot),
                layer,
            } => {
                // Else it is removed below, and the next attempt gets a fresh copy.
                self.start = Arc::new(Snapshot::empty());
                if let Ok(slot) = recycle::bring_back(slot, &layer) {
                    layer.take_back(slot);
                    return Ok(());
                }
            }
        }
        remove_place(&self.place)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // Files that cannot be removed now are removed with the directory of this process.
        let _ = self.end();
    }
}
