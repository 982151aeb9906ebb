//! Passwords and keys recognized by their position: after `password =`, in `mysql -pX`, in a URL before `@`.
//!
//! A human password has no shape, so its position decides. The steps for a key word such as `DB_PASSWORD`:
//! 1. The identifier around the word is split into words. It names a secret only if no qualifier follows the word
//!    (`password_min_length`, `tokenExpiresAt`) or makes it something else (`next_page_token`, `public_key`).
//! 2. A separator and a value must follow: an assignment, a call, a command-line flag, a name/value pair, prose.
//! 3. The value goes unless it is a placeholder, a reference to a variable, a type, code or an ordinary sentence. How
//!    much is demanded of it depends on the word (anything after `password`, a plausible key after `token`) and on the
//!    notation (a quoted literal is data, a bare word after ` = ` may be code).
//!
//! Shapes that no key word introduces (command lines, URLs, SQL, files with fixed columns) are rules of their own, in
//! [`super::rules`].
//!
//! Secrets below the name of their column: in the rows of a statement, and in tables.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes;

use super::edit::joined_ranges;
use super::key_names::{HINTS, KeywordClass, class_at, class_of, identifier, words};
use super::rules::{POSITIONS, ascii, compiled};
use super::separators::{cut_value, trimmed, value_after, value_at};
use super::values::{
    FoundSecret, ValueSyntax, has_byte, is_blank, is_code, is_identifier, is_label, is_path,
    is_reference, is_strong, kind_of, push_if_secret,
};
use base::lazy_patterns;
use base::text::last_bytes;

lazy_patterns! {
    /// Words for a password in other scripts and with accents. What is between the word and the value is a connector
    /// (`是`, `改成了`, `ist`) or a note in brackets.
    FOREIGN = compiled(
        r#"(?i)(密码|密碼|口令|授权码|授權碼|密钥|密鑰|令牌|秘钥|私钥|私鑰|暗号|パスワード|暗証番号|비밀번호|암호|пароль|contraseña|mot de passe|hasło|şifre|mật khẩu|סיסמה|كلمة المرور|lösenord(?:et)?|\bheslo|kata sandi|पासवर्ड)(?:[ \t]?[（(][^）)\n]{0,24}[)）])?((?:[^\x00-\x7f，。；、！？：＝]|[ ]){0,24}[:：=＝]|[^\x00-\x7f，。；、！？：＝]{0,6}[ \t]*(?:\b(?:est|ist|es|to|je|adalah)\b|är|là)?)[ \t]*["'`“”「『‘《【]?([!-~]{3,100})"#,
    );
}
static PAIR_SET: LazyLock<Vec<bytes::Regex>> =
    LazyLock::new(|| PAIRS.iter().filter_map(|pattern| ascii(pattern)).collect());
static COOKIE: LazyLock<Option<bytes::Regex>> = LazyLock::new(|| {
    ascii(
        r#"(?i)(?:\b(?:set-)?cookies?["']?[ \t]*[:=,][ \t]*|\s(?:-b|--cookie)[ =]+)["']?([^\s"'=;]{1,64}=[^\r\n"']+)"#,
    )
});

/// Name and value as two fields: group `k` is the name, `v` or `w` the value.
const PAIRS: &[&str] = &[
    // YAML, JSON: `name: DB_PASSWORD`, then `value: X`.
    r#"(?i)["']?\b(?:name|key|variable|parameter(?:key)?|parametername)["']?\s*[:=]\s*["']?(?P<k>[A-Za-z0-9_.-]{3,64})["']?\s*[,;]?\s*["']?(?:\w*value|default|val|plaintext|content)["']?\s*[:=]\s*(?:["'](?P<v>[^"'\n]+)["']|(?P<w>[^\s"',}]+))"#,
    r#"(?i)["']?\bvalue["']?\s*[:=]\s*["'](?P<v>[^"'\n]+)["']\s*,\s*["']?(?:name|key)["']?\s*[:=]\s*["'](?P<k>[A-Za-z0-9_.-]{3,64})["']"#,
    // XML: attributes, elements, property lists.
    r#"(?i)\b(?:name|key|id|property|code|option|argument)\s*=\s*["'](?P<k>[A-Za-z0-9_.: -]{3,64})["'][^>\n]{0,80}?\b(?:value|val|content|default)\s*=\s*["'](?P<v>[^"'\n]+)["']"#,
    r#"(?i)\b(?:name|key|id|property)\s*=\s*["'](?P<k>[A-Za-z0-9_.: -]{3,64})["'][^>\n]*>\s*(?:<value>\s*)?(?:<!\[CDATA\[)?(?P<v>[^<>\n]{3,200}?)\s*(?:\]\]>)?</"#,
    r#"(?i)<key>\s*(?P<k>[A-Za-z0-9_.: -]{3,64})\s*</key>\s*<string>(?P<v>[^<>\n]{3,200})</string>"#,
    r#"(?i)<(?:[a-z]+-)?name>\s*(?P<k>[A-Za-z0-9_.: -]{3,64})\s*</(?:[a-z]+-)?name>\s*<(?:[a-z]+-)?value>(?P<v>[^<>\n]{3,200})</"#,
    r#"(?i)<(?:[a-z0-9]+:)?(?P<k>[a-z0-9_.-]*(?:pass|pwd|secret|token|key|credential)[a-z0-9_.-]*)(?:\s[^<>\n]*)?>\s*(?:<!\[CDATA\[)?(?P<v>[^<>\n]{3,200}?)\s*(?:\]\]>)?</"#,
    r#"(?i)<(?:[a-z0-9]+:)?(?P<k>[a-z0-9_.-]*(?:pass|pwd|secret|token|key|credential)[a-z0-9_.-]*)\s(?:[^<>\n]*\s)?(?:value|val)\s*=\s*["'](?P<v>[^"'\n]{3,200})["']"#,
    r#"(?i)["'](?P<k>[a-z0-9_.-]*(?:pass|pwd|secret|token|key|credential)[a-z0-9_.-]*)["']\s*[:=]\s*\{\s*["']?(?:value|default|defaultvalue|plaintext|secret)["']?\s*[:=]\s*["'](?P<v>[^"'\n]{3,200})["']"#,
    // `set -x DB_PASSWORD X` of the fish shell.
    r#"\bset\s+-\w+\s+(?P<k>[A-Z][A-Z0-9_]{2,63})\s+(?:["'](?P<v>[^"'\n]+)["']|(?P<w>[^\s"';|&]+))"#,
    // Terraform, CloudFormation.
    r#"(?i)\bvariable\s+["'](?P<k>[A-Za-z0-9_-]{3,64})["']\s*\{[^}]{0,200}?\bdefault\s*=\s*["'](?P<v>[^"'\n]+)["']"#,
    r#"(?i)\b(?P<k>[A-Za-z0-9_-]*(?:password|secret|token|apikey))\s*:\s*\n(?:\s+\w+:[^\n]*\n){0,3}?\s+default\s*:\s*["']?(?P<v>[^\s"']+)"#,
];

/// All values in `text` in the position of a secret. The escapes in `text` are blanked out, see `unescaped`.
pub(super) fn passwords(text: &str) -> Vec<FoundSecret> {
    let mut found = Vec::new();
    add_by_rules(text, &mut found);
    add_cookies(text, &mut found);
    add_pairs(text, &mut found);
    add_foreign(text, &mut found);
    add_inserts(text, &mut found);
    add_lists(text, &mut found);
    add_tables(text, &mut found);
    add_by_words(text, &mut found);
    found
}

fn add_by_rules(text: &str, found: &mut Vec<FoundSecret>) {
    for (rule, regex) in POSITIONS.hinted_in(text) {
        for captures in regex.captures_iter(text.as_bytes()) {
            let Some(value) = rule.secret(&captures) else {
                continue;
            };
            let range = trimmed(text, value.range());
            let Some(inside) = text.get(range.clone()) else {
                continue;
            };
            let is_port = inside
                .bytes()
                .all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'/'))
                && rule.regex.contains("-p");
            let is_value =
                inside.len() >= 3 && !is_blank(inside) && !is_reference(inside) && !is_port;
            if is_value && (!rule.strong || is_strong(inside) && !is_path(inside)) {
                found.push(FoundSecret::new(&rule.id, range));
            }
        }
    }
}

/// The values of cookies that identify a session or look random.
fn add_cookies(text: &str, found: &mut Vec<FoundSecret>) {
    let Some(regex) = &*COOKIE else { return };
    for list in regex
        .captures_iter(text.as_bytes())
        .filter_map(|captures| captures.get(1))
    {
        let mut at = list.start();
        for pair in text.get(list.range()).unwrap_or("").split(';') {
            let begin = at;
            at += pair.len() + 1;
            let Some((name, value)) = pair.split_once('=') else {
                continue;
            };
            let value = value.split_whitespace().next().unwrap_or("");
            let names = words(name.trim());
            let attribute = [
                "path", "domain", "expires", "max", "samesite", "theme", "lang", "locale",
            ];
            if names.iter().any(|word| attribute.contains(&word.as_str())) {
                continue;
            }
            let telling = [
                "sess", "sid", "auth", "token", "jwt", "login", "remember", "csrf", "xsrf",
                "secret", "id",
            ];
            let is_telling = telling
                .iter()
                .any(|part| name.to_ascii_lowercase().contains(part));
            let is_secret = if is_telling {
                value.len() >= 6
            } else {
                value.len() >= 16
            } && is_strong(value);
            if is_secret && !is_blank(value) && !is_reference(value) {
                let start = begin + name.len() + 1;
                found.push(FoundSecret::new("cookie", start..start + value.len()));
            }
        }
    }
}

/// Name and value as two fields: Kubernetes' `env`, XML attributes, property lists, Terraform's variables.
fn add_pairs(text: &str, found: &mut Vec<FoundSecret>) {
    if !["alue", "efault", "<", "set -"]
        .iter()
        .any(|hint| text.contains(hint))
    {
        return;
    }
    for captures in PAIR_SET
        .iter()
        .flat_map(|regex| regex.captures_iter(text.as_bytes()))
    {
        let (Some(key), Some(value)) = (
            captures.name("k"),
            captures.name("v").or_else(|| captures.name("w")),
        ) else {
            continue;
        };
        let Some(class) = text.get(key.range()).and_then(class_of) else {
            continue;
        };
        let range = trimmed(text, value.range());
        let Some(inside) = text.get(range.clone()) else {
            continue;
        };
        push_if_secret(text, class, inside, range, ValueSyntax::Quoted, found);
    }
}

fn add_foreign(text: &str, found: &mut Vec<FoundSecret>) {
    let in_ascii = [" de passe", "eslo", "ata sandi"];
    if text.is_ascii() && !in_ascii.iter().any(|word| text.contains(word)) {
        return;
    }
    for captures in FOREIGN.captures_iter(text) {
        let (Some(word), Some(between), Some(value)) =
            (captures.get(1), captures.get(2), captures.get(3))
        else {
            continue;
        };
        let range = trimmed(text, cut_value(text, value.range(), false));
        let Some(inside) = text.get(range.clone()) else {
            continue;
        };
        let is_assigned = between.as_str().contains([':', '：', '=', '＝']);
        let class = if ["密钥", "密鑰", "令牌", "秘钥", "私钥", "私鑰"].contains(&word.as_str())
        {
            KeywordClass::Secret
        } else {
            KeywordClass::Password
        };
        // `type=text` is an attribute of the field.
        let is_attribute = inside
            .split_once('=')
            .is_some_and(|(name, _)| name.bytes().all(|byte| byte.is_ascii_lowercase()));
        let is_path = is_path(inside)
            || ["/", "./", "~/"]
                .iter()
                .any(|start| inside.starts_with(start));
        // `令牌数：128000`, `密码迭代次数：600000`: so many of them, not their value.
        let is_count = between
            .as_str()
            .contains(['数', '量', '间', '次', '期', '耗'])
            && inside.bytes().all(|byte| byte.is_ascii_digit());
        let is_value = inside.len() >= 3
            && !is_path
            && !is_attribute
            && !is_count
            && !is_blank(inside)
            && !is_reference(inside)
            && !is_code(text, inside, &range);
        // `密码是 X。`: a plain word is the password if the sentence ends with it.
        let said = ["是", "为", "成", "用", "は", "는", "은", "est", "ist", "es"]
            .iter()
            .any(|word| between.as_str().contains(word));
        let ends = text
            .get(range.end..)
            .unwrap_or("")
            .trim_start_matches([' ', '"', '`', '\'', '”'])
            .chars()
            .next();
        let is_last =
            ends.is_none_or(|c| matches!(c, '\n' | '。' | '，' | '；' | '！' | ',' | '.'));
        let is_plain = class == KeywordClass::Password
            && !is_label(inside)
            && (is_assigned || said && inside.len() >= 5);
        if is_value && (is_strong(inside) || is_plain) {
            let is_doubtful = !is_strong(inside) && !is_assigned && !is_last;
            found.push(FoundSecret {
                kind: kind_of(class),
                range,
                is_doubtful,
            });
        }
    }
}

fn add_by_words(text: &str, found: &mut Vec<FoundSecret>) {
    let Some(hints) = &*HINTS else { return };
    // A password that is known may have such a word in it.
    let known = found.iter().filter(|one| !one.is_doubtful);
    let known = joined_ranges(known.map(|one| one.range.clone()).collect(), 0);
    let mut end_of_last = 0;
    for hit in hints.find_iter(text) {
        let last = known.partition_point(|one| one.start <= hit.start());
        let last = last.checked_sub(1).and_then(|at| known.get(at));
        if hit.start() < end_of_last || last.is_some_and(|one| one.contains(&hit.start())) {
            continue;
        }
        let key = identifier(text, hit.range());
        end_of_last = key.end;
        let Some(class) = class_at(text, &key) else {
            continue;
        };
        if let Some((range, notation)) = value_after(text, &key, class) {
            let mut range = trimmed(text, range);
            // The user of a URL may be called so: `https://x-access-token:X@host`.
            let is_in_url = text
                .get(..key.start)
                .is_some_and(|before| before.ends_with("://"));
            let host = text.get(range.clone()).and_then(|value| value.find('@'));
            if let Some(host) = host.filter(|_| is_in_url) {
                range.end = range.start + host;
            }
            let Some(inside) = text.get(range.clone()) else {
                continue;
            };
            let name = text.get(key.clone()).unwrap_or("").to_ascii_lowercase();
            let is_other = match name.as_str() {
                "pass" => !is_password_of(text, &key, inside, notation),
                // `pw = 1920`, `"clave": "menu.inicio"`: a width, the key of an entry.
                "pw" | "clave" => {
                    !is_strong(inside) && has_byte(inside, |byte| !byte.is_ascii_alphabetic())
                }
                _ => false,
            };
            if is_other {
                continue;
            }
            push_if_secret(text, class, inside, range, notation, found);
        }
    }
}

/// `pass` alone is more often a verb or the result of a test: its value must look like a password, or a user must
/// come before it.
fn is_password_of(text: &str, key: &Range<usize>, value: &str, notation: ValueSyntax) -> bool {
    let near = last_bytes(text.get(..key.start).unwrap_or(""), 60).to_ascii_lowercase();
    let has_user = ["user", "login", "account", "host", "uid"]
        .iter()
        .any(|word| near.contains(word));
    let is_result = text.get(key.clone()) == Some("PASS")
        && notation != ValueSyntax::Tight
        && notation != ValueSyntax::Quoted;
    let is_plausible = is_strong(value)
        && (notation == ValueSyntax::Quoted
            || !is_identifier(value) && !value.contains(['|', '(']));
    let is_assigned = text
        .get(key.end..)
        .is_some_and(|after| after.trim_start().starts_with('='));
    let is_literal = notation == ValueSyntax::Quoted && is_assigned && value.len() >= 5;
    notation != ValueSyntax::Prose && !is_result && (has_user || is_plausible || is_literal)
}

/// `INSERT INTO users (name, password) VALUES ('bob', 'X')`: the value below the column.
pub(super) fn add_inserts(text: &str, found: &mut Vec<FoundSecret>) {
    static INSERT: LazyLock<Option<bytes::Regex>> = LazyLock::new(|| {
        ascii(r"(?i)\binto\s+\S+\s*\(([^()]{3,600})\)\s*values\s*((?:\([^()]{1,2000}\)[\s,]*)+)")
    });
    let is_insert = text.contains("INTO") || text.contains("into");
    let Some(regex) = INSERT.as_ref().filter(|_| is_insert) else {
        return;
    };
    for captures in regex.captures_iter(text.as_bytes()) {
        let (Some(columns), Some(rows)) = (captures.get(1), captures.get(2)) else {
            continue;
        };
        let classes: Vec<Option<KeywordClass>> = text
            .get(columns.range())
            .unwrap_or("")
            .split(',')
            .map(class_of)
            .collect();
        let mut at = rows.start();
        for row in text.get(rows.range()).unwrap_or("").split_inclusive(')') {
            let open = row.find('(').map_or(0, |open| open + 1);
            let cells = row.get(open..).unwrap_or("").split(',');
            let quoted = [ValueSyntax::Quoted];
            push_cells(
                text,
                at + open,
                cells.zip(classes.iter().copied()),
                &quoted,
                found,
            );
            at += row.len();
        }
    }
}

/// `passwords: [a, b]`, and the same as a list of YAML: the values below a name in the plural.
fn add_lists(text: &str, found: &mut Vec<FoundSecret>) {
    static LIST: LazyLock<Option<bytes::Regex>> = LazyLock::new(|| {
        ascii(
            r#"(?i)(password|passwd|passphrase|secret|key)s["']?[ \t]*[:=]\s*(\[[^\[\]]{3,2000}\]|(?:-[ \t]+[^\n]+(?:\n\s*|$))+)"#,
        )
    });
    let Some(regex) = &*LIST else { return };
    for captures in regex.captures_iter(text.as_bytes()) {
        let [name, list] = [1, 2].map(|group| captures.get(group).map_or(0..0, |one| one.range()));
        let name = identifier(text, name.clone()).start..name.end;
        let class = text.get(name).and_then(class_of);
        let cells = text.get(list.clone()).unwrap_or("").split([',', '\n']);
        let both = [ValueSyntax::Quoted, ValueSyntax::Bare];
        push_cells(
            text,
            list.start,
            cells.map(|cell| (cell, class)),
            &both,
            found,
        );
    }
}

/// Notes the secrets among cells with one character between them, the first of which begins at `at`, each with its class.
fn push_cells<'t>(
    text: &str,
    mut at: usize,
    cells: impl Iterator<Item = (&'t str, Option<KeywordClass>)>,
    written: &[ValueSyntax],
    found: &mut Vec<FoundSecret>,
) {
    for (cell, class) in cells {
        let value = cell.trim_start_matches([' ', '\t', '[', '-']);
        let place = value_at(text, at + cell.len() - value.len(), ValueSyntax::Bare);
        let place = place.filter(|(_, notation)| written.contains(notation));
        if let (Some(class), Some((range, notation))) = (class, place) {
            let range = match notation {
                ValueSyntax::Bare => trimmed(text, range),
                _ => range,
            };
            let inside = text.get(range.clone()).unwrap_or("");
            push_if_secret(text, class, inside, range, notation, found);
        }
        at += cell.len() + 1;
    }
}

/// Tables: a line of names, and below it rows with as many cells. As CSV, as consoles of databases print them, or of
/// Markdown. Only a value that can hardly be a word counts.
pub(super) fn add_tables(text: &str, found: &mut Vec<FoundSecret>) {
    let mut header: Option<Header> = None;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        if header.is_some() && is_ruler(line) {
            continue;
        }
        let rows = header
            .as_ref()
            .map(|header| (header, cells(line, header.delimiter)));
        let Some((header, cells)) =
            rows.filter(|(header, cells)| header.classes.len() == cells.len())
        else {
            header = Header::of(line);
            continue;
        };
        for (class, cell) in header.classes.iter().zip(cells) {
            let value = line.get(cell.clone()).unwrap_or("");
            // A column of tokens may be one of words.
            let is_name = |class| class == KeywordClass::Token && is_identifier(value);
            let is_random = value.len() >= 6 && is_strong(value);
            if let Some(class) = class.filter(|class| is_random && !is_name(*class)) {
                let range = start + cell.start..start + cell.end;
                push_if_secret(text, class, value, range, ValueSyntax::Quoted, found);
            }
        }
    }
}

/// The names of the columns of a table, of which one at least names a secret.
struct Header {
    delimiter: char,
    /// `None` for a column of anything else.
    classes: Vec<Option<KeywordClass>>,
}

impl Header {
    fn of(line: &str) -> Option<Header> {
        const LONGEST: usize = 1000;
        let is_hinted = line.len() <= LONGEST && HINTS.as_ref()?.is_match(line);
        let delimiters = ['|', '\t', ',', ';'].into_iter().filter(|_| is_hinted);
        delimiters
            .filter(|delimiter| line.contains(*delimiter))
            .find_map(|delimiter| Header::with(line, delimiter))
    }

    fn with(line: &str, delimiter: char) -> Option<Header> {
        let cells = cells(line, delimiter).into_iter();
        let names: Vec<&str> = cells.filter_map(|cell| line.get(cell)).collect();
        let named = names.iter().filter(|name| !name.is_empty()).count();
        // Only frames leave the first and the last cell empty. Prose has a blank after a comma.
        let is_frame = delimiter == '|' && named + 2 == names.len();
        let is_prose = delimiter != '|' && line.contains(", ");
        // Tools write the number of a line before it, and a bar.
        let is_name = |name: &&str| {
            name.bytes().all(is_name_byte) && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        let are_names = names.iter().all(is_name);
        let is_header = named >= 2 && (named == names.len() || is_frame) && are_names && !is_prose;
        let classes: Vec<Option<KeywordClass>> = names.into_iter().map(class_of).collect();
        (is_header && classes.iter().any(Option::is_some)).then_some(Header { delimiter, classes })
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' ')
}

/// The cells of a line, without blanks, quotes, and the number that a tool wrote before the line.
fn cells(line: &str, delimiter: char) -> Vec<Range<usize>> {
    let after = line
        .trim_start()
        .trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = after.len() < line.trim_start().len();
    let number_ends = ['→', '\t']
        .into_iter()
        .filter(|mark| is_numbered && *mark != delimiter);
    let rest = number_ends
        .filter_map(|mark| after.strip_prefix(mark))
        .next()
        .unwrap_or(line);
    let mut end = line.len() - rest.len();
    let split = rest.split(delimiter);
    split
        .map(|cell| {
            let start = end;
            end += cell.len() + delimiter.len_utf8();
            let quotes = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`');
            let value = cell.trim_matches(quotes);
            let before = cell.len() - cell.trim_start_matches(quotes).len();
            start + before..start + before + value.len()
        })
        .collect()
}

/// Whether a line only divides the names from the rows.
fn is_ruler(line: &str) -> bool {
    line.contains('-') && line.trim().chars().all(|c| "-+|:= ".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(PAIR_SET.len(), PAIRS.len());
        assert!(COOKIE.is_some() && HINTS.is_some());
    }

    #[test]
    fn an_identifier_names_a_secret_by_its_words() {
        for name in [
            "DB_PASSWORD",
            "dbPassword",
            "userpass",
            "smtp.auth.pwd",
            "X-Api-Key",
            "clientSecret",
            "PASSWORD_OLD",
        ] {
            assert!(class_of(name).is_some(), "{name}");
        }
        for name in [
            "password_min_length",
            "passwordResetTokenExpiresAt",
            "next_page_token",
            "tokens",
            "public_key",
            "compass",
        ] {
            assert_eq!(class_of(name), None, "{name}");
        }
    }

    #[test]
    fn the_address_of_a_session_is_not_a_secret() {
        assert_eq!(
            passwords(r#"session_key="agent:main:telegram:group:-1001:17585","#),
            []
        );
        assert_eq!(passwords(r#"session_key=\"agent:main:feishu:dm\","#), []);
        for random in ["k3v9xq2m7p4tz8wd", "9f8e7d6c5b4a3928:17:ab42"] {
            assert_eq!(
                passwords(&format!("session_key=\"{random}\"")).len(),
                1,
                "{random}"
            );
        }
    }

    #[test]
    fn a_user_before_pass_is_seen_after_characters_of_several_bytes() {
        // The 60 bytes before `pass` begin inside a character.
        assert_ne!(
            passwords("数据库的登录信息如下请不要外传谢谢大家 user bob pass=swordfish"),
            []
        );
    }

    #[test]
    fn secrets_are_found_where_no_assignment_shows_them() {
        let value = ["Kq7", "xW2mZp9T", "vR4nB8sD", "f3Hj6Ly1"].concat();
        for text in [
            format!("printf '%s' '{value}' > /run/secrets/db_password"),
            format!("New token created: {value}"),
            format!("user admin, pass {value}, host h"),
            format!("form-data; name=\"password\"\r\n\r\n{value}\r\n--x"),
            format!("REDISCLI_AUTH={value} redis-cli"),
            format!(
                r#"[{{"name":"session","value":"{value}","domain":".x.dev","httpOnly":true}}]"#
            ),
            format!("#HttpOnly_.x.dev\tTRUE\t/\tTRUE\t1790000000\tsid\t{value}"),
            format!("PASSWORD_SALT={value}"),
        ] {
            let found = passwords(&text);
            let values: Vec<&str> = found.iter().map(|one| &text[one.range.clone()]).collect();
            assert_eq!(values, [value.as_str()], "{text}");
        }
        for text in [
            "printf '%s' 'see chapter 3' > docs/tokens.md",
            "New token created: 3fd92",
            "user story pass rate 97.3, pass 3",
            "form-data; name=\"title\"\r\n\r\nq7Rk2Zt9Lm",
            "DISABLE_AUTH=true NEXT_AUTH=$AUTH_V2",
            r#"{"name":"a","value":"q7Rk2Zt9Lm4Xc8Vb3N","unit":"ms"}"#,
            "salt = os.urandom(16); image: salt-minion-3006.9",
        ] {
            assert_eq!(passwords(text), [], "{text}");
        }
    }

    #[test]
    fn words_in_the_position_of_a_password_stay() {
        for text in [
            "Enable secret scanning, enable password reset by mail",
            "If the user enters password incorrectly, let the user reset password from here",
            "It covers authorization, token refresh; authorization: key rotation",
            "Credentials are encrypted/decrypted by KMS, creds are cached/refreshed",
            "Train the network with lr=0.001, a network using ResNet50",
            "[0] PASS src/app.test.ts\n[chromium] PASS login.spec.ts\n",
            "admin console\ndefault:\n  image: node:20-bullseye\n",
            "root user (default: meta-llama/Llama-3.1-8B-Instruct)",
            "sign in with github/oauth2, admin: src/routes2.ts, login as ops/deploy2",
            "GET /files?key=exports/2024/05/report.csv",
            "https://x.example.com/err?code=ERR_TIMEOUT_4041",
            "a basic python3.11-slim image, basic end2end-coverage",
            "52:54:00:12:34:56\nfe80:0000:0000:0000:0202:b3ff:fe1e:8329\nmain.c:120:45:error:x_y",
            "auth module utils2.ts\nbackup code from 2024-05-01 was moved",
            "jwt.verify(token, \"RS256\"); createHmac(\"sha256\", \"utf8\")",
            "令牌数：128000，令牌过期时间：604800，密码迭代次数：600000",
        ] {
            assert_eq!(passwords(text), [], "{text}");
        }
        let value = ["Kq7x", "W2mZp9T"].concat();
        for text in [
            format!("enable secret {value}"),
            format!("username admin privilege 15 password {value}"),
            format!("machine api.x.io login jane password {value}"),
            format!("Authorization: Bearer {value}"),
            format!("log in as bob/{value}!"),
            format!("credentials are admin/{value}"),
            format!("log in with root/{value}"),
            format!("default: admin/{value}"),
            format!("wifi with key {value}"),
            format!("ftp> PASS {value}\n"),
            format!("GET /v1?key={value}{value}"),
            format!("basic {value}Zz8="),
            format!("db:5432:shop:app:{value}"),
            format!("> auth {value}"),
            format!("令牌：{value}"),
            format!("La password è {value}."),
            format!("A senha é {value}."),
            format!("Lösenordet är {value}."),
            format!("Heslo je {value}."),
            format!("Mật khẩu là {value}"),
            format!("Kata sandi: {value}"),
        ] {
            let found = passwords(&text);
            let values: Vec<&str> = found.iter().map(|one| &text[one.range.clone()]).collect();
            assert!(
                !values.is_empty() && values.iter().all(|found| found.starts_with(&value)),
                "{text}: {values:?}"
            );
        }
    }

    #[test]
    fn a_word_of_two_meanings_names_a_secret_only_if_the_value_is_random() {
        for text in [
            r#"<Line type="monotone" dataKey="temperature" /> xKey: 'quarter'"#,
            "const STORAGE_KEY = 'todos-v2'; storageKey=\"theme-preference\"",
            "service_key = \"orders-api\"; serverKey: \"billing\"; rootKey = \"entities\"",
            r#"{"mnemonic": "vmovups"} pw = 1920; {"clave": "menu.inicio"}"#,
        ] {
            let sure = passwords(text).into_iter().filter(|one| !one.is_doubtful);
            assert_eq!(sure.count(), 0, "{text}");
        }
        let value = ["Kq7xW2m", "Zp9TvR4nB8sDf3Hj6"].concat();
        for name in ["dataKey", "STORAGE_KEY", "server_key", "pw", "clave"] {
            let text = format!("{name} = \"{value}\"");
            assert_eq!(passwords(&text).len(), 1, "{text}");
        }
        let words = "legal winner thank year wave sausage worth useful legal winner thank yellow";
        assert_eq!(passwords(&format!(r#"{{"mnemonic": "{words}"}}"#)).len(), 1);
    }

    #[test]
    fn what_stands_beside_a_password_stays() {
        let value = ["S3cret", "Pw9"].concat();
        for text in [
            format!("mysql -uroot -p{value} shop < dump.sql"),
            format!("git clone https://x-access-token:{value}@git.example.com/a/b.git"),
            format!("https://my-token:{value}@git.example.com"),
        ] {
            let found = passwords(&text);
            let values: Vec<&str> = found.iter().map(|one| &text[one.range.clone()]).collect();
            assert!(
                !values.is_empty() && values.iter().all(|found| *found == value),
                "{text}: {values:?}"
            );
        }
    }

    #[test]
    fn a_word_that_ends_a_sentence_is_doubtful() {
        let found = passwords("the wifi password is swordfish.");
        assert_eq!(
            found
                .iter()
                .map(|found| found.is_doubtful)
                .collect::<Vec<_>>(),
            [true]
        );
        assert_eq!(passwords("the password is wrong."), []);
    }
}

#[cfg(test)]
mod columns_tests {
    use super::super::passwords::passwords;

    #[test]
    fn values_below_the_name_of_a_secret_are_found() {
        let value = ["NeEP", "1ssoT^7"].concat();
        for table in [
            "user,password,role\napp,§,admin\n",
            "     1→user,password\n     2→\"app\",\"§\"\n",
            "| user | password |\n|---|---|\n| app | `§` |",
            " user | password \n------+----------\n app  | §\n(1 row)",
            "+------+----------+\n| user | password |\n+------+----------+\n| app  | § |\n",
            "id\tapi_key\n7\t§\n",
            "INSERT INTO t (a, password) VALUES (1, '§')",
            "passwords: [none, §]",
            "\"db_passwords\": [\n  \"§\"\n]",
            "api_keys:\n  - '§'\n  - example\n",
            "htpasswd -cb htfile jane §",
            "htpasswd -nb jane § > users",
            "Password for 'https://jane@git.example.com': §",
        ] {
            let text = table.replace('§', &value);
            let found = passwords(&text);
            let values: Vec<&str> = found.iter().map(|one| &text[one.range.clone()]).collect();
            assert_eq!(values, [value.as_str()], "{text}");
        }
    }

    #[test]
    fn a_quoted_value_is_a_secret_to_its_last_sign() {
        let value = ["NeEP", "1ssoT^7."].concat();
        for text in [
            format!("INSERT INTO t (a, password) VALUES (1, '{value}')"),
            format!("passwords: [none, '{value}']"),
        ] {
            let found = passwords(&text);
            let values: Vec<&str> = found.iter().map(|one| &text[one.range.clone()]).collect();
            assert_eq!(values, [value.as_str()], "{text}");
        }
    }

    #[test]
    fn what_is_no_table_of_secrets_stays() {
        for text in [
            "token,lemma,pos\nrunning,run,VERB\nabbreviation2,abbr,NOUN\n",
            "user,password_length,role\napp,NeEP1ssoT7,admin\n",
            "user, password, role\nq7Rk2Zt9Lm, q7Rk2Zt9Lm, q7Rk2Zt9Lm\n",
            "| test | password |\n|---|---|\n| login | `None` |\n| login | required |",
            "password;\nq7Rk2Zt9Lm;\n",
            "tokens: [q7Rk2Zt9Lm, running]\nprimary_keys: [user_id2, order_id3]",
            "secrets: [db-credentials, tls-cert]\npasswords:\n  - required\n",
            "   5|    pass\n   6|    \"\"\"q7Rk2Zt9Lm\"\"\"\n",
        ] {
            assert_eq!(passwords(text), [], "{text}");
        }
    }
}
