//! The logins that agents store for their users, and what of them a session is given: what lets it ask a model until the
//! login ends, never what could renew it. Agents renew a login by replacing it, which would sign the user out.

use super::Additions;
use super::sign_in::SignInError;
use assize_contracts::{JsonMap, unix_ms_now};
use assize_process::host_variable;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

/// The way to use an agent's stored login.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    pub(super) form: LoginForm,
    /// A variable that holds the same kind of token.
    #[serde(default)]
    pub(super) variable: Option<String>,
    /// The additions that make the agent use it.
    #[serde(default)]
    pub(super) added: Additions,
    /// The command to sign in again.
    pub(super) renew: String,
}

/// The files that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LoginForm {
    ClaudeCode,
    Codex,
}

/// The login that was read from a user's home.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoredLogin {
    pub(super) file: PathBuf,
    /// The file that the agent finds in the session's home: its path and content.
    pub(super) content: (&'static str, String),
    /// Also what is not handed on.
    pub(super) secrets: Vec<String>,
    pub(super) is_subscription: bool,
    pub(super) expires_ms: Option<i64>,
}

/// A login that ends sooner than this is of no use any more.
const SHORTEST_LIFE_MS: i64 = 60_000;

/// True when settings ask for the login of the user.
pub(super) fn is_wanted(overrides: &JsonMap) -> bool {
    overrides.get("login").is_some_and(|login| login == "user")
}

impl Login {
    /// The user's stored login. Read once, so that what agents get is what is kept out of records.
    pub(super) fn read(&self) -> Result<StoredLogin, SignInError> {
        type Known = HashMap<PathBuf, Result<StoredLogin, SignInError>>;
        static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
        let Some(file) = self.form.file() else {
            return Err(self.error("the home directory is unknown: `HOME` is not set".to_owned()));
        };
        let mut known = crate::lock(&KNOWN);
        let read = || self.read_file(&file);
        known.entry(file.clone()).or_insert_with(read).clone()
    }

    fn read_file(&self, file: &Path) -> Result<StoredLogin, SignInError> {
        let wrong = |what: String| self.error(format!("{what} at {}", file.display()));
        let text = std::fs::read_to_string(file)
            .map_err(|error| wrong(format!("no login is stored ({error})")))?;
        let stored: Value = serde_json::from_str(&text)
            .map_err(|_| wrong("the stored login is no JSON".to_owned()))?;
        let login = match self.form {
            LoginForm::ClaudeCode => claude_code(file, &stored),
            LoginForm::Codex => codex(file, &stored),
        };
        login.ok_or_else(|| wrong("found no access token in what is stored".to_owned()))
    }

    /// A login that has ended would only make every trial void.
    pub(super) fn check_age(&self, stored: &StoredLogin) -> Result<(), SignInError> {
        match stored.expires_ms {
            Some(at) if at < unix_ms_now() + SHORTEST_LIFE_MS => {
                let at = assize_contracts::Timestamp::from_unix_ms(at);
                let file = stored.file.display();
                Err(self.error(format!("the login at {file} expired at {}", at.as_str())))
            }
            _ => Ok(()),
        }
    }

    fn error(&self, message: String) -> SignInError {
        let hint = self.renew.clone();
        SignInError { message, hint }
    }
}

impl LoginForm {
    /// The file in which the agent keeps it: in its own directory, which a variable may name.
    pub(super) fn file(self) -> Option<PathBuf> {
        let (variable, usual, name) = match self {
            Self::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
            Self::Codex => ("CODEX_HOME", ".codex", "auth.json"),
        };
        let named = host_variable(variable).map(PathBuf::from);
        let directory =
            named.or_else(|| Some(PathBuf::from(host_variable("HOME")?).join(usual)))?;
        Some(directory.join(name))
    }

    /// The service that knows the login: the variable with its address, and the address.
    pub(super) fn service(self, is_subscription: bool) -> (&'static str, &'static str) {
        match (self, is_subscription) {
            (Self::ClaudeCode, _) => ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
            (Self::Codex, true) => ("OPENAI_BASE_URL", "https://chatgpt.com/backend-api/codex"),
            (Self::Codex, false) => ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
        }
    }
}

/// Without the right to read the user's profile, which a session has no use for.
fn claude_code(file: &Path, stored: &Value) -> Option<StoredLogin> {
    let login = stored.get("claudeAiOauth")?;
    let token = text(login, "accessToken")?;
    let expires_ms = login.get("expiresAt").and_then(Value::as_i64);
    let copy = json!({
        "claudeAiOauth": {
            "accessToken": token,
            "expiresAt": expires_ms,
            "scopes": ["user:inference"],
            "subscriptionType": login.get("subscriptionType"),
        }
    });
    Some(StoredLogin {
        file: file.to_owned(),
        content: (".claude/.credentials.json", copy.to_string()),
        secrets: texts(login, &["accessToken", "refreshToken"]),
        is_subscription: true,
        expires_ms,
    })
}

/// An account of ChatGPT, or a key.
fn codex(file: &Path, stored: &Value) -> Option<StoredLogin> {
    let kept = |content: Value, secrets, is_subscription, expires_ms| StoredLogin {
        file: file.to_owned(),
        content: (".codex/auth.json", content.to_string()),
        secrets,
        is_subscription,
        expires_ms,
    };
    let tokens = stored.get("tokens").filter(|tokens| tokens.is_object());
    let token = tokens.and_then(|tokens| text(tokens, "access_token"));
    let Some((tokens, token)) = tokens.zip(token) else {
        let key = text(stored, "OPENAI_API_KEY")?;
        let copy = json!({ "auth_mode": "apikey", "OPENAI_API_KEY": key });
        return Some(kept(copy, vec![key], false, None));
    };
    let claims = claims(&token).unwrap_or_default();
    let account = claims.get("https://api.openai.com/auth");
    let copy = json!({
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": null,
        "tokens": {
            "id_token": unsigned(&json!({ "https://api.openai.com/auth": account })),
            "access_token": token,
            "refresh_token": "",
            "account_id": tokens.get("account_id"),
        },
        "last_refresh": assize_contracts::Timestamp::now(),
    });
    let names = ["access_token", "refresh_token", "id_token"];
    let mut secrets = texts(tokens, &names);
    secrets.extend(text(stored, "OPENAI_API_KEY"));
    let expires_ms = claims.get("exp").and_then(Value::as_i64);
    Some(kept(
        copy,
        secrets,
        true,
        expires_ms.map(|s| s.saturating_mul(1000)),
    ))
}

/// The claims of a JSON Web Token. Its signature is not checked here.
fn claims(token: &str) -> Option<Value> {
    let payload = token.split('.').nth(1)?;
    let bytes = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// A token that names the agent's account, and nothing about the person.
fn unsigned(claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.none", part(&json!({ "alg": "none" })), part(claims))
}

fn text(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn texts(value: &Value, keys: &[&str]) -> Vec<String> {
    keys.iter().filter_map(|key| text(value, key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(login: &StoredLogin) -> Value {
        serde_json::from_str(&login.content.1).unwrap()
    }

    #[test]
    fn what_could_renew_a_login_is_not_handed_on() {
        let stored = json!({ "claudeAiOauth": {
            "accessToken": "sk-ant-oat01-made-up", "refreshToken": "sk-ant-ort01-made-up",
            "expiresAt": 1_794_948_104_000_i64, "scopes": ["user:inference", "user:profile"],
        }});
        let login = claude_code(Path::new("/f"), &stored).unwrap();
        assert!(!login.content.1.contains("ort01"), "{}", login.content.1);
        assert_eq!(
            content(&login)["claudeAiOauth"]["accessToken"],
            "sk-ant-oat01-made-up"
        );
        assert_eq!(login.expires_ms, Some(1_794_948_104_000));
        assert_eq!(
            login.secrets,
            ["sk-ant-oat01-made-up", "sk-ant-ort01-made-up"]
        );
    }

    #[test]
    fn an_account_is_named_without_the_person() {
        let auth = json!({ "chatgpt_account_id": "acc-1", "chatgpt_plan_type": "plus" });
        let claim = |more: Value| {
            unsigned(
                &json!({ "exp": 1_794_948_104, "https://api.openai.com/auth": auth, "more": more }),
            )
        };
        let stored = json!({ "OPENAI_API_KEY": null, "tokens": {
            "id_token": claim(json!("someone@example.com")), "access_token": claim(Value::Null),
            "refresh_token": "rt-made-up", "account_id": "acc-1",
        }});
        let login = codex(Path::new("/f"), &stored).unwrap();
        let copy = content(&login);
        assert_eq!(copy["tokens"]["refresh_token"], "");
        let told = claims(copy["tokens"]["id_token"].as_str().unwrap()).unwrap();
        assert_eq!(told, json!({ "https://api.openai.com/auth": auth }));
        assert_eq!(login.expires_ms, Some(1_794_948_104_000));
        assert_eq!(login.secrets.len(), 3);
        assert!(login.is_subscription);
    }

    #[test]
    fn a_stored_key_is_a_key() {
        let stored = json!({ "auth_mode": "apikey", "OPENAI_API_KEY": "sk-made-up" });
        let login = codex(Path::new("/f"), &stored).unwrap();
        assert!(!login.is_subscription);
        assert_eq!(content(&login)["OPENAI_API_KEY"], "sk-made-up");
        assert!(codex(Path::new("/f"), &json!({ "OPENAI_API_KEY": null })).is_none());
    }
}
