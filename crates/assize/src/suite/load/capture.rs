//! Providers whose sessions go through the capture proxy.

use super::Loader;
use crate::suite::capture::ProxySpec;
use crate::suite::file::SuiteFile;
use assize_agents::capture::{
    Capture, CaptureError, CaptureSettings, CapturedProvider, Cassette, CassetteMode, Upstreams,
};
use assize_contracts::{Nature, ProviderScope, ProviderSource, SessionProvider};
use assize_llm::Prices;
use assize_secrets::Secrets;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

impl Loader<'_> {
    /// The proxy that sessions go through. Absent when the suite wants none.
    pub(super) fn proxy(
        &mut self,
        file: &SuiteFile,
        directory: &Path,
        prices: &Prices,
        secrets: &Secrets,
    ) -> Option<Proxied> {
        let spec = file.capture.clone().unwrap_or_default();
        if spec.proxy == ProxySpec::Off {
            return None;
        }
        let settings = CaptureSettings {
            upstreams: spec.upstream.given(),
            cassette: spec
                .cassette
                .as_ref()
                .map(|cassette| cassette.settings(directory)),
            required: spec.proxy == ProxySpec::On,
            prices: Some(prices.clone()),
            environment: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            secrets: secrets.clone(),
            skills: self.watched_skills(),
        };
        self.check_capture(&settings);
        Some(Proxied {
            capture: Capture::new(settings),
            is_asked: file.capture.is_some(),
        })
    }

    fn check_capture(&mut self, settings: &CaptureSettings) {
        for (service, url) in &settings.upstreams {
            let given = BTreeMap::from([(*service, url.clone())]);
            if let Err(error) = Upstreams::resolve(&given, |_| None) {
                self.report(
                    &["capture", "upstream", service.as_str()],
                    error.to_string(),
                );
            }
        }
        let Some(cassette) = &settings.cassette else {
            return;
        };
        // Only a cassette to be played must be there already.
        if cassette.mode == CassetteMode::Replay
            && let Err(CaptureError::Cassette { message, .. }) = Cassette::open(cassette.clone())
        {
            let file = cassette.file.display();
            let message = format!("cannot play the cassette `{file}`: {message}");
            let error = self
                .document
                .error(&["capture", "cassette", "file"], message);
            self.errors
                .push(error.hint("record one first: `mode: record`"));
        }
    }
}

/// Puts the proxy in front of the providers that it can serve.
pub(super) struct Proxied {
    capture: Arc<Capture>,
    is_asked: bool,
}

impl Proxied {
    /// The same, but also in front of providers that did not ask for it, where they have no other way to a model.
    pub(super) fn for_everybody_if(self, is_needed: bool) -> Self {
        Self {
            is_asked: self.is_asked || is_needed,
            ..self
        }
    }

    pub(super) fn source(&self, source: ProviderSource) -> ProviderSource {
        match self.is_capturable(&*source.instance()) {
            true => wrapped(source, &self.capture),
            false => source,
        }
    }

    /// Simulated and replayed sessions have no wire, and a provider of a whole mode knows its environment before any session.
    pub(super) fn is_capturable(&self, provider: &dyn SessionProvider) -> bool {
        provider.nature() == Nature::Live
            && provider.scope() == ProviderScope::Session
            && (self.is_asked || provider.wants_capture())
    }
}

fn wrapped(source: ProviderSource, capture: &Arc<Capture>) -> ProviderSource {
    let capture = Arc::clone(capture);
    match source {
        ProviderSource::Factory(make) => ProviderSource::Factory(Arc::new(move || {
            Arc::new(CapturedProvider::new(make(), Arc::clone(&capture)))
        })),
        ProviderSource::Single(provider) => {
            ProviderSource::Single(Arc::new(CapturedProvider::new(provider, capture)))
        }
    }
}
