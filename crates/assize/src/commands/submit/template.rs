//! Job files from templates: plain text with `{{names}}` that are filled in.

use crate::commands::UsageError;
use anyhow::{Context, Result};
use std::path::Path;

/// Values by name. They are written as they are, so that each scheduler quotes them in its own way.
#[derive(Default)]
pub(super) struct Values(Vec<(&'static str, String)>);

impl Values {
    pub(super) fn set(&mut self, name: &'static str, value: impl ToString) {
        self.0.push((name, value.to_string()));
    }

    /// Fills in the template of the user, or the built-in one.
    pub(super) fn fill(&self, given: Option<&Path>, built_in: &str) -> Result<String> {
        match given {
            None => self.fill_text(built_in, "the built-in template"),
            Some(path) => {
                let name = path.display().to_string();
                let text = std::fs::read_to_string(path);
                let text = text.with_context(|| format!("cannot read the template `{name}`"))?;
                self.fill_text(&text, &name)
            }
        }
    }

    /// In one pass: a value that looks like a placeholder stays as it is.
    fn fill_text(&self, template: &str, place: &str) -> Result<String> {
        let mut filled = String::with_capacity(template.len() * 2);
        let mut rest = template;
        while let Some(start) = rest.find("{{") {
            filled.push_str(&rest[..start]);
            let inside = &rest[start + 2..];
            let end = inside.find("}}");
            let name = end.map_or(inside, |end| &inside[..end]);
            let value = self.0.iter().find(|(known, _)| *known == name.trim());
            let (Some(end), Some((_, value))) = (end, value) else {
                let line = template[..template.len() - inside.len()].lines().count();
                let known: Vec<&str> = self.0.iter().map(|(name, _)| *name).collect();
                let shown: String = name.chars().take(40).collect();
                return Err(UsageError {
                    message: format!("{place}:{line}: nothing fills `{{{{{shown}}}}}`"),
                    hint: Some(format!("known names: {}", known.join(", "))),
                }
                .into());
            };
            filled.push_str(value);
            rest = &inside[end + 2..];
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_once_and_unknown_ones_named() {
        let mut values = Values::default();
        values.set("a", "{{b}}");
        values.set("b", 2);
        assert_eq!(
            values.fill_text("x {{a}} {{ b }}", "t").unwrap(),
            "x {{b}} 2"
        );
        let error = values.fill_text("one\n{{c}}", "t").unwrap_err();
        assert_eq!(error.to_string(), "t:2: nothing fills `{{c}}`");
        assert!(values.fill_text("{{a", "t").is_err());
    }
}
