//! Judges whether a value in the position of a secret is one, and not a placeholder, a reference, a type, code or a
//! sentence.
//!
//! The shapes of values: placeholder, identifier, path, random.

use std::ops::Range;

use super::key_names::{KeywordClass, class_of_word, words};
use super::rules::compiled;
use base::lazy_patterns;
use base::text::first_bytes;
use base::words::WordList;

/// Texts that stand for no value, in lower case and without the signs around them.
const UNSAID: WordList = WordList(
    " none null nil undefined true false yes no on off n/a na unset empty required optional redacted \
     hidden masked password passwd passphrase pass pwd secret token credentials username user changeme \
     example placeholder dummy todo tbd fixme xxx string unknown missing default omitted stdin prompt \
     private public sensitive encrypted plain login key apikey api_key access_token foobar foo bar baz \
     asdf not-set value your sha256 sha512 md5 sha1 bcrypt argon2 scram-sha-256 trust \
     hs256 rs256 es256 utf8 utf-8 hex",
);

/// Words in the names of fields that contain a secret; the empty one stands for no word.
const LABEL_WORDS: WordList = WordList(
    " db user username new old confirm current enter the admin root api access refresh auth client app my \
     id key secret private public bearer basic csrf session login email type string field name value \
     reset hash is text",
);

/// Bare words after `password:` and `password =` that are types.
const TYPES: WordList = WordList(
    "str string text varchar char bytes byte int integer number bool boolean any object option optional \
     secretstr secretstring securestring uint8array buffer varchar2 nvarchar blob unknown never void list \
     array vec map dict self this field charfield column i32 i64 u32 u64 usize float double long uuid \
     date datetime json jsonb &str *string []byte password schema",
);

/// Bare words after `password =` that are names in code or words of a sentence.
const CODE_WORDS: WordList = WordList(
    "value input data result answer arg args argv payload raw body item entry match obj line content \
     response req request res params param options opts config cfg ctx context state props x y s p v w \
     val tmp temp buf output stdin stdout variable var field form query the a an see ask use same must \
     should will is are was be not only all any both wrong incorrect correct invalid valid accepted \
     rejected authentication updated changed unchanged expired failed success successful error ok done \
     set reset new old hashed stored plaintext mandatory env environment vault keyring file manual auto \
     generated random inherit inherited disabled enabled mode type name id super pass return yield raise \
     int len print input_data",
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
    if value.chars().count() < 3 || is_blank(value) || is_reference(value) || is_label(value) {
        return None;
    }
    if is_rule_or_status(value) {
        return None;
    }
    if notation != ValueSyntax::Quoted && is_code(text, value, range) {
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

/// Whether this is a rule of validation (`required|min:8`), or the status of a response.
fn is_rule_or_status(value: &str) -> bool {
    let is_status = value.len() == 3
        && value.starts_with(['2', '3', '4', '5'])
        && value.bytes().all(|byte| byte.is_ascii_digit());
    let starts_rule = WordList("required| nullable| string| sometimes| confirmed|");
    is_status || starts_rule.iter().any(|start| value.starts_with(start))
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
        ValueSyntax::Bare if is_plain_word(value) => bare_word(text, value, range),
        ValueSyntax::Bare => Some(ValueVerdict::Secret),
        // `Password forgotten?` asks.
        ValueSyntax::Prose
            if is_strong(value.trim_end_matches(['?', '!'])) && !is_identifier_like(value) =>
        {
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
    let is_name =
        is_plain_word(value) && value.len() >= 5 && !is_adjective && !CODE_WORDS.has(&lower);
    (is_name && is_last).then_some(ValueVerdict::Doubtful)
}

/// The most bytes after a word that are read to find out whether it ends its line.
const LONGEST_LINE: usize = 4096;

/// A bare lower-case word after `password:` or `password =`: a value if nothing follows it on its line, as in a file of
/// settings.
fn bare_word(text: &str, value: &str, range: &Range<usize>) -> Option<ValueVerdict> {
    let after = first_bytes(text.get(range.end..).unwrap_or(""), LONGEST_LINE);
    let rest = after.split('\n').next().unwrap_or("").trim();
    let is_last = rest.is_empty() || rest.starts_with('#') || rest.starts_with("//");
    let is_code_word = CODE_WORDS.has(&value.to_ascii_lowercase());
    match (is_last, is_code_word) {
        (true, false) => Some(ValueVerdict::Secret),
        (false, false)
            if rest.starts_with(['"', '\'', '/', '|', '(', '。'])
                || rest == ","
                || rest == ";"
                || rest == "." =>
        {
            Some(ValueVerdict::Doubtful)
        }
        _ => None,
    }
}

fn secret(value: &str, notation: ValueSyntax) -> Option<ValueVerdict> {
    if value.contains("://") || value.starts_with(['/', '.', '~']) {
        return None;
    }
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
            (is_strong(value) && !is_identifier_like(value) && value.len() >= 8)
                .then_some(ValueVerdict::Secret)
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
    let is_random =
        !is_path(value) && is_strong(value) && !is_identifier_like(value) && entropy(value) >= 2.5;
    let is_literal = matches!(notation, ValueSyntax::Quoted | ValueSyntax::Tight);
    if notation == ValueSyntax::Tight && value.len() >= 12 && is_strong(value) && !is_path(value) {
        return Some(ValueVerdict::Secret);
    }
    if is_random && (is_literal || value.len() >= 12) {
        return Some(ValueVerdict::Secret);
    }
    // A long literal of words may be the name of something.
    (is_literal && value.len() >= 12 && !value.contains(['.', '/', '(']))
        .then_some(ValueVerdict::Doubtful)
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
    // A line between the names and the rows of a table is no value either.
    let is_drawn = lower.bytes().all(|byte| b"-+|=".contains(&byte));
    let alike = lower
        .bytes()
        .all(|byte| Some(&byte) == lower.as_bytes().first());
    if UNSAID.has(bare)
        || bare == "not set"
        || alike
        || is_drawn
        || value.starts_with('<') && value.ends_with('>')
        || value.starts_with("REDACTED")
    {
        return true;
    }
    const FILLERS: WordList = WordList(
        "your example placeholder changeme changeit dummy insert replace redacted todo fixme xxxx here sample",
    );
    let parts = words(value);
    let filler = parts
        .iter()
        .any(|word| FILLERS.has(word) || word.starts_with("your") && word.len() > 6);
    let change_me = parts.iter().zip(parts.iter().skip(1)).any(|(a, b)| {
        matches!(a.as_str(), "change" | "replace" | "set" | "fill")
            && matches!(b.as_str(), "me" | "this" | "it" | "in")
    });
    filler || change_me || is_placeholder_sign(value)
}

fn is_placeholder_sign(value: &str) -> bool {
    let filler = value
        .bytes()
        .filter(|byte| matches!(byte, b'x' | b'X' | b'*' | b'.' | b'_'))
        .count();
    ["***", "...", "…", "[REDACTED", "REDACTED_", "••"]
        .iter()
        .any(|sign| value.contains(sign))
        || filler * 10 >= value.len() * 8
}

/// Whether this is a variable, a template, or the place where the secret is kept.
pub(super) fn is_reference(value: &str) -> bool {
    lazy_patterns! {
        REFERENCE = compiled(
            r"^(?:\$_[A-Z]+\b.*|\$[A-Za-z_]\w*[/:.].*|\$[a-z_]+(?:->|\[|\().*|\$[A-Z_][A-Z0-9_]*|\$[a-z_]+|\$[\d@*#?!]|\$\{.*|\$\(.*|\$env:.*|%[A-Za-z_]+%|%[+-]?\d*[sdvqrf]|@[a-zA-Z_]+@?|\{+[^{}]*\}+.*|\[[^\]]*\]|:[a-z_]+|&[a-z_]+|\*[a-z_]+|![A-Za-z!]+|<[^>]*>?|-+[A-Za-z-]*|ENC\(.*|(?:vault|op|ssm|arn|env|file|secretsmanager|keyring|awssm|gcpsm|sops|kms|pass|secret|secretRef):/?.*|os\.environ.*|process\.env.*|System\.getenv.*|secrets\..*|getenv.*|env\..*|ENV\[.*|vars?\..*|local\..*|data\..*)$",
        );
    }
    lazy_patterns! {
        INTERPOLATED = compiled(
            r"\$\{|\#\{|\{\{|\{[a-zA-Z_][\w.]*\}|\{\}|\$\(|<[a-zA-Z_-]+>|%\([a-z_]+\)s|\$[A-Z][A-Z_]{3,}",
        );
    }
    REFERENCE.is_match(value) || INTERPOLATED.is_match(value)
}

/// Whether this is the name of a field or a label rather than a value: all its words are about secrets.
pub(super) fn is_label(value: &str) -> bool {
    let parts = words(value);
    // `Passw0rd`, `password1!` and `mysecretpassword` are passwords; `password` and `db_password` are names.
    parts
        .iter()
        .all(|word| LABEL_WORDS.has(word) || names_secret(word))
        && parts
            .iter()
            .any(|word| names_secret(word) || word == "bearer" || word == "csrf")
        && !value.contains(|c: char| c.is_ascii_digit() || "!@#%^&*?".contains(c))
}

/// Whether a word names a secret, alone or after a word about secrets: `password`, `userpassword`.
fn names_secret(word: &str) -> bool {
    const ENDS: WordList =
        WordList("password passwd passphrase pass pwd secret token key credentials");
    ENDS.iter().any(|end| {
        word.strip_suffix(end)
            .is_some_and(|owner| LABEL_WORDS.has(owner))
    })
}

/// Whether this is code: a call, an index, a member, a type, an operator.
pub(super) fn is_code(text: &str, value: &str, range: &Range<usize>) -> bool {
    lazy_patterns! {
        CODE = compiled(
            r"^(?:(?:await|new|return|not|typeof|function|lambda|def|fn|async|if|else|in|and|or|import|from|const|let|var|void)$|[A-Za-z_][\w.:>?-]*\(|[A-Za-z_][\w.]*\[|[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)+\??;?$|[A-Z][a-z]+(?:[A-Z][a-z]+)+[?,]?$|[A-Za-z]+<|\(|\[|\{|=|\||&&)",
        );
    }
    let after = text.get(range.end..).unwrap_or("");
    let is_called = after.starts_with(['(', '[', '<']) || after.starts_with("::");
    let lower = value.to_ascii_lowercase();
    let parts = words(value);
    let is_name = is_identifier_word(value)
        && (parts.len() > 1 && has_key_word(&parts) || is_label(value))
        && !value.bytes().any(|byte| byte.is_ascii_digit());
    let is_concatenated = after
        .trim_start_matches([' ', '\t'])
        .starts_with(['+', '?'])
        && is_identifier_word(value);
    CODE.is_match(value) || is_called || TYPES.has(&lower) || is_name || is_concatenated
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

/// Whether this is a name with a version: `item_v2`, `utf8`, `step3.config`.
fn is_identifier_like(value: &str) -> bool {
    value.contains(['_', '.', '-', ':'])
        && value.len() < 40
        && is_identifier(value)
        && !value.split(['_', '.', '-', ':']).any(is_respelled)
        && entropy(value) < 3.6
}

/// Whether a digit stands for a letter inside a word, as in `tr4in`; not `i18n`, `utf8`, `v2beta`.
fn is_respelled(word: &str) -> bool {
    let inner = word.trim_matches(|c: char| c.is_ascii_digit());
    let letters = inner.bytes().filter(u8::is_ascii_alphabetic).count();
    letters >= 4 && letters < inner.len() && !inner.starts_with('v')
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
    const PLACEHOLDERS: WordList = WordList(
        "redacted *** xxxx your example placeholder dummy changeme change-me change_me insert replace fake sample ... \
        … ${ {{ < %s todo not-a-real notreal process.env os.environ getenv env. secrets.",
    );
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
    const COMMON: WordList =
        WordList("undefined null none true false string password pass secret token user");
    !reference && !COMMON.has(&value.to_ascii_lowercase()) && entropy(value) > 1.0
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
