//! Files and directories that only this user may read: they hold whatever agents wrote.

use assize_engine::store::RunDirectory;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// An empty file that is this user's alone.
pub(crate) fn file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

/// A directory that is this user's alone, and those above it that are not there yet.
pub(crate) fn directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// True for a place inside a run's directory, where everything is private.
pub(crate) fn is_in_run(path: &Path) -> bool {
    path.ancestors().skip(1).take(4).any(RunDirectory::is_run)
}
