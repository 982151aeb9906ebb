//! Secrets in texts: found by the rules, by their entropy next to key-like words, and inside base64.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::edit::unescaped;
use super::secret_rules::{Basis, KEYED, PLACEHOLDERS, PRIVATE_KEY, RULES};

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) kind: &'static str,
    pub(super) range: Range<usize>,
    /// Whether its shape alone tells: then the same string is a secret wherever it stands.
    pub(super) by_form: bool,
}

const SIZE: usize = 64 << 20;

fn pattern(text: &str) -> String {
    // Word ends of ASCII alone: the secrets are ASCII, and the matcher is faster for it.
    text.replace(r"\b", r"(?-u:\b)")
}

static SET: LazyLock<RegexSet> = LazyLock::new(|| {
    let patterns = RULES.iter().map(|rule| pattern(rule.pattern));
    RegexSetBuilder::new(patterns)
        .size_limit(SIZE)
        .build()
        .unwrap_or_else(|error| unreachable!("built-in pattern: {error}"))
});

static EACH: LazyLock<Vec<Regex>> = LazyLock::new(|| RULES.iter().map(|rule| compiled(rule.pattern)).collect());
static KEYED_VALUE: LazyLock<Regex> = LazyLock::new(|| compiled(KEYED));
static KEY_BLOCK: LazyLock<Regex> = LazyLock::new(|| compiled(PRIVATE_KEY));
static BASE64: LazyLock<Regex> = LazyLock::new(|| compiled(r"[A-Za-z0-9+/_-]{24,}={0,2}"));

fn compiled(text: &str) -> Regex {
    RegexBuilder::new(&pattern(text))
        .size_limit(SIZE)
        .build()
        .unwrap_or_else(|error| unreachable!("built-in pattern: {error}"))
}

/// All secrets of `text`, in order, none inside another.
pub(super) fn secrets(text: &str) -> Vec<Found> {
    let text = &*unescaped(text);
    let mut found = by_rules(text);
    found.extend(private_keys(text));
    found.extend(keyed_values(text));
    found.extend(in_base64(text));
    found.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end), !found.by_form));
    let mut outer: Vec<Found> = Vec::new();
    for one in found {
        if outer.last().is_none_or(|last| one.range.start >= last.range.end) {
            outer.push(one);
        }
    }
    outer
}

fn by_rules(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    for index in SET.matches(text) {
        let (Some(rule), Some(regex)) = (RULES.get(index), EACH.get(index)) else { continue };
        for captures in regex.captures_iter(text) {
            let Some(secret) = captures.get(1).or_else(|| captures.get(0)) else { continue };
            let range = trimmed(secret.range(), secret.as_str());
            let value = text.get(range.clone()).unwrap_or("");
            let sure = match rule.basis {
                Basis::Form => !is_placeholder(value) && !is_words(value),
                Basis::Place => !is_placeholder(value) && is_value(value),
            };
            if sure {
                found.push(Found { kind: rule.kind, range, by_form: rule.basis == Basis::Form });
            }
        }
    }
    found
}

/// Blocks of private keys, up to their end or, in a text that was cut, as far as there is base64. Lines may be escaped
/// in JSON, quoted, numbered, or carry the marks of a diff. A block without a key is documentation.
fn private_keys(text: &str) -> Vec<Found> {
    const LONGEST: usize = 16 << 10;
    const SHORTEST: usize = 64;
    let block = |begin: regex::Match<'_>| {
        let rest = text.get(begin.end()..)?;
        let body = rest.find("-----").filter(|at| *at < LONGEST);
        let marks = |c: char| c.is_ascii_alphanumeric() || c.is_whitespace() || "+/=\\:,|>.-→\"'".contains(c);
        let length = body.unwrap_or_else(|| rest.find(|c| !marks(c)).unwrap_or(rest.len()).min(LONGEST));
        let key = rest.get(..length)?;
        let end =
            body.and_then(|at| rest.get(at + 5..)?.find("-----").filter(|end| *end < 60).map(|end| at + end + 10));
        let letters = key.bytes().filter(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')).count();
        let range = begin.start()..begin.end() + end.unwrap_or(key.trim_end().len());
        (letters >= SHORTEST && !is_placeholder(key)).then_some(Found { kind: "private-key", range, by_form: true })
    };
    KEY_BLOCK.find_iter(text).filter_map(block).collect()
}

/// Some shapes end with the character that must not follow; it is no part of the secret.
fn trimmed(range: Range<usize>, text: &str) -> Range<usize> {
    let end =
        text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | '`' | ')' | ',' | ';'));
    range.start..range.start + end.len()
}

/// What stands after `password = ` and the like, if it looks random.
fn keyed_values(text: &str) -> Vec<Found> {
    let keyed = KEYED_VALUE.captures_iter(text).filter_map(|captures| {
        let (word, value) = (captures.get(1)?, captures.get(2)?);
        let range = trimmed(value.range(), value.as_str());
        let inside = text.get(range.clone())?;
        let called = text.get(value.end()..).is_some_and(|rest| rest.starts_with('('));
        let is_secret = !called && !is_placeholder(inside) && is_random(word.as_str(), inside);
        is_secret.then_some(Found { kind: "secret", range, by_form: false })
    });
    keyed.collect()
}

/// Base64 that hides a secret known by its form.
fn in_base64(text: &str) -> Vec<Found> {
    let hidden = BASE64.find_iter(text).filter(|run| {
        // Text in base64 has no runs of the alphabet without upper and lower case.
        let bytes = run.as_str().as_bytes();
        bytes.iter().any(u8::is_ascii_uppercase) && bytes.iter().any(u8::is_ascii_lowercase)
    });
    let found = hidden.filter_map(|run| {
        let decoded = String::from_utf8(decode(run.as_str())?).ok()?;
        let secret =
            [by_rules(&decoded), private_keys(&decoded), keyed_values(&decoded)].into_iter().flatten().next()?;
        Some(Found { kind: secret.kind, range: run.range(), by_form: true })
    });
    found.collect()
}

/// Decodes base64 of either alphabet; `None` if it is none.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut buffer, mut bits) = (0_u32, 0_u32);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        buffer = (buffer << 6 | u32::from(value)) & 0xFF_FFFF;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits & 0xFF) as u8);
        }
    }
    Some(bytes)
}

/// Whether this stands in place of a secret: a word of the list, or hardly more than one character.
pub(super) fn is_placeholder(value: &str) -> bool {
    if value.len() >= 200 {
        // In so many random letters short words occur by chance.
        return value.contains("REDACTED") || value.contains("...") || value.contains("***");
    }
    let lower = value.to_ascii_lowercase();
    let filler = lower.bytes().filter(|byte| matches!(byte, b'x' | b'*' | b'0' | b'.' | b'-' | b'_')).count();
    PLACEHOLDERS.iter().any(|word| lower.contains(word)) || filler * 10 >= lower.len() * 7
}

/// Whether a value found by its form is made of words, as `sk-learn-contrib-something` is.
fn is_words(value: &str) -> bool {
    value.len() < 64
        && !value.bytes().any(|byte| byte.is_ascii_digit())
        && value.split(['-', '_', '.']).filter(|part| !part.is_empty()).count() > 2
        && !(value.bytes().any(|byte| byte.is_ascii_uppercase()) && entropy(value) > 4.2)
}

/// Whether a value found by its place can be one: no reference to a variable, no type, no path.
fn is_value(value: &str) -> bool {
    let reference = value.starts_with(['$', '{', '%', '<', '[', '(', '@', '&', '*']);
    let words = ["undefined", "null", "none", "true", "false", "string", "password", "pass", "secret", "token", "user"];
    let lower = value.to_ascii_lowercase();
    // `password123` keeps nothing secret.
    let plain = lower.trim_end_matches(|c: char| c.is_ascii_digit() || c == '!');
    !reference && !words.contains(&plain) && entropy(value) > 1.0
}

/// Whether the value of a key-like word looks random enough to be a secret.
fn is_random(word: &str, value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.bytes().any(|byte| test(&byte));
    let (digit, letter) = (has(u8::is_ascii_digit), has(u8::is_ascii_alphabetic));
    let mixed = digit && letter;
    let word = word.to_lowercase();
    if word.contains("tokens") || word.contains("token_count") || word.contains("token_id") || !is_value(value) {
        return false;
    }
    if value.contains("://") || value.starts_with(['/', '.', '~', '-', '+']) || is_identifier(value) {
        return false;
    }
    let password = ["pass", "pwd", "密码", "口令"].iter().any(|part| word.contains(part));
    if password {
        return mixed && entropy(value) >= 2.5;
    }
    let dates_and_versions =
        value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b':' | b'T' | b'Z'));
    mixed && value.len() >= 16 && !dates_and_versions && !is_path(value) && entropy(value) >= 3.2
}

/// Names of programs: words joined by underscores, hyphens, dots or colons, each with letters first and few digits.
fn is_identifier(value: &str) -> bool {
    let plain =
        value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'$'));
    let mut parts = value.split(['_', '-', '.', ':', '$']).filter(|part| !part.is_empty());
    plain
        && parts.all(|part| {
            let digits = part.bytes().filter(u8::is_ascii_digit).count();
            let (humps, capital) = (camel_humps(part), part.starts_with(|c: char| c.is_ascii_alphabetic()));
            digits == part.len() && digits < 5 || capital && digits <= 2 && part.len() <= 24 && humps * 3 <= part.len()
        })
}

/// How often a lower-case letter meets a capital.
fn camel_humps(word: &str) -> usize {
    word.as_bytes()
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()))
        .count()
}

fn is_path(value: &str) -> bool {
    value.contains('/')
        && value.split('/').filter(|part| !part.is_empty()).all(|part| part.len() < 24 && is_identifier(part))
}

/// Bits of Shannon entropy a byte.
pub(super) fn entropy(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let total = value.len() as f64;
    counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / total).map(|p| -p * p.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<&'static str> {
        secrets(text).into_iter().map(|found| found.kind).collect()
    }

    #[test]
    fn placeholders_hashes_and_names_are_no_secrets() {
        for text in [
            "export OPENAI_API_KEY=sk-your-key-goes-here-please",
            "token: REDACTED and password = ********",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "commit 5e667811b374954bb1a7119424ea70bf749eced6",
            "id 550e8400-e29b-41d4-a716-446655440000, sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "max_tokens: 4096, total_tokens=123456789012, token_count = 77",
            "password: string; secret = get_secret_from_vault_v2(name)",
            "apiKey: process.env.OPENAI_API_KEY_V2",
            "token = src/auth/token_store2.rs",
            "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
            "postgres://user:password@localhost/db and redis://:$PASS@cache",
            "password: password123, 密码是：Password1234!",
        ] {
            assert_eq!(kinds(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn random_values_of_key_like_words_are_found() {
        let value = ["f8Kq2", "Zr91LmX", "0vTb7Yw"].concat();
        for text in [
            format!("client_secret = \"{value}\""),
            format!("{{\"apiKey\": \"{value}\"}}"),
            format!("数据库密码是{value}。"),
            format!("+PASSWORD={value}"),
        ] {
            let found = secrets(&text);
            assert_eq!(found.len(), 1, "{text}");
        }
    }

    #[test]
    fn a_password_ends_where_the_sentence_goes_on() {
        let value = ["aB3#fG6", "&kL9@"].concat();
        for text in [format!("您的密码是：{value}。请确保将其保存好。"), format!("密码为{value}，请保存")]
        {
            let found = secrets(&text);
            assert_eq!(found.iter().map(|f| &text[f.range.clone()]).collect::<Vec<_>>(), [value.as_str()]);
        }
    }

    #[test]
    fn entropy_is_zero_for_one_letter_and_one_bit_for_two() {
        assert!(entropy("aaaa").abs() < 1e-9);
        assert!((entropy("abab") - 1.0).abs() < 1e-9);
    }
}
