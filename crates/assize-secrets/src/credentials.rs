//! Credentials in addresses: `https://user:password@host` and `?api_key=…`.

use crate::classify::is_secret_name;
use crate::forms::from_percent;

/// A secret part of an address.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The parameter, or `password`.
    pub name: String,
    /// The value as it is written, percent escapes and all.
    pub written: String,
    /// The value itself.
    pub value: String,
}

/// The password of a URL, and the credentials in its query. Empty for what is no URL.
pub fn in_url(url: &str) -> Vec<Credential> {
    let Some((_, rest)) = url.split_once("://") else {
        return Vec::new();
    };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let password = user.map(|user| user.split_once(':').map_or(user, |(_, password)| password));
    let password = password.filter(|text| !text.is_empty());
    let mut found: Vec<Credential> = password
        .map(|text| credential("password", text))
        .into_iter()
        .collect();
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    found.extend(in_query(query.split('#').next().unwrap_or_default()));
    found
}

/// The credentials in a query, recognized by the names of its parameters.
pub fn in_query(query: &str) -> Vec<Credential> {
    let parts = query.split('&').filter_map(|part| part.split_once('='));
    let secret = parts.filter(|(name, value)| is_secret_parameter(name) && !value.is_empty());
    secret
        .map(|(name, value)| credential(name, value))
        .collect()
}

/// A path with query, or a URL, without the parameters that hold credentials and without a password.
pub fn without_credentials(address: &str) -> String {
    let (front, query) = match address.split_once('?') {
        Some((front, query)) => (front, Some(query)),
        None => (address, None),
    };
    let mut kept = without_password(front);
    let is_kept = |part: &&str| {
        let name = part.split_once('=').map_or(*part, |(name, _)| name);
        !is_secret_parameter(name)
    };
    let query: Vec<&str> = query
        .iter()
        .flat_map(|query| query.split('&'))
        .filter(is_kept)
        .collect();
    if !query.is_empty() {
        kept.push('?');
        kept.push_str(&query.join("&"));
    }
    kept
}

fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://[redacted]@{host}{}", &rest[end..]),
        None => url.to_owned(),
    }
}

fn is_secret_parameter(name: &str) -> bool {
    is_secret_name(&from_percent(name))
}

fn credential(name: &str, written: &str) -> Credential {
    Credential {
        name: from_percent(name),
        written: written.to_owned(),
        value: from_percent(&written.replace('+', " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: &[&str]) {
        let found: Vec<String> = in_url(url).into_iter().map(|found| found.value).collect();
        assert_eq!(found, expected, "{url}");
    }

    #[test]
    fn passwords_and_parameters_are_found() {
        check(
            "https://me:p%40ss@host/x?api_key=K1&alt=sse",
            &["p@ss", "K1"],
        );
        check("https://token-only@host", &["token-only"]);
        check("postgres://u:a:b@c@host:5432/db", &["a:b@c"]);
        check("https://host/?access_token=T+1#f", &["T 1"]);
        check("https://host/a@b", &[]);
        check("host?key=1", &[]);
    }

    #[test]
    fn addresses_keep_the_rest() {
        for (address, kept) in [
            ("/m:generate?alt=sse&key=AIza", "/m:generate?alt=sse"),
            ("/m?key=AIza", "/m"),
            ("/m?api%5Fkey=AIza&x", "/m?x"),
            ("/v1/messages?beta=true", "/v1/messages?beta=true"),
            ("https://me:pw@host/v1?sig=1", "https://[redacted]@host/v1"),
        ] {
            assert_eq!(without_credentials(address), kept);
        }
    }
}
