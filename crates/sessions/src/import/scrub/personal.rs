//! What identifies a person: home folders, handles, e-mail addresses, authors of commits, mentions.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex, RegexBuilder};

use super::edit::{replaced, unescaped};
use base::lazy_patterns;
use base::text::{around, beside, last_bytes, pattern};
use base::words::WordList;

pub(super) const USER: &str = "user";
/// The address of the sessions that ship with the program.
pub(super) const ADDRESS: &str = "contributor@example.com";

lazy_patterns! {
    /// `/home/NAME`, `/Users/NAME`, `C:\Users\NAME`, `/mnt/c/Users/NAME`, also with doubled slashes; not the end of a longer
    /// path.
    HOME = pattern(
        r"(^|[^A-Za-z0-9_.~-]|file://|[A-Za-z]:|[A-Za-z]%3[Aa]|\\[nrt])((?:/home|/Users|(?:/mnt)?/[A-Za-z]/Users|/var/home|[/\\]{1,4}Users|[/\\]{1,4}Documents and Settings)[/\\]{1,4})([\p{Latin}0-9][\p{Latin}\p{M}0-9._-]*)",
    );

    /// A name with blanks on Windows, also as seen from Unix, whose path goes on.
    HOME_WITH_BLANKS = pattern(
        r"((?:^|[^A-Za-z0-9_.~-])(?:/mnt)?/[A-Za-z]|[A-Za-z]:)([/\\]{1,4}(?:Users|Documents and Settings)[/\\]{1,4})([\p{Latin}0-9][\p{Latin}\p{M}0-9._-]*(?:\\{0,2} \p{Lu}[\p{Latin}\p{M}.'-]*){1,3})[/\\]",
    );

    /// The same in names of folders that stand for paths.
    ENCODED_HOME = pattern(
        r"(^|[^A-Za-z0-9-]|\\[nrt])(-{1,2}(?:home|Users|C--Users|mnt-[a-z]-Users)-|[A-Za-z]--Users-)([A-Za-z0-9_.]+)",
    );

    EMAIL = pattern(r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9](?:[A-Za-z0-9-]*\.)+[A-Za-z]{2,24}");

    AUTHOR = pattern(
        r"(?i)\b(?:Author|Commit|Committer|Tagger|(?:Co-authored|Signed-off|Reviewed|Acked|Tested|Reported)-by):[ \t]*([^<>\s\\:][^<>\n\\:]{0,80}?)[ \t]*<([^<>\s]*@[^<>\s]*)>",
    );

    MENTION = pattern(r"<@(?:[!&]?[0-9]+|[UW][A-Z0-9]{6,}|\*+)(?:\|[^>\s]*)?>");
}
/// What stands before and after reasoning: models of DeepSeek and Qwen, Mistral, Kimi, ByteDance, OpenAI (gpt-oss), Google,
/// OpenThinker, LongCat, Cohere, Apertus, Open WebUI, and what prompts ask for. In lower case.
const REASONING_TAGS: [(&str, &str); 36] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ("<reasoning>", "</reasoning>"),
    ("<reason>", "</reason>"),
    ("<reflection>", "</reflection>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<inner_monologue>", "</inner_monologue>"),
    ("<antthinking>", "</antthinking>"),
    ("<antml:thinking>", "</antml:thinking>"),
    ("<reasoning_scratchpad>", "</reasoning_scratchpad>"),
    ("<seed:think>", "</seed:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|channel|>analysis", "<|channel|>final<|message|>"),
    (
        "<|start|>assistant<|channel|>analysis",
        "<|channel|>final<|message|>",
    ),
    ("<|channel>thought", "<channel|>"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<unused94>", "<unused95>"),
    ("<|think|>", "<|/think|>"),
    ("<|thinking|>", "<|/thinking|>"),
    ("<|begin_of_thinking|>", "<|end_of_thinking|>"),
    ("<mm:think>", "</mm:think>"),
    ("<cot>", "</cot>"),
    ("<chain_of_thought>", "</chain_of_thought>"),
    ("<thought_process>", "</thought_process>"),
    ("<thinking_process>", "</thinking_process>"),
    ("<inner_thoughts>", "</inner_thoughts>"),
    ("<internal_monologue>", "</internal_monologue>"),
    ("<reasoning_content>", "</reasoning_content>"),
    ("[thinking]", "[/thinking]"),
    ("[reasoning]", "[/reasoning]"),
];
lazy_patterns! {
    /// A block of reasoning up to its end tag. The `regex` crate has no back reference, so any end tag in angle brackets ends
    /// one that such a tag begins. Of the other tags, each has its own end.
    REASONING = {
        let marked = REASONING_TAGS
            .iter()
            .filter(|(open, _)| name_in_angles(open).is_none());
        let mut blocks = vec![format!(
            r"<(?:{0})(?:\s[^<>]{{0,200}})?>.*?</(?:{0})\s*>",
            names_in_angles()
        )];
        blocks.extend(
            marked.map(|(open, close)| format!("{}.*?{}", regex::escape(open), regex::escape(close))),
        );
        pattern(&format!(r"(?is)(?:{})[ \t]*\n*", blocks.join("|")))
    };

    /// A block that never ends, as the log was cut: it begins the text, or a line with words in it. After other words a
    /// tag alone on its line may be spoken of.
    UNCLOSED_REASONING = pattern(&format!(
        r"(?is)(?:^\s*<{0}>|\n[ \t]*<{0}>[ \t]*\S).*$",
        format!(r"(?:{})(?:\s[^<>]{{0,200}})?", names_in_angles())
    ));

    /// The line before or after a block of code.
    FENCE = pattern(r"(?m)^[ \t]*(?:```|~~~)");

    /// A remaining tag.
    REASONING_TAG = pattern(&format!(
        r"(?i)</?(?:{})(?:\s[^<>]{{0,200}})?>",
        names_in_angles()
    ));
}

/// The names of the tags in angle brackets. Such a tag without an attribute or an end is so common in prose that it must be
/// one of these.
fn names_in_angles() -> String {
    let names = REASONING_TAGS
        .iter()
        .filter_map(|(open, _)| name_in_angles(open));
    names.collect::<Vec<_>>().join("|")
}

/// The name of a tag such as `<think>`.
fn name_in_angles(open: &str) -> Option<&str> {
    let name = open.strip_prefix('<')?.strip_suffix('>')?;
    let is_name = |c: char| c.is_ascii_lowercase() || "_:".contains(c);
    name.chars().all(is_name).then_some(name)
}

/// What account names are in: those with blanks first, whose beginning would be taken for the whole.
static HOMES: [&LazyLock<Regex>; 3] = [&HOME_WITH_BLANKS, &HOME, &ENCODED_HOME];

/// Names in home folders that do not belong to a person: of every system, of images of machines, and of pages below
/// `/home`.
const NO_PERSON: WordList = WordList(
    "user All Shared Public Default USERNAME username YOUR_USERNAME NAME your-username node runner ubuntu \
     vscode linuxbrew vagrant jovyan codespace ec2-user settings profile dashboard about about.html \
     index.html index billing search products feed",
);

/// Whether the name of a home folder is nobody's: a short number is an id, as in `GET /Users/42`.
fn is_nobody(name: &str) -> bool {
    let is_id = name.len() < 4 && name.bytes().all(|byte| byte.is_ascii_digit());
    is_id || NO_PERSON.has(name) || ["All Users", "Default User"].contains(&name)
}

/// Endings of file names that look like the end of an address.
const FILE_ENDINGS: [&str; 28] = [
    "png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "css", "scss", "js", "mjs", "ts", "tsx",
    "jsx", "json", "py", "rs", "md", "html", "yaml", "yml", "service", "tgz", "gz", "zip", "whl",
    "avif", "mp4",
];

/// The most bytes of a URL before the host.
const LONGEST_LOGIN: usize = 512;

/// Replaces account names in home folders, and passes them to `seen`.
pub(super) fn replace_homes<'a>(
    text: &'a str,
    seen: &mut BTreeSet<String>,
    count: &mut usize,
) -> Cow<'a, str> {
    let mut plain = Cow::from(text);
    for pattern in HOMES {
        let replaced = pattern.replace_all(&plain, |home: &Captures<'_>| {
            without_account(home, seen, count)
        });
        if let Cow::Owned(replaced) = replaced {
            plain = replaced.into();
        }
    }
    plain
}

fn without_account(home: &Captures<'_>, seen: &mut BTreeSet<String>, count: &mut usize) -> String {
    let [whole, before, folder, name] =
        [0, 1, 2, 3].map(|group| home.get(group).map_or("", |part| part.as_str()));
    // A full stop or a hyphen at the end belongs to the sentence.
    let account = name.trim_end_matches(['.', '-']);
    let rest = whole.get(before.len() + folder.len() + account.len()..);
    let rest = rest.unwrap_or_default();
    if is_nobody(account) {
        return whole.to_owned();
    }
    seen.insert(account.replace('\\', ""));
    *count += 1;
    format!("{before}{folder}{USER}{rest}")
}

/// Replaces e-mail addresses and the names before them in lines about commits.
pub(super) fn replace_addresses<'a>(text: &'a str, count: &mut usize) -> Cow<'a, str> {
    if !text.contains('@') {
        return text.into();
    }
    let plain = unescaped(text);
    let mut edits = Vec::new();
    for author in AUTHOR.captures_iter(&plain) {
        let address = author
            .get(2)
            .filter(|address| is_person_address("", address.as_str(), ""));
        edits.extend(author.get(1).map(|name| (name.range(), USER)));
        edits.extend(address.map(|address| (address.range(), ADDRESS)));
    }
    edits.extend(
        find_addresses(&plain)
            .into_iter()
            .map(|range| (range, ADDRESS)),
    );
    replaced(text, edits, count)
}

/// Whether this is somebody's address, and not the login of a remote, an example, a file name or the credentials of a
/// URL.
pub(super) fn is_person_address(before: &str, address: &str, after: &str) -> bool {
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let lower = domain.to_ascii_lowercase();
    let ending = lower.rsplit('.').next().unwrap_or("");
    let example = ["example.com", "example.org", "example.net"]
        .iter()
        .any(|d| lower == *d || lower.ends_with(&format!(".{d}")));
    let reserved = matches!(ending, "example" | "test" | "invalid" | "localhost");
    let remote = after.starts_with(':') && matches!(local, "git" | "hg");
    // Only before the first slash of a URL an address is its login. A login is short: a list of addresses may be long.
    let run = last_bytes(before, LONGEST_LOGIN)
        .rsplit(|c: char| c.is_whitespace() || !c.is_ascii() || "\"'`<>()|,;".contains(c))
        .next();
    let url = run
        .and_then(|run| run.rsplit_once("://"))
        .is_some_and(|(_, rest)| !rest.contains(['/', '?', '#']));
    let is_git = run.is_some_and(|run| run.starts_with("git+"));
    !(example || reserved || remote || url || is_git || FILE_ENDINGS.contains(&ending))
        && local != "git"
        && !is_code(local, domain, after)
}

/// Whether this is a label, a product of matrices or a version: `this@Main.context`, `q@k.sum(0)`, `a@v1.2-beta.rc`.
fn is_code(local: &str, domain: &str, after: &str) -> bool {
    /// Endings of addresses, after which a note in brackets may follow.
    const ENDINGS: WordList = WordList("com org net edu gov mil dev app info");
    let (first, rest) = domain.split_once('.').unwrap_or((domain, ""));
    let ending = domain.rsplit('.').next().unwrap_or("");
    let starts_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let is_version = starts_number(first.trim_start_matches('v')) && starts_number(rest);
    let is_camel = ending.starts_with(|c: char| c.is_ascii_lowercase())
        && ending.contains(|c: char| c.is_ascii_uppercase());
    let is_call = after.starts_with('(') && ending.len() > 2 && !ENDINGS.has(ending);
    let is_label =
        ["this", "super", "return"].contains(&local) || first == "self" && !ENDINGS.has(rest);
    is_version || is_camel || is_call || is_label
}

/// The places of personal addresses in `text` without its escapes.
pub(super) fn find_addresses(text: &str) -> Vec<Range<usize>> {
    let personal = EMAIL.find_iter(text).filter(|found| {
        let (before, after) = around(text, &found.range());
        is_person_address(before, found.as_str(), after)
    });
    personal.map(|found| found.range()).collect()
}

/// The account names in home folders of `text` that are somebody's.
pub(super) fn find_homes(text: &str) -> impl Iterator<Item = regex::Match<'_>> {
    let homes = HOMES.iter().flat_map(|home| home.captures_iter(text));
    homes
        .filter_map(|captures| captures.get(3))
        .filter(|name| !is_nobody(name.as_str().trim_end_matches(['.', '-'])))
}

/// Replaces `<@123>` and the like.
pub(super) fn replace_mentions<'a>(text: &'a str, count: &mut usize) -> Cow<'a, str> {
    MENTION.replace_all(text, |_: &Captures<'_>| {
        *count += 1;
        "<@user>"
    })
}

/// The places of mentions.
pub(super) fn find_mentions(text: &str) -> impl Iterator<Item = Range<usize>> {
    MENTION.find_iter(text).map(|mention| mention.range())
}

/// Removes reasoning from a text: blocks with an end tag, anywhere in a line, and a block that begins a line and never
/// ends. A tag in code marks or a block of code is only mentioned, and stays.
pub(super) fn without_reasoning<'a>(text: &'a str, count: &mut usize) -> Cow<'a, str> {
    if !text.contains(['<', '[', '◁']) {
        return text.into();
    }
    let mut edits: Vec<(Range<usize>, &str)> = REASONING
        .find_iter(text)
        .map(|found| (found.range(), ""))
        .collect();
    let ends = edits.last().map_or(0, |(range, _)| range.end);
    let rest = text.get(ends..).unwrap_or_default();
    edits.extend(
        UNCLOSED_REASONING
            .find(rest)
            .map(|found| (found.start() + ends..text.len(), "")),
    );
    let fences: Vec<usize> = FENCE.find_iter(text).map(|fence| fence.start()).collect();
    edits.retain(|(range, _)| {
        let is_fenced = fences.partition_point(|at| *at < range.start) % 2 == 1;
        !is_fenced && !follows_code_mark(text, range.start)
    });
    let mut left = replaced(text, edits, count);
    while let Some(end) = end_of_unopened(&left) {
        left = left[end..].trim_start().to_owned().into();
        *count += 1;
    }
    left
}

/// Where reasoning ends that nothing in the text begins, as its tag is in the prompt: models of Qwen and DeepSeek write the
/// end tag alone on a line, and a blank line after it.
fn end_of_unopened(text: &str) -> Option<usize> {
    let tag = REASONING_TAG.find(text)?;
    let (before, after) = around(text, &tag.range());
    let is_alone = before.is_empty() || before.ends_with('\n');
    let is_last = after.trim().is_empty() || after.starts_with("\n\n");
    let is_fenced = FENCE.find_iter(before).count() % 2 == 1;
    (tag.as_str().starts_with("</") && is_alone && is_last && !is_fenced).then_some(tag.end())
}

/// The places of reasoning tags that are left in `text`, except in code marks.
pub(super) fn find_reasoning_tags(text: &str) -> impl Iterator<Item = Range<usize>> {
    REASONING_TAG
        .find_iter(text)
        .map(|found| found.range())
        .filter(move |range| !follows_code_mark(text, range.start))
}

fn follows_code_mark(text: &str, at: usize) -> bool {
    text.get(..at).is_some_and(|before| before.ends_with('`'))
}

/// The handles a person goes by, ready to be found in every variant of case and separation.
#[derive(Clone, Debug, Default)]
pub(super) struct HandleMatcher(Option<Regex>);

impl HandleMatcher {
    pub(super) fn new(handles: &[String]) -> HandleMatcher {
        let mut sorted: Vec<&str> = handles
            .iter()
            .map(|h| h.trim().trim_start_matches('@'))
            .collect();
        sorted.sort_by_key(|handle| std::cmp::Reverse(handle.len()));
        let mut variants: Vec<String> = sorted.into_iter().map(variants).collect();
        // Of a handle that is all punctuation nothing is left, and a pattern of nothing is everywhere.
        variants.retain(|variant| !variant.is_empty());
        let pattern = format!("({})", variants.join("|"));
        HandleMatcher(if variants.is_empty() {
            None
        } else {
            RegexBuilder::new(&pattern)
                .case_insensitive(true)
                .build()
                .ok()
        })
    }

    /// Replaces every variant that is not part of a longer word.
    pub(super) fn replace<'a>(&self, text: &'a str, count: &mut usize) -> Cow<'a, str> {
        let edits = self.places_in(&unescaped(text)).into_iter();
        replaced(text, edits.map(|place| (place, USER)).collect(), count)
    }

    /// The places of the variants that are not part of a longer word, in a text without its escapes.
    pub(super) fn places_in(&self, plain: &str) -> Vec<Range<usize>> {
        let Some(regex) = &self.0 else {
            return Vec::new();
        };
        let found = regex.find_iter(plain).map(|found| found.range());
        found.filter(|place| is_whole_word(plain, place)).collect()
    }
}

fn is_whole_word(text: &str, place: &Range<usize>) -> bool {
    let beside = beside(text, place);
    !beside.iter().flatten().any(char::is_ascii_alphabetic)
}

/// What all variants of a handle have in common: `janedoe`.
pub(super) fn spoken(handle: &str) -> String {
    handle.replace(SEPARATORS, "").to_lowercase()
}

/// What stands between the parts of a handle.
const SEPARATORS: [char; 4] = [' ', '.', '-', '_'];

/// `Jane Doe` is also `jane.doe`, `jane-doe`, `JaneDoe`.
fn variants(handle: &str) -> String {
    handle
        .split(SEPARATORS)
        .filter(|part| !part.is_empty())
        .map(regex::escape)
        .collect::<Vec<_>>()
        .join("[ ._-]?")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(text: &str) -> String {
        replace_homes(text, &mut BTreeSet::new(), &mut 0).into_owned()
    }

    #[test]
    fn account_names_in_paths_are_replaced_in_every_notation() {
        assert_eq!(
            home("cd /home/jdoe/src && ls /Users/jane.doe."),
            "cd /home/user/src && ls /Users/user."
        );
        assert_eq!(
            home(r"C:\Users\Jane\x and C:\\Users\\Jane\\x"),
            r"C:\Users\user\x and C:\\Users\\user\\x"
        );
        assert_eq!(
            home("file:///home/jdoe/a \\n/home/jdoe"),
            "file:///home/user/a \\n/home/user"
        );
        assert_eq!(
            home("projects/-Users-jdoe-work-repo"),
            "projects/-Users-user-work-repo"
        );
        assert_eq!(
            home("cd /mnt/c/Users/jdoe/x; ls /c/Users/jdoe"),
            "cd /mnt/c/Users/user/x; ls /c/Users/user"
        );
        assert_eq!(
            home("file:///c%3A/Users/jdoe/x /home/josé/x"),
            "file:///c%3A/Users/user/x /home/user/x"
        );
        assert_eq!(home(r"a\n-Users-jdoe-x"), r"a\n-Users-user-x");
        assert_eq!(
            home(r"C:\Users\Jane Marie Doe\a C:\\Users\\Jané Doe\\b"),
            r"C:\Users\user\a C:\\Users\\user\\b"
        );
        assert_eq!(
            home(r"cd /mnt/c/Users/Jane Doe/a; ls /c/Users/Jane\ Doe/b C:/Users/Jane Doe/c"),
            "cd /mnt/c/Users/user/a; ls /c/Users/user/b C:/Users/user/c"
        );
        assert_eq!(home(r"C:\Users\Default User\a"), r"C:\Users\Default User\a");
        assert_eq!(
            home(r"C:\Users\All Users\a C:\Users\jane src\b"),
            r"C:\Users\All Users\a C:\Users\user src\b"
        );
        assert_eq!(home("--home-jdoe-repo--"), "--home-user-repo--");
        assert_eq!(home("route('/m/home/start')"), "route('/m/home/start')");
        for text in [
            "to=\"/home/settings\" href=\"/home/about.html\"",
            "GET /Users/42 and /Users/7/orders",
            "WORKDIR /home/node/app, cd /home/runner/work",
        ] {
            assert_eq!(home(text), text);
        }
        assert_eq!(home("/home/nodejane /home/4711a"), "/home/user /home/user");
        assert_eq!(
            home("src/home/index.ts https://x.org/home/start"),
            "src/home/index.ts https://x.org/home/start"
        );
    }

    #[test]
    fn addresses_and_authors_become_one() {
        let scrub = |text: &str| replace_addresses(text, &mut 0).into_owned();
        assert_eq!(
            scrub("Author: Jane Doe <jane@corp.io>"),
            "Author: user <contributor@example.com>"
        );
        assert_eq!(
            scrub("mail jane@corp.io, a@example.com"),
            "mail contributor@example.com, a@example.com"
        );
        assert_eq!(
            scrub("1,https://x.org/a,jane@corp.io"),
            "1,https://x.org/a,contributor@example.com"
        );
        assert_eq!(
            scrub("见https://x.org，问jane@corp.io"),
            "见https://x.org，问contributor@example.com"
        );
        assert_eq!(
            scrub("jane@corp.com(Jane), jane@163.com, jane@v2ex.com"),
            "contributor@example.com(Jane), contributor@example.com, contributor@example.com"
        );
        assert_eq!(
            scrub("https://x.org/?to=jane@corp.io"),
            "https://x.org/?to=contributor@example.com"
        );
        for text in [
            "https://x.org/p@1.2.3.tgz",
            "git@github.com:o/r.git",
            "icon@2x.png",
            "pkg@1.2.3",
            "redis://u@cache.corp.io/0",
            "q@k.transpose(-2, -1), h@self.proj.weight, (q@k.mT)",
            "this@MainActivity.applicationContext, super@Outer.method()",
            "widget@v1.2.3-beta.rc, git+https://x.org/acme/tool@feature.login",
        ] {
            assert_eq!(scrub(text), text);
        }
    }

    #[test]
    fn handles_are_replaced_in_every_variant_but_not_inside_words() {
        let handles = HandleMatcher::new(&["Jane Doe".into(), "@jd".into()]);
        let scrub = |text: &str| handles.replace(text, &mut 0).into_owned();
        assert_eq!(
            scrub("JANE_DOE jane.doe JaneDoe/x @jd JD-laptop"),
            "user user user/x @user user-laptop"
        );
        assert_eq!(scrub("adjdust jdk"), "adjdust jdk");
        let nobody = HandleMatcher::new(&["-._".into()]);
        assert_eq!(nobody.replace("1 + 2", &mut 0), "1 + 2");
    }

    #[test]
    fn reasoning_in_any_of_the_tags_is_removed() {
        let opens: BTreeSet<&str> = REASONING_TAGS.iter().map(|(open, _)| *open).collect();
        assert_eq!(opens.len(), REASONING_TAGS.len(), "each is listed once");
        for (open, close) in REASONING_TAGS {
            let text = format!("So {}hm\nhm{close}\ndone.", open.to_uppercase());
            assert_eq!(without_reasoning(&text, &mut 0), "So done.", "{open}");
        }
        for text in [
            "[reasoning]\neffort = \"high\"\n",
            "[think] of </think>",
            "In prompts/agent.md:\n```xml\n<thinking>\n{{plan}}\n```\nThe port stays 8081.",
            "It answers:\n```xml\n<error><reason>quota of 4711</reason></error>\n```",
            "So:\n  ~~~\n  <scratchpad>\n  3 risks\n  </scratchpad>\n  ~~~",
            "The prompt ends in\n\n    <think>\n\nso the port 8081 stays.",
            "It closes with\n</think>\nand then answers 8081.",
            "After `<think>` it writes\n</think>\n\nand answers 8081.",
            "```\nhm\n</think>\n\n8081\n```",
        ] {
            assert_eq!(without_reasoning(text, &mut 0), text);
        }
    }

    #[test]
    fn reasoning_is_removed_and_mentions_are_replaced() {
        assert_eq!(
            without_reasoning("<think>hm\nhm</think>\nDone.", &mut 0),
            "Done."
        );
        assert_eq!(
            without_reasoning("The tag `<think>` is never closed", &mut 0),
            "The tag `<think>` is never closed"
        );
        assert_eq!(
            without_reasoning("So <Thinking budget=\"9\">hm</THINKING > done.", &mut 0),
            "So done."
        );
        assert_eq!(
            without_reasoning("Done.\n<reasoning>and then the log", &mut 0),
            "Done."
        );
        assert_eq!(
            without_reasoning("```\na\n```\n<think>1\n```\nb\n```\n</think>c", &mut 0),
            "```\na\n```\nc"
        );
        for (text, answer) in [
            ("a <think>1</think> b <think>2</think> c", "a b c"),
            ("is it 1?\n\n</think>\n\nIt is 2.", "It is 2."),
            ("hm\n</think>\n\nno\n</think>\n\nIt is 2.", "It is 2."),
            ("I call `ls`.\n</think>\n\n", ""),
            ("\n<think>\nis it 1?\n\nMaybe", ""),
        ] {
            assert_eq!(without_reasoning(text, &mut 0), answer, "{text}");
        }
        assert_eq!(
            find_reasoning_tags("rest</think> of `<think>` it")
                .map(|range| range.end)
                .collect::<Vec<_>>(),
            [12]
        );
        assert_eq!(
            replace_mentions("hi <@123> and <@***>, <@U0AB12CD|jane>", &mut 0),
            "hi <@user> and <@user>, <@user>"
        );
    }
}
