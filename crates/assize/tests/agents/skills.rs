//! Skills, instruction files and subagents with real agents: offered and used in the mode that has them, absent in the other, and
//! seen by both detectors.

use crate::agents::{Agent, CLAUDE_CODE, CLINE, CODEX, COPILOT, GEMINI, GOOSE, OPENCODE, PI, QWEN};
use crate::faults::script;
use crate::offline::{Offline, lines};
use serde_json::{Value, json};

const SKILL: &str = "\
---
name: review
description: Reviews changes of marigold code before they are merged. Use it for every review.
---

# Review

Read the whole difference before you say anything about it, from the first file to the last.

Name the file and the line of every remark, and leave matters of taste alone.
";

const DESCRIPTION: &str = "Reviews changes of marigold code";

const INSTRUCTIONS: &str = "Answer every question in the manner of a snapdragon.\n";

/// Only for those who are not on trial.
const OF_OTHERS: &str = "tulips of somebody else";

const SUBAGENT: &str = "\
---
name: looker
description: Looks for hyacinth problems in files.
---

You look for problems and name them.
";

const ROOTS: [&str; 8] = [
    ".claude/skills",
    ".agents/skills",
    ".codex/skills",
    ".opencode/skills",
    ".config/opencode/skills",
    ".gemini/skills",
    ".qwen/skills",
    ".cline/skills",
];

const INSTRUCTION_FILES: [&str; 6] = [
    "CLAUDE.md",
    "AGENTS.md",
    "GEMINI.md",
    "QWEN.md",
    ".claude/CLAUDE.md",
    ".codex/AGENTS.md",
];

/// An agent that loads skills by this tool.
fn by_tool(tool: &str, argument: &str) -> Value {
    json!({"tool": format!("={tool}"), "args": {argument: "review"}})
}

/// An agent that reads the file of a skill where its recipe puts it.
fn by_reading(place: &str) -> Value {
    json!({"tool": "shell", "command": format!("cat $HOME/{place}/review/SKILL.md")})
}

pub(crate) fn claude_code() {
    check(&CLAUDE_CODE, by_tool("Skill", "skill"));
}

pub(crate) fn codex() {
    check(&CODEX, by_reading(".agents/skills"));
}

pub(crate) fn opencode() {
    check(&OPENCODE, by_tool("skill", "name"));
}

pub(crate) fn gemini() {
    check(&GEMINI, by_tool("activate_skill", "name"));
}

pub(crate) fn qwen() {
    check(&QWEN, by_tool("skill", "skill"));
}

pub(crate) fn goose() {
    check(&GOOSE, by_reading("goose/config/skills"));
}

pub(crate) fn copilot() {
    check(&COPILOT, by_tool("skill", "skill"));
}

pub(crate) fn pi() {
    check(&PI, by_reading("pi/skills"));
}

pub(crate) fn cline() {
    check(&CLINE, by_tool("skills", "skill"));
}

/// A suite whose workspace, and whose user's home, hold the same things in every place where some agent looks.
fn suite(agent: &Agent) -> Offline {
    let name = agent.section;
    let model = match name {
        "claude-code" => "claude-sonnet-4-5",
        "gemini" => "gemini-2.5-pro",
        _ => "gpt-5.1",
    };
    let agents = match has_subagents(agent) {
        true => ", agents: [agents/looker.md]",
        false => "",
    };
    let suite = format!(
        "provider: {{ uses: {name} }}\nmodels: [{model}]\npermissions: {{ auto_approve: true }}\n\
         with: {{ skills: [skills/review], instructions: TEAM.md{agents} }}\n\
         scenarios: {{ paths: [\"scenarios/*.yaml\"] }}\nexecution: {{ timeout_default_ms: 120000 }}\n"
    );
    let offline = agent.suite("id: look\nprompt: Review this change of code.\nshould_trigger: true\nworkspace: { from: workspace }\n");
    offline.write("assize.yaml", &suite);
    offline.write("skills/review/SKILL.md", SKILL);
    offline.write("TEAM.md", INSTRUCTIONS);
    offline.write("agents/looker.md", SUBAGENT);
    for place in ["home", "workspace"] {
        for root in ROOTS {
            offline.write(&format!("{place}/{root}/review/SKILL.md"), SKILL);
        }
        for file in INSTRUCTION_FILES {
            offline.write(&format!("{place}/{file}"), OF_OTHERS);
        }
    }
    offline
}

fn has_subagents(agent: &Agent) -> bool {
    [CLAUDE_CODE, CODEX, OPENCODE, GEMINI, QWEN]
        .iter()
        .any(|other| agent.is(other))
}

fn check(agent: &Agent, load: Value) {
    // The first call is another one, which must not be taken for "not used".
    let first =
        json!({"tool": "shell", "command": "echo hi > out.txt", "say": "First I look around."});
    let turns = [first, load, json!({"text": "Reviewed."})];
    let offline = script(suite(agent), &json!({ "turns": turns }));
    let without = trial(&offline, "without");
    for word in [DESCRIPTION, "snapdragon", "hyacinth", OF_OTHERS] {
        assert!(!without.asked.contains(word), "{word} is told to the model");
    }
    assert_eq!(
        without.row["extensions"]["skill_offered"], 0,
        "{:#}",
        without.row
    );
    assert_eq!(
        without.row["extensions"]["skill_activated"], 0,
        "{:#}",
        without.row
    );
    let with = trial(&offline, "with");
    let subagent = has_subagents(agent).then_some("hyacinth");
    // Cline offers skills by their names alone.
    let offer = (!agent.is(&CLINE)).then_some(DESCRIPTION);
    for word in ["snapdragon"].into_iter().chain(subagent).chain(offer) {
        assert!(with.asked.contains(word), "{word} is not told to the model");
    }
    assert!(
        !with.asked.contains(OF_OTHERS),
        "the workspace's own instructions are read"
    );
    let found = &with.row["extensions"];
    assert_eq!(found["skill_offered"], 1, "{:#}", with.row);
    assert_eq!(found["skill_activated"], 1, "{:#}", with.row);
    assert_eq!(found["skill_detectors_agree"], 1, "{:#}", with.row);
    assert_eq!(found["skill_trigger_correct"], 1);
    assert_eq!(found["skill_activation_turn"], 2, "{found:#}");
    assert_eq!(found["skill_activated_in"], "main agent");
    assert!(
        found["skill_tokens_to_activation"].as_u64() > Some(0),
        "{found:#}"
    );
    assert!(found["skill_text_tokens"].as_u64() > Some(0), "{found:#}");
    let sighting = &with.trace["skills"][0];
    assert_eq!(
        sighting["loads"].as_array().unwrap().len(),
        1,
        "{sighting:#}"
    );
    let changed = &with.row["extensions"]["files_deleted"];
    assert_eq!(
        *changed, 0,
        "what is hidden from an agent is no change of its own"
    );
}

struct Trial {
    row: Value,
    trace: Value,
    /// Every request, as one text.
    asked: String,
}

fn trial(offline: &Offline, mode: &str) -> Trial {
    let before = lines(&offline.path("wire.jsonl")).len();
    let row = offline
        .run(&["--mode", mode, "--repetitions", "1"])
        .remove(0);
    assert_eq!(row["outcome"], "pass", "{row:#}");
    let wire = lines(&offline.path("wire.jsonl")).split_off(before);
    let asked = wire.iter().map(|exchange| exchange["request"].to_string());
    Trial {
        trace: offline.trace(0),
        asked: asked.collect(),
        row,
    }
}

/// Whoever looks only at the main agent's calls misses it.
pub(crate) fn in_a_subagent() {
    let delegate = json!({"tool": "agent", "prompt": "DELEGATED: review the change", "say": "I delegate.",
        "args": {"subagent_type": "general-purpose", "run_in_background": false}});
    let script_ = json!({
        "turns": [delegate, {"text": "Reviewed."}],
        "agents": {"DELEGATED": {"turns": [by_tool("Skill", "skill"), {"text": "It is fine."}]}},
    });
    let offline = script(suite(&CLAUDE_CODE), &script_);
    let with = trial(&offline, "with");
    let found = &with.row["extensions"];
    assert_eq!(found["skill_activated"], 1, "{:#}", with.row);
    assert_eq!(found["skill_detectors_agree"], 1, "{found:#}");
    let place = found["skill_activated_in"].as_str().unwrap();
    assert!(place.starts_with("subagent "), "{place}");
    assert!(with.trace["skills"][0]["loads"][0]["agentId"].is_string());
}
