//! Sessions in the formats of other tools. Everything here is a function from a session to a document or back: no files, no
//! network.
//!
//! [`FORMATS`] lists the formats with what each of them loses; `atif` is also read.

pub mod atif;
pub mod chrome;
pub mod folded;
mod lanes;
pub mod otlp;
mod registry;
mod session;
pub mod speedscope;
mod timeline;

pub use registry::{FORMATS, Format};
pub use session::{Session, Trial, UserMessage};
pub use timeline::NoTimes;
