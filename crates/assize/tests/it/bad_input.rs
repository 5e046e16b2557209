//! Bad input gets a clear error with its place, and exit code 2.

use crate::support::{Outcome, Suite};

fn check(suite: &str, expected: &[&str]) -> Outcome {
    let outcome = Suite::of(suite).assize(&["check"]);
    assert_eq!(outcome.code, Some(2), "{suite}\n{outcome:#?}");
    for words in expected {
        assert!(
            outcome.stderr.contains(words),
            "no `{words}` in\n{}",
            outcome.stderr
        );
    }
    outcome
}

const SCENARIOS: &str = "scenarios: { paths: ['scenarios/*.yaml'] }\n";

fn with_scenarios(suite: &str) -> String {
    format!("{suite}{SCENARIOS}")
}

#[test]
fn an_unknown_key_has_its_place_and_the_nearest_known_one() {
    check(
        &with_scenarios("provider: { uses: simulated }\nmodes: { a: {} }\nexecutoin: {}\n"),
        &[
            "assize.yaml:3:1: unknown key `executoin`",
            "hint: did you mean `execution`?",
        ],
    );
    check(
        &with_scenarios(
            "provider: { uses: simulated }\nmodes: { a: {} }\nexecution:\n  repetition: 3\n",
        ),
        &[
            "assize.yaml:4:3: unknown key `repetition` in `execution`",
            "did you mean `repetitions`?",
        ],
    );
}

#[test]
fn a_wrong_type_says_what_was_found_and_what_was_expected() {
    check(
        &with_scenarios(
            "provider: { uses: simulated }\nmodes: { a: {} }\nexecution:\n  repetitions: five\n",
        ),
        &[
            "assize.yaml:4:3: `execution.repetitions`: found the text \"five\", expected a whole number",
        ],
    );
    check(
        &with_scenarios("provider: { uses: simulated }\nmodes: 3\n"),
        &["`modes`: found the number `3`"],
    );
}

#[test]
fn an_unknown_provider_scorer_collector_or_analyzer_is_named() {
    check(
        &with_scenarios("modes:\n  a:\n    provider: { uses: simulted }\n"),
        &[
            "assize.yaml:3:17: unknown provider `simulted`",
            "did you mean `simulated`?",
        ],
    );
    check(
        &with_scenarios(
            "provider: { uses: simulated }\nmodes: { a: {} }\ncollectors: [token, latencys]\n",
        ),
        &[
            "assize.yaml:3:21: unknown collector `latencys`",
            "did you mean `latency`?",
        ],
    );
    check(
        &with_scenarios(
            "provider: { uses: simulated }\nmodes: { a: {} }\nscorer: { uses: cheks }\n",
        ),
        &["unknown scorer `cheks`", "did you mean `checks`?"],
    );
}

#[test]
fn a_providers_own_settings_are_looked_at_too() {
    check(
        &with_scenarios(
            "modes:\n  a:\n    provider:\n      uses: simulated\n      sucess_rate: 1\n",
        ),
        &[
            "assize.yaml:5:7: unknown key `sucess_rate` in `modes.a.provider`",
            "did you mean `success_rate`?",
        ],
    );
    check(
        &with_scenarios(
            "modes:\n  a:\n    provider:\n      uses: simulated\n      success_rate: 7\n",
        ),
        &[
            "assize.yaml:5:7: `modes.a.provider.success_rate`: found 7, expected a share from 0 to 1",
        ],
    );
}

#[test]
fn a_mode_without_provider_and_modes_without_resolver_say_what_to_do() {
    check(
        &with_scenarios("modes: { a: {} }\n"),
        &["mode `a` has no provider", "provider: { uses: simulated }"],
    );
    check(
        &with_scenarios("provider: { uses: simulated }\nmodes: [a, b]\n"),
        &["need a `mode_resolver`"],
    );
}

#[test]
fn duplicate_keys_and_ids_are_refused() {
    check(
        &with_scenarios("provider: { uses: simulated }\nmodes:\n  a: {}\n  a: {}\n"),
        &["assize.yaml:4:"],
    );
    let suite = Suite::new();
    suite.write("scenarios/again.yaml", "prompt: x\nid: one\n");
    let outcome = suite.assize(&["check"]);
    assert!(
        outcome.stderr.contains("the id `one` is already taken by"),
        "{outcome:?}"
    );
}

#[test]
fn an_empty_matrix_is_an_error() {
    check(
        "provider: { uses: simulated }\nmodes: {}\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        &["no modes"],
    );
    check(
        "provider: { uses: simulated }\nmodes: { a: {} }\nscenarios: { paths: ['none/*.yaml'] }\n",
        &["assize.yaml:3:", "no file matches `none/*.yaml`"],
    );
    let outcome = Suite::new().assize(&["run", "--tag", "nobody"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("no scenarios"), "{outcome:?}");
    let outcome = Suite::new().assize(&["run", "-n", "0"]);
    assert_eq!(outcome.code, Some(2));
}

#[test]
fn ids_that_could_leave_a_directory_or_trick_a_terminal_are_refused() {
    for id in [
        "../../etc/passwd",
        "a/b",
        "A",
        "with space",
        "\"\\u001b[2J\"",
        "''",
    ] {
        let suite = Suite::new();
        suite.write("scenarios/bad.yaml", format!("prompt: x\nid: {id}\n"));
        let outcome = suite.assize(&["check"]);
        assert_eq!(outcome.code, Some(2), "{id}");
        assert!(
            outcome.stderr.contains("bad.yaml:2:1: found the id"),
            "{outcome:?}"
        );
        assert!(!outcome.stderr.contains('\u{1b}'), "{outcome:?}");
    }
}

#[test]
fn a_wrong_check_has_its_place() {
    let suite = Suite::new();
    suite.write(
        "scenarios/one.yaml",
        "id: one\nprompt: x\nchecks:\n  - output: { contians: y }\n",
    );
    let outcome = suite.assize(&["check"]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(
        outcome.stderr.contains("one.yaml:4:") && outcome.stderr.contains("contians"),
        "{outcome:?}"
    );
}

#[test]
fn a_hundred_megabyte_prompt_is_refused_with_advice() {
    let suite = Suite::new();
    let mut text = b"id: huge\nprompt: ".to_vec();
    text.resize(100 << 20, b'x');
    suite.write("scenarios/huge.yaml", text);
    let outcome = suite.assize(&["check"]);
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome
            .stderr
            .contains("huge.yaml: has 104857600 bytes, expected at most"),
        "{outcome:?}"
    );
    assert!(
        outcome
            .stderr
            .contains("hint: put large inputs into files of the workspace"),
        "{outcome:?}"
    );
}

#[test]
fn bytes_that_are_no_text_are_placed() {
    let suite = Suite::new();
    suite.write("scenarios/bad.yaml", b"id: bad\nprompt: caf\xe9\n");
    let outcome = suite.assize(&["check"]);
    assert!(
        outcome
            .stderr
            .contains("bad.yaml:2:12: the byte 0xe9 is not UTF-8"),
        "{outcome:?}"
    );
}

#[test]
fn an_alias_bomb_goes_off_harmlessly() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        bomb.push_str(&format!(
            "a{level}: &a{level} [{}]\n",
            vec![before; 10].join(", ")
        ));
    }
    let started = std::time::Instant::now();
    check(&bomb, &["assize.yaml"]);
    assert!(started.elapsed().as_secs() < 30);
}

#[test]
fn broken_yaml_toml_and_json_are_placed() {
    for (name, text, place) in [
        ("broken.yaml", "modes: {\n", "broken.yaml:"),
        ("broken.toml", "modes = = 3\n", "broken.toml:1:9"),
        ("broken.json", "{\n  \"modes\": }\n", "broken.json:2:12"),
    ] {
        let suite = Suite::new();
        suite.write(name, text);
        let outcome = suite.assize(&["check", name]);
        assert_eq!(outcome.code, Some(2), "{name}");
        assert!(outcome.stderr.contains(place), "{outcome:?}");
    }
}

#[test]
fn a_suite_that_is_not_there_says_how_to_make_one() {
    let suite = Suite::new();
    for path in ["nowhere.yaml", "scenarios"] {
        let outcome = suite.assize(&["run", path]);
        assert_eq!(outcome.code, Some(2));
        assert!(outcome.stderr.contains("`assize init`"), "{outcome:?}");
    }
}

#[test]
fn wrong_flags_are_usage_errors() {
    let suite = Suite::new();
    for arguments in [
        &["run", "--repetitoins", "3"][..],
        &["run", "--only", "void"],
        &["frobnicate"],
    ] {
        assert_eq!(suite.assize(arguments).code, Some(2), "{arguments:?}");
    }
}
