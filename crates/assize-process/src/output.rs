//! Running a program to its end and keeping what it printed, within bounds.

use std::borrow::Cow;

use crate::command::Command;
use crate::error::Result;
use crate::exit::Exit;
use crate::running::{Chunk, Stream};

/// Everything about a program that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its exit and its resource use.
    pub exit: Exit,
    pub stdout: Captured,
    pub stderr: Captured,
}

/// The beginning and the end of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The beginning; all of it if nothing was cut.
    pub head: Vec<u8>,
    /// The number of bytes missing between `head` and `tail`.
    pub cut: u64,
    /// The end. Empty if nothing was cut.
    pub tail: Vec<u8>,
}

impl Captured {
    /// As text; invalid UTF-8 is replaced, and a line of its own states what was cut.
    pub fn text(&self) -> Cow<'_, str> {
        let head = String::from_utf8_lossy(&self.head);
        if self.cut == 0 && self.tail.is_empty() {
            return head;
        }
        let tail = String::from_utf8_lossy(&self.tail);
        match self.cut {
            0 => format!("{head}{tail}").into(),
            cut => format!("{head}\n[{cut} bytes cut]\n{tail}").into(),
        }
    }

    /// The end of the text, at most about this many bytes and without colours: what a program that failed had to say.
    pub fn last_words(&self, longest: usize) -> String {
        let text = without_colours(&self.text());
        let text = text.trim();
        text[text.ceil_char_boundary(text.len().saturating_sub(longest))..].to_owned()
    }

    /// Takes the next chunk of the stream.
    pub fn push(&mut self, chunk: Chunk) {
        let end = (self.head.len() + self.tail.len()) as u64 + self.cut;
        self.cut += chunk.offset.saturating_sub(end);
        let part = if self.cut == 0 {
            &mut self.head
        } else {
            &mut self.tail
        };
        part.extend(chunk.bytes);
    }
}

impl Command {
    /// Starts the program and waits until it and everything it started has ended. Dropping the future ends them.
    pub async fn run_to_end(self) -> Result<Output> {
        let mut running = self.start().await?;
        let (mut stdout, mut stderr) = (Captured::default(), Captured::default());
        while let Some(chunk) = running.next().await? {
            match chunk.stream {
                Stream::Stdout => stdout.push(chunk),
                Stream::Stderr => stderr.push(chunk),
            }
        }
        let exit = running.wait().await?;
        // A stream may end in bytes that no chunk shows, when the bound leaves no room for a tail.
        stdout.cut = exit.stdout.seen - exit.stdout.kept;
        stderr.cut = exit.stderr.seen - exit.stderr.kept;
        Ok(Output {
            exit,
            stdout,
            stderr,
        })
    }
}

/// The same text without the sequences that set colours in terminals: `ESC [`, parameters, a letter.
fn without_colours(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let parameters = piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        plain.push_str(
            parameters
                .strip_prefix(|c: char| c.is_ascii_alphabetic())
                .unwrap_or(piece),
        );
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn captured(chunks: &[(u64, &[u8])]) -> Captured {
        let mut captured = Captured::default();
        for (offset, bytes) in chunks {
            let (offset, bytes) = (*offset, bytes.to_vec());
            captured.push(Chunk {
                stream: Stream::Stdout,
                at: Duration::ZERO,
                offset,
                bytes,
            });
        }
        captured
    }

    #[test]
    fn what_was_cut_is_said() {
        let captured = captured(&[(0, b"ab"), (2, b"c"), (103, b"yz")]);
        assert_eq!(captured.cut, 100);
        assert_eq!(captured.text(), "abc\n[100 bytes cut]\nyz");
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(captured(&[(0, b"a\xffb")]).text(), "a\u{fffd}b");
    }

    #[test]
    fn last_words_have_no_colours() {
        assert_eq!(
            without_colours("\u{1b}[31merror:\u{1b}[0m no key"),
            "error: no key"
        );
        assert_eq!(without_colours("a [b] \u{1b}[1;2"), "a [b] 1;2");
    }
}
