//! Files and directories that only this user may read: they hold whatever agents wrote.

pub(crate) use assize_secrets::{
    create_private_directory as directory, create_private_file as file,
};

use assize_engine::store::RunDirectory;
use std::path::Path;

/// True for a place inside a run's directory, where everything is private.
pub(crate) fn is_in_run(path: &Path) -> bool {
    path.ancestors().skip(1).take(4).any(RunDirectory::is_run)
}
