//! Answers by retrieval: quotes the passages that share the rarest terms with the question.
//!
//! Rules cannot write sentences, so they quote: an answer contains only text of the context, and no fact is invented. Of a
//! transcript, its outline is searched beside the passages: no single message says which files were created or which
//! command was the last, and a summary does. A small context is quoted whole. In a larger one, the rank of a passage
//! depends on three things: its BM25 score and that of its neighbours, since a reason often follows in the next sentence;
//! its speaker, since the user's words matter more than what a tool printed; and whether it has the kind of thing that the
//! question asks for. Each chosen passage lowers the weight of its terms, so that every part of a question is served.
//!
//! Limits: a passage that says the same in other words shares no term and is not found. A passage on the subject that
//! lacks the answer is quoted all the same, so the rules admit ignorance only if the context is empty, or if it is too
//! large to be quoted whole and has nothing related. Superseded and current values are quoted side by side; the later
//! passage ranks slightly higher.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::passages::{Origin, Passage, passages};
use super::search::SearchIndex;
use super::terms::{Term, terms};
use crate::notes::rules;
use base::text::{first_bytes, one_line};
use base::words::is_chinese;
use sessions::transcript::estimate_tokens;

/// The answer if the context has nothing related to the question.
pub(super) const NOTHING: &str = "The context does not say.";
const NOTHING_ZH: &str = "上下文中没有说明。";

/// The size of an answer in tokens. An answer of 500 tokens gives 84% of the facts in a whole
/// transcript, one of 1000 tokens 91%, one of 2000 or more 93%. Longer answers are not to the point.
const ROOM: u64 = 1000;

/// Answers `question` from `context`. Quotes all passages if they fit, otherwise those that share most with the question.
/// Rules cannot tell that related passages lack the answer.
pub fn answer(context: &str, question: &str) -> String {
    let passages = passages(context);
    let size: u64 = passages
        .iter()
        .map(|passage| estimate_tokens(&passage.text).0 + 1)
        .sum();
    if size > ROOM {
        return Retriever::new(passages).answer(question);
    }
    if passages.is_empty() {
        return nothing(question).to_owned();
    }
    let lines: Vec<&str> = passages.iter().map(|passage| line(&passage.text)).collect();
    lines.join("\n")
}

/// A passage as a line of its own, without the mark of a list.
fn line(text: &str) -> &str {
    text.trim_start_matches(['-', '*', ' '])
}

/// Asks for a search for `question` if the best passage of `context`, together with the next one of its block, lacks more
/// than half of the question's terms.
pub fn search_for(context: &str, question: &str) -> Option<String> {
    let asked = terms(question);
    let passages = passages(context);
    let passage_terms: Vec<Vec<Term>> = passages
        .iter()
        .map(|passage| terms(&passage.text))
        .collect();
    let mut best = 0;
    for (at, (passage, own_terms)) in passages.iter().zip(&passage_terms).enumerate() {
        let is_same_block = passages
            .get(at + 1)
            .is_some_and(|next| next.block == passage.block);
        let next_terms = passage_terms.get(at + 1).filter(|_| is_same_block);
        let shared = asked.iter().filter(|term| {
            own_terms.contains(term) || next_terms.is_some_and(|terms| terms.contains(term))
        });
        best = best.max(shared.count());
    }
    (best * 2 < asked.len()).then(|| format!("SEARCH: {}", one_line(question)))
}

/// The answer, in the language of the question, if nothing in the context is related to it.
fn nothing(question: &str) -> &'static str {
    if is_chinese(question) {
        NOTHING_ZH
    } else {
        NOTHING
    }
}

/// The length of an excerpt in bytes. Only longer passages are cut.
const QUOTED: usize = 420;
/// The factor on the rank of what is noted of the session as a whole.
const NOTED: f64 = 1.7;
/// The factor on the weight of a term for each chosen passage that has it.
const SERVED: f64 = 0.9;

/// The passages of a context with an index of their terms.
#[derive(Debug)]
struct Retriever {
    passages: Vec<Passage>,
    index: SearchIndex,
}

impl Retriever {
    fn new(passages: Vec<Passage>) -> Retriever {
        let texts = passages.iter().map(|passage| match passage.origin {
            Origin::Noted(subject) => format!("{subject} {}", passage.text).into(),
            _ => Cow::from(passage.text.as_str()),
        });
        let index = SearchIndex::new(texts);
        Retriever { passages, index }
    }

    /// The passages that share most with the question, in their order.
    fn answer(&self, question: &str) -> String {
        let asked = self.index.weights(question, &self.all());
        let chosen = self.choose(question, asked);
        if chosen.is_empty() {
            nothing(question).to_owned()
        } else {
            self.quote(&chosen, question)
        }
    }

    fn all(&self) -> Range<usize> {
        0..self.passages.len()
    }

    /// Takes the best passage repeatedly. The terms of a chosen passage count less for the next one, so that every part of
    /// the question is served.
    fn choose(&self, question: &str, mut asked: Vec<(Term, f64)>) -> Vec<usize> {
        let all = self.all();
        let candidates = self.candidates(
            &QuestionKinds::from_question(question),
            &self.index.scores(&asked, &all),
        );
        let mut chosen: Vec<usize> = Vec::new();
        let mut room = ROOM;
        while room > 0 {
            let scores = self.index.scores(&asked, &all);
            let open = candidates.iter().filter(|(at, _)| !chosen.contains(at));
            let scored =
                open.map(|(at, factor)| (*at, self.score_in_context(*at, &scores) * factor));
            let Some((best, _)) = scored
                .max_by(|a, b| a.1.total_cmp(&b.1))
                .filter(|(_, score)| *score > 0.0)
            else {
                break;
            };
            let served = self
                .passages
                .get(best)
                .map(|p| terms(&p.text))
                .unwrap_or_default();
            for (_, weight) in asked.iter_mut().filter(|(term, _)| served.contains(term)) {
                *weight *= SERVED;
            }
            let size = self
                .passages
                .get(best)
                .map_or(0, |p| estimate_tokens(&excerpt(&p.text, &[])).0);
            if size > room && !chosen.is_empty() {
                break;
            }
            room = room.saturating_sub(size);
            chosen.push(best);
        }
        chosen.sort_unstable();
        chosen
    }

    /// The passages with the best scores, each with its [`Retriever::factor`].
    fn candidates(&self, kinds: &QuestionKinds, scores: &[f64]) -> Vec<(usize, f64)> {
        const CANDIDATES: usize = 160;
        let scored = (0..self.passages.len()).map(|at| (at, self.score_in_context(at, scores)));
        let mut all: Vec<(usize, f64)> = scored.filter(|(_, score)| *score > 0.0).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        // A line that a program printed often is one candidate.
        let mut texts = HashSet::new();
        all.retain(|(at, _)| texts.insert(self.passages.get(*at).map(|p| p.text.as_str())));
        all.truncate(CANDIDATES);
        all.into_iter()
            .map(|(at, _)| (at, self.factor(at, kinds)))
            .collect()
    }

    /// The score of a passage plus a part of its neighbours' in the same block.
    fn score_in_context(&self, at: usize, scores: &[f64]) -> f64 {
        let [near, far] = [1, 2].map(|distance| {
            let before = at
                .checked_sub(distance)
                .map_or(0.0, |before| self.score_beside(at, before, scores));
            before.max(self.score_beside(at, at + distance, scores))
        });
        scores.get(at).copied().unwrap_or(0.0) + 0.45 * near + 0.1 * far
    }

    /// The score of the passage at `other` if it is in the block of the one at `at`, else 0.
    fn score_beside(&self, at: usize, other: usize, scores: &[f64]) -> f64 {
        let is_same_block =
            self.passages.get(other).map(|p| p.block) == self.passages.get(at).map(|p| p.block);
        scores
            .get(other)
            .copied()
            .filter(|_| is_same_block)
            .unwrap_or(0.0)
    }

    /// How well a passage suits the question by its speaker, its place and its content.
    fn factor(&self, at: usize, kinds: &QuestionKinds) -> f64 {
        let Some(passage) = self.passages.get(at) else {
            return 0.0;
        };
        let origin = match passage.origin {
            Origin::Said if kinds.of_user => 1.7,
            Origin::Said => 1.15,
            Origin::Replied => 1.15,
            Origin::Returned => 0.55,
            Origin::Called => 0.5,
            Origin::Noted(_) => NOTED,
        };
        // Of two passages on the same thing, the later one is current.
        let late = 1.0 + 0.12 * at as f64 / self.passages.len().max(1) as f64;
        let tiny = if passage.text.len() < 16 { 0.6 } else { 1.0 };
        origin * late * tiny * kinds.factor(&passage.text)
    }

    fn quote(&self, chosen: &[usize], question: &str) -> String {
        let asked = terms(question);
        let lines: Vec<String> = chosen
            .iter()
            .filter_map(|at| self.passages.get(*at))
            .map(|passage| line(&excerpt(&passage.text, &asked)).to_owned())
            .collect();
        lines.join("\n")
    }
}

/// Whether `text` has one of `words`, which are separated by bars.
fn has_any(text: &str, words: &str) -> bool {
    words.split('|').any(|word| text.contains(word))
}

/// Tells whether a passage has a certain kind of thing.
type Holds = fn(&str) -> bool;

/// The kinds of things that a question may ask for: words of such a question, separated by bars; the factor on a passage
/// that has such a thing; and the test whether it does.
const KINDS: [(&str, f64, Holds); 6] = [
    (
        "why|reason|reject|decid|cho|alternative|为什么|原因|理由|决定|否决",
        1.25,
        |text| rules::states_decision(text) || rules::states_reason(text),
    ),
    ("file|path|module|script|文件|路径|脚本", 1.25, has_path),
    (
        "error|fail|exception|message|log|错误|报错|失败|异常",
        1.2,
        |text| rules::is_error_line(text) || rules::mentions_trouble(text),
    ),
    (
        "how many|how long|how much|how high|value|version|port|number|count|size|time|多少|几|版本|端口|数值|大小",
        1.15,
        |text| text.contains(|c: char| c.is_ascii_digit()),
    ),
    (
        "left|next|still|remain|open|todo|unfinished|剩|下一步|待办|尚未|接下来",
        1.3,
        rules::states_task,
    ),
    (USER, 1.2, rules::states_demand),
];
/// Words of a question about what the user said.
const USER: &str = "user|forbid|rule|demand|word for word|complain|用户|要求|禁止|规定";

/// The kinds of things that a question asks for, by its wording.
struct QuestionKinds {
    of_user: bool,
    wanted: Vec<(f64, Holds)>,
}

impl QuestionKinds {
    fn from_question(question: &str) -> QuestionKinds {
        let lower = question.to_lowercase();
        let wanted = KINDS.iter().filter(|(words, ..)| has_any(&lower, words));
        QuestionKinds {
            of_user: has_any(&lower, USER),
            wanted: wanted.map(|(_, factor, holds)| (*factor, *holds)).collect(),
        }
    }

    fn factor(&self, text: &str) -> f64 {
        self.wanted
            .iter()
            .filter(|(_, holds)| holds(text))
            .map(|(factor, _)| factor)
            .product()
    }
}

fn has_path(text: &str) -> bool {
    text.split_whitespace().any(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.contains('/')
            || word
                .rsplit_once('.')
                .is_some_and(|(stem, end)| !stem.is_empty() && (1..6).contains(&end.len()))
    })
}

/// The passage, or of a long one the stretch with the most terms of the question.
fn excerpt(text: &str, asked: &[Term]) -> String {
    if text.len() <= QUOTED {
        return text.to_owned();
    }
    let is_end =
        |c: char| c.is_whitespace() || matches!(c, '，' | '。' | '、' | '；' | '：' | '！' | '？');
    let words: Vec<&str> = text.split_inclusive(is_end).collect();
    let weight: Vec<usize> = words
        .iter()
        .map(|w| terms(w).iter().filter(|t| asked.contains(t)).count())
        .collect();
    let (mut best, mut best_weight) = (0..words.len(), 0);
    let (mut start, mut length, mut held) = (0, 0, 0);
    for end in 0..words.len() {
        length += words.get(end).map_or(0, |w| w.len());
        held += weight.get(end).copied().unwrap_or(0);
        while length > QUOTED && start < end {
            length -= words.get(start).map_or(0, |w| w.len());
            held -= weight.get(start).copied().unwrap_or(0);
            start += 1;
        }
        if held > best_weight || end == 0 {
            (best, best_weight) = (start..end + 1, held);
        }
    }
    // A single word may be longer than an excerpt.
    let stretch = words.get(best).unwrap_or_default().concat();
    first_bytes(stretch.trim(), QUOTED).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::abstains;
    use proptest::prelude::*;

    const CONTEXT: &str = "[user]\nMove the service. Never bind to anything but 127.0.0.1.\n\n[assistant]\nPort 8080 is \
taken by nginx. Going with port 8081 instead, because the firewall lets it through.\n[call terminal] \
{\"command\":\"sed -i s/8080/8081/ conf/app.toml\"}\n\n[result terminal]\n\n[assistant]\nThe retry test fails: \
ValueError: delay must not be negative. The log rotates daily.";

    #[test]
    fn the_passages_on_the_question_are_quoted_word_for_word() {
        let port = answer(CONTEXT, "Which port was chosen and why?");
        assert!(
            port.contains("Going with port 8081 instead, because the firewall lets it through."),
            "{port}"
        );
        assert!(
            answer(CONTEXT, "Which error does the retry test fail with?")
                .contains("ValueError: delay must not")
        );
        assert!(
            answer(CONTEXT, "What did the user forbid on binding?")
                .contains("Never bind to anything but 127.0.0.1.")
        );
        assert!(
            answer(
                "# 决定\n- 端口改为 8081，因为防火墙只放行它。\n- 日志每天轮转。",
                "端口最后改成了多少？"
            )
            .contains("8081")
        );
    }

    #[test]
    fn what_no_message_says_by_itself_is_answered_from_the_outline() {
        let mut context = String::from("[user]\nTidy up the repository.\n");
        for number in 0..60 {
            let call = if number % 3 == 0 {
                "write_file"
            } else {
                "read_file"
            };
            context.push_str(&format!(
                "\n[assistant]\nThe files are next: changed, created or read, whichever is needed.\n\
                 [call {call}] {{\"path\":\"src/part_{number}.py\",\"content\":\"x\"}}\n\n[result {call}]\n{}\n",
                "a file was created or changed by somebody last year\n".repeat(9)
            ));
        }
        context.push_str(
            "\n[user]\nNow rename Ledger to Journal.\n\n[assistant]\n\
             [call terminal] {\"command\":\"pytest -q\"}\n\n[result terminal]\n3 passed",
        );
        for (question, expected) in [
            ("Which files were created?", "src/part_3.py"),
            ("Which files were only read, not changed?", "src/part_58.py"),
            ("Which file was the agent changing last?", "src/part_57.py"),
            ("Which command did the agent run last?", "pytest -q"),
            (
                "What did the user ask for last?",
                "rename Ledger to Journal",
            ),
        ] {
            let answer = answer(&context, question);
            assert!(answer.contains(expected), "{question} {answer}");
        }
    }

    #[test]
    fn a_search_is_asked_for_where_the_best_passage_is_weak() {
        let question = "Which port was chosen and why?";
        assert_eq!(
            search_for("", question).as_deref(),
            Some("SEARCH: Which port was chosen and why?")
        );
        assert_eq!(
            search_for("The dashboard is done.", question),
            search_for("", question)
        );
        assert_eq!(search_for(CONTEXT, question), None);
        assert_eq!(
            search_for("", "端口最后\n改成了多少？").as_deref(),
            Some("SEARCH: 端口最后 改成了多少？")
        );
    }

    #[test]
    fn ignorance_is_admitted_if_the_context_has_nothing_related() {
        assert_eq!(answer("", "Which port?"), NOTHING);
        let long = format!("{CONTEXT}\n{}", "The queue drains at night. ".repeat(300));
        assert_eq!(
            answer(&long, "Which colours does our legend have?"),
            NOTHING
        );
        assert_eq!(answer("", "磁盘总容量是多少？"), NOTHING_ZH);
        for nothing in [NOTHING, NOTHING_ZH] {
            assert!(abstains(nothing), "{nothing}");
        }
    }

    #[test]
    fn a_context_that_fits_is_quoted_whatever_the_words_of_the_question() {
        let quoted = answer(CONTEXT, "Which colours does our legend have?");
        assert!(
            quoted.contains("127.0.0.1") && quoted.contains("rotates daily"),
            "{quoted}"
        );
    }

    #[test]
    fn a_long_line_is_quoted_where_it_has_terms_of_the_question() {
        let line = format!(
            "{} the lease is 120 seconds {}",
            "word ".repeat(9000),
            "other ".repeat(9000)
        );
        let answer = answer(&line, "How long is the lease in seconds?");
        assert!(
            answer.contains("the lease is 120 seconds") && answer.len() <= QUOTED,
            "{answer}"
        );
        let line = format!(
            "{}租约为120秒，{}",
            "这里说别的。".repeat(900),
            "那里也说别的，".repeat(900)
        );
        let answer = super::answer(&line, "租约是多少秒？");
        assert!(
            answer.contains("租约为120秒") && answer.len() <= QUOTED,
            "{answer}"
        );
    }

    proptest! {
        #[test]
        fn answers_are_bounded_and_the_same_each_time(context in "(\\PC{0,60}\n){0,12}", question in "\\PC{0,40}") {
            let first = answer(&context, &question);
            prop_assert!(!first.is_empty() && estimate_tokens(&first).0 <= ROOM + QUOTED as u64);
            prop_assert_eq!(first, answer(&context, &question));
        }
    }
}
