//! Brings stored changes onto a fresh copy of the original directory. The paths in an archive were chosen by an agent:
//! none of them may lead out of the directory, not even by way of a link stored before it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use tar::{Archive, EntryType};

use super::archive::{FILES, INDEX, Index, LONGEST_INDEX};
use super::remove_tree;
use crate::error::{Error, Result};

/// The files restored from an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// Changed files that keep their old content, because the new one was not stored.
    pub left_out: Vec<PathBuf>,
}

/// Brings a fresh copy of the original directory to the state that was stored.
pub fn restore(archive: &Path, directory: &Path) -> Result<Restored> {
    let refuse = |entry: String| Error::Archive {
        archive: archive.to_owned(),
        entry,
    };
    let read_error = || Error::file("read", archive);
    let file = File::open(archive).map_err(read_error())?;
    let mut tar = Archive::new(zstd::Decoder::new(file).map_err(read_error())?);
    let mut restoring = Restoring {
        directory,
        modes: Vec::new(),
    };
    let mut restored = Restored::default();
    for (number, entry) in tar.entries().map_err(read_error())?.enumerate() {
        let mut entry = entry.map_err(read_error())?;
        let path = entry.path().map_err(read_error())?.into_owned();
        if number == 0 {
            let index: Index = serde_json::from_reader((&mut entry).take(LONGEST_INDEX))
                .map_err(|_| refuse(INDEX.into()))?;
            restored.left_out = index.left_out();
            restoring.delete(&index.deleted()).map_err(refuse)?;
        } else {
            let relative = path
                .strip_prefix(FILES)
                .map_err(|_| refuse(path.display().to_string()))?;
            restoring
                .put(relative, &mut entry)
                .map_err(|error| match error {
                    RestoreError::Untrusted => refuse(path.display().to_string()),
                    RestoreError::Io(source) => {
                        Error::file("restore", &directory.join(relative))(source)
                    }
                })?;
        }
    }
    restoring.finish()?;
    Ok(restored)
}

enum RestoreError {
    Untrusted,
    Io(io::Error),
}

impl From<io::Error> for RestoreError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

struct Restoring<'a> {
    directory: &'a Path,
    /// Of directories; set at the end, because they may forbid writing.
    modes: Vec<(PathBuf, u32)>,
}

impl Restoring<'_> {
    /// Err names the path that must not be deleted.
    fn delete(&mut self, paths: &[PathBuf]) -> std::result::Result<(), String> {
        for path in paths {
            // Its parent may be gone already, or be something else now.
            if let Some(target) = self
                .resolve(path)
                .map_err(|Untrusted| path.display().to_string())?
            {
                let _ = remove(&target);
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        relative: &Path,
        entry: &mut tar::Entry<'_, impl Read>,
    ) -> std::result::Result<(), RestoreError> {
        if let Some(parent) = relative.parent() {
            self.make_parents(parent)?;
        }
        let target = self
            .resolve(relative)
            .ok()
            .flatten()
            .ok_or(RestoreError::Untrusted)?;
        let mode = entry.header().mode()? & 0o777;
        match entry.header().entry_type() {
            EntryType::Directory => {
                if !is_real_directory(&target) {
                    remove(&target)?;
                    fs::create_dir(&target)?;
                }
                self.modes.push((target, mode));
            }
            EntryType::Symlink => {
                let link = entry
                    .link_name()?
                    .ok_or(RestoreError::Untrusted)?
                    .into_owned();
                remove(&target)?;
                symlink(link, &target)?;
            }
            EntryType::Regular => {
                remove(&target)?;
                let mut file = File::options()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&target)?;
                io::copy(entry, &mut file)?;
                file.set_permissions(fs::Permissions::from_mode(mode))?;
            }
            _ => return Err(RestoreError::Untrusted),
        }
        Ok(())
    }

    fn make_parents(&self, parent: &Path) -> std::result::Result<(), RestoreError> {
        let mut target = self.directory.to_owned();
        for name in names(parent).map_err(|Untrusted| RestoreError::Untrusted)? {
            target.push(name);
            match fs::symlink_metadata(&target) {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => return Err(RestoreError::Untrusted),
                Err(_) => fs::create_dir(&target)?,
            }
        }
        Ok(())
    }

    /// The place of a path, reached through real directories only. `None` if one of them is missing or none.
    fn resolve(&self, relative: &Path) -> std::result::Result<Option<PathBuf>, Untrusted> {
        let names = names(relative)?;
        let (last, parents) = names.split_last().ok_or(Untrusted)?;
        let mut target = self.directory.to_owned();
        for parent in parents {
            target.push(parent);
            if !is_real_directory(&target) {
                return Ok(None);
            }
        }
        Ok(Some(target.join(last)))
    }

    fn finish(self) -> Result<()> {
        for (directory, mode) in self.modes.iter().rev() {
            let mode = fs::Permissions::from_mode(*mode);
            fs::set_permissions(directory, mode).map_err(Error::file("change", directory))?;
        }
        Ok(())
    }
}

/// A path that leaves the workspace.
struct Untrusted;

fn names(path: &Path) -> std::result::Result<Vec<&OsStr>, Untrusted> {
    let normal = |component| match component {
        Component::Normal(name) => Ok(name),
        _ => Err(Untrusted),
    };
    path.components().map(normal).collect()
}

fn is_real_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => remove_tree(path).map_err(io::Error::other),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tar::{Builder, Header};

    use super::super::{Limits, Snapshot, copy_tree, read_changes, store, store_clean};
    use super::*;

    fn original(directory: &Path) {
        fs::create_dir_all(directory.join("dir/sub")).unwrap();
        fs::write(directory.join("dir/sub/old"), "old").unwrap();
        fs::write(directory.join("same"), "same").unwrap();
        fs::write(directory.join("kind"), "a file").unwrap();
    }

    fn work(directory: &Path) {
        fs::remove_dir_all(directory.join("dir")).unwrap();
        fs::write(directory.join("dir"), "now a file").unwrap();
        fs::remove_file(directory.join("kind")).unwrap();
        fs::create_dir_all(directory.join("kind/of/deep")).unwrap();
        fs::write(directory.join("kind/of/script"), "#!/bin/sh").unwrap();
        fs::set_permissions(
            directory.join("kind/of/script"),
            fs::Permissions::from_mode(0o755),
        )
        .unwrap();
        symlink("kind/of/script", directory.join("link")).unwrap();
        fs::write(directory.join(odd_name()), "odd").unwrap();
        fs::set_permissions(directory.join("kind/of"), fs::Permissions::from_mode(0o555)).unwrap();
    }

    fn odd_name() -> &'static OsStr {
        std::os::unix::ffi::OsStrExt::from_bytes(b"odd\xff \n name")
    }

    #[test]
    fn what_is_stored_comes_back() {
        let root = tempfile::tempdir().unwrap();
        let [template, worked, again] =
            ["template", "worked", "again"].map(|name| root.path().join(name));
        let archive = root.path().join("changes.tar.zst");
        original(&template);
        copy_tree(&template, &worked).unwrap();
        let before = Snapshot::of(&worked).unwrap();
        work(&worked);
        let changes = before.changes(&worked).unwrap();
        let stored = store(&worked, &changes, &archive, Limits::default()).unwrap();
        assert!(stored.left_out.is_empty() && stored.bytes > 0);

        copy_tree(&template, &again).unwrap();
        assert_eq!(restore(&archive, &again).unwrap(), Restored::default());
        let difference = Snapshot::of(&worked).unwrap().changes(&again).unwrap();
        assert_eq!(difference, []);
        remove_tree(&worked).unwrap();
        remove_tree(&again).unwrap();
    }

    #[test]
    fn the_deleted_do_not_come_back_even_if_odd() {
        let root = tempfile::tempdir().unwrap();
        let [template, worked] = ["template", "worked"].map(|name| root.path().join(name));
        let archive = root.path().join("changes.tar.zst");
        fs::create_dir(&template).unwrap();
        fs::write(template.join(odd_name()), "").unwrap();
        copy_tree(&template, &worked).unwrap();
        let before = Snapshot::of(&worked).unwrap();
        fs::remove_file(worked.join(odd_name())).unwrap();
        store(
            &worked,
            &before.changes(&worked).unwrap(),
            &archive,
            Limits::default(),
        )
        .unwrap();
        restore(&archive, &template).unwrap();
        assert_eq!(fs::read_dir(&template).unwrap().count(), 0);
    }

    #[test]
    fn names_are_cleaned_as_contents_are() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("directory");
        fs::create_dir_all(directory.join("a hunter2 b/deep")).unwrap();
        fs::write(directory.join("a hunter2 b/deep/hunter2"), "is hunter2").unwrap();
        symlink("to/hunter2", directory.join("link")).unwrap();
        let changes = Snapshot::empty().changes(&directory).unwrap();
        let archive = root.path().join("archive.tar.zst");
        let clean = |content: Vec<u8>| {
            let text = String::from_utf8(content).unwrap();
            text.replace("hunter2", "[1]").into_bytes()
        };
        store_clean(&directory, &changes, &archive, (Limits::default(), &clean)).unwrap();
        let unpacked = zstd::decode_all(File::open(&archive).unwrap()).unwrap();
        assert!(!String::from_utf8_lossy(&unpacked).contains("hunter2"));
        let fresh = root.path().join("fresh");
        fs::create_dir(&fresh).unwrap();
        restore(&archive, &fresh).unwrap();
        let text = fs::read_to_string(fresh.join("a [1] b/deep/[1]")).unwrap();
        assert_eq!(text, "is [1]");
        assert_eq!(
            fs::read_link(fresh.join("link")).unwrap(),
            Path::new("to/[1]")
        );
    }

    /// Comparing every path with every other would take minutes.
    #[test]
    fn an_archive_of_many_files_is_read_in_time() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("directory");
        fs::create_dir(&directory).unwrap();
        for number in 0..20_000 {
            fs::write(directory.join(number.to_string()), "x").unwrap();
        }
        let changes = Snapshot::empty().changes(&directory).unwrap();
        let archive = root.path().join("archive.tar.zst");
        store(&directory, &changes, &archive, Limits::default()).unwrap();
        let began = std::time::Instant::now();
        let read = read_changes(&archive, 10).unwrap();
        assert!(
            read.iter()
                .all(|change| change.content.as_deref() == Some(b"x"))
        );
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn what_is_too_large_is_left_out_and_said() {
        let root = tempfile::tempdir().unwrap();
        let (directory, archive) = (root.path().join("dir"), root.path().join("changes.tar.zst"));
        fs::create_dir(&directory).unwrap();
        let before = Snapshot::of(&directory).unwrap();
        for (name, size) in [("a", 60), ("b", 101), ("c", 60), ("d", 40)] {
            fs::write(directory.join(name), vec![0; size]).unwrap();
        }
        let changes = before.changes(&directory).unwrap();
        let stored = store(
            &directory,
            &changes,
            &archive,
            Limits {
                file: 100,
                total: 100,
                ..Limits::default()
            },
        )
        .unwrap();
        let left_out = vec![PathBuf::from("b"), PathBuf::from("c")];
        assert_eq!((stored.bytes, &stored.left_out), (100, &left_out));
        let fresh = root.path().join("fresh");
        fs::create_dir(&fresh).unwrap();
        assert_eq!(restore(&archive, &fresh).unwrap().left_out, left_out);
        assert_eq!(fs::read_dir(&fresh).unwrap().count(), 2);
    }

    /// An archive made by hand: links first, then files, under names that the tar library itself would refuse.
    fn refused(links: &[(&str, &str)], files: &[&str], index: &str) -> bool {
        let root = tempfile::tempdir().unwrap();
        let (directory, archive) = (root.path().join("dir"), root.path().join("hostile.tar.zst"));
        fs::create_dir(&directory).unwrap();
        fs::write(root.path().join("outside"), "untouched").unwrap();
        let mut tar = Builder::new(zstd::Encoder::new(File::create(&archive).unwrap(), 1).unwrap());
        append_raw(&mut tar, INDEX, EntryType::Regular, "", index);
        for (name, target) in links {
            append_raw(&mut tar, name, EntryType::Symlink, target, "");
        }
        for name in files {
            append_raw(&mut tar, name, EntryType::Regular, "", "evil");
        }
        tar.into_inner().unwrap().finish().unwrap();
        let is_refused = matches!(restore(&archive, &directory), Err(Error::Archive { .. }));
        assert_eq!(
            fs::read_to_string(root.path().join("outside")).unwrap(),
            "untouched"
        );
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
        is_refused
    }

    fn append_raw(
        tar: &mut Builder<impl io::Write>,
        name: &str,
        kind: EntryType,
        link: &str,
        content: &str,
    ) {
        let mut header = Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_cksum();
        tar.append(&header, content.as_bytes()).unwrap();
    }

    const EMPTY: &str = r#"{"changes": []}"#;

    #[test]
    fn a_path_never_leads_outside() {
        assert!(refused(&[], &["files/../../outside"], EMPTY));
        assert!(refused(&[], &["files/../outside"], EMPTY));
        assert!(refused(&[], &["/etc/assize-outside"], EMPTY));
        assert!(refused(&[], &["outside"], EMPTY));
        assert!(refused(&[], &["files"], EMPTY));
    }

    #[test]
    fn a_link_is_never_followed() {
        assert!(refused(&[("files/up", "..")], &["files/up/outside"], EMPTY));
        assert!(refused(
            &[("files/up", "..")],
            &["files/up/new/file"],
            EMPTY
        ));
        assert!(!refused(
            &[("files/file", "../outside")],
            &["files/file"],
            EMPTY
        ));
    }

    #[test]
    fn a_deletion_never_leads_outside() {
        let delete = |path: &str| {
            let record = r#"{"kind": "deleted", "node": "file", "is_stored": false, "path": "#;
            format!(r#"{{"changes": [{record}"{path}"}}]}}"#)
        };
        assert!(refused(&[], &[], &delete("../outside")));
        assert!(refused(&[], &[], &delete("/etc/hosts")));
        assert!(refused(&[], &[], &delete("")));
        assert!(!refused(&[], &[], &delete("not/there")));
        assert!(refused(&[], &[], "no index"));
    }
}
