//! `output`: what the agent's final text must be.

use super::check::{Seen, Sentence};
use super::text::{TEXT_KEYS, Text, TextTest};
use crate::spec::Spec;
use assize_contracts::ConfigError;

pub(super) struct OutputCheck {
    tests: Vec<TextTest>,
}

impl OutputCheck {
    pub(super) fn parse(spec: &Spec<'_>) -> Result<Self, ConfigError> {
        let tests = TextTest::parse_all(&spec.fields(&TEXT_KEYS)?, &TEXT_KEYS)?;
        if tests.is_empty() {
            return Err(spec.nothing_asked(&TEXT_KEYS));
        }
        Ok(Self { tests })
    }

    pub(super) fn sentence(&self) -> Sentence {
        Sentence::of_tests("output", "the output", &self.tests)
    }

    pub(super) fn look(&self, answer: &Text<'_>) -> Seen {
        Seen::of_tests(&self.tests, answer)
    }
}
