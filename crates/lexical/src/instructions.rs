//! What a prompt asks for, as far as the rules read it: its headings.

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

/// The sections of a prompt, in order: its headings, else one section for everything.
pub(super) fn sections(prompt: &str) -> Vec<PromptSection> {
    let mut headings = prompt_headings(prompt);
    headings.dedup_by_key(|(_, heading)| *heading);
    if headings.is_empty() {
        return vec![PromptSection {
            heading: "Summary".to_owned(),
            kinds: Kind::ALL.to_vec(),
        }];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_without_headings_asks_for_everything() {
        let sections = sections("Sum up the conversation in 300 words.");
        let kinds: Vec<&[Kind]> = sections.iter().map(|section| &section.kinds[..]).collect();
        assert_eq!(kinds, [Kind::ALL]);
    }

    #[test]
    fn a_kind_goes_under_its_most_specific_heading() {
        let sections = sections("## Session intent\n## Constraints\n## Banana\n");
        let kinds: Vec<&[Kind]> = sections.iter().map(|section| &section.kinds[..]).collect();
        assert_eq!(kinds, [&[Kind::Intent][..], &[Kind::Demand], &[]]);
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
