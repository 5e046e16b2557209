//! Files and directories that scenarios name: where they lie, and whether they are there.

use super::file_error::FileError;
use super::scenario::LoadedScenario;
use assize_contracts::{GitSource, WorkspaceSpec};
use assize_measures::load_references;
use serde_json::Value;
use std::path::Path;

/// Reads what the scenario's checks refer to and looks whether its workspace can be made.
pub(super) fn resolve(loaded: &mut LoadedScenario, directory: &Path) -> Result<(), FileError> {
    let LoadedScenario { scenario, document } = loaded;
    load_references(scenario, directory)
        .map_err(|found| document.explain(&found.path, &found.message, &[]))?;
    for (position, check) in scenario.checks.iter_mut().enumerate() {
        let position = position.to_string();
        if let Some(missing) = sources(check).find(|source| !Path::new(source).exists()) {
            let message = format!("there is no file `{missing}`");
            return Err(document.error(&["checks", &position], message));
        }
    }
    let Some(WorkspaceSpec { from, git, .. }) = &scenario.workspace else {
        return Ok(());
    };
    if from.is_some() && git.is_some() {
        let error = document.error(
            &["workspace"],
            "found `from` and `git`, expected one of them",
        );
        return Err(error);
    }
    if let Some(from) = from.as_ref().filter(|from| !directory.join(from).is_dir()) {
        let message = format!("there is no directory `{from}`");
        return Err(document
            .error(&["workspace", "from"], message)
            .hint("paths are relative to the suite file"));
    }
    if let Some(GitSource { repo, .. }) = git
        .as_ref()
        .filter(|git| !directory.join(&git.repo).is_dir())
    {
        let message = format!("there is no repository `{repo}`");
        return Err(document.error(&["workspace", "git", "repo"], message).hint(
            "paths are relative to the suite file; repositories elsewhere must be cloned first",
        ));
    }
    Ok(())
}

/// Makes the paths of files in checks relative to the suite again: where it lies makes no difference to its trials.
pub(super) fn forget_directory(checks: &mut Value, directory: &Path) {
    for check in checks.as_array_mut().into_iter().flatten() {
        for source in sources(check) {
            if let Ok(relative) = Path::new(&*source).strip_prefix(directory) {
                *source = relative.to_string_lossy().into_owned();
            }
        }
    }
}

/// The paths of files that a check places.
fn sources(check: &mut Value) -> impl Iterator<Item = &mut String> {
    let mut body = check;
    while body.get("not").is_some() {
        body = &mut body["not"];
    }
    let files = body
        .pointer_mut("/command/files")
        .and_then(Value::as_object_mut);
    files
        .into_iter()
        .flatten()
        .filter_map(|(_, source)| match source {
            Value::String(source) => Some(source),
            _ => None,
        })
}
