//! Words of command lines that a hint suggests, to be typed into a shell.

/// A word as a shell takes it: in single quotes if a shell would split it or interpret a character of it.
pub fn shell_word(word: &str) -> String {
    // zsh takes `=word` for the path of a program.
    let is_plain = !word.is_empty()
        && !word.starts_with('=')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        let words = ["--label=a", "two words", "it's", "", "=a", "a~1"].map(shell_word);
        assert_eq!(words, ["--label=a", "'two words'", r"'it'\''s'", "''", "'=a'", "'a~1'"]);
    }
}
