//! The reasons why trials did not pass: the most frequent ones of every mode, and the command that shows one.

use super::{one_line, plain, print, terminal_width, wrapped_after};
use assize_report::Summary;
use console::style;

/// Reasons listed for every mode.
const MOST: usize = 3;

/// The longest message; `show` prints all of it.
const LONGEST: usize = 300;

/// Prints the reasons; `run` is what to type for the run.
pub(crate) fn print_reasons(summary: &Summary, run: &str) {
    let has_any = summary
        .modes
        .iter()
        .any(|(_, mode)| !mode.reasons.is_empty());
    if !has_any {
        return;
    }
    print(style("why trials did not pass").dim().to_string());
    for (name, mode) in summary.modes.iter() {
        for reason in mode.reasons.iter().take(MOST) {
            let place = reason.example.as_ref().map(|trial| trial.position);
            let look = place.map(|position| format!("assize show {}/{position}", plain(run)));
            let words = one_line(&reason.words(), LONGEST);
            print(with_command(&format!("  {}: ", plain(name)), &words, look));
        }
        let rest = mode.reasons.iter().skip(MOST);
        let (kinds, trials) = rest.fold((0, 0), |(kinds, trials), reason| {
            (kinds + 1, trials + reason.trials)
        });
        if kinds > 0 {
            let mode = plain(&shell_word(name));
            let look = format!("assize show {} --mode {mode}", plain(run));
            let words = format!("{trials} × other reasons");
            print(with_command(
                &format!("  {}: ", plain(name)),
                &words,
                Some(look),
            ));
        }
    }
}

/// The reason and the command behind it, which has a line of its own where both do not fit on one.
fn with_command(first: &str, words: &str, command: Option<String>) -> String {
    let reason = wrapped_after(first, words);
    let Some(command) = command else {
        return reason;
    };
    let length = |text: &str| console::measure_text_width(text);
    let whole = length(&reason) + 3 + length(&command);
    let fits = !reason.contains('\n') && terminal_width().is_none_or(|width| whole <= width);
    let between = if fits { " — " } else { "\n    " };
    let command = style(command).dim();
    format!("{reason}{between}{command}")
}

fn shell_word(text: &str) -> String {
    shlex::try_quote(text).map_or_else(|_| text.to_owned(), |quoted| quoted.into_owned())
}
