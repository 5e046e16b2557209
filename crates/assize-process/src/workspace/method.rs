//! The ways to give every attempt a directory of its own, and which of them work on this machine.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{namespace, overlay, remove_tree};
use crate::error::{Error, Result};

/// The way an attempt gets its view of a prepared source. The attempt sees the same files by each of them.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The first of the others that works here.
    #[default]
    Auto,
    /// An overlay mount in a namespace of this process: nothing is copied before it is changed.
    Overlay,
    /// A copy that shares its blocks with the source until they are changed.
    Reflink,
    /// A copy that is brought back to its beginning after every attempt.
    Recycle,
    /// A fresh copy for every attempt.
    Copy,
}

/// A method, and why it does not work here if it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    /// Never [`Method::Auto`].
    pub method: Method,
    /// `Err` explains what was tried and failed.
    pub works: Result<(), String>,
}

impl Method {
    /// As written in suites.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Overlay => "overlay",
            Self::Reflink => "reflink",
            Self::Recycle => "recycle",
            Self::Copy => "copy",
        }
    }

    /// In the order in which `auto` tries them. The last two always work.
    pub(super) const BEST_FIRST: [Self; 4] =
        [Self::Overlay, Self::Reflink, Self::Recycle, Self::Copy];

    /// Tries the method in `directory`, which must exist.
    pub(super) fn try_in(self, directory: &Path) -> Result<(), String> {
        match self {
            Self::Overlay if !namespace::is_private() => Err(namespace::why_not()),
            Self::Overlay => try_overlay(directory),
            Self::Reflink => try_reflink(directory),
            Self::Auto | Self::Recycle | Self::Copy => Ok(()),
        }
    }

    pub(super) fn refused(self, reason: String) -> Error {
        Error::Method {
            method: self.as_str(),
            reason,
        }
    }
}

/// All methods with what works in workspaces below `root`. Overlays are tried in a process of their own, so that this one
/// keeps its namespaces.
pub fn survey(root: &Path) -> Vec<Availability> {
    let works = |method: Method| match method {
        Method::Overlay if !namespace::is_private() => namespace::probe(root),
        _ => method.try_in(root),
    };
    Method::BEST_FIRST
        .into_iter()
        .map(|method| Availability {
            method,
            works: works(method),
        })
        .collect()
}

/// Mounts, reads, deletes and replaces in a small overlay: some filesystems take the mount and not the rest.
pub(super) fn try_overlay(directory: &Path) -> Result<(), String> {
    let place = directory.join(format!("probe-overlay-{}", std::process::id()));
    let tried = overlay_works(&place).map_err(|error| error.to_string());
    let _ = remove_tree(&place);
    tried
}

fn overlay_works(place: &Path) -> io::Result<()> {
    let [lower, upper, work, view] =
        ["lower", "upper", "work", "view"].map(|name| place.join(name));
    for path in [
        &lower.join("full"),
        &lower.join("empty"),
        &upper,
        &work,
        &view,
    ] {
        fs::create_dir_all(path)?;
    }
    fs::write(lower.join("full/file"), "x")?;
    let mount = overlay::Mount::new(&[&lower], &upper, &work, &view)?;
    let works = || {
        fs::remove_file(view.join("full/file"))?;
        fs::remove_dir(view.join("empty"))?;
        fs::create_dir(view.join("empty"))?;
        fs::write(view.join("empty/file"), "x")?;
        let has_whiteout = fs::symlink_metadata(upper.join("full/file"))
            .is_ok_and(|found| found.file_type().is_char_device() && found.rdev() == 0);
        match has_whiteout && overlay::is_replaced(&upper.join("empty"))? {
            true => Ok(()),
            false => Err(io::Error::other(
                "deletions leave no mark in the upper layer",
            )),
        }
    };
    let works = works();
    drop(mount);
    works
}

fn try_reflink(directory: &Path) -> Result<(), String> {
    let name = |end: &str| directory.join(format!("probe-reflink-{}-{end}", std::process::id()));
    let (from, to) = (name("from"), name("to"));
    let tried = fs::write(&from, vec![1; 4096]).and_then(|()| clone_file(&from, &to));
    let _ = fs::remove_file(&from);
    let _ = fs::remove_file(&to);
    match tried {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("files cannot share blocks: {error}")),
    }
}

/// Makes `to` share the blocks of `from`, and take its mode.
pub(super) fn clone_file(from: &Path, to: &Path) -> io::Result<u64> {
    let source = File::open(from)?;
    let metadata = source.metadata()?;
    let target = File::options().write(true).create_new(true).open(to)?;
    share_blocks(&source, &target)?;
    target.set_permissions(metadata.permissions())?;
    Ok(metadata.len())
}

#[cfg(target_os = "linux")]
fn share_blocks(source: &File, target: &File) -> io::Result<()> {
    // An empty file has no blocks, and some filesystems refuse to clone none.
    if source.metadata()?.len() == 0 {
        return Ok(());
    }
    Ok(rustix::fs::ioctl_ficlone(target, source)?)
}

#[cfg(not(target_os = "linux"))]
fn share_blocks(_: &File, _: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
