//! Ids of scenarios in one text: a million of them as strings of their own would take three times the memory.

use std::ops::Index;

/// Texts by their number.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    text: String,
    ends: Vec<usize>,
}

impl Ids {
    pub(crate) fn push(&mut self, id: &str) {
        self.text.push_str(id);
        self.ends.push(self.text.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|number| &self[number])
    }
}

impl Index<usize> for Ids {
    type Output = str;

    fn index(&self, number: usize) -> &str {
        let start = match number {
            0 => 0,
            _ => self.ends[number - 1],
        };
        &self.text[start..self.ends[number]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_as_they_were() {
        let mut ids = Ids::default();
        for id in ["a", "", "größer", "a"] {
            ids.push(id);
        }
        assert_eq!(ids.iter().collect::<Vec<_>>(), ["a", "", "größer", "a"]);
        assert_eq!((&ids[2], ids.len()), ("größer", 4));
    }
}
