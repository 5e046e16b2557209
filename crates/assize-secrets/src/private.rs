//! Files and directories that only this user may open: they hold whatever agents wrote, secrets included.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use tempfile::{Builder, TempDir};

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// A temporary directory of the system. Removed with its content when it is dropped.
pub fn private_directory(prefix: &str) -> io::Result<TempDir> {
    private_directory_in(&std::env::temp_dir(), prefix)
}

/// A temporary directory in another place.
pub fn private_directory_in(parent: &Path, prefix: &str) -> io::Result<TempDir> {
    // Without this it would be as open as the umask leaves it.
    let permissions = Permissions::from_mode(DIRECTORY_MODE);
    let mut builder = Builder::new();
    builder.prefix(prefix).permissions(permissions);
    builder.tempdir_in(parent)
}

/// Creates a directory that stays, and missing ones above it. Those that exist keep their permissions.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(DIRECTORY_MODE).create(path)
}

/// Creates an empty file. One that exists is emptied and keeps its permissions.
pub fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = private_file_options();
    options.write(true).create(true).truncate(true).open(path)
}

/// Options that create private files, for those that are not emptied.
pub fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn nobody_else_may_look_in() {
        for directory in [
            private_directory("assize-x-").unwrap(),
            private_directory_in(&std::env::temp_dir(), "x").unwrap(),
        ] {
            assert_eq!(mode(directory.path()), DIRECTORY_MODE);
            let inner = directory.path().join("outer/inner");
            create_private_directory(&inner).unwrap();
            assert_eq!(mode(inner.parent().unwrap()), DIRECTORY_MODE);
            assert_eq!(mode(&inner), DIRECTORY_MODE);
            let file = inner.join("file");
            create_private_file(&file).unwrap();
            assert_eq!(mode(&file), FILE_MODE);
        }
    }
}
