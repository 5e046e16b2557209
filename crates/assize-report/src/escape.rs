//! Text of agents, suites and files as plain text inside Markdown: whatever it holds, it does nothing.

/// One line of Markdown that shows the text as it is, on GitHub and in raw form nearly so.
pub(crate) fn markdown(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut escaped = String::with_capacity(text.len());
    for (place, &letter) in letters.iter().enumerate() {
        let before = place.checked_sub(1).map(|place| letters[place]);
        let after = letters.get(place + 1).copied();
        match letter {
            '\n' | '\r' | '\t' => escaped.push(' '),
            hidden if is_hidden(hidden) => escaped.push('\u{fffd}'),
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            // Mentions, issue numbers and bare addresses become links without any markup around them.
            '@' => escaped.push_str("&#64;"),
            '#' => escaped.push_str("&#35;"),
            ':' if after == Some('/') => escaped.push_str("&#58;"),
            '.' if before.is_some_and(|letter| matches!(letter, 'w' | 'W')) => {
                escaped.push_str("&#46;");
            }
            // Inside a word an underscore is an underscore.
            '_' if is_inside_word(before, after) => escaped.push('_'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '$' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

fn is_inside_word(before: Option<char>, after: Option<char>) -> bool {
    let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    is_word(before) && is_word(after)
}

/// Control characters, and those that turn the direction of writing.
pub(crate) fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_links_and_mentions_do_nothing() {
        let hostile = "<script>x</script> [a](http://e.x) ![i](x) `c` **b** |cell @me #1 www.e.x\n# h \u{202e}\u{1b}[2J";
        let safe = markdown(hostile);
        for active in [
            "<script", "[a]", "http://", "![", " `c", "**", " |", "@me", "#1", "www.", "\n",
        ] {
            assert!(!safe.contains(active), "{active} in {safe}");
        }
        assert!(!safe.contains(is_hidden));
    }

    #[test]
    fn ordinary_names_stay_readable() {
        assert_eq!(
            markdown("tokens_active, with-docs (m-1)"),
            "tokens_active, with-docs (m-1)"
        );
    }
}
