//! A source that is prepared once and serves many attempts: each gets a view of it that is its own to change.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::copy::{Content, Copier, copy_mode_and_times, copy_template, copy_whole_tree};
use super::look::Look;
use super::overlay::{Mount, Sealed};
use super::recycle::Slot;
use super::snapshot::NewFiles;
use super::view::View;
use super::{Home, Method, Snapshot, WORKSPACE, Workspace, git, mention, remove_tree};
use crate::error::{Error, Result};

/// A directory that becomes a [`Layer`]. Commands may still be run in it. Removed when dropped.
#[derive(Debug)]
pub struct Draft {
    home: Arc<Home>,
    place: PathBuf,
    path: PathBuf,
    is_checkout: bool,
    /// Files that were not copied: sockets, pipes and devices, relative to the directory copied from.
    pub skipped: Vec<PathBuf>,
}

/// A prepared source. Removed when the last view of it is gone.
#[derive(Debug)]
pub struct Layer {
    draft: Draft,
    start: Arc<Snapshot>,
    method: Method,
    /// Copies that wait for their next attempt.
    free: Mutex<Vec<Slot>>,
    /// Dropped before the directory is removed.
    sealed: Mutex<Option<Sealed>>,
}

impl Draft {
    /// An empty one.
    pub(super) fn new(home: &Arc<Home>) -> Result<Self> {
        let place = home.reserve("layer-");
        let path = place.join(WORKSPACE);
        fs::create_dir(&place).map_err(Error::file("create", &place))?;
        Ok(Self {
            home: Arc::clone(home),
            place,
            path,
            is_checkout: false,
            skipped: Vec::new(),
        })
    }

    pub(super) fn copy_from(&mut self, template: &Path) -> Result<()> {
        let without = &self.home.root;
        let copied = copy_template(template, &self.path, without)?;
        self.skipped = copied.skipped;
        Ok(())
    }

    pub(super) async fn check_out(&mut self, repository: &Path, revision: &str) -> Result<()> {
        fs::create_dir(&self.path).map_err(Error::file("create", &self.path))?;
        self.is_checkout = true;
        git::checkout(repository, revision, &self.path).await
    }

    /// The directory with the source, a plain one.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file or link that holds the path of the draft: views lie elsewhere, so it would lead them astray.
    pub fn mention_of_itself(&self) -> Result<Option<PathBuf>> {
        mention::find(&self.path, self.place.as_os_str().as_encoded_bytes())
    }

    /// Reads what it holds. From here on it must not be changed any more.
    pub fn into_layer(self, method: Method) -> Result<Layer> {
        let method = self.home.choose(method)?;
        let start = Arc::new(self.snapshot()?);
        let is_overlay = method == Method::Overlay;
        let sealed = is_overlay.then(|| Sealed::new(&self.place)).flatten();
        Ok(Layer {
            draft: self,
            start,
            method,
            free: Mutex::default(),
            sealed: Mutex::new(sealed),
        })
    }

    /// The content. Files with several names are parted: what is written to one of them would show under the others in some views and
    /// not in all.
    fn snapshot(&self) -> Result<Snapshot> {
        let linked = RefCell::new(Vec::new());
        let start = Snapshot::of_each(&self.path, |relative, metadata| {
            if metadata.is_file() && metadata.nlink() > 1 {
                linked.borrow_mut().push(relative.to_owned());
            }
        })?;
        let linked = linked.into_inner();
        if linked.is_empty() {
            return Ok(start);
        }
        let mut directories = BTreeMap::new();
        for relative in &linked {
            let path = self.path.join(relative);
            if let Some(parent) = path.parent() {
                let metadata = fs::metadata(parent).map_err(Error::file("read", parent))?;
                directories.entry(parent.to_owned()).or_insert(metadata);
            }
            self.part(&path, relative)?;
        }
        for (directory, metadata) in &directories {
            copy_mode_and_times(metadata, directory)?;
        }
        // What was parted has other times and inodes.
        Snapshot::of(&self.path)
    }

    /// Puts a copy in the place of a file that has further names.
    fn part(&self, path: &Path, relative: &Path) -> Result<()> {
        let metadata = fs::symlink_metadata(path).map_err(Error::file("read", path))?;
        if metadata.nlink() == 1 {
            return Ok(());
        }
        let copy = self.place.join("parted");
        Copier::of_whole(Content::Copied).copy_node(path, &copy, relative)?;
        fs::rename(&copy, path).map_err(Error::file("replace", path))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = remove_tree(&self.place);
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        for slot in lock(&self.free).drain(..) {
            let _ = remove_tree(&slot.place);
        }
        *lock(&self.sealed) = None;
    }
}

impl Layer {
    /// The method by which views of it are made; never [`Method::Auto`].
    pub fn method(&self) -> Method {
        self.method
    }

    /// The content of every view at its beginning.
    pub fn start(&self) -> &Snapshot {
        &self.start
    }

    /// Makes a view that is one attempt's own. Blocks on the disk for everything but overlays.
    pub async fn view(self: &Arc<Self>) -> Result<Workspace> {
        let layer = Arc::clone(self);
        let (mut workspace, is_stale) = super::blocking(move || layer.make_view()).await?;
        if is_stale {
            // Git keeps inodes of the files it knows; without this, commands that trust them would see changes.
            git::refresh(&workspace.path).await;
            let layer = Arc::clone(self);
            workspace = super::blocking(move || layer.refreshed(workspace)).await?;
        }
        Ok(workspace)
    }

    /// The view, and whether git must look at its files again.
    fn make_view(self: &Arc<Self>) -> Result<(Workspace, bool)> {
        let home = &self.draft.home;
        let place = home.reserve("");
        match self.method {
            Method::Overlay => self.overlay(place).map(|workspace| (workspace, false)),
            Method::Recycle => {
                if let Some(mut slot) = lock(&self.free).pop() {
                    slot.move_to(&place)?;
                    let is_stale = slot.is_stale && self.draft.is_checkout;
                    return Ok((self.recycled(slot), is_stale));
                }
                let start = self.copy(&place, Content::Copied)?;
                let slot = Slot::new(place, start)?;
                Ok((self.recycled(slot), self.draft.is_checkout))
            }
            Method::Reflink => self.copied(place, Content::Shared),
            Method::Copy | Method::Auto => self.copied(place, Content::Copied),
        }
    }

    fn overlay(self: &Arc<Self>, place: PathBuf) -> Result<Workspace> {
        let overlay = Overlay::mount(self, &place)?;
        let start = Arc::clone(&self.start);
        Ok(Workspace::new(place, start, View::Overlay(overlay)))
    }

    fn recycled(self: &Arc<Self>, slot: Slot) -> Workspace {
        let (place, start) = (slot.place.clone(), Arc::clone(&slot.start));
        let layer = Arc::clone(self);
        let view = View::Recycled {
            slot: Some(slot),
            layer,
        };
        Workspace::new(place, start, view)
    }

    fn copied(self: &Arc<Self>, place: PathBuf, content: Content) -> Result<(Workspace, bool)> {
        let start = self.copy(&place, content)?;
        let workspace = Workspace::new(place, start, View::Plain);
        Ok((workspace, self.draft.is_checkout))
    }

    fn copy(&self, place: &Path, content: Content) -> Result<Arc<Snapshot>> {
        fs::create_dir(place).map_err(Error::file("create", place))?;
        let target = place.join(WORKSPACE);
        let copy = || {
            copy_whole_tree(self.path(), &target, content)?;
            self.start.of_copy(&target).map(Arc::new)
        };
        copy().inspect_err(|_| drop(remove_tree(place)))
    }

    /// The workspace after git wrote its index anew.
    fn refreshed(&self, mut workspace: Workspace) -> Result<Workspace> {
        let git = workspace.path.join(".git");
        let metadata = fs::metadata(self.path().join(".git"));
        copy_mode_and_times(&metadata.map_err(Error::file("read", &git))?, &git)?;
        let index = Path::new(".git/index");
        let looked = [index, Path::new(".git")].map(|path| {
            let place = workspace.path.join(path);
            let look = Look::default();
            let looked = self.start.look_again(path, &place, NewFiles::Hashed, &look);
            (path.to_owned(), looked)
        });
        workspace.restart(looked);
        Ok(workspace)
    }

    /// The directory with the source.
    pub(super) fn path(&self) -> &Path {
        &self.draft.path
    }

    pub(super) fn place(&self) -> &Path {
        &self.draft.place
    }

    pub(super) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.start
    }

    /// Takes a copy back that is as it was at the beginning.
    pub(super) fn take_back(&self, slot: Slot) {
        lock(&self.free).push(slot);
    }
}

/// An overlay of one attempt with the directories behind it.
#[derive(Debug)]
pub(super) struct Overlay {
    /// Unmounted before anything else.
    mount: Option<Mount>,
    /// Its mount point.
    place: PathBuf,
    /// The upper layers, the last of which takes the changes.
    uppers: Vec<PathBuf>,
    layer: Arc<Layer>,
}

/// The text that a process outside of the namespace finds in place of an overlay.
const EXPLANATION: &str = "This workspace is an overlay that only programs started by Assize see. \
    A container engine or another service that has to look into it needs `workspace.method: recycle`.\n";

impl Overlay {
    fn mount(layer: &Arc<Layer>, place: &Path) -> Result<Self> {
        fs::create_dir(place).map_err(Error::file("create", place))?;
        let explained = place.join(WORKSPACE);
        fs::write(&explained, EXPLANATION).map_err(Error::file("create", &explained))?;
        let mut overlay = Self {
            mount: None,
            place: place.to_owned(),
            uppers: Vec::new(),
            layer: Arc::clone(layer),
        };
        overlay.add_upper()?;
        Ok(overlay)
    }

    /// Freezes the upper layer, if there is one, and mounts a fresh one above it.
    pub(super) fn add_upper(&mut self) -> Result<()> {
        let number = self.uppers.len();
        let beside = |what: &str| self.place.with_extension(format!("{what}-{number}"));
        let (upper, work) = (beside("upper"), beside("work"));
        for directory in [&upper, &work] {
            fs::create_dir(directory).map_err(Error::file("create", directory))?;
        }
        let metadata = fs::metadata(self.layer.place());
        let metadata = metadata.map_err(Error::file("read", self.layer.place()))?;
        copy_mode_and_times(&metadata, &upper)?;
        self.mount = None;
        let mut layers: Vec<&Path> = self.uppers.iter().rev().map(PathBuf::as_path).collect();
        layers.push(self.layer.place());
        let mounted = Mount::new(&layers, &upper, &work, &self.place);
        self.mount = Some(mounted.map_err(Error::file("mount", &self.place))?);
        self.uppers.push(upper);
        Ok(())
    }

    /// The directory that holds the changes of the workspace.
    pub(super) fn upper(&self) -> PathBuf {
        self.uppers
            .last()
            .map_or_else(PathBuf::new, |upper| upper.join(WORKSPACE))
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        self.mount = None;
        for number in 0..self.uppers.len() {
            for what in ["upper", "work"] {
                let _ = remove_tree(&self.place.with_extension(format!("{what}-{number}")));
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
