//! Secrets in texts: machine tokens by their shape, passwords by their position, private keys, and any of these inside
//! base64.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::edit::unescaped;
use super::passwords::passwords;
use super::rules::{TOKENS, compiled};
use super::values::{FoundSecret, entropy, is_placeholder, is_strong, is_value, is_words};
use base::lazy_patterns;
use base::text::first_bytes;

lazy_patterns! {
    KEY_BLOCK = compiled(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----");

    KEY_END = compiled(r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----");

    BASE64 = compiled(r"[A-Za-z0-9+/_-]{24,}={0,2}");
}

/// All secrets of `text`, in order, none inside another.
pub(super) fn secrets(text: &str) -> Vec<FoundSecret> {
    let mut secrets = secrets_and_doubts(text);
    secrets.retain(|secret| !secret.is_doubtful);
    secrets
}

/// The secrets of `text`, and the values in the position of a secret that may also be ordinary words.
pub(super) fn secrets_and_doubts(text: &str) -> Vec<FoundSecret> {
    let text = &*unescaped(text);
    let mut found = by_rules(text);
    found.extend(private_keys(text));
    found.extend(in_base64(text));
    found.extend(passwords(text));
    found.sort_by_key(|found| {
        (
            found.is_doubtful,
            found.range.start,
            std::cmp::Reverse(found.range.end),
        )
    });
    let (mut sure, mut doubtful): (Vec<FoundSecret>, Vec<FoundSecret>) = (Vec::new(), Vec::new());
    for one in found {
        // Sure ones come first, then doubtful ones, each in order: so only the next sure one and the last doubtful one
        // can overlap it.
        let next = sure.get(sure.partition_point(|other| other.range.end <= one.range.start));
        let mut near = next.into_iter().chain(doubtful.last());
        if near.any(|other| one.range.start < other.range.end && other.range.start < one.range.end)
        {
            continue;
        }
        if one.is_doubtful {
            doubtful.push(one)
        } else {
            sure.push(one)
        }
    }
    sure.append(&mut doubtful);
    sure.sort_by_key(|found| found.range.start);
    sure
}

fn by_rules(text: &str) -> Vec<FoundSecret> {
    let mut secrets = Vec::new();
    for (rule, regex) in TOKENS.hinted_in(text) {
        for captures in regex.captures_iter(text.as_bytes()) {
            let range = rule
                .secret(&captures)
                .and_then(|secret| token_at(text, secret.range(), rule.entropy))
                .filter(|range| !rule.strong || text.get(range.clone()).is_some_and(is_strong));
            secrets.extend(range.map(|range| FoundSecret::new(&rule.id, range)));
        }
    }
    secrets
}

/// The token that a rule found, without a delimiter at its end; `None` if it is a placeholder, words or a reference, or
/// less random than the rule demands.
fn token_at(text: &str, range: Range<usize>, entropy_of_rule: f64) -> Option<Range<usize>> {
    let range = trimmed(range.clone(), text.get(range)?);
    let value = text.get(range.clone())?;
    let is_token = value.len() >= 8
        && entropy(value) >= entropy_of_rule
        && !is_placeholder(value)
        && !is_words(value)
        && is_value(value);
    is_token.then_some(range)
}

/// Blocks of private keys, up to their end or, in a text that was cut, as far as the base64 goes. Lines may be escaped
/// in JSON, quoted, numbered, or carry the marks of a diff. A block without a key is documentation.
fn private_keys(text: &str) -> Vec<FoundSecret> {
    let begins = KEY_BLOCK.find_iter(text);
    let mut blocks: Vec<FoundSecret> = begins
        .filter_map(|begin| private_key(text, begin.range()))
        .collect();
    for end in KEY_END.find_iter(text) {
        if !blocks
            .iter()
            .any(|block| block.range.contains(&end.start()))
        {
            blocks.extend(tail_of_key(text, end.range()));
        }
    }
    blocks
}

/// The lines of base64 before the line `end`, where the beginning of the block was cut off.
fn tail_of_key(text: &str, end: Range<usize>) -> Option<FoundSecret> {
    let before = text.get(..end.start)?;
    let lines = before.trim_end().rsplit('\n');
    let of_key = lines.take_while(|line| {
        let line = line.trim();
        line.len() > 1 && line.chars().all(may_be_in_key) && !line.contains(' ')
    });
    let first = of_key.last()?;
    let start = first.as_ptr().addr() - text.as_ptr().addr();
    has_key_line(text.get(start..end.start)?)
        .then(|| FoundSecret::new("private-key", start..end.end))
}

/// Whether a text has a line of base64 as long as those of a key: documentation has dots or a few letters.
fn has_key_line(text: &str) -> bool {
    const LINE: usize = 40;
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    text.split(|c| !is_base64(c)).any(|run| run.len() >= LINE)
}

/// The block that begins with the line `begin`.
fn private_key(text: &str, begin: Range<usize>) -> Option<FoundSecret> {
    const LONGEST: usize = 16 << 10;
    /// The most bytes of the last line, after its first dashes.
    const LAST_LINE: usize = 64;
    let rest = text.get(begin.end..)?;
    let near = first_bytes(rest, LONGEST);
    let body = near.find("-----");
    let length = body.unwrap_or_else(|| near.find(|c| !may_be_in_key(c)).unwrap_or(near.len()));
    let key = near.get(..length)?;
    let end = body.and_then(|at| {
        first_bytes(rest.get(at + 5..)?, LAST_LINE)
            .find("-----")
            .map(|end| at + end + 10)
    });
    let range = begin.start..begin.end + end.unwrap_or(key.trim_end().len());
    has_key_line(key).then_some(FoundSecret::new("private-key", range))
}

/// Whether a character is base64, or can stand between lines of it.
fn may_be_in_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || c.is_whitespace() || "+/=\\:,|>.-→\"'".contains(c)
}

/// The range without a delimiter at its end: some patterns match the character after the secret too.
fn trimmed(range: Range<usize>, text: &str) -> Range<usize> {
    let end = text.trim_end_matches(|c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | '`' | ')' | ',' | ';')
    });
    range.start..range.start + end.len()
}

/// Base64 that contains a secret.
fn in_base64(text: &str) -> Vec<FoundSecret> {
    let hidden = BASE64.find_iter(text).filter(|run| {
        // Base64 of a text has letters in upper and in lower case.
        let bytes = run.as_str().as_bytes();
        bytes.iter().any(u8::is_ascii_uppercase) && bytes.iter().any(u8::is_ascii_lowercase)
    });
    let found = hidden.filter_map(|run| {
        let decoded = String::from_utf8(decode(run.as_str())?).ok()?;
        let sure = passwords(&decoded)
            .into_iter()
            .find(|position| !position.is_doubtful)
            .map(|position| position.kind);
        let formed = [by_rules(&decoded), private_keys(&decoded)]
            .into_iter()
            .flatten()
            .next()
            .map(|secret| secret.kind);
        Some(FoundSecret::new(formed.or(sure)?, run.range()))
    });
    found.collect()
}

/// Decodes base64 of either alphabet, padded or not; `None` if it is not base64.
fn decode(text: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let alphabet = if text.contains(['-', '_']) {
        &alphabet::URL_SAFE
    } else {
        &alphabet::STANDARD
    };
    let whole = text.trim_end_matches('=');
    // A run of one character too many is not base64, but a run that was cut is still read.
    let length = if whole.len() % 4 == 1 {
        whole.len() - 1
    } else {
        whole.len()
    };
    GeneralPurpose::new(alphabet, config)
        .decode(whole.get(..length)?)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<&'static str> {
        secrets(text).into_iter().map(|found| found.kind).collect()
    }

    #[test]
    fn placeholders_hashes_and_names_are_not_secrets() {
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
            "password: password, 密码是：password",
            "return s.getSessionsBranchEntries(ctx), s.writeFinalTaskCheckpoint",
            "next, err := s.handleOauth2CallbackURLs(ctx)",
            "fc-layer-2, sk_learn_v2, re_escape_2024, pa-checkout-form-v2 and fw_version_2024",
            "assets/9f86d081884c7d659a2feaa0c55ad015.component1234567.js of the GLM page",
            r#"<path d="M10 20L30 40" key="kty" />"#,
            "Private-Lines: 14 and -----BEGIN OpenVPN Static key V1----- begin such files",
        ] {
            assert_eq!(kinds(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn keys_of_vendors_are_found_without_a_word_before_them() {
        let letters = "q7Rk2Zt9Lm4Xc8Vb3Nw6Ys1Hd5Jf0GpTaEuIoKlMzBv".repeat(3);
        let hex = "9f3a7c1e5b2d8046fa17ce39bd528e60".repeat(2);
        for (prefix, rest, of, length) in [
            ("fc", "-", &hex, 32),
            ("e2b", "_", &hex, 40),
            ("csk", "-", &hex, 48),
            ("sk", "_", &hex, 48),
            ("sq", "u_", &hex, 40),
            ("lin", "_oauth_", &hex, 64),
            ("napi", "_", &hex, 64),
            ("ATTA", "", &hex, 64),
            ("pat", "-na1-eb26c57d-21fa-5d32-8263-", &hex, 12),
            ("tvly", "-dev-", &letters, 32),
            ("pc", "sk_q7Rk2Z_", &letters, 60),
            ("nv", "api-", &letters, 64),
            ("ji", "na_", &letters, 60),
            ("tgp", "_v1_", &letters, 43),
            ("re", "_q7Rk2Zt9_", &letters, 24),
            ("rzp", "_live_", &letters, 14),
            ("dp.", "st.prod.", &letters, 43),
            ("CF", "PAT-", &letters, 43),
            ("vcp", "_", &letters, 56),
            ("vk1", ".a.", &letters, 85),
            ("pa", "-", &letters, 43),
            ("AQ", ".Ab", &letters, 48),
            ("EA", "AG", &letters, 120),
        ] {
            let key = [prefix, rest, &of[..length]].concat();
            for text in [
                format!("new Client(\"{key}\")"),
                format!("Here it is: {key}, go."),
            ] {
                assert_eq!(kinds(&text), ["vendor-key"], "{text}");
            }
        }
        let zhipu = format!("ZhipuAI(\"{}.{}\")", &hex[..32], &letters[..16]);
        assert_eq!(kinds(&zhipu), ["vendor-key"]);
    }

    #[test]
    fn a_wrapped_key_goes_with_all_its_lines_and_the_next_line_stays() {
        let letters = "q7Rk2Zt9Lm4Xc8Vb3Nw6Ys1Hd5Jf0GpTaEuIoKlMzBv".repeat(4);
        let key = ["sk-", "ant-api03-", &letters[..140]].concat();
        let parts = [&key[..60], &key[60..120], &key[120..]];
        for between in ["\n", "\\\n", " │\n│ "] {
            let text = format!("key\n{}\nok", parts.join(between));
            let found = secrets(&text);
            let values: Vec<&str> = found.iter().map(|one| &text[one.range.clone()]).collect();
            assert_eq!(values, [parts.join(between)]);
        }
        for next in [
            "5e667811b374954bb1a7119424ea70bf749eced6",
            "release-2024-11-candidate",
            "MAX_TOKENS_V2=4096",
        ] {
            let text = format!("{key}\n{next}");
            let found = secrets(&text);
            let values: Vec<&str> = found.iter().map(|one| &text[one.range.clone()]).collect();
            assert_eq!(values, [key.as_str()], "{next}");
        }
    }

    #[test]
    fn private_keys_without_the_usual_frame_are_found() {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
        let hex = "9f3a7c1e5b2d8046fa17ce39bd528e60";
        for text in [
            format!("Private-Lines: 2\n{line}\n{line}\nPrivate-MAC: {hex}"),
            format!("-----BEGIN OpenVPN Static key V1-----\n{hex}\n{hex}\n{hex}\n-----END"),
            format!("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{line}\n---- END"),
            format!(r#"{{"kty":"EC","x":"{hex}","d":"{}"}}"#, &line[..43]),
        ] {
            assert_eq!(kinds(&text), ["private-key"], "{text}");
        }
    }

    #[test]
    fn hashes_of_passwords_are_found() {
        let letters = ["4akJaL7zjOQAgCfjidszNTxhNqmw", "rrcXwVJB5B6BxFWs2OlkUUoOW"].concat();
        for text in [
            format!("hash $2b$12${letters} of admin"),
            format!("$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ${letters}"),
            format!("$6$aB3xK9pQ${letters}"),
            format!("pbkdf2_sha256$600000$aB3xK9pQ${letters}="),
        ] {
            assert_eq!(kinds(&text), ["password-hash"], "{text}");
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
    fn a_block_that_is_cut_inside_a_character_is_still_a_private_key() {
        let begin = ["-----BEGIN RSA PRIV", "ATE KEY-----"].concat();
        // Lines with numbers have an arrow; the most bytes of a key end inside one.
        let line = format!("{}→", "A".repeat(61));
        let text = format!("{begin}\n{}", line.repeat(300));
        assert_eq!(kinds(&text), ["private-key"]);
    }

    #[test]
    fn both_halves_of_a_private_key_whose_middle_or_beginning_was_cut_go() {
        let [begin, end] =
            ["BEGIN", "END"].map(|word| format!("-----{word} PRIV{} KEY-----", "ATE"));
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
        let cut = format!("{begin}\n{line}\n... 20 lines ...\n{line}\n{end}\nok");
        let tail = format!("$ tail -2 key.pem\n{line}\n{line}\nab==\n{end}\nok");
        for (text, left) in [(&cut, "\nok"), (&tail, "$ tail -2 key.pem\n\nok")] {
            let found = secrets(text);
            let [secret] = found.as_slice() else {
                panic!("{found:?}")
            };
            let (before, after) = (&text[..secret.range.start], &text[secret.range.end..]);
            assert_eq!(format!("{before}{after}"), left);
        }
    }

    #[test]
    fn a_password_ends_where_the_sentence_goes_on() {
        let value = ["aB3#fG6", "&kL9@"].concat();
        for text in [
            format!("您的密码是：{value}。请确保将其保存好。"),
            format!("密码为{value}，请保存"),
        ] {
            let found = secrets(&text);
            assert_eq!(
                found
                    .iter()
                    .map(|f| &text[f.range.clone()])
                    .collect::<Vec<_>>(),
                [value.as_str()]
            );
        }
    }

    #[test]
    fn entropy_is_zero_for_one_letter_and_one_bit_for_two() {
        assert!(entropy("aaaa").abs() < 1e-9);
        assert!((entropy("abab") - 1.0).abs() < 1e-9);
    }
}
