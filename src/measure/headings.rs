//! The headings that a compression prompt asks for, and the one under which the facts of a probe belong.
//!
//! A lost fact is under no heading, so it is assigned by words: the question and the type of its probe against each
//! heading and the paragraph below it. A word counts for less the more headings have it.

use std::collections::BTreeSet;

use crate::probe::ProbeType;
use base::words::words;
use lexical::facts::pieces;
use lexical::prompt_headings;

/// The headings of a prompt.
#[derive(Clone, Debug, Default)]
pub struct Headings(Vec<Section>);

#[derive(Clone, Debug)]
struct Section {
    heading: String,
    heading_words: BTreeSet<String>,
    text_words: BTreeSet<String>,
}

/// How much more a word of the heading counts than a word below it.
const HEADING_WEIGHT: f64 = 2.0;

impl Headings {
    /// The headings of `prompt`, each with the rest of its line and the paragraph below it.
    pub fn from_prompt(prompt: &str) -> Headings {
        let headings = prompt_headings(prompt);
        let mut sections: Vec<Section> = Vec::new();
        let mut is_below = false;
        for (at, line) in prompt.lines().map(str::trim).enumerate() {
            if let Some((_, heading)) = headings.iter().find(|(of, _)| *of == at) {
                let heading_words = stems(heading).collect();
                let rest = line.split_once(heading).map_or("", |(_, rest)| rest);
                sections.push(Section {
                    heading: (*heading).to_owned(),
                    heading_words,
                    text_words: stems(rest).collect(),
                });
                is_below = true;
            } else if line.is_empty() {
                is_below &= sections
                    .last()
                    .is_some_and(|section| section.text_words.is_empty());
            } else if let Some(section) = sections.last_mut().filter(|_| is_below) {
                section.text_words.extend(stems(line));
            }
        }
        Headings(sections)
    }

    /// The heading under which the facts of a probe belong by their words, the first one if several score alike; `None`
    /// where no word matches.
    pub fn best(&self, kind: ProbeType, question: &str) -> Option<&str> {
        let asked: BTreeSet<String> = stems(question).chain(stems(usual_words(kind))).collect();
        let scored = self
            .0
            .iter()
            .map(|section| (self.score(section, &asked), section));
        let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.filter(|(score, _)| *score > 0.0)
            .map(|(_, section)| section.heading.as_str())
    }

    /// How much a section matches the words that are asked for.
    fn score(&self, section: &Section, asked: &BTreeSet<String>) -> f64 {
        let in_heading = section.heading_words.intersection(asked);
        let in_text = section
            .text_words
            .difference(&section.heading_words)
            .filter(|word| asked.contains(*word));
        let heading: f64 = in_heading.map(|word| self.rarity(word)).sum();
        let text: f64 = in_text.map(|word| self.rarity(word)).sum();
        HEADING_WEIGHT * heading + text
    }

    /// The weight of a word: the fewer sections have it, the higher.
    fn rarity(&self, word: &str) -> f64 {
        let with = self
            .0
            .iter()
            .filter(|s| s.heading_words.contains(word) || s.text_words.contains(word))
            .count();
        ((self.0.len() as f64 + 1.0) / with.max(1) as f64).ln()
    }
}

/// Words for what probes of a type ask for, whatever their question says.
fn usual_words(kind: ProbeType) -> &'static str {
    match kind {
        ProbeType::Recall => "",
        ProbeType::Artifact => "files 文件",
        ProbeType::Continuation => "next unfinished pending 后续 待办",
        ProbeType::Decision => "decisions 决定",
    }
}

/// Words that say nothing about what is asked.
const STOP: [&str; 26] = [
    "about", "after", "been", "before", "does", "each", "from", "have", "into", "only", "that",
    "their", "them", "then", "there", "they", "this", "was", "were", "what", "when", "where",
    "which", "with", "would", "your",
];

/// The longest stem, in characters: "modified" and "modify" meet.
const STEM: usize = 5;

/// Words of four letters or more by their stems, "why" and "who" as they are, unspaced scripts in pairs of characters.
fn stems(text: &str) -> impl Iterator<Item = String> + '_ {
    let latin = words(text).map(str::to_lowercase).filter(|word| {
        matches!(&**word, "why" | "who")
            || (word.chars().nth(3).is_some() && !STOP.contains(&&**word))
    });
    let stems = latin.map(|word| {
        word.trim_end_matches('s')
            .chars()
            .take(STEM)
            .collect::<String>()
    });
    stems.chain(pieces(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_find_the_headings_of_the_shipped_prompt() {
        let headings = Headings::from_prompt(include_str!("../../prompts/anchored.md"));
        let cases = [
            (
                ProbeType::Artifact,
                "Which files did the first commit create?",
                "Files created",
            ),
            (
                ProbeType::Artifact,
                "What was modified in the store?",
                "Files modified",
            ),
            (
                ProbeType::Decision,
                "Which alternatives were rejected, and why?",
                "Decisions and why",
            ),
            (
                ProbeType::Recall,
                "With which exact error did the command fail?",
                "Errors and exact messages",
            ),
            (
                ProbeType::Recall,
                "On which port does it listen, with which limits?",
                "Current state",
            ),
            (
                ProbeType::Continuation,
                "What was left unfinished?",
                "Next steps",
            ),
            (
                ProbeType::Recall,
                "Which constraint did the user demand, word for word?",
                "Session intent",
            ),
        ];
        for (kind, question, heading) in cases {
            assert_eq!(headings.best(kind, question), Some(heading), "{question}");
        }
    }

    #[test]
    fn headings_take_the_words_below_and_behind_them() {
        let prompt = "Write:\n# 文件\n改动过的文件\n\n## Errors:\n\nexact messages\n\nRules: never lie about a date\n";
        let headings = Headings::from_prompt(prompt);
        assert_eq!(
            headings
                .0
                .iter()
                .map(|s| s.heading.as_str())
                .collect::<Vec<_>>(),
            ["文件", "Errors"]
        );
        assert_eq!(
            headings.best(ProbeType::Artifact, "改了哪些文件？"),
            Some("文件")
        );
        assert_eq!(
            headings.best(ProbeType::Recall, "Which messages came?"),
            Some("Errors")
        );
        assert_eq!(
            headings.best(ProbeType::Continuation, "What was the date?"),
            None,
            "a later paragraph"
        );
        assert_eq!(
            Headings::from_prompt("no heading").best(ProbeType::Recall, "Which error?"),
            None
        );
        let numbered =
            Headings::from_prompt("1. Problems: exact messages\n2. Pending Tasks: what is open");
        assert_eq!(
            numbered.best(ProbeType::Recall, "Which messages came?"),
            Some("Problems")
        );
    }
}
