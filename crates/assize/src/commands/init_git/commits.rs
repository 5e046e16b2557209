//! Commits of a repository: what they changed, and whether a task can be made of it.

use super::super::repository::Repository;
use crate::commands::UsageError;
use std::path::Path;

/// Commits that are looked at, at most.
const MOST_COMMITS: usize = 2_000;

/// A change of more code than this is several tasks.
const MOST_CODE_FILES: usize = 40;
const MOST_CODE_LINES: u64 = 2_000;

/// Hidden files of one task, in bytes.
const LARGEST_TESTS: usize = 16 << 20;

/// A commit, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) id: String,
    pub(super) parents: Vec<String>,
    /// The time of the commit, as git writes it.
    pub(super) date: String,
    pub(super) subject: String,
    pub(super) body: String,
}

impl Commit {
    pub(super) fn short(&self) -> &str {
        self.id.get(..10).unwrap_or(&self.id)
    }
}

/// A commit that changes code and tests.
pub(super) struct Candidate {
    pub(super) parent: String,
    /// The test files as the commit leaves them.
    pub(super) tests: Vec<TestFile>,
    /// Test files that the commit removes.
    pub(super) removed_tests: Vec<String>,
}

/// A test file of a commit.
pub(super) struct TestFile {
    pub(super) path: String,
    pub(super) content: Vec<u8>,
    pub(super) is_program: bool,
}

/// The commits of a range, newest first.
pub(super) fn commits(repository: &Repository, range: &str) -> Result<Vec<String>, UsageError> {
    let most = format!("--max-count={MOST_COMMITS}");
    let list = repository.git(&["rev-list", &most, "--end-of-options", range, "--"]);
    let list = list.ok_or_else(|| UsageError {
        message: format!(
            "git knows no commits `{range}` in `{}`",
            repository.top.display()
        ),
        hint: Some(
            "a range is `v1.0..`, `HEAD~20..HEAD`, or a branch for all of its history".to_owned(),
        ),
    })?;
    let commits: Vec<String> = list.lines().map(str::to_owned).collect();
    if commits.is_empty() {
        return Err(UsageError {
            message: format!("there are no commits in `{range}`"),
            hint: Some("`A..B` has the commits of B that A does not have".to_owned()),
        });
    }
    Ok(commits)
}

/// Reads a commit. None where git cannot, or its message is no text.
pub(super) fn read(repository: &Repository, id: &str) -> Option<Commit> {
    let format = "--format=%P%x00%cI%x00%s%x00%b";
    let text = repository.git(&["log", "-1", "--no-show-signature", format, id, "--"])?;
    let mut parts = text.splitn(4, '\0');
    Some(Commit {
        id: id.to_owned(),
        parents: parts
            .next()?
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        date: parts.next()?.to_owned(),
        subject: parts.next()?.trim().to_owned(),
        body: parts.next()?.trim().to_owned(),
    })
}

/// A file that a commit changed.
struct Changed {
    path: String,
    /// Its mode afterwards; zero where the commit removes it.
    mode: String,
}

impl Changed {
    fn is_removed(&self) -> bool {
        self.mode == "000000"
    }
}

/// Sorts the changes of a commit. `Err` says why it makes no task.
pub(super) fn candidate(repository: &Repository, commit: &Commit) -> Result<Candidate, String> {
    let parent = match commit.parents.as_slice() {
        [] => return Err("it is the first commit".to_owned()),
        [parent] => parent.clone(),
        _ => return Err("it is a merge".to_owned()),
    };
    let changes = changes(repository, &parent, &commit.id).ok_or("git cannot list its changes")?;
    let (tests, others): (Vec<&Changed>, Vec<&Changed>) =
        changes.iter().partition(|change| is_test(&change.path));
    let code: Vec<&&Changed> = others
        .iter()
        .filter(|change| is_code(&change.path))
        .collect();
    if code.is_empty() {
        return Err("it changes no code".to_owned());
    }
    if tests.iter().all(|change| change.is_removed()) {
        return Err("it changes no test file (tests inside of source files cannot be hidden from the agent)".to_owned());
    }
    let lines = changed_lines(repository, &parent, &commit.id);
    if code.len() > MOST_CODE_FILES || lines.is_some_and(|lines| lines > MOST_CODE_LINES) {
        let lines = lines.map_or(String::new(), |lines| format!(" and {lines} lines"));
        return Err(format!(
            "it is too large for one task: {} files of code{lines}",
            code.len()
        ));
    }
    let mut candidate = Candidate {
        parent,
        tests: Vec::new(),
        removed_tests: Vec::new(),
    };
    for change in tests {
        match change.is_removed() {
            true => candidate.removed_tests.push(change.path.clone()),
            false => candidate.tests.push(test_file(repository, commit, change)?),
        }
    }
    let size: usize = candidate.tests.iter().map(|file| file.content.len()).sum();
    if size > LARGEST_TESTS {
        return Err(format!("its test files are too large: {} MB", size >> 20));
    }
    Ok(candidate)
}

fn test_file(
    repository: &Repository,
    commit: &Commit,
    change: &Changed,
) -> Result<TestFile, String> {
    let path = &change.path;
    if !["100644", "100755"].contains(&change.mode.as_str()) {
        return Err(format!("its test `{path}` is a link or a submodule"));
    }
    let object = format!("{}:{path}", commit.id);
    let content = repository.git_bytes(&["cat-file", "blob", &object]);
    Ok(TestFile {
        path: path.clone(),
        content: content.ok_or_else(|| format!("git cannot read its test `{path}`"))?,
        is_program: change.mode == "100755",
    })
}

fn changes(repository: &Repository, parent: &str, commit: &str) -> Option<Vec<Changed>> {
    let raw = repository.git_bytes(&[
        "diff-tree",
        "-r",
        "-z",
        "--no-renames",
        "--raw",
        parent,
        commit,
    ])?;
    // A name that is no text cannot be in a scenario: the caller refuses the commit.
    let text = String::from_utf8(raw).ok()?;
    let mut parts = text.split('\0');
    let mut changes = Vec::new();
    while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
        let mode = head.split(' ').nth(1)?;
        changes.push(Changed {
            path: path.to_owned(),
            mode: mode.to_owned(),
        });
    }
    Some(changes)
}

/// Lines of code that the commit adds or removes.
fn changed_lines(repository: &Repository, parent: &str, commit: &str) -> Option<u64> {
    let raw = repository.git_bytes(&[
        "diff-tree",
        "-r",
        "-z",
        "--no-renames",
        "--numstat",
        parent,
        commit,
    ])?;
    let text = String::from_utf8(raw).ok()?;
    let counts = text.split('\0').filter_map(|entry| {
        let mut parts = entry.splitn(3, '\t');
        let (added, removed, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_counted = is_code(path) && !is_test(path);
        // Files that are no text have `-` in place of counts.
        let count = |text: &str| text.parse::<u64>().unwrap_or(0);
        is_counted.then(|| count(added).saturating_add(count(removed)))
    });
    Some(counts.fold(0, u64::saturating_add))
}

/// True for files that hold tests or belong to them, by the habits of the usual languages.
fn is_test(path: &str) -> bool {
    let path = Path::new(path);
    let folders = path.parent().into_iter().flat_map(Path::iter);
    let is_test_folder = |name: &str| {
        let known = [
            "test",
            "tests",
            "__tests__",
            "spec",
            "specs",
            "testdata",
            "__snapshots__",
        ];
        known.contains(&name) || name.ends_with("_tests") || name.ends_with(".Tests")
    };
    if folders
        .map(|name| name.to_string_lossy())
        .any(|name| is_test_folder(&name))
    {
        return true;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().unwrap_or_default();
    let is_code = is_code(&name);
    let marks = [".test.", ".spec.", "-test.", "_spec.", "_test.", "_tests."];
    is_code
        && (marks.iter().any(|mark| name.contains(mark))
            || stem.starts_with("test_")
            || ["conftest", "tests", "test"].contains(&stem)
            || stem.ends_with("Test")
            || stem.ends_with("Tests")
            || stem.ends_with("Spec"))
}

/// True for what an agent may have to change; documents, licences and settings of services are not.
fn is_code(path: &str) -> bool {
    let path = Path::new(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    let first = path.iter().next().unwrap_or_default().to_string_lossy();
    let words = [
        "md", "rst", "txt", "adoc", "png", "svg", "jpg", "gif", "lock", "csv",
    ];
    let upper = [
        "LICENSE",
        "LICENCE",
        "NOTICE",
        "AUTHORS",
        "CHANGELOG",
        "CODEOWNERS",
        "README",
    ];
    let is_document = path.components().count() > 1
        && ["docs", "doc", ".github", ".gitlab"].contains(&first.as_ref());
    !(words.contains(&ending.as_ref())
        || upper.iter().any(|word| name.starts_with(word))
        || is_document
        || name.starts_with('.')
        || name == "package-lock.json"
        || name == "go.sum")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_known_by_the_habits_of_languages() {
        for path in [
            "tests/test_pager.py",
            "crates/a/tests/it/main.rs",
            "tests/data/one.txt",
            "src/pager.test.ts",
            "pkg/pager_test.go",
            "src/test/java/PagerTest.java",
            "spec/pager_spec.rb",
            "test_pager.py",
        ] {
            assert!(is_test(path), "{path}");
        }
        for path in [
            "src/latest.rs",
            "contest/main.py",
            "src/testing.rs",
            "docs/testing.md",
            "attest.go",
        ] {
            assert!(!is_test(path), "{path}");
        }
    }

    #[test]
    fn documents_and_locks_are_no_code() {
        for path in [
            "README.md",
            "docs/a.html",
            "Cargo.lock",
            ".github/workflows/ci.yml",
            "LICENSE-MIT",
        ] {
            assert!(!is_code(path), "{path}");
        }
        for path in ["src/main.rs", "Makefile", "package.json", "docs.py"] {
            assert!(is_code(path), "{path}");
        }
    }
}
