//! Bodies that property tests and fuzz targets share: whatever the secret and the text, the secret is gone.

use crate::{Redactor, Secrets};

/// The first part is a secret, the rest a text around it.
pub fn secrets(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (secret, text) = text.split_once('\n').unwrap_or((&text, ""));
    // A placeholder beside the right text may look like a value with brackets, and `redacted` stands in every placeholder.
    let is_placeholder = secret.contains(['[', ']']) || "redacted-1".contains(secret);
    if secret.len() < 8 || is_placeholder {
        return;
    }
    let secrets = Secrets::default();
    secrets.declare("X", secret, true);
    let redactor = Redactor::new(&secrets);
    let half = text.floor_char_boundary(text.len() / 2);
    let whole = format!("{}{secret}{}", &text[..half], &text[half..]);
    let clean = redactor.text(&whole);
    assert!(!clean.contains(secret), "{clean}");
    let json = serde_json::to_vec(&whole).unwrap_or_default();
    assert!(redactor.concerns(&json));
    let again = redactor.text(&clean);
    assert!(!again.contains(secret));
}
