//! Plugin programs in suites: what they serve is used like everything built in, and what breaks in them stays there.

mod calls_table;
mod kits;
mod promises;
mod typescript;

use crate::support::{Outcome, Suite, assize};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn sdk(kit: &str) -> PathBuf {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../sdk")
        .join(kit);
    sdk.canonicalize().unwrap()
}

/// A suite with this plugin in Python beside it.
pub(crate) fn suite_of(keys: &str, plugin: &str) -> Suite {
    let kit = sdk("python");
    let suite = Suite::of(&format!(
        "{keys}\nscenarios: {{ paths: ['scenarios/*.yaml'] }}\nexecution: {{ repetitions: 2, warmup: false }}\n\
         plugins:\n  - id: mine\n    command: [python3, plugin.py]\n    environment: {{ PYTHONPATH: '{}' }}\n    \
         pass_env: [PLUGIN_TOKEN]\n    options: {{ word: hello }}\n",
        kit.display()
    ));
    suite.write("plugin.py", format!("{PRELUDE}{plugin}\nplugin.serve()\n"));
    suite
}

const PRELUDE: &str = "\
import os
from assize import *

plugin = Plugin('mine', version='1.2.3')
";

const EVERYTHING: &str = "\
class Echo(Provider):
    id = 'echo'
    scope = 'session'
    may_cost = False
    instructions = {}

    def create_session(self, params):
        name = f\"{params['mode']}-{params['scenarioId']}-{params['iteration']}\"
        self.instructions[name] = params['systemInstructions']
        return {'sessionId': name, 'provider': self.id, 'createdAt': '2026-01-01T00:00:00Z'}

    async def prompt(self, handle, text, timeout_ms):
        return {'text': text + ' ' + self.instructions[handle['sessionId']], 'completionReason': 'stop'}

    def export_session(self, handle):
        summary = {'totalTurns': 0, 'totalToolCalls': 0, 'totalTokens': {}}
        return {'sessionId': handle['sessionId'], 'events': [], 'turns': [], 'summary': summary}

plugin.add(Echo())

@plugin.scorer('one_thing')
async def one_thing(scenario, context, settings=None):
    passed = (settings or {})['word'] in context['agentOutput']
    check = {'id': 'word', 'description': 'says the word', 'passed': passed}
    return {'success': passed, 'passed': int(passed), 'total': 1, 'details': [check], 'outputValid': True}

@plugin.collector('words')
def words(result, scenario, mode, trace):
    print('counting', os.environ.get('PLUGIN_TOKEN'))
    return [{'name': 'words', 'value': len(result['text'].split()), 'unit': 'words'}]

@plugin.analyzer('look')
def look(trace, scenario, mode):
    return {'analyzer': 'look', 'findings': {'look_mode': {'type': 'string', 'value': mode}}, 'summary': 'Looked.'}

@plugin.mode_resolver
def resolve(mode):
    if mode not in ('plain', 'polite'):
        raise ValueError(f'no mode {mode}')
    return {'environment': {}, 'systemInstructions': {'plain': '', 'polite': 'please'}[mode], 'providerOverrides': {}}

@plugin.hook('beforeScenario')
def before(context):
    if context['mode'] == 'polite' and context['scenario']['id'] == 'two':
        raise RuntimeError('no fixture')
    return {**context['scenario'], 'prompt': plugin.options['word']}
";

const KEYS: &str = "\
provider: { uses: echo }
modes: [plain, polite]
mode_resolver: mine
collectors: [token, words]
analyzers: [look]
scorer: { uses: one_thing, word: hello }
hooks: mine";

#[test]
fn a_suite_uses_everything_that_a_program_serves() {
    let suite = suite_of(KEYS, EVERYTHING);
    let secret = concat!("not-for-", "any-log-71");
    let output = assize(suite.path())
        .arg("run")
        .env("PLUGIN_TOKEN", secret)
        .output()
        .unwrap();
    let outcome = Outcome::from(output);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let rows = suite.rows();
    assert_eq!(rows.len(), 8);
    for row in &rows {
        let is_lost = row["mode"] == "polite" && row["scenarioId"] == "two";
        // The hook puts the word into the prompt; where it fails, the scenario stays as it was.
        let (success, words) = match (is_lost, row["mode"] == "polite") {
            (true, _) => (false, 4),
            (_, true) => (true, 2),
            _ => (true, 1),
        };
        assert_eq!(row["success"], success, "{row}");
        assert_eq!(row["extensions"]["words"], words, "{row}");
        assert_eq!(row["checkpointsTotal"], 1);
        assert_eq!(row["hookErrors"].is_array(), is_lost, "{row}");
    }
    let directory = suite.run_directory();
    let analysis = std::fs::read_to_string(directory.join("analysis.jsonl")).unwrap();
    assert_eq!(analysis.matches("\"summary\":\"Looked.\"").count(), 8);
    let log = std::fs::read_to_string(directory.join("plugins/mine.log")).unwrap();
    assert!(
        log.contains("stderr: counting [redacted-1]") && !log.contains(secret),
        "{log}"
    );
    let manifest = std::fs::read_to_string(directory.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"version\": \"1.2.3\""), "{manifest}");
}

#[test]
fn an_analyzer_of_a_plugin_explains_stored_sessions() {
    let suite = suite_of(
        "provider: { uses: simulated, latency_ms: 0 }\nmodes: { plain: {} }",
        EVERYTHING,
    );
    suite.done(&["run", "-q"]);
    let explained = suite.done(&[
        "analyze",
        "last",
        "--analyzer",
        "look",
        "--analyzer",
        "loops",
    ]);
    assert!(
        explained.contains("Looked.") && explained.contains("loops"),
        "{explained}"
    );
    let kept = std::fs::read_to_string(suite.run_directory().join("analysis.jsonl")).unwrap();
    assert!(
        kept.contains(r#""look_mode":{"type":"string","value":"plain"}"#),
        "{kept}"
    );
    let wrong = suite.assize(&["analyze", "last", "--analyzer", "lok"]);
    assert!(wrong.stderr.contains("did you mean `look`?"), "{wrong:?}");
}

#[test]
fn everything_that_can_be_named_is_listed_with_its_version() {
    let suite = suite_of(KEYS, EVERYTHING);
    let listed = suite.done(&["plugins"]);
    let line = |words: &[&str]| {
        listed.lines().any(|line| {
            words
                .iter()
                .all(|word| line.split_whitespace().any(|part| part == *word))
        })
    };
    assert!(line(&["provider", "simulated", "built"]), "{listed}");
    assert!(line(&["scorer", "checks", "built"]), "{listed}");
    for (kind, name) in [
        ("provider", "echo"),
        ("scorer", "one_thing"),
        ("collector", "words"),
        ("analyzer", "look"),
        ("hooks", "mine"),
    ] {
        assert!(
            line(&[kind, name, "1.2.3", "plugin"]),
            "{kind} {name}\n{listed}"
        );
    }
    let first: Value =
        serde_json::from_str(suite.done(&["plugins", "--json"]).lines().next().unwrap()).unwrap();
    assert_eq!(first["origin"], "built in");
}

#[test]
fn check_starts_plugins_and_says_what_is_wrong_with_them() {
    let suite = suite_of(KEYS, EVERYTHING);
    assert!(suite.done(&["check"]).contains("is fine"));
    suite.write("plugin.py", "raise SystemExit('no database')\n");
    let outcome = suite.assize(&["check"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    for words in [
        "assize.yaml:",
        "plugin `mine` cannot be used",
        "ended with exit code 1",
        "no database",
    ] {
        assert!(
            outcome.stderr.contains(words),
            "{words}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn a_name_that_is_taken_is_refused() {
    let suite = suite_of(
        "provider: { uses: simulated }\nmodes: { a: {} }",
        "@plugin.collector('token')\ndef token(result, scenario, mode, trace):\n    return []\n",
    );
    let outcome = suite.assize(&["check"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    assert!(
        outcome
            .stderr
            .contains("a second collector is named `token`"),
        "{outcome:#?}"
    );
}

#[test]
fn a_resolver_that_does_not_know_a_mode_ends_the_run_before_it_starts() {
    let suite = suite_of(&KEYS.replace("polite", "rude"), EVERYTHING);
    let outcome = suite.assize(&["run"]);
    assert_eq!(outcome.code, Some(1), "{outcome:#?}");
    assert!(outcome.stderr.contains("no mode rude"), "{outcome:#?}");
    assert!(!suite.path().join(".assize").exists());
}

#[test]
fn runs_are_listed_without_starting_any_plugin() {
    let suite = suite_of(KEYS, EVERYTHING);
    suite.done(&["run", "-q", "-n", "1"]);
    suite.write("plugin.py", "open('started', 'w')\n");
    suite.done(&["runs"]);
    assert!(!suite.path().join("started").exists());
}

#[test]
fn what_breaks_in_a_plugin_stays_there() {
    let broken = EVERYTHING.replace(
        "    print('counting'",
        "    os._exit(7) if scenario['id'] == 'two' else None\n    print('counting'",
    );
    let suite = suite_of(KEYS, &broken);
    let outcome = suite.assize(&["run", "--concurrency", "1"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let rows = suite.rows();
    assert_eq!(rows.len(), 8);
    for row in rows {
        match row["scenarioId"].as_str() {
            // The collector took the session's provider with it, so its trace and end are fine but its metric is lost.
            Some("two") => {
                let losses = row["hookErrors"].to_string();
                assert!(
                    losses.contains("collector:words") && losses.contains("ended with exit code 7"),
                    "{row}"
                );
                assert!(row["extensions"].get("words").is_none(), "{row}");
            }
            _ => assert_eq!(
                (&row["outcome"], row["extensions"].get("words").is_some()),
                (&"pass".into(), true),
                "{row}"
            ),
        }
    }
}

const LAB: &str = "\
@plugin.runner('upper', type='shout', version='7')
def upper(task, config, setting):
    if setting['model'] != 'm-1' or setting['mode'] != 'loud' or setting['timeoutMs'] <= 0:
        raise RuntimeError(f'told {setting}')
    if task['input']['text'] == 'crash':
        os._exit(4)
    output = task['input']['text'].upper() + config['mark']
    now = '2026-01-01T00:00:00Z'
    event = lambda name: {'timestamp': now, 'level': 'info', 'event': name}
    return {
        'id': '', 'taskId': task['id'], 'taskType': 'atomic', 'status': 'completed', 'output': output,
        'metrics': {'latency': 1}, 'trace': [event('started'), event('completed')], 'startedAt': now,
        'provenance': {'runnerId': 'upper', 'runnerVersion': '7', 'config': {}},
    }

@plugin.evaluator('same', metrics=['accuracy'])
async def same(run, task, config):
    essence = lambda text: text.strip(config.get('ignore', ' '))
    accuracy = int(essence(run['output']) == essence(task['expected']))
    return [{'id': '', 'runId': run['id'], 'metric': 'accuracy', 'value': accuracy, 'target': 'final',
             'evaluatorId': 'same', 'createdAt': '2026-01-01T00:00:00Z'}]
";

#[test]
fn tasks_are_run_and_scored_by_programs() {
    let kit = sdk("python");
    let suite = Suite::of(&format!(
        "modes: {{ loud: {{}} }}\nmodels: [m-1]\ntasks: {{ paths: ['tasks/*.json'] }}\n\
         runners: [{{ id: loud, uses: upper, type: shout, config: {{ mark: '!' }} }}]\n\
         evaluators: [{{ id: same, uses: same, types: [shout] }}, \
                      {{ id: loosely, uses: same, types: [shout], config: {{ ignore: '!' }} }}]\n\
         execution: {{ repetitions: 1, warmup: false, concurrency: 1 }}\n\
         plugins: [{{ id: mine, command: [python3, plugin.py], environment: {{ PYTHONPATH: '{}' }} }}]\n",
        kit.display()
    ));
    suite.write("plugin.py", format!("{PRELUDE}{LAB}\nplugin.serve()\n"));
    for (id, text, expected) in [
        ("a", "hello", "HELLO!"),
        ("b", "hello", "hello"),
        ("c", "crash", ""),
        ("d", "hello", "HELLO"),
    ] {
        let task = serde_json::json!({
            "id": id, "name": id, "type": "shout", "input": { "text": text }, "expected": expected, "metadata": {},
        });
        suite.write(&format!("tasks/{id}.json"), task.to_string());
    }
    suite.done(&["run", "-q"]);
    let outcomes: Vec<(String, String)> = suite
        .rows()
        .iter()
        .map(|row| {
            (
                row["scenarioId"].as_str().unwrap().to_owned(),
                row["outcome"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    for (id, outcome) in [("a", "pass"), ("b", "fail"), ("c", "void")] {
        assert!(
            outcomes.contains(&(id.to_owned(), outcome.to_owned())),
            "{id} {outcome}: {outcomes:?}"
        );
    }
    let scores = std::fs::read_to_string(suite.run_directory().join("scores.jsonl")).unwrap();
    let scores: Vec<Value> = scores
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let sum = |evaluator: &str| -> f64 {
        let its = scores
            .iter()
            .filter(|score| score["evaluatorId"] == evaluator);
        its.map(|score| score["value"].as_f64().unwrap()).sum()
    };
    assert_eq!((sum("same"), sum("loosely")), (1.0, 2.0), "{scores:?}");
}
