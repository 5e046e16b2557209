//! `assize import FORMAT PATH`: what others wrote, looked at and made usable here. One entry per format.

mod harbor;

use crate::cli::ImportArguments;
use crate::commands::UsageError;
use crate::exit::Exit;
use crate::suite::suggest;
use anyhow::Result;

/// A format that can be imported.
struct Format {
    name: &'static str,
    import: fn(&ImportArguments) -> Result<Exit>,
}

const FORMATS: [Format; 1] = [Format {
    name: "harbor",
    import: harbor::import,
}];

pub(crate) fn import(arguments: &ImportArguments) -> Result<Exit> {
    let named = FORMATS
        .iter()
        .find(|format| format.name == arguments.format);
    match named {
        Some(format) => (format.import)(arguments),
        None => {
            let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            Err(UsageError {
                message: format!("unknown format `{}`", arguments.format),
                hint: suggest(&arguments.format, &known)
                    .or_else(|| Some(format!("known are {}", known.join(", ")))),
            }
            .into())
        }
    }
}
