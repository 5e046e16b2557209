//! An agent's own numbers compared with those of the proxy: both are kept, and a difference is reported.

use crate::llm::{AGENT, Llm};
use crate::sandbox::Sandbox;
use serde_json::{Value, json};

/// An agent that prints what Claude Code prints, with the numbers that its mode hands to it.
const RECIPE: &str = r#"
name: talker
command: [python3, "{suite}/agent.py", "{options}"]
output: claude-code
"#;

/// Tokens: input, output, cache read, cache write. The wire shows 343, 143, 21163 and 2934, of which the title is 142 and 6;
/// at list prices that is $0.0205254, and $0.0200094 without the title.
const MODES: [(&str, [u64; 4], f64); 5] = [
    ("agrees", [343, 143, 21163, 2934], 0.0205254),
    ("leaves-titles-out", [201, 137, 21163, 2934], 0.0200094),
    ("rounds", [343, 143, 21163, 2934], 0.021),
    ("other-tokens", [999, 143, 21163, 2934], 0.5),
    ("other-cost", [343, 143, 21163, 2934], 0.05),
];

fn sandbox(llm: &Llm) -> Sandbox {
    let modes: Vec<String> = MODES
        .iter()
        .map(|(name, [input, output, cache_read, cache_write], cost)| {
            let usage = json!({"claude-sonnet-4-5": {
                "inputTokens": input, "outputTokens": output, "costUSD": cost,
                "cacheReadInputTokens": cache_read, "cacheCreationInputTokens": cache_write,
            }});
            let said = json!({"type": "result", "subtype": "success", "result": "All done.", "modelUsage": usage});
            format!("  {name}: {{ provider: {{ uses: ./talker.yaml, args: ['{said}'] }} }}\n")
        })
        .collect();
    let suite = format!(
        "models: [claude-sonnet-4-5]\nmodes:\n{}scenarios: {{ paths: [s.yaml] }}\n\
         capture: {{ upstream: {{ anthropic: '{}' }} }}\n",
        modes.concat(),
        llm.url
    );
    Sandbox::new(&[
        ("assize.yaml", &suite),
        ("talker.yaml", RECIPE),
        (
            "agent.py",
            &AGENT.replace("print(said[0][\"text\"])", "print(sys.argv[1])"),
        ),
        (
            "s.yaml",
            "id: s\nprompt: Do it\nchecks: [ { output: { contains: done } } ]\n",
        ),
    ])
}

/// The agent's differing claims, by metric.
fn claims(row: &Value) -> Value {
    let metrics = row["extensions"].as_object().unwrap().iter();
    let claims = metrics.filter(|(name, _)| name.contains("_reported_"));
    claims
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[test]
fn a_difference_is_a_caution_with_both_values_and_agreement_is_silent() {
    let llm = Llm::new();
    let sandbox = sandbox(&llm);
    let printed = sandbox.done(&["run", "-q", "--skip-warmup", "-n", "1"]);
    for row in sandbox.rows() {
        assert_eq!(row["outcome"], "pass", "{row:#}");
        assert_eq!(row["tokens"]["total"], 24583, "{row:#}");
        assert_eq!(row["cost"]["totalUsd"], 0.0205254, "{row:#}");
        let (mode, _, cost) = MODES
            .iter()
            .find(|(name, ..)| row["mode"] == *name)
            .unwrap();
        assert_eq!(row["costReadings"]["reportedUsd"], *cost, "{row:#}");
        let expected = match *mode {
            "other-tokens" => json!({"tokens_reported_input": 999, "tokens_reported_total": 25239}),
            "other-cost" => json!({"cost_reported_usd": 0.05}),
            _ => json!({}),
        };
        assert_eq!(claims(&row), expected, "{mode}");
    }
    let summary = std::fs::read(sandbox.last_run().join("report/data/summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let cautions = summary["cautions"].as_array().unwrap();
    let places = |code: &str| {
        let found = cautions.iter().find(|caution| caution["code"] == code);
        found.map(|caution| caution["where"].clone())
    };
    assert_eq!(
        places("agent-disagrees"),
        Some(json!([
            "other-tokens: tokens_total 25239 reported, 24583 counted, in 1 trial",
            "other-tokens: tokens_input 999 reported, 343 counted, in 1 trial",
        ]))
    );
    assert_eq!(
        places("agent-cost-disagrees"),
        Some(json!([
            "other-cost: cost_total_usd $0.050 reported, $0.021 counted, in 1 trial"
        ]))
    );
    for said in [
        "For example other-tokens: tokens_total 25239 reported, 24583 counted, in 1 trial.",
        "For example other-cost: cost_total_usd $0.050 reported, $0.021 counted, in 1 trial.",
    ] {
        assert!(printed.contains(said), "{printed}");
    }
    let compared = summary["comparisons"].to_string();
    assert!(!compared.contains("_reported_"), "{compared}");
}

#[test]
fn nothing_is_said_where_agent_and_wire_agree() {
    let llm = Llm::new();
    let sandbox = sandbox(&llm);
    let modes = [
        "--mode",
        "agrees",
        "--mode",
        "rounds",
        "--mode",
        "leaves-titles-out",
    ];
    let printed =
        sandbox.done(&[&["run", "-q", "--skip-warmup", "-n", "1"], modes.as_slice()].concat());
    assert_eq!(sandbox.rows().len(), 3);
    assert!(!printed.contains("Agents report"), "{printed}");
    assert!(!sandbox.trace(0).to_string().contains("the agent reports"));
}

#[test]
fn claims_of_several_prompts_add_up() {
    let llm = Llm::new();
    let sandbox = sandbox(&llm);
    sandbox.write("s.yaml", "id: s\nprompt: Do it\nturns: [Again]\n");
    let rows = sandbox.run(&["-n", "1", "--mode", "other-tokens"]);
    let expected = json!({"tokens_reported_input": 1998, "tokens_reported_total": 50478});
    assert_eq!(claims(&rows[0]), expected, "{:#}", rows[0]);
    assert_eq!(rows[0]["tokens"]["total"], 49166);
    let notes = sandbox.trace(0).to_string();
    assert!(
        notes.contains("999 input, not 343; 25239 altogether, not 24583"),
        "{notes}"
    );
}
