//! The files of a task that was made from a commit.

use super::super::init::{SCHEMAS, Written};
use super::super::yaml_text::{block, quoted};
use super::commits::{Candidate, Commit};
use super::proof::{Proof, words};
use crate::terminal::one_line;
use assize_secrets::{Redactor, Secrets};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// A longer message is cut.
const LONGEST_MESSAGE: usize = 16_000;

/// Time for the hidden tests, at least.
const LEAST_TIMEOUT_MS: u128 = 120_000;

/// The shortest message that says anything.
const LEAST_WORDS: usize = 2;

/// The scenario and its hidden files.
pub(super) fn files(
    id: &str,
    commit: &Commit,
    (candidate, proof): (&Candidate, &Proof),
    (prompt, repository): (&str, &str),
) -> Vec<Written> {
    let place = format!("checks/{id}");
    let hidden = candidate.tests.iter().map(|test| Written {
        path: Path::new(&place).join(&test.path),
        content: test.content.clone(),
        is_program: test.is_program,
    });
    let targets = candidate.tests.iter().map(|test| {
        let source = format!("{place}/{}", test.path);
        format!("        {}: {}\n", quoted(&test.path), quoted(&source))
    });
    let setup = proof.install.as_ref();
    let setup = setup.map(|line| format!("  setup_once: [{}]\n", quoted(line)));
    let timeout = (proof.after.took.as_millis() * 10).max(LEAST_TIMEOUT_MS);
    let origin = json!({
        "commit": commit.id, "parent": candidate.parent, "date": commit.date,
        "before": { "exit": proof.before.exit, "ms": proof.before.took.as_millis() as u64 },
        "after": { "exit": proof.after.exit, "ms": proof.after.took.as_millis() as u64 },
    });
    let text = format!(
        "# yaml-language-server: $schema=../{SCHEMAS}/scenario.schema.json\n\
         # Made from commit {} of {}. Read the prompt as an agent will: does it say everything that the hidden tests\n\
         # ask for (names, messages, edge cases), and does it leave the solution open?\n\
         # Proof: without the commit's code its tests fail ({}); with it they pass ({:.1} s).\n\
         id: {id}\n\
         name: {}\n\
         prompt: {}\n\
         timeout_ms: 900000\n\
         tags: [from-git]\n\
         workspace:\n  git: {{ repo: {}, ref: {} }}\n{}\
         checks:\n  - command:\n      run: {}\n      timeout_ms: {timeout}\n      files:\n{}    id: hidden-tests\n    description: the tests of the commit pass\n\
         extensions:\n  from_git: {origin}\n",
        commit.short(),
        commit.date.get(..10).unwrap_or_default(),
        one_line(&clean(&words(&proof.before)), 200),
        proof.after.took.as_secs_f64(),
        quoted(&clean(&commit.subject)),
        block(prompt, "  "),
        quoted(repository),
        quoted(&candidate.parent),
        setup.unwrap_or_default(),
        quoted(&proof.run),
        targets.collect::<String>(),
    );
    let scenario = Written::text(format!("scenarios/{id}.yaml"), text);
    std::iter::once(scenario).chain(hidden).collect()
}

/// The prompt from an issue, or else from the commit's message. `Err` says why there is none.
pub(super) fn prompt(commit: &Commit, issue: Option<&str>) -> Result<String, String> {
    let message = match issue {
        Some(issue) => issue.trim().to_owned(),
        None => message(commit),
    };
    if message.split_whitespace().count() < LEAST_WORDS {
        return Err("its message is too short for a prompt".to_owned());
    }
    let message = clean(
        message
            .get(..message.floor_char_boundary(LONGEST_MESSAGE))
            .unwrap_or_default(),
    );
    // Prompts have placeholders.
    let message = message
        .replace("{workspace}", "{ workspace }")
        .replace("{iteration}", "{ iteration }");
    Ok(format!(
        "{message}\n\nMake this change in the repository in the current directory. Tests that you cannot see will check it."
    ))
}

/// Subject and body without the lines that are for other programs.
fn message(commit: &Commit) -> String {
    let subject = without_number(&commit.subject);
    let paragraphs = commit.body.split("\n\n").map(str::trim);
    let is_trailer = |line: &str| {
        let known = [
            "Change-Id",
            "Fixes",
            "Closes",
            "Refs",
            "See-Also",
            "Issue",
            "Bug",
            "Cc",
            "Link",
        ];
        let name = line.split_once(": ").map_or("", |(name, _)| name);
        name.ends_with("-by") || known.contains(&name) || line.starts_with("(cherry picked from")
    };
    let texts: Vec<&str> = paragraphs
        .filter(|paragraph| !paragraph.is_empty() && !paragraph.lines().all(is_trailer))
        .collect();
    match texts.is_empty() {
        true => subject.to_owned(),
        false => format!("{subject}\n\n{}", texts.join("\n\n")),
    }
}

/// `Fix the pager (#12)` without the number of the pull request.
fn without_number(subject: &str) -> &str {
    match subject.rsplit_once(" (#") {
        Some((text, number))
            if number
                .trim_end_matches(')')
                .bytes()
                .all(|c| c.is_ascii_digit()) =>
        {
            text
        }
        _ => subject,
    }
}

/// The numbers of issues that a message names: `#12`.
pub(super) fn issue_numbers(commit: &Commit) -> Vec<String> {
    let text = format!("{}\n{}", commit.subject, commit.body);
    let parts = text.split('#').skip(1);
    let numbers = parts.map(|part| {
        part.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
    });
    numbers.filter(|number| !number.is_empty()).collect()
}

/// Without what looks like a key.
pub(super) fn clean(text: &str) -> String {
    Redactor::new(&Secrets::default()).text(text).into_owned()
}

/// An id from the subject that no other task has.
pub(super) fn id(commit: &Commit, taken: &BTreeSet<String>) -> String {
    let mut slug = String::new();
    for c in without_number(&clean(&commit.subject))
        .to_lowercase()
        .chars()
    {
        match c.is_ascii_alphanumeric() {
            true => slug.push(c),
            false if !slug.ends_with('-') => slug.push('-'),
            false => {}
        }
    }
    let slug = slug.trim_matches('-');
    let slug = slug.get(..slug.len().min(48)).unwrap_or_default();
    let slug = slug.trim_matches('-');
    match slug.is_empty() || taken.contains(slug) {
        true => format!("{slug}-{}", commit.short())
            .trim_matches('-')
            .to_owned(),
        false => slug.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(subject: &str, body: &str) -> Commit {
        Commit {
            id: "0123456789abcdef".to_owned(),
            parents: Vec::new(),
            date: String::new(),
            subject: subject.to_owned(),
            body: body.to_owned(),
        }
    }

    #[test]
    fn a_prompt_is_the_message_without_what_is_for_other_programs() {
        let body = "The last page was lost.\n\nSigned-off-by: a <a@b>\nFixes: #3\n";
        let prompt = prompt(&commit("Keep the last page (#12)", body), None).unwrap();
        assert!(
            prompt.starts_with("Keep the last page\n\nThe last page was lost.\n\nMake this change"),
            "{prompt}"
        );
        let key = format!("sk-ant-api03-{}", "aB3dE5gH7jK9mN1pQ3sT5vW7".repeat(3));
        let prompt =
            super::prompt(&commit(&format!("Use the key {key} for tests"), ""), None).unwrap();
        assert!(!prompt.contains(&key), "{prompt}");
        let id = id(&commit(&format!("Use {key}"), ""), &BTreeSet::new());
        assert!(!id.contains("sk-ant"), "{id}");
    }

    #[test]
    fn a_message_of_one_word_is_no_prompt() {
        assert!(prompt(&commit("wip", ""), None).is_err());
        assert!(prompt(&commit("wip", ""), Some("Pages are lost")).is_ok());
    }

    #[test]
    fn ids_are_fit_for_files_and_unique() {
        let taken = BTreeSet::from(["fix-a".to_owned()]);
        assert_eq!(
            id(&commit("Fix: the *Pager*!", ""), &taken),
            "fix-the-pager"
        );
        assert_eq!(id(&commit("Fix A", ""), &taken), "fix-a-0123456789");
        assert_eq!(id(&commit("修正", ""), &taken), "0123456789");
        assert_eq!(
            issue_numbers(&commit("Fix #3", "see #14, # and #x")),
            ["3", "14"]
        );
    }
}
