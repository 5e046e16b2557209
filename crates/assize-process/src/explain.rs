//! Explains why a program did not start: the system gives one number, this looks for the sentence behind it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::command::Command;
use crate::error::Error;
use crate::lookup::{DEFAULT_PATH, candidates, has_slash, search_path};

/// The error for a program that the system refused with `errno`.
pub(crate) fn not_started(command: &Command, errno: i32) -> Error {
    Error::NotStarted {
        program: command.program().to_owned(),
        cwd: command.cwd.clone(),
        hint: hint(command, errno),
        source: io::Error::from_raw_os_error(errno),
    }
}

fn hint(command: &Command, errno: i32) -> Option<String> {
    let program = command.program();
    if program.as_os_str().is_empty() {
        return Some("the command is empty: name a program".into());
    }
    if !command.cwd.is_dir() {
        return Some(format!("there is no directory `{}`", command.cwd.display()));
    }
    match errno {
        libc::ENOENT => Some(explain_missing(command)),
        libc::EACCES => Some(explain_denied(command)),
        libc::ENOEXEC => Some("it is no program for this machine; a script needs a first line like `#!/bin/sh`".into()),
        libc::E2BIG => Some(
            "the arguments or the environment are too long for the system; pass long texts on stdin or in a file".into(),
        ),
        libc::EINVAL => Some("an argument or environment variable holds a NUL byte".into()),
        _ => None,
    }
}

fn explain_missing(command: &Command) -> String {
    let program = command.program();
    if has_slash(program.as_os_str()) {
        let path = command.cwd.join(program);
        return match interpreter(&path) {
            Some(name) => format!(
                "`{}` asks for the interpreter `{name}`, which is not there",
                path.display()
            ),
            None if path.exists() => format!(
                "`{}` needs a loader that is not on this machine",
                path.display()
            ),
            None => format!("there is no file `{}`", path.display()),
        };
    }
    match search_path(&command.env) {
        Some(_) => "it is in no directory of PATH".to_owned(),
        None => format!("the environment given to it has no PATH, and it is not in {DEFAULT_PATH}"),
    }
}

fn explain_denied(command: &Command) -> String {
    let candidates = candidates(command.program().as_os_str(), &command.env);
    let found = candidates
        .iter()
        .map(|path| command.cwd.join(path))
        .find(|path| path.exists());
    let Some(path) = found else {
        return "a directory on the way to it may not be entered".into();
    };
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => format!("`{}` is a directory", path.display()),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => {
            format!("`{0}` is not executable: `chmod +x {0}`", path.display())
        }
        _ => format!(
            "`{}` may not be run by this user or on this filesystem",
            path.display()
        ),
    }
}

/// The program named by the first line of a script.
fn interpreter(path: &Path) -> Option<String> {
    let mut start = [0; 256];
    let length = File::open(path).ok()?.read(&mut start).ok()?;
    let line = start[..length]
        .strip_prefix(b"#!")?
        .split(|&byte| byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line);
    line.split_whitespace().next().map(str::to_owned)
}
