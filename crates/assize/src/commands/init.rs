//! `assize init`: a suite that runs at once.

use crate::cli::InitArguments;
use crate::commands::UsageError;
use crate::exit::Exit;
use crate::terminal::{plain, print, say};
use anyhow::{Context, Result};
use std::path::Path;

const FILES: [(&str, &str); 3] = [
    (
        "assize.yaml",
        include_str!("../../../../examples/quickstart/assize.yaml"),
    ),
    (
        "scenarios/fix-bug.yaml",
        include_str!("../../../../examples/quickstart/scenarios/fix-bug.yaml"),
    ),
    (
        "scenarios/add-test.yaml",
        include_str!("../../../../examples/quickstart/scenarios/add-test.yaml"),
    ),
];

pub(crate) fn init(arguments: &InitArguments) -> Result<Exit> {
    let directory = &arguments.directory;
    // Nothing of anybody's is overwritten, and nothing is written half.
    if let Some((name, _)) = FILES.iter().find(|(name, _)| directory.join(name).exists()) {
        return Err(UsageError {
            message: format!("`{}` is already there", directory.join(name).display()),
            hint: Some("choose another directory: `assize init DIR`".to_owned()),
        }
        .into());
    }
    for (name, content) in FILES {
        write(&directory.join(name), content)?;
        print(plain(&directory.join(name).display().to_string()));
    }
    let path = match directory == Path::new(".") {
        true => String::new(),
        false => format!(" {}", directory.display()),
    };
    say(plain(&format!("\nnext: `assize run{path}`")));
    Ok(Exit::Done)
}

fn write(path: &Path, content: &str) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent)
        .with_context(|| format!("cannot create `{}`", parent.display()))?;
    std::fs::write(path, content).with_context(|| format!("cannot write `{}`", path.display()))
}
