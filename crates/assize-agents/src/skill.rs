//! Skills, subagents and instruction files as people write them: read, checked as agents check them, and hashed.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The file that makes a directory a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// The longest name of a skill, in characters.
const LONGEST_NAME: usize = 64;

/// The longest description of a skill, in characters. Agents cut or refuse longer ones.
const LONGEST_DESCRIPTION: usize = 1024;

/// A directory with more files is no skill, but was named by mistake.
const MOST_FILES: usize = 2_000;
const MOST_BYTES: u64 = 64 << 20;

/// A skill that agents would load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name, which is also that of its directory.
    pub name: String,
    /// The sentence by which agents decide.
    pub description: String,
    /// The text that is loaded when the skill is used.
    pub body: String,
    pub directory: PathBuf,
    /// BLAKE3 of all names and contents.
    pub hash: String,
}

/// A subagent in the form of Claude Code: front matter with name and description, then its instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subagent {
    pub name: String,
    /// The sentence by which agents decide.
    pub description: String,
    /// Its instructions.
    pub body: String,
    /// The whole file.
    pub text: String,
    /// Further keys of the front matter, which only the agent they were written for understands.
    pub other_keys: Vec<String>,
    /// BLAKE3 of the file.
    pub hash: String,
}

/// The reason why agents would not load it: the place, the mistake and the expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillError {
    /// The file or directory.
    pub path: PathBuf,
    /// The line in that file, from 1.
    pub line: Option<usize>,
    /// The mistake and the expectation.
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
}

impl SkillError {
    fn new(path: &Path, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: None,
            message: message.into(),
            hint: None,
        }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    fn at(self, line: Option<usize>) -> Self {
        Self { line, ..self }
    }
}

/// The keys of front matter that decide; others are kept by name.
#[derive(Deserialize)]
struct FrontMatter {
    name: Option<Value>,
    description: Option<Value>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// A Markdown file taken apart.
struct Parts<'a> {
    matter: &'a str,
    body: &'a str,
}

impl Skill {
    /// Reads the skill in a directory and refuses what agents would not load.
    pub fn read(directory: &Path) -> Result<Self, SkillError> {
        let file = directory.join(SKILL_FILE);
        let text = read_skill_file(directory, &file)?;
        let parts = parts(&file, &text)?;
        let matter = front_matter(&file, parts.matter)?;
        let name = check_name(&file, &text, &matter)?;
        check_directory(&file, &text, directory, &name)?;
        let description = check_description(&file, &text, &matter)?;
        if parts.body.trim().is_empty() {
            let message = "found nothing below the front matter, expected instructions";
            return Err(SkillError::new(&file, message));
        }
        check_references(directory, &file, &text)?;
        Ok(Self {
            name,
            description,
            body: parts.body.trim().to_owned(),
            hash: hash_of(directory)?,
            directory: directory.to_owned(),
        })
    }

    /// Copies the skill below a directory of skills. A skill that changed since it was read is an error.
    pub(crate) fn install(source: &Path, hash: &str, target: &Path) -> Result<(), String> {
        let files = files_of(source).map_err(|error| error.message)?;
        if hash_of_files(source, &files).map_err(|error| error.message)? != hash {
            return Err(format!(
                "`{}` changed since the run began",
                source.display()
            ));
        }
        for file in files {
            let to = target.join(&file);
            let copied = to
                .parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::copy(source.join(&file), &to).map(drop));
            copied.map_err(|error| format!("cannot write `{}`: {error}", to.display()))?;
        }
        Ok(())
    }
}

impl Subagent {
    /// Reads a subagent and refuses what agents would not load.
    pub fn read(file: &Path) -> Result<Self, SkillError> {
        let text = fs::read_to_string(file)
            .map_err(|error| SkillError::new(file, format!("cannot be read: {error}")))?;
        let parts = parts(file, &text)?;
        let matter = front_matter(file, parts.matter)?;
        let name = check_name(file, &text, &matter)?;
        let description = check_description(file, &text, &matter)?;
        Ok(Self {
            name,
            description,
            body: parts.body.trim().to_owned(),
            other_keys: matter.others.into_keys().collect(),
            hash: blake3::hash(text.as_bytes()).to_hex().to_string(),
            text,
        })
    }
}

fn read_skill_file(directory: &Path, file: &Path) -> Result<String, SkillError> {
    if !directory.is_dir() {
        let message = match directory.is_file() {
            true => "found a file, expected the directory of a skill",
            false => "there is no such directory, expected a skill",
        };
        let error = SkillError::new(directory, message);
        return Err(match directory.is_file() {
            true => error.hint("name the directory that holds SKILL.md"),
            false => error,
        });
    }
    // A file system that ignores case would find the wrong spelling, and the agents' machines may not.
    let names = fs::read_dir(directory).into_iter().flatten().flatten();
    let names: Vec<String> = names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    if !names.iter().any(|name| name == SKILL_FILE) {
        let error = SkillError::new(directory, "found no `SKILL.md`, expected one");
        let near = names
            .iter()
            .find(|name| name.eq_ignore_ascii_case(SKILL_FILE));
        return Err(match near {
            Some(near) => error.hint(format!("rename `{near}` to `{SKILL_FILE}`")),
            None => error.hint("a skill is a directory with a file `SKILL.md`"),
        });
    }
    fs::read_to_string(file)
        .map_err(|error| SkillError::new(file, format!("cannot be read: {error}")))
}

fn parts<'a>(file: &Path, text: &'a str) -> Result<Parts<'a>, SkillError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let opened = text
        .strip_prefix("---\n")
        .or_else(|| text.strip_prefix("---\r\n"));
    let Some(rest) = opened else {
        let message = "found no front matter, expected `---` in the first line";
        return Err(SkillError::new(file, message)
            .at(Some(1))
            .hint("begin with `---`, `name: …`, `description: …`, `---`"));
    };
    let mut start = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Ok(Parts {
                matter: &rest[..start],
                body: &rest[start + line.len()..],
            });
        }
        start += line.len();
    }
    let message = "the front matter has no end, expected a second line `---`";
    Err(SkillError::new(file, message).at(Some(1)))
}

fn front_matter(file: &Path, matter: &str) -> Result<FrontMatter, SkillError> {
    serde_saphyr::from_str(matter).map_err(|error| {
        let said = error.to_string();
        let first = said.lines().next().unwrap_or_default().to_owned();
        SkillError::new(file, format!("the front matter is no YAML: {first}"))
            .at(Some(1))
            .hint("put a description with `:` or `#` in quotes")
    })
}

/// The line of a key in the front matter.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let is_key = |line: &str| {
        line.strip_prefix(key)
            .is_some_and(|rest| rest.trim_start().starts_with(':'))
    };
    text.lines().position(is_key).map(|line| line + 1)
}

fn check_name(file: &Path, text: &str, matter: &FrontMatter) -> Result<String, SkillError> {
    let wrong = |message: String| SkillError::new(file, message).at(line_of(text, "name"));
    let Some(value) = &matter.name else {
        return Err(wrong("missing key `name` in the front matter".to_owned()));
    };
    let Some(name) = value.as_str() else {
        return Err(wrong(format!("found the name {value}, expected text")));
    };
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_good = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.chars().all(is_plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    if !is_good {
        return Err(wrong(format!(
            "found the name {name:?}, expected at most {LONGEST_NAME} lower-case letters, digits and single `-` between them"
        )));
    }
    Ok(name.to_owned())
}

fn check_directory(
    file: &Path,
    text: &str,
    directory: &Path,
    name: &str,
) -> Result<(), SkillError> {
    let full = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    let called = full.file_name().map(|name| name.to_string_lossy());
    match called {
        Some(called) if called != name => {
            let message = format!("the name `{name}` differs from the directory `{called}`");
            Err(SkillError::new(file, message)
                .at(line_of(text, "name"))
                .hint(format!("call both the same: `name: {called}`")))
        }
        _ => Ok(()),
    }
}

fn check_description(file: &Path, text: &str, matter: &FrontMatter) -> Result<String, SkillError> {
    let wrong = |message: String| SkillError::new(file, message).at(line_of(text, "description"));
    let Some(value) = &matter.description else {
        let message = "missing key `description` in the front matter".to_owned();
        return Err(wrong(message).hint("say what it does and when to use it: agents decide by it"));
    };
    let Some(description) = value.as_str() else {
        return Err(wrong(format!(
            "found the description {value}, expected text"
        )));
    };
    let length = description.chars().count();
    if description.trim().is_empty() {
        return Err(wrong("the description is empty".to_owned()));
    }
    if length > LONGEST_DESCRIPTION {
        return Err(wrong(format!(
            "the description has {length} characters, expected at most {LONGEST_DESCRIPTION}"
        )));
    }
    Ok(description.to_owned())
}

/// Directories of a skill whose files its text refers to without a link.
const PARTS_OF_SKILLS: [&str; 3] = ["scripts/", "references/", "assets/"];

/// Files that the text names and the skill does not have.
fn check_references(directory: &Path, file: &Path, text: &str) -> Result<(), SkillError> {
    for (number, line) in text.lines().enumerate() {
        let missing = references_in(line)
            .into_iter()
            .find(|path| !directory.join(path).exists());
        if let Some(path) = missing {
            let message = format!("names `{path}`, which the skill does not have");
            return Err(SkillError::new(file, message).at(Some(number + 1)));
        }
    }
    Ok(())
}

/// Relative paths in links and in back-quotes of one line.
fn references_in(line: &str) -> Vec<&str> {
    let links = line.match_indices("](").filter_map(|(start, _)| {
        let target = line[start + 2..].split([')', ' ', '#', '?']).next()?;
        let is_local = !target.is_empty()
            && !target.contains([':', '<', '{', '$', '*'])
            && !target.starts_with('/');
        is_local.then_some(target)
    });
    let quoted = line.split('`').skip(1).step_by(2).filter(|word| {
        PARTS_OF_SKILLS.iter().any(|part| word.starts_with(part))
            && word.len() > word.find('/').unwrap_or(0) + 1
            && !word.contains([' ', '<', '{', '$', '*', '…'])
    });
    let all = links.chain(quoted);
    all.filter(|path| {
        Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    })
    .collect()
}

fn hash_of(directory: &Path) -> Result<String, SkillError> {
    hash_of_files(directory, &files_of(directory)?)
}

/// All files below a directory, sorted. Links are followed, as agents do; version control is left out.
fn files_of(directory: &Path) -> Result<Vec<PathBuf>, SkillError> {
    let mut files = Vec::new();
    let mut open = vec![(PathBuf::new(), 0)];
    let mut bytes = 0;
    while let Some((relative, depth)) = open.pop() {
        let place = directory.join(&relative);
        let entries = fs::read_dir(&place)
            .map_err(|error| SkillError::new(&place, format!("cannot be read: {error}")))?;
        for entry in entries.flatten() {
            let path = relative.join(entry.file_name());
            let Ok(data) = fs::metadata(directory.join(&path)) else {
                let message = "the link leads nowhere";
                return Err(SkillError::new(&directory.join(&path), message));
            };
            if data.is_dir() {
                let is_kept = entry.file_name() != ".git" && depth < 16;
                open.extend(is_kept.then_some((path, depth + 1)));
            } else {
                bytes += data.len();
                files.push(path);
            }
        }
        if files.len() > MOST_FILES || bytes > MOST_BYTES {
            let message = format!(
                "holds more than {MOST_FILES} files or {} MB, expected a skill",
                MOST_BYTES >> 20
            );
            return Err(SkillError::new(directory, message));
        }
    }
    files.sort();
    Ok(files)
}

fn hash_of_files(directory: &Path, files: &[PathBuf]) -> Result<String, SkillError> {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let path = directory.join(file);
        let content = fs::read(&path)
            .map_err(|error| SkillError::new(&path, format!("cannot be read: {error}")))?;
        let name = file.to_string_lossy();
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(&(content.len() as u64).to_le_bytes());
        hasher.update(&content);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(directory: &str, text: &str, files: &[&str]) -> Result<Skill, SkillError> {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join(directory);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(SKILL_FILE), text).unwrap();
        for file in files {
            fs::create_dir_all(place.join(file).parent().unwrap()).unwrap();
            fs::write(place.join(file), "x").unwrap();
        }
        Skill::read(&place)
    }

    fn refused(directory: &str, text: &str) -> (String, Option<usize>) {
        let error = skill(directory, text, &[]).unwrap_err();
        (error.message, error.line)
    }

    const GOOD: &str = "---\nname: review\ndescription: Reviews code. Use for pull requests.\nlicense: MIT\n---\n\n# Review\n\nRead [the list](references/list.md) and run `scripts/run.sh`.\n";

    #[test]
    fn a_good_skill_is_read() {
        let found = skill("review", GOOD, &["references/list.md", "scripts/run.sh"]).unwrap();
        assert_eq!(found.name, "review");
        assert!(found.body.starts_with("# Review"));
        let other = skill(
            "review",
            GOOD,
            &["references/list.md", "scripts/run.sh", "x"],
        )
        .unwrap();
        assert_ne!(found.hash, other.hash);
    }

    #[test]
    fn what_agents_would_not_load_is_refused_with_its_line() {
        let long = format!("---\nname: a\ndescription: {}\n---\nx", "y".repeat(1025));
        for (directory, text, part, line) in [
            ("a", "# No front matter", "no front matter", Some(1)),
            ("a", "---\nname: a\ndescription: b\n", "no end", Some(1)),
            (
                "a",
                "---\ndescription: b\n---\nx",
                "missing key `name`",
                None,
            ),
            (
                "a",
                "---\nname: a\n---\nx",
                "missing key `description`",
                None,
            ),
            (
                "A",
                "---\nname: A\ndescription: b\n---\nx",
                "found the name",
                Some(2),
            ),
            (
                "a",
                "---\nname: b\ndescription: b\n---\nx",
                "differs from the directory",
                Some(2),
            ),
            (
                "a",
                "---\nname: a\ndescription: ''\n---\nx",
                "is empty",
                Some(3),
            ),
            ("a", &long, "1025 characters", Some(3)),
            (
                "a",
                "---\nname: a\ndescription: b\n---\n\n",
                "nothing below",
                None,
            ),
            (
                "a",
                "---\nname: a\ndescription: b\n---\n[x](refs/a.md)",
                "refs/a.md",
                Some(5),
            ),
            (
                "a",
                "---\nname: a\ndescription: b: c\n---\nx",
                "no YAML",
                Some(1),
            ),
        ] {
            let (message, found) = refused(directory, text);
            assert!(message.contains(part), "{text}: {message}");
            assert_eq!(found, line, "{text}");
        }
    }

    #[test]
    fn links_to_elsewhere_are_not_files_of_the_skill() {
        let line =
            "[a](https://x.y) [b](#top) [c](/etc/x) `scripts/<name>.sh` `scripts/` `ls scripts/x`";
        assert!(references_in(line).is_empty());
        assert_eq!(
            references_in("[a](b.md#c) `assets/x.png`"),
            ["b.md", "assets/x.png"]
        );
    }
}
