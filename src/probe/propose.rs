//! Candidates by rule, for a bank that is started without a model: questions about what an index of the span names.

use super::bank::ProbeType;
use super::generate::Candidate;
use crate::locale::Locale;

/// What a rule-based index knows of a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clues {
    /// Files written anew, by path.
    pub created: Vec<String>,
    /// Files changed, by path, each with what was changed in it.
    pub modified: Vec<(String, Vec<String>)>,
    /// Files looked at and not changed, by path.
    pub read: Vec<String>,
    /// Commands that failed, each with the lines that say what went wrong.
    pub failures: Vec<(String, Vec<String>)>,
    /// Sentences that state a choice.
    pub decisions: Vec<String>,
    /// Sentences that name something left to do.
    pub tasks: Vec<String>,
    /// Settings with the value seen last.
    pub values: Vec<(String, String)>,
}

/// More files than this are no question but a list.
const FILES: usize = 5;
/// Error lines longer than this are no fact.
const LINE: usize = 160;

/// Writes candidates of all types that the clues allow. They still have to be verified.
pub fn propose_candidates(clues: &Clues, locale: Locale) -> Vec<Candidate> {
    let say = |en: String, zh: String| match locale {
        Locale::En => en,
        Locale::Zh => zh,
    };
    let mut all = Vec::new();
    failures(clues, &say, &mut all);
    values(clues, &say, &mut all);
    files(clues, &say, &mut all);
    clues.decisions.iter().rev().for_each(|sentence| all.extend(decision(sentence, &say)));
    clues.tasks.iter().rev().for_each(|sentence| all.extend(task(sentence, &say)));
    all
}

type Say<'a> = dyn Fn(String, String) -> String + 'a;

fn candidate(kind: ProbeType, question: String, facts: Vec<String>, reference: &str) -> Candidate {
    Candidate { kind, question, expected_facts: facts, reference_answer: reference.to_owned() }
}

fn failures(clues: &Clues, say: &Say<'_>, all: &mut Vec<Candidate>) {
    for (command, lines) in clues.failures.iter().rev() {
        let Some(line) = lines.last().filter(|line| line.chars().count() <= LINE && !line.ends_with('…')) else {
            continue;
        };
        let question = say(
            format!("With which exact error message did `{command}` fail?"),
            format!("`{command}` 失败时的确切报错信息是什么？"),
        );
        all.push(candidate(ProbeType::Recall, question, vec![line.clone()], line));
    }
}

fn values(clues: &Clues, say: &Say<'_>, all: &mut Vec<Candidate>) {
    for (key, value) in clues.values.iter().rev() {
        let question = say(format!("What is `{key}` set to by now?"), format!("`{key}` 目前的值是什么？"));
        all.push(candidate(ProbeType::Recall, question, vec![value.clone()], &format!("{key} = {value}")));
    }
}

fn files(clues: &Clues, say: &Say<'_>, all: &mut Vec<Candidate>) {
    let modified: Vec<String> = clues.modified.iter().map(|(path, _)| path.clone()).collect();
    let lists = [
        (&clues.created, say("Which files were created?".into(), "新建了哪些文件？".into())),
        (&modified, say("Which existing files were changed?".into(), "修改了哪些已有的文件？".into())),
        (&clues.read, say("Which files were only read, not changed?".into(), "哪些文件只是读过而没有改动？".into())),
    ];
    for (paths, question) in lists {
        let newest: Vec<String> = paths.iter().rev().take(FILES).rev().cloned().collect();
        if !newest.is_empty() {
            let reference = newest.join(", ");
            all.push(candidate(ProbeType::Artifact, question, newest, &reference));
        }
    }
    for (path, details) in clues.modified.iter().rev() {
        let facts: Vec<String> =
            details.iter().filter_map(|detail| terms(detail).into_iter().next_back()).take(3).collect();
        let question = say(format!("What was changed in `{path}`?"), format!("`{path}` 里改了什么？"));
        if !facts.is_empty() {
            all.push(candidate(ProbeType::Artifact, question, facts, &details.join("; ")));
        }
    }
}

/// A choice with a reason, with an alternative, or with at least two names in it.
fn decision(sentence: &str, say: &Say<'_>) -> Option<Candidate> {
    const REASONS: [&str; 6] = [" because ", " since ", " due to ", "因为", "由于", "原因是"];
    const OTHERS: [&str; 4] = [" instead of ", " rather than ", "而不是", "而非"];
    let parted = |marks: &[&'static str]| marks.iter().find_map(|mark| sentence.split_once(mark));
    if let Some((choice, other)) = parted(&OTHERS) {
        let other = clause(other);
        let question = say(
            format!("Which alternative was turned down here: \"{}\"?", choice.trim()),
            format!("“{}”，当时放弃的另一个方案是什么？", choice.trim()),
        );
        return (other.chars().count() > 2)
            .then(|| candidate(ProbeType::Decision, question, vec![other.into()], sentence));
    }
    if let Some((choice, reason)) = parted(&REASONS) {
        let facts: Vec<String> =
            Some(terms(reason)).filter(|terms| !terms.is_empty()).unwrap_or(vec![clause(reason).into()]);
        let question = say(
            format!("What was the reason for this: \"{}\"?", choice.trim()),
            format!("“{}”的理由是什么？", choice.trim()),
        );
        return (choice.trim().chars().count() > 8).then(|| candidate(ProbeType::Decision, question, facts, sentence));
    }
    let (topic, facts) = topic_and_facts(sentence)?;
    let question = say(format!("What was decided about `{topic}`?"), format!("关于 `{topic}` 做了什么决定？"));
    Some(candidate(ProbeType::Decision, question, facts, sentence))
}

fn task(sentence: &str, say: &Say<'_>) -> Option<Candidate> {
    if let Some((topic, facts)) = topic_and_facts(sentence) {
        let question = say(
            format!("What is still open, or comes next, as regards `{topic}`?"),
            format!("关于 `{topic}`，还有什么没做完，或者下一步是什么？"),
        );
        return Some(candidate(ProbeType::Continuation, question, facts, sentence));
    }
    let facts = terms(sentence);
    let question = say(
        "Which piece of work was named as unfinished or still to come?".into(),
        "哪一项工作被说成尚未完成或接下来要做？".into(),
    );
    (!facts.is_empty()).then(|| candidate(ProbeType::Continuation, question, facts, sentence))
}

/// The first name in a sentence and the others, where there are others.
fn topic_and_facts(sentence: &str) -> Option<(String, Vec<String>)> {
    let mut terms = terms(sentence).into_iter();
    let topic = terms.next()?;
    let facts: Vec<String> = terms.filter(|term| !topic.contains(term.as_str())).take(3).collect();
    (!facts.is_empty()).then_some((topic, facts))
}

/// The beginning of a text up to the end of its clause.
fn clause(text: &str) -> &str {
    let end = text.find([',', ';', '，', '；', '。', '(', '（']).unwrap_or(text.len());
    text.get(..end).unwrap_or(text).trim().trim_end_matches(['.', '!', ':'])
}

/// What a sentence names exactly: code in backticks, names of programs and files, numbers with more than one digit.
fn terms(sentence: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    for (index, part) in sentence.split('`').enumerate() {
        if index % 2 == 1 && (2..60).contains(&part.chars().count()) {
            push_new(&mut terms, part);
            continue;
        }
        let words = part.split(|c: char| c.is_whitespace() || "，。；：、（）()\"“”「」,;*!?".contains(c));
        words
            .map(|word| word.trim_matches(|c: char| !(c.is_alphanumeric() || c == '_' || c == '/')))
            .filter(|word| is_name(word))
            .for_each(|word| push_new(&mut terms, word));
    }
    terms
}

fn push_new(terms: &mut Vec<String>, term: &str) {
    if !terms.iter().any(|known| known == term) {
        terms.push(term.to_owned());
    }
}

fn is_name(word: &str) -> bool {
    let letters = word.chars().skip(1);
    let inner = |test: fn(char) -> bool| letters.clone().any(test);
    let numeric = word.chars().filter(char::is_ascii_digit).count() > 1;
    word.is_ascii()
        && word.len() > 2
        && (inner(|c| matches!(c, '_' | '/' | '.')) || inner(|c| c.is_ascii_uppercase()) || numeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Point;
    use crate::probe::{ProbeType, verify};
    use crate::transcript::{Message, Role};

    fn clues() -> Clues {
        Clues {
            created: vec!["src/export.py".into()],
            modified: vec![("src/app.py".into(), vec!["timeout = 10 → timeout_seconds = 30".into()])],
            read: vec![],
            failures: vec![("pytest -q".into(), vec!["ValueError: bad delimiter".into()])],
            decisions: vec![
                "Going with SQLite rather than a JSON file, for locking.".into(),
                "We keep port 8081 because nginx already listens on 8080.".into(),
            ],
            tasks: vec!["Next: `retry_job` still needs a test in tests/test_retry.py.".into()],
            values: vec![("max_age".into(), "3600".into())],
        }
    }

    fn span() -> Vec<Message> {
        let clues = clues();
        let mut lines = vec![
            "src/export.py src/app.py".to_owned(),
            "timeout = 10 → timeout_seconds = 30".into(),
            "max_age = 3600".into(),
        ];
        lines.extend(clues.failures.iter().flat_map(|(command, lines)| [command.clone(), lines.join("\n")]));
        lines.extend(clues.decisions.into_iter().chain(clues.tasks));
        vec![Message::text(Role::Assistant, lines.join("\n"))]
    }

    #[test]
    fn candidates_of_all_types_hold_against_their_span() {
        for locale in [Locale::En, Locale::Zh] {
            let verified = verify(propose_candidates(&clues(), locale), &span(), Point(1), &[]);
            assert_eq!(verified.missing, [], "{:?}", verified.dropped);
        }
    }

    #[test]
    fn questions_read_like_a_persons() {
        let all = propose_candidates(&clues(), Locale::En);
        let lines: Vec<String> = all
            .iter()
            .map(|c| format!("{}: {} [{}]", c.kind.name(), c.question, c.expected_facts.join(" | ")))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        recall: With which exact error message did `pytest -q` fail? [ValueError: bad delimiter]
        recall: What is `max_age` set to by now? [3600]
        artifact: Which files were created? [src/export.py]
        artifact: Which existing files were changed? [src/app.py]
        artifact: What was changed in `src/app.py`? [timeout_seconds]
        decision: What was the reason for this: "We keep port 8081"? [8080]
        decision: Which alternative was turned down here: "Going with SQLite"? [a JSON file]
        continuation: What is still open, or comes next, as regards `retry_job`? [tests/test_retry.py]
        "#);
    }

    #[test]
    fn an_alternative_named_in_chinese_is_asked_for_in_chinese() {
        let clues = Clues { decisions: vec!["改用 sqlite 而不是 json 文件。".into()], ..Clues::default() };
        let all = propose_candidates(&clues, Locale::Zh);
        assert_eq!(all[0].question, "“改用 sqlite”，当时放弃的另一个方案是什么？");
        assert_eq!(
            (all[0].kind, all[0].expected_facts.as_slice()),
            (ProbeType::Decision, ["json 文件".to_owned()].as_slice())
        );
    }
}
