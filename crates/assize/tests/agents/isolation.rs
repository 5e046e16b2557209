//! The home of a session is neither the user's nor that of another session.

use crate::agents::{Agent, CLAUDE_CODE, CODEX, GEMINI, OPENCODE, SCENARIO};
use crate::offline::Offline;
use serde_json::Value;

/// Memories of agents about their user, sent to the model before anything else.
const MEMORIES: [&str; 4] = [
    ".claude/CLAUDE.md",
    ".codex/AGENTS.md",
    ".gemini/GEMINI.md",
    ".config/opencode/AGENTS.md",
];
const OF_THE_USER: &str = "The user likes violets.";
const OF_A_SESSION: &str = "An earlier session likes roses.";

pub(crate) fn claude_code() {
    check(&CLAUDE_CODE);
}

pub(crate) fn codex() {
    check(&CODEX);
}

pub(crate) fn opencode() {
    check(&OPENCODE);
}

pub(crate) fn gemini() {
    check(&GEMINI);
}

fn check(agent: &Agent) {
    sessions_know_nothing_of_each_other(agent);
    the_user_can_let_an_agent_in(agent);
}

fn sessions_know_nothing_of_each_other(agent: &Agent) {
    let offline = with_memories(agent);
    let rows = offline.run(&["--mode", agent.mode, "--repetitions", "2"]);
    assert!(rows.iter().all(|row| row["outcome"] == "pass"), "{rows:#?}");
    for asked in first_requests(&offline) {
        assert!(!asked.contains(OF_THE_USER), "{asked}");
        assert!(!asked.contains(OF_A_SESSION), "{asked}");
    }
    let homes = homes(&offline);
    assert_eq!(homes.len(), 2, "{homes:?}");
    assert_ne!(homes[0], homes[1]);
    let user = offline.path("home");
    for home in homes {
        assert_ne!(home, user.to_str().unwrap());
        assert!(!std::path::Path::new(&home).exists(), "{home} is left");
    }
    for memory in MEMORIES {
        let kept = std::fs::read_to_string(user.join(memory)).unwrap();
        assert_eq!(kept, OF_THE_USER, "{memory}");
    }
}

/// Shows as well that the agent would have read what the other test keeps from it.
fn the_user_can_let_an_agent_in(agent: &Agent) {
    let offline = with_memories(agent);
    let suite = std::fs::read_to_string(offline.path("assize.yaml")).unwrap();
    let open = suite.replacen("model:", "isolated: false, model:", 1);
    offline.write("assize.yaml", &open);
    // A user who signed in by a key.
    let settings = r#"{ "security": { "auth": { "selectedType": "gemini-api-key" } } }"#;
    offline.write("home/.gemini/settings.json", settings);
    let row = &agent.run(&offline)[0];
    assert_eq!(row["outcome"], "pass", "{row:#}");
    let asked = first_requests(&offline);
    assert!(
        asked.iter().all(|asked| asked.contains(OF_THE_USER)),
        "{asked:?}"
    );
}

/// A user with memories, and a task that shows the agent's home and leaves memories there.
fn with_memories(agent: &Agent) -> Offline {
    // Quotes in the middle, so that the command itself does not hold what it writes.
    let remember = OF_A_SESSION.replace("likes", "li\"\"kes");
    let leave = MEMORIES.map(|memory| {
        let (directory, _) = memory.rsplit_once('/').unwrap();
        format!("mkdir -p \"$HOME/{directory}\"; echo \"{remember}\" >> \"$HOME/{memory}\"")
    });
    let command = format!("echo hi > out.txt; echo HOME:$HOME:; {}", leave.join("; "));
    let offline = agent.suite(SCENARIO).with_llm(&["--command", &command]);
    for memory in MEMORIES {
        offline.write(&format!("home/{memory}"), OF_THE_USER);
    }
    offline
}

/// The first request of each session.
fn first_requests(offline: &Offline) -> Vec<String> {
    requests(offline, 0)
}

fn requests(offline: &Offline, turn: u64) -> Vec<String> {
    let wire = offline.wire();
    let is_meant = |exchange: &&Value| exchange["side"] == false && exchange["turn"] == turn;
    let found: Vec<String> = wire
        .iter()
        .filter(is_meant)
        .map(|exchange| exchange["request"].to_string())
        .collect();
    assert!(!found.is_empty(), "{wire:#?}");
    found
}

/// The homes that the tool has shown.
fn homes(offline: &Offline) -> Vec<String> {
    let shown = requests(offline, 1);
    let home = |asked: &String| {
        let (_, after) = asked.split_once("HOME:/")?;
        let (home, _) = after.split_once(':')?;
        Some(format!("/{home}"))
    };
    shown.iter().filter_map(home).collect()
}
