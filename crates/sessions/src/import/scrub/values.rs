//! Judges whether a value in the position of a secret is one, and not a placeholder, a reference, a type, code or a
//! sentence.
//!
//! The shapes of values: placeholder, identifier, path, random.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::edit::first_bytes;
use super::key_names::{KeywordClass, WordList, class_of_word, words};
use super::rules::compiled;

/// Texts that stand for no value, in lower case and without the signs around them.
const UNSAID: WordList = WordList(
    " none null nil undefined true false yes no on off n/a na unset empty required optional redacted \
     hidden masked password passwd passphrase pass pwd secret token credentials username user changeme \
     example placeholder dummy todo tbd fixme xxx string unknown missing default omitted stdin prompt \
     private public sensitive encrypted plain login key apikey api_key access_token foobar foo bar baz \
     asdf not-set value your sha256 sha512 md5 sha1 bcrypt argon2 scram-sha-256 trust",
);

/// Bare words after `password:` and `password =` that are types.
const TYPES: WordList = WordList(
    "str string text varchar char bytes byte int integer number bool boolean any object option optional \
     secretstr secretstring securestring uint8array buffer varchar2 nvarchar blob unknown never void list \
     array vec map dict self this field charfield column i32 i64 u32 u64 usize float double long uuid \
     date datetime json jsonb &str *string []byte password schema",
);

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueSyntax {
    Quoted,
    /// `KEY=value` without blanks, as in environment files and on command lines.
    Tight,
    /// A bare word after `=` or `:`.
    Bare,
    /// A bare word in a sentence, as after `is`.
    Prose,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueVerdict {
    Secret,
    /// A secret or an ordinary word.
    Doubtful,
}

/// Judges a value after a key word of `class`; `None` if it is not a secret.
pub(super) fn judge(
    text: &str,
    class: KeywordClass,
    value: &str,
    range: &Range<usize>,
    notation: ValueSyntax,
) -> Option<ValueVerdict> {
    if value.chars().count() < 3 || is_blank(value) || is_reference(value) {
        return None;
    }
    if notation != ValueSyntax::Quoted && is_code(value) {
        return None;
    }
    if value.contains(' ') {
        return sentence(class, value);
    }
    match class {
        KeywordClass::Password => password(text, value, range, notation),
        KeywordClass::Secret => secret(value, notation),
        KeywordClass::Token => token(value, notation),
    }
}

fn password(
    text: &str,
    value: &str,
    range: &Range<usize>,
    notation: ValueSyntax,
) -> Option<ValueVerdict> {
    let is_path = value.starts_with(['/', '~']) && value.matches('/').count() > 1
        || value.starts_with("./")
        || value.contains("://");
    if is_path {
        return None;
    }
    match notation {
        ValueSyntax::Quoted | ValueSyntax::Tight => Some(ValueVerdict::Secret),
        ValueSyntax::Bare if is_plain_word(value) => bare_word(text, range),
        ValueSyntax::Bare => Some(ValueVerdict::Secret),
        // `Password forgotten?` asks.
        ValueSyntax::Prose if is_strong(value.trim_end_matches(['?', '!'])) => {
            Some(ValueVerdict::Secret)
        }
        ValueSyntax::Prose => prose_word(text, value, range),
    }
}

/// A plain word after `password is`: doubtful if the sentence ends with it.
fn prose_word(text: &str, value: &str, range: &Range<usize>) -> Option<ValueVerdict> {
    let after = text
        .get(range.end..)
        .unwrap_or("")
        .trim_start_matches([' ', '"', '`', '\'']);
    let lower = value.to_ascii_lowercase();
    let is_last = after.is_empty() || after.starts_with(['.', '\n', ',', ';', ')']);
    let is_adjective = ["ed", "ing", "ly", "ive", "able", "ory", "ional", "less"]
        .iter()
        .any(|end| lower.ends_with(end));
    const STATES: WordList =
        WordList("wrong incorrect correct invalid valid empty missing unknown different ready");
    let is_name = is_plain_word(value) && value.len() >= 5 && !is_adjective && !STATES.has(&lower);
    (is_name && is_last).then_some(ValueVerdict::Doubtful)
}

/// The most bytes after a word that are read to find out whether it ends its line.
const LONGEST_LINE: usize = 4096;

/// A bare lower-case word after `password:` or `password =`: a value if nothing follows it on its line, as in a file of
/// settings.
fn bare_word(text: &str, range: &Range<usize>) -> Option<ValueVerdict> {
    let after = first_bytes(text.get(range.end..).unwrap_or(""), LONGEST_LINE);
    let rest = after.split('\n').next().unwrap_or("").trim();
    let is_last = rest.is_empty() || rest.starts_with('#') || rest.starts_with("//");
    is_last.then_some(ValueVerdict::Secret)
}

fn secret(value: &str, notation: ValueSyntax) -> Option<ValueVerdict> {
    // `secret = "app-credentials"`: the name under which a secret is kept.
    let names = value.len() < 40
        && is_identifier(value)
        && !value.bytes().any(|byte| byte.is_ascii_digit())
        && has_key_word(&words(value));
    match notation {
        _ if value.len() < 6 => None,
        ValueSyntax::Quoted | ValueSyntax::Tight if !names => Some(ValueVerdict::Secret),
        ValueSyntax::Quoted | ValueSyntax::Tight => Some(ValueVerdict::Doubtful),
        ValueSyntax::Bare | ValueSyntax::Prose => {
            (is_strong(value) && value.len() >= 8).then_some(ValueVerdict::Secret)
        }
    }
}

fn has_key_word(words: &[String]) -> bool {
    words
        .iter()
        .any(|word| class_of_word(word, "").is_some() || word == "key")
}

fn token(value: &str, notation: ValueSyntax) -> Option<ValueVerdict> {
    let is_number = value.bytes().all(|byte| {
        byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b':' | b'T' | b'Z' | b'+')
    });
    let is_name =
        value.contains("://") || value.starts_with(['/', '.', '~', '-']) || is_address(value);
    if is_number || is_name || value.len() < 8 {
        return None;
    }
    let is_random = !is_path(value) && is_strong(value) && entropy(value) >= 2.5;
    let is_literal = matches!(notation, ValueSyntax::Quoted | ValueSyntax::Tight);
    if notation == ValueSyntax::Tight && value.len() >= 12 && is_strong(value) && !is_path(value) {
        return Some(ValueVerdict::Secret);
    }
    (is_random && (is_literal || value.len() >= 12)).then_some(ValueVerdict::Secret)
}

/// Three or more names and numbers between colons, as in `agent:main:telegram:group:-1001:17585`: an address.
fn is_address(value: &str) -> bool {
    let (mut names, mut numbers, mut parts) = (0, 0, 0);
    for part in value.split(':') {
        let digits = part.strip_prefix('-').unwrap_or(part);
        names += usize::from(part.len() > 2 && part.bytes().all(|byte| byte.is_ascii_lowercase()));
        numbers +=
            usize::from(!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
        parts += 1;
    }
    parts > 2 && names > 1 && names + numbers == parts
}

/// Words with blanks between them: a passphrase, unless it speaks about passwords or is a sentence.
fn sentence(class: KeywordClass, value: &str) -> Option<ValueVerdict> {
    const PHRASES: WordList = WordList(
        "password passwort enter your you must required please invalid is the at least minimum should \
         cannot can not be and or to for of with token secret key user a an in on too short long \
         characters forgot confirm repeat new wrong incorrect need needs from was has have will stored \
         set change reset login missing used this that it are if",
    );
    let words: Vec<String> = value
        .split_whitespace()
        .map(|word| {
            word.trim_matches(|c: char| !c.is_alphanumeric())
                .to_lowercase()
        })
        .collect();
    let spoken = words.iter().filter(|word| PHRASES.has(word)).count();
    let is_phrase = (2..=25).contains(&words.len())
        && spoken == 0
        && !value.contains(['{', '(', '=', '<', '%'])
        && class != KeywordClass::Token;
    is_phrase.then_some(ValueVerdict::Secret)
}

/// Whether no value is given: a placeholder, `none`, dots or stars.
pub(super) fn is_blank(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let bare = lower.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let alike = lower
        .bytes()
        .all(|byte| Some(&byte) == lower.as_bytes().first());
    UNSAID.has(bare) || bare == "not set" || alike || is_placeholder(value)
}

/// Whether this is a variable, a template, or the place where the secret is kept.
pub(super) fn is_reference(value: &str) -> bool {
    static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
        compiled(
            r"^(?:\$_[A-Z]+\b.*|\$[A-Za-z_]\w*[/:.].*|\$[a-z_]+(?:->|\[|\().*|\$[A-Z_][A-Z0-9_]*|\$[a-z_]+|\$[\d@*#?!]|\$\{.*|\$\(.*|\$env:.*|%[A-Za-z_]+%|%[+-]?\d*[sdvqrf]|@[a-zA-Z_]+@?|\{+[^{}]*\}+.*|\[[^\]]*\]|:[a-z_]+|&[a-z_]+|\*[a-z_]+|![A-Za-z!]+|<[^>]*>?|-+[A-Za-z-]*|ENC\(.*|(?:vault|op|ssm|arn|env|file|secretsmanager|keyring|awssm|gcpsm|sops|kms|pass|secret|secretRef):/?.*|os\.environ.*|process\.env.*|System\.getenv.*|secrets\..*|getenv.*|env\..*|ENV\[.*|vars?\..*|local\..*|data\..*)$",
        )
    });
    static INTERPOLATED: LazyLock<Regex> = LazyLock::new(|| {
        compiled(
            r"\$\{|\#\{|\{\{|\{[a-zA-Z_][\w.]*\}|\{\}|\$\(|<[a-zA-Z_-]+>|%\([a-z_]+\)s|\$[A-Z][A-Z_]{3,}",
        )
    });
    REFERENCE.is_match(value) || INTERPOLATED.is_match(value)
}

/// Whether this is code: a call, an index, a member, a type, an operator.
pub(super) fn is_code(value: &str) -> bool {
    static CODE: LazyLock<Regex> = LazyLock::new(|| {
        compiled(
            r"^(?:(?:await|new|return|not|typeof|function|lambda|def|fn|async|if|else|in|and|or|import|from|const|let|var|void)$|[A-Za-z_][\w.:>?-]*\(|[A-Za-z_][\w.]*\[|[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)+\??;?$|[A-Z][a-z]+(?:[A-Z][a-z]+)+[?,]?$|[A-Za-z]+<|\(|\[|\{|=|\||&&)",
        )
    });
    let parts = words(value);
    let is_name = is_identifier_word(value)
        && parts.len() > 1
        && has_key_word(&parts)
        && !value.bytes().any(|byte| byte.is_ascii_digit());
    CODE.is_match(value) || TYPES.has(&value.to_ascii_lowercase()) || is_name
}

fn is_identifier_word(value: &str) -> bool {
    value
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn is_plain_word(value: &str) -> bool {
    value
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        || value.starts_with(|c: char| c.is_ascii_uppercase())
            && value.bytes().skip(1).all(|byte| byte.is_ascii_lowercase())
}

/// Whether the value can hardly be a word: letters with digits, with signs, or in mixed case; or many digits.
pub(super) fn is_strong(value: &str) -> bool {
    let (digit, letter) = (
        has_byte(value, u8::is_ascii_digit),
        has_byte(value, u8::is_ascii_alphabetic),
    );
    let sign = value.bytes().any(|byte| {
        byte.is_ascii_punctuation()
            && !matches!(byte, b'-' | b'_' | b'.' | b'/' | b':' | b',' | b'(' | b')')
    });
    let inner = value
        .as_bytes()
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    let mixed = if letter {
        digit || sign
    } else {
        digit && value.len() >= 6
    };
    mixed || inner && value.len() >= 8 && entropy(value) > 3.0 && !is_identifier(value)
}

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundSecret {
    pub(super) kind: &'static str,
    pub(super) range: Range<usize>,
    /// Whether it may be an ordinary word: then it stays, and the audit lists it for a person to check.
    pub(super) is_doubtful: bool,
}

impl FoundSecret {
    /// A value that is certainly a secret.
    pub(super) fn new(kind: &'static str, range: Range<usize>) -> FoundSecret {
        FoundSecret {
            kind,
            range,
            is_doubtful: false,
        }
    }
}

/// Notes a value in the position of a secret, if it can be one.
pub(super) fn push_if_secret(
    text: &str,
    class: KeywordClass,
    value: &str,
    range: Range<usize>,
    notation: ValueSyntax,
    found: &mut Vec<FoundSecret>,
) {
    if let Some(verdict) = judge(text, class, value, &range, notation) {
        found.push(FoundSecret {
            kind: kind_of(class),
            range,
            is_doubtful: verdict == ValueVerdict::Doubtful,
        });
    }
}

pub(super) fn kind_of(class: KeywordClass) -> &'static str {
    match class {
        KeywordClass::Password => "password",
        KeywordClass::Secret | KeywordClass::Token => "secret",
    }
}

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
