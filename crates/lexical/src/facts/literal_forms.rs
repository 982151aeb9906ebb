//! Literal forms of a paraphrased fact: stretches of the transcript that have its words, close together.

use std::ops::Range;

use super::Fact;
use super::finder::FactFinder;
use super::history::History;
use sessions::transcript::{Message, fold};

/// The most forms that are proposed.
const PROPOSED: usize = 3;
/// The most characters of a form, since a fact is a short text.
const LONGEST: usize = 80;
/// The least share of the fact's words that a form has.
const SHARE: f64 = 0.5;
/// Words that say nothing about which stretch is meant.
const STOP: &[&str] = &[
    "the", "and", "for", "was", "were", "that", "with", "from", "this", "has", "have", "had",
    "not", "are", "its", "into", "的", "了", "是", "在", "和",
];

/// Up to three stretches of `messages` among `within` that say in their words what `fact` says in others, the most
/// similar first. None of them occurs in `question`.
pub fn literal_forms(
    fact: &Fact,
    question: &str,
    history: &History,
    messages: &[Message],
    within: Range<usize>,
) -> Vec<String> {
    let wanted: Vec<String> = words(fact.name())
        .map(|place| lower(fact.name(), &place))
        .filter(|word| says_something(word))
        .collect();
    let question = fold(question);
    let mut stretches: Vec<(f64, String)> = Vec::new();
    for message in messages.iter().take(within.end).skip(within.start) {
        let text = message.countable_text();
        stretches.extend(text.lines().filter_map(|line| best_stretch(line, &wanted)));
    }
    stretches.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.len().cmp(&b.len())));
    let mut forms: Vec<String> = Vec::new();
    for (_, form) in stretches {
        let finder = FactFinder::within(
            &Fact {
                spellings: vec![form.clone()],
            },
            history.paths(),
        );
        let is_sound = history.holds(&finder, within.clone()) && !finder.occurs_in(&question);
        if is_sound && !forms.contains(&form) {
            forms.push(form);
        }
        if forms.len() == PROPOSED {
            break;
        }
    }
    forms
}

/// How similar the most similar stretch of a line is, and the stretch; `None` if all have too few of the words.
fn best_stretch(line: &str, wanted: &[String]) -> Option<(f64, String)> {
    let hits: Vec<(Range<usize>, usize)> = words(line)
        .filter_map(|place| {
            let word = lower(line, &place);
            Some((
                place,
                wanted.iter().position(|other| are_alike(other, &word))?,
            ))
        })
        .collect();
    let stretches = hits.iter().enumerate().flat_map(|(at, (first, _))| {
        hits.iter()
            .enumerate()
            .skip(at)
            .map(move |(end, (last, _))| (first.start..last.end, at..end + 1))
    });
    let scored = stretches.filter_map(|(place, among)| {
        let stretch = line.get(place)?;
        let length = stretch.chars().count();
        let mut kinds: Vec<usize> = hits.get(among)?.iter().map(|(_, word)| *word).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let share = kinds.len() as f64 / wanted.len().max(1) as f64;
        // Of stretches with the same words, the shorter one is more similar.
        let similarity = share - length as f64 / 1000.0;
        (length <= LONGEST && length > 2 && share >= SHARE)
            .then(|| (similarity, stretch.to_owned()))
    });
    scored.max_by(|(one, _), (other, _)| one.total_cmp(other))
}

/// The words of a text: names with their marks inside, numbers, single characters of scripts without blanks.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut places: Vec<Range<usize>> = Vec::new();
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let is_wide = u32::from(c) > 0x2E80;
        let goes_on = places.last().is_some_and(|last| {
            last.end == at
                && !text
                    .get(last.clone())
                    .is_some_and(|word| word.chars().any(|c| u32::from(c) > 0x2E80))
        });
        match places.last_mut() {
            Some(last)
                if goes_on && !is_wide && (c.is_alphanumeric() || matches!(c, '_' | '.' | '/')) =>
            {
                last.end = end
            }
            _ if c.is_alphanumeric() => places.push(at..end),
            _ => {}
        }
    }
    places.into_iter().map(|place| {
        let word = text.get(place.clone()).unwrap_or_default();
        place.start..place.start + word.trim_end_matches(['.', '/']).len()
    })
}

fn lower(text: &str, place: &Range<usize>) -> String {
    text.get(place.clone()).unwrap_or_default().to_lowercase()
}

fn says_something(word: &str) -> bool {
    let is_short =
        word.is_ascii() && word.len() < 3 && !word.contains(|c: char| c.is_ascii_digit());
    !is_short && !STOP.contains(&word)
}

/// Whether two words are the same, or forms of one.
fn are_alike(one: &str, other: &str) -> bool {
    const STEM: usize = 4;
    if one == other {
        return true;
    }
    let shared = one
        .chars()
        .zip(other.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let longer = one.chars().count().max(other.chars().count());
    one.chars().chain(other.chars()).all(char::is_alphabetic)
        && shared >= STEM
        && longer <= shared + 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessions::transcript::Role;

    fn forms(fact: &str, question: &str) -> Vec<String> {
        let messages = [
            "Let us look at the export first.",
            "The rows are now loaded in batches of 500, because the host has little memory.\nTests: 12 passed",
            "端口改为8081，因为防火墙只放行它。",
        ]
        .map(|text| Message::text(Role::Assistant, text));
        let fact = Fact {
            spellings: vec![fact.to_owned()],
        };
        literal_forms(
            &fact,
            question,
            &History::new(&messages),
            &messages,
            0..messages.len(),
        )
    }

    #[test]
    fn a_paraphrase_is_led_back_to_the_words_of_the_transcript() {
        assert_eq!(
            forms("loads rows in batches of 500", "How?"),
            ["rows are now loaded in batches of 500"]
        );
        assert_eq!(
            forms("little memory on the host", "Why?"),
            ["host has little memory"]
        );
        assert_eq!(forms("防火墙放行", "?"), ["防火墙只放行"]);
    }

    #[test]
    fn what_has_other_words_or_gives_the_answer_away_is_not_proposed() {
        assert!(forms("a message queue with retries", "How?").is_empty());
        assert!(
            forms(
                "little memory on the host",
                "Is it that the host has little memory?"
            )
            .is_empty()
        );
    }
}
