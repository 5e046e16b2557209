//! `assize record`: any agent command under the keeper and behind the capture proxy, and its profile.

mod follow;
mod profile;
mod show;

pub(super) use show::print_totals;

use crate::cli::{CaptureArguments, RecordArguments, TimingArgument};
use crate::commands::UsageError;
use crate::exit::Exit;
use crate::private;
use crate::suite::suggest;
use crate::terminal::{plain, say, warn};
use anyhow::{Context, Result};
use assize_agents::capture::{
    CapturedSession, Cassette, CassetteMode, CassetteSettings, CassetteTiming, Proxy, Service,
    SessionOptions, Upstreams,
};
use assize_contracts::{SessionTrace, Timestamp};
use assize_llm::Prices;
use assize_secrets::Secrets;
use profile::Profile;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn record(arguments: &RecordArguments) -> Result<Exit> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let profile = runtime.block_on(profile_of(arguments))?;
    write_trace(&profile.trace, &profile.path)?;
    if arguments.json {
        crate::terminal::print(profile.json().to_string());
    } else {
        show::print(&profile);
    }
    if profile.recording.is_empty() {
        report_nothing_captured(&profile);
    }
    Ok(Exit::Recorded(profile.exit_code()))
}

async fn profile_of(arguments: &RecordArguments) -> Result<Profile> {
    let prices = prices(&arguments.capture)?;
    let proxy = Proxy::start(0, cassette(&arguments.capture)?).await?;
    let upstreams = upstreams(&arguments.capture)?;
    let session = proxy.open(upstreams, options());
    let command = follow::command(arguments, &session)?;
    let exit = match follow::is_interactive(arguments.json) {
        true => follow::follow_in_terminal(command).await?,
        false => follow::follow(command, arguments.json).await?,
    };
    // Reckoned from its end: on a busy machine the keeper may take longer to start than the command to run.
    let ended = jiff::Timestamp::now().as_millisecond();
    let started = Timestamp::from_unix_ms(ended - exit.wall.as_millis() as i64);
    session.settle().await;
    let path = match &arguments.out {
        Some(path) => path.clone(),
        None => default_path(&arguments.command[0]),
    };
    let command = arguments.command.iter();
    let command = command.map(|part| part.to_string_lossy().into_owned());
    Ok(Profile::new(
        command.collect(),
        (started, exit),
        &session,
        path,
        &prices,
    ))
}

/// The directory a command works in is the same in every recording, and so is the name of its session.
pub(super) fn options() -> SessionOptions {
    let secrets = Secrets::default();
    for (name, value) in std::env::vars_os() {
        secrets.note(&name.to_string_lossy(), &value.to_string_lossy());
    }
    SessionOptions {
        label: "record".to_owned(),
        secrets,
        ..SessionOptions::default()
    }
}

pub(super) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The services that requests go to, as the flags give them.
pub(super) fn upstreams(arguments: &CaptureArguments) -> Result<Upstreams> {
    let mut given = BTreeMap::new();
    for text in &arguments.upstream {
        let (name, url) = text.split_once('=').ok_or_else(|| UsageError {
            message: format!("found `--upstream {text}`, expected an API and its base URL"),
            hint: Some("for example `--upstream openai=http://127.0.0.1:8080/v1`".to_owned()),
        })?;
        let known = Service::ALL.map(Service::as_str);
        let service = Service::named(name).ok_or_else(|| UsageError {
            message: format!("unknown API `{name}` (known: {})", known.join(", ")),
            hint: suggest(name, &known),
        })?;
        given.insert(service, url.to_owned());
    }
    Upstreams::resolve(&given, environment)
        .map_err(|error| UsageError::new(error.to_string()).into())
}

pub(super) fn prices(arguments: &CaptureArguments) -> Result<Prices> {
    match &arguments.prices {
        Some(file) => Ok(Prices::with_file(file)?),
        None => Ok(Prices::default()),
    }
}

pub(super) fn cassette(arguments: &CaptureArguments) -> Result<Option<Cassette>> {
    let (file, mode) = match (&arguments.cassette, &arguments.replay) {
        (Some(file), _) => (file, CassetteMode::Record),
        (None, Some(file)) => (file, CassetteMode::Replay),
        (None, None) => return Ok(None),
    };
    let settings = CassetteSettings {
        file: file.clone(),
        mode,
        strict: !arguments.fall_through,
        timing: match arguments.timing {
            TimingArgument::Fast => CassetteTiming::Fast,
            TimingArgument::Original => CassetteTiming::Original,
        },
    };
    Ok(Some(Cassette::open(settings)?))
}

/// `.assize/recordings/20261116-004512-123-claude.json`
fn default_path(program: &std::ffi::OsStr) -> PathBuf {
    let now = jiff::Timestamp::now()
        .strftime("%Y%m%d-%H%M%S-%3f")
        .to_string();
    let program = Path::new(program).file_name().unwrap_or_default();
    let is_harmless = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let program: String = program
        .to_string_lossy()
        .chars()
        .filter(is_harmless)
        .collect();
    Path::new(".assize/recordings").join(format!("{now}-{program}.json"))
}

/// Writes a trace where `analyze` can read it.
pub(super) fn write_trace(trace: &SessionTrace, path: &Path) -> Result<()> {
    let cannot = || format!("cannot write `{}`", path.display());
    if let Some(directory) = path.parent() {
        private::directory(directory).with_context(cannot)?;
    }
    let mut file = private::file(path).with_context(cannot)?;
    file.write_all(&serde_json::to_vec(trace)?)
        .with_context(cannot)
}

/// Replaces `{openai_url}` and its like.
fn with_addresses(text: &str, session: &CapturedSession) -> String {
    Service::ALL
        .into_iter()
        .fold(text.to_owned(), |text, service| {
            text.replace(&format!("{{{service}_url}}"), &session.base_url(service))
        })
}

fn report_nothing_captured(profile: &Profile) {
    warn(&match profile.recording.other_requests {
        0 => "nothing came through the proxy, so there is nothing to profile".to_owned(),
        others => format!("{others} requests came through the proxy, but no model was asked"),
    });
    say(plain(
        "hint: does the agent read ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL? If it wants the address \
         elsewhere, write {openai_url} (or anthropic, gemini) in the command; see docs/capture.md",
    ));
}
