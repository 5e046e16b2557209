//! The books of the scripted LLM against the logs that real agents then wrote, read by `assize sessions`: equal per class.

use crate::offline::{LLM, Offline};
use serde_json::{Value, json};

/// Agents that do not report reasoning separately have it in their output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reasoning {
    Apart,
    InOutput,
}

/// Calls that an agent keeps no record of, by words in their requests.
type NotLogged = &'static [&'static str];

const TITLES: NotLogged = &["You are a title generator", "Generate a short title"];

struct Case {
    agent: &'static str,
    /// The commands of a person at work, one after another.
    commands: &'static str,
    reasoning: Reasoning,
    not_logged: NotLogged,
}

fn script(delegation: Option<Value>) -> Value {
    let mut turns = vec![
        json!({"tool": "shell", "command": "echo hi > out.txt && cat out.txt", "say": "I write.", "think": "A command is enough."}),
    ];
    turns.extend(delegation);
    turns.push(json!({"text": "Done: out.txt now contains the word hi."}));
    json!({
        "books": true,
        "turns": turns,
        "agents": {"DELEGATED": {"turns": [{"tool": "shell", "command": "cat out.txt"}, {"text": "It says hi."}]}},
    })
}

/// Runs the commands and gives the account of the logs they left.
fn account(case: &Case, script: &Value) -> (Offline, Value) {
    let openai = format!("{LLM}/v1");
    let provider = json!({"fake": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": openai, "apiKey": "none"}, "models": {"m": {"name": "m"}}}});
    let opencode = json!({"model": "fake/m", "small_model": "fake/m", "provider": provider, "permission": {"*": "allow"}, "autoupdate": false, "share": "disabled"});
    // Gemini CLI deletes chats that it takes for expired or damaged.
    let general = json!({"enableAutoUpdate": false, "sessionRetention": {"enabled": false}});
    let gemini = json!({"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}, "general": general});
    let offline = Offline::new(&[
        ("script.json", &script.to_string()),
        (
            "work.sh",
            &format!("set -eu\ncd work\ngit init -q .\n{}", case.commands),
        ),
        ("work/README.md", "# Work\n"),
        ("opencode.json", &opencode.to_string()),
        ("home/.gemini/settings.json", &gemini.to_string()),
        ("home/.codex/.keep", ""),
    ]);
    let here = offline.path("");
    let here = here.to_str().unwrap();
    let offline = offline
        .with_llm(&["--script", "script.json"])
        .with_environment(&[
            ("HERE", here),
            ("ANTHROPIC_BASE_URL", LLM),
            ("OPENAI_BASE_URL", &openai),
            ("OPENAI_HOST", LLM),
            ("OPENAI_BASE_PATH", "v1/chat/completions"),
            ("GOOGLE_GEMINI_BASE_URL", LLM),
            ("ANTHROPIC_API_KEY", "none"),
            ("OPENAI_API_KEY", "none"),
            ("GEMINI_API_KEY", "none"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("GEMINI_CLI_NO_RELAUNCH", "true"),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
            ("GEMINI_TELEMETRY_ENABLED", "false"),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
            ("GOOSE_PROVIDER", "openai"),
            ("GOOSE_MODEL", "m"),
            ("GOOSE_MODE", "auto"),
            ("GOOSE_DISABLE_KEYRING", "1"),
            ("GOOSE_TELEMETRY_ENABLED", "false"),
        ]);
    let offline = offline.and_environment("OPENCODE_CONFIG", &format!("{here}/opencode.json"));
    let worked = offline.command(&["bash", "work.sh"]);
    let said = String::from_utf8_lossy(&worked.stderr);
    assert!(
        worked.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&worked.stdout)
    );
    // Another process of the same machine, that sees nothing but the files.
    let told = std::process::Command::new(env!("CARGO_BIN_EXE_assize"))
        .args([
            "sessions",
            "--by",
            "subagent",
            "--no-index",
            "--json",
            "--agent",
            case.agent,
        ])
        .env_clear()
        .env("HOME", offline.path("home"))
        .output()
        .unwrap();
    let account = serde_json::from_slice(&told.stdout);
    let account = account.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&told.stderr)));
    (offline, account)
}

/// The tokens that the LLM served, by class.
fn served(offline: &Offline, case: &Case) -> [u64; 5] {
    let mut sums = [0; 5];
    for call in offline.wire() {
        let request = call["request"].to_string();
        let is_left_out = case.not_logged.iter().any(|words| request.contains(words));
        if !call["book"].is_object() || is_left_out {
            continue;
        }
        let classes = ["input", "cacheRead", "cacheWrite", "output", "reasoning"];
        for (sum, class) in sums.iter_mut().zip(classes) {
            *sum += call["book"][class].as_u64().unwrap_or(0);
        }
    }
    if case.reasoning == Reasoning::InOutput {
        sums[3] += std::mem::take(&mut sums[4]);
    }
    sums
}

fn check(case: &Case, script: &Value) -> Value {
    let (offline, account) = account(case, script);
    let tokens = &account["total"]["tokens"];
    let found = ["input", "cacheRead", "cacheWrite", "output", "reasoning"]
        .map(|class| tokens[class].as_u64().unwrap_or(0));
    assert_eq!(found, served(&offline, case), "{}: {account:#}", case.agent);
    assert_eq!(
        account["total"]["tokensAtLeast"],
        Value::Null,
        "{account:#}"
    );
    assert_eq!(account["flaws"]["brokenLines"], 0);
    assert_eq!(account["flaws"]["wrongTypes"], 0, "{account:#}");
    account
}

/// Plain, resumed, forked, compacted, and with sub-agents all along.
pub(crate) fn claude_code() {
    let case = Case {
        agent: "claude-code",
        commands: "\
claude() { command claude --output-format json --model claude-sonnet-4-5 --allowedTools Bash Task Agent \"$@\" < /dev/null; }
id=$(claude -p 'Create a file out.txt with the word hi' | python3 -c 'import json,sys; print(json.load(sys.stdin)[\"session_id\"])')
claude -p 'And again' --resume $id
claude -p 'In another way' --resume $id --fork-session
claude -p '/compact' --resume $id
claude -p 'After the compaction' --resume $id
",
        reasoning: Reasoning::Apart,
        not_logged: &[],
    };
    let delegation = json!({"tool": "agent", "prompt": "DELEGATED: look at out.txt", "say": "I delegate.",
        "args": {"subagent_type": "general-purpose", "run_in_background": false}});
    let account = check(&case, &script(Some(delegation)));
    assert_eq!(account["total"]["sessions"], 2, "{account:#}");
    assert_eq!(account["total"]["compactions"], 1);
    let rows = account["rows"].as_array().unwrap();
    let agents: Vec<&str> = rows
        .iter()
        .map(|row| row["subagent"].as_str().unwrap())
        .collect();
    assert_eq!(agents, ["general-purpose", "main agent"]);
    assert_eq!(rows[0]["calls"], 8);
}

/// Plain, resumed, compacted and forked, with sub-agents. Compactions and forks are asked for as editors do it.
pub(crate) fn codex() {
    let case = Case {
        agent: "codex",
        commands: "\
codex() { command codex exec \"$@\" < /dev/null; }
provider='-c model_provider=fake -c model_providers.fake.name=fake -c model_providers.fake.base_url=http://127.0.0.1:8099/v1 \
 -c model_providers.fake.env_key=OPENAI_API_KEY -c model_providers.fake.wire_api=responses -c check_for_update_on_startup=false -c analytics.enabled=false'
options=\"--json -m gpt-5.1-codex --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox $provider\"
codex $options 'Create a file out.txt with the word hi'
id=$(find $HOME/.codex/sessions -name 'rollout-*.jsonl' | sort | head -n 1 | grep -o '[0-9a-f-]\\{36\\}.jsonl' | cut -c1-36)
codex resume $id $options 'And again'
python3 - $id $provider <<'END'
import json, subprocess, sys
server = subprocess.Popen(['codex', 'app-server', *sys.argv[2:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def send(**message):
    server.stdin.write(json.dumps(message) + chr(10))
    server.stdin.flush()
def wait_for(is_it):
    return next(message for message in map(json.loads, server.stdout) if is_it(message))
def ask(number, method, **params):
    send(id=number, method=method, params=params)
    return wait_for(lambda message: message.get('id') == number)['result']
def finish(thread):
    wait_for(lambda message: message.get('method') == 'turn/completed' and message['params']['threadId'] == thread)
thread = sys.argv[1]
options = {'model': 'gpt-5.1-codex', 'modelProvider': 'fake', 'approvalPolicy': 'never', 'sandbox': 'danger-full-access'}
ask(1, 'initialize', clientInfo={'name': 'test', 'version': '1'})
send(method='initialized')
ask(2, 'thread/resume', threadId=thread, **options)
ask(3, 'thread/compact/start', threadId=thread)
finish(thread)
ask(4, 'turn/start', threadId=thread, input=[{'type': 'text', 'text': 'After the compaction'}])
finish(thread)
fork = ask(5, 'thread/fork', threadId=thread, **options)['thread']['id']
ask(6, 'turn/start', threadId=fork, input=[{'type': 'text', 'text': 'In another way'}])
finish(fork)
server.stdin.close()
server.wait()
END
",
        reasoning: Reasoning::Apart,
        not_logged: &[],
    };
    let mut script = script(Some(
        json!({"tool": "spawn_agent", "prompt": "DELEGATED: look at out.txt", "say": "I delegate."}),
    ));
    // The sub-agent works beside the main one, which must not end first.
    let wait = json!({"tool": "shell", "command": "sleep 3", "say": "I wait."});
    script["turns"].as_array_mut().unwrap().insert(2, wait);
    let account = check(&case, &script);
    assert_eq!(account["total"]["sessions"], 2, "{account:#}");
    assert_eq!(account["total"]["prompts"], 4, "{account:#}");
    assert_eq!(account["total"]["compactions"], 1, "{account:#}");
    let of_agents = calls_of_subagents(&account);
    assert_eq!(of_agents, 8, "two calls of four sub-agents: {account:#}");
}

fn calls_of_subagents(account: &Value) -> u64 {
    let agents = agents(account).into_iter();
    let subagents = agents.filter(|(agent, _)| *agent != "main agent");
    subagents.map(|(_, calls)| calls).sum()
}

/// The kinds of agents with their calls.
fn agents(account: &Value) -> Vec<(&str, u64)> {
    let rows = account["rows"].as_array().unwrap().iter();
    let of_row = |row: &'_ Value| row["calls"].as_u64().unwrap();
    rows.map(|row| (row["subagent"].as_str().unwrap(), of_row(row)))
        .collect()
}

/// Plain, resumed, forked, compacted, and with sub-agents all along.
pub(crate) fn opencode() {
    let case = Case {
        agent: "opencode",
        commands: "\
opencode() { command opencode \"$@\" < /dev/null; }
id=$(opencode run --format json 'Create a file out.txt with the word hi' | python3 -c 'import json,sys; print([json.loads(line) for line in sys.stdin][0][\"sessionID\"])')
opencode run --format json --session $id 'And again'
opencode run --format json --session $id --fork 'In another way'
command opencode serve --port 4096 > serve.log 2>&1 &
server=$!
python3 - $id <<'END'
import json, sys, time, urllib.request
url = f'http://127.0.0.1:4096/session/{sys.argv[1]}/summarize'
body = json.dumps({'providerID': 'fake', 'modelID': 'm'}).encode()
for attempt in range(100):
    try:
        urllib.request.urlopen(urllib.request.Request(url, body, {'content-type': 'application/json'}), timeout=100)
        break
    except OSError:
        time.sleep(0.3)
END
kill $server
wait $server || true
opencode run --format json --session $id 'After the compaction'
",
        reasoning: Reasoning::Apart,
        not_logged: TITLES,
    };
    let delegation = json!({"tool": "agent", "prompt": "DELEGATED: look at out.txt", "say": "I delegate.", "args": {"subagent_type": "general"}});
    let account = check(&case, &script(Some(delegation)));
    assert_eq!(
        account["total"]["sessions"], 2,
        "sub-agents belong to their session: {account:#}"
    );
    assert_eq!(account["total"]["compactions"], 1, "{account:#}");
    assert_eq!(
        agents(&account),
        [("general", 8), ("main agent", 13)],
        "{account:#}"
    );
}

/// The order of the main agent, with the further arguments that its tool for sub-agents wants.
fn delegation(arguments: Value) -> Option<Value> {
    Some(
        json!({"tool": "agent", "prompt": "DELEGATED: look at out.txt", "say": "I delegate.", "args": arguments}),
    )
}

/// Plain, resumed, compacted and forked, with sub-agents. Its forks are chats that are loaded from a file.
pub(crate) fn gemini() {
    let case = Case {
        agent: "gemini",
        commands: "\
gemini() { command gemini \"$@\" --output-format stream-json --yolo -m gemini-2.5-pro < /dev/null; }
gemini -p 'Create a file out.txt with the word hi'
python3 - $HOME/.gemini/tmp/*/chats/session-* <<'END'
import json, os, sys
records = [json.loads(line) for line in open(sys.argv[1])]
messages = {record['id']: record for record in records if 'type' in record}
with open(os.environ['HERE'] + '/chat.json', 'w') as file:
    json.dump({**records[0], 'messages': list(messages.values())}, file)
END
gemini --resume latest -p 'And again'
gemini --resume latest -p '/compress'
gemini --resume latest -p 'After the compaction'
gemini --session-file $HERE/chat.json -p 'In another way'
",
        reasoning: Reasoning::Apart,
        not_logged: &[
            "Generate a new <state_snapshot> based",
            "Critically evaluate the <state_snapshot>",
        ],
    };
    let script = script(delegation(json!({"agent_name": "generalist"})));
    let account = check(&case, &script);
    assert_eq!(account["total"]["sessions"], 2, "{account:#}");
    let kinds: Vec<&str> = agents(&account).iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, ["generalist", "main agent"], "{account:#}");
    assert_eq!(account["total"]["compactions"], 1, "{account:#}");
    assert_eq!(account["total"]["prompts"], 5, "{account:#}");
}

/// Plain, resumed, forked and compacted, with sub-agents.
pub(crate) fn qwen() {
    let case = Case {
        agent: "qwen",
        commands: "\
qwen() { command qwen \"$@\" --output-format stream-json --yolo --auth-type openai -m m < /dev/null; }
qwen -p 'Create a file out.txt with the word hi'
qwen --continue -p 'And again'
qwen --continue -p '/compress'
qwen --continue -p 'After the compaction'
qwen --continue --fork-session -p 'In another way'
",
        reasoning: Reasoning::Apart,
        not_logged: &[],
    };
    let arguments = json!({"subagent_type": "general-purpose", "run_in_background": false});
    let account = check(&case, &script(delegation(arguments)));
    assert_eq!(account["total"]["sessions"], 2, "{account:#}");
    assert_eq!(account["total"]["prompts"], 4, "{account:#}");
    assert_eq!(account["total"]["compactions"], 1, "{account:#}");
    assert_eq!(agents(&account)[0], ("general-purpose", 8), "{account:#}");
}

/// Plain, resumed, compacted and forked, with sub-agents.
pub(crate) fn goose() {
    let case = Case {
        agent: "goose",
        commands: "\
goose() { command goose \"$@\" --with-builtin developer; }
goose run --output-format stream-json -t 'Create a file out.txt with the word hi' < /dev/null
goose run --resume --output-format stream-json -t 'And again' < /dev/null
goose run --resume --output-format stream-json -t '/compact' < /dev/null
goose run --resume --output-format stream-json -t 'After the compaction' < /dev/null
printf 'In another way\\n/exit\\n' | goose session --resume --fork
",
        reasoning: Reasoning::InOutput,
        not_logged: TITLES,
    };
    let account = check(&case, &script(delegation(json!({}))));
    assert_eq!(account["total"]["sessions"], 2, "{account:#}");
    assert_eq!(account["total"]["compactions"], 1, "{account:#}");
    let of_agents = calls_of_subagents(&account);
    assert_eq!(of_agents, 8, "two calls of four sub-agents: {account:#}");
}

/// Plain, resumed, compacted and forked, with sub-agents. It does all but the first only for a person at a terminal.
pub(crate) fn cline() {
    let case = Case {
        agent: "cline",
        commands: "\
export CLINE_GLOBAL_SETTINGS_PATH=$HERE/cline.json OTEL_METRIC_EXPORT_INTERVAL=86400000
# Otherwise it leaves a daemon behind.
export CLINE_SESSION_BACKEND_MODE=local
echo '{ \"telemetryOptOut\": true, \"autoUpdateEnabled\": false }' > $HERE/cline.json
cline auth -p openai-compatible -k none -m m -b http://127.0.0.1:8099/v1 < /dev/null
options=\"-P openai-compatible -m m -c $PWD --auto-approve true\"
cline --json $options 'Create a file out.txt with the word hi' < /dev/null
cline --json $options 'And once more' < /dev/null
id=$(ls $HOME/.cline/data/sessions | head -n 1)
python3 - $id $options <<'END'
import fcntl, glob, os, pty, select, struct, sys, termios, time
sessions = os.environ['HOME'] + '/.cline/data/sessions/'
program, terminal = pty.fork()
if program == 0:
    os.environ['TERM'] = 'xterm-256color'
    os.execvp('cline', ['cline', '-i', '--id', *sys.argv[1:]])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 140, 0, 0))
shown = b''
def look(seconds):
    global shown
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            shown += os.read(terminal, 65536)
def wait_for(is_so):
    for attempt in range(300):
        look(0.2)
        if is_so():
            return look(1.5)
    sys.exit('waited in vain: ' + shown[-3000:].decode(errors='replace'))
def type(text):
    for character in text:
        os.write(terminal, character.encode())
        look(0.05)
    look(1.5)
    os.write(terminal, bytes([13]))
def answers():
    return sum(open(path).read().count('Done: out.txt') for path in glob.glob(sessions + '*/*.messages.json'))
def ask(text):
    before = answers()
    type(text)
    wait_for(lambda: answers() > before)
wait_for(lambda: b'Ask anything' in shown)
ask('And again')
type('/compact')
wait_for(lambda: glob.glob(sessions + '*/*.compaction.json'))
ask('After the compaction')
type('/fork')
type('')  # It offers a name.
wait_for(lambda: len(os.listdir(sessions)) == 3)
ask('In another way')
type('/quit')
try:
    look(20)
except OSError:
    pass  # It is gone.
os.waitpid(program, 0)
END
cline hub stop < /dev/null
",
        reasoning: Reasoning::InOutput,
        not_logged: &["Summarize this session for continuation"],
    };
    let account = check(&case, &script(delegation(json!({}))));
    assert_eq!(account["total"]["sessions"], 3, "{account:#}");
    assert_eq!(account["total"]["compactions"], 1, "{account:#}");
    assert_eq!(account["total"]["prompts"], 5, "{account:#}");
    assert_eq!(
        agents(&account),
        [("main agent", 15), ("subagent", 10)],
        "{account:#}"
    );
}
