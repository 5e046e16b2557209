//! Overlay mounts: a view of read-only layers with an upper one that takes every change. Changes are read from the
//! upper layer, so that the cost follows the changes and not the size of the source.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::look::Look;
use super::snapshot::{Entry, NewFiles, Node, Snapshot};
use crate::error::{Error, Result};

/// A mounted view. Unmounted when dropped.
#[derive(Debug)]
pub(super) struct Mount {
    view: PathBuf,
}

/// The state of paths that may differ from a snapshot: what is there now, `None` for what is gone.
pub(super) type Touched = BTreeMap<PathBuf, Option<Entry>>;

impl Mount {
    /// Mounts `layers`, the topmost first, below `upper`.
    pub(super) fn new(
        layers: &[&Path],
        upper: &Path,
        work: &Path,
        view: &Path,
    ) -> io::Result<Self> {
        let layers = layers.iter().map(|layer| plain(layer));
        let layers = layers.collect::<io::Result<Vec<_>>>()?.join(":");
        let places = format!(
            "lowerdir={layers},upperdir={},workdir={}",
            plain(upper)?,
            plain(work)?
        );
        // Renamed directories need trusted attributes, which a user namespace may not write.
        let options = match nix::unistd::geteuid().is_root() {
            true => "redirect_dir=on,index=off,metacopy=off",
            false => "userxattr",
        };
        // Nothing in a workspace has to survive the machine, so nothing is flushed, above all not when it is unmounted.
        let fast = format!("{places},{options},volatile");
        mount(view, &fast).or_else(|error| match error.kind() {
            io::ErrorKind::InvalidInput => mount(view, &format!("{places},{options}")),
            _ => Err(error),
        })?;
        Ok(Self {
            view: view.to_owned(),
        })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        unmount(&self.view);
    }
}

/// A layer that is mounted over itself read-only, so that no attempt changes the beginning of the next by accident.
#[derive(Debug)]
pub(super) struct Sealed {
    place: PathBuf,
}

impl Sealed {
    /// Seals `place`. Layers that cannot be sealed serve as well.
    pub(super) fn new(place: &Path) -> Option<Self> {
        seal(place).ok()?;
        Some(Self {
            place: place.to_owned(),
        })
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        unmount(&self.place);
    }
}

/// Reads from the upper layer what may differ from `start`. Metadata and content are taken from `view`, which shows the
/// same tree as the program saw it.
pub(super) fn touched(
    start: &Snapshot,
    upper: &Path,
    view: &Path,
    (new_files, look): (NewFiles, &Look<'_>),
) -> Result<Touched> {
    let mut looking = Looking {
        start,
        new_files,
        look,
        upper,
        view,
        touched: Touched::new(),
    };
    match fs::symlink_metadata(upper) {
        Err(_) => {}
        Ok(_) if is_replaced(upper).map_err(Error::file("read", upper))? => {
            looking.replace(Path::new(""));
        }
        Ok(_) => looking.walk(),
    }
    Ok(looking.touched)
}

struct Looking<'a> {
    start: &'a Snapshot,
    new_files: NewFiles,
    look: &'a Look<'a>,
    upper: &'a Path,
    view: &'a Path,
    touched: Touched,
}

impl Looking<'_> {
    fn walk(&mut self) {
        let mut waiting = vec![PathBuf::new()];
        while let Some(directory) = waiting.pop() {
            // An agent may have left directories that cannot be entered; they are passed over as everywhere.
            let found = fs::read_dir(self.upper.join(&directory));
            for found in found.into_iter().flatten().flatten() {
                if !self.look.goes_on() {
                    return;
                }
                let path = directory.join(found.file_name());
                let Ok(metadata) = fs::symlink_metadata(found.path()) else {
                    continue;
                };
                if !metadata.is_dir() {
                    self.forget(&path);
                    if !is_whiteout(&metadata) {
                        self.note(&path);
                    }
                } else if self.was_directory(&path) && !is_replaced(&found.path()).unwrap_or(true) {
                    self.note(&path);
                    waiting.push(path);
                } else {
                    self.replace(&path);
                }
            }
        }
    }

    fn was_directory(&self, path: &Path) -> bool {
        let entry = self.start.entry(path);
        entry.is_some_and(|entry| entry.node == Node::Directory)
    }

    /// Everything that was at `path` or below it counts as gone until it is found.
    fn forget(&mut self, path: &Path) {
        for (gone, _) in self.start.below(path) {
            self.touched.insert(gone.clone(), None);
        }
    }

    fn note(&mut self, path: &Path) {
        let place = self.view.join(path);
        let entry = self
            .start
            .look_again(path, &place, self.new_files, self.look);
        if entry.is_some() || self.start.entry(path).is_some() {
            self.touched.insert(path.to_owned(), entry);
        }
    }

    /// A directory that is new, or came from elsewhere: nothing of what was in it shows through.
    fn replace(&mut self, path: &Path) {
        self.forget(path);
        if !path.as_os_str().is_empty() {
            self.note(path);
        }
        let below = self
            .start
            .walk_again(self.view, path, self.new_files, self.look);
        // It may be locked; then nothing below it is known, as in every other directory.
        for (below, entry) in below.unwrap_or_default() {
            self.touched.insert(below, Some(entry));
        }
    }
}

/// True when a directory of an upper layer hides what is below it, or shows another place of the lower layer.
pub(super) fn is_replaced(directory: &Path) -> io::Result<bool> {
    let prefix = match nix::unistd::geteuid().is_root() {
        true => "trusted",
        false => "user",
    };
    Ok(
        has_attribute(directory, &format!("{prefix}.overlay.opaque"))?
            || has_attribute(directory, &format!("{prefix}.overlay.redirect"))?,
    )
}

fn is_whiteout(metadata: &Metadata) -> bool {
    metadata.file_type().is_char_device() && metadata.rdev() == 0
}

/// The options of a mount are one string, so some characters cannot be part of a path.
fn plain(path: &Path) -> io::Result<&str> {
    path.to_str()
        .filter(|path| !path.contains([',', ':', '\\', '"']))
        .ok_or_else(|| {
            let path = path.display();
            io::Error::other(format!("the path `{path}` cannot be part of a mount"))
        })
}

#[cfg(target_os = "linux")]
fn has_attribute(path: &Path, name: &str) -> io::Result<bool> {
    use rustix::io::Errno;

    match rustix::fs::lgetxattr(path, name, &mut [0_u8; 0][..]) {
        Ok(_) => Ok(true),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(target_os = "linux")]
fn mount(view: &Path, options: &str) -> io::Result<()> {
    use nix::mount::MsFlags;

    let kind = Some("overlay");
    Ok(nix::mount::mount(
        kind,
        view,
        kind,
        MsFlags::empty(),
        Some(options),
    )?)
}

#[cfg(target_os = "linux")]
fn seal(place: &Path) -> io::Result<()> {
    use nix::mount::{MsFlags, mount};

    mount(
        Some(place),
        place,
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    )?;
    // Flags that a user namespace inherited may not be cleared, so they are repeated.
    let inherited = nix::sys::statvfs::statvfs(place)?.flags();
    let pairs = [
        (nix::sys::statvfs::FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (nix::sys::statvfs::FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (nix::sys::statvfs::FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (nix::sys::statvfs::FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (
            nix::sys::statvfs::FsFlags::ST_RELATIME,
            MsFlags::MS_RELATIME,
        ),
    ];
    let kept = pairs
        .iter()
        .filter(|(found, _)| inherited.contains(*found))
        .fold(MsFlags::empty(), |flags, (_, flag)| flags | *flag);
    let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | kept;
    let sealed = mount(None::<&str>, place, None::<&str>, flags, None::<&str>);
    if sealed.is_err() {
        unmount(place);
    }
    Ok(sealed?)
}

/// At once, or as soon as the last process that is still in it has ended.
#[cfg(target_os = "linux")]
fn unmount(view: &Path) {
    use nix::mount::{MntFlags, umount2};

    let nofollow = MntFlags::UMOUNT_NOFOLLOW;
    let _ = umount2(view, nofollow).or_else(|_| umount2(view, nofollow | MntFlags::MNT_DETACH));
}

#[cfg(not(target_os = "linux"))]
fn has_attribute(_: &Path, _: &str) -> io::Result<bool> {
    Ok(false)
}

#[cfg(not(target_os = "linux"))]
fn mount(_: &Path, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn seal(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn unmount(_: &Path) {}
