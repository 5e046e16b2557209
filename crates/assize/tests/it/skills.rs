//! Skills, instruction files, subagents, servers and settings of modes: what is refused, what is recorded, what sessions are given.

use crate::support::Suite;
use serde_json::Value;

const SKILL: &str = "\
---
name: review
description: Reviews changes of code. Use it for every review.
---

Read the whole difference before you say anything about it.
";

const SUITE: &str = "\
provider: { uses: simulated, success_rate: 0.5, skill_effect: 0.4, skill_rates: { two: 0 } }
with: skills/review
scenarios: { paths: ['scenarios/*.yaml'] }
execution: { repetitions: 3, warmup: false }
";

fn suite(text: &str) -> Suite {
    let suite = Suite::of(text);
    suite.write("skills/review/SKILL.md", SKILL);
    suite
}

fn refused(suite: &Suite) -> String {
    let outcome = suite.assize(&["check"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.stderr
}

fn manifest(suite: &Suite) -> Value {
    let text = std::fs::read_to_string(suite.run_directory().join("manifest.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn with_makes_both_modes_of_an_ablation() {
    let suite = suite(SUITE);
    suite.write(
        "scenarios/one.yaml",
        "id: one\nprompt: review this\nshould_trigger: true\nchecks: [ { skill: { used: review }, required: false } ]\n",
    );
    suite.write(
        "scenarios/two.yaml",
        "id: two\nprompt: a joke\nshould_trigger: false\n",
    );
    suite.done(&["run", "--quiet"]);
    let rows = suite.rows();
    let modes: Vec<&str> = rows
        .iter()
        .map(|row| row["mode"].as_str().unwrap())
        .collect();
    assert!(modes.contains(&"with-review") && modes.contains(&"without-review"));
    for row in &rows {
        let found = &row["extensions"];
        match (
            row["mode"].as_str().unwrap(),
            row["scenarioId"].as_str().unwrap(),
        ) {
            ("with-review", "two") => {
                assert_eq!(found["skill_activated"], 0, "{row:#}");
                assert_eq!(found["skill_trigger_correct"], 1);
                assert_eq!(found["skill_should_trigger"], 0);
            }
            ("with-review", _) => assert_eq!(found["skill_should_trigger"], 1),
            _ => {
                assert_eq!(found["skill_activated"], 0);
                assert_eq!(found["skill_trigger_correct"], Value::Null);
            }
        }
        // Nothing was captured, so the offer is unknown.
        assert_eq!(found["skill_offered"], Value::Null);
    }
    let used = rows
        .iter()
        .filter(|row| row["extensions"]["skill_activated"] == 1);
    for row in used {
        assert_eq!(row["checkpointDetails"][0]["passed"], true, "{row:#}");
        assert_eq!(row["extensions"]["skill_activation_turn"], 1);
    }
    let described = &manifest(&suite)["suite"]["surroundings"];
    let hash = described["with-review"]["skills"][0]["hash"]
        .as_str()
        .unwrap();
    assert_eq!(hash.len(), 64);
    assert_eq!(described["without-review"], Value::Null);
}

#[test]
fn an_ablation_of_what_all_modes_have_is_refused() {
    let with = "with: skills/review";
    for (keys, expected) in [
        (
            "with: skills/review\nskills: [./skills/review]",
            "is given to all modes by `skills` already",
        ),
        (
            "with: skills/review\nneighbours: [skills/review]",
            "is given to all modes by `neighbours` already",
        ),
        (
            "with: TEAM.md\ninstructions: ./TEAM.md",
            "is given to all modes by `instructions` already",
        ),
        (
            "with: { skills: [skills/review] }\nneighbours: [skills/review]",
            "`review` is on trial and a neighbour",
        ),
        (
            "with: [TEAM.md, OTHER.md]",
            "beside another instruction file",
        ),
        (
            "with: skills/review/SKILL.md",
            "write `with: skills/review`",
        ),
        ("with: {}", "found nothing"),
    ] {
        let suite = suite(&SUITE.replace(with, keys));
        suite.write("TEAM.md", "# Team\n\nBe kind.\n");
        suite.write("OTHER.md", "# Other\n\nBe quick.\n");
        let said = refused(&suite);
        assert!(said.contains(expected), "{keys}: {said}");
    }
    let suite = suite(SUITE);
    suite.write(
        "scenarios/one.yaml",
        "id: one\nprompt: x\nchecks: [ { not: { skill: { used: revue } } } ]\n",
    );
    let outcome = suite.assize(&["check"]);
    assert!(
        outcome
            .stderr
            .contains("a skill `revue`, which no mode has"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn the_page_tells_the_use_of_skills() {
    let suite = suite(&SUITE.replace("skill_rates: { two: 0 }", "skill_rates: { one: 1, two: 0 }"));
    suite.write(
        "scenarios/one.yaml",
        "id: one\nprompt: review this\nshould_trigger: true\n",
    );
    suite.write(
        "scenarios/two.yaml",
        "id: two\nprompt: a joke\nshould_trigger: false\n",
    );
    suite.done(&["run", "--quiet"]);
    let report = suite.run_directory().join("report");
    let page = std::fs::read_to_string(report.join("report.html")).unwrap();
    let section = page.split("<section id=\"skills\"").nth(1).unwrap();
    let section = section.split("</section>").next().unwrap();
    for part in [
        "Tokens before it",
        "Does it trigger?",
        "100 % (3 of 3)",
        "100 % (3 of 3; 21 % to 100 %)",
        "0 % (0 of 3)",
        "Should be used",
        "main agent 3",
        "none 3, review 3",
    ] {
        assert!(section.contains(part), "{part}: {section}");
    }
    assert!(page.contains("<a href=\"#skills\">Skills</a>"));
    let text = std::fs::read_to_string(report.join("report.md")).unwrap();
    assert!(text.contains("## Use of skills") && text.contains("## Does it trigger"));
}

#[test]
fn a_page_without_skills_has_no_section_on_them() {
    let suite = suite(&SUITE.replace("with: skills/review", "modes: { a: {}, b: {} }"));
    suite.done(&["run", "--quiet", "-n", "1"]);
    let page = suite.run_directory().join("report/report.html");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(!page.contains("id=\"skills\""));
}

#[test]
fn a_changed_skill_is_another_suite() {
    let suite = suite(SUITE);
    suite.done(&["run", "--quiet", "-n", "1"]);
    suite.write("skills/review/SKILL.md", SKILL.replace("whole", "entire"));
    let outcome = suite.assize(&["run", "--quiet", "--resume", "last", "-n", "2"]);
    assert_ne!(outcome.code, Some(0));
    assert!(
        outcome.stderr.contains("surroundings"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn without_takes_away_what_the_suite_gives() {
    let suite = suite(&SUITE.replace(
        "with: skills/review",
        "skills: skills/review\nwithout: review",
    ));
    suite.done(&["run", "--quiet", "-n", "1"]);
    let described = &manifest(&suite)["suite"]["surroundings"];
    assert_eq!(described["with-review"]["skills"][0]["name"], "review");
    assert_eq!(described["without-review"], Value::Null);
    suite.write(
        "assize.yaml",
        SUITE.replace("with: skills", "without: skills"),
    );
    assert!(refused(&suite).contains("gives its modes nothing called `skills/review`"));
    suite.write("assize.yaml", format!("{SUITE}modes: {{ a: {{}} }}\n"));
    assert!(refused(&suite).contains("found `with` and `modes`"));
}

#[test]
fn what_agents_would_not_load_is_refused_with_file_and_line() {
    for (text, expected) in [
        (
            "no front matter",
            "skills/review/SKILL.md:1:1: found no front matter",
        ),
        (
            &SKILL.replace("name: review", "name: Review"),
            "SKILL.md:2:1: found the name \"Review\"",
        ),
        (
            &SKILL.replace("name: review", "name: other"),
            "differs from the directory `review`",
        ),
        (
            &SKILL.replace("Reviews changes", &"x".repeat(1100)),
            "expected at most 1024",
        ),
        (
            &format!("{SKILL}See [more](references/more.md).\n"),
            "SKILL.md:7:1: names `references/more.md`",
        ),
    ] {
        let suite = suite(SUITE);
        suite.write("skills/review/SKILL.md", text);
        let said = refused(&suite);
        assert!(said.contains(expected), "{said}");
    }
    let missing = suite(&SUITE.replace(
        "with: skills/review",
        "modes: { a: { skills: [skills/revue] } }",
    ));
    let said = refused(&missing);
    assert!(said.contains("assize.yaml:2:"), "{said}");
    assert!(
        said.contains("skills/revue: there is no such directory"),
        "{said}"
    );
}

#[test]
fn an_agent_without_such_a_thing_is_named() {
    for (provider, mode, expected) in [
        (
            "mini-swe-agent",
            "skills: [skills/review]",
            "`mini-swe-agent` has no skills",
        ),
        (
            "command, command: [x]",
            "skills: [skills/review]",
            "the provider `command` knows no place for `skills`",
        ),
        (
            "aider",
            "settings: { aider: { a: 1 } }",
            "`aider` has no settings file",
        ),
        (
            "pi",
            "agents: [agents/a.md]",
            "`pi` has no subagents that could be given",
        ),
        (
            "claude-code, isolated: false",
            "skills: [skills/review]",
            "an agent in your own home has the skills of that home",
        ),
        (
            "claude-code",
            "settings: { claude: { a: 1 } }",
            "unknown agent `claude`",
        ),
        (
            "claude-code",
            "instructions: NONE.md",
            "cannot read `NONE.md`",
        ),
    ] {
        let suite = suite(&format!(
            "provider: {{ uses: {provider} }}\nmodes: {{ a: {{ {mode} }} }}\nscenarios: {{ paths: ['scenarios/*.yaml'] }}\n"
        ));
        suite.write("agents/a.md", "---\nname: a\ndescription: b\n---\nx\n");
        for name in ["one", "two"] {
            suite.write(
                &format!("scenarios/{name}.yaml"),
                format!("id: {name}\nprompt: x\nworkspace: {{}}\n"),
            );
        }
        let said = refused(&suite);
        assert!(said.contains(expected), "{provider}: {said}");
        assert!(said.contains("assize.yaml:2:"), "{provider}: {said}");
    }
}

#[test]
fn an_agent_that_works_beside_the_thing_is_refused() {
    let suite = suite(
        "provider: { uses: claude-code }\nwith: skills/review\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
    );
    suite.done(&["check"]);
    suite.write(".claude/skills/review/SKILL.md", SKILL);
    let said = refused(&suite);
    assert!(said.contains("has no workspace"), "{said}");
    assert!(said.contains(".claude/skills/review"), "{said}");
}

#[test]
fn check_says_what_should_be_known_before_a_run() {
    let suite = suite(
        "provider: { uses: codex }\nwith: { skills: [skills/review], agents: [agents/a.md] }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
    );
    suite.write(
        "agents/a.md",
        "---\nname: a\ndescription: b\ntools: Read\n---\nx\n",
    );
    suite.write(
        "scenarios/one.yaml",
        "id: one\nprompt: x\nchecks: [ { skill: { used: review } } ]\n",
    );
    let outcome = suite.assize(&["check"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    for part in [
        "every session has a fresh home",
        "left out: tools",
        "requires the use of a skill that mode `without` does not have",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// A recipe of one's own: a program that shows its home and its workspace.
const LOOKER: &str = "\
name: looker
command: [sh, -c, 'cd \"$0\" && find . -type f | sort | grep -v git && cat skills/review/SKILL.md rules/RULES.md settings.json; cd \"$1\" && find . -type f | sort', '{home}', '{workspace}']
output: text
auto_approve: {}
skills: { home: skills }
instruction_file: { home: rules/RULES.md }
subagents: { home: agents, form: codex }
settings_file: settings.json
files: { settings.json: '{ \"a\": { \"b\": 1 } }' }
";

#[test]
fn a_recipe_says_where_things_go_and_workspaces_lose_what_is_on_trial() {
    let suite = suite(
        "provider: { uses: ./looker.yaml }\npermissions: { auto_approve: true }\n\
         with: { skills: [skills/review], instructions: TEAM.md, agents: [agents/a.md], settings: { ./looker.yaml: { a: { c: 2 } } } }\n\
         scenarios: { paths: ['scenarios/*.yaml'], ids: [one] }\nexecution: { repetitions: 1, warmup: false }\n",
    );
    suite.write("looker.yaml", LOOKER);
    suite.write("TEAM.md", "Be kind.\n");
    suite.write("agents/a.md", "---\nname: a\ndescription: b\n---\nx\n");
    suite.write("skills/review/scripts/run.sh", "true\n");
    suite.write("ws/keep.txt", "kept");
    suite.write("ws/AGENTS.md", "of the project");
    suite.write("ws/sub/.claude/skills/review/SKILL.md", SKILL);
    suite.write(
        "scenarios/one.yaml",
        "id: one\nprompt: look\nworkspace: { from: ws }\n",
    );
    let said = suite.assize(&["run", "--quiet", "--yes"]);
    assert!(matches!(said.code, Some(0 | 5)), "{said:#?}");
    let rows = suite.rows();
    let answers: Vec<(String, String)> = (0..rows.len())
        .map(|position| {
            let shown = suite.done(&["show", &format!("last/{position}"), "--json"]);
            let shown: Value = serde_json::from_str(&shown).unwrap();
            let text = shown["trace"].to_string();
            (
                shown["row"]["mode"].as_str().unwrap_or_default().to_owned(),
                text,
            )
        })
        .collect();
    let of = |mode: &str| &answers.iter().find(|(name, _)| name == mode).unwrap().1;
    let with = of("with");
    for part in [
        "./agents/a.toml",
        "./rules/RULES.md",
        "./skills/review/SKILL.md",
        "./skills/review/scripts/run.sh",
        "Read the whole difference",
        "Be kind.",
        "keep.txt",
    ] {
        assert!(with.contains(part), "{part}: {with}");
    }
    let without = of("without");
    assert!(without.contains("keep.txt"), "{without}");
    for part in ["./skills/review", "RULES.md", "AGENTS.md", "sub/.claude"] {
        assert!(!without.contains(part), "{part}: {without}");
    }
    assert!(
        !with.contains("AGENTS.md") && !with.contains("sub/.claude"),
        "{with}"
    );
    for row in rows {
        assert_eq!(row["extensions"]["files_deleted"], 0, "{row:#}");
    }
}
