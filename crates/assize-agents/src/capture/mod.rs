//! The capture proxy: between any agent and its LLM API, on the loopback, it passes bytes through untouched and reads
//! tokens, times, tool calls and their results off a copy.
//!
//! Code that starts agents needs two things of it. The first is the list of variables that send an agent through the proxy:
//!
//! ```no_run
//! # async fn example() -> Result<(), assize_agents::capture::CaptureError> {
//! use assize_agents::capture::{Proxy, Service, SessionOptions, Upstreams};
//!
//! let proxy = Proxy::start(0, None).await?;
//! let environment = |name: &str| std::env::var(name).ok();
//! let upstreams = Upstreams::resolve(&Default::default(), environment)?;
//! let session = proxy.open(upstreams, SessionOptions::default());
//! let variables = session.variables(environment); // ANTHROPIC_BASE_URL, OPENAI_BASE_URL, …
//! let for_a_config_file = session.base_url(Service::OpenAi); // http://127.0.0.1:…/s/…/openai/v1
//! // … the agent runs …
//! session.settle().await;
//! let trace = session.recording().trace("session-1", None);
//! # Ok(())
//! # }
//! ```
//!
//! Suites need no call of this: [`CapturedProvider`] wraps a provider, adds these variables to `environment` of every
//! session, and completes results and traces from the wire afterwards. A provider only has to give
//! `CreateSessionParams::environment` to its agent, or, where the agent wants its base URL in a file or a flag, to
//! take it from there (`environment["OPENAI_BASE_URL"]`, set or not).

mod agents;
mod cassette;
mod encoding;
mod error;
mod exchange;
mod join;
mod normal_form;
mod outcome;
mod pass;
mod provider;
mod proxy;
mod service;
mod session;
mod skills;
mod trace;

pub(crate) use cassette::play_all;
pub use cassette::{Cassette, CassetteMode, CassetteSettings, CassetteTiming};
pub use error::CaptureError;
pub(crate) use outcome::{is_long, no_answer};
pub use provider::{Capture, CaptureSettings, CapturedProvider};
pub use proxy::{CapturedSession, Proxy, SessionOptions};
pub use service::{Service, Upstreams};
pub use session::{Call, Ending, Recording};
pub use skills::WatchedSkill;
