//! `assize init`: a suite that runs at once, or a plugin with a suite around it.

use super::{init_agent, init_git, init_session, schema};
use crate::cli::{InitArguments, PluginLanguage};
use crate::commands::UsageError;
use crate::exit::Exit;
use crate::terminal::{plain, print, say};
use anyhow::{Context, Result};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The directory of the schemas of a suite's files, beside its runs.
pub(super) const SCHEMAS: &str = ".assize/schemas";

/// Runs stay on the machine; schemas are for everybody who opens the files.
const IGNORED: &str = ".assize/.gitignore";

/// A file to write, relative to the suite's directory.
pub(super) struct Written {
    pub(super) path: PathBuf,
    pub(super) content: Vec<u8>,
    /// Others may run it.
    pub(super) is_program: bool,
}

impl Written {
    pub(super) fn text(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            content: text.into().into_bytes(),
            is_program: false,
        }
    }
}

/// A file to write: where, and what.
type Template = (&'static str, &'static str);

macro_rules! files {
    ($($name:literal: $source:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../", $source)))),*]
    };
}

const QUICKSTART: &[Template] = files! {
    "assize.yaml": "examples/quickstart/assize.yaml",
    "scenarios/fix-bug.yaml": "examples/quickstart/scenarios/fix-bug.yaml",
    "scenarios/add-test.yaml": "examples/quickstart/scenarios/add-test.yaml",
};

/// The kit lies beside the plugin, so that it runs without anything being installed.
const PYTHON: &[Template] = files! {
    "assize.yaml": "crates/assize/templates/py/assize.yaml",
    "scenarios/hello.yaml": "crates/assize/templates/scenarios/hello.yaml",
    "plugin.py": "crates/assize/templates/py/plugin.py",
    "assize/__init__.py": "sdk/python/assize/__init__.py",
    "assize/contracts.py": "sdk/python/assize/contracts.py",
    "assize/errors.py": "sdk/python/assize/errors.py",
    "assize/plugin.py": "sdk/python/assize/plugin.py",
    "assize/records.py": "sdk/python/assize/records.py",
    "assize/server.py": "sdk/python/assize/server.py",
    "assize/py.typed": "sdk/python/assize/py.typed",
};

const TYPESCRIPT: &[Template] = files! {
    "assize.yaml": "crates/assize/templates/ts/assize.yaml",
    "scenarios/hello.yaml": "crates/assize/templates/scenarios/hello.yaml",
    "plugin.ts": "crates/assize/templates/ts/plugin.ts",
    "package.json": "crates/assize/templates/ts/package.json",
    "tsconfig.json": "crates/assize/templates/ts/tsconfig.json",
    "vendor/assize/package.json": "sdk/typescript/package.json",
    "vendor/assize/dist/built-in.js": "sdk/typescript/dist/built-in.js",
    "vendor/assize/dist/built-in.d.ts": "sdk/typescript/dist/built-in.d.ts",
    "vendor/assize/dist/contracts.js": "sdk/typescript/dist/contracts.js",
    "vendor/assize/dist/contracts.d.ts": "sdk/typescript/dist/contracts.d.ts",
    "vendor/assize/dist/errors.js": "sdk/typescript/dist/errors.js",
    "vendor/assize/dist/errors.d.ts": "sdk/typescript/dist/errors.d.ts",
    "vendor/assize/dist/index.js": "sdk/typescript/dist/index.js",
    "vendor/assize/dist/index.d.ts": "sdk/typescript/dist/index.d.ts",
    "vendor/assize/dist/records.js": "sdk/typescript/dist/records.js",
    "vendor/assize/dist/records.d.ts": "sdk/typescript/dist/records.d.ts",
    "vendor/assize/dist/run.js": "sdk/typescript/dist/run.js",
    "vendor/assize/dist/run.d.ts": "sdk/typescript/dist/run.d.ts",
    "vendor/assize/dist/serve.js": "sdk/typescript/dist/serve.js",
    "vendor/assize/dist/serve.d.ts": "sdk/typescript/dist/serve.d.ts",
};

const RUST: &[Template] = files! {
    "assize.yaml": "crates/assize/templates/rust/assize.yaml",
    "scenarios/hello.yaml": "crates/assize/templates/scenarios/hello.yaml",
    "Cargo.toml": "crates/assize/templates/rust/Cargo.toml.template",
    "src/main.rs": "crates/assize/templates/rust/src/main.rs",
};

pub(crate) fn init(arguments: &InitArguments) -> Result<Exit> {
    let directory = &arguments.directory;
    let (files, next) = match arguments.plugin {
        None => (QUICKSTART, &["assize run"][..]),
        Some(PluginLanguage::Py) => (
            PYTHON,
            &["assize plugins test python3 plugin.py", "assize run"][..],
        ),
        Some(PluginLanguage::Ts) => (TYPESCRIPT, &["npm install", "npm test", "assize run"][..]),
        Some(PluginLanguage::Rust) => (RUST, &["cargo run -- run"][..]),
    };
    let mut next = next;
    let is_for_agents = !arguments.agent.is_empty()
        || arguments.from_git.is_some()
        || arguments.from_session.is_some();
    if is_for_agents {
        // Before anything takes time.
        refuse_to_overwrite(arguments, Path::new("assize.yaml"))?;
        next = &["assize check", "assize run"];
    }
    if directory.is_file() {
        return Err(UsageError {
            message: format!("`{}` is a file", directory.display()),
            hint: Some("name a directory: `assize init DIR`".to_owned()),
        }
        .into());
    }
    let files: Vec<Written> = match (&arguments.from_git, &arguments.from_session) {
        (Some(range), _) => init_git::files(arguments, range)?,
        (None, Some(session)) => init_session::files(arguments, session)?,
        (None, None) if is_for_agents => init_agent::files(directory, &arguments.agent)?,
        (None, None) => files
            .iter()
            .map(|(name, content)| Written::text(*name, with_own_schemas(content)))
            .collect(),
    };
    // Nothing of anybody's is overwritten, and nothing is written half.
    for file in &files {
        refuse_to_overwrite(arguments, &file.path)?;
    }
    for file in &files {
        let path = directory.join(&file.path);
        write_file(&path, &file.content, file.is_program)?;
        print(plain(&path.display().to_string()));
    }
    write_schemas(&directory.join(SCHEMAS))?;
    let ignored = directory.join(IGNORED);
    if !ignored.exists() {
        write(&ignored, "/runs/\n/recordings/\n")?;
    }
    say(plain(&format!("\nnext: {}", steps(directory, next))));
    Ok(Exit::Done)
}

fn refuse_to_overwrite(arguments: &InitArguments, name: &Path) -> Result<(), UsageError> {
    let path = arguments.directory.join(name);
    if !path.exists() {
        return Ok(());
    }
    let agents = arguments
        .agent
        .iter()
        .map(|agent| format!(" --agent {agent}"));
    let range = arguments
        .from_git
        .iter()
        .map(|range| format!(" --from-git {range}"));
    let session = arguments
        .from_session
        .iter()
        .map(|path| format!(" --from-session {}", path.display()));
    let flags: String = agents.chain(range).chain(session).collect();
    Err(UsageError {
        message: format!("`{}` is already there", path.display()),
        hint: Some(format!(
            "choose another directory: `assize init{flags} DIR`"
        )),
    })
}

/// A single command is shown with the directory, several are run in it.
fn steps(directory: &Path, next: &[&str]) -> String {
    let is_here = directory == Path::new(".");
    match next {
        [command] if is_here => format!("`{command}`"),
        ["assize run"] => format!("`assize run {}`", directory.display()),
        commands if is_here => format!("`{}`", commands.join(" && ")),
        commands => format!("`cd {} && {}`", directory.display(), commands.join(" && ")),
    }
}

/// The files are those of the example, whose schema lines point into this repository.
fn with_own_schemas(content: &str) -> String {
    content
        .replacen(
            "$schema=../../../schemas/",
            &format!("$schema=../{SCHEMAS}/"),
            1,
        )
        .replacen("$schema=../../schemas/", &format!("$schema={SCHEMAS}/"), 1)
}

/// Writes what editors need to complete and check the files.
fn write_schemas(directory: &Path) -> Result<()> {
    for (name, json) in [("suite", schema::SUITE), ("scenario", schema::SCENARIO)] {
        write(&directory.join(format!("{name}.schema.json")), json)?;
    }
    Ok(())
}

fn write(path: &Path, content: &str) -> Result<()> {
    write_file(path, content.as_bytes(), false)
}

/// Writes a file and the directories above it.
pub(super) fn write_file(path: &Path, content: &[u8], is_program: bool) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent)
        .with_context(|| format!("cannot create `{}`", parent.display()))?;
    let failed = || format!("cannot write `{}`", path.display());
    std::fs::write(path, content).with_context(failed)?;
    if is_program {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path, mode).with_context(failed)?;
    }
    Ok(())
}
