//! What the person typed in a message, without what tools put into it.

use regex::Captures;

use base::lazy_patterns;
use base::text::pattern;

lazy_patterns! {
    /// A block that a tool adds: its tag has two words. A tag of HTML has one.
    BLOCK = pattern(r"(?s)<([a-z]+[-_][a-z_-]+)(?: [^>]*)?>.*?</([a-z_-]+)>");

    /// What stands in the place of an image, of a pasted text or of an interruption.
    NOTE = pattern(r"(?i)\[(?:image|pasted text|request interrupted|document|file)\b[^\]]*\]");

    /// Messages that programs write in the person's name.
    PROGRAM = pattern(r"^(?:/[\w:-]+(?:\s|$)|Caveat: The messages below|Stop hook feedback:|Please always provide EXACTLY ONE action)");
}

/// The words of the person in a message of the user's role; `None` if it has none: the commands of a tool, its reminders and
/// its notes are none.
pub fn typed_words(message: &str) -> Option<String> {
    let text = BLOCK.replace_all(message, |block: &Captures<'_>| {
        let [whole, open, close] = [0, 1, 2].map(|at| block.get(at).map_or("", |m| m.as_str()));
        if open == close { "" } else { whole }.to_owned()
    });
    let text = NOTE.replace_all(&text, "");
    let text = text.trim();
    let says_something = text.contains(char::is_alphanumeric) && !PROGRAM.is_match(text);
    says_something.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_add_is_taken_out_and_brackets_and_tags_of_the_person_stay() {
        for (message, typed) in [
            ("[image: image/png, 3 bytes]\nFix b.py", "Fix b.py"),
            (
                "Fix b.py <system-reminder>\nbe kind\n</system-reminder>",
                "Fix b.py",
            ),
            (
                "<ide_opened_file>a.py</ide_opened_file>Fix b.py",
                "Fix b.py",
            ),
            ("[Request interrupted by user]Fix b.py", "Fix b.py"),
            ("[URGENT] fix b.py", "[URGENT] fix b.py"),
            ("<b> is missing in </div>", "<b> is missing in </div>"),
            ("/home/dev/b.py: fix it", "/home/dev/b.py: fix it"),
        ] {
            assert_eq!(typed_words(message).as_deref(), Some(typed), "{message}");
        }
        for message in [
            "/compact",
            "/model opus",
            "[Request interrupted by user for tool use]",
            "<command-name>/clear</command-name>",
            "Stop hook feedback: lint failed",
            "",
        ] {
            assert_eq!(typed_words(message), None, "{message}");
        }
    }
}
