//! How well matching separates typography from meaning: every fact in generated spellings that mean the same, and in near
//! misses that do not. `cargo test -p compeval-lexical facts::variants_tests -- --nocapture` prints both shares.

use std::collections::BTreeMap;

use super::Fact;
use super::finder::FactFinder;
use super::history::History;
use sessions::transcript::{Message, Role, fold, fold_document};

/// Facts of the kinds that banks hold. The transcript names each, and the siblings of the paths.
const FACTS: [&str; 48] = [
    "8081",
    "port 8081",
    "1204 rows",
    "12345678 bytes",
    "-5",
    "offset -12",
    "0.75",
    "1.2",
    "v2.4.1",
    "127.0.0.1:8080",
    "25%",
    "timeout 30s",
    "250 ms",
    "5 seconds",
    "90 minutes",
    "2 hours",
    "64 MB",
    "load_config()",
    "session.commit()",
    "parseLine()",
    "retry_count = 5",
    "max-retries 3",
    "--no-cache",
    "non-blocking write",
    "re-run the migration",
    "can't connect to \"db-1\"",
    "says \"connection refused\"",
    "it's the user's choice",
    "KeyError: 'port'",
    "src/db/mod.rs",
    "crates/core/src/lib.rs",
    "tests/api/test_login.py",
    "src/db",
    "C:\\new\\table.csv",
    "三个文件",
    "十二条记录",
    "30秒",
    "连接超时",
    "端口8080",
    "第二个方案",
    "使用 Redis 缓存",
    "重试 7 次, 间隔 30 秒",
    "2 TB disk",
    "a 30-second timeout",
    "commit 4f2a91c",
    "issue 1290",
    "2024-03-17",
    "UTF-8",
];

/// Sentences that a fact occurs in; none is in brackets, where thousands are left alone.
const FRAMES: [&str; 7] = [
    "{}",
    "It is {}.",
    "We chose {}, then went on",
    "- {}\n- next",
    "结果是 {}。",
    "first line\n{}\nlast line",
    "> {} <",
];

/// Other ways to write a fact; none if the change does not apply.
type Change = fn(&str) -> Vec<String>;

const SAME: [(&str, Change); 15] = [
    ("case", |fact| {
        vec![fact.to_lowercase(), fact.to_uppercase()]
    }),
    ("width", |fact| vec![fact.chars().map(wide).collect()]),
    ("line break", |fact| {
        replaced(fact, " ", &["\n", "  ", "\u{a0}", "\t"])
    }),
    ("hyphens", |fact| {
        replaced(
            fact,
            "-",
            &["\u{2010}", "\u{2011}", "\u{2012}", "\u{2013}", "\u{2212}"],
        )
    }),
    ("hyphen as space", hyphen_as_space),
    ("quotes", |fact| {
        [
            replaced(fact, "'", &["’", "‘", "′"]),
            replaced(fact, "\"", &["”", "“", "„", "»"]),
        ]
        .concat()
    }),
    ("backticks", |fact| {
        [vec![format!("`{fact}`")], words_in(fact, "`")].concat()
    }),
    ("bold", |fact| {
        [vec![format!("**{fact}**")], words_in(fact, "**")].concat()
    }),
    ("thousands", thousands),
    ("quotes as marks", |fact| exchanged(fact, &QUOTED)),
    ("blanks in Chinese", blanks_in_chinese),
    ("zero width", |fact| {
        replaced(fact, " ", &["\u{200b} ", " \u{feff}", " \u{ad}"])
    }),
    ("units", |fact| exchanged(fact, &UNITS)),
    ("calls", |fact| exchanged(fact, &[("()", "")])),
    ("numerals", |fact| {
        exchanged(
            fact,
            &[("三个", "3个"), ("十二条", "12条"), ("30秒", "三十秒")],
        )
    }),
];

const UNITS: [(&str, &str); 19] = [
    ("25%", "25 percent"),
    ("25%", "25 %"),
    ("25%", "25 per cent"),
    ("30s", "30 seconds"),
    ("30s", "30 s"),
    ("30s", "30 secs"),
    ("250 ms", "250ms"),
    ("250 ms", "250 milliseconds"),
    ("5 seconds", "5s"),
    ("90 minutes", "90 min"),
    ("2 hours", "2h"),
    ("64 MB", "64MB"),
    ("30秒", "30 seconds"),
    ("30秒", "30 秒"),
    ("5 seconds", "5-second"),
    ("90 minutes", "90-minute"),
    ("30-second", "30 second"),
    ("2 TB", "2TB"),
    ("2 TB", "2 terabytes"),
];

const QUOTED: [(&str, &str); 3] = [
    ("'port'", "`port`"),
    ("\"db-1\"", "`db-1`"),
    ("\"connection refused\"", "`connection refused`"),
];

const OTHER: [(&str, Change); 8] = [
    ("digit", other_digits),
    ("digit more", more_digits),
    ("sign", other_sign),
    ("decimal", |fact| ending_in_digit(fact, &[".5", ".0.1"])),
    ("version", |fact| {
        if fact.starts_with("v2") || fact == "1.2" {
            ending_in_digit(fact, &["-beta", "-rc1", "rc1"])
        } else {
            Vec::new()
        }
    }),
    ("sibling folder", siblings),
    ("word", |fact| ending_in_letter(fact, &["x", "s9", "_old"])),
    ("ordinal", |fact| {
        exchanged(
            fact,
            &[
                ("三个文件", "第三个文件"),
                ("十二条", "二十二条"),
                ("第二个", "二个"),
                ("三个文件", "第3个文件"),
            ],
        )
    }),
];

fn wide(c: char) -> char {
    match c {
        // a full-width back slash or quotation mark is never typed in a path or in code
        '!'..='~' if !"\\\"'()".contains(c) => char::from_u32(u32::from(c) + 0xFEE0).unwrap_or(c),
        _ => c,
    }
}

fn replaced(fact: &str, from: &str, to: &[&str]) -> Vec<String> {
    to.iter()
        .filter(|_| fact.contains(from))
        .map(|to| fact.replace(from, to))
        .collect()
}

fn exchanged(fact: &str, pairs: &[(&str, &str)]) -> Vec<String> {
    pairs
        .iter()
        .filter(|(from, _)| fact.contains(from))
        .map(|(from, to)| fact.replace(from, to))
        .collect()
}

fn hyphen_as_space(fact: &str) -> Vec<String> {
    let chars: Vec<char> = fact.chars().collect();
    let is_path = fact.contains('/');
    let between = |at: usize| {
        at > 0
            && chars[at - 1].is_alphabetic()
            && chars.get(at + 1).is_some_and(|c| c.is_alphabetic())
    };
    let places = (0..chars.len()).filter(|at| chars[*at] == '-' && between(*at) && !is_path);
    places
        .map(|at| {
            chars
                .iter()
                .enumerate()
                .map(|(i, c)| if i == at { ' ' } else { *c })
                .collect()
        })
        .collect()
}

/// The fact without spaces, and with a space or a line break between Chinese characters and letters or digits.
fn blanks_in_chinese(fact: &str) -> Vec<String> {
    let is_chinese = |c: &char| ('\u{4e00}'..='\u{9fff}').contains(c);
    if !fact.contains(|c| is_chinese(&c)) {
        return Vec::new();
    }
    let bare: Vec<char> = fact.chars().filter(|c| *c != ' ').collect();
    let with = |blank: &str| -> String {
        let join = |pair: &[char]| {
            is_chinese(&pair[0]) != is_chinese(&pair[1]) && pair.iter().all(|c| c.is_alphanumeric())
        };
        let tail = bare
            .windows(2)
            .map(|pair| format!("{}{}", if join(pair) { blank } else { "" }, pair[1]));
        bare[..1].iter().collect::<String>() + &tail.collect::<String>()
    };
    ["", " ", "\n", "\u{3000}"].map(with).into()
}

fn words_in(fact: &str, mark: &str) -> Vec<String> {
    let words: Vec<&str> = fact.split(' ').collect();
    let marked = |at: usize| -> String {
        let word = |(i, word): (usize, &&str)| {
            if i == at {
                format!("{mark}{word}{mark}")
            } else {
                (*word).to_owned()
            }
        };
        words
            .iter()
            .enumerate()
            .map(word)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let is_name = |at: &usize| words[*at].contains(char::is_alphanumeric);
    if words.len() > 1 {
        (0..words.len()).filter(is_name).map(marked).collect()
    } else {
        Vec::new()
    }
}

fn thousands(fact: &str) -> Vec<String> {
    let group = |number: &str, separator: &str| -> String {
        let digits = number.chars().rev().collect::<Vec<_>>();
        let groups: Vec<String> = digits
            .chunks(3)
            .map(|group| group.iter().rev().collect())
            .collect();
        groups.into_iter().rev().collect::<Vec<_>>().join(separator)
    };
    let number = |fact: &str| {
        fact.split(' ')
            .find(|word| word.len() > 3 && word.chars().all(|c| c.is_ascii_digit()))
            .map(str::to_owned)
    };
    let Some(number) = number(fact) else {
        return Vec::new();
    };
    [",", "_", "\u{a0}", "\u{202f}"]
        .iter()
        .map(|separator| fact.replace(&number, &group(&number, separator)))
        .collect()
}

fn other_digits(fact: &str) -> Vec<String> {
    let places = fact.char_indices().filter(|(_, c)| c.is_ascii_digit());
    let digit = |(at, c): (usize, char)| {
        ['0', '1', '4', '7', '9']
            .into_iter()
            .filter(move |other| *other != c)
            .map(move |other| (at, other))
    };
    let put = |(at, other): (usize, char)| format!("{}{other}{}", &fact[..at], &fact[at + 1..]);
    places.flat_map(digit).map(put).collect()
}

fn more_digits(fact: &str) -> Vec<String> {
    let starts = fact.starts_with(|c: char| c.is_ascii_digit());
    let ends = fact.ends_with(|c: char| c.is_ascii_digit());
    let number = fact.split(' ').next().unwrap_or("");
    let is_whole = number.chars().all(|c| c.is_ascii_digit());
    let before = ["1", "9", "3.", "2,"]
        .iter()
        .filter(|more| starts && is_whole && (**more != "2," || number.len() == 3));
    let after = ["0", "7"].iter().filter(|_| ends);
    before
        .map(|more| format!("{more}{fact}"))
        .chain(after.map(|more| format!("{fact}{more}")))
        .collect()
}

fn other_sign(fact: &str) -> Vec<String> {
    match fact
        .strip_prefix('-')
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    {
        Some(bare) => vec![bare.to_owned(), format!("+{bare}"), format!("3{fact}")],
        None if fact.starts_with(|c: char| c.is_ascii_digit()) && !fact.contains("-0") => {
            vec![format!("-{fact}"), format!("\u{2212}{fact}")]
        }
        None => exchanged(
            fact,
            &[
                ("offset -12", "offset 12"),
                ("= 5", "= -5"),
                ("port 8081", "port -8081"),
            ],
        ),
    }
}

fn ending_in_digit(fact: &str, more: &[&str]) -> Vec<String> {
    let ends = fact.ends_with(|c: char| c.is_ascii_digit());
    more.iter()
        .filter(|_| ends)
        .map(|more| format!("{fact}{more}"))
        .collect()
}

fn ending_in_letter(fact: &str, more: &[&str]) -> Vec<String> {
    let ends = fact.ends_with(|c: char| c.is_ascii_alphabetic());
    more.iter()
        .filter(|_| ends)
        .map(|more| format!("{fact}{more}"))
        .collect()
}

fn siblings(fact: &str) -> Vec<String> {
    if !fact.contains('/') {
        return Vec::new();
    }
    let mut others: Vec<String> = Vec::new();
    let parts: Vec<&str> = fact.split('/').collect();
    for at in 0..parts.len() - usize::from(fact.contains('.')) {
        for other in [
            "api",
            "web",
            &format!("{}2", parts[at]),
            &format!("{}-old", parts[at]),
            &format!("old-{}", parts[at]),
        ] {
            let mut changed = parts.clone();
            changed[at] = other;
            if changed != parts {
                others.push(changed.join("/"));
            }
        }
    }
    if fact.contains('.') {
        others.extend([
            format!("{fact}.bak"),
            format!("{}x", fact),
            parts
                .last()
                .map(|name| (*name).to_owned())
                .unwrap_or_default(),
        ]);
    }
    others
}

/// A transcript that names every fact, and for each path a sibling with the same file name.
fn history() -> History {
    let mut messages: Vec<Message> = FACTS
        .iter()
        .map(|fact| Message::text(Role::User, *fact))
        .collect();
    messages.push(Message::text(
        Role::User,
        "src/api/mod.rs, crates/cli/src/lib.rs, tests/web/test_login.py, src/api",
    ));
    History::new(&messages)
}

/// The older way of matching: case, width and white space folded, whole words, a path also by its file name.
fn is_literal(fact: &str, text: &str) -> bool {
    let fold = |text: &str| -> String {
        use unicode_normalization::UnicodeNormalization as _;
        text.nfkc()
            .flat_map(char::to_lowercase)
            .collect::<String>()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (fact, text) = (fold(fact), fold(text));
    let name = fact
        .rsplit_once('/')
        .map(|(_, name)| name.to_owned())
        .filter(|name| name.contains('.'));
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    [Some(fact), name].into_iter().flatten().any(|needle| {
        text.match_indices(&needle).any(|(at, found)| {
            let mut back = text[..at].chars().rev();
            let mut ahead = text[at + found.len()..].chars();
            let (before, beyond) = (back.next(), back.next());
            let (after, next) = (ahead.next(), ahead.next());
            let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
            let first = is_word(needle.chars().next())
                && (is_word(before) || before == Some('.') && digit(beyond));
            let last = is_word(needle.chars().next_back())
                && (is_word(after) || after == Some('.') && digit(next));
            !first && !last
        })
    })
}

#[derive(Default)]
struct FoundCounts {
    texts: usize,
    found: usize,
    literal: usize,
    examples: Vec<String>,
}

fn shares(
    changes: &[(&'static str, Change)],
    expected: bool,
) -> BTreeMap<&'static str, FoundCounts> {
    let history = history();
    let mut shares: BTreeMap<&'static str, FoundCounts> = BTreeMap::new();
    for fact in FACTS {
        let finder = FactFinder::within(
            &Fact {
                spellings: vec![fact.to_owned()],
            },
            history.paths(),
        );
        for (name, change) in changes {
            for variant in change(fact).into_iter().filter(|variant| variant != fact) {
                for frame in FRAMES {
                    let text = frame.replace("{}", &variant);
                    let found = finder.occurs_in(&fold(&text));
                    let share = shares.entry(name).or_default();
                    share.texts += 1;
                    share.found += usize::from(found);
                    share.literal += usize::from(is_literal(fact, &text));
                    if found != expected && share.examples.len() < 5 {
                        share.examples.push(format!("{fact} in {text:?}"));
                    }
                }
            }
        }
    }
    shares
}

/// The percentage found in all texts, the number of texts, and examples of wrong outcomes. Prints the table.
#[expect(clippy::print_stdout, reason = "docs/notes quotes the figures")]
fn total(title: &str, shares: &BTreeMap<&'static str, FoundCounts>) -> (f64, usize, Vec<String>) {
    let sum = |of: fn(&FoundCounts) -> usize| shares.values().map(of).sum::<usize>();
    let (texts, found, literal) = (sum(|s| s.texts), sum(|s| s.found), sum(|s| s.literal));
    let percent = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
    println!("{title:<18} {:>6} {:>8} {:>8}", "texts", "found", "literal");
    for (name, share) in shares {
        let (found, literal) = (
            percent(share.found, share.texts),
            percent(share.literal, share.texts),
        );
        println!(
            "  {name:<16} {:>6} {found:>7.1}% {literal:>7.1}%",
            share.texts
        );
    }
    println!(
        "  {:<16} {texts:>6} {:>7.1}% {:>7.1}%",
        "all",
        percent(found, texts),
        percent(literal, texts)
    );
    (
        percent(found, texts),
        texts,
        shares
            .values()
            .flat_map(|share| share.examples.clone())
            .collect(),
    )
}

#[test]
fn every_typographic_variant_is_found_and_hardly_a_near_miss_is() {
    let (found, texts, missed) = total("variants", &shares(&SAME, true));
    assert!(texts > 1000);
    assert!(missed.is_empty() && found == 100.0, "{missed:#?}");
    let (taken, texts, wrong) = total("near misses", &shares(&OTHER, false));
    assert!(texts > 1000);
    assert!(taken <= 0.5, "{taken}% {wrong:#?}");
}

#[test]
fn facts_are_found_in_json_as_in_prose() {
    let history = history();
    for fact in FACTS {
        let finder = FactFinder::within(
            &Fact {
                spellings: vec![fact.to_owned()],
            },
            history.paths(),
        );
        let json = serde_json::json!({"exit": 0, "lines": [{"text": format!("so\n{fact}\tthen")}]});
        for text in [
            json.to_string(),
            format!("{json:#}"),
            format!("[result terminal]\n{json}\n\n[user]\nnext"),
        ] {
            assert!(finder.occurs_in(&fold_document(&text)), "{fact} in {text}");
        }
    }
}
