//! Opens a page in the user's browser.

use crate::terminal::{plain, warn};
use std::path::Path;
use std::process::{Command, Stdio};

/// The program that opens a page where `BROWSER` names none.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Opens a page without waiting for it. Where that is impossible, prints its path.
pub(super) fn open_page(page: &Path) {
    let page = std::path::absolute(page).unwrap_or_else(|_| page.to_owned());
    let browser = std::env::var("BROWSER").unwrap_or_default();
    let named = browser.split(':').find(|name| !name.is_empty());
    let started = Command::new(named.unwrap_or(OPENER))
        .arg(&page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if started.is_err() {
        warn(&plain(&format!(
            "no browser can be started; the page is {}",
            page.display()
        )));
    }
}
