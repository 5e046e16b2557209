//! `assize init`: a suite that runs at once.

use crate::cli::InitArguments;
use crate::commands::UsageError;
use crate::exit::Exit;
use crate::terminal::{plain, print, say};
use anyhow::{Context, Result};
use std::path::Path;

/// Where the schemas of a suite's files lie, beside its runs.
const SCHEMAS: &str = ".assize/schemas";

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
        write(&directory.join(name), &with_own_schemas(content))?;
        print(plain(&directory.join(name).display().to_string()));
    }
    write_schemas(&directory.join(SCHEMAS))?;
    let path = match directory == Path::new(".") {
        true => String::new(),
        false => format!(" {}", directory.display()),
    };
    say(plain(&format!("\nnext: `assize run{path}`")));
    Ok(Exit::Done)
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

/// What editors need to complete and check the files.
fn write_schemas(directory: &Path) -> Result<()> {
    for schema in super::schema::all() {
        if matches!(schema.name, "suite" | "scenario") {
            let text = serde_json::to_string_pretty(&schema.schema)?;
            write(
                &directory.join(format!("{}.schema.json", schema.name)),
                &text,
            )?;
        }
    }
    Ok(())
}

fn write(path: &Path, content: &str) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent)
        .with_context(|| format!("cannot create `{}`", parent.display()))?;
    std::fs::write(path, content).with_context(|| format!("cannot write `{}`", path.display()))
}
