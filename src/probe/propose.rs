//! Candidates for a bank that is begun without a model: questions about what rules find in the span.
//!
//! Within a type the better questions come first: what a person would ask, then gaps in sentences, then where the work
//! stood.

use super::ProbeType;
use super::decisions::{decisions, gap};
use super::generate::{ProbeCandidate, candidate};
use super::phrases::{is_project_file, is_topic, is_whole_command, short_path, statement, terms};
use base::locale::Locale;
use lexical::notes::rules::{names_open_work, points_elsewhere, says_done, states_reason};
use lexical::notes::{FileNote, SessionOutline};
use sessions::transcript::{FileLedger, FileRecord};

/// The most files that one question asks for.
const MAX_FILES: usize = 5;
/// The most characters of an error line or an item of a plan that is a fact.
const MAX_LINE: usize = 160;
/// The most candidates of one type: more would all be surplus.
const MOST_OF_ONE_TYPE: usize = 8;

/// Writes candidates of all types that the sources allow. They still have to be verified.
pub fn propose_candidates(sources: &SessionOutline, locale: Locale) -> Vec<ProbeCandidate> {
    let recall = failures(sources, locale)
        .chain(values(sources, locale))
        .chain(findings(sources, locale));
    let mut candidates: Vec<ProbeCandidate> = recall.take(MOST_OF_ONE_TYPE).collect();
    candidates.extend(
        files(sources, locale)
            .into_iter()
            .chain(changes(sources, locale))
            .take(MOST_OF_ONE_TYPE),
    );
    candidates.extend(decisions(sources, locale).take(MOST_OF_ONE_TYPE));
    candidates.extend(continuations(sources, locale).take(MOST_OF_ONE_TYPE));
    candidates
}

fn failures(sources: &SessionOutline, locale: Locale) -> impl Iterator<Item = ProbeCandidate> {
    sources
        .failures
        .iter()
        .rev()
        .filter(|(command, _)| is_whole_command(command))
        .filter_map(move |(command, lines)| {
            let mut lines = lines.iter().rev();
            let line = lines.find(|line| !points_elsewhere(line)).filter(|line| {
                line.chars().count() <= MAX_LINE && !line.ends_with(['…', ',', '{', '(', ';'])
            })?;
            let question = locale.pick(
                format!("With which exact error message did `{command}` fail?"),
                format!("`{command}` 失败时的确切报错信息是什么？"),
            );
            Some(candidate(
                ProbeType::Recall,
                question,
                vec![line.clone()],
                line,
            ))
        })
}

/// Whether the value is a number or a path and the key is a name: prose has colons, too.
fn is_setting(key: &str, value: &str) -> bool {
    let is_file = key
        .rsplit_once('.')
        .is_some_and(|(_, ending)| ending.chars().all(char::is_alphabetic));
    let number = value
        .trim_start_matches('-')
        .starts_with(|c: char| c.is_ascii_digit())
        && !value.trim_start_matches('-').contains(['-', ':', '/']);
    let path = value.starts_with('/') && !value.contains("//") && !value.contains("...");
    let path = path && value.matches('/').count() > 1;
    let is_name =
        key.len() > 2 && (!key.starts_with(|c: char| c.is_ascii_uppercase()) || key.contains('_'));
    is_name && !is_file && !key.starts_with("http") && key != "localhost" && (number || path)
}

fn values(sources: &SessionOutline, locale: Locale) -> impl Iterator<Item = ProbeCandidate> {
    sources
        .values
        .iter()
        .rev()
        .filter(|(key, value)| is_setting(key, value))
        .map(move |(key, value)| {
            let question = locale.pick(
                format!("What is `{key}` set to by now?"),
                format!("`{key}` 目前的值是什么？"),
            );
            candidate(
                ProbeType::Recall,
                question,
                vec![value.clone()],
                &format!("{key} = {value}"),
            )
        })
}

fn findings(sources: &SessionOutline, locale: Locale) -> impl Iterator<Item = ProbeCandidate> {
    let words = ["The agent found this", "代理曾得出这一结论"];
    sources
        .findings
        .iter()
        .rev()
        .filter(|sentence| !states_reason(sentence))
        .filter_map(move |sentence| gap(ProbeType::Recall, sentence, locale, words))
}

fn project_files<'p>(paths: impl Iterator<Item = &'p String>) -> Vec<String> {
    paths
        .filter(|path| is_project_file(path))
        .cloned()
        .collect()
}

/// Whether a file is in the answer to a question about files.
type FileState = fn(&FileRecord) -> bool;

fn is_changed(file: &FileRecord) -> bool {
    file.modified && !file.created && !file.may_be_new && !file.deleted
}

/// The questions about files, each in both languages: for all of them, and for the last ones.
const FILE_QUESTIONS: [(FileState, [[&str; 2]; 2]); 3] = [
    (
        |file| file.created && !file.deleted,
        [
            [
                "Which files were created?",
                "Which of the files that were created were written last?",
            ],
            ["新建了哪些文件？", "新建的文件中，最后写入的是哪些？"],
        ],
    ),
    (
        is_changed,
        [
            [
                "Which existing files were changed?",
                "Which existing files were changed last?",
            ],
            ["修改了哪些已有的文件？", "最后修改了哪些已有的文件？"],
        ],
    ),
    (
        |file| file.read && !file.created && !file.modified && !file.uncertain && !file.deleted,
        [
            [
                "Which files were only read, not changed?",
                "Which files were read last and not changed?",
            ],
            [
                "哪些文件只是读过而没有改动？",
                "最后读过而没有改动的是哪些文件？",
            ],
        ],
    ),
];

fn files(sources: &SessionOutline, locale: Locale) -> Vec<ProbeCandidate> {
    let lists = FILE_QUESTIONS.iter().filter_map(|(wanted, words)| {
        let files = sources.files.iter().map(|note| &note.file);
        let found = files.filter(|file| wanted(file));
        let paths = project_files(found.map(|file| &file.path));
        file_list(&paths, words, locale)
    });
    lists.collect()
}

/// Takes those files out of the candidates about files that are not so in the whole history before their point, which
/// whoever proposed them has not seen; a candidate without files goes.
pub fn keep_true_files(candidates: &mut Vec<ProbeCandidate>, history: &FileLedger) {
    for candidate in &mut *candidates {
        let question = candidate.question.as_str();
        let asks = |words: &[[&str; 2]; 2]| words.iter().flatten().any(|known| *known == question);
        let Some((wanted, _)) = FILE_QUESTIONS.iter().find(|(_, words)| asks(words)) else {
            continue;
        };
        candidate.expected_facts.retain(|fact| {
            let named = history
                .files
                .iter()
                .filter(|file| short_path(&file.path) == fact);
            let mut states = named.map(wanted).peekable();
            states.peek().is_some() && states.all(|is_so| is_so)
        });
        candidate.reference_answer = candidate.expected_facts.join(", ");
    }
    candidates.retain(|candidate| {
        candidate.kind != ProbeType::Artifact || !candidate.expected_facts.is_empty()
    });
}

/// A question about the newest of some files. Its words ask, in both languages, for all of them or for the last ones.
fn file_list(
    paths: &[String],
    [[en, en_last], [zh, zh_last]]: &[[&str; 2]; 2],
    locale: Locale,
) -> Option<ProbeCandidate> {
    let newest = paths.iter().rev().take(MAX_FILES).rev();
    let newest: Vec<String> = newest.map(|path| short_path(path).to_owned()).collect();
    let (en, zh) = if paths.len() > MAX_FILES {
        (en_last, zh_last)
    } else {
        (en, zh)
    };
    let reference = newest.join(", ");
    let question = locale.pick(*en, *zh);
    (!newest.is_empty()).then(|| candidate(ProbeType::Artifact, question, newest, &reference))
}

/// Questions about what was changed in each file.
fn changes(sources: &SessionOutline, locale: Locale) -> impl Iterator<Item = ProbeCandidate> {
    sources
        .files
        .iter()
        .rev()
        .filter(|note| is_changed(&note.file) && is_project_file(&note.file.path))
        .filter_map(move |FileNote { file, details }| {
            let mut facts: Vec<String> = details
                .iter()
                .filter_map(|detail| terms(detail).into_iter().next_back())
                .collect();
            facts.dedup();
            facts.truncate(3);
            let path = short_path(&file.path);
            let question = locale.pick(
                format!("What was changed in `{path}`?"),
                format!("`{path}` 里改了什么？"),
            );
            (!facts.is_empty())
                .then(|| candidate(ProbeType::Artifact, question, facts, &details.join("; ")))
        })
}

fn continuations(sources: &SessionOutline, locale: Locale) -> impl Iterator<Item = ProbeCandidate> {
    let tasks = sources
        .tasks
        .iter()
        .rev()
        .filter_map(move |sentence| task(sentence, locale));
    plan(sources, locale)
        .into_iter()
        .chain(tasks)
        .chain(request(sources, locale))
        .chain(work_state_probes(sources, locale))
}

/// Asks for the open items of the agent's own plan.
fn plan(sources: &SessionOutline, locale: Locale) -> Option<ProbeCandidate> {
    let open = sources
        .plan
        .iter()
        .filter(|item| item.chars().count() <= MAX_LINE);
    let open: Vec<String> = open.take(3).cloned().collect();
    let question = locale.pick(
        "Which items of the agent's own plan were not done yet? Name the first of them.",
        "代理自己的计划里，还有哪些事项没有完成？请说出最前面的几项。",
    );
    let reference = open.join("; ");
    (!open.is_empty()).then(|| candidate(ProbeType::Continuation, question, open, &reference))
}

fn task(sentence: &str, locale: Locale) -> Option<ProbeCandidate> {
    let whole = statement(sentence)?;
    if !names_open_work(&whole) || says_done(&whole) {
        return None;
    }
    let mut names = terms(&whole).into_iter();
    let topic = names.next().filter(|topic| is_topic(topic));
    let facts: Vec<String> = names
        .filter(|name| !topic.iter().any(|topic| topic.contains(name.as_str())))
        .take(3)
        .collect();
    if let Some(topic) = topic.filter(|_| !facts.is_empty()) {
        let question = locale.pick(
            format!("What is still open, or comes next, as regards `{topic}`?"),
            format!("关于 `{topic}`，还有什么没做完，或者下一步是什么？"),
        );
        return Some(candidate(
            ProbeType::Continuation,
            question,
            facts,
            sentence,
        ));
    }
    gap(
        ProbeType::Continuation,
        sentence,
        locale,
        [
            "This was named as open or still to come",
            "当时提到这件事尚未完成或接下来要做",
        ],
    )
}

/// Asks for the person's last request.
fn request(sources: &SessionOutline, locale: Locale) -> Option<ProbeCandidate> {
    const SHORT: usize = 60;
    let asked = sources.request.as_deref()?.trim();
    let names: Vec<String> = terms(asked).into_iter().take(3).collect();
    let says_enough =
        asked.split_whitespace().count() > 2 || !asked.is_ascii() && asked.chars().count() > 5;
    let is_phrase = asked.chars().count() <= SHORT && !asked.contains('\n') && says_enough;
    let facts = if !names.is_empty() {
        names
    } else {
        vec![is_phrase.then(|| asked.to_owned())?]
    };
    let question = locale.pick("What did the user ask for last?", "用户最后要求做什么？");
    Some(candidate(ProbeType::Continuation, question, facts, asked))
}

/// Asks for the file and the command that the agent worked on last.
fn work_state_probes(
    sources: &SessionOutline,
    locale: Locale,
) -> impl Iterator<Item = ProbeCandidate> {
    let about = |question: &str, fact: &str, reference: &str| {
        let facts = vec![fact.to_owned()];
        candidate(ProbeType::Continuation, question, facts, reference)
    };
    let question = locale.pick(
        "Which file was the agent changing last?",
        "代理最后在修改哪个文件？",
    );
    let file = sources
        .changed_last
        .iter()
        .find(|path| is_project_file(path))
        .map(|path| about(question, short_path(path), path));
    let question = locale.pick(
        "Which command did the agent run last?",
        "代理最后运行了哪条命令？",
    );
    let command = sources
        .last_command
        .as_deref()
        .filter(|command| is_whole_command(command))
        .map(|command| about(question, command, command));
    file.into_iter().chain(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{ProbeType, verify};
    use lexical::facts::History;
    use serde_json::json;
    use sessions::transcript::Point;
    use sessions::transcript::{Message, Role, ToolCall};

    fn noted(path: &str, note: fn(&mut FileRecord), details: &[&str]) -> FileNote {
        let mut noted = FileNote::default();
        noted.file.path = path.to_owned();
        note(&mut noted.file);
        noted.details = details.iter().map(|detail| (*detail).to_owned()).collect();
        noted
    }

    fn sources() -> SessionOutline {
        SessionOutline {
            files: vec![
                noted("src/export.py", |file| file.created = true, &[]),
                noted(
                    "src/app.py",
                    |file| file.modified = true,
                    &["timeout = 10 → timeout_seconds = 30"],
                ),
                noted("/private/tmp/task.output", |file| file.read = true, &[]),
            ],
            changed_last: Some("src/app.py".into()),
            failures: vec![
                ("pytest -q".into(), vec!["ValueError: bad delimiter".into()]),
                ("cd /repo".into(), vec!["fatal: no upstream".into()]),
                ("make fmt …".into(), vec!["fatal: no formatter".into()]),
            ],
            decisions: vec![
                "Going with SQLite rather than a JSON file, for locking.".into(),
                "We keep port 8081 because nginx already listens on 8080.".into(),
            ],
            demands: vec!["Never write to the folder `var/spool` yourself.".into()],
            findings: vec!["The slow part of the export is `load_rows` alone.".into()],
            plan: vec!["Run the slow tests".into()],
            tasks: vec!["Next: `retry_job` still needs a test in tests/test_retry.py.".into()],
            request: Some("please run the slow tests too".into()),
            last_command: Some("pytest -q --slow".into()),
            values: vec![
                ("max_age".into(), "3600".into()),
                ("Docs".into(), "Added".into()),
                ("repo".into(), "/tmp/.../out".into()),
                ("https".into(), "//a.b".into()),
            ],
        }
    }

    fn span() -> Vec<Message> {
        let sources = sources();
        let mut lines = vec![
            "src/export.py src/app.py".to_owned(),
            "timeout = 10 → timeout_seconds = 30".into(),
            "max_age = 3600".into(),
        ];
        lines.extend(
            sources
                .failures
                .iter()
                .flat_map(|(command, lines)| [command.clone(), lines.join("\n")]),
        );
        let sentences = [
            sources.decisions,
            sources.demands,
            sources.findings,
            sources.plan,
            sources.tasks,
        ];
        lines.extend(
            sentences
                .into_iter()
                .flatten()
                .chain(sources.request)
                .chain(sources.last_command),
        );
        vec![Message::text(Role::Assistant, lines.join("\n"))]
    }

    #[test]
    fn candidates_of_all_types_hold_against_their_span() {
        for locale in [Locale::En, Locale::Zh] {
            let verified = verify(
                propose_candidates(&sources(), locale),
                &History::new(&span()),
                0..1,
                Point(1),
                12,
                &[],
            );
            assert_eq!(verified.missing, [], "{:?}", verified.dropped);
        }
    }

    #[test]
    fn what_is_done_or_stays_is_not_open() {
        for sentence in [
            "Nothing remains to be done for `api.py` and `core.py`.",
            "All tasks in `plan.md` are done; nothing is pending in `b.md`.",
            "`SOUL.md` remains independent of `agent.py`.",
            "Later versions of `numpy` fixed `dot.py`.",
            "`plan.md` 里的任务都完成了，没有未完成的 `b.md`。",
        ] {
            assert!(task(sentence, Locale::En).is_none(), "{sentence}");
        }
        assert!(
            task(
                "Still pending: `api.py` has no test in `test_api.py`.",
                Locale::En
            )
            .is_some()
        );
    }

    #[test]
    fn questions_read_like_a_persons() {
        let candidates = propose_candidates(&sources(), Locale::En);
        let lines: Vec<String> = candidates
            .iter()
            .map(|c| {
                format!(
                    "{}: {} [{}]",
                    c.kind.name(),
                    c.question,
                    c.expected_facts.join(" | ")
                )
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        recall: With which exact error message did `pytest -q` fail? [ValueError: bad delimiter]
        recall: What is `max_age` set to by now? [3600]
        recall: The agent found this: "The slow part of the export is `____` alone." What belongs in the gap? [load_rows]
        artifact: Which files were created? [src/export.py]
        artifact: Which existing files were changed? [src/app.py]
        artifact: What was changed in `src/app.py`? [timeout_seconds]
        decision: What was the reason for this: "We keep port 8081"? [8080]
        decision: Which alternative was turned down here: "Going with SQLite"? [a JSON file]
        decision: The user demanded this: "Never write to the folder `____` yourself." What belongs in the gap? [var/spool]
        continuation: Which items of the agent's own plan were not done yet? Name the first of them. [Run the slow tests]
        continuation: What is still open, or comes next, as regards `retry_job`? [tests/test_retry.py]
        continuation: What did the user ask for last? [please run the slow tests too]
        continuation: Which file was the agent changing last? [src/app.py]
        continuation: Which command did the agent run last? [pytest -q --slow]
        "#);
    }

    /// A command and its result.
    fn ran(id: &str, command: &str, result: &str) -> [Message; 2] {
        let mut call = Message::text(Role::Assistant, "");
        call.tool_calls.push(ToolCall::new(
            id,
            "run_shell_command",
            json!({"command": command}).to_string(),
        ));
        [call, Message::result(id, result)]
    }

    #[test]
    fn only_a_command_that_failed_with_a_message_is_asked_for_it() {
        let span = [
            ran(
                "a",
                "git add docs/color.md",
                "Output: (empty)\nError: (none)\nExit Code: 0",
            ),
            ran(
                "b",
                "gh pr create --fill",
                "Process exited with code 0\nOutput:\nerror: Module not found \"or.js\"",
            ),
            ran("c", "git check-ignore -v .entire", "Exit code 1"),
            ran(
                "d",
                "pytest -q tests",
                "Exit code 2\nImportError: cannot import name 'retry'",
            ),
            ran(
                "e",
                "cargo test | tail -2",
                "Exit code: 0\nthread 'a' panicked at a.rs:3\ntest result: FAILED. 1 failed",
            ),
        ];
        let candidates =
            propose_candidates(&SessionOutline::from_messages(&span.concat()), Locale::En);
        let recall = candidates
            .iter()
            .filter(|candidate| candidate.kind == ProbeType::Recall);
        let asked: Vec<&str> = recall
            .map(|candidate| candidate.question.as_str())
            .collect();
        let commands = ["cargo test | tail -2", "pytest -q tests"];
        assert_eq!(
            asked,
            commands.map(|command| format!("With which exact error message did `{command}` fail?"))
        );
    }

    #[test]
    fn the_exact_error_is_the_message_and_not_what_points_to_it() {
        let panic = "Exit code 101\nthread 'main' panicked at src/main.rs:4:5:\nindex out of bounds: the len is 3";
        let npm = "Exit code 1\nnpm ERR! code ENOENT\nnpm ERR! errno -2\nnpm ERR! Missing script: \"bild\"\n\
                   npm ERR! A complete log of this run can be found in:\nnpm ERR!     /root/.npm/_logs/x-debug-0.log";
        let jest = "Exit code 1\nFAIL src/a.test.ts\n\nTests: 1 failed, 3 passed, 4 total";
        let span = [
            ran("a", "cargo run", panic),
            ran("b", "npm run bild", npm),
            ran("c", "npx jest", jest),
        ];
        let outline = SessionOutline::from_messages(&span.concat());
        let facts: Vec<String> = failures(&outline, Locale::En)
            .flat_map(|candidate| candidate.expected_facts)
            .collect();
        assert_eq!(
            facts,
            [
                "npm ERR! Missing script: \"bild\"",
                "index out of bounds: the len is 3"
            ]
        );
    }

    #[test]
    fn an_alternative_named_in_chinese_is_asked_for_in_chinese() {
        let sources = SessionOutline {
            decisions: vec!["改用 sqlite 而不是 json 文件。".into()],
            ..SessionOutline::default()
        };
        let candidates = propose_candidates(&sources, Locale::Zh);
        assert_eq!(
            candidates[0].question,
            "“改用 sqlite”，当时放弃的另一个方案是什么？"
        );
        assert_eq!(
            (candidates[0].kind, candidates[0].expected_facts.as_slice()),
            (ProbeType::Decision, ["json 文件".to_owned()].as_slice())
        );
    }
}
