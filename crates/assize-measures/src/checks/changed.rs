//! `changed`: which files the agent may touch.

use super::check::{Look, Seen, Sentence, Subject};
use crate::spec::{Spec, quoted};
use assize_contracts::ConfigError;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::Value;

pub(super) struct ChangedCheck {
    globs: Vec<String>,
    allowed: GlobSet,
}

impl ChangedCheck {
    pub(super) fn parse(spec: &Spec<'_>) -> Result<Self, ConfigError> {
        let Some(only) = spec.fields(&["only"])?.get("only") else {
            return Err(spec.nothing_asked(&["only"]));
        };
        let mut allowed = GlobSetBuilder::new();
        let globs = only.items()?;
        for spec in &globs {
            // `*` stays within a directory, as in a shell; `**` crosses.
            let glob = GlobBuilder::new(&spec.text()?)
                .literal_separator(true)
                .build()
                .map_err(|error| spec.error(format!("invalid glob: {}", error.kind())))?;
            allowed.add(glob);
        }
        Ok(Self {
            globs: globs.iter().map(Spec::text).collect::<Result<_, _>>()?,
            allowed: allowed
                .build()
                .map_err(|error| only.error(format!("invalid globs: {error}")))?,
        })
    }

    pub(super) fn sentence(&self) -> Sentence {
        let words = match self.globs.as_slice() {
            [] => "no file is changed".to_owned(),
            globs => format!("only {} is changed", quoted(globs)),
        };
        Sentence {
            label: "changed-only".to_owned(),
            words,
            expected: Value::from(self.globs.clone()),
        }
    }

    pub(super) fn look(&self, subject: &Subject<'_>) -> Look {
        subject.workspace()?;
        let strange = || {
            let changes = subject.context.changes.iter();
            changes.filter(|change| !self.allowed.is_match(&change.path))
        };
        let named = strange()
            .take(super::NAMED)
            .map(|change| Value::String(format!("{} {}", change.kind, change.path)))
            .collect();
        Ok(Seen::new(strange().next().is_none(), named))
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{answering, error_in, scenario, score_of};
    use assize_contracts::WorkspaceChange;
    use serde_json::json;

    fn check(only: &[&str], changed: &[&str], expected: bool) {
        let mut context = answering("");
        context.workspace = Some("w".into());
        let change = |path: &&str| WorkspaceChange {
            path: (*path).to_owned(),
            kind: "added".to_owned(),
        };
        context.changes = changed.iter().map(change).collect();
        let result = score_of(&scenario(json!([{"changed": {"only": only}}])), &context);
        assert_eq!(result.success, expected, "{:?}", result.details);
    }

    #[test]
    fn changes_stay_within_the_globs() {
        let only = ["pager.py", "tests/**", "docs/*.md"];
        check(&only, &["pager.py", "tests/a/b.py", "docs/a.md"], true);
        check(&only, &["docs/deep/a.md"], false);
        check(&only, &["pager.py.orig"], false);
        check(&only, &[], true);
        check(&[], &["a"], false);
    }

    #[test]
    fn without_a_workspace_nobody_knows_what_changed() {
        let result = score_of(
            &scenario(json!([{"changed": {"only": []}}])),
            &answering(""),
        );
        assert!(
            result
                .error
                .unwrap()
                .ends_with("the trial has no workspace")
        );
    }

    #[test]
    fn a_broken_glob_is_refused() {
        let error = error_in(json!([{"changed": {"only": ["a", "{"]}}]));
        assert_eq!(error.path, ["checks", "0", "changed", "only", "1"]);
    }
}
