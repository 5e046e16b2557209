//! Text of agents, suites and files inside a page. Markup is escaped by `maud`; this file removes what hides or turns text, and
//! makes JSON safe to embed.

use maud::Render;
use std::fmt::Write;

/// Text without colours, and with everything that hides or turns other text written out: `‹U+202E›`.
pub(crate) fn visible(text: &str) -> String {
    let plain_length = |text: &str| {
        let is_special = |byte: u8| !matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        text.bytes().position(is_special).unwrap_or(text.len())
    };
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_length(rest));
        shown.push_str(plain);
        rest = special;
        let Some(letter) = rest.chars().next() else {
            return shown;
        };
        if let Some(length) = colour_length(rest) {
            rest = &rest[length..];
            continue;
        }
        rest = &rest[letter.len_utf8()..];
        match letter {
            '\n' | '\t' => shown.push(letter),
            '\r' if rest.starts_with('\n') => {}
            hidden if is_deceptive(hidden) => {
                // Writing to a string cannot fail.
                let _ = write!(shown, "‹U+{:04X}›", u32::from(hidden));
            }
            _ => shown.push(letter),
        }
    }
}

/// The length of a terminal's colour sequence at the beginning: `ESC [ numbers m`.
fn colour_length(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|letter: char| !(letter.is_ascii_digit() || ";:".contains(letter)))?;
    numbers[end..].starts_with('m').then_some(2 + end + 1)
}

/// Control characters, marks that turn the direction of writing, and letters that take no place.
fn is_deceptive(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}'
            | '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{e0000}'..='\u{e007f}')
}

/// JSON inside a data block of the page. It cannot end its element, because it holds no `<`.
#[derive(Debug)]
pub(crate) struct EmbeddedJson(String);

impl EmbeddedJson {
    pub(crate) fn new(json: &str) -> Self {
        Self(json.replace('<', "\\u003c"))
    }

    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Render for EmbeddedJson {
    fn render_to(&self, buffer: &mut String) {
        buffer.push_str(&self.0);
    }
}

/// At most so many characters.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_json_cannot_end_its_element() {
        let json = EmbeddedJson::new(r#"{"a":"</script><!--"}"#);
        let shown = json.render().into_string();
        assert_eq!(shown, r#"{"a":"\u003c/script>\u003c!--"}"#);
    }

    #[test]
    fn what_hides_or_turns_text_is_written_out() {
        assert_eq!(visible("a\u{1b}[1;31mred\u{1b}[0m\r\nb"), "ared\nb");
        assert_eq!(visible("\u{1b}[2J"), "‹U+001B›[2J");
        assert_eq!(visible("x\u{202e}y\u{200b}"), "x‹U+202E›y‹U+200B›");
        assert_eq!(visible("\u{1b}[31"), "‹U+001B›[31");
        assert_eq!(visible("日本語 👩‍👩‍👧"), "日本語 👩‍👩‍👧");
    }
}
