//! What a prompt asks for, as far as rules can read it: headings, kinds of content, a limit of length.

use std::sync::LazyLock;

use regex::Regex;

use super::gather::Kind;
use base::text::pattern;

/// How prompts write a heading: Markdown headings, bold lines, numbered titles with a colon, XML tags. A prompt uses one of
/// these ways; text that looks like another is emphasis or material.
static HEADINGS: LazyLock<[Regex; 4]> = LazyLock::new(|| {
    [
        r"^#{1,6}\s*([^\s#].*?)\s*:?$",
        r"^(?:[-*]\s+|\d+[.)]\s+)?\*\*([^*]+?):?\*\*",
        r"^\d+[.)]\s+(\p{Lu}[^:.{]{1,60}):",
        r"^<([a-z]+(?:_[a-z]+)*)>$",
    ]
    .map(pattern)
});

/// The headings that a prompt asks for, each with the number of its line, from 0.
pub fn prompt_headings(prompt: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = prompt.lines().map(str::trim).collect();
    let mut by_pattern = HEADINGS.iter().map(|pattern| headings_by(pattern, &lines));
    by_pattern
        .find(|headings| !headings.is_empty())
        .unwrap_or_default()
}

fn headings_by<'p>(pattern: &Regex, lines: &[&'p str]) -> Vec<(usize, &'p str)> {
    let mut headings = Vec::new();
    for (at, line) in lines.iter().copied().enumerate() {
        // A tag around a variable marks material; one around anything else is a section to be written.
        let is_material = lines.get(at + 1).is_some_and(|next| next.starts_with("{{"));
        let heading = pattern
            .captures(line)
            .and_then(|captures| captures.get(1))
            .filter(|_| !is_material);
        headings.extend(heading.map(|heading| (at, heading.as_str())));
    }
    headings
}

/// A section that a prompt asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PromptSection {
    /// The heading as the prompt writes it.
    pub(super) heading: String,
    /// What belongs there, by the words of the heading; empty if they name no kind.
    pub(super) kinds: Vec<Kind>,
}

/// The sections of a prompt, in order: its headings, else one section with what its sentences name. Empty if the prompt
/// names nothing.
pub(super) fn sections(prompt: &str) -> Vec<PromptSection> {
    let mut headings = prompt_headings(prompt);
    headings.dedup_by_key(|(_, heading)| *heading);
    if headings.is_empty() {
        let kinds = named_kinds(prompt);
        let summary = PromptSection {
            heading: "Summary".to_owned(),
            kinds,
        };
        return if summary.kinds.is_empty() {
            Vec::new()
        } else {
            vec![summary]
        };
    }
    let mut sections: Vec<PromptSection> = headings
        .into_iter()
        .map(|(_, heading)| PromptSection {
            kinds: kinds_of(heading),
            heading: heading.to_owned(),
        })
        .collect();
    give_each_kind_one_place(&mut sections);
    sections
}

/// A kind that several headings name goes under the most specific of them: "Constraints" before "Session intent".
fn give_each_kind_one_place(sections: &mut [PromptSection]) {
    for kind in Kind::ALL {
        let naming = sections
            .iter()
            .enumerate()
            .filter(|(_, section)| section.kinds.contains(&kind));
        let Some(place) = naming
            .min_by_key(|(_, section)| section.kinds.len())
            .map(|(place, _)| place)
        else {
            continue;
        };
        for (_, section) in sections
            .iter_mut()
            .enumerate()
            .filter(|(other, _)| *other != place)
        {
            section.kinds.retain(|known| *known != kind);
        }
    }
}

/// Words that name kinds of content; the first entry that a heading matches applies.
const BY_WORD: &[(&[&str], &[Kind])] = &[
    (&["created", "新建"], &[Kind::Created]),
    (&["modified", "changed", "修改"], &[Kind::Modified]),
    (&["read", "examined", "读过"], &[Kind::Read]),
    (
        &["file", "artifact", "文件", "产物"],
        &[Kind::Created, Kind::Modified, Kind::Read],
    ),
    (&["decision", "决定", "决策"], &[Kind::Decision]),
    (
        &["error", "failure", "problem", "错误", "失败"],
        &[Kind::Error],
    ),
    (
        &[
            "next",
            "pending",
            "task",
            "todo",
            "open",
            "plan",
            "后续",
            "待办",
            "下一步",
        ],
        &[Kind::Next],
    ),
    (
        &["state", "status", "current", "recent", "状态", "现状"],
        &[Kind::State],
    ),
    (
        &[
            "constraint",
            "rule",
            "demand",
            "prohibition",
            "约束",
            "规定",
            "禁止",
        ],
        &[Kind::Demand],
    ),
    (
        &["intent", "goal", "request", "目标", "请求"],
        &[Kind::Intent, Kind::Demand],
    ),
    (
        &[
            "analysis",
            "summary",
            "overview",
            "knowledge",
            "分析",
            "摘要",
        ],
        &[Kind::Intent, Kind::Demand, Kind::Decision, Kind::Error],
    ),
];

pub(super) fn kinds_of(heading: &str) -> Vec<Kind> {
    let lower = heading.to_lowercase();
    let entry = BY_WORD
        .iter()
        .find(|(words, _)| words.iter().any(|word| lower.contains(word)));
    entry.map(|(_, kinds)| kinds.to_vec()).unwrap_or_default()
}

/// Nouns for kinds of content in a sentence. Headings are matched more freely.
static NAMED: LazyLock<Vec<(Regex, &'static [Kind])>> = LazyLock::new(|| {
    let nouns: [(&str, &'static [Kind]); 7] = [
        (
            r"\bfiles?\b|\bpaths?\b|文件|路径",
            &[Kind::Created, Kind::Modified, Kind::Read],
        ),
        (r"\bdecisions?\b|\breasons?\b|决定|理由", &[Kind::Decision]),
        (r"\berrors?\b|\bfailures?\b|错误|报错", &[Kind::Error]),
        (
            r"\bnext steps?\b|\bopen (?:work|tasks?)\b|\bto-?dos?\b|\bpending\b|待办|后续",
            &[Kind::Next],
        ),
        (
            r"\b(?:current|present) (?:state|status|values?)\b|\bstate of\b|状态|现状",
            &[Kind::State],
        ),
        (
            r"\bconstraints?\b|\brules of the user\b|\bdemands?\b|约束|要求",
            &[Kind::Demand],
        ),
        (
            r"\bgoals?\b|\bintent\b|\brequests?\b|目标|请求",
            &[Kind::Intent],
        ),
    ];
    nouns
        .into_iter()
        .map(|(noun, kinds)| (pattern(noun), kinds))
        .collect()
});

fn named_kinds(prompt: &str) -> Vec<Kind> {
    let lower = prompt.to_lowercase();
    NAMED
        .iter()
        .filter(|(noun, _)| noun.is_match(&lower))
        .flat_map(|(_, kinds)| kinds.iter().copied())
        .collect()
}

/// Whether a prompt asks for the transcript as it is.
pub(super) fn wants_copy(prompt: &str) -> bool {
    static COPY: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:repeat|copy|reproduce|echo)\b[^.\n]*\b(?:transcript|conversation|session|messages|everything)\b|逐字|原样",
        )
    });
    COPY.is_match(prompt)
}

/// The smallest limit of length that a prompt names, in tokens.
pub(super) fn limit(prompt: &str) -> Option<u64> {
    static LIMIT: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)(\d[\d,]*)[\s-]*(words?\b|tokens?\b|characters?\b|个?词|个?字|个?令牌)")
    });
    let limits = LIMIT.captures_iter(prompt).filter_map(|captures| {
        let number: u64 = captures.get(1)?.as_str().replace(',', "").parse().ok()?;
        let unit = captures.get(2)?.as_str().to_lowercase();
        // 3 words are about 4 tokens. A character of English is a quarter of a token, one of Chinese a whole token.
        Some(match unit.chars().next()? {
            'w' => number.saturating_mul(4) / 3,
            'c' => number / 4,
            _ => number,
        })
    });
    limits.filter(|tokens| *tokens > 0).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_name_kinds_where_there_are_no_headings() {
        let [section] = &sections("Sum up the decisions, the errors and the files.")[..] else {
            panic!("one section")
        };
        assert_eq!(
            section.kinds,
            [
                Kind::Created,
                Kind::Modified,
                Kind::Read,
                Kind::Decision,
                Kind::Error
            ]
        );
        assert_eq!(sections("Write nothing but banana."), []);
    }

    #[test]
    fn a_kind_goes_under_its_most_specific_heading() {
        let sections = sections("## Session intent\n## Constraints\n## Banana\n");
        let kinds: Vec<&[Kind]> = sections.iter().map(|section| &section.kinds[..]).collect();
        assert_eq!(kinds, [&[Kind::Intent][..], &[Kind::Demand], &[]]);
    }

    #[test]
    fn limits_are_read_in_words_tokens_and_characters() {
        assert_eq!(limit("At most 300 words, or 1,000 tokens."), Some(400));
        assert_eq!(limit("不超过500字。"), Some(500));
        assert_eq!(
            limit("within about {{ target_tokens }} tokens; 3 sections"),
            None
        );
    }

    #[test]
    fn headings_are_read_in_the_ways_that_prompts_write_them() {
        let names = |prompt| {
            prompt_headings(prompt)
                .into_iter()
                .map(|(_, name)| name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names("## Session intent\nWhat.\n**Note**\n#Next steps:\n"),
            ["Session intent", "Next steps"]
        );
        assert_eq!(
            names("1. **Errors**: all\n2. **Open tasks**\n"),
            ["Errors", "Open tasks"]
        );
        let numbered = "1. Primary Request and Intent: x\n2. Pending Tasks: y";
        assert_eq!(
            names(numbered),
            ["Primary Request and Intent", "Pending Tasks"]
        );
        let tags =
            "<overall_goal>\nx\n</overall_goal>\n<transcript>\n{{ transcript }}\n</transcript>";
        assert_eq!(names(tags), ["overall_goal"]);
    }
}
