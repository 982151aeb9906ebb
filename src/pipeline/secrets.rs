//! Secrets in the wrong place: a user may write a key into the file, and no error about it may show the key.

use super::file::strings;
use super::file::tables::ProviderTable;
use super::model::SourceFile;
use super::providers::{is_variable, masked_url};
use sessions::import::has_secret;

/// Masks every value of a file that looks like a secret, for all that is shown or kept of it. The lengths of values
/// stay the same, so places do, too.
pub(super) fn mask_secrets(file: &SourceFile) -> SourceFile {
    let mut text = file.text.to_string();
    let mut before = None;
    for (path, value, place) in strings(file) {
        let is_secret =
            is_secret(&path, &value) || is_key_of_command(&path, before.as_ref(), &value);
        before = Some((path.clone(), value));
        if is_secret {
            let Some(secret) = text.get(place.clone()) else {
                continue;
            };
            // Of an address the rest stays: a check has to tell what is wrong with it.
            let masked = if path.last().is_some_and(|key| key == "base_url") {
                masked_url(secret)
            } else {
                secret.chars().map(mask).collect()
            };
            text.replace_range(place, &masked);
        }
    }
    SourceFile {
        text: text.into(),
        ..file.clone()
    }
}

/// The mask for a character of a secret, with as many bytes; quotation marks and line ends stay.
fn mask(c: char) -> String {
    if matches!(c, '"' | '\'' | '\n') {
        c.to_string()
    } else {
        "*".repeat(c.len_utf8())
    }
}

/// Whether a value is a key among the arguments of a program; `before` is the string before it.
fn is_key_of_command(path: &[String], before: Option<&(Vec<String>, String)>, value: &str) -> bool {
    let is_command = path.last().is_some_and(|key| key == "command");
    let option = before
        .filter(|(other, _)| other == path)
        .map_or("", |(_, option)| option);
    is_command && is_key(option, value)
}

/// Whether a value may be a secret: of an unknown key of a provider, in the place of a variable's name, or credentials
/// in a URL.
fn is_secret(path: &[String], value: &str) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["providers", _, rest @ ..] | ["profile", _, "providers", _, rest @ ..] => match rest {
            ["api_key_env"] => !is_variable(value),
            ["base_url"] => value.contains(['@', '?']),
            ["limits", "limit_groups"] => false,
            [key] => !ProviderTable::keys().contains(key),
            _ => true,
        },
        ["cache", "remote"] | ["profile", _, "cache", "remote"] => value.contains(['@', '?']),
        [.., "secrets" | "env" | "name" | "answerers" | "identity"] => false,
        // A key in a table that takes none, such as `api_key` in [[compress]]: the error about it shows its line.
        [.., key] => is_named_key(key, value),
        [] => false,
    }
}

/// Whether an argument looks like a key: by its form, or as a long random value of an option that is named like one.
/// `before` is the argument before it.
pub(super) fn is_key(before: &str, argument: &str) -> bool {
    let (option, value) = argument
        .split_once('=')
        .filter(|_| argument.starts_with('-'))
        .unwrap_or((before, argument));
    let option = if option.starts_with('-') { option } else { "" };
    has_secret(argument) || is_named_key(option, value)
}

/// Whether a long random value begins like a key, or has a name like one.
fn is_named_key(name: &str, value: &str) -> bool {
    const NAMES: [&str; 5] = ["key", "token", "secret", "password", "credential"];
    let name = name.to_ascii_lowercase();
    is_random(value) && (value.starts_with("sk-") || NAMES.iter().any(|one| name.contains(one)))
}

/// Whether a word is long and mixes letters and digits, as no name and no path does.
fn is_random(word: &str) -> bool {
    const SHORTEST: usize = 16;
    word.len() >= SHORTEST
        && !word.contains(['/', ' ', '.'])
        && word.contains(|c: char| c.is_ascii_digit())
        && word.contains(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_among_the_arguments_of_a_compressor_is_masked() {
        for table in ["[[compress]]\n", "[[profile.ci.compress]]\n"] {
            let text = format!("{table}command = [\"run\", \"--api-key\", \"a1b2c3d4e5f6g7h8\"]\n");
            let file = SourceFile::new("pipeline.toml", text);
            let masked = mask_secrets(&file).text;
            assert!(
                masked.contains("--api-key") && !masked.contains("a1b2"),
                "{masked}"
            );
        }
    }
}
