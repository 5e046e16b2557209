//! The last run is remembered, so that `show`, `compare` and the like find it from anywhere: one small file with a path in
//! the user's state directory. Without a home, or with one that cannot be written, nothing is remembered and nothing fails.

use crate::private;
use assize_engine::store::{self, RunDirectory};
use assize_engine::{Event, Listener};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Remembers a run as soon as it has a directory.
pub(super) struct Remembering(pub(super) Arc<dyn Listener>);

impl Listener for Remembering {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::RunStarted { directory, .. } = event {
            remember(directory);
        }
        self.0.on_event(event);
    }
}

/// Writes down where the last run is. Machines that only test have no use for it.
fn remember(run: &Path) {
    let is_ci = std::env::var("CI").is_ok_and(|ci| !ci.is_empty() && ci != "false" && ci != "0");
    let (Some(file), Ok(run)) = (file(), std::path::absolute(run)) else {
        return;
    };
    if !is_ci {
        // A home that cannot be written is no reason to fail.
        let _ = write(&file, &run);
    }
}

fn write(file: &Path, run: &Path) -> std::io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    private::directory(directory)?;
    // Beside its place first: two runs that begin at once must not mix their paths.
    let unfinished = file.with_extension(std::process::id().to_string());
    let mut content = run.as_os_str().as_encoded_bytes().to_vec();
    content.push(b'\n');
    let written = private::file(&unfinished)
        .and_then(|mut opened| opened.write_all(&content))
        .and_then(|()| fs::rename(&unfinished, file));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// The run that was remembered, if it is still there.
pub(super) fn recall() -> Option<RunDirectory> {
    let text = fs::read_to_string(file()?).ok()?;
    let path = Path::new(text.trim_end_matches('\n'));
    let is_sound = path.is_absolute();
    is_sound.then(|| RunDirectory::open(path).ok()).flatten()
}

/// `$XDG_STATE_HOME/assize/last-run`, by default below `~/.local/state`.
fn file() -> Option<PathBuf> {
    let directory = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let state = directory("XDG_STATE_HOME")
        .or_else(|| Some(directory("HOME")?.join(".local").join("state")))?;
    Some(state.join("assize").join("last-run"))
}

/// The argument to type for a run, from the user's directory: `last`, its id, or its path.
pub(super) fn name_of(run: &Path) -> String {
    let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    };
    let (results, _) = super::usual_results();
    let is_here = run.parent().is_some_and(|parent| same(parent, &results));
    let id = run.file_name().unwrap_or_default().to_string_lossy();
    let newest = || store::list(&results).ok()?.pop();
    match is_here {
        true if newest().is_some_and(|newest| newest.id() == id) => "last".to_owned(),
        true => id.into_owned(),
        false => run.display().to_string(),
    }
}
