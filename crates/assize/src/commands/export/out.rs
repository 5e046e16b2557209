//! The place an export is written to: a file, which appears when it is complete, or stdout.

use crate::terminal::{plain, say};
use anyhow::{Context, Result};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

pub(super) enum Out {
    File {
        path: PathBuf,
        writer: BufWriter<NamedTempFile>,
    },
    /// A pipe or a device, which must not be replaced.
    Device {
        path: PathBuf,
        file: File,
    },
    Stdout,
}

impl Out {
    pub(super) fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Self::Stdout);
        };
        // A link is followed: its target is what is written.
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            let opened = File::options().write(true).open(path);
            return Ok(Self::Device {
                file: opened.with_context(|| format!("cannot write `{}`", path.display()))?,
                path: path.to_owned(),
            });
        }
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create `{}`", directory.display()))?;
        let file = tempfile::Builder::new()
            .permissions(permissions())
            .tempfile_in(directory)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
        Ok(Self::File {
            path: path.to_owned(),
            writer: BufWriter::new(file),
        })
    }

    pub(super) fn add(&mut self, text: &str) -> Result<()> {
        match self {
            Self::File { path, writer } => writer
                .write_all(text.as_bytes())
                .with_context(|| format!("cannot write `{}`", path.display())),
            Self::Device { path, file } => file
                .write_all(text.as_bytes())
                .with_context(|| format!("cannot write `{}`", path.display())),
            // A reader that has gone away is no error.
            Self::Stdout => {
                let mut stdout = std::io::stdout().lock();
                let shown = match stdout.is_terminal() {
                    true => Cow::Owned(plain(text)),
                    false => Cow::Borrowed(text),
                };
                let _ = stdout.write_all(shown.as_bytes());
                Ok(())
            }
        }
    }

    pub(super) fn finish(self) -> Result<()> {
        let Self::File { path, writer } = self else {
            return Ok(());
        };
        let cannot_write = || format!("cannot write `{}`", path.display());
        let file = writer
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)
            .with_context(cannot_write)?;
        file.persist(&path).with_context(cannot_write)?;
        say(plain(&path.display().to_string()));
        Ok(())
    }

    /// The whole text at once.
    pub(super) fn write(path: Option<&Path>, text: &str) -> Result<()> {
        let mut out = Self::open(path)?;
        out.add(text)?;
        out.finish()
    }
}

/// Those of any new file, which the user's mask narrows. A temporary file alone would be for its owner only.
fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}
