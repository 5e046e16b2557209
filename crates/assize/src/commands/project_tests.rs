//! The test command of a project, and the part of it that runs given test files.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The test command of a project.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tests {
    pub(super) run: String,
    /// The command that installs what the tests need.
    pub(super) install: Option<String>,
    /// The file that shows it.
    pub(super) found_in: &'static str,
}

/// Finds the test command of the project in a directory from its files.
pub(super) fn tests_of(top: &Path) -> Option<Tests> {
    let has = |name: &str| top.join(name).is_file();
    let read = |name: &str| std::fs::read_to_string(top.join(name)).unwrap_or_default();
    let tests = |run: &str, install: Option<&str>, found_in| {
        Some(Tests {
            run: run.to_owned(),
            install: install.map(str::to_owned),
            found_in,
        })
    };
    if has("Cargo.toml") {
        return tests("cargo test", None, "Cargo.toml");
    }
    if has_test_script(&read("package.json")) {
        let (run, install) = match () {
            () if has("pnpm-lock.yaml") => ("pnpm test", "pnpm install --frozen-lockfile"),
            () if has("yarn.lock") => ("yarn test", "yarn install --frozen-lockfile"),
            () if has("package-lock.json") => ("npm test", "npm ci"),
            () => ("npm test", "npm install"),
        };
        let needs_nothing = install == "npm install" && !has_dependencies(&read("package.json"));
        return tests(
            run,
            Some(install).filter(|_| !needs_nothing),
            "package.json",
        );
    }
    if has("pyproject.toml") || has("pytest.ini") || has("setup.py") {
        let found_in = match has("pyproject.toml") {
            true => "pyproject.toml",
            false => "pytest's settings",
        };
        return match () {
            () if has("uv.lock") => tests("uv run pytest -q", Some("uv sync"), found_in),
            () if has("poetry.lock") => {
                tests("poetry run pytest -q", Some("poetry install"), found_in)
            }
            () => tests("python3 -m pytest -q", None, found_in),
        };
    }
    if has("go.mod") {
        return tests("go test ./...", None, "go.mod");
    }
    for name in ["Makefile", "makefile"] {
        if read(name).lines().any(|line| line.starts_with("test:")) {
            return tests("make test", None, "Makefile");
        }
    }
    None
}

/// The script that `npm init` writes is no test.
fn has_test_script(package: &str) -> bool {
    let package: Value = serde_json::from_str(package).unwrap_or_default();
    let script = package.pointer("/scripts/test").and_then(Value::as_str);
    script.is_some_and(|script| !script.contains("no test specified"))
}

fn has_dependencies(package: &str) -> bool {
    let package: Value = serde_json::from_str(package).unwrap_or_default();
    let named = |key: &str| package.get(key).and_then(Value::as_object);
    let groups = ["dependencies", "devDependencies", "optionalDependencies"];
    groups
        .iter()
        .any(|key| named(key).is_some_and(|group| !group.is_empty()))
}

impl Tests {
    /// The command that runs these test files of the project and as little else as its tools allow.
    pub(super) fn narrowed(self, top: &Path, files: &[&str]) -> Self {
        let run = match self.run.as_str() {
            "cargo test" => cargo_tests(top, files),
            "go test ./..." => go_tests(files),
            run if run.ends_with("pytest -q") => {
                python_modules(files).map(|files| with(run, &files))
            }
            "npm test" => javascript_files(files).map(|files| with("npm test --", &files)),
            run @ ("yarn test" | "pnpm test") => {
                javascript_files(files).map(|files| with(run, &files))
            }
            _ => None,
        };
        match run {
            Some(run) => Self { run, ..self },
            None => self,
        }
    }
}

/// The command for test files of a project that does not say how it is tested, from the files themselves.
pub(super) fn tests_by_language(top: &Path, files: &[&str]) -> Option<Tests> {
    let run = if let Some(modules) = python_modules(files) {
        let uses_unittest = modules.iter().all(|name| {
            let text = std::fs::read_to_string(top.join(name)).unwrap_or_default();
            text.contains("unittest") && !text.contains("import pytest")
        });
        match uses_unittest {
            true => with("python3 -m unittest", &modules),
            false => with("python3 -m pytest -q", &modules),
        }
    } else if let Some(files) = javascript_files(files) {
        with("node --test", &files)
    } else {
        let scripts: Vec<&str> = of_kind(files, &["sh"]);
        if scripts.is_empty() {
            return None;
        }
        let runs = scripts.iter().map(|name| with("sh", &[*name]));
        runs.collect::<Vec<_>>().join(" && ")
    };
    Some(Tests {
        run,
        install: None,
        found_in: "the test files",
    })
}

/// A command with quoted arguments.
fn with(command: &str, files: &[&str]) -> String {
    let quoted = files.iter().map(|name| quoted(name));
    std::iter::once(command.to_owned())
        .chain(quoted)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The name as the shell must read it.
pub(super) fn quoted(name: &str) -> String {
    shlex::try_quote(name).map_or_else(|_| "''".to_owned(), |quoted| quoted.into_owned())
}

fn of_kind<'f>(files: &[&'f str], endings: &[&str]) -> Vec<&'f str> {
    let is_one = |name: &&&str| {
        let ending = Path::new(name).extension();
        ending.is_some_and(|ending| endings.iter().any(|known| ending == *known))
    };
    files.iter().filter(is_one).copied().collect()
}

/// Test modules, without what they share. None where there is none.
fn python_modules<'f>(files: &[&'f str]) -> Option<Vec<&'f str>> {
    let mut modules = of_kind(files, &["py"]);
    modules.retain(|name| {
        let stem = Path::new(name).file_stem().unwrap_or_default();
        let stem = stem.to_string_lossy();
        stem.starts_with("test") || stem.ends_with("_test") || stem.ends_with("_tests")
    });
    (!modules.is_empty()).then_some(modules)
}

fn javascript_files<'f>(files: &[&'f str]) -> Option<Vec<&'f str>> {
    let mut found = of_kind(
        files,
        &["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"],
    );
    let is_test = |name: &&str| {
        let name = Path::new(name)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        name.contains("test") || name.contains("spec")
    };
    if found.iter().any(is_test) {
        found.retain(is_test);
    }
    (!found.is_empty()).then_some(found)
}

/// The packages of Go test files.
fn go_tests(files: &[&str]) -> Option<String> {
    let package = |name: &&str| match Path::new(name)
        .parent()
        .map(|parent| parent.to_string_lossy())
    {
        Some(parent) if !parent.is_empty() => format!("./{parent}"),
        _ => ".".to_owned(),
    };
    let packages: BTreeSet<String> = of_kind(files, &["go"]).iter().map(package).collect();
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    (!packages.is_empty()).then(|| with("go test", &packages))
}

/// The test targets of one Cargo package that hold changed files.
#[derive(Default)]
struct Targets {
    /// The modules of each target that are meant; the whole target where there is none.
    modules: BTreeMap<String, BTreeSet<String>>,
}

/// `cargo test` for the targets, and where there is only one, the modules that the files are.
fn cargo_tests(top: &Path, files: &[&str]) -> Option<String> {
    let mut packages: BTreeMap<String, Targets> = BTreeMap::new();
    for name in of_kind(files, &["rs"]) {
        let (package, inner) = cargo_package(top, Path::new(name))?;
        let targets = packages.entry(package).or_default();
        let mut parts = inner.iter().map(|part| part.to_string_lossy());
        let (Some(folder), Some(first), second) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let is_target = |target: &str| {
            let place = inner_place(top, Path::new(name), &inner)
                .join("tests")
                .join(target);
            place.join("main.rs").is_file()
        };
        match second {
            _ if folder != "tests" => {}
            None => {
                let target = first.trim_end_matches(".rs").to_owned();
                targets.modules.entry(target).or_default();
            }
            Some(module) if is_target(&first) => {
                let modules = targets.modules.entry(first.into_owned()).or_default();
                let module = module.trim_end_matches(".rs");
                // The list of modules, and what they share.
                if !["main", "support", "common", "helpers"].contains(&module) {
                    modules.insert(module.to_owned());
                }
            }
            Some(_) => {}
        }
    }
    let lines = packages.iter().map(|(package, targets)| {
        let names: Vec<&String> = targets.modules.keys().collect();
        let chosen: String = names
            .iter()
            .map(|name| format!(" --test {}", quoted(name)))
            .collect();
        let filter = match targets.modules.values().collect::<Vec<_>>().as_slice() {
            [modules] if !modules.is_empty() => {
                let filters = modules.iter().map(|module| quoted(&format!("{module}::")));
                format!(" -- {}", filters.collect::<Vec<_>>().join(" "))
            }
            _ => String::new(),
        };
        format!("cargo test -p {}{chosen}{filter}", quoted(package))
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join(" && "))
}

/// The directory of a package, from one of its files and the path of that file inside it.
fn inner_place(top: &Path, file: &Path, inner: &Path) -> PathBuf {
    let depth = inner.components().count();
    let place = top.join(file);
    place.ancestors().nth(depth).unwrap_or(top).to_owned()
}

/// The name of the Cargo package that a file is in, and the path of the file inside it.
fn cargo_package(top: &Path, file: &Path) -> Option<(String, PathBuf)> {
    let place = file.ancestors().skip(1).find(|place| {
        let manifest = std::fs::read_to_string(top.join(place).join("Cargo.toml"));
        manifest.is_ok_and(|text| package_name(&text).is_some())
    })?;
    let manifest = std::fs::read_to_string(top.join(place).join("Cargo.toml")).ok()?;
    Some((
        package_name(&manifest)?,
        file.strip_prefix(place).ok()?.to_owned(),
    ))
}

fn package_name(manifest: &str) -> Option<String> {
    let manifest: toml::Table = manifest.parse().ok()?;
    let name = manifest.get("package")?.get("name")?.as_str()?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_command_is_found_where_projects_keep_it() {
        let found = |files: &[(&str, &str)]| {
            let place = tempfile::tempdir().unwrap();
            for (name, text) in files {
                std::fs::write(place.path().join(name), text).unwrap();
            }
            tests_of(place.path()).map(|tests| (tests.run, tests.install))
        };
        let script = r#"{"scripts": {"test": "vitest run"}}"#;
        let some =
            |run: &str, install: Option<&str>| Some((run.to_owned(), install.map(str::to_owned)));
        assert_eq!(found(&[("Cargo.toml", "")]), some("cargo test", None));
        assert_eq!(
            found(&[("package.json", script), ("package-lock.json", "")]),
            some("npm test", Some("npm ci"))
        );
        assert_eq!(
            found(&[("package.json", script), ("pnpm-lock.yaml", "")]),
            some("pnpm test", Some("pnpm install --frozen-lockfile"))
        );
        let none = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        assert_eq!(found(&[("package.json", none)]), None);
        assert_eq!(
            found(&[("pyproject.toml", ""), ("uv.lock", "")]),
            some("uv run pytest -q", Some("uv sync"))
        );
        assert_eq!(
            found(&[("pyproject.toml", "")]),
            some("python3 -m pytest -q", None)
        );
        assert_eq!(found(&[("go.mod", "")]), some("go test ./...", None));
        assert_eq!(
            found(&[("Makefile", "all:\n\ntest: all\n\tsh t.sh\n")]),
            some("make test", None)
        );
        assert_eq!(found(&[("Makefile", "all:\n")]), None);
        assert_eq!(found(&[]), None);
    }

    fn narrowed(files: &[(&str, &str)], changed: &[&str]) -> String {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let tests = tests_of(place.path()).map(|tests| tests.narrowed(place.path(), changed));
        tests
            .or_else(|| tests_by_language(place.path(), changed))
            .unwrap()
            .run
    }

    #[test]
    fn only_the_tests_of_a_commit_are_run_where_the_tools_can_do_that() {
        let rust = [
            ("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n"),
            ("a/Cargo.toml", "[package]\nname = \"one\"\n"),
            ("a/tests/it/main.rs", "mod pager;"),
            ("a/tests/whole.rs", ""),
        ];
        assert_eq!(
            narrowed(
                &rust,
                &[
                    "a/tests/it/main.rs",
                    "a/tests/it/pager.rs",
                    "a/tests/data.txt"
                ]
            ),
            "cargo test -p one --test it -- pager::"
        );
        assert_eq!(
            narrowed(&rust, &["a/tests/whole.rs", "a/tests/it/pager.rs"]),
            "cargo test -p one --test it --test whole"
        );
        let python = [("pyproject.toml", "")];
        assert_eq!(
            narrowed(&python, &["tests/conftest.py", "tests/test_a b.py"]),
            "python3 -m pytest -q 'tests/test_a b.py'"
        );
        assert_eq!(
            narrowed(&[("go.mod", "")], &["a/x_test.go", "y_test.go"]),
            "go test . ./a"
        );
        let script = r#"{"scripts": {"test": "vitest run"}}"#;
        assert_eq!(
            narrowed(
                &[("package.json", script)],
                &["src/a.test.ts", "test/data.json"]
            ),
            "npm test -- src/a.test.ts"
        );
        assert_eq!(
            narrowed(&[("Makefile", "test:\n")], &["tests/a.sh"]),
            "make test"
        );
    }

    #[test]
    fn test_files_say_how_they_are_run_where_the_project_does_not() {
        let unit = [("test_a.py", "import unittest\n")];
        assert_eq!(
            narrowed(&unit, &["test_a.py"]),
            "python3 -m unittest test_a.py"
        );
        let plain = [("test_a.py", "def test_a(): pass\n")];
        assert_eq!(
            narrowed(&plain, &["test_a.py"]),
            "python3 -m pytest -q test_a.py"
        );
        assert_eq!(narrowed(&[], &["t/a.test.mjs"]), "node --test t/a.test.mjs");
        assert_eq!(
            narrowed(&[], &["tests/a.sh", "tests/b.sh"]),
            "sh tests/a.sh && sh tests/b.sh"
        );
    }
}
