//! The formats by name, with what each of them cannot hold.

/// A format of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// The name on the command line.
    pub name: &'static str,
    /// The format in a few words.
    pub title: &'static str,
    /// The ending of its files.
    pub ending: &'static str,
    /// Sessions of this format can be read, too.
    pub is_read: bool,
    /// Parts of a session that another tool does not find in it.
    pub losses: &'static [&'static str],
}

/// Every format that sessions are written in.
pub const FORMATS: &[Format] = &[
    Format {
        name: "atif",
        title: "ATIF v1.7, the trajectories of Harbor; v1.0 to v1.7 are read",
        ending: "atif.json",
        is_read: true,
        losses: &[
            "cache writes and reasoning tokens are only in `metrics.extra`",
            "durations, times to the first token, stop reasons and retries of model calls are only in `extra.assize`",
            "durations and success of tool calls are only in `extra.assize`",
            "several thoughts of one model call become one `reasoning_content`",
            "texts, thoughts and tool calls of one model call lose their order among each other",
            "an error becomes a step of the source `system`",
            "user messages of sessions that were not run by Assize are missing where the log does not hold them",
            "turns are grouped anew when a document is read back",
        ],
    },
    Format {
        name: "otlp",
        title: "OpenTelemetry spans by the GenAI conventions: a file, or protobuf to a collector",
        ending: "otlp.jsonl",
        is_read: false,
        losses: &[
            "texts, thoughts, arguments and results are left out unless `--content` is given",
            "texts longer than the limit (10 KiB) are cut",
            "unknown numbers are left out, never written as 0",
            "an event without a time is placed where the one before it ended, and marked `assize.time.estimated`",
            "reasoning tokens are `assize.usage.reasoning_tokens` in the dialect v1.41",
            "thoughts and texts are no spans of their own",
        ],
    },
    Format {
        name: "chrome",
        title: "Chrome trace events, for Perfetto",
        ending: "trace.json",
        is_read: false,
        losses: &[
            "texts, thoughts, arguments and results",
            "a model call of unknown duration has none",
            "a model call that outlives its turn is cut at its end",
        ],
    },
    Format {
        name: "speedscope",
        title: "evented profiles, for speedscope",
        ending: "speedscope.json",
        is_read: false,
        losses: &[
            "texts, thoughts, arguments and results",
            "tokens and cost",
            "errors",
            "a model call that outlives its turn is cut at its end",
        ],
    },
    Format {
        name: "folded",
        title: "folded stacks by tokens, time or cost, for flame graphs",
        ending: "folded",
        is_read: false,
        losses: &[
            "everything but names and one number per stack",
            "the order in time",
            "calls whose number is unknown",
            "parallel work adds up to more than the time that passed",
        ],
    },
];

impl Format {
    /// The format of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }
}
