//! Copying a directory: files share their blocks where the filesystem can (the system's copy clones them on btrfs, XFS
//! and APFS), never their inode. Symbolic links stay what they are.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;

use super::attributes;
use super::look::{copy_sparse, is_sparse};
use super::method::clone_file;
use crate::error::{Error, Result};

/// The content of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// Files and symbolic links.
    pub files: u64,
    /// Bytes in files.
    pub bytes: u64,
    /// Sockets, pipes and devices, which are not copied; relative.
    pub skipped: Vec<PathBuf>,
}

/// Copies a directory to a place that does not exist yet, with modes and times.
pub fn copy_tree(from: &Path, to: &Path) -> Result<Copied> {
    copy_tree_unless(from, to, Copier::default(), |_, metadata| {
        is_same(metadata, to)
    })
}

/// The same with owners and attributes, as in the copies of what was prepared: set-up commands may have given them.
pub(super) fn copy_whole_tree(from: &Path, to: &Path, content: Content) -> Result<Copied> {
    copy_tree_unless(from, to, Copier::of_whole(content), |_, metadata| {
        is_same(metadata, to)
    })
}

/// The way a file's content gets into its copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Content {
    /// The system copies, and shares blocks if it likes to.
    #[default]
    Copied,
    /// Blocks are shared; an error where that is impossible.
    Shared,
}

/// True for what Assize keeps beside people's files: results of other trials, which an agent must not see, and which change while it works.
pub(super) fn is_kept_apart(relative: &Path) -> bool {
    const KEPT: [&str; 3] = ["runs", "recordings", "submissions"];
    let parts: Vec<&OsStr> = relative.iter().collect();
    let mut pairs = parts.windows(2);
    pairs.any(|pair| pair[0] == ".assize" && KEPT.iter().any(|kept| pair[1] == *kept))
}

/// Copies what people have prepared: without `without`, which may hold the destination, and without what Assize keeps beside it.
pub(super) fn copy_template(from: &Path, to: &Path, without: &Path) -> Result<Copied> {
    copy_tree_unless(from, to, Copier::default(), |relative, metadata| {
        is_same(metadata, without) || is_kept_apart(relative)
    })
}

fn copy_tree_unless(
    from: &Path,
    to: &Path,
    mut copier: Copier,
    is_left_out: impl Fn(&Path, &Metadata) -> bool,
) -> Result<Copied> {
    fs::read_dir(from).map_err(Error::file("read", from))?;
    let mut directories = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(relative) = waiting.pop() {
        let source = from.join(&relative);
        let metadata = fs::metadata(&source).map_err(Error::file("read", &source))?;
        if !relative.as_os_str().is_empty() && is_left_out(&relative, &metadata) {
            continue;
        }
        let target = to.join(&relative);
        fs::create_dir(&target).map_err(Error::file("create", &target))?;
        for entry in fs::read_dir(&source).map_err(Error::file("read", &source))? {
            let entry = entry.map_err(Error::file("read", &source))?;
            let relative = relative.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(relative);
            } else {
                copier.copy_node(&entry.path(), &to.join(&relative), &relative)?;
            }
        }
        directories.push((source, target, metadata));
    }
    // Last, because nothing can be put into a read-only directory; children before parents, for the times.
    for (source, directory, metadata) in directories.into_iter().rev() {
        if copier.is_whole {
            copy_rights(&source, &metadata, &directory)?;
        }
        copy_mode_and_times(&metadata, &directory)?;
    }
    Ok(copier.copied)
}

/// Makes a directory look as old, and as open, as another.
pub(super) fn copy_mode_and_times(metadata: &Metadata, directory: &Path) -> Result<()> {
    fs::set_permissions(directory, metadata.permissions())
        .map_err(Error::file("change", directory))?;
    copy_times(metadata, directory).map_err(Error::file("change", directory))
}

/// Gives a copy the owner and the attributes of its original.
pub(super) fn copy_rights(source: &Path, metadata: &Metadata, target: &Path) -> Result<()> {
    attributes::copy_owner(metadata, target)
        .and_then(|()| attributes::copy_attributes(source, target))
        .map_err(Error::file("change", target))
}

/// Copies what is no directory.
#[derive(Default)]
pub(super) struct Copier {
    content: Content,
    /// With owners and attributes.
    is_whole: bool,
    copied: Copied,
}

impl Copier {
    pub(super) fn of_whole(content: Content) -> Self {
        Self {
            content,
            is_whole: true,
            copied: Copied::default(),
        }
    }

    /// Copies a file or link to a place where nothing is, with mode and times.
    pub(super) fn copy_node(
        &mut self,
        source: &Path,
        target: &Path,
        relative: &Path,
    ) -> Result<()> {
        let metadata = fs::symlink_metadata(source).map_err(Error::file("read", source))?;
        if metadata.is_file() {
            let copied = match self.content {
                Content::Copied if is_sparse(&metadata) => copy_sparse(source, target),
                Content::Copied => fs::copy(source, target),
                Content::Shared => clone_file(source, target),
            };
            self.copied.bytes += copied.map_err(Error::file("copy", source))?;
        } else if metadata.is_symlink() {
            let destination = fs::read_link(source).map_err(Error::file("read", source))?;
            symlink(destination, target).map_err(Error::file("create", target))?;
        } else {
            self.copied.skipped.push(relative.to_owned());
            return Ok(());
        }
        self.copied.files += 1;
        if self.is_whole {
            copy_rights(source, &metadata, target)?;
        }
        copy_times(&metadata, target).map_err(Error::file("change", target))
    }
}

/// Build tools compare times; a copy that looks newer than the original would be built anew.
fn copy_times(metadata: &Metadata, target: &Path) -> io::Result<()> {
    let accessed = TimeSpec::new(metadata.atime(), metadata.atime_nsec());
    let modified = TimeSpec::new(metadata.mtime(), metadata.mtime_nsec());
    Ok(utimensat(
        AT_FDCWD,
        target,
        &accessed,
        &modified,
        UtimensatFlags::NoFollowSymlink,
    )?)
}

fn is_same(metadata: &Metadata, other: &Path) -> bool {
    fs::metadata(other)
        .is_ok_and(|other| (other.dev(), other.ino()) == (metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_copy_is_complete_and_apart() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        fs::create_dir_all(from.join("dir/empty")).unwrap();
        fs::write(from.join("dir/script"), "#!/bin/sh").unwrap();
        fs::set_permissions(from.join("dir/script"), fs::Permissions::from_mode(0o555)).unwrap();
        fs::hard_link(from.join("dir/script"), from.join("twin")).unwrap();
        symlink("/etc/passwd", from.join("link")).unwrap();
        let _listener = UnixListener::bind(from.join("socket")).unwrap();
        fs::set_permissions(from.join("dir"), fs::Permissions::from_mode(0o555)).unwrap();

        let copied = copy_tree(&from, &to).unwrap();
        assert_eq!(
            copied,
            Copied {
                files: 3,
                bytes: 18,
                skipped: vec!["socket".into()]
            }
        );
        assert!(to.join("dir/empty").is_dir());
        assert_eq!(
            fs::read_link(to.join("link")).unwrap(),
            Path::new("/etc/passwd")
        );
        for path in ["dir", "dir/script", "twin"] {
            let (old, new) = (
                fs::metadata(from.join(path)).unwrap(),
                fs::metadata(to.join(path)).unwrap(),
            );
            assert_eq!(
                (old.mode(), old.mtime_nsec()),
                (new.mode(), new.mtime_nsec()),
                "{path}"
            );
        }
        assert_eq!(fs::metadata(to.join("twin")).unwrap().nlink(), 1);
        super::super::remove_tree(&from).unwrap();
    }

    #[test]
    fn a_missing_template_is_said() {
        let root = tempfile::tempdir().unwrap();
        let error = copy_tree(&root.path().join("nothing"), &root.path().join("to")).unwrap_err();
        assert!(error.to_string().ends_with("nothing`"), "{error}");
    }
}
