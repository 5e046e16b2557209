//! The way an agent signs in: by a variable with a key or token, or by the login that its user has stored for it.

use super::Recipe;
use super::login::{StoredLogin, is_wanted};
use crate::settings::variable;
use assize_contracts::JsonMap;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The way sessions of a mode sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// The credential that the agent signs in with.
    pub with: Credential,
    /// True when it belongs to a subscription, so that tokens are not billed one by one.
    pub is_subscription: bool,
    /// Other credentials that are there and are not used.
    pub not_used: Vec<String>,
}

/// The source of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A variable of the environment.
    Variable(String),
    /// The login that the agent itself stored for its user.
    Stored {
        file: PathBuf,
        /// Its expiry, in milliseconds since 1970. Absent where the file has none.
        expires_ms: Option<i64>,
    },
}

/// The reason why an agent cannot sign in, and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInError {
    /// The missing credential.
    pub message: String,
    /// The command to type.
    pub hint: String,
}

impl SignIn {
    /// As it is written into manifests and by `doctor --json`.
    pub fn to_json(&self) -> Value {
        let kind = match self.is_subscription {
            true => "subscription",
            false => "key",
        };
        let (with, expires_at) = match &self.with {
            Credential::Variable(name) => (name.clone(), None),
            Credential::Stored { file, expires_ms } => {
                let at = expires_ms.map(assize_contracts::Timestamp::from_unix_ms);
                (file.display().to_string(), at)
            }
        };
        json!({ "kind": kind, "with": with, "expiresAt": expires_at, "notUsed": self.not_used })
    }
}

impl Recipe {
    /// The way sessions with these settings and this environment of their mode sign in. `None` where that cannot be known
    /// here: the agent has its user's home, reaches a cloud service, or needs no credential.
    pub fn sign_in(
        &self,
        overrides: &JsonMap,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<SignIn>, SignInError> {
        let is_own_home = overrides.get("isolated") == Some(&json!(false));
        if self.keys.is_empty() || is_own_home || self.goes_another_way(overrides, environment) {
            return Ok(None);
        }
        let set: Vec<&String> = self
            .keys
            .iter()
            .filter(|name| variable(environment, name).is_some())
            .collect();
        if is_wanted(overrides) {
            return self.by_login(&set, environment).map(Some);
        }
        match set.as_slice() {
            [] => Err(self.no_key()),
            [used, others @ ..] => Ok(Some(SignIn {
                with: Credential::Variable((*used).clone()),
                is_subscription: self.subscription_variable() == Some(used),
                not_used: others.iter().map(|name| (*name).clone()).collect(),
            })),
        }
    }

    /// A suite that asks for its user's login never gets a key instead, which would be billed.
    fn by_login(
        &self,
        set: &[&String],
        environment: &BTreeMap<String, String>,
    ) -> Result<SignIn, SignInError> {
        let token = self.subscription_variable();
        let keys = || {
            set.iter()
                .filter(|name| Some(name.as_str()) != token.map(String::as_str))
        };
        if let Some(key) = keys().find(|name| environment.contains_key(name.as_str())) {
            return Err(SignInError {
                message: format!(
                    "the mode asks for `login: user`, and its `environment` sets `{key}`"
                ),
                hint: "leave one of the two out: the agent would take the key".to_owned(),
            });
        }
        let not_used = keys().map(|name| (*name).clone()).collect();
        if let Some(token) = token.filter(|token| variable(environment, token).is_some()) {
            return Ok(SignIn {
                with: Credential::Variable(token.clone()),
                is_subscription: true,
                not_used,
            });
        }
        let login = self.stored_login()?;
        Ok(SignIn {
            with: Credential::Stored {
                file: login.file.clone(),
                expires_ms: login.expires_ms,
            },
            is_subscription: login.is_subscription,
            not_used,
        })
    }

    /// The login of the user, if it can be used now.
    fn stored_login(&self) -> Result<StoredLogin, SignInError> {
        let Some(login) = &self.login else {
            return Err(SignInError {
                message: format!("`{}` stores no login that could be copied", self.name),
                hint: "leave `login` out, and set a key".to_owned(),
            });
        };
        let stored = login.read()?;
        login.check_age(&stored)?;
        Ok(stored)
    }

    /// The login that a session with these settings is given in its home.
    pub(super) fn login_for_session(
        &self,
        overrides: &JsonMap,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<StoredLogin>, SignInError> {
        if !is_wanted(overrides) {
            return Ok(None);
        }
        let signed = self.sign_in(overrides, environment)?;
        match signed.map(|signed| signed.with) {
            Some(Credential::Stored { .. }) => self.stored_login().map(Some),
            _ => Ok(None),
        }
    }

    /// Everything of a stored login that must not reach any record, where these settings ask for it.
    pub fn login_secrets(&self, overrides: &JsonMap) -> Vec<String> {
        let login = self.login.as_ref().filter(|_| is_wanted(overrides));
        let stored = login.and_then(|login| login.read().ok());
        stored.map(|stored| stored.secrets).unwrap_or_default()
    }

    /// The services that a login is meant for, by the variables that hold their addresses. A variable of Assize's own
    /// environment does not send it elsewhere; the suite and the mode can.
    pub(crate) fn base_urls_of_login(&self, overrides: &JsonMap) -> BTreeMap<String, String> {
        if !is_wanted(overrides) {
            return BTreeMap::new();
        }
        let Some(login) = &self.login else {
            return BTreeMap::new();
        };
        let stored = login.read().ok();
        let is_subscription = stored.is_none_or(|stored| stored.is_subscription);
        let (name, url) = login.form.service(is_subscription);
        BTreeMap::from([(name.to_owned(), url.to_owned())])
    }

    /// The variable that holds the token of a subscription.
    fn subscription_variable(&self) -> Option<&String> {
        self.login.as_ref()?.variable.as_ref()
    }

    /// True when a variable of another way to a model reaches the agent.
    fn goes_another_way(
        &self,
        overrides: &JsonMap,
        environment: &BTreeMap<String, String>,
    ) -> bool {
        let passed: Vec<&str> = ["pass_env", "passEnv"]
            .iter()
            .filter_map(|key| overrides.get(*key)?.as_array())
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let reaches = |name: &String| {
            environment.contains_key(name)
                || (passed.contains(&name.as_str()) && variable(environment, name).is_some())
        };
        self.other_ways.iter().any(reaches)
    }

    /// The variable that most people set.
    fn usual_key(&self) -> &str {
        let mut keys = self.keys.iter();
        let usual = keys.find(|name| name.ends_with("_API_KEY"));
        usual.or(self.keys.first()).map_or("", String::as_str)
    }

    fn no_key(&self) -> SignInError {
        let names: Vec<String> = self.keys.iter().map(|name| format!("`{name}`")).collect();
        let login = match &self.login {
            Some(login) if login.form.file().is_some_and(|file| file.exists()) => {
                "; or write `login: user` beside `uses` to sign in with the login that it stored"
            }
            _ => "",
        };
        SignInError {
            message: format!(
                "`{}` has no key: {} is not set",
                self.name,
                names.join(" or ")
            ),
            hint: format!(
                "export {}=…, or set it in the mode's `environment` by `${{env:NAME}}`{login}",
                self.usual_key()
            ),
        }
    }
}
