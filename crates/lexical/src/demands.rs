//! The demands of a question on the form of its answer and on what to leave out, read by rules.

use std::sync::LazyLock;

use regex::Regex;

use base::text::pattern;
use base::words::paths;

/// Which demands an answer meets, as far as they can be read from the question.
#[derive(Clone, Debug)]
pub(super) struct Demands {
    /// The share of the demands on its form that it meets; `None` where there are none.
    pub form: Option<f64>,
    /// The same for the demands to leave something out.
    pub constraints: Option<f64>,
}

static BULLETS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"exactly (\w+) (?:bullet points|bullets|items)|恰好(\S+?)个[^，。]*条目")
});
static ONE_LINE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(?:in|on) (?:one|a single) line\b|用一行"));
static OPENING: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"begins? with `([^`]+)`|以 ?`([^`]+)` ?开头"));
static NO_FILES: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"leave (?:out )?file names(?: out)?\b|略去文件名"));
static NO_EARLIER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"leave (?:out )?earlier values(?: out)?\b|略去早先的值"));

impl Demands {
    /// Reads the demands of `question` and checks `response` against them. `names_superseded`: the response names a
    /// superseded value, as past or as current.
    pub(super) fn from_question(question: &str, response: &str, names_superseded: bool) -> Demands {
        let lines: Vec<&str> = response
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let bullets = first_group(&BULLETS, question).and_then(number);
        let form = [
            bullets.map(|count| {
                lines.len() == count && lines.iter().all(|line| line.starts_with(['-', '*', '•']))
            }),
            ONE_LINE.is_match(question).then_some(lines.len() == 1),
            first_group(&OPENING, question).map(|opening| response.starts_with(opening)),
        ];
        let constraints = [
            NO_FILES
                .is_match(question)
                .then(|| paths(response).next().is_none()),
            NO_EARLIER.is_match(question).then_some(!names_superseded),
        ];
        Demands {
            form: share(&form),
            constraints: share(&constraints),
        }
    }
}

/// The text of the first group that takes part in the match.
fn first_group<'q>(pattern: &Regex, question: &'q str) -> Option<&'q str> {
    let captures = pattern.captures(question)?;
    let group = captures.iter().skip(1).flatten().next()?;
    Some(group.as_str())
}

fn share(demands: &[Option<bool>]) -> Option<f64> {
    let met: Vec<bool> = demands.iter().flatten().copied().collect();
    (!met.is_empty()).then(|| met.iter().filter(|met| **met).count() as f64 / met.len() as f64)
}

/// A number in figures, or one up to nine in words.
fn number(word: &str) -> Option<usize> {
    const ENGLISH: [&str; 9] = [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    ];
    const CHINESE: [&str; 9] = ["一", "两", "三", "四", "五", "六", "七", "八", "九"];
    let place = [ENGLISH, CHINESE]
        .iter()
        .find_map(|words| words.iter().position(|known| *known == word));
    word.parse().ok().or(place.map(|place| place + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(question: &str, response: &str) -> (Option<f64>, Option<f64>) {
        let demands = Demands::from_question(question, response, response.contains("8080"));
        (demands.form, demands.constraints)
    }

    #[test]
    fn demands_are_read_from_the_question_in_both_languages() {
        let bullets = "What is open? Answer in exactly two bullet points that begin with `-`, and leave file names out.";
        assert_eq!(met(bullets, "- a\n- b"), (Some(1.0), Some(1.0)));
        assert_eq!(
            met(bullets, "- a\n- see `src/b.rs`\n- c"),
            (Some(0.5), Some(0.0))
        );
        assert_eq!(met(bullets, "a and b"), (Some(0.0), Some(1.0)));
        let chinese = "还有什么待解决？请用恰好两个以 `-` 开头的条目回答，并略去文件名。";
        assert_eq!(met(chinese, "- 甲\n- 乙"), (Some(1.0), Some(1.0)));
        let line = "Which port? Answer in one line that begins with `Port:`, and leave earlier values out.";
        assert_eq!(met(line, "Port: 8081"), (Some(1.0), Some(1.0)));
        assert_eq!(met(line, "Port: 8081, once 8080"), (Some(1.0), Some(0.0)));
        assert_eq!(met(line, "It is\n8081"), (Some(0.0), Some(1.0)));
        assert_eq!(met("Which port?", "8081"), (None, None));
    }
}
