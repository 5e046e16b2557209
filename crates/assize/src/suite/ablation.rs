//! `with:` and `without:`: the two modes of an ablation, written in one line.

use super::file::{Ablated, Listed, ModeSpec, Modes, SuiteFile};
use assize_agents::{SKILL_FILE, Subagent};
use std::path::Path;

/// The reason why a suite's `with` or `without` makes no modes.
pub(super) struct AblationError {
    pub(super) key: &'static str,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl AblationError {
    fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self {
            key,
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
}

/// Replaces `with` and `without` by the two modes that they expand to. The mode without the thing is the baseline.
pub(super) fn expand(file: &mut SuiteFile, directory: &Path) -> Result<(), AblationError> {
    let (with, without) = (file.with.take(), file.without.take());
    let key = match (&with, &without) {
        (None, None) => return Ok(()),
        (Some(_), Some(_)) => {
            let message = "found `with` and `without`, expected one of them";
            return Err(AblationError::new("without", message));
        }
        (Some(_), None) => "with",
        (None, Some(_)) => "without",
    };
    if !matches!(&file.modes, Modes::Definitions(modes) if modes.is_empty()) {
        let message = format!("found `{key}` and `modes`, expected one of them");
        return Err(AblationError::new(key, message)
            .hint("`with` and `without` make both modes of an ablation"));
    }
    let (name, without, with) = match (with, without) {
        (Some(with), _) => {
            let (name, with) = with_mode(file, with, directory)?;
            (name, ModeSpec::default(), with)
        }
        (None, Some(without)) => {
            let (name, without) = without_mode(file, &without, directory)?;
            (name, without, ModeSpec::default())
        }
        (None, None) => return Ok(()),
    };
    let called = |word: &str| match &name {
        Some(name) => format!("{word}-{name}"),
        None => word.to_owned(),
    };
    file.modes = Modes::Definitions(vec![(called("without"), without), (called("with"), with)]);
    Ok(())
}

/// The mode that has the thing, and the thing's name where there is one.
fn with_mode(
    file: &SuiteFile,
    with: Ablated,
    directory: &Path,
) -> Result<(Option<String>, ModeSpec), AblationError> {
    let nothing = || {
        let message = "found nothing, expected a skill, an instruction file or a subagent";
        AblationError::new("with", message)
    };
    let paths = match with {
        Ablated::Mode(mode) if changes_nothing(&mode) => return Err(nothing()),
        Ablated::Mode(mode) => return Ok((None, *mode)),
        Ablated::Path(path) => vec![path],
        Ablated::Paths(paths) => paths,
    };
    if paths.is_empty() {
        return Err(nothing());
    }
    let mut mode = ModeSpec::default();
    for path in &paths {
        let place = directory.join(path);
        if place.file_name().is_some_and(|name| name == SKILL_FILE) {
            let message =
                format!("`{path}` is the file of a skill, expected the skill's directory");
            let parent = Path::new(path).parent().unwrap_or(Path::new("."));
            let hint = format!("write `with: {}`", parent.display());
            return Err(AblationError::new("with", message).hint(hint));
        }
        let kind = kind_of(&place);
        if let Some(key) = kind
            .as_ref()
            .and_then(|kind| given(file, kind, &place, directory))
        {
            let message = format!(
                "`{path}` is given to all modes by `{key}` already, so that both modes would have it"
            );
            let hint = format!(
                "take it out of `{key}`, or write `without: {}`",
                name_of(path)
            );
            return Err(AblationError::new("with", message).hint(hint));
        }
        match kind {
            Some(Kind::Skill) => add(&mut mode.skills, file.skills.as_ref(), path),
            Some(Kind::Subagent) => add(&mut mode.agents, file.agents.as_ref(), path),
            Some(Kind::Instructions) if mode.instructions.is_some() => {
                let message =
                    format!("found `{path}` beside another instruction file, expected one");
                return Err(AblationError::new("with", message)
                    .hint("put both texts into one file: agents read one"));
            }
            Some(Kind::Instructions) => mode.instructions = Some(path.into()),
            None => {
                let message = format!("`{path}` is no skill, instruction file or subagent");
                return Err(AblationError::new("with", message).hint(
                    "a skill is a directory with `SKILL.md`, the others are Markdown files; paths are relative to the suite",
                ));
            }
        }
    }
    let name = (paths.len() == 1).then(|| name_of(&paths[0]));
    Ok((name, mode))
}

/// True when a mode is like any other.
fn changes_nothing(mode: &ModeSpec) -> bool {
    let ModeSpec {
        provider,
        environment,
        system_instructions,
        provider_overrides,
        runners,
        sandbox,
        skills,
        neighbours,
        instructions,
        agents,
        mcp_servers,
        settings,
    } = mode;
    let lists = [skills, neighbours, agents];
    provider.is_none()
        && environment.is_empty()
        && system_instructions.is_empty()
        && provider_overrides.is_empty()
        && runners.is_empty()
        && sandbox.is_none()
        && lists.into_iter().all(Option::is_none)
        && instructions.is_none()
        && mcp_servers.is_empty()
        && settings.is_empty()
}

/// The key by which the suite gives a thing to all modes.
fn given(file: &SuiteFile, kind: &Kind, place: &Path, directory: &Path) -> Option<&'static str> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let place = real(place);
    let is_listed = |listed: &Option<Listed>| {
        let mut paths = listed.iter().flat_map(|listed| &listed.0);
        paths.any(|path| real(&directory.join(path)) == place)
    };
    match kind {
        Kind::Skill if is_listed(&file.skills) => Some("skills"),
        Kind::Skill if is_listed(&file.neighbours) => Some("neighbours"),
        Kind::Subagent if is_listed(&file.agents) => Some("agents"),
        Kind::Instructions => {
            let given = file.instructions.as_ref()?;
            (real(&directory.join(given)) == place).then_some("instructions")
        }
        _ => None,
    }
}

/// The mode that lacks the thing.
fn without_mode(
    file: &SuiteFile,
    without: &Listed,
    directory: &Path,
) -> Result<(Option<String>, ModeSpec), AblationError> {
    let mut mode = ModeSpec::default();
    for thing in &without.0 {
        let has = |listed: &Option<Listed>| {
            let paths = listed.iter().flat_map(|listed| &listed.0);
            paths.clone().any(|path| is_called(path, thing, directory))
        };
        let rest = |listed: &Option<Listed>, so_far: &Option<Listed>| {
            let from = so_far.as_ref().or(listed.as_ref());
            let paths = from.iter().flat_map(|listed| &listed.0);
            let kept = paths.filter(|path| !is_called(path, thing, directory));
            Some(Listed(kept.cloned().collect()))
        };
        let is_file = |path: &std::path::PathBuf| path.to_string_lossy() == thing.as_str();
        if has(&file.skills) {
            mode.skills = rest(&file.skills, &mode.skills);
        } else if has(&file.agents) {
            mode.agents = rest(&file.agents, &mode.agents);
        } else if file.mcp_servers.contains_key(thing) {
            // A mode's `null` takes away what the suite gives.
            mode.mcp_servers
                .insert(thing.clone(), serde_json::Value::Null);
        } else if file.instructions.is_some()
            && (thing == "instructions" || file.instructions.as_ref().is_some_and(is_file))
        {
            mode.instructions = Some(std::path::PathBuf::new());
        } else {
            let message = format!("the suite gives its modes nothing called `{thing}`");
            return Err(AblationError::new("without", message).hint(
                "name it first: `skills: [./skills/review]` beside `without: review`; to add it to one mode write `with: ./skills/review`",
            ));
        }
    }
    let name = match without.0.as_slice() {
        [one] => Some(name_of(one)),
        _ => None,
    };
    Ok((name, mode))
}

fn add(list: &mut Option<Listed>, of_suite: Option<&Listed>, path: &str) {
    let list = list.get_or_insert_with(|| of_suite.cloned().unwrap_or_default());
    list.0.push(path.to_owned());
}

enum Kind {
    Skill,
    Subagent,
    Instructions,
}

/// The kind of file at a path that an ablation names.
fn kind_of(path: &Path) -> Option<Kind> {
    if path.is_dir() {
        // A directory that is a broken skill is refused with its reason later.
        let is_skill = path.join(SKILL_FILE).exists() || path.join("skill.md").exists();
        return is_skill.then_some(Kind::Skill);
    }
    match path.is_file() {
        false => None,
        true if Subagent::read(path).is_ok() => Some(Kind::Subagent),
        true => Some(Kind::Instructions),
    }
}

/// `./skills/review/` is called `review`, and so is `agents/review.md`.
fn name_of(path: &str) -> String {
    let path = Path::new(path);
    let is_markdown = path.extension().is_some_and(|ending| ending == "md");
    let name = match is_markdown {
        true => path.file_stem(),
        false => path.file_name(),
    };
    name.map_or_else(
        || path.to_string_lossy().into_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn is_called(path: &str, thing: &str, directory: &Path) -> bool {
    path == thing || name_of(path) == thing || directory.join(path) == directory.join(thing)
}
