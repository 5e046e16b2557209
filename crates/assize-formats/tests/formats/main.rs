//! Every format on the same session: what comes back, what is lost, and what viewers demand.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod atif;
mod folded;
mod otlp;
mod sample;
mod viewers;
