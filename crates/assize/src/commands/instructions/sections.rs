//! The parts of an instruction file: from heading to heading, or paragraph by paragraph where there are no headings.

use serde_json::{Value, json};

/// More parts than these are joined with their neighbours.
const MOST: usize = 400;

/// An instruction file taken apart. Joining all parts gives the file again.
#[derive(Debug, Clone)]
pub(super) struct Sections(Vec<Section>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Section {
    title: String,
    text: String,
}

impl Sections {
    pub(super) fn of(text: &str) -> Self {
        let mut parts = split(text, is_heading);
        if parts.len() < 2 {
            parts = paragraphs(text);
        }
        let mut sections: Vec<Section> = Vec::new();
        for text in parts {
            if text.trim().is_empty() || (sections.len() >= MOST && !sections.is_empty()) {
                // Nothing of the file is lost.
                match sections.last_mut() {
                    Some(last) => last.text.push_str(&text),
                    None => sections.push(Section {
                        title: String::new(),
                        text,
                    }),
                }
                continue;
            }
            let title = title_of(&text);
            sections.push(Section { title, text });
        }
        let mut made = Self(sections);
        made.name_apart();
        made
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn name(&self, section: usize) -> &str {
        self.0.get(section).map_or("", |section| &section.title)
    }

    pub(super) fn texts(&self) -> Vec<String> {
        self.0.iter().map(|section| section.text.clone()).collect()
    }

    /// The file with only these parts, in their order.
    pub(super) fn joined(&self, kept: &[usize]) -> String {
        let texts = kept.iter().filter_map(|section| self.0.get(*section));
        texts.map(|section| section.text.as_str()).collect()
    }

    /// Names and hashes, for the manifest.
    pub(super) fn described(&self) -> Value {
        let each = |section: &Section| {
            let hash = blake3::hash(section.text.as_bytes()).to_hex().to_string();
            json!({ "title": section.title, "hash": hash })
        };
        self.0.iter().map(each).collect()
    }

    fn name_apart(&mut self) {
        for place in 0..self.0.len() {
            let title = self.0[place].title.clone();
            let earlier = self.0[..place].iter().filter(|other| {
                other.title == title || other.title.starts_with(&format!("{title} ("))
            });
            let count = earlier.count();
            if count > 0 {
                self.0[place].title = format!("{title} ({})", count + 1);
            }
        }
    }
}

/// Cuts before every line that begins a part. Fenced code is not looked into.
fn split(text: &str, begins: fn(&str) -> bool) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut is_code = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_code = !is_code;
        } else if !is_code && begins(line) {
            parts.push(String::new());
        }
        if let Some(last) = parts.last_mut() {
            last.push_str(line);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn is_heading(line: &str) -> bool {
    let level = line.chars().take_while(|c| *c == '#').count();
    (1..=6).contains(&level) && line[level..].starts_with([' ', '\t'])
}

fn paragraphs(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_empty = false;
    for line in text.split_inclusive('\n') {
        let is_empty = line.trim().is_empty();
        if was_empty && !is_empty {
            parts.push(String::new());
        }
        was_empty = is_empty;
        if let Some(last) = parts.last_mut() {
            last.push_str(line);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The heading, or the first words.
fn title_of(text: &str) -> String {
    const LONGEST: usize = 48;
    let line = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("");
    let line = line
        .trim_start_matches('#')
        .trim()
        .trim_end_matches('#')
        .trim();
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    match line.chars().count() > LONGEST {
        true => format!(
            "{}…",
            line.chars().take(LONGEST).collect::<String>().trim_end()
        ),
        false if line.is_empty() => "(without a title)".to_owned(),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_begin_at_headings_and_joined_give_the_file() {
        let text = "Opening.\n\n# One\na\n## Two\n```sh\n# no heading\n```\nb\n# One\nc\n";
        let sections = Sections::of(text);
        let names: Vec<&str> = (0..sections.len())
            .map(|place| sections.name(place))
            .collect();
        assert_eq!(names, ["Opening.", "One", "Two", "One (2)"]);
        assert_eq!(sections.joined(&[0, 1, 2, 3]), text);
        assert_eq!(sections.joined(&[0, 3]), "Opening.\n\n# One\nc\n");
    }

    #[test]
    fn a_file_without_headings_is_taken_by_its_paragraphs() {
        let sections = Sections::of("Be brief.\nAlways.\n\nUse tabs.\n\n\nTest first.\n");
        assert_eq!(sections.len(), 3);
        assert_eq!(sections.name(1), "Use tabs.");
        assert_eq!(Sections::of("").len(), 0);
    }
}
