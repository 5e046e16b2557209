//! Calls into plugins: a panic is caught and becomes an error, so that no plugin takes another trial down.

use assize_contracts::{BoxError, ProviderError};
use futures_util::FutureExt;
use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

/// Awaits a contract call; a panic in it is an error like any other.
pub(crate) async fn guarded<T>(
    call: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    // Nothing of ours is shared mutably with the plugin, so there is no broken state to see afterwards.
    match AssertUnwindSafe(call).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => Err(panic_message(panic.as_ref()).into()),
    }
}

/// The same for providers: a panic is the plugin's fault, never the agent's.
pub(crate) async fn guarded_provider<T>(
    call: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    match AssertUnwindSafe(call).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => {
            Err(ProviderError::service(panic_message(panic.as_ref())).with_code("plugin_panic"))
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("plugin panicked: {}", message.unwrap_or("no message"))
}
