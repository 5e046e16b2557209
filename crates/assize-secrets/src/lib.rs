//! Knows the secrets of a run and removes them from text that came from outside.
//!
//! [`Secrets`] is the list: values of the environment that look like secrets or are declared as such, credentials in URLs, keys that
//! the capture proxy sees in requests. Clones share it, so that what one part of the program learns is removed by all. A
//! [`Redactor`] finds these values, plain and in the usual encodings, whole and cut off, and replaces each by the same numbered
//! placeholder everywhere. The owner of a record knows which of its fields hold outside text.
//!
//! What may hold secrets is kept in files and directories that only this user may open; `private.rs` creates them.

mod classify;
mod credentials;
mod forms;
#[doc(hidden)]
pub mod fuzzing;
mod matcher;
mod private;
mod redactor;
mod secrets;

pub use classify::{SHORT, is_secret_name};
pub use credentials::{Credential, in_query, in_url, without_credentials};
pub use private::{
    create_private_directory, create_private_file, private_directory, private_directory_in,
    private_file_options,
};
pub use redactor::Redactor;
pub use secrets::{Reason, Removed, Secrets};
