//! The open sessions of a provider whose sessions are used one call at a time.

use assize_contracts::{ProviderError, SessionHandle, Timestamp};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

pub(crate) struct Sessions<S> {
    open: Mutex<HashMap<String, Shared<S>>>,
}

type Shared<S> = Arc<tokio::sync::Mutex<S>>;

impl<S> Default for Sessions<S> {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
        }
    }
}

impl<S> Sessions<S> {
    /// Keeps a session that has just begun. `seed` distinguishes it from the provider's others.
    pub(crate) fn open(&self, provider: &str, seed: u64, session: S) -> SessionHandle {
        let session_id = format!("{provider}-{seed:016x}");
        let session = Arc::new(tokio::sync::Mutex::new(session));
        crate::lock(&self.open).insert(session_id.clone(), session);
        SessionHandle::new(session_id, provider, Timestamp::now())
    }

    pub(crate) fn find(&self, handle: &SessionHandle) -> Result<Shared<S>, ProviderError> {
        let session = crate::lock(&self.open)
            .get(&handle.session_id)
            .map(Arc::clone);
        session.ok_or_else(|| ProviderError::service(format!("no session `{}`", handle.session_id)))
    }

    /// Forgets a session and gives it back, unless a call is still using it.
    pub(crate) fn close(&self, handle: &SessionHandle) -> Option<S> {
        let session = crate::lock(&self.open).remove(&handle.session_id);
        let session = session.and_then(Arc::into_inner)?;
        Some(session.into_inner())
    }
}
