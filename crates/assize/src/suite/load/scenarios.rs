//! Finds the scenarios of a suite, and chooses among them.

use super::Loader;
use crate::suite::document::Document;
use crate::suite::file::{Scenarios, SuiteFile};
use crate::suite::file_error::{FileError, listed, nearest};
use crate::suite::places;
use crate::suite::scenario::{self, Defaults, LoadedScenario};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// True when a scenario file names a source for workspaces and a method that may be an overlay.
pub(super) fn any_has_layers(directory: &Path, patterns: &[String]) -> bool {
    let paths = patterns
        .iter()
        .filter_map(|pattern| files_matching(directory, pattern).ok());
    let documents = paths.flatten().map(|path| Document::read(&path).ok());
    let documents: Vec<Option<Document>> = documents.collect();
    let is_housed = |document: &&Document| document.value().pointer("/sandbox/container").is_some();
    if documents
        .iter()
        .flatten()
        .any(|document| is_housed(&document))
    {
        return false;
    }
    documents.iter().any(|document| {
        let workspace = document
            .as_ref()
            .and_then(|read| read.value().get("workspace"));
        workspace.is_some_and(|workspace| {
            let has = |key: &str| workspace.get(key).is_some();
            let method = workspace.get("method").and_then(|method| method.as_str());
            (has("from") || has("git") || has("setup_once") || has("setupOnce"))
                && matches!(method, None | Some("auto" | "overlay"))
        })
    })
}

impl Loader<'_> {
    pub(super) fn scenarios(&mut self, file: &SuiteFile, directory: &Path) -> Vec<LoadedScenario> {
        let Some(spec) = &file.scenarios else {
            if file.tasks.is_some() {
                return Vec::new();
            }
            let error = self
                .document
                .error(&[], "missing key `scenarios` or `tasks`");
            self.errors
                .push(error.hint("name the files: `scenarios: { paths: [\"scenarios/*.yaml\"] }`"));
            return Vec::new();
        };
        let defaults = Defaults {
            timeout_ms: file.execution.timeout_default_ms,
            allowed_retries: file.execution.allowed_retries,
        };
        let mut loaded: Vec<LoadedScenario> = Vec::new();
        for (number, pattern) in spec.paths.iter().enumerate() {
            match self.documents_matching(directory, pattern) {
                Ok(documents) => {
                    for document in documents {
                        let scenarios =
                            document.and_then(|document| scenario::load(document, &defaults));
                        match scenarios {
                            Ok(scenarios) => loaded.extend(scenarios),
                            Err(error) => self.errors.push(error),
                        }
                    }
                }
                Err(message) => {
                    let place = ["scenarios", "paths", &number.to_string()];
                    let mut error = self.document.error(&place, message);
                    error.hint = near_files(directory, pattern);
                    self.add(error);
                }
            }
        }
        loaded.extend(self.harbor_scenarios(file, spec, directory));
        self.refuse_duplicates(&loaded);
        let mut chosen = self.choose(spec, loaded);
        // Suites that name missing files are not checked further: other errors would only follow from that.
        chosen.retain_mut(|scenario| {
            let resolved = places::resolve(scenario, directory);
            resolved.map_err(|error| self.add(error)).is_ok()
        });
        chosen
    }

    /// The files that match a pattern, or the scenario of this name that is in no file.
    fn documents_matching(
        &self,
        directory: &Path,
        pattern: &str,
    ) -> Result<Vec<Result<Document, FileError>>, String> {
        if let Some(value) = self.unwritten.get(pattern) {
            let document = Document::unwritten(directory.join(pattern), value.clone());
            return Ok(vec![Ok(document)]);
        }
        let paths = files_matching(directory, pattern)?;
        Ok(paths.iter().map(|path| Document::read(path)).collect())
    }

    pub(super) fn refuse_duplicates(&mut self, loaded: &[LoadedScenario]) {
        let mut first: BTreeMap<&str, &LoadedScenario> = BTreeMap::new();
        for scenario in loaded {
            if let Some(other) = first.insert(&scenario.scenario.id, scenario) {
                let message = format!(
                    "the id `{}` is already taken by {}",
                    scenario.scenario.id,
                    other.document.path().display()
                );
                let error = scenario.document.error(&["id"], message);
                self.errors
                    .push(error.hint("give one of them another `id`"));
            }
        }
    }

    pub(super) fn choose(
        &mut self,
        spec: &Scenarios,
        loaded: Vec<LoadedScenario>,
    ) -> Vec<LoadedScenario> {
        let ids: Vec<String> = loaded
            .iter()
            .map(|loaded| loaded.scenario.id.clone())
            .collect();
        let known: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut wanted: Vec<Vec<String>> = Vec::new();
        if let Some(ids) = &spec.ids {
            wanted.push(ids.clone());
        }
        if let Some(set) = self.selection.scenario_set.as_ref().or(spec.set.as_ref()) {
            match spec.sets.get(set) {
                Some(ids) => wanted.push(ids.clone()),
                None => {
                    let sets: Vec<&str> = spec.sets.keys().map(String::as_str).collect();
                    self.unknown(&["scenarios", "set"], "set of scenarios", set, &sets);
                }
            }
        }
        if !self.selection.scenarios.is_empty() {
            wanted.push(self.selection.scenarios.clone());
        }
        for id in wanted.iter().flatten().chain(spec.sets.values().flatten()) {
            // `fix-bug` also means all of `fix-bug[lang=…]`.
            // A file that is no scenario may be a task; that is checked when tasks are read.
            let may_be_task = self.has_tasks && self.selection.scenarios.contains(id);
            let is_known = ids.iter().any(|known| is_meant(id, known));
            if !loaded.is_empty() && !is_known && !may_be_task {
                self.unknown(&["scenarios"], "scenario", id, &known);
            }
        }
        let tags = &self.selection.tags;
        let is_chosen = |loaded: &LoadedScenario| {
            let scenario = &loaded.scenario;
            let named = wanted
                .iter()
                .all(|ids| ids.iter().any(|id| is_meant(id, &scenario.id)));
            named && (tags.is_empty() || scenario.tags.iter().any(|tag| tags.contains(tag)))
        };
        loaded.into_iter().filter(is_chosen).collect()
    }
}

/// A name means the scenario itself and everything its variables make of it.
pub(crate) fn is_meant(name: &str, id: &str) -> bool {
    id.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
}

/// The files that match a pattern, sorted. A plain path must exist; a pattern must match something.
pub(super) fn files_matching(directory: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    if !pattern.contains(['*', '?', '[', '{']) {
        let path = directory.join(pattern);
        return if path.is_file() {
            Ok(vec![path])
        } else {
            Err(format!("there is no file `{pattern}`"))
        };
    }
    let glob = globset::GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|error| format!("`{pattern}` is not a pattern: {}", error.kind()))?
        .compile_matcher();
    let fixed: PathBuf = Path::new(pattern)
        .components()
        .take_while(|part| {
            !part
                .as_os_str()
                .to_string_lossy()
                .contains(['*', '?', '[', '{'])
        })
        .collect();
    let mut found = Vec::new();
    walk(directory, &fixed, &mut |relative| {
        if glob.is_match(relative) {
            found.push(directory.join(relative));
        }
    });
    found.sort();
    if found.is_empty() {
        Err(format!("no file matches `{pattern}`"))
    } else {
        Ok(found)
    }
}

/// A suggestion for a pattern without a match: a directory or file with nearly that name, or the files that
/// lie where it looks.
fn near_files(directory: &Path, pattern: &str) -> Option<String> {
    let mut known = PathBuf::new();
    let parts: Vec<String> = Path::new(pattern)
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    for (place, part) in parts.iter().enumerate() {
        if directory.join(&known).join(part).exists() {
            known.push(part);
            continue;
        }
        let names = names_in(&directory.join(&known));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if let Some(near) = nearest(part, names.iter().copied()) {
            let rest = parts[place + 1..].iter();
            let meant: PathBuf = rest.fold(known.join(near), |path, part| path.join(part));
            return Some(format!("did you mean `{}`?", meant.display()));
        }
        let here = if place == 0 { Path::new(".") } else { &known };
        return Some(match names.is_empty() {
            true => format!("there is nothing in `{}`", here.display()),
            false => format!("in `{}` there are {}", here.display(), listed(&names)),
        });
    }
    None
}

/// The visible names in a directory, some of them where there are many.
fn names_in(directory: &Path) -> Vec<String> {
    const MOST: usize = 8;
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names.truncate(MOST);
    names
}

fn walk(root: &Path, relative: &Path, visit: &mut impl FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(root.join(relative)) else {
        return;
    };
    for entry in entries.flatten() {
        let path = relative.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(root, &path, visit),
            Ok(_) => visit(&path),
            Err(_) => {}
        }
    }
}
