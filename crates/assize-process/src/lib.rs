//! Start, bound and end programs together with all their descendants.
//!
//! Every program runs under a small *keeper* process: the host binary starting itself. The keeper relays output within
//! bounds, measures, and ends the whole tree on timeout, on cancel, or when the host dies. The host's `main` begins with
//! [`keeper::main_if_asked`]; after that, [`Command::start`] and [`Command::run_to_end`] are all there is to call.
//!
//! ```no_run
//! # async fn example() -> Result<(), assize_process::Error> {
//! use assize_process::{Command, Stdin};
//! use std::time::Duration;
//!
//! let output = Command::new("wc", "/tmp")
//!     .arg("-c")
//!     .stdin(Stdin::Bytes(b"hello".to_vec()))
//!     .timeout(Duration::from_secs(10))
//!     .run_to_end()
//!     .await?;
//! assert_eq!(output.stdout.text().trim(), "5");
//! # Ok(())
//! # }
//! ```
//!
//! On Linux nothing escapes short of asking an unrelated service (a container engine, an init system) to start something:
//! the keeper is child-subreaper, so every orphan becomes its child, and where a cgroup v2 can be made the tree is in one.
//! A program that kills its keeper with SIGKILL is killed with it, and so is its process group; what left the group then
//! escapes where there is no cgroup. On other systems than Linux the keeping is weaker: the process group is ended, a
//! descendant that leaves it is not found, and the end of a program is noticed within ten milliseconds.

#![cfg(unix)]

pub mod container;
#[cfg(target_os = "linux")]
mod fence;
pub mod guard;
pub mod keeper;
pub mod workspace;

mod cgroup;
mod command;
mod environment;
mod error;
mod exit;
mod explain;
mod lines;
mod lookup;
mod open_files;
mod output;
mod running;
mod sys;
mod terminal;
mod wire;

pub use command::{Bound, Command, Elsewhere, Stdin, USUAL_ENVIRONMENT};
pub use environment::{host_variable, places_in_path};
pub use error::{Error, Result};
pub use exit::{CpuTime, Exit, PeakMemory, Scope, Status, Stopped, Volume};
pub use guard::{Guard, GuardVersion, Surroundings};
pub use lines::{Line, LineSplitter};
pub use nix::sys::signal::Signal;
pub use open_files::raise_open_files;
pub use output::{Captured, Output};
pub use running::{Canceller, Chunk, Running, Stream};
pub use terminal::{RawMode, Terminal};
