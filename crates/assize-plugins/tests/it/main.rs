//! Plugin programs as they are met in the wild: good ones, broken ones, killed ones.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod conformance;
mod faults;
mod kit_types;
mod support;
