//! Containers, driven through the command line of docker, podman or nerdctl.
//!
//! A session has one container. Its first process idles, passes signals on and, where an agent may reach its model,
//! forwards a port on the container's loopback to a Unix socket of the host (`inside.rs`). Programs are started in it
//! one by one by [`Container::exec`], under a keeper like all others; the keeper also removes the container when the host
//! dies. Containers of a killed keeper are found by their labels (`sweep.rs`).

mod engine;
mod image;
mod inside;
mod lifetime;
mod linkage;
mod provision;
mod sweep;
mod usage;

pub use engine::{Engine, EngineKind};
pub use image::{Build, context_fingerprint};
pub(crate) use inside::{MARKER, run_inside};
pub use lifetime::{Container, ContainerSpec, Forward, Mount, Within, own_program};
pub use linkage::{Linkage, linkage_of};
pub use provision::{BUILD_LIMIT, ImageSource, engine_for, image_for};
pub use sweep::Swept;
pub use usage::ContainerUse;
