//! The services that agents reach through base URLs: which variables name them, and where they really are.

use super::CaptureError;
use assize_secrets::{Secrets, without_credentials};
use std::collections::BTreeMap;
use std::fmt;

/// A provider of LLM APIs, as agents know it by one base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// Anthropic, and everything that speaks Messages.
    Anthropic,
    /// OpenAI, and everything that speaks Chat Completions or Responses.
    OpenAi,
    Gemini,
}

/// An environment variable that holds a base URL.
struct Variable {
    name: &'static str,
    service: Service,
    /// Agents expect the version (`/v1`) inside the variable.
    has_version: bool,
    /// Set for every agent; others only replace what is already set, because setting them changes more than the
    /// address.
    is_usual: bool,
}

const VARIABLES: [Variable; 7] = [
    usual("ANTHROPIC_BASE_URL", Service::Anthropic, false),
    usual("OPENAI_BASE_URL", Service::OpenAi, true),
    usual("OPENAI_API_BASE", Service::OpenAi, true),
    usual("GOOGLE_GEMINI_BASE_URL", Service::Gemini, false),
    other("OPENAI_HOST", Service::OpenAi, false),
    other("COPILOT_PROVIDER_BASE_URL", Service::OpenAi, true),
    other("CODEX_OSS_BASE_URL", Service::OpenAi, true),
];

const fn usual(name: &'static str, service: Service, has_version: bool) -> Variable {
    Variable {
        name,
        service,
        has_version,
        is_usual: true,
    }
}

const fn other(name: &'static str, service: Service, has_version: bool) -> Variable {
    Variable {
        is_usual: false,
        ..usual(name, service, has_version)
    }
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::Gemini];

    /// The word in suites and in the proxy's paths.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
        }
    }

    /// The service of that word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|service| service.as_str() == word)
    }

    fn real_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The real address of each service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstreams(BTreeMap<Service, Upstream>);

/// A base URL in two parts, because some variables hold the version and others do not.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Upstream {
    root: String,
    /// `/v1` or the like, or nothing.
    version: String,
}

impl Upstreams {
    /// As given, else as a variable already says, else the real service.
    pub fn resolve(
        given: &BTreeMap<Service, String>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, CaptureError> {
        let upstream = |service| {
            let set = |variable: &Variable| {
                let value = (variable.service == service).then(|| environment(variable.name));
                value.flatten().filter(|url| !url.trim().is_empty())
            };
            let url = given.get(&service).cloned();
            let url = url.or_else(|| VARIABLES.iter().find_map(set));
            Upstream::parse(service, url.as_deref().unwrap_or(service.real_url()))
        };
        let all = Service::ALL.into_iter();
        let all = all.map(|service| Ok((service, upstream(service)?)));
        Ok(Self(all.collect::<Result<_, CaptureError>>()?))
    }

    /// Adds the passwords in these addresses to the secrets.
    pub fn add_credentials_to(&self, secrets: &Secrets) {
        for (service, upstream) in &self.0 {
            secrets.add_url(service.as_str(), &upstream.root);
        }
    }

    /// The address of a request that came to the proxy with this rest of a path.
    pub(super) fn address(&self, service: Service, rest: &str) -> String {
        format!("{}{rest}", self.0[&service].root)
    }

    /// The base URL of a service as its users would write it.
    pub fn base_url(&self, service: Service) -> String {
        let Upstream { root, version } = &self.0[&service];
        format!("{root}{version}")
    }

    /// The path after the proxy's prefix in a base URL.
    pub(super) fn version(&self, service: Service) -> &str {
        &self.0[&service].version
    }
}

impl Upstream {
    fn parse(service: Service, url: &str) -> Result<Self, CaptureError> {
        let wrong = |message: String| CaptureError::Upstream {
            service,
            url: without_credentials(url),
            message,
        };
        let parsed = reqwest::Url::parse(url.trim()).map_err(|error| wrong(error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none() {
            return Err(wrong("expected http:// or https:// and a host".to_owned()));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(wrong("expected no `?` and no `#`".to_owned()));
        }
        let whole = parsed.as_str().trim_end_matches('/');
        let (root, last) = whole.rsplit_once('/').unwrap_or((whole, ""));
        Ok(match parsed.path() != "/" && is_version(last) {
            true => Self {
                root: root.to_owned(),
                version: format!("/{last}"),
            },
            false => Self {
                root: whole.to_owned(),
                version: String::new(),
            },
        })
    }
}

/// `v1`, `v1beta`, `v4`.
fn is_version(segment: &str) -> bool {
    let rest = segment.strip_prefix('v').unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_digit())
        && rest.chars().all(|c| c.is_ascii_alphanumeric())
}

/// The variables that send an agent with this environment through the proxy.
pub(super) fn variables(
    upstreams: &Upstreams,
    prefix: impl Fn(Service) -> String,
    environment: impl Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for variable in &VARIABLES {
        if !variable.is_usual && environment(variable.name).is_none() {
            continue;
        }
        let version = match variable.has_version {
            true => upstreams.version(variable.service),
            false => "",
        };
        let url = format!("{}{version}", prefix(variable.service));
        variables.insert(variable.name.to_owned(), url);
    }
    // An agent behind a proxy of its own must still find this one.
    let has_proxy = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    if has_proxy.iter().any(|name| environment(name).is_some()) {
        for name in ["NO_PROXY", "no_proxy"] {
            let known = environment(name).filter(|hosts| !hosts.trim().is_empty());
            let known = known.map_or(String::new(), |hosts| format!("{hosts},"));
            variables.insert(name.to_owned(), format!("{known}127.0.0.1"));
        }
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(given: &[(Service, &str)], set: &[(&str, &str)]) -> Upstreams {
        let given = given
            .iter()
            .map(|(service, url)| (*service, (*url).to_owned()));
        Upstreams::resolve(&given.collect(), lookup(set)).unwrap()
    }

    fn lookup<'a>(set: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + use<'a> {
        |name| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        }
    }

    #[test]
    fn the_suite_goes_before_the_environment_and_that_before_the_real_service() {
        let set = [
            ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1/"),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:2"),
        ];
        let upstreams = resolved(&[(Service::Anthropic, "https://a.test/x")], &set);
        let address = |service| upstreams.address(service, "/v1/messages?beta=true");
        assert_eq!(
            address(Service::Anthropic),
            "https://a.test/x/v1/messages?beta=true"
        );
        assert_eq!(
            upstreams.address(Service::OpenAi, "/v1/responses"),
            "http://127.0.0.1:1/v1/responses"
        );
        assert_eq!(
            upstreams.address(Service::Gemini, "/v1beta/models"),
            "https://generativelanguage.googleapis.com/v1beta/models"
        );
    }

    #[test]
    fn variables_hold_the_version_as_the_upstream_does() {
        let variables = |url| {
            let upstreams = resolved(&[(Service::OpenAi, url)], &[]);
            let prefix = |service: Service| format!("http://p/{service}");
            variables(&upstreams, prefix, lookup(&[("OPENAI_HOST", "x")]))
        };
        let all = variables("https://api.test/v1");
        assert_eq!(all["OPENAI_BASE_URL"], "http://p/openai/v1");
        assert_eq!(all["OPENAI_HOST"], "http://p/openai");
        assert_eq!(all["ANTHROPIC_BASE_URL"], "http://p/anthropic");
        assert!(!all.contains_key("COPILOT_PROVIDER_BASE_URL"));
        let all = variables("https://api.test/compatible");
        assert_eq!(all["OPENAI_BASE_URL"], "http://p/openai");
    }

    #[test]
    fn an_agent_behind_a_proxy_still_finds_this_one() {
        let upstreams = resolved(&[], &[]);
        let set = [("HTTP_PROXY", "http://corp:3128"), ("NO_PROXY", "corp")];
        let all = variables(&upstreams, |service| service.to_string(), lookup(&set));
        assert_eq!(all["NO_PROXY"], "corp,127.0.0.1");
        assert_eq!(all["no_proxy"], "127.0.0.1");
    }

    #[test]
    fn what_is_no_base_url_is_refused() {
        for url in [
            "api.test",
            "ftp://a.test",
            "http://",
            "http://a.test/?x=1",
            "",
        ] {
            let given = BTreeMap::from([(Service::OpenAi, url.to_owned())]);
            assert!(Upstreams::resolve(&given, |_| None).is_err(), "{url}");
        }
    }
}
