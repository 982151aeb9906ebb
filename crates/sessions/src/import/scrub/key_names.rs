//! Which identifiers name a secret: `DB_PASSWORD` and `clientSecret` do, `password_min_length` and `next_page_token` do
//! not.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::rules::caseless;
use base::words::WordList;

/// Words before `key` that make it a secret.
const KEY_MODIFIERS: WordList = WordList(
    "api secret access private auth encryption signing master shared license account consumer \
     security crypt crypto aes hmac jwt deploy webhook admin subscription \
     ssh wallet activation authorization cipher preshared presharedkey sas rest decryption",
);

/// Words before `key` that as often make it the name of a field, an entry or a session: `dataKey="temperature"`.
const PLAIN_MODIFIERS: WordList =
    WordList("session data x storage server client service app application write root recovery");

/// Words after the word for a secret that make it something else.
const NOT_AFTER: WordList = WordList(
    "length len min max minimum maximum policy policies hash hashed hashes hasher hashing digest md sha \
     checksum fingerprint expires expire expired expiry expiration ttl age timeout lifetime duration \
     interval period date time at on days hours minutes seconds field fields label labels hint help error \
     errors message msg placeholder title prompt question regex regexp pattern format file files filename \
     path dir env variable name names type types kind class count counts counter limit limits size budget \
     usage used url uri endpoint link id ids index idx version algorithm alg algo encoding rotation \
     required enabled disabled allowed optional strength score level validator validation manager \
     provider storage service handler helper helpers util utils factory generator encoder decoder parser \
     reader writer middleware filter guard header headers prefix suffix scheme status state valid invalid \
     changed change updated created reset resets history attempts attempt tries retries complexity rules \
     rule requirements option options config settings mode source ref reference arn selector component \
     form view page screen box bytes chars position offset stream map list dict array table column row \
     schema model entity dto test tests spec mock exists missing less based protected check checker match \
     matches mismatch strategy kwargs func fn callback ring logo icon bucket group role username owner \
     holder only per rate price cost total sum ratio window dim embedding embeddings mask overlap \
     management protection recovery authentication rounds iterations salt stdin fd prompts s through word \
     thru visible hidden shown ok set is py js ts rs go java rb md5 txt html css vue tsx jsx json yml \
     yaml toml ini sh conf",
);

/// Words before the word for a secret that make it something else.
const NOT_BEFORE: WordList = WordList(
    "has is no show hide toggle forgot require requires required needs min max num total prompt \
     completion cached reasoning hashed encrypted public primary foreign sort partition next page \
     continuation sync pad eos bos unk sep cls mask special stop per expect without disable enable allow \
     by pos first num cancellation cancel previous prev",
);

/// What a key word says about the value after it: how much is demanded of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeywordClass {
    /// A password: any value.
    Password,
    /// A secret or a key: any value that is not the name of one.
    Secret,
    /// A token, a session or a credential: a value that is random.
    Token,
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'$')
}

/// The identifier around a hit.
pub(super) fn identifier(text: &str, hit: Range<usize>) -> Range<usize> {
    const LONGEST: usize = 80;
    let bytes = text.as_bytes();
    let before = bytes
        .iter()
        .take(hit.start)
        .rev()
        .take(LONGEST)
        .take_while(|byte| is_word_byte(**byte))
        .count();
    let after = bytes
        .iter()
        .skip(hit.end)
        .take(LONGEST)
        .take_while(|byte| is_word_byte(**byte))
        .count();
    let mut end = hit.end + after;
    // A full stop ends a sentence, a hyphen or an arrow follows.
    while end > hit.end && matches!(bytes.get(end - 1), Some(b'.' | b'-')) {
        end -= 1;
    }
    hit.start - before..end
}

/// The words of an identifier in lower case: `DBPassword_old` is `db`, `password`, `old`.
pub(super) fn words(identifier: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = b'_';
    let bytes = identifier.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1).copied().unwrap_or(b'_');
        let starts = byte.is_ascii_uppercase()
            && (last.is_ascii_lowercase()
                || last.is_ascii_uppercase() && next.is_ascii_lowercase())
            || byte.is_ascii_digit() != last.is_ascii_digit() && last.is_ascii_alphanumeric();
        if !byte.is_ascii_alphanumeric() {
            last = b'_';
            continue;
        }
        if starts || !last.is_ascii_alphanumeric() || words.is_empty() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(char::from(byte.to_ascii_lowercase()));
        }
        last = byte;
    }
    words
}

/// The class of one word, given the word before it; `None` if it does not name a secret.
pub(super) fn class_of_word(word: &str, before: &str) -> Option<KeywordClass> {
    const ENDS: WordList = WordList(
        "password passwd passphrase passcode passwort kennwort wachtwoord contrasena userpwd pswd passwrd motdepasse",
    );
    const OWNERS: WordList = WordList(
        "db user root my admin ftp smtp mail key store sudo vault http auth login wifi become pg mysql \
         redis rabbit mongo proxy ldap imap trust smb ssh sftp pop oracle sql jdbc app web svc bind \
         domain cert ssl zip net",
    );
    if ENDS.iter().any(|end| word.ends_with(end))
        || ["pass", "pwd", "pw", "psk", "senha", "clave", "haslo"].contains(&word)
    {
        return Some(KeywordClass::Password);
    }
    let mut owners = ["pass", "pwd", "pw"]
        .iter()
        .filter_map(|end| word.strip_suffix(end));
    if owners.any(|owner| OWNERS.has(owner)) {
        return Some(KeywordClass::Password);
    }
    let modifier = match word {
        "key" => before,
        _ => word.strip_suffix("key").unwrap_or(""),
    };
    if PLAIN_MODIFIERS.has(modifier) {
        return Some(KeywordClass::Token);
    }
    if KEY_MODIFIERS.has(modifier) || word.ends_with("secret") {
        return Some(KeywordClass::Secret);
    }
    const RANDOM: WordList = WordList("cred creds credential credentials jwt salt pepper");
    let token = word.ends_with("token") || RANDOM.has(word);
    token.then_some(KeywordClass::Token)
}

/// The class of a whole identifier; `None` if it does not name a secret.
pub(super) fn class_of(identifier: &str) -> Option<KeywordClass> {
    let words = words(identifier);
    let at = words.iter().enumerate().rev().find_map(|(at, word)| {
        let before = at
            .checked_sub(1)
            .and_then(|at| words.get(at))
            .map_or("", String::as_str);
        Some((at, class_of_word(word, before)?))
    });
    let (at, class) = at?;
    let qualified = words.iter().skip(at + 1).any(|word| NOT_AFTER.has(word));
    let negated = words.iter().take(at).any(|word| NOT_BEFORE.has(word));
    (!qualified && !negated).then_some(class)
}

/// As [`class_of`], with the word before it where an identifier is written in two: `API key`, `Secret Key`.
pub(super) fn class_at(text: &str, key: &Range<usize>) -> Option<KeywordClass> {
    let name = text.get(key.clone())?;
    // A placeholder of an earlier scrubbing is no key.
    if name.contains("REDACTED_") || name.contains("://") || name.starts_with('.') && name.len() < 6
    {
        return None;
    }
    if let Some(class) = class_of(name) {
        return Some(class);
    }
    if !name.eq_ignore_ascii_case("key") && !name.eq_ignore_ascii_case("phrase") {
        return None;
    }
    let before = text.get(..key.start)?.strip_suffix([' ', '-'])?;
    let start = before
        .rfind(|c: char| !c.is_ascii_alphabetic())
        .map_or(0, |at| at + 1);
    let modifier = before.get(start..)?.to_ascii_lowercase();
    class_of_word("key", &modifier)
}

/// What every key word holds: a text without any of these has no key word.
pub(super) static HINTS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let hints = WordList(
        "pass pwd secret token key cred psk kennwort senha wachtwoord jwt contrasena haslo pw clave salt pepper",
    );
    caseless(&hints.iter().collect::<Vec<_>>())
});
