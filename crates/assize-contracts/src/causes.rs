//! An error in one line.

use std::error::Error;

/// The text of an error and of everything behind it, joined by colons.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    causes.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read it")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn every_cause_follows_its_error() {
        let error = Outer(std::io::Error::other("no such file"));
        assert_eq!(with_causes(&error), "cannot read it: no such file");
    }
}
