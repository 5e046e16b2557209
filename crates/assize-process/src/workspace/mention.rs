//! Finds out whether files hold a text: installers write absolute paths into scripts, caches and links.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::look::is_sparse;
use crate::error::{Error, Result};

/// Read at a time.
const PIECE: usize = 1 << 20;

/// The first file or link below `directory` that holds `text`. Unreadable files are skipped.
pub(super) fn find(directory: &Path, text: &[u8]) -> Result<Option<PathBuf>> {
    let finder = memchr::memmem::Finder::new(text);
    let mut buffer = vec![0; PIECE + text.len()];
    fs::read_dir(directory).map_err(Error::file("read", directory))?;
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let is_found = match () {
                () if kind.is_dir() => {
                    waiting.push(path.clone());
                    false
                }
                () if kind.is_symlink() => fs::read_link(&path)
                    .is_ok_and(|link| finder.find(link.as_os_str().as_encoded_bytes()).is_some()),
                () if kind.is_file() => is_in_file(&finder, &path, &mut buffer),
                () => false,
            };
            if is_found {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

fn is_in_file(finder: &memchr::memmem::Finder<'_>, path: &Path, buffer: &mut [u8]) -> bool {
    // Holes hold no text, and reading them takes long.
    let is_mostly_empty = fs::metadata(path).is_ok_and(|metadata| is_sparse(&metadata));
    let Ok(mut file) = File::open(path) else {
        return false;
    };
    if is_mostly_empty {
        return false;
    }
    // The end of every piece is kept, because the text may lie across two.
    let overlap = finder.needle().len().saturating_sub(1);
    let mut kept = 0;
    while let Ok(count @ 1..) = file.read(&mut buffer[kept..]) {
        let filled = kept + count;
        if finder.find(&buffer[..filled]).is_some() {
            return true;
        }
        kept = overlap.min(filled);
        buffer.copy_within(filled - kept..filled, 0);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &[u8], text: &[u8], expected: bool) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("dir")).unwrap();
        fs::write(root.path().join("dir/file"), content).unwrap();
        let found = find(root.path(), text).unwrap();
        assert_eq!(found.is_some(), expected);
    }

    #[test]
    fn a_text_is_found_wherever_it_lies() {
        check(b"#!/work/1/bin/python", b"/work/1", true);
        check(b"#!/usr/bin/python", b"/work/1", false);
        check(b"", b"/work/1", false);
        for start in [PIECE - 3, PIECE, PIECE + 5, 2 * PIECE + 4] {
            let mut content = vec![b'.'; start];
            content.extend(b"/work/1");
            check(&content, b"/work/1", true);
        }
    }

    #[test]
    fn a_link_is_read_and_not_followed() {
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/work/1/bin", root.path().join("link")).unwrap();
        assert!(find(root.path(), b"/work/1").unwrap().is_some());
        assert!(find(root.path(), b"/work/2").unwrap().is_none());
    }
}
