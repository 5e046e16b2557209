//! The documents show what the program does.

use crate::support::{Suite, assize};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The fenced blocks of a language in a page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() == format!("```{language}") {
            let block: Vec<&str> = lines
                .by_ref()
                .take_while(|line| line.trim() != "```")
                .collect();
            blocks.push(block.join("\n") + "\n");
        }
    }
    blocks
}

/// A snippet with what it leaves out: modes for a provider, a suite for a scenario.
fn check(page: &str, snippet: &str) {
    const SCENARIOS: &str = "scenarios: { paths: ['scenarios/*.yaml'] }\n";
    let has = |key: &str| snippet.lines().any(|line| line.starts_with(key));
    let suite = Suite::new();
    suite.write("fixtures/pager/pager.py", "");
    match (has("modes:"), has("provider:"), has("id:")) {
        (true, ..) => suite.write("assize.yaml", snippet),
        (_, true, _) => suite.write(
            "assize.yaml",
            format!("{snippet}modes: {{ a: {{}} }}\n{SCENARIOS}"),
        ),
        (.., true) => suite.write("scenarios/three.yaml", snippet),
        _ => panic!("{page} has a snippet that is neither suite nor scenario:\n{snippet}"),
    };
    suite.write(
        "scenarios/fix-bug-of-the-page.yaml",
        "id: fix-bug\nprompt: x\n",
    );
    if has("id: fix-bug") {
        std::fs::remove_file(suite.path().join("scenarios/fix-bug-of-the-page.yaml")).unwrap();
    }
    let output = assize(suite.path())
        .arg("check")
        .env("DOCS_TOKEN", "secret")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{page}:\n{snippet}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn suites_and_scenarios_in_the_documents_are_valid() {
    let mut count = 0;
    for page in [
        "README.md",
        "docs/suites.md",
        "docs/providers.md",
        "docs/agents.md",
    ] {
        for snippet in blocks(page, "yaml") {
            check(page, &snippet);
            count += 1;
        }
    }
    assert!(count >= 20, "only {count} snippets were found");
}

#[test]
fn the_readme_shows_the_plugin_that_is_built() {
    let letters = |text: &str| {
        text.split_whitespace()
            .collect::<String>()
            .replace(",)", ")")
    };
    let example = std::fs::read_to_string(root().join("crates/assize/examples/plugin.rs")).unwrap();
    for page in ["README.md", "docs/plugins-in-rust.md"] {
        let shown = blocks(
            page,
            if page == "README.md" {
                "rust"
            } else {
                "rust,ignore"
            },
        )
        .remove(0);
        assert!(
            letters(&example).contains(&letters(&shown)),
            "{page} shows another plugin than\n{example}"
        );
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    for page in [
        "README.md",
        "docs/suites.md",
        "docs/providers.md",
        "docs/runs.md",
        "docs/ci.md",
        "docs/plugins.md",
        "docs/plugin-protocol.md",
        "docs/plugins-in-rust.md",
    ] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = target.split('#').next().unwrap_or_default();
            let path = root().join(page).with_file_name("").join(file);
            assert!(
                target.contains("://") || path.exists(),
                "{page} links to `{target}`"
            );
        }
    }
}

/// Times vary and with them the width of columns; all else follows from the seed.
fn essence(line: &str) -> String {
    let words: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || "─═".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    for unit in 1..words.len() {
        if words[unit] == "ms" {
            words[unit - 1] = "some".to_owned();
        }
    }
    words.join(" ")
}

#[test]
fn the_readme_shows_what_the_quickstart_prints() {
    let results = tempfile::tempdir().unwrap();
    let output = assize(&root())
        .args(["run", "examples/quickstart", "-q", "--output"])
        .arg(results.path())
        // `last` names this run.
        .env("XDG_STATE_HOME", results.path().join("state"))
        .env_remove("CI")
        .output()
        .unwrap();
    let printed: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(essence)
        .collect();
    let shown = blocks("README.md", "text").remove(0);
    for line in shown.lines().filter(|line| !line.contains("less time")) {
        assert!(
            printed.contains(&essence(line)),
            "`{line}` is not what the quickstart prints:\n{printed:#?}"
        );
    }
}
