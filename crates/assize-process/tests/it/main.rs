//! Programs that behave badly, under the keeper. The test binary is its own keeper (feature `early-keeper`).

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

mod checkout;
mod ending;
mod guard;
mod host_death;
mod many;
mod output;
mod starting;
mod testbed;
mod views;
