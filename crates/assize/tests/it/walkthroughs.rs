//! The examples in the documents: files are written as they stand, commands run, and what is shown appears.

use crate::sandbox::{Sandbox, words};

/// A fenced block: its first line without the fence, and its content.
struct Block {
    head: String,
    body: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let fenced = text.split("```").skip(1).step_by(2);
    let parts = fenced.filter_map(|block| block.split_once('\n'));
    parts
        .map(|(head, body)| Block {
            head: head.to_owned(),
            body: body.to_owned(),
        })
        .collect()
}

/// The files of a section by name.
pub(crate) fn files(section: &str) -> Vec<(String, String)> {
    let named = |block: Block| Some((block.head.split_once(' ')?.1.to_owned(), block.body));
    blocks(section).into_iter().filter_map(named).collect()
}

/// Numbers and distances vary from machine to machine.
fn essence(text: &str) -> String {
    let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let words: String = text.chars().map(digits).collect();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let shorter = |words: String| words.replace("00", "0");
    (0..8).fold(words, |words, _| shorter(words))
}

/// Runs the lines that begin with `$ assize` and looks for those below in what they print.
fn follow(sandbox: &Sandbox, console: &str) {
    for step in console.split("$ assize ").skip(1) {
        let (command, shown) = step.split_once('\n').unwrap();
        let shown: Vec<String> = shown.lines().map(essence).collect();
        let mut printed = String::new();
        let mut is_shown = || {
            printed = run(sandbox, command);
            shown.iter().all(|line| printed.contains(line))
        };
        // On a machine that is busy with something else, times may differ now and then.
        let is_as_shown = is_shown() || is_shown() || is_shown();
        assert!(is_as_shown, "{command}\n{shown:#?}\nis not in\n{printed}");
    }
}

fn run(sandbox: &Sandbox, command: &str) -> String {
    // A command that should end in another way is marked: `# exit 3`.
    let expected = command
        .split_once("# exit ")
        .map_or("0", |(_, code)| code.trim());
    let arguments = shlex::split(command).unwrap();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = sandbox.assize(&arguments).output().unwrap();
    let code = output.status.code().unwrap().to_string();
    assert_eq!(code, expected, "{command}\n{}", words(&output));
    essence(&words(&output))
}

/// Every section is independent of the others.
fn check(document: &str) {
    for section in document.split("\n## ") {
        let sandbox = Sandbox::new(&[]);
        // As if the kit for Python were installed.
        let kit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python/assize");
        std::os::unix::fs::symlink(kit, sandbox.path("assize")).unwrap();
        for Block { head, body } in blocks(section) {
            match head.split_once(' ') {
                Some((_, file)) => sandbox.write(file, &body),
                None if head == "console" => follow(&sandbox, &body),
                None => {}
            }
        }
    }
}

#[test]
fn commands() {
    check(include_str!("../../../../docs/commands.md"));
}

#[test]
fn costs() {
    check(include_str!("../../../../docs/costs.md"));
}

#[test]
fn the_lab() {
    check(include_str!("../../../../docs/lab.md"));
}

#[test]
fn plugins() {
    check(include_str!("../../../../docs/plugins.md"));
}

#[test]
fn workspaces() {
    check(include_str!("../../../../docs/workspaces.md"));
}

#[test]
fn ci() {
    check(include_str!("../../../../docs/ci.md"));
}

#[test]
fn scenarios() {
    check(include_str!("../../../../docs/scenarios.md"));
}

#[test]
fn capture() {
    check(include_str!("../../../../docs/capture.md"));
}

#[test]
fn agents() {
    check(include_str!("../../../../docs/agents.md"));
}

#[test]
fn analyzing() {
    check(include_str!("../../../../docs/analyzing.md"));
}
