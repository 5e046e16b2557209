//! Writes session logs of Claude Code that look like months of real work: long tool results, answers split over several lines, lines copied
//! by resumed sessions, sub-agents in files of their own. For measurements; nothing in them is real.
//!
//!     cargo run --release -p assize-sessions --example generate_logs -- DIRECTORY [MEGABYTES] [FILES] [SEED]
//!
//! Prints what the logs hold, counted while they were written, so that a reader can be held against it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(directory) = arguments.first() else {
        return Err(std::io::Error::other(
            "usage: generate_logs DIRECTORY [MEGABYTES] [FILES] [SEED]",
        ));
    };
    let number = |place: usize, usual: u64| {
        let given = arguments.get(place).and_then(|text| text.parse().ok());
        given.unwrap_or(usual)
    };
    let plan = Plan {
        bytes: number(1, 1024) * 1_000_000,
        files: number(2, 1000).max(1),
    };
    let mut random = Random(number(3, 1) | 1);
    let books = write_all(Path::new(directory), &plan, &mut random)?;
    let Books {
        calls,
        input,
        output,
        cache_read,
        cache_write,
    } = books;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{{\"calls\":{calls},\"input\":{input},\"output\":{output},\"cacheRead\":{cache_read},\"cacheWrite\":{cache_write}}}"
    )
}

struct Plan {
    bytes: u64,
    files: u64,
}

/// The tokens that the logs hold, each call counted once.
#[derive(Default)]
struct Books {
    calls: u64,
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

/// xorshift: the same seed writes the same logs everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            b >> 48,
            b & 0xffff_ffff_ffff
        )
    }
}

fn write_all(directory: &Path, plan: &Plan, random: &mut Random) -> std::io::Result<Books> {
    let mut books = Books::default();
    let per_file = plan.bytes / plan.files;
    let mut last: Option<Vec<String>> = None;
    for number in 0..plan.files {
        let project = directory
            .join("projects")
            .join(format!("-home-someone-project-{}", number % 7));
        std::fs::create_dir_all(&project)?;
        let id = random.uuid();
        // Every tenth session resumes the one before it and begins with copies of its lines.
        let copied = match number % 10 {
            9 => last.take().unwrap_or_default(),
            _ => Vec::new(),
        };
        let path = match number % 8 {
            7 => project
                .join(&id)
                .join("subagents")
                .join(format!("agent-{:08x}.jsonl", random.next() >> 32)),
            _ => project.join(format!("{id}.jsonl")),
        };
        let mut session = Session::new(&id, number, path)?;
        session.is_sidechain = number % 8 == 7;
        let lines = session.write(per_file, &copied, random, &mut books)?;
        last = Some(lines);
    }
    Ok(books)
}

struct Session {
    id: String,
    project: u64,
    file: BufWriter<File>,
    written: u64,
    /// Milliseconds since the beginning of the day.
    clock: u64,
    day: u64,
    parent: String,
    is_sidechain: bool,
    line: String,
    kept: Vec<String>,
}

/// Lines that a resumed session copies.
const MOST_COPIED: usize = 40;

impl Session {
    fn new(id: &str, number: u64, path: PathBuf) -> std::io::Result<Self> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        Ok(Self {
            id: id.to_owned(),
            project: number % 7,
            file: BufWriter::new(File::create(path)?),
            written: 0,
            clock: 28_800_000,
            day: number % 28,
            parent: "null".to_owned(),
            is_sidechain: false,
            line: String::new(),
            kept: Vec::new(),
        })
    }

    fn write(
        mut self,
        bytes: u64,
        copied: &[String],
        random: &mut Random,
        books: &mut Books,
    ) -> std::io::Result<Vec<String>> {
        for line in copied {
            self.file.write_all(line.as_bytes())?;
            self.written += line.len() as u64;
        }
        self.user("\"Please look into the failing test and mend it.\"", random)?;
        while self.written < bytes {
            self.step(random, books)?;
        }
        self.file.flush()?;
        Ok(self.kept)
    }

    /// One answer over two or three lines, and the result of its tool.
    fn step(&mut self, random: &mut Random, books: &mut Books) -> std::io::Result<()> {
        let message = format!("msg_{:016x}", random.next());
        let request = format!("req_{:016x}", random.next());
        let tool = format!("toolu_{:016x}", random.next());
        let usage = Usage {
            input: 3 + random.below(50),
            cache_read: 10_000 + random.below(90_000),
            cache_write: random.below(4_000),
            output: 40 + random.below(900),
        };
        books.calls += 1;
        books.input += usage.input;
        books.output += usage.output;
        books.cache_read += usage.cache_read;
        books.cache_write += usage.cache_write;
        let model = ["claude-sonnet-4-5", "claude-opus-4-5", "claude-haiku-4-5"]
            [(random.below(10) / 4) as usize];
        let answer = Answer {
            message: &message,
            request: &request,
            model,
        };
        let first = Usage { output: 1, ..usage };
        let thought = text(random, 300);
        let thinking =
            format!("{{\"type\":\"thinking\",\"thinking\":\"{thought}\",\"signature\":\"c2ln\"}}");
        self.assistant(&answer, &thinking, "null", &first, random)?;
        let names = ["Bash", "Read", "Edit", "Grep", "mcp__docs__search", "Skill"];
        let name = names[random.below(6) as usize];
        let call = format!(
            "{{\"type\":\"tool_use\",\"id\":\"{tool}\",\"name\":\"{name}\",\"input\":{{\"command\":\"cargo test -p part-{}\",\"description\":\"Run tests\"}}}}",
            random.below(40)
        );
        self.assistant(&answer, &call, "\"tool_use\"", &usage, random)?;
        let length = 200 + random.below(200) * random.below(120);
        let output = text(random, length as usize);
        let is_error = random.below(20) == 0;
        let content = format!(
            "[{{\"tool_use_id\":\"{tool}\",\"type\":\"tool_result\",\"content\":\"{output}\",\"is_error\":{is_error}}}]"
        );
        let short: String = output.chars().take(400).collect();
        let short = short.trim_end_matches('\\');
        let result = format!(
            ",\"toolUseResult\":{{\"stdout\":\"{short}\",\"stderr\":\"\",\"interrupted\":false}}"
        );
        self.line(
            "user",
            &format!("{{\"role\":\"user\",\"content\":{content}}}"),
            &result,
            random,
        )
    }

    fn user(&mut self, content: &str, random: &mut Random) -> std::io::Result<()> {
        let message = format!("{{\"role\":\"user\",\"content\":{content}}}");
        self.line("user", &message, "", random)
    }

    fn assistant(
        &mut self,
        answer: &Answer<'_>,
        block: &str,
        stop: &str,
        usage: &Usage,
        random: &mut Random,
    ) -> std::io::Result<()> {
        let Answer {
            message,
            request,
            model,
        } = answer;
        let Usage {
            input,
            cache_read,
            cache_write,
            output,
        } = usage;
        let body = format!(
            "{{\"model\":\"{model}\",\"id\":\"{message}\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{block}],\"stop_reason\":{stop},\"stop_sequence\":null,\"usage\":{{\"input_tokens\":{input},\"cache_creation_input_tokens\":{cache_write},\"cache_read_input_tokens\":{cache_read},\"cache_creation\":{{\"ephemeral_5m_input_tokens\":{cache_write},\"ephemeral_1h_input_tokens\":0}},\"output_tokens\":{output},\"service_tier\":\"standard\"}}}}"
        );
        self.line(
            "assistant",
            &body,
            &format!(",\"requestId\":\"{request}\""),
            random,
        )
    }

    fn line(
        &mut self,
        kind: &str,
        message: &str,
        more: &str,
        random: &mut Random,
    ) -> std::io::Result<()> {
        self.clock += 400 + random.below(9_000);
        let uuid = random.uuid();
        let (day, clock) = (
            1 + self.day + self.clock / 86_400_000,
            self.clock % 86_400_000,
        );
        let parent = std::mem::replace(&mut self.parent, format!("\"{uuid}\""));
        self.line.clear();
        let _ = writeln!(
            self.line,
            "{{\"parentUuid\":{parent},\"isSidechain\":{},\"userType\":\"external\",\"cwd\":\"/home/someone/project-{}\",\"sessionId\":\"{}\",\"version\":\"2.1.197\",\"gitBranch\":\"main\",\"type\":\"{kind}\",\"message\":{message}{more},\"uuid\":\"{uuid}\",\"timestamp\":\"2026-10-{:02}T{:02}:{:02}:{:02}.{:03}Z\"}}",
            self.is_sidechain,
            self.project,
            self.id,
            day.min(31),
            clock / 3_600_000,
            clock / 60_000 % 60,
            clock / 1000 % 60,
            clock % 1000,
        );
        self.file.write_all(self.line.as_bytes())?;
        self.written += self.line.len() as u64;
        if self.kept.len() < MOST_COPIED {
            self.kept.push(self.line.clone());
        }
        Ok(())
    }
}

struct Answer<'a> {
    message: &'a str,
    request: &'a str,
    model: &'a str,
}

struct Usage {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
}

/// Text of so many bytes, as tools print it: words, line breaks, quotes, some that is not ASCII.
fn text(random: &mut Random, length: usize) -> String {
    const WORDS: [&str; 12] = [
        "error",
        "expected",
        "let mut value =",
        "/home/someone/project/src/lib.rs",
        "assert_eq!(left, right)",
        "test result:",
        "\\\"quoted\\\"",
        "— ü 世界",
        "0123456789abcdef",
        "fn main() {",
        "    ",
        "warning: unused variable",
    ];
    let mut text = String::with_capacity(length + 40);
    while text.len() < length {
        text.push_str(WORDS[random.below(12) as usize]);
        text.push_str(match random.below(4) {
            0 => "\\n",
            _ => " ",
        });
    }
    text
}
