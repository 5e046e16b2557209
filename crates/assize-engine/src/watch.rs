//! Reports calls that take long.

use crate::event::{Event, Listener};
use futures_util::poll;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// The interval of reports about a wait.
const STEP: Duration = Duration::from_secs(10);

/// Awaits a call into a plugin and reports every ten seconds that it is still under way. `call` is its name, word by word.
pub(crate) async fn watched<T>(
    listener: &dyn Listener,
    call: &[&str],
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    // Most calls are over at once and need no timer.
    if let Poll::Ready(done) = poll!(work.as_mut()) {
        return done;
    }
    let started = Instant::now();
    loop {
        if let Ok(done) = tokio::time::timeout(STEP, work.as_mut()).await {
            return done;
        }
        listener.on_event(&Event::Waiting {
            call: &call.join(" "),
            seconds: started.elapsed().as_secs(),
        });
    }
}
