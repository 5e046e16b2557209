//! Texts as values of YAML files that people edit.

use serde_json::Value;

/// The text in double quotes, on one line. YAML reads JSON's escapes.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The text as a block of indented lines, or quoted where a block would change it.
pub(super) fn block(text: &str, indent: &str) -> String {
    let is_plain = |c: char| c == '\n' || c == '\t' || !(c.is_control() || is_invisible(c));
    let text = text.trim_end();
    let starts_plainly = text.starts_with(|first: char| !first.is_whitespace());
    if !starts_plainly || !text.chars().all(is_plain) {
        return quoted(text);
    }
    let lines = text.lines().map(|line| match line.trim_end() {
        "" => "\n".to_owned(),
        line => format!("\n{indent}{line}"),
    });
    format!("|{}", lines.collect::<String>())
}

/// Line separators that YAML breaks at, and the mark that begins some files.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(yaml: &str) -> String {
        let document: std::collections::BTreeMap<String, String> =
            serde_saphyr::from_str(&format!("text: {yaml}\nother: x\n")).unwrap();
        assert_eq!(document["other"], "x", "{yaml}");
        document["text"].clone()
    }

    #[test]
    fn a_text_of_lines_stays_readable() {
        assert_eq!(block("One.\n\n- two: #3", "  "), "|\n  One.\n\n  - two: #3");
        assert_eq!(block(" indented", "  "), "\" indented\"");
    }

    proptest! {
        #[test]
        fn every_text_is_read_back(text in "[ -~\\n\\t\u{85}é\"'#:|]{0,60}") {
            let normal = |text: &str| {
                text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
            };
            prop_assert_eq!(normal(&read(&block(&text, "  "))), normal(&text));
        }
    }
}
