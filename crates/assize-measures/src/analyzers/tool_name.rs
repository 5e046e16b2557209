//! Names tool calls. A shell is a thousand tools, so its calls are named by their command: `git commit`, `ls`.
//! This reads the beginning of a command line well enough for a name; it is no shell.

use serde_json::Value;
use std::borrow::Cow;

#[rustfmt::skip]
const SHELL_TOOLS: [&str; 12] = [
    "bash", "command_execution", "exec", "exec_command", "execute_command", "local_shell", "run_command", "run_shell_command", "sh",
    "shell", "terminal", "zsh",
];
const SHELLS: [&str; 4] = ["bash", "dash", "sh", "zsh"];
/// They run another command, after options, numbers and variables of their own.
#[rustfmt::skip]
const WRAPPERS: [&str; 8] = ["command", "env", "exec", "nice", "nohup", "sudo", "time", "timeout"];
/// They prepare for the command that follows them on the line.
const PREPARATIONS: [&str; 6] = [".", "cd", "export", "pushd", "set", "source"];
/// They do different things by their first word.
#[rustfmt::skip]
const WITH_SUBCOMMANDS: [&str; 45] = [
    "apt", "apt-get", "aws", "az", "brew", "bun", "bundle", "cargo", "composer", "conda", "deno", "dnf", "docker",
    "dotnet", "flutter", "gcloud", "gem", "gh", "ghx", "git", "glab", "go", "gradle", "helm", "hg", "jj", "just",
    "kubectl", "make", "mise", "mix", "npm", "npx", "pip", "pip3", "pnpm", "podman", "poetry", "rustup", "swift",
    "systemctl", "terraform", "uv", "yarn", "yum",
];
const NAME_LENGTH: usize = 60;
/// `sh -c 'sh -c …'` ends somewhere.
const NESTING: usize = 4;

pub(super) fn tool_name<'a>(name: &'a str, input: &'a Value) -> Cow<'a, str> {
    if !SHELL_TOOLS
        .iter()
        .any(|shell| name.eq_ignore_ascii_case(shell))
    {
        return Cow::Borrowed(name);
    }
    command_line(input)
        .and_then(|line| command_name(line, NESTING))
        .unwrap_or(Cow::Borrowed(name))
}

/// The command in a shell tool's input. A list is a program with its arguments; of a shell, the line it is given counts.
fn command_line(input: &Value) -> Option<&str> {
    let command = match input {
        Value::Object(map) => ["command", "cmd", "script", "input"]
            .into_iter()
            .find_map(|key| map.get(key))?,
        other => other,
    };
    match command {
        Value::String(line) => Some(line),
        Value::Array(words) => {
            let word = |place: usize| words.get(place).and_then(Value::as_str);
            let is_shell = SHELLS.contains(&base_name(word(0)?));
            if is_shell && word(1).is_some_and(is_command_flag) {
                word(2)
            } else {
                word(0)
            }
        }
        _ => None,
    }
}

fn command_name(line: &str, nesting: usize) -> Option<Cow<'_, str>> {
    let mut words = Words { rest: line };
    let mut preparation = None;
    loop {
        let Some(word) = words.next() else {
            return preparation.map(Cow::Borrowed);
        };
        if is_break(word) || is_assignment(word) {
            continue;
        }
        let program = base_name(unquoted(word));
        if word.starts_with('#') {
            words.skip_line();
        } else if PREPARATIONS.contains(&program) {
            preparation = Some(program);
            words.skip_command();
        } else if WRAPPERS.contains(&program) {
            words.skip_options();
        } else if SHELLS.contains(&program) && words.peek().is_some_and(is_command_flag) {
            words.next();
            let inner = unquoted(words.next()?);
            return command_name(inner, nesting.checked_sub(1)?);
        } else {
            return name_of(program, words);
        }
    }
}

fn name_of<'a>(program: &'a str, mut words: Words<'a>) -> Option<Cow<'a, str>> {
    let program = &program[..program.floor_char_boundary(NAME_LENGTH)];
    if program.is_empty() {
        return None;
    }
    if program == "git" {
        words.skip_git_options();
    }
    if program.starts_with("python") && words.peek() == Some("-m") {
        words.next();
        return Some(joined(program, "-m ", words.next()?));
    }
    let has_subcommands = WITH_SUBCOMMANDS.contains(&program);
    match words
        .next()
        .filter(|word| has_subcommands && is_plain(word))
    {
        Some(subcommand) => Some(joined(program, "", subcommand)),
        None => Some(Cow::Borrowed(program)),
    }
}

fn joined<'a>(program: &str, between: &str, word: &str) -> Cow<'a, str> {
    let word = &word[..word.floor_char_boundary(NAME_LENGTH)];
    Cow::Owned([program, " ", between, word].concat())
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn unquoted(word: &str) -> &str {
    word.trim_matches(['"', '\''])
}

fn is_command_flag(word: &str) -> bool {
    matches!(word, "-c" | "-lc" | "-ec" | "-lic" | "-xc")
}

fn is_break(word: &str) -> bool {
    word.starts_with([';', '&', '|', '(', ')', '\n'])
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// A word that can be a subcommand: no option, path, variable or quotation.
fn is_plain(word: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':' | b'.' | b'@');
    !word.starts_with('-') && word.bytes().all(is_plain)
}

/// The words of a command line, with quotations whole, and its operators and line ends.
#[derive(Clone)]
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let line = self.rest.trim_start_matches([' ', '\t', '\r']);
        let end = if is_break(line) { 1 } else { word_length(line) };
        let (word, rest) = line.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }
}

fn word_length(line: &str) -> usize {
    let mut quote = None;
    let mut is_escaped = false;
    for (place, byte) in line.bytes().enumerate() {
        match (quote, byte) {
            _ if is_escaped => is_escaped = false,
            (Some(open), _) if byte == open => quote = None,
            (None | Some(b'"'), b'\\') => is_escaped = true,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'(' | b')') => {
                return place;
            }
            (None, _) => {}
        }
    }
    line.len()
}

impl<'a> Words<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.clone().next()
    }

    fn skip_line(&mut self) {
        self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
    }

    /// Up to and with the operator or line end that follows.
    fn skip_command(&mut self) {
        self.find(|word| is_break(word));
    }

    fn skip_options(&mut self) {
        while self.peek().is_some_and(|word| {
            word.starts_with('-') || word.starts_with(|c: char| c.is_ascii_digit())
        }) {
            self.next();
        }
    }

    fn skip_git_options(&mut self) {
        while let Some(option) = self.peek().filter(|word| word.starts_with('-')) {
            self.next();
            if matches!(option, "-C" | "-c") {
                self.next();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(command: &str, expected: &str) {
        let input = json!({"command": command});
        assert_eq!(tool_name("Bash", &input), expected, "{command}");
    }

    #[test]
    fn a_shell_call_is_named_by_its_command() {
        check("git commit -m 'a b'", "git commit");
        check("git -C /tmp --no-pager log", "git log");
        check("gh pr view 420 --json files", "gh pr");
        check("/usr/bin/gh api repos/x", "gh api");
        check("ls -la src", "ls");
        check("cat a.txt | grep git", "cat");
        check("npm --prefix web test", "npm");
        check("python -m pytest -q", "python -m pytest");
        check("cargo test\n", "cargo test");
    }

    #[test]
    fn what_only_prepares_is_passed_over() {
        check("cd 'my dir' && FOO=\"a b\" git status", "git status");
        check("cd web; npm test", "npm test");
        check("# look\nset -e\nls", "ls");
        check("sudo -E timeout 30 docker ps", "docker ps");
        check("env A=1 make test", "make test");
        check("bash -lc \"cd x && pytest -q\"", "pytest");
        check("(ls)", "ls");
        check("cd web", "cd");
    }

    #[test]
    fn what_is_no_command_keeps_the_tools_name() {
        for command in ["", "  ", "A=1", "&&", "bash -c", "#"] {
            check(command, "Bash");
        }
        assert_eq!(tool_name("bash", &json!({"timeout": 3})), "bash");
        assert_eq!(tool_name("Read", &json!({"command": "ls"})), "Read");
    }

    #[test]
    fn commands_come_as_texts_and_lists() {
        assert_eq!(tool_name("shell", &json!("git diff")), "git diff");
        assert_eq!(
            tool_name("shell", &json!({"command": ["bash", "-lc", "git diff"]})),
            "git diff"
        );
        assert_eq!(tool_name("shell", &json!({"cmd": ["ls", "-l"]})), "ls");
    }

    #[test]
    fn a_name_stays_short() {
        let command = "x".repeat(10_000_000);
        assert_eq!(tool_name("bash", &json!(command)).len(), NAME_LENGTH);
    }
}
