//! Removes what modes put on trial from a workspace, so that an agent finds it only where its mode put it.

use std::fs;
use std::path::{Path, PathBuf};

/// Directories deeper than this are no place where agents look.
const DEEPEST: usize = 24;

/// Removes every file and directory whose path ends with one of `hidden`, wherever it lies in the workspace. `true` if there
/// was any. Links are removed and not followed, and git's own directory is left alone.
pub(super) fn hide(workspace: &Path, hidden: &[String]) -> Result<bool, String> {
    if hidden.is_empty() {
        return Ok(false);
    }
    let mut found = Vec::new();
    look(workspace, Path::new(""), hidden, 0, &mut found);
    for path in &found {
        let path = workspace.join(path);
        let is_directory = fs::symlink_metadata(&path).is_ok_and(|data| data.is_dir());
        let removed = match is_directory {
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        };
        removed.map_err(|error| {
            let path = path.display();
            format!("cannot remove `{path}`, which is on trial: {error}")
        })?;
    }
    Ok(!found.is_empty())
}

fn look(
    workspace: &Path,
    relative: &Path,
    hidden: &[String],
    depth: usize,
    found: &mut Vec<PathBuf>,
) {
    let Ok(entries) = fs::read_dir(workspace.join(relative)) else {
        return;
    };
    for entry in entries.flatten() {
        let path = relative.join(entry.file_name());
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if hidden.iter().any(|end| path.ends_with(end)) {
            found.push(path);
        } else if is_directory && depth < DEEPEST && entry.file_name() != ".git" {
            look(workspace, &path, hidden, depth + 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_trial_is_removed_wherever_it_lies() {
        let directory = tempfile::tempdir().unwrap();
        let files = [
            ".claude/skills/review/SKILL.md",
            ".claude/skills/pdf/SKILL.md",
            "packages/a/.agents/skills/review/SKILL.md",
            "skills/review/SKILL.md",
            "CLAUDE.md",
            "packages/a/CLAUDE.md",
            ".git/CLAUDE.md",
        ];
        for file in files {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let hidden = [
            ".claude/skills/review",
            ".agents/skills/review",
            "CLAUDE.md",
        ];
        let hidden = hidden.map(str::to_owned);
        assert_eq!(hide(directory.path(), &hidden), Ok(true));
        let left = files.map(|file| directory.path().join(file).exists());
        assert_eq!(left, [false, true, false, true, false, false, true]);
        assert_eq!(hide(directory.path(), &hidden), Ok(false));
    }
}
