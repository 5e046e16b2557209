//! The way out of a wrong command line: words of other tools, flags in the wrong place, a command without `--`.

use super::Arguments;
use crate::suite::nearest;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::path::Path;

/// Other tools' names of a command, and what to type here.
const OTHER_WORDS: [(&[&str], &str); 17] = [
    (
        &[
            "eval",
            "evaluate",
            "test",
            "bench",
            "benchmark",
            "start",
            "exec",
            "execute",
            "profile",
            "go",
        ],
        "`assize run SUITE` runs a suite; `assize try` compares two commands without one",
    ),
    (
        &["new", "create", "setup", "scaffold", "generate", "add"],
        "`assize init DIR` writes a suite that runs at once",
    ),
    (
        &["ls", "list", "log", "logs", "experiments"],
        "`assize runs` lists the runs, `assize show` the trials of the last one",
    ),
    (
        &["validate", "verify", "lint", "checks"],
        "`assize check SUITE` validates a suite without running it",
    ),
    (
        &["view", "open", "ui", "web", "serve", "dashboard", "html"],
        "`assize report --open` shows the report in the browser",
    ),
    (
        &["diff", "vs", "versus", "comparison"],
        "`assize compare` compares the modes of the last run, `assize compare A B` two runs",
    ),
    (
        &[
            "result", "results", "summary", "inspect", "cat", "trial", "trials", "trace", "traces",
            "why",
        ],
        "`assize show` lists the trials of the last run, `assize show last/0` shows one",
    ),
    (
        &["rm", "delete", "remove", "clean", "prune"],
        "`assize runs rm ID` removes a run, `assize runs prune --keep 10` all but the newest",
    ),
    (
        &["resume", "continue", "retry", "rerun"],
        "`assize run --resume last` runs what is missing of the last run",
    ),
    (
        &["status", "progress"],
        "`assize runs` lists the runs and how far they are, `assize submit status` a submission",
    ),
    (
        &["config", "configure", "settings"],
        "all settings are in the suite file: `assize schema suite` describes it",
    ),
    (&["version"], "write `assize --version`"),
    (
        &["agents", "agent", "providers", "provider", "models"],
        "`assize doctor` shows the agents of this machine, `assize plugins` everything that suites can name",
    ),
    (
        &["login", "logout", "auth", "key", "keys"],
        "there is no account; agents take their keys from environment variables, `assize doctor` says which",
    ),
    (
        &["cost", "costs", "usage", "tokens"],
        "`assize sessions` shows what the agents of this machine took, `assize show` what a run took",
    ),
    (
        &[
            "scenario",
            "scenarios",
            "suite",
            "suites",
            "mode",
            "modes",
            "task",
            "tasks",
        ],
        "`assize check SUITE` says what a suite holds, `assize init` writes one",
    ),
    (
        &["update", "upgrade", "install", "uninstall"],
        "assize is installed and replaced by the program that brought it: npm, pip, cargo or install.sh",
    ),
];

/// Other tools' names of a flag, and its names here; the first that the command has is meant.
const OTHER_FLAGS: [(&[&str], &[&str]); 12] = [
    (
        &[
            "reps",
            "rep",
            "repeat",
            "repeats",
            "iterations",
            "iters",
            "times",
            "runs",
            "trials",
            "count",
            "samples",
            "num",
            "k",
        ],
        &["repetitions"],
    ),
    (
        &[
            "parallel",
            "jobs",
            "workers",
            "threads",
            "max-concurrency",
            "max-connections",
            "concurrent",
        ],
        &["concurrency"],
    ),
    (&["modes", "variant", "arm", "config-name"], &["mode"]),
    (&["models"], &["model"]),
    (
        &[
            "scenarios",
            "filter",
            "grep",
            "task",
            "tasks",
            "only-scenario",
            "id",
        ],
        &["scenario"],
    ),
    (&["tags"], &["tag"]),
    (
        &[
            "out",
            "out-dir",
            "output-dir",
            "results",
            "results-dir",
            "dir",
        ],
        &["output", "out"],
    ),
    (&["output", "output-dir", "dir"], &["out"]),
    (
        &["force", "no-confirm", "assume-yes", "non-interactive"],
        &["yes"],
    ),
    (&["dry", "plan", "simulate", "print"], &["dry-run"]),
    (&["failures", "fail", "errors"], &["failed"]),
    (&["time-limit", "max-time", "timeout-ms"], &["timeout"]),
];

/// Flags that name a suite in other tools; here it needs none.
const SUITE_FLAGS: [&str; 6] = ["suite", "config", "file", "path", "f", "c"];

/// The words to type instead. None where clap has said all there is to say.
pub(super) fn hint(error: &clap::Error, given: &[String]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => command_hint(text(ContextKind::InvalidSubcommand)?, given),
        ErrorKind::UnknownArgument => {
            let argument = text(ContextKind::InvalidArg)?;
            let is_suggested = error.get(ContextKind::SuggestedArg).is_some();
            argument_hint(argument, given, is_suggested)
        }
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let argument = text(ContextKind::InvalidArg)?;
            variable_hint(argument, text(ContextKind::InvalidValue)?, given)
        }
        _ => None,
    }
}

fn command_hint(word: &str, given: &[String]) -> Option<String> {
    let is_top = given.get(1).is_some_and(|first| first == word);
    if !is_top {
        return None;
    }
    let path = Path::new(word);
    let is_suite = ["yaml", "yml", "toml", "json"]
        .iter()
        .any(|ending| path.extension().is_some_and(|found| found == *ending));
    if is_suite || path.is_dir() {
        let rest: Vec<&str> = given.iter().skip(1).map(String::as_str).collect();
        return Some(format!("write `assize run {}`", joined(&rest)?));
    }
    let wanted = word.to_lowercase();
    let words = OTHER_WORDS
        .iter()
        .find(|(words, _)| words.contains(&wanted.as_str()));
    if let Some((_, hint)) = words {
        return Some((*hint).to_owned());
    }
    let first = word.split_whitespace().next().unwrap_or_default();
    if first != word && is_command(first) {
        return Some(format!("write it without quotes: `assize {word}`"));
    }
    let all = Arguments::command();
    let names = all.get_subcommands().map(clap::Command::get_name);
    // Of two that are equally near, such as `run` and `runs`, the one with as many letters is meant.
    let mut names: Vec<&str> = names.collect();
    names.sort_by_key(|name| name.len().abs_diff(word.len()));
    match nearest(word, names) {
        Some(name) => Some(format!("did you mean `assize {name}`?")),
        None => Some("`assize --help` lists the commands".to_owned()),
    }
}

fn argument_hint(argument: &str, given: &[String], is_suggested: bool) -> Option<String> {
    let place = given.iter().position(|part| {
        part == argument || part.starts_with(&format!("{argument}=")) || part.starts_with(argument)
    });
    let at = given.iter().skip(1).position(|part| is_command(part));
    let Some(at) = at.map(|at| at + 1) else {
        return argument
            .starts_with('-')
            .then(|| "name a command first: `assize --help` lists them".to_owned());
    };
    let name = given.get(at)?;
    let is_number = argument
        .strip_prefix('-')
        .is_some_and(|number| number.parse::<f64>().is_ok());
    let before = place.and_then(|place| given.get(place.checked_sub(1)?));
    if let Some(before) = before.filter(|before| is_number && before.starts_with('-')) {
        return Some(format!("`{before}` takes no negative number"));
    }
    if name == "try" && !argument.starts_with('-') {
        return Some(format!(
            "give commands with `-m`: `assize try -m '{argument}' -m '…' --prompt '…'`"
        ));
    }
    if place.is_some_and(|place| place < at) {
        return Some(format!(
            "flags come after the command: `assize {name} … {argument}`"
        ));
    }
    if name == "record" {
        return record_hint(argument, given);
    }
    let flag = argument.trim_start_matches('-');
    if flag == "verbose" {
        return Some("`-v` logs what is done; `-vv` logs more".to_owned());
    }
    flag_hint(name, argument, given).or_else(|| {
        let is_unexplained = !is_suggested && argument.starts_with("--");
        is_unexplained.then(|| owners_hint(name, argument))
    })
}

/// The way out of an argument that the command does not take, by what it takes instead.
fn flag_hint(name: &str, argument: &str, given: &[String]) -> Option<String> {
    let all = Arguments::command();
    let command = all.find_subcommand(name)?;
    let flag = argument.trim_start_matches('-');
    let takes_suite = command
        .get_positionals()
        .any(|argument| ["path", "suite"].contains(&argument.get_id().as_str()));
    if takes_suite && SUITE_FLAGS.contains(&flag) && argument.starts_with('-') {
        let value = argument_value(argument, given);
        let value = value.as_deref().unwrap_or("SUITE");
        return Some(format!(
            "name the suite without a flag: `assize {name} {value}`"
        ));
    }
    let meant = OTHER_FLAGS
        .iter()
        .filter(|(words, _)| argument.starts_with("--") && words.contains(&flag))
        .flat_map(|(_, flags)| flags.iter())
        .find(|flag| has_flag(command, flag));
    if let Some(meant) = meant {
        return Some(format!("did you mean `--{meant}`?"));
    }
    (takes_suite && !argument.starts_with('-'))
        .then(|| format!("`assize {name}` takes one suite at a time"))
}

/// The commands that have a flag.
fn owners_hint(name: &str, argument: &str) -> String {
    let flag = argument.trim_start_matches('-');
    let all = Arguments::command();
    let owners = all.get_subcommands().filter(|other| has_flag(other, flag));
    let owners: Vec<String> = owners
        .map(|other| format!("`assize {}`", other.get_name()))
        .collect();
    match owners.as_slice() {
        [] => format!("`assize {name} --help` lists its flags"),
        owners => format!("`{argument}` is a flag of {}", owners.join(", ")),
    }
}

fn has_flag(command: &clap::Command, flag: &str) -> bool {
    let mut arguments = command.get_arguments();
    arguments.any(|argument| argument.get_long() == Some(flag))
}

/// `assize record claude -p hi`, as it should be written.
fn record_hint(argument: &str, given: &[String]) -> Option<String> {
    let place = given.iter().position(|part| part == argument)?;
    let (flags, command) = given.get(1..)?.split_at(place - 1);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let command = joined(&command)?;
    Some(format!("write `assize {} -- {command}`", flags.join(" ")))
}

/// A value that was not typed comes from an environment variable.
fn variable_hint(argument: &str, value: &str, given: &[String]) -> Option<String> {
    let name = argument.split([' ', '=']).next()?.trim_start_matches('-');
    let variable = variable_of(given.get(1)?, name)?;
    let is_from_there = std::env::var(&variable).is_ok_and(|found| found == value);
    let is_given = given.iter().any(|part| part.contains(value));
    (is_from_there && !is_given).then(|| {
        format!(
            "`{value}` is the value of the environment variable `{variable}`: correct or unset it"
        )
    })
}

/// The environment variable that replaces a flag of a command.
fn variable_of(command: &str, flag: &str) -> Option<String> {
    let all = Arguments::command();
    let mut arguments = all.find_subcommand(command)?.get_arguments();
    let argument = arguments.find(|argument| argument.get_long() == Some(flag))?;
    Some(argument.get_env()?.to_string_lossy().into_owned())
}

fn is_command(word: &str) -> bool {
    Arguments::command().find_subcommand(word).is_some()
}

/// The value of a flag, as `--flag=value` or as the next word.
fn argument_value(argument: &str, given: &[String]) -> Option<String> {
    let place = given.iter().position(|part| part.starts_with(argument))?;
    match given[place].split_once('=') {
        Some((_, value)) => Some(value.to_owned()),
        None => given
            .get(place + 1)
            .filter(|next| !next.starts_with('-'))
            .cloned(),
    }
}

fn joined(words: &[&str]) -> Option<String> {
    shlex::try_join(words.iter().copied()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn check(line: &str, expected: &str) {
        let given: Vec<String> = shlex::split(line).unwrap();
        let error = Arguments::try_parse_from(&given).unwrap_err();
        let hint = hint(&error, &given).unwrap_or_default();
        assert!(hint.contains(expected), "{line}: {hint:?}\n{error}");
    }

    #[test]
    fn words_of_other_tools_lead_to_the_command() {
        check("assize eval", "`assize run SUITE`");
        check("assize test", "`assize run SUITE`");
        check("assize ls", "`assize runs`");
        check("assize view", "`assize report --open`");
        check("assize resume", "`assize run --resume last`");
        check(
            "assize suite.yaml -n 3",
            "write `assize run suite.yaml -n 3`",
        );
        check("assize rnu", "`assize run`");
        check("assize comapre", "`assize compare`");
        check("assize 'run demo'", "without quotes: `assize run demo`");
    }

    #[test]
    fn flags_of_other_tools_lead_to_the_flag() {
        check("assize run --reps 3", "`--repetitions`");
        check("assize run --jobs=3", "`--concurrency`");
        check("assize run --suite demo", "`assize run demo`");
        check("assize check -f demo", "`assize check demo`");
        check("assize run --verbose", "`-v`");
        check("assize run -n -1", "`-n` takes no negative number");
        check("assize try cat tac", "assize try -m 'cat'");
        check("assize run one two", "one suite at a time");
        check("assize show --dry-run", "is a flag of ");
        check(
            "assize run --nonsense-at-all",
            "`assize run --help` lists its flags",
        );
    }

    #[test]
    fn flags_in_front_of_the_command_belong_behind_it() {
        check("assize -n 3 run demo", "`assize run … -n`");
        check("assize --json runs", "`assize runs … --json`");
        check("assize --nonsense", "name a command first");
    }

    #[test]
    fn no_word_is_explained_twice_or_is_a_command() {
        let mut seen = std::collections::HashSet::new();
        for word in OTHER_WORDS.iter().flat_map(|(words, _)| words.iter()) {
            assert!(seen.insert(word), "{word}");
            assert!(!is_command(word), "{word}");
        }
    }
}
