//! The agents on trial: how suites name them, and what they need to reach the scripted LLM.

use crate::offline::{LLM, Offline};

pub(crate) struct Agent {
    pub(crate) name: &'static str,
    pub(crate) model: &'static str,
    /// The `provider` of its mode.
    pub(crate) provider: &'static str,
}

pub(crate) const CLAUDE_CODE: Agent = Agent {
    name: "claude-code",
    model: "claude-sonnet-4-5",
    provider: "{ uses: claude-code }",
};

pub(crate) const CODEX: Agent = Agent {
    name: "codex",
    model: "gpt-5.1-codex",
    provider: "{ uses: codex }",
};

pub(crate) const OPENCODE: Agent = Agent {
    name: "opencode",
    model: "gpt-5.1",
    provider: "{ uses: opencode }",
};

pub(crate) const GEMINI: Agent = Agent {
    name: "gemini",
    model: "gemini-2.5-pro",
    provider: "{ uses: gemini }",
};

pub(crate) const GEMINI_ACP: Agent = Agent {
    name: "gemini-acp",
    model: "gemini-2.5-pro",
    provider: "{ uses: acp, agent: gemini }",
};

pub(crate) const OPENCODE_ACP: Agent = Agent {
    name: "opencode-acp",
    model: "gpt-5.1",
    provider: "{ uses: acp, agent: opencode }",
};

/// What all four wire formats need; agents take what is theirs.
fn environment() -> String {
    format!(
        "{{ ANTHROPIC_BASE_URL: '{LLM}', OPENAI_BASE_URL: '{LLM}/v1', GOOGLE_GEMINI_BASE_URL: '{LLM}', \
         ANTHROPIC_API_KEY: none, OPENAI_API_KEY: none, GEMINI_API_KEY: none }}"
    )
}

pub(crate) const SCENARIO: &str = "\
id: write-a-file
prompt: Create a file out.txt with the word hi
workspace: { from: workspace }
checks:
  - file: { path: out.txt, equals: \"hi\\n\" }
  - output: { contains: out.txt now contains }
";

impl Agent {
    pub(crate) fn mode(&self) -> String {
        format!(
            "  {}: {{ provider: {}, environment: {} }}\n",
            self.name,
            self.provider,
            environment()
        )
    }

    /// One trial of the agent; `more` are lines of the suite.
    pub(crate) fn suite(&self, scenario: &str, more: &str) -> Offline {
        let suite = format!(
            "permissions: {{ auto_approve: true }}\nmodels: [{}]\nmodes:\n{}scenarios: {{ paths: [s.yaml] }}\n\
             execution: {{ repetitions: 1, warmup: false, timeout_default_ms: 120000 }}\n{more}",
            self.model,
            self.mode()
        );
        Offline::new(&[
            ("assize.yaml", &suite),
            ("s.yaml", scenario),
            ("workspace/README.md", "# A workspace\n"),
        ])
    }
}
