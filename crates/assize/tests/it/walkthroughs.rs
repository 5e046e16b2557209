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

/// Numbers and distances vary from machine to machine.
fn essence(text: &str) -> String {
    let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let words: String = text.chars().map(digits).collect();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let shorter = |words: String| words.replace("00", "0");
    (0..8).fold(words, |words, _| shorter(words))
}

/// Runs the lines that begin with `$ assize` and looks for the others in what they print.
fn follow(sandbox: &Sandbox, console: &str) {
    let mut printed = String::new();
    for line in console.lines().filter(|line| !line.trim().is_empty()) {
        match line.strip_prefix("$ assize ") {
            Some(command) => {
                let arguments = shlex::split(command).unwrap();
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let output = sandbox.assize(&arguments).output().unwrap();
                assert!(output.status.success(), "{line}\n{}", words(&output));
                printed = essence(&words(&output));
            }
            None => assert!(
                printed.contains(&essence(line)),
                "no `{}` in\n{printed}",
                essence(line)
            ),
        }
    }
}

/// Every section stands for itself.
fn check(document: &str) {
    for section in document.split("\n## ") {
        let sandbox = Sandbox::new(&[]);
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
fn workspaces() {
    check(include_str!("../../../../docs/workspaces.md"));
}
