//! Cases of other tools, imported: what becomes a check, what becomes a criterion, and what is listed.

use crate::support::Suite;
use serde_json::Value;

/// Imports a path and gives what was made and what was left out; the written suite must be a valid one.
fn imported(suite: &Suite, format: &str, path: &str) -> (Vec<Value>, Vec<String>) {
    let told = suite.done(&["import", format, path, "--out", "made", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    suite.done(&["check", "made"]);
    let left = told["leftOut"].as_array().unwrap().iter();
    let left: Vec<String> = left.map(|line| line.as_str().unwrap().to_owned()).collect();
    let page = std::fs::read_to_string(suite.path().join("made/LEFT-OUT.md")).unwrap_or_default();
    for line in &left {
        assert!(page.contains(line), "{line}: {page}");
    }
    (told["scenarios"].as_array().unwrap().clone(), left)
}

fn skill() -> Suite {
    let suite = Suite::new();
    suite.write(
        "skills/review/SKILL.md",
        "---\nname: review\ndescription: Reviews code.\n---\n\nRead everything first.\n",
    );
    suite
}

#[test]
fn evals_of_a_skill_become_scenarios_with_and_without_it() {
    let suite = skill();
    suite.write("skills/review/evals/files/a.diff", "+ x\n");
    suite.write(
        "skills/review/evals/evals.json",
        r#"{"skill_name": "review", "evals": [
            {"id": 1, "prompt": "Review a.diff", "expected_output": "A review", "files": ["evals/files/a.diff", "evals/files/none.diff"],
             "expectations": ["Names the file", {"type": "contains", "value": "a.diff"}, {"type": "javascript", "value": "1"}], "owner": "me"},
            {"id": "plain", "prompt": "Review this", "expected_output": "Something short"},
            {"id": 3}]}"#,
    );
    let (scenarios, left) = imported(&suite, "evals-json", "skills/review");
    assert_eq!(scenarios.len(), 2);
    assert_eq!(scenarios[0]["id"], "eval-1");
    assert_eq!(scenarios[0]["should_trigger"], true);
    assert_eq!(scenarios[0]["checks"][0]["output"]["contains"], "a.diff");
    assert_eq!(
        scenarios[0]["rubric"]["criteria"][0]["description"],
        "Names the file"
    );
    assert_eq!(scenarios[0]["workspace"]["from"], "files/eval-1");
    assert!(suite.path().join("made/files/eval-1/a.diff").is_file());
    assert!(
        scenarios[1]["rubric"]["criteria"][0]["description"]
            .as_str()
            .unwrap()
            .contains("Something short")
    );
    for part in [
        "none.diff",
        "`javascript` has no equivalent",
        "`owner`",
        "it has no `prompt`",
    ] {
        assert!(
            left.iter().any(|line| line.contains(part)),
            "{part}: {left:?}"
        );
    }
    let made = std::fs::read_to_string(suite.path().join("made/assize.yaml")).unwrap();
    assert!(made.contains("with: \"../skills/review\""), "{made}");
}

#[test]
fn a_trigger_file_becomes_scenarios_that_say_whether_to_trigger() {
    let suite = skill();
    suite.write(
        "skills/review/evals/triggers.json",
        r#"[{"query": "Review this", "should_trigger": true}, {"query": "A joke", "should_trigger": false}, {"query": "?"}, {"should_trigger": true}]"#,
    );
    let (scenarios, left) = imported(&suite, "triggers", "skills/review/evals/triggers.json");
    assert_eq!(scenarios.len(), 3);
    assert_eq!(scenarios[0]["should_trigger"], true);
    assert_eq!(scenarios[1]["should_trigger"], false);
    assert_eq!(scenarios[2]["should_trigger"], Value::Null);
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn cases_of_a_plugin_become_checks_and_criteria() {
    let suite = Suite::new();
    suite.write(
        "plugin/evals/one/prompt.md",
        "---\ntimeout: 30\n---\nReview main.rs\n",
    );
    suite.write(
        "plugin/evals/one/scaffold.sh",
        "echo 'fn main() {}' > main.rs\n",
    );
    suite.write(
        "plugin/evals/one/graders/1-pattern.md",
        "---\ntype: regex\npattern: 'main\\.rs'\n---\n",
    );
    suite.write(
        "plugin/evals/one/graders/2-used.md",
        "---\ntype: tool_used\ntool: Skill\nskill: review\nmin: 1\n---\n",
    );
    suite.write(
        "plugin/evals/one/graders/3-order.md",
        "---\ntype: tool_order\ntools: [Read, Edit]\n---\n",
    );
    suite.write(
        "plugin/evals/one/graders/4-judge.md",
        "---\ntype: llm\n---\nThe review is friendly.\n",
    );
    suite.write("plugin/evals/one/graders/5-code.py", "print(1)\n");
    suite.write(
        "plugin/evals/two/case.yaml",
        "prompt: Write out.txt\nmax_turns: 4\nbaseline: true\ngraders:\n  - { type: file_exists, path: out.txt }\n  - { type: tool_used, tool: Bash, max: 2 }\n  - { type: pairwise }\n",
    );
    let (scenarios, left) = imported(&suite, "claude-plugin-eval", "plugin");
    let one = &scenarios[0];
    assert_eq!(one["id"], "one");
    assert_eq!(one["timeout_ms"], 30000);
    assert_eq!(one["checks"][0]["output"]["matches"], "main\\.rs");
    assert_eq!(one["checks"][1]["skill"]["used"], "review");
    assert_eq!(one["checks"][1]["required"], false);
    assert_eq!(one["checks"][2]["tool"]["order"][1], "Edit");
    assert_eq!(
        one["rubric"]["criteria"][0]["description"],
        "The review is friendly."
    );
    assert_eq!(
        one["workspace"]["setup"][0],
        "sh ./scaffold.sh && rm scaffold.sh"
    );
    let two = &scenarios[1];
    assert_eq!(two["checks"][0]["file"]["path"], "out.txt");
    assert_eq!(two["checks"][1]["tool"]["at_most"], 2);
    assert_eq!(two["checks"][2]["limit"]["turns"], 4);
    for part in ["5-code.py", "`pairwise` has no equivalent", "`baseline`"] {
        assert!(
            left.iter().any(|line| line.contains(part)),
            "{part}: {left:?}"
        );
    }
}

#[test]
fn a_promptfoo_configuration_becomes_scenarios() {
    let suite = Suite::new();
    suite.write("pf/long.txt", "a long text");
    suite.write(
        "pf/promptfooconfig.yaml",
        r#"
description: Translations
providers: [openai:gpt-5]
prompts:
  - "Translate {{text}} to {{language}}"
defaultTest:
  assert:
    - { type: latency, threshold: 5000 }
tests:
  - description: several languages
    vars: { text: hello, language: [French, German] }
    assert:
      - { type: icontains, value: "{{language}}" }
      - { type: not-contains, value: "sorry" }
      - { type: llm-rubric, value: "is a correct translation", threshold: 0.8 }
      - { type: similar, value: "bonjour" }
  - vars: { text: "file://long.txt", language: Dutch }
    options: { transform: x }
    assert:
      - { type: assert-set, assert: [ { type: is-json }, { type: regex, value: "^x" } ] }
  - vars: { text: "{% raw %}" }
sharing: false
"#,
    );
    let (scenarios, left) = imported(&suite, "promptfoo", "pf");
    assert_eq!(scenarios.len(), 3, "{scenarios:#?}");
    assert_eq!(scenarios[0]["prompt"], "Translate hello to French");
    assert_eq!(scenarios[1]["prompt"], "Translate hello to German");
    assert_eq!(scenarios[1]["checks"][1]["output"]["matches"], "(?i)German");
    assert_eq!(scenarios[0]["checks"][0]["limit"]["wall_ms"], 5000.0);
    assert_eq!(
        scenarios[0]["checks"][2]["not"]["output"]["contains"],
        "sorry"
    );
    assert_eq!(
        scenarios[0]["rubric"]["criteria"][0]["description"],
        "is a correct translation"
    );
    assert_eq!(scenarios[2]["prompt"], "Translate a long text to Dutch");
    assert_eq!(scenarios[2]["checks"][2]["output"]["matches"], "^x");
    for part in [
        "`similar`",
        "threshold",
        "`options`",
        "`sharing`",
        "openai:gpt-5",
        "template",
    ] {
        assert!(
            left.iter().any(|line| line.contains(part)),
            "{part}: {left:?}"
        );
    }
}

#[test]
fn what_has_an_unknown_form_is_listed_and_not_dropped() {
    let suite = skill();
    suite.write(
        "skills/review/evals/evals.json",
        r#"{"skill_name": "review", "version": 3, "evals": [
            {"id": "../../etc", "prompt": "Use {braces}", "should_trigger": "no", "files": "../secret",
             "expectations": "One sentence.", "expected_output": {"a": 1},
             "assertions": [{"type": "contains", "value": "x", "transform": "output.a"}, {"type": "regex"},
                            {"type": "contains-any", "value": "a, b"}, {"type": "not-contains-all", "value": ["a", "b"]},
                            {"type": "contains", "value": "y", "weight": 0.5, "metric": "m"}, {"type": "contains-any"}]}]}"#,
    );
    let (scenarios, left) = imported(&suite, "evals-json", "skills/review");
    assert_eq!(scenarios[0]["id"], "etc");
    assert_eq!(scenarios[0]["should_trigger"], Value::Null);
    assert_eq!(
        scenarios[0]["rubric"]["criteria"][0]["description"],
        "One sentence."
    );
    let checks = scenarios[0]["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 2, "{checks:?}");
    assert_eq!(checks[0]["output"]["matches"], "a|b");
    let left = left.join("\n");
    for part in [
        "`should_trigger` is \"no\"",
        "lies outside of the skill",
        "after a `transform`",
        "`regex` has no value",
        "`not-contains-all` of several texts",
        "the weight 0.5",
        "`metric` of `contains`",
        "`contains-any` names no text",
        "the file: `version`",
    ] {
        assert!(left.contains(part), "{part}: {left}");
    }
}

#[test]
fn references_that_promptfoo_resolves_are_read_or_listed() {
    let suite = Suite::new();
    suite.write(
        "pf/promptfooconfig.yaml",
        "prompts: ['Say {{word}}', file://two.txt, file://chat.json]\n\
         defaultTest: file://default.yaml\n\
         tests:\n  - vars: { word: a }\n    assert: { type: contains, value: '{{ other }}' }\n  - vars: file://v.yaml\n  - vars: { word: file://gone.txt }\n",
    );
    suite.write("pf/two.txt", "One {{word}}\n---\nTwo {{word}}\n");
    suite.write("pf/chat.json", r#"[{"role": "user", "content": "x"}]"#);
    suite.write(
        "pf/default.yaml",
        "assert: [{ type: contains, value: '{{word}}' }]\noptions: { provider: x }\n",
    );
    let (scenarios, left) = imported(&suite, "promptfoo", "pf");
    let prompts: Vec<&str> = scenarios
        .iter()
        .map(|scenario| scenario["prompt"].as_str().unwrap())
        .collect();
    assert_eq!(prompts, ["Say a", "One a", "Two a"]);
    assert_eq!(scenarios[0]["checks"][0]["output"]["contains"], "a");
    let left = left.join("\n");
    for part in [
        "defaultTest: `options`",
        "a chat of several messages",
        "a template that only promptfoo can fill",
        "`vars` are \"file://v.yaml\"",
        "`gone.txt` cannot be read",
    ] {
        assert!(left.contains(part), "{part}: {left}");
    }
}

#[test]
fn graders_by_name_and_bad_front_matter_are_seen() {
    let suite = Suite::new();
    suite.write(
        "p/evals/one/case.yaml",
        "prompt: Do it\ntags: a\ngraders:\n  polite: { type: llm, rubric: Be polite }\n  file: { type: file_exists, path: out.txt }\n",
    );
    let (scenarios, left) = imported(&suite, "claude-plugin-eval", "p");
    assert_eq!(scenarios[0]["checks"][0]["file"]["path"], "out.txt");
    assert_eq!(
        scenarios[0]["rubric"]["criteria"][0]["description"],
        "Be polite"
    );
    assert_eq!(left, Vec::<String>::new());
    suite.write("p/evals/one/graders/x.md", "---\n: : [\n---\ntext\n");
    let outcome = suite.assize(&["import", "claude-plugin-eval", "p"]);
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("x.md") && outcome.stderr.contains("is no list of keys"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_file_may_begin_with_a_mark_of_its_encoding() {
    let suite = Suite::new();
    suite.write(
        "t.json",
        "\u{feff}[{\"query\": \"a\", \"should_trigger\": true}]",
    );
    let (scenarios, _) = imported(&suite, "triggers", "t.json");
    assert_eq!(scenarios.len(), 1);
}

#[test]
fn nothing_is_written_unless_asked_and_mistakes_are_named() {
    let suite = skill();
    suite.write("t.json", r#"[{"query": "x", "should_trigger": true}]"#);
    let told = suite.assize(&["import", "triggers", "t.json"]);
    assert_eq!(told.code, Some(0));
    assert!(told.stdout.contains("1 scenarios"), "{told:#?}");
    assert!(told.stderr.contains("nothing is written"), "{told:#?}");
    let wrong = suite.assize(&["import", "trigers", "t.json"]);
    assert_eq!(wrong.code, Some(2), "{wrong:#?}");
    assert!(wrong.stderr.contains("triggers"), "{wrong:#?}");
    let taken = suite.assize(&["import", "triggers", "t.json", "--out", "."]);
    assert_eq!(taken.code, Some(2), "{taken:#?}");
    assert!(taken.stderr.contains("already has a suite"));
    suite.write("empty.json", "[]");
    assert_eq!(
        suite.assize(&["import", "triggers", "empty.json"]).code,
        Some(2)
    );
    suite.write("bad.json", "{");
    assert_eq!(
        suite.assize(&["import", "evals-json", "bad.json"]).code,
        Some(2)
    );
}
