//! Errors that keep the proxy from working.

use super::Service;
use std::io;
use std::path::PathBuf;

/// The reason why nothing can be captured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The port is taken, or there is no loopback.
    #[error("cannot listen on 127.0.0.1:{port}")]
    Listen {
        /// The port; 0 for any.
        port: u16,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// No socket for containers can be made.
    #[error("cannot make a socket for containers")]
    Socket(#[source] io::Error),
    /// No client for the upstream can be made.
    #[error("cannot make a client for the upstream")]
    Client(#[source] reqwest::Error),
    /// A base URL makes no sense.
    #[error("found `{url}` as the base URL of {service}: {message}")]
    Upstream {
        /// Whose.
        service: Service,
        /// As it was given.
        url: String,
        /// The reason.
        message: String,
    },
    /// A cassette cannot be written or read.
    #[error("cannot use the cassette `{}`: {message}", file.display())]
    Cassette {
        file: PathBuf,
        /// The reason.
        message: String,
    },
}
