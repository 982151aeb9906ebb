//! The words and sentences that questions by rule are made of: exact names, clauses, gaps, short paths.

use base::text::beside;
use lexical::notes::rules::announces;

/// A sentence with more characters makes no question; one with fewer words says too little.
const LONGEST_SENTENCE: usize = 220;
const FEWEST_WORDS: usize = 5;

/// What a sentence names exactly: code in backticks, names of programs and files, numbers with more than one digit.
pub(super) fn terms(sentence: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    for (index, part) in sentence.split('`').enumerate() {
        if index % 2 == 1 && (3..60).contains(&part.chars().count()) && !part.contains('\n') {
            push_new(&mut terms, part);
            continue;
        }
        let words = part.split(|c: char| {
            c.is_whitespace() || "，。；：、（）()\"“”「」‘’「」,;*!?<>=|[]{}".contains(c)
        });
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
    let has_inner_mark = word
        .chars()
        .skip(1)
        .any(|c| matches!(c, '_' | '/' | '.') || c.is_ascii_uppercase());
    let digits = word.chars().filter(char::is_ascii_digit).count();
    // Not names: URLs, abbreviations such as `e.g`, words in capitals for emphasis, alternatives such as `keep/discard`.
    let shout = word.chars().all(|c| c.is_ascii_uppercase());
    let short = word.len() < 6 && word.contains('.') && digits == 0;
    let either =
        word.matches('/').count() == 1 && !word.contains(['.', '_', '-']) && !word.starts_with('/');
    word.is_ascii()
        && (word.len() > 3 || digits > 1 && word.len() > 2)
        && !(shout || short || either || word.starts_with("http") || word.contains("//"))
        && (has_inner_mark || digits > 1)
}

/// Whether a term can say what a question is about: no bare number.
pub(super) fn is_topic(term: &str) -> bool {
    term.chars().any(char::is_alphabetic)
}

/// A sentence as a question can quote it: without the marks of lists and of Markdown, with balanced brackets; `None`
/// for what is not a statement, or only announces what the agent does next.
pub(super) fn statement(sentence: &str) -> Option<String> {
    let mut text = sentence.trim();
    loop {
        let label = text.strip_prefix("THOUGHT:").unwrap_or(text);
        let number = label
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .strip_prefix(['.', ')'])
            .unwrap_or(label);
        let number =
            if number.len() < label.len() && !label.starts_with(|c: char| c.is_ascii_digit()) {
                label
            } else {
                number
            };
        let bare =
            number.trim_start_matches(|c: char| c.is_whitespace() || "-*→•#>✅❌".contains(c));
        if bare == text {
            break;
        }
        text = bare;
    }
    let text = text.replace("**", "");
    let wide = text.chars().any(|c| u32::from(c) > 0x2E80);
    let enough = if wide {
        text.chars().count() > 9
    } else {
        text.split_whitespace().count() >= FEWEST_WORDS
    };
    let sound = enough
        && text.chars().count() <= LONGEST_SENTENCE
        && !text.ends_with([':', '?', '…', '：', '？', ',', '-', '—'])
        // Output and code that was pasted begins with numbers.
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.contains(['|', '\u{fffd}', '\n'])
        && !text.contains("//")
        && !announces(&text)
        && is_balanced(&text);
    sound.then_some(text)
}

/// Whether every bracket and quoted stretch that is opened is closed.
pub(super) fn is_balanced(text: &str) -> bool {
    let count = |c: char| text.matches(c).count();
    count('`') % 2 == 0
        && count('"') % 2 == 0
        && count('(') == count(')')
        && count('（') == count('）')
}

/// The sentence with a gap in place of the last name in it, and that name.
pub(super) fn with_gap(sentence: &str) -> Option<(String, String)> {
    let text = statement(sentence)?;
    let term = terms(&text)
        .into_iter()
        .rev()
        .find(|term| term.chars().count() > 2)?;
    let gapped = with_gaps(&text, &term);
    // What is left must still say what is asked for.
    let left = gapped.chars().filter(|c| c.is_alphanumeric()).count();
    (left >= 12 && (1..3).contains(&gapped.matches("____").count())).then_some((gapped, term))
}

/// The text with gaps where `term` occurs as a word of its own.
fn with_gaps(text: &str, term: &str) -> String {
    let mut gapped = String::with_capacity(text.len());
    let mut last = 0;
    for (at, found) in text.match_indices(term) {
        if beside(text, &(at..at + found.len()))
            .into_iter()
            .flatten()
            .any(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            continue;
        }
        gapped.push_str(text.get(last..at).unwrap_or(""));
        gapped.push_str("____");
        last = at + found.len();
    }
    gapped.push_str(text.get(last..).unwrap_or(""));
    gapped
}

/// The beginning of a text up to the end of its clause, without a bracket that the clause did not open.
pub(super) fn clause(text: &str) -> &str {
    let end = text
        .find([',', ';', '，', '；', '。', '(', '（', '—', '?'])
        .unwrap_or(text.len());
    let clause = text.get(..end).unwrap_or(text);
    let clause = clause
        .split(". ")
        .next()
        .unwrap_or(clause)
        .trim()
        .trim_end_matches(['.', '!', ':', '*']);
    if is_balanced(clause) {
        clause
    } else {
        clause.trim_matches(['`', '"', ')', '）'])
    }
}

/// The last two parts of a path: enough to name a file, and what people write.
pub(super) fn short_path(path: &str) -> &str {
    let mut slashes = path.rmatch_indices('/');
    match (slashes.next(), slashes.next()) {
        (Some(_), Some((at, _))) => path.get(at + 1..).unwrap_or(path),
        _ => path.trim_start_matches("./"),
    }
}

/// Whether a path is a file of the work: it has a file's name, and lies in no folder of the agent's own.
pub(super) fn is_project_file(path: &str) -> bool {
    const OWN: [&str; 5] = [
        "/private/tmp/",
        "/.claude/",
        "/.codex/",
        "/.gemini/",
        "/tool-results/",
    ];
    const NAMES: [&str; 4] = ["Makefile", "Dockerfile", "LICENSE", "Justfile"];
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').filter(|(stem, ending)| {
        !stem.is_empty() && (1..8).contains(&ending.len()) && stem.len() + 5 > ending.len()
    });
    let is_hidden = name.starts_with('.') && name.len() > 3;
    !OWN.iter().any(|own| path.contains(own))
        && !path.contains(['*', '$', ' ', '"', '\''])
        && (extension.is_some() || is_hidden || NAMES.contains(&name))
}

/// Whether a command line is whole, and says by itself what was run.
pub(super) fn is_whole_command(command: &str) -> bool {
    command.contains(' ')
        && !command.starts_with("cd ")
        && !command.ends_with(['\\', '…', '{', '(', '&', '|'])
        && !command.contains(['`', '\n'])
        && !command.contains("<<")
        && command.matches('"').count().is_multiple_of(2)
        && command.matches('\'').count().is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_names_and_no_loud_words_or_choices() {
        let of = |text: &str| terms(text).join(" ");
        assert_eq!(
            of("Use `sh -c` in src/app.py, e.g. with 128 KiB of keep/discard, ONLY HEAD"),
            "sh -c src/app.py 128"
        );
        assert_eq!(
            of("see https://example.org/a and refs/changes/x"),
            "refs/changes/x"
        );
    }

    #[test]
    fn a_gap_is_put_where_the_last_name_stood() {
        let (question, fact) =
            with_gap("5. **The remaining failures** are in `SerializationTests` only.")
                .expect("a gap");
        assert_eq!(
            (question.as_str(), fact.as_str()),
            (
                "The remaining failures are in `____` only.",
                "SerializationTests"
            )
        );
        assert_eq!(
            with_gap("Let me read the remaining tail of src/app.py now."),
            None
        );
        assert_eq!(
            with_gap("Should the export in src/app.py be changed now?"),
            None
        );
        assert_eq!(with_gap("Done with `x_y`."), None);
        assert_eq!(
            with_gap("48:   // If isView is false, always show the panel"),
            None
        );
        let (question, _) =
            with_gap("Whole cents as `int` would do, but every place that prints has to divide")
                .expect("a gap");
        assert_eq!(
            question,
            "Whole cents as `____` would do, but every place that prints has to divide"
        );
    }

    #[test]
    fn files_of_the_work_are_told_from_others() {
        for path in [
            "src/a.py",
            "/home/user/p/README.md",
            ".python-version",
            "x/Makefile",
        ] {
            assert!(is_project_file(path), "{path}");
        }
        for path in [
            "/private/tmp/x/b.output",
            "/home/user/repo",
            "f.verdict",
            "/home/user/.claude/p/j.jsonl",
            "src/*.rs",
        ] {
            assert!(!is_project_file(path), "{path}");
        }
        assert_eq!(short_path("/home/user/p/src/a.py"), "src/a.py");
        assert_eq!(short_path("src/a.py"), "src/a.py");
    }

    #[test]
    fn a_command_is_quoted_only_whole() {
        assert!(is_whole_command("pytest -q tests") && is_whole_command("git log --format=\"%h\""));
        for command in [
            "exec",
            "cd /repo",
            "git checkout a.py && \\",
            "gh pr create --body \"## Summary",
            "cat <<EOF",
        ] {
            assert!(!is_whole_command(command), "{command}");
        }
    }
}
