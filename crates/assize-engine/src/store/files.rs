//! Files that are replaced whole or grow by lines.

use super::error::{StoreError, io};
use assize_secrets::{create_private_directory, create_private_file, private_file_options};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Replaces a file so that a reader sees either the old or the new content, also after a crash.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    replace_by(path, |file| {
        file.write_all(content).map_err(io("write", path))
    })
}

/// The same with content that is written piece by piece.
pub(crate) fn replace_by(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let temporary = path.with_extension("tmp");
    let file = fill(&temporary, path, write)?;
    file.sync_data().map_err(io("write", path))?;
    std::fs::rename(&temporary, path).map_err(io("replace", path))?;
    sync_directory(path.parent().unwrap_or(Path::new(".")))
}

/// The same for a file that can be made again: it may be lost in a crash, but is never half of one.
pub(crate) fn replace_quickly(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    // Several readers of a run may do it at once.
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let filled = fill(&temporary, path, write)
        .and_then(|_| std::fs::rename(&temporary, path).map_err(io("replace", path)));
    if filled.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    filled
}

fn fill(
    temporary: &Path,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), StoreError>,
) -> Result<File, StoreError> {
    let file = create(temporary)?;
    let mut buffered = BufWriter::new(file);
    write(&mut buffered)?;
    buffered
        .into_inner()
        .map_err(|error| io("write", path)(error.into_error()))
}

/// Makes a directory that only this user may look into, and those above it.
pub(crate) fn create_directory(path: &Path) -> Result<(), StoreError> {
    create_private_directory(path).map_err(io("create", path))
}

/// Makes an empty file that only this user may read.
pub(crate) fn create(path: &Path) -> Result<File, StoreError> {
    create_private_file(path).map_err(io("create", path))
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(io("write", path))
}

/// A file that only grows. Created when the first bytes come.
pub(crate) struct AppendFile {
    path: PathBuf,
    file: Option<File>,
    length: u64,
    dirty: bool,
}

impl AppendFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        let length = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        Self {
            path,
            file: None,
            length,
            dirty: false,
        }
    }

    /// The offset of the next bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.open()?,
        };
        let written = file.write_all(bytes).map_err(io("write", &self.path));
        self.file = Some(file);
        written?;
        self.length += bytes.len() as u64;
        self.dirty = true;
        Ok(())
    }

    /// Makes everything appended so far durable.
    pub(crate) fn sync(&mut self) -> Result<(), StoreError> {
        if let (true, Some(file)) = (self.dirty, &self.file) {
            file.sync_data().map_err(io("write", &self.path))?;
            self.dirty = false;
        }
        Ok(())
    }

    fn open(&self) -> Result<File, StoreError> {
        let is_new = !self.path.exists();
        let file = private_file_options()
            .create(true)
            .append(true)
            .open(&self.path)
            .map_err(io("create", &self.path))?;
        if is_new {
            sync_directory(self.path.parent().unwrap_or(Path::new(".")))?;
        }
        Ok(file)
    }
}
