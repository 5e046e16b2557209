//! Runs tests on data that is not part of this repository but may lie beside it, in `../shared`.
//!
//! Whether the data is there is known only when the tests run, so this is a test harness of its own: without the data the
//! tests count as ignored, with the reason.

use libtest_mimic::{Arguments, Completion, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A test by its name.
pub(crate) type Test = (&'static str, fn());

/// The place of a folder beside this repository.
pub(crate) fn beside(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared")
        .join(folder)
}

/// Runs the tests of a folder.
pub(crate) fn run(folder: &'static str, tests: &[Test]) -> ExitCode {
    let trial = |&(name, test): &Test| {
        Trial::ignorable_test(name, move || {
            if !beside(folder).is_dir() {
                let reason = format!("shared/{folder} is not beside this checkout");
                return Ok(Completion::ignored_with(reason));
            }
            test();
            Ok(Completion::Completed)
        })
    };
    let tests = tests.iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}
