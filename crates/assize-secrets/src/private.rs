//! Temporary directories that only this user may look into.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::{Builder, TempDir};

/// A directory among the temporary ones of the system. Removed with its content when it is dropped.
pub fn private_directory(prefix: &str) -> io::Result<TempDir> {
    private_directory_in(&std::env::temp_dir(), prefix)
}

/// The same in another place.
pub fn private_directory_in(parent: &Path, prefix: &str) -> io::Result<TempDir> {
    // Without this it would be as open as the umask leaves it.
    let only_mine = Permissions::from_mode(0o700);
    let mut builder = Builder::new();
    builder.prefix(prefix).permissions(only_mine);
    builder.tempdir_in(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_may_look_in() {
        for directory in [
            private_directory("assize-x-").unwrap(),
            private_directory_in(&std::env::temp_dir(), "x").unwrap(),
        ] {
            let mode = directory.path().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
    }
}
