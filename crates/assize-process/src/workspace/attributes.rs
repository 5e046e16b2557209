//! Owners and extended attributes, access lists included: what a copied file does not bring along, and what an attempt may leave on
//! a directory that serves again.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::Path;

/// Gives a copy the owner of its original, with the mode bits that a change of owner takes away. Without root there is mostly one owner.
pub(super) fn copy_owner(original: &Metadata, copy: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(copy)?;
    let owner = |metadata: &Metadata| (metadata.uid(), metadata.gid());
    if owner(&found) == owner(original) {
        return Ok(());
    }
    let changed = lchown(copy, Some(original.uid()), Some(original.gid()));
    if changed.is_err() && !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    changed?;
    match original.is_symlink() {
        true => Ok(()),
        false => fs::set_permissions(copy, fs::Permissions::from_mode(original.mode() & 0o7777)),
    }
}

/// Gives a copy the attributes of its original, and no others.
#[cfg(target_os = "linux")]
pub(super) fn copy_attributes(original: &Path, copy: &Path) -> io::Result<()> {
    use rustix::fs::{XattrFlags, lremovexattr, lsetxattr};

    let (wanted, found) = (attributes(original)?, attributes(copy)?);
    for (name, _) in &found {
        if !wanted.iter().any(|(known, _)| known == name) {
            lremovexattr(copy, name.as_slice())?;
        }
    }
    for attribute in wanted.iter().filter(|wanted| !found.contains(wanted)) {
        let (name, value) = attribute;
        lsetxattr(copy, name.as_slice(), value, XattrFlags::empty())?;
    }
    Ok(())
}

/// True for what has no attributes, as everything that was just made.
#[cfg(target_os = "linux")]
pub(super) fn has_none(path: &Path) -> bool {
    attributes(path).is_ok_and(|attributes| attributes.is_empty())
}

/// Names and values, but for the labels that the system gives to every file.
#[cfg(target_os = "linux")]
fn attributes(path: &Path) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    use rustix::fs::{lgetxattr, lgetxattr_query, llistxattr, llistxattr_query};
    use rustix::io::Errno;

    const LABELS: [&[u8]; 4] = [
        b"security.selinux",
        b"security.SMACK64",
        b"security.ima",
        b"security.evm",
    ];
    // An empty list to fill is not a question for its size, which has a call of its own.
    let size = match llistxattr_query(path) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        size => size?,
    };
    let mut names = vec![0; size];
    let size = llistxattr(path, &mut names[..])?;
    let names = names[..size].split(|byte| *byte == 0);
    let names = names.filter(|name| !name.is_empty() && !LABELS.contains(name));
    let attribute = |name: &[u8]| {
        let mut value = vec![0; lgetxattr_query(path, name)?];
        let size = match value.is_empty() {
            true => 0,
            false => lgetxattr(path, name, &mut value[..])?,
        };
        value.truncate(size);
        Ok((name.to_owned(), value))
    };
    names.map(attribute).collect()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn copy_attributes(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn has_none(_: &Path) -> bool {
    false
}
