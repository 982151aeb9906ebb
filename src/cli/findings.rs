//! Findings about the files of a project: drawn at their places, or counted by kind.

use crate::cli::format::count;
use crate::cli::terminal::{Console, TextStyle, own_color};
use crate::pipeline::{Problem, Problems, Severity};

/// Lines of a short list: with those around it there are about eight.
const LINES: usize = 6;

/// Errors that are drawn at their places before they are counted by kind.
const DRAWN_ERRORS: usize = 5;

/// Draws a single finding or a few errors at their places; otherwise counts the findings by kind, on a few lines, with the
/// command that lists each.
pub(crate) fn render_some(problems: &Problems, console: &Console) -> String {
    let (all, errors) = (problems.0.len(), problems.errors());
    if all <= 1 || errors == all && errors <= DRAWN_ERRORS {
        return render(problems, console);
    }
    let kinds = kinds(&problems.0);
    let mut lines: Vec<String> = Vec::new();
    let mut rest = kinds.as_slice();
    while let Some(((first, alike), others)) = rest.split_first() {
        let shown = kind_lines(first, *alike, console);
        if lines.len() + shown.len() > LINES {
            break;
        }
        lines.extend(shown);
        rest = others;
    }
    if !rest.is_empty() {
        let findings: usize = rest.iter().map(|(_, alike)| alike + 1).sum();
        lines.push(format!(
            "and {} of {}",
            count(findings, "finding"),
            count(rest.len(), "other kind")
        ));
    }
    lines.push("each at its place: compeval check --all".to_owned());
    lines.join("\n")
}

/// The lines of a kind of findings: how many, what and where; for errors, a second line says what to do.
fn kind_lines(first: &Problem, alike: usize, console: &Console) -> Vec<String> {
    let (style, [one, many]) = match first.severity() {
        Severity::Error => (TextStyle::Bad, ["error", "errors"]),
        Severity::Warning => (TextStyle::Warning, ["warning", "warnings"]),
    };
    let label = match alike {
        0 => format!("{one}:"),
        _ => format!("{} {many}:", alike + 1),
    };
    let more = (alike > 0).then(|| format!("and {alike} like it"));
    let place = place_of(first)
        .into_iter()
        .chain(more)
        .collect::<Vec<_>>()
        .join(" ");
    let text = console.labelled(style, &label, first.message());

    match (first.severity(), first.advice()) {
        (Severity::Error, advice) if !place.is_empty() || advice.is_some() => {
            let below = join_parts([&place, advice.unwrap_or_default()]);
            vec![text, format!("  {}", console.paint(TextStyle::Dim, &below))]
        }
        _ => vec![join_parts([&text, &place])],
    }
}

fn join_parts(parts: [&str; 2]) -> String {
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}

/// The first finding of each kind and how many others there are, errors first, in the order in which each kind is first
/// seen. An error without a place names its file in its message, so each is a kind of its own.
fn kinds(problems: &[Problem]) -> Vec<(&Problem, usize)> {
    let mut kinds: Vec<(&Problem, usize)> = Vec::new();
    for severity in [Severity::Error, Severity::Warning] {
        for problem in problems
            .iter()
            .filter(|problem| problem.severity() == severity)
        {
            let is_alone = severity == Severity::Error && problem.position().is_none();
            let known = kinds.iter_mut().find(|(first, _)| {
                !is_alone && first.severity() == severity && pattern(first) == pattern(problem)
            });
            match known {
                Some((_, alike)) => *alike += 1,
                None => kinds.push((problem, 0)),
            }
        }
    }
    kinds
}

/// A message without what differs from one finding of a kind to the next: quotations, paths, numbers, excerpts.
fn pattern(problem: &Problem) -> String {
    let message = problem
        .message()
        .split(" in message ")
        .next()
        .unwrap_or_default();
    let quoted = message.split(['`', '"']).step_by(2);
    let words = quoted.flat_map(str::split_whitespace);
    words
        .filter(|word| !word.contains(|c: char| c.is_ascii_digit() || c == '/'))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Faults in files: what is wrong, the place in the file, what to do.
pub(crate) fn render(problems: &Problems, console: &Console) -> String {
    let mut lines = Vec::new();
    for problem in &problems.0 {
        let (style, label) = match problem.severity() {
            Severity::Error => (TextStyle::Bad, "error:"),
            Severity::Warning => (TextStyle::Warning, "warning:"),
        };
        lines.push(console.labelled_prose(style, label, problem));
        let excerpt = problem.excerpt(console.width(), console.colors);
        lines.extend(excerpt.map(|excerpt| own_color(&excerpt)));
        lines.extend(problem.advice().map(|advice| console.help_line(advice)));
    }
    lines.join("\n")
}

fn place_of(problem: &Problem) -> Option<String> {
    problem
        .position()
        .map(|(file, line, column)| format!("{file}:{line}:{column}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::Cli;
    use crate::pipeline::SourceFile;

    fn console() -> Console {
        let words = ["compeval", "--color", "never", "check"];
        Console::new(&<Cli as clap::Parser>::parse_from(words).common)
    }

    #[test]
    fn a_few_errors_are_drawn_at_their_places() {
        let error = |path| Problem::error("odd").at(&SourceFile::new(path, "[1,\n22]"), 1..2);
        let all = Problems(["a", "b"].map(error).into());
        insta::assert_snapshot!(render_some(&all, &console()), @r#"
    error: odd
       ╭─[a:1:2]
     1 │ [1,
       ·  ─
     2 │ 22]
       ╰────
    error: odd
       ╭─[b:1:2]
     1 │ [1,
       ·  ─
     2 │ 22]
       ╰────
    "#);
    }

    #[test]
    fn several_kinds_are_counted() {
        let file = SourceFile::new("p", "[1,\n22]");
        let fact = |name: &str| {
            Problem::error(format!("probe `{name}`: fact \"{name}\" is short")).help("longer")
        };
        let all = Problems(vec![
            Problem::warning("fixtures/a.json has 500 KB"),
            fact("p1").at(&file, 1..2),
            fact("p2").at(&file, 4..6),
            Problem::warning("fixtures/b.json has 600 KB"),
        ]);
        insta::assert_snapshot!(render_some(&all, &console()), @r#"
        2 errors: probe `p1`: fact "p1" is short
          p:1:2 and 1 like it · longer
        2 warnings: fixtures/a.json has 500 KB · and 1 like it
        each at its place: compeval check --all
        "#);
    }
}
