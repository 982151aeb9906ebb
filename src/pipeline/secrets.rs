//! Secrets in the wrong place: a user may write a key into the file, and no error about it may show the key.

use super::file::strings;
use super::file::tables::ProviderTable;
use super::model::SourceFile;
use sessions::import::has_secret;

/// Masks every value of a file that looks like a secret, for all that is shown or kept of it. The lengths of values
/// stay the same, so places do, too.
pub(super) fn mask_secrets(file: &SourceFile) -> SourceFile {
    let mut text = file.text.to_string();
    let mut before = None;
    for (path, value, place) in strings(file) {
        let is_secret = is_secret(&path, &value) || is_key_of_command(&path, before.as_ref(), &value);
        before = Some((path, value));
        if is_secret {
            let Some(secret) = text.get(place.clone()) else {
                continue;
            };
            let masked: String = secret.chars().map(mask).collect();
            text.replace_range(place, &masked);
        }
    }
    SourceFile { text: text.into(), ..file.clone() }
}

/// The mask for a character of a secret, with as many bytes; quotation marks and line ends stay.
fn mask(c: char) -> String {
    if matches!(c, '"' | '\'' | '\n') { c.to_string() } else { "*".repeat(c.len_utf8()) }
}

/// Whether a value is a key among the arguments of a program; `before` is the string before it.
fn is_key_of_command(path: &[String], before: Option<&(Vec<String>, String)>, value: &str) -> bool {
    let is_command = path.iter().rev().map(String::as_str).take(2).eq(["command", "compress"]);
    let option = before.filter(|(other, _)| other == path).map_or("", |(_, option)| option);
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
            [key] => !ProviderTable::KEYS.contains(key),
            _ => true,
        },
        ["cache", "remote"] | ["profile", _, "cache", "remote"] => value.contains(['@', '?']),
        _ => false,
    }
}

/// Whether a text is the name of an environment variable.
pub(super) fn is_variable(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether an argument looks like a key: by its form, or as a long random value of an option that is named like one.
/// `before` is the argument before it.
pub(super) fn is_key(before: &str, argument: &str) -> bool {
    const NAMES: [&str; 5] = ["key", "token", "secret", "password", "credential"];
    let (option, value) = argument.split_once('=').filter(|_| argument.starts_with('-')).unwrap_or((before, argument));
    let names_key = option.starts_with('-') && NAMES.iter().any(|name| option.to_ascii_lowercase().contains(name));
    has_secret(argument) || names_key && is_random(value) || value.starts_with("sk-") && is_random(value)
}

/// Whether a word is long and mixes letters and digits, as no name and no path does.
fn is_random(word: &str) -> bool {
    const SHORTEST: usize = 16;
    word.len() >= SHORTEST
        && !word.contains(['/', ' ', '.'])
        && word.contains(|c: char| c.is_ascii_digit())
        && word.contains(|c: char| c.is_ascii_alphabetic())
}
