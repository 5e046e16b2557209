//! Programs that behave badly, under the keeper. The test binary is its own keeper (feature `early-keeper`).

#![cfg(target_os = "linux")]

mod checkout;
mod ending;
mod host_death;
mod many;
mod output;
mod starting;
mod testbed;
