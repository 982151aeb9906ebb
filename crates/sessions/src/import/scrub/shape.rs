//! The shapes of values: placeholder, identifier, path, random.

/// Whether this stands for a secret that is not given: it contains a word of the list, or consists mostly of fillers.
pub(super) fn is_placeholder(value: &str) -> bool {
    const PLACEHOLDERS: [&str; 28] = [
        "redacted",
        "***",
        "xxxx",
        "your",
        "example",
        "placeholder",
        "dummy",
        "changeme",
        "change-me",
        "change_me",
        "insert",
        "replace",
        "fake",
        "sample",
        "...",
        "…",
        "${",
        "{{",
        "<",
        "%s",
        "todo",
        "not-a-real",
        "notreal",
        "process.env",
        "os.environ",
        "getenv",
        "env.",
        "secrets.",
    ];
    if value.len() >= 200 {
        // In this many random letters, short words occur by chance.
        return value.contains("REDACTED") || value.contains("...") || value.contains("***");
    }
    let lower = value.to_ascii_lowercase();
    let filler = lower
        .bytes()
        .filter(|byte| matches!(byte, b'x' | b'*' | b'0' | b'.' | b'-' | b'_'))
        .count();
    PLACEHOLDERS.iter().any(|word| lower.contains(word)) || filler * 10 >= lower.len() * 7
}

/// Whether a value that was found by its form consists of words, like `sk-learn-contrib-something`.
pub(super) fn is_words(value: &str) -> bool {
    value.len() < 64
        && !value.bytes().any(|byte| byte.is_ascii_digit())
        && value
            .split(['-', '_', '.'])
            .filter(|part| !part.is_empty())
            .count()
            > 2
        && !(value.bytes().any(|byte| byte.is_ascii_uppercase()) && entropy(value) > 4.2)
}

/// Whether a value that was found by its place can be a secret, and not a reference to a variable or a common word.
pub(super) fn is_value(value: &str) -> bool {
    let reference = value.starts_with(['$', '{', '%', '<', '[', '(', '@', '&', '*']);
    let words = [
        "undefined",
        "null",
        "none",
        "true",
        "false",
        "string",
        "password",
        "pass",
        "secret",
        "token",
        "user",
    ];
    !reference && !words.contains(&value.to_ascii_lowercase().as_str()) && entropy(value) > 1.0
}

/// Whether the value is a secret wherever it occurs: long, or with digits or signs among its letters.
pub(super) fn is_distinctive(value: &str) -> bool {
    let has_mark = has_byte(value, u8::is_ascii_digit) || has_byte(value, u8::is_ascii_punctuation);
    let mixed = has_byte(value, u8::is_ascii_alphabetic) && has_mark;
    value.len() >= 16 || value.len() >= 8 && mixed && !is_identifier(value)
}

pub(super) fn has_byte(value: &str, test: fn(&u8) -> bool) -> bool {
    value.as_bytes().iter().any(test)
}

/// Whether this is a name in a program: words joined by underscores, hyphens, dots or colons, each with letters first
/// and few digits.
pub(super) fn is_identifier(value: &str) -> bool {
    let plain = value.bytes().all(|byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'$')
    });
    let mut parts = value
        .split(['_', '-', '.', ':', '$'])
        .filter(|part| !part.is_empty());
    plain
        && parts.all(|part| {
            let digits = part.bytes().filter(u8::is_ascii_digit).count();
            let (humps, is_word) = (
                camel_humps(part),
                part.starts_with(|c: char| c.is_ascii_alphabetic()),
            );
            digits == part.len() && digits < 5
                || is_word && digits <= 2 && part.len() <= 24 && humps * 3 <= part.len()
        })
}

/// How often a lower-case letter meets a capital.
fn camel_humps(word: &str) -> usize {
    word.as_bytes()
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()))
        .count()
}

/// Bits of Shannon entropy per byte.
pub(super) fn entropy(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let total = value.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / total)
        .map(|p| -p * p.log2())
        .sum()
}

/// Whether this is a path: names of files and folders with slashes between them.
pub(super) fn is_path(value: &str) -> bool {
    value.contains('/')
        && value
            .split('/')
            .filter(|part| !part.is_empty())
            .all(|part| part.len() < 24 && is_identifier(part))
}
