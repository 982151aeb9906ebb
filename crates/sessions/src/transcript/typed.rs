//! What the person typed in a message, without what tools put into it.

use base::lazy_patterns;
use base::text::pattern;
use base::words::WordList;

lazy_patterns! {
    /// The beginning of a block that a tool adds: its tag has two words. A tag of HTML has one.
    BLOCK = pattern(r"<([a-z]+[-_][a-z_-]+)(?: [^>]*)?>");

    /// What stands in the place of an image, of a pasted text or of an interruption.
    NOTE = pattern(r"(?i)\[(?:image|pasted text|request interrupted|document|file)\b[^\]]*\]");

    /// Messages that programs write in the person's name.
    PROGRAM = pattern(
        r"^(?:/[\w:-]+(?:\s|$)|Caveat: The messages below|Stop hook feedback:|Please always provide EXACTLY ONE action|\[SYSTEM NOTIFICATION|Base directory for this skill:|<skill>|\[observation\]|\[message of agent |Ran `)",
    );
}

/// The words of the person in a message of the user's role; `None` if it has none: the commands of a tool, its reminders and
/// its notes are none.
pub fn typed_words(message: &str) -> Option<String> {
    let text = without_blocks(message);
    let text = NOTE.replace_all(&text, "");
    let text = text.trim();
    let says_something = text.contains(char::is_alphanumeric) && !PROGRAM.is_match(text);
    says_something.then(|| text.to_owned())
}

/// A message without the blocks that tools add, whatever they hold. One that nothing ends is none.
fn without_blocks(message: &str) -> String {
    /// Blocks in which editors put what the person typed.
    const TYPED: WordList = WordList("user_query user_request");
    let (mut kept, mut at) = (String::new(), 0);
    while let Some(block) = BLOCK.captures_at(message, at) {
        let (whole, name) = (block.get_match(), &block[1]);
        let close = format!("</{name}>");
        let rest = &message[whole.end()..];
        let inside = rest.split_once(close.as_str()).map(|(inside, _)| inside);
        kept.push_str(&message[at..whole.start()]);
        at = whole.end();
        match inside {
            None => kept.push_str(whole.as_str()),
            Some(inside) => {
                kept.push_str(if TYPED.has(name) { inside } else { "" });
                at += inside.len() + close.len();
            }
        }
    }
    kept + &message[at..]
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
            (
                "<task-notification>\n<summary>Agent done</summary>\n</task-notification>Fix b.py",
                "Fix b.py",
            ),
            ("<user_query>Fix b.py</user_query>", "Fix b.py"),
            (
                "<todo-list> is empty: fix b.py",
                "<todo-list> is empty: fix b.py",
            ),
            ("Ran out of disk: fix b.py", "Ran out of disk: fix b.py"),
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
            "<user_shell_command>\n<command>ls</command>\n</user_shell_command>",
            "Base directory for this skill: /s\n\nNever publish.",
            "[observation]\n14 passed in 0.29s",
            "Ran `ls`\n```\na.py\n```",
            "",
        ] {
            assert_eq!(typed_words(message), None, "{message}");
        }
    }
}
