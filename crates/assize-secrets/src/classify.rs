//! Distinguishes a secret from an ordinary setting, by its name and by how random it looks.

/// Shorter values are removed only where they are declared, or named like a secret.
pub const SHORT: usize = 8;

/// Shorter values are no secrets, whatever their name; removing them would ruin every record.
pub(crate) const SHORTEST_BY_NAME: usize = 4;

const SHORTEST_RANDOM: usize = 16;

/// Words that mark a name as that of a secret.
const WORDS: [&str; 22] = [
    "key",
    "apikey",
    "token",
    "secret",
    "secrets",
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pw",
    "pwd",
    "credential",
    "credentials",
    "creds",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "sig",
    "signature",
    "pat",
    "dsn",
];

/// Ends of words written together, such as `apikey` and `accesstoken`.
const ENDS: [&str; 5] = ["apikey", "token", "secret", "password", "passwd"];

/// Values of switches, which are no secrets even in `USE_AUTH`.
const SWITCHES: [&str; 12] = [
    "true", "false", "none", "null", "yes", "no", "on", "off", "auto", "enabled", "disabled",
    "required",
];

/// True when a variable, header or parameter of this name holds a secret: `OPENAI_API_KEY`, `x-api-key`, `accessToken`.
pub fn is_secret_name(name: &str) -> bool {
    if matches!(name, "PWD" | "OLDPWD") {
        return false;
    }
    words(name)
        .iter()
        .any(|word| WORDS.contains(&word.as_str()) || ENDS.iter().any(|end| word.ends_with(end)))
}

/// True when a value of such a name is worth removing.
pub(crate) fn can_be_secret(value: &str) -> bool {
    let value = value.trim();
    value.len() >= SHORTEST_BY_NAME && !SWITCHES.contains(&value.to_ascii_lowercase().as_str())
}

/// True when a value looks like a key: long, one word, letters and digits mixed as only chance mixes them.
pub(crate) fn looks_random(value: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+/=_-.~".contains(c);
    value.len() >= SHORTEST_RANDOM
        && value.chars().all(is_part)
        && !value.starts_with(['/', '.', '~'])
        && value
            .split(['-', '_', '.', '~', '/'])
            .any(|part| part.len() >= 12 && is_mixed(part))
}

/// Letters and digits take turns, and characters hardly repeat.
fn is_mixed(part: &str) -> bool {
    let classes: Vec<u8> = part.bytes().map(class).collect();
    let turns = classes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let has = |wanted: u8| classes.contains(&wanted);
    has(0) && (has(1) || has(2)) && turns * 5 >= part.len() && entropy(part) >= 2.8
}

fn class(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    }
}

/// Bits per character, from how often each occurs.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let total = text.len() as f64;
    let bits = |&count: &u32| {
        let share = f64::from(count) / total;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}

/// The words of a name, in lower case: `apiKey`, `API_KEY` and `x-api-key` all hold `key`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let starts_word = letter.is_ascii_uppercase() && was_lower;
        if starts_word || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase() || letter.is_ascii_digit();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "OPENAI_API_KEY",
            "DOCS_TOKEN",
            "clientSecret",
            "DB_PASSWORD",
            "x-api-key",
            "api_key",
            "apikey",
            "key",
            "GITHUB_PAT",
            "accessToken",
            "access_token",
            "MYSQL_PWD",
            "Authorization",
            "X-Amz-Signature",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "NODE_ENV",
            "PATH",
            "PWD",
            "KEYBOARD",
            "MAX_TOKENS",
            "TOKENIZERS_PARALLELISM",
            "AUTHOR",
            "PATTERN",
            "content-type",
            "COMPASS",
            "beta",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn keys_look_random_and_settings_do_not() {
        for value in [
            "d41d8cd98f00b204e9800998ecf8427e",
            "sk-ant-api03-Zk9x2LmQ8vTr4WpY1nBc6Hd0",
            "A3T7KQ9ZP2MX8RLW5VYB",
            "Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZg==",
        ] {
            assert!(looks_random(value), "{value}");
        }
        for value in [
            "test",
            "production",
            "production-eu-west-1-cluster",
            "/usr/local/bin:/usr/bin",
            "claude-sonnet-4-5-20250929",
            "https://api.example.test/v1",
            "2026-11-17T12:00:00Z",
            "correct horse battery staple",
            "aaaaaaaaaaaaaaaaaaaaaaa1",
            "x86_64-unknown-linux-gnu",
            "4096",
            "123456789012345678",
        ] {
            assert!(!looks_random(value), "{value}");
        }
    }

    #[test]
    fn switches_are_no_secrets() {
        assert!(!can_be_secret("true") && !can_be_secret("abc") && !can_be_secret(""));
        assert!(can_be_secret("hunter2"));
    }
}
