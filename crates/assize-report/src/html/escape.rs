//! Text of agents, suites and files inside a page: it is shown, and does nothing.

use std::fmt::Write;

/// Text between tags or inside a quoted attribute.
pub(crate) fn html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in visible(text).chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(letter),
        }
    }
    safe
}

/// Text without colours, and with everything that hides or turns other text written out: `‹U+202E›`.
pub(crate) fn visible(text: &str) -> String {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.bytes().all(is_plain) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
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
    shown
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

/// JSON that cannot end the element it stands in.
pub(crate) fn script_json(json: &str) -> String {
    json.replace('<', "\\u003c")
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
    fn markup_and_attributes_stay_text() {
        let hostile = "</script><img src=x onerror=\"alert(1)\"> ' &";
        assert_eq!(
            html(hostile),
            "&lt;/script&gt;&lt;img src=x onerror=&quot;alert(1)&quot;&gt; &#39; &amp;"
        );
        assert!(!script_json(r#"{"a":"</script><!--"}"#).contains('<'));
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
