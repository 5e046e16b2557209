//! Texts with `{placeholders}`.

use std::borrow::Cow;

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePiece<'t, T> {
    /// Text that stays as it is.
    Text(&'t str),
    /// The value of a placeholder.
    Value(T),
}

/// Splits a template at the placeholders that have a value. Braces around anything else are text.
pub fn split_template<'t, T>(
    template: &'t str,
    mut value: impl FnMut(&'t str) -> Option<T>,
) -> Vec<TemplatePiece<'t, T>> {
    let mut pieces = Vec::new();
    let (mut text_from, mut search_from) = (0, 0);
    while let Some(open) = template[search_from..].find('{') {
        let open = search_from + open;
        let name_from = open + 1;
        let found = template[name_from..].find('}').and_then(|length| {
            let end = name_from + length;
            Some((value(&template[name_from..end])?, end + 1))
        });
        search_from = name_from;
        if let Some((value, end)) = found {
            if text_from < open {
                pieces.push(TemplatePiece::Text(&template[text_from..open]));
            }
            pieces.push(TemplatePiece::Value(value));
            (text_from, search_from) = (end, end);
        }
    }
    if text_from < template.len() {
        pieces.push(TemplatePiece::Text(&template[text_from..]));
    }
    pieces
}

/// Replaces placeholders in one pass, so that a value that holds one keeps it.
pub fn fill_template<'v>(template: &str, value: impl Fn(&str) -> Option<Cow<'v, str>>) -> String {
    let pieces = split_template(template, value);
    let text = |piece: &TemplatePiece<'_, Cow<'v, str>>| match piece {
        TemplatePiece::Text(text) => (*text).to_owned(),
        TemplatePiece::Value(value) => value.clone().into_owned(),
    };
    pieces.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_replaced_once_and_other_braces_stay() {
        let value = |name: &str| match name {
            "a" => Some(Cow::Borrowed("{b}")),
            "b" => Some(Cow::Borrowed("2")),
            _ => None,
        };
        for (template, expected) in [
            ("{a} and {b}", "{b} and 2"),
            (r#"{"x": {b}}"#, r#"{"x": 2}"#),
            ("{c}{", "{c}{"),
            ("{}{b", "{}{b"),
            ("", ""),
        ] {
            assert_eq!(fill_template(template, value), expected);
        }
    }
}
