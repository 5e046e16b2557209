//! Secrets planted in every place and every form are in no file that a run writes.

use crate::llm::Llm;
use crate::sandbox::{Sandbox, words};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Shows every secret in every form in every way an agent has: stdout, stderr, a tool's name, input and result, the model's
/// answers, files that checks quote, and lengths at which excerpts cut it.
const AGENT: &str = r#"
import base64, json, os, sys, urllib.parse, urllib.request
secrets = [os.environ["DOCS_TOKEN"], os.environ["PLAIN_NAME"], os.environ["DECLARED"], "header-key-7Qx" + "ZpL2vN8wR4t", "cookie-9aB" + "cD3eF5gH7",
           "query key/3" + "Tz6Wy&x=1", "basic-pass" + "word-5Kj8"]
def forms(secret):
    raw = secret.encode()
    yield from (secret, json.dumps(secret), json.dumps(json.dumps(secret)), urllib.parse.quote(secret), urllib.parse.quote(secret, safe=""),
                urllib.parse.quote_plus(secret), base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode(), raw.hex(), raw.hex().upper())
    for before in (b"u:", b"user:", b"x"):
        yield base64.b64encode(before + raw + b"!!").decode()
everything = [form for secret in secrets for form in forms(secret)]
def post(messages, path="/v1/messages", **headers):
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages, "tools": [{"name": "Bash " + secrets[0], "input_schema": {}}]}
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + path, json.dumps(body).encode(),
        {"x-api-key": secrets[3], "cookie": "sid=" + secrets[4], "authorization": "Basic " + base64.b64encode(b"me:" + secrets[6].encode()).decode(), "accept-encoding": "gzip"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["content"]
task = {"role": "user", "content": "Do it " + " ".join(everything)}
said = post([task], "/v1/messages?beta=true&api_key=" + urllib.parse.quote_plus(secrets[5]))
result = {"type": "tool_result", "tool_use_id": said[1]["id"], "is_error": True, "content": "failed: " + " ".join(everything)}
post([task, {"role": "assistant", "content": said + [{"type": "tool_use", "id": "t2", "name": secrets[3], "input": {secrets[3]: everything}}]}, {"role": "user", "content": [result]}])
for number, secret in enumerate(secrets):
    # At every distance from the limits of excerpts.
    for length in range(400, 1100, 7):
        open(f"cut-{number}.txt", "a").write("x" * length + secret + "\n")
    open(f"file-{number}.txt", "w").write("y" * (490 - 3 * number) + secret + "z" * 50)
open("all.txt", "w").write("\n".join(everything))
open("binary", "wb").write(b"\xff\xfe " + " ".join(everything).encode() + b" \x00")
for form in everything:
    if "/" not in form and len(form.encode()) < 200:
        open("named " + form, "w").write("x")
os.symlink(secrets[1], "link")
sys.stderr.write("\n".join(everything) + "\n" + "w" * 3000 + secrets[3])
print("\n".join(everything))
sys.stdout.write("v" * (500 - 10) + secrets[0])
sys.exit(int(os.environ["FAIL"]))
"#;

/// The planted values: from the environment by name, by its looks and declared; from headers, a query, and a URL.
const SECRETS: [&str; 8] = [
    "correct horse \"battery\" stäple",
    "Zk9x2LmQ8vTr4WpY1nBc6Hd0",
    "quite ordinary words",
    concat!("header-key-7Qx", "ZpL2vN8wR4t"),
    concat!("cookie-9aB", "cD3eF5gH7"),
    concat!("query key/3", "Tz6Wy&x=1"),
    concat!("basic-pass", "word-5Kj8"),
    concat!("upstream-pw-", "4Rt9Lm"),
];

fn sandbox(llm: &Llm, fail: u8) -> Sandbox {
    let url = llm
        .url
        .replace("http://", &format!("http://me:{}@", SECRETS[7]));
    let suite = format!(
        "provider: {{ uses: command, command: [python3, '{{suite}}/agent.py'] }}\n\
         modes:\n  plain:\n    environment:\n      DOCS_TOKEN: '${{env:DOCS_TOKEN}}'\n      PLAIN_NAME: '${{env:PLAIN_NAME}}'\n      \
         DECLARED: {{ value: '${{env:DECLARED}}', secret: true }}\n      FAIL: '{fail}'\n\
         scenarios: {{ paths: [s.yaml] }}\n\
         output: {{ log_level: debug, keep_workspace: all }}\n\
         capture: {{ upstream: {{ anthropic: '{url}' }}, cassette: {{ file: c.jsonl, mode: record }} }}\n"
    );
    let file = |number: usize| {
        format!(
            "  - file: {{ path: file-{number}.txt, equals: other }}\n  - file: {{ path: cut-{number}.txt, contains: nothing-like-it }}\n"
        )
    };
    let files: String = (0..7).map(file).collect();
    let scenario = format!(
        "id: s\nprompt: Do it\nworkspace: {{}}\nchecks:\n  - output: {{ contains: something else }}\n  - output: {{ equals: x }}\n  \
         - command: {{ run: 'cat all.txt; cat all.txt >&2; exit 1' }}\n  - file: {{ path: all.txt, matches: '^nothing$' }}\n{files}"
    );
    Sandbox::new(&[
        ("assize.yaml", &suite),
        ("s.yaml", &scenario),
        ("agent.py", AGENT),
    ])
}

#[test]
fn no_file_of_a_run_holds_a_secret_in_any_form() {
    for fail in [0, 3] {
        let llm = Llm::new();
        let sandbox = sandbox(&llm, fail);
        let commands = "run -q --skip-warmup -n 2 | report last | report last --format benchmark --out out/report | show last | show last/0 | \
            show last/0 --json | compare last | gate last --gate success>=0.1 | history | runs --json | analyze last | baseline set kept last | \
            export atif last --out out/atif | export otlp last --out out/otlp | export chrome last --out out/chrome | \
            export speedscope last --out out/speedscope | export folded last --out out/folded | export atif last/0 | \
            score last --yes | report last | run -q --skip-warmup --shard 1/2 --output shards | \
            run -q --skip-warmup --shard 2/2 --output shards | merge shards --out out/merged | report out/merged";
        for arguments in commands.split(" | ") {
            let arguments: Vec<&str> = arguments.split_whitespace().collect();
            let output = with_secrets(sandbox.assize(&arguments)).output().unwrap();
            let is_usage = output.status.code().is_none_or(|code| code == 2);
            assert!(!is_usage, "{arguments:?} {}", words(&output));
            find_nothing("output", &output.stdout);
            find_nothing("stderr", &output.stderr);
        }
        find_nothing("mcp", &asked_over_mcp(&sandbox));
        let rows = sandbox.rows();
        assert_eq!(rows.len(), 2);
        assert!(
            rows[0].to_string().contains("[redacted-1]"),
            "{:#}",
            rows[0]
        );
        for place in [".assize", "shards", "out"] {
            search(&sandbox.path(place));
        }
        find_nothing("c.jsonl", &std::fs::read(sandbox.path("c.jsonl")).unwrap());
    }
}

fn with_secrets(mut command: Command) -> Command {
    command
        .env("DOCS_TOKEN", SECRETS[0])
        .env("PLAIN_NAME", SECRETS[1])
        .env("DECLARED", SECRETS[2]);
    command
}

/// Everything that the server tells an agent about the run.
fn asked_over_mcp(sandbox: &Sandbox) -> Vec<u8> {
    let mut child = with_secrets(sandbox.assize(&["mcp"]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
    let call = |tool: &str, more: Value| json!({"name": tool, "arguments": more});
    let requests = [
        ("initialize", hello),
        ("tools/call", call("check", json!({"suite": "."}))),
        ("tools/call", call("runs", json!({"suite": "."}))),
        ("tools/call", call("compare", json!({"suite": "."}))),
        (
            "tools/call",
            call("show", json!({"suite": ".", "position": 0})),
        ),
    ];
    for (id, (method, params)) in requests.iter().enumerate() {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{request}").unwrap();
    }
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    let mut read = String::new();
    for _ in &requests {
        answers.read_line(&mut read).unwrap();
    }
    drop(stdin);
    child.wait().unwrap();
    assert!(read.contains("[redacted-"), "{read}");
    read.into_bytes()
}

#[test]
fn check_says_what_is_removed_and_refuses_secret_ids() {
    let llm = Llm::new();
    let sandbox = sandbox(&llm, 0);
    let check = |token: &str| {
        let mut command = sandbox.assize(&["check"]);
        command
            .env("DOCS_TOKEN", token)
            .env("PLAIN_NAME", "test")
            .env("DECLARED", SECRETS[2]);
        words(&command.output().unwrap())
    };
    let fine = check(SECRETS[0]);
    assert!(
        fine.contains("`DOCS_TOKEN` (of its name)")
            && fine.contains("`DECLARED` (it is declared as a secret)")
            && !fine.contains("PLAIN_NAME"),
        "{fine}"
    );
    let short = check("hunter2");
    assert!(
        short.contains("the value of `DOCS_TOKEN` has less than 8 characters"),
        "{short}"
    );
    let clash = check("plain");
    assert!(
        clash.contains("the value of `DOCS_TOKEN` is a secret and part of the id of a mode")
            && clash.contains("hint:"),
        "{clash}"
    );
}

fn search(directory: &Path) {
    for path in files(directory) {
        find_nothing(&path.display().to_string(), &content(&path));
    }
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect()
}

/// What a file holds, unpacked.
fn content(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = std::fs::File::open(path).unwrap();
    match path.extension().is_some_and(|end| end == "zst") {
        true => drop(zstd::Decoder::new(file).unwrap().read_to_end(&mut bytes)),
        false => drop(file.read_to_end(&mut bytes)),
    }
    bytes
}

/// Looks for every secret in every form, and for its first ten characters.
fn find_nothing(place: &str, bytes: &[u8]) {
    for secret in SECRETS {
        find_secret(place, secret, bytes);
    }
}

fn find_secret(place: &str, secret: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let each = |form: &dyn Fn(char) -> String| secret.chars().map(form).collect::<String>();
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let bytewise: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let percent: String = secret
        .bytes()
        .map(
            |byte| match byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            },
        )
        .collect();
    let beginning: String = secret.chars().take(10).collect();
    let mut forms = vec![
        secret.to_owned(),
        hex.to_uppercase(),
        hex[..20].to_owned(),
        hex,
        percent,
        bytewise,
        beginning,
        each(&|c| format!("\\u{:04x}", u32::from(c))),
        each(&|c| format!("&#{};", u32::from(c))),
    ];
    forms.extend(base64_middles(secret.as_bytes()));
    for form in forms {
        let found = text.find(&form).map(|at| {
            let from = text.floor_char_boundary(at.saturating_sub(80));
            let to = text.ceil_char_boundary((at + form.len() + 40).min(text.len()));
            &text[from..to]
        });
        assert_eq!(found, None, "{secret} as {form} in {place}");
    }
}

/// Ten digits that stand in the base64 of any text with these bytes, for each of the three ways they may lie.
fn base64_middles(bytes: &[u8]) -> Vec<String> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = |skip: usize| {
        let groups = bytes[skip..].chunks_exact(3).take(4).flat_map(|group| {
            let bits = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
            [18, 12, 6, 0].map(|shift| char::from(DIGITS[(bits >> shift & 63) as usize]))
        });
        groups.collect::<String>()
    };
    (0..3).map(digits).collect()
}

/// An agent that calls tools by names that hold its secrets, as different programs escape them and on several lines.
const NAMING: &str = r#"
import base64, html, json, os
def dotnet(text):
    return "".join(f"\\u{ord(c):04X}" if c in "\"<>&+'`" or ord(c) > 126 else c for c in text)
def go(text):
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
def forms(secret):
    raw = b"y" * 47 + secret.encode() + b" end"
    yield from (secret, dotnet(secret), json.dumps(go(secret)), "".join(f"\\u{ord(c):04x}" for c in secret), "".join(f"&#{ord(c)};" for c in secret),
                html.escape(secret).encode("ascii", "xmlcharrefreplace").decode(), "".join(f"%{byte:02X}" for byte in secret.encode()),
                base64.encodebytes(raw).decode(), "\n".join(raw.hex()[at:at + 60] for at in range(0, len(raw) * 2, 60)))
for name in ("WORDS_TOKEN", "ODD_PASSWORD"):
    for form in forms(os.environ[name]):
        print(json.dumps({"type": "tool_call", "name": form, "input": {form: form}, "output": form, "success": True}))
print(json.dumps({"type": "text", "text": "done"}))
"#;

/// A collector and a scorer that name metrics, units and labels after the secrets, each of them twice.
const MEASURING: &str = r#"
import os
from assize import Plugin

plugin = Plugin("naming", version="1.0.0")
secrets = [os.environ["WORDS_TOKEN"], os.environ["ODD_PASSWORD"]]
measured = lambda begin: [{"name": begin + secret, "value": 1, "unit": secret, "label": secret + again} for secret in secrets for again in ("", " again")]

@plugin.collector("named")
def named(result, scenario, mode, trace):
    return measured("m_")

@plugin.scorer("judging")
def judging(scenario, context):
    return {"success": True, "passed": 1, "total": 1, "details": [], "outputValid": True, "metrics": measured("s_")}

plugin.serve()
"#;

#[test]
fn names_that_agents_and_plugins_choose_hold_no_secret() {
    // One that could be a name of Assize's own, and one that everything must escape.
    let secrets = [
        ("WORDS_TOKEN", "correct-horse-battery-staple"),
        ("ODD_PASSWORD", "p@ss <w>&'q\"+/ü"),
    ];
    let environment = "{ WORDS_TOKEN: '${env:WORDS_TOKEN}', ODD_PASSWORD: '${env:ODD_PASSWORD}'";
    let suite = format!(
        "provider: {{ uses: command, output: events, command: [python3, '{{suite}}/agent.py'] }}\n\
         modes: {{ plain: {{ environment: {environment} }} }} }}\n\
         scenarios: {{ paths: [s.yaml] }}\nexecution: {{ repetitions: 2, warmup: false }}\n\
         collectors: [tool_calls, named]\nscorer: {{ uses: judging }}\n\
         plugins: [{{ id: naming, command: [python3, plugin.py], environment: {environment}, PYTHONPATH: '{}' }} }}]\n",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python"),
    );
    let sandbox = Sandbox::new(&[
        ("assize.yaml", &suite),
        ("s.yaml", "id: s\nprompt: Do it\n"),
        ("agent.py", NAMING),
        ("plugin.py", MEASURING),
    ]);
    for arguments in [
        "run -q",
        "report last",
        "score last --yes",
        "report last",
        "compare last",
        "show last/0",
        "show last/0 --json",
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let mut command = sandbox.assize(&arguments);
        command.envs(secrets);
        let output = command.output().unwrap();
        let is_usage = output.status.code().is_none_or(|code| code == 2);
        assert!(!is_usage, "{arguments:?} {}", words(&output));
        for (_, secret) in secrets {
            find_secret("output", secret, &output.stdout);
            find_secret("stderr", secret, &output.stderr);
        }
    }
    let rows = sandbox.rows();
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!(row["toolCalls"]["total"], 18, "{row:#}");
        assert_eq!(row["extensions"]["m_[redacted-1]"], 1, "{row:#}");
        assert_eq!(row["extensions"]["s_[redacted-2]"], 1, "{row:#}");
    }
    for path in files(&sandbox.path(".assize")) {
        for (_, secret) in secrets {
            find_secret(&path.display().to_string(), secret, &content(&path));
        }
    }
}
