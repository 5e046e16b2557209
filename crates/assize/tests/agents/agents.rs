//! The agents on trial. Each is run by the suite in its section of docs/agents.md, word for word; only the environment
//! says where the scripted LLM is.

use crate::offline::{LLM, Offline, repository};

pub(crate) struct Agent {
    /// Its section in docs/agents.md.
    pub(crate) section: &'static str,
    /// The mode with system instructions, of the suite in that section.
    pub(crate) mode: &'static str,
}

const fn agent(section: &'static str) -> Agent {
    let mode = "brief";
    Agent { section, mode }
}

const fn acp(mode: &'static str) -> Agent {
    let section = "acp";
    Agent { section, mode }
}

pub(crate) const CLAUDE_CODE: Agent = agent("claude-code");
pub(crate) const CODEX: Agent = agent("codex");
pub(crate) const OPENCODE: Agent = agent("opencode");
pub(crate) const GEMINI: Agent = agent("gemini");
pub(crate) const GEMINI_ACP: Agent = acp("gemini");
pub(crate) const OPENCODE_ACP: Agent = acp("opencode");
pub(crate) const CHAT: Agent = agent("chat");

pub(crate) const QWEN: Agent = agent("qwen");
pub(crate) const GOOSE: Agent = agent("goose");
pub(crate) const PI: Agent = agent("pi");
pub(crate) const CLINE: Agent = agent("cline");
pub(crate) const COPILOT: Agent = agent("copilot");
pub(crate) const AIDER: Agent = agent("aider");
pub(crate) const MINI_SWE_AGENT: Agent = agent("mini-swe-agent");

pub(crate) const SCENARIO: &str = "\
id: write-a-file
prompt: Create a file out.txt with the word hi
workspace: { from: workspace }
checks:
  - file: { path: out.txt, equals: \"hi\\n\" }
  - output: { contains: out.txt now contains }
";

impl Agent {
    /// The suite of its section, on a scenario.
    pub(crate) fn suite(&self, scenario: &str) -> Offline {
        let suite = Offline::new(&[
            ("assize.yaml", &self.page()),
            ("scenarios/s.yaml", scenario),
            ("workspace/README.md", "# A workspace\n"),
        ]);
        suite.with_environment(&[
            ("ANTHROPIC_BASE_URL", LLM),
            ("OPENAI_BASE_URL", &format!("{LLM}/v1")),
            ("GOOGLE_GEMINI_BASE_URL", LLM),
            ("ANTHROPIC_API_KEY", "none"),
            ("OPENAI_API_KEY", "none"),
            ("GEMINI_API_KEY", "none"),
        ])
    }

    /// One trial of the agent.
    pub(crate) fn run(&self, offline: &Offline) -> Vec<serde_json::Value> {
        offline.run(&["--mode", self.mode, "--repetitions", "1"])
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.section, self.mode) == (other.section, other.mode)
    }

    /// The first block of its section.
    fn page(&self) -> String {
        let page = std::fs::read_to_string(repository().join("docs/agents.md")).unwrap();
        let heading = format!("\n## {}\n", self.section);
        let (_, section) = page.split_once(&heading).unwrap();
        first_block(section)
    }
}

/// The first block of YAML in a text.
pub(crate) fn first_block(text: &str) -> String {
    let (_, block) = text.split_once("```yaml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    block.to_owned()
}
