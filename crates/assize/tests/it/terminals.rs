//! Output and input in a terminal: lines that fit, questions, sessions that are recorded.

use crate::support::{Suite, assize};
use assize_process::Terminal;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A program in a terminal of so many columns.
struct Screen {
    child: Child,
    keys: File,
    output: mpsc::Receiver<Vec<u8>>,
    /// Bytes, because a piece may end inside a character.
    seen: Vec<u8>,
}

impl Screen {
    fn new(mut command: Command, columns: u16) -> Self {
        let mut terminal = Terminal::new().unwrap();
        terminal.resize(columns, 50).unwrap();
        let side = || -> Stdio {
            File::options()
                .read(true)
                .write(true)
                .open(terminal.path())
                .unwrap()
                .into()
        };
        command.stdin(side()).stdout(side()).stderr(side());
        let child = command.spawn().unwrap();
        drop(command);
        terminal.let_go();
        let keys = terminal.host().unwrap();
        let (sender, output) = mpsc::channel();
        std::thread::spawn(move || {
            let mut host = terminal.host().unwrap();
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = host.read(&mut buffer) {
                let _ = sender.send(buffer[..read].to_vec());
            }
            drop(terminal);
        });
        Self {
            child,
            keys,
            output,
            seen: Vec::new(),
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Waits until this is shown.
    fn wait_for(&mut self, words: &str) {
        while !self.text().contains(words) {
            let piece = self.output.recv_timeout(Duration::from_secs(60));
            let piece = piece.unwrap_or_else(|_| panic!("no `{words}` in\n{}", self.text()));
            self.seen.extend(piece);
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Everything that was shown, and the exit code.
    fn end(mut self) -> (String, Option<i32>) {
        while let Ok(piece) = self.output.recv_timeout(Duration::from_secs(60)) {
            self.seen.extend(piece);
        }
        let code = self.child.wait().unwrap().code();
        (self.text().replace('\r', ""), code)
    }
}

fn typed(place: &Path, arguments: &[&str]) -> Command {
    let mut command = assize(place);
    command.args(arguments);
    command
}

#[test]
fn an_interactive_session_is_recorded() {
    let suite = Suite::new();
    let script = "trap 'echo stopped; exit 7' INT; \
                  test -t 0 && test -t 1 && test -t 2 && echo in-a-terminal; stty size; \
                  read name; sleep 60 & echo hello $name; wait";
    let mut screen = Screen::new(
        typed(suite.path(), &["record", "--", "sh", "-c", script]),
        91,
    );
    screen.wait_for("in-a-terminal");
    screen.wait_for("50 91");
    screen.press("world\r");
    screen.wait_for("hello world");
    // Ctrl-C is for the command, which may do with it what it likes.
    screen.press("\u{3}");
    screen.wait_for("stopped");
    let (seen, code) = screen.end();
    assert_eq!(code, Some(7), "{seen}");
    assert!(seen.contains("ended with exit code 7"), "{seen}");
}

#[test]
fn a_free_program_is_not_asked_about() {
    let suite = Suite::of(
        "provider: { uses: command, command: [echo, done] }\nmodes: { a: {}, b: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\nexecution: { repetitions: 1 }\n",
    );
    let mut screen = Screen::new(typed(suite.path(), &["run"]), 100);
    screen.wait_for("4 trials with command may cost money");
    screen.press("n\r");
    let (seen, code) = screen.end();
    assert_eq!(code, Some(5), "{seen}");
    let free = "provider: { uses: command, command: [echo, done], free: true }\nmodes: { a: {}, b: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\nexecution: { repetitions: 1 }\n";
    suite.write("assize.yaml", free);
    let (seen, code) = Screen::new(typed(suite.path(), &["run"]), 100).end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(!seen.contains("may cost money"), "{seen}");
}

/// Lines that people read; paths are as long as they are, and progress is drawn over.
fn too_wide(seen: &str, columns: usize) -> Vec<&str> {
    let is_path = |line: &str| line.contains(".assize/") || line.contains('\u{1b}');
    let lines = seen.lines().filter(|line| !is_path(line));
    lines
        .filter(|line| line.chars().count() > columns)
        .collect()
}

#[test]
fn nothing_is_wider_than_the_terminal_and_no_word_is_broken() {
    let suite = Suite::new();
    suite.done(&["init", "demo"]);
    suite.done(&["run", "demo", "-q"]);
    for columns in [80, 140] {
        for arguments in [
            &["run", "demo", "--resume", "last", "-q"][..],
            &["compare", "--suite", "demo"],
            &["compare", "--verbose", "--suite", "demo"],
            &["show", "--suite", "demo"],
            &["show", "last/0", "--suite", "demo"],
        ] {
            let screen = Screen::new(typed(suite.path(), arguments), columns);
            let (seen, code) = screen.end();
            assert_eq!(code, Some(0), "{seen}");
            let wide = too_wide(&seen, columns.into());
            assert!(
                wide.is_empty(),
                "{arguments:?} at {columns}: {wide:#?}\n{seen}"
            );
            assert!(
                seen.contains("tokens"),
                "{arguments:?} at {columns}\n{seen}"
            );
        }
    }
}

#[test]
fn six_modes_are_one_table() {
    let modes = ["one", "two", "three", "four", "five", "six"];
    let modes: Vec<String> = modes
        .iter()
        .map(|mode| format!("mode-number-{mode}: {{}}"))
        .collect();
    let suite = Suite::of(&format!(
        "provider: {{ uses: simulated, latency_ms: 0 }}\nmodes: {{ {} }}\nscenarios: {{ paths: ['scenarios/*.yaml'] }}\nexecution: {{ repetitions: 2 }}\n",
        modes.join(", ")
    ));
    let (seen, code) = Screen::new(typed(suite.path(), &["run", "-q"]), 80).end();
    assert_eq!(code, Some(0), "{seen}");
    assert_eq!(seen.matches("Success").count(), 1, "{seen}");
    for word in ["mode-number-one", "mode-number-six", "unknown"] {
        assert!(seen.contains(word), "{seen}");
    }
    let wide = too_wide(&seen, 80);
    assert!(wide.is_empty(), "{wide:#?}\n{seen}");
}
