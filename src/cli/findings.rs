//! Findings about the files of a project: drawn at their places, or counted by kind.

use crate::cli::format::count;
use crate::cli::terminal::{Console, TextStyle, own_color};
use crate::pipeline::{Problem, Problems, Severity};

/// Lines of a short list: with those around it there are about eight.
const LINES: usize = 6;

/// Errors that are drawn at their places before they are counted by kind.
const DRAWN_ERRORS: usize = 5;

/// Draws the first finding of a single kind, with the places of the others; counts the findings of several kinds.
pub(crate) fn render_kinds(problems: &Problems, console: &Console) -> String {
    let kinds = kinds(&problems.0);
    match kinds.as_slice() {
        [] => String::new(),
        [(first, alike)] => {
            let mut text = render(&Problems(vec![(*first).clone()]), console);
            if !alike.is_empty() {
                text.push_str(&format!(
                    "\n  and {} like it: {}",
                    alike.len(),
                    places(alike)
                ));
            }
            text
        }
        _ => {
            let mut lines: Vec<String> = Vec::new();
            let mut rest = kinds.as_slice();
            while let Some(((first, alike), others)) = rest.split_first() {
                let shown = kind_lines(first, alike.len(), console);
                if lines.len() + shown.len() > LINES {
                    break;
                }
                lines.extend(shown);
                rest = others;
            }
            if !rest.is_empty() {
                let findings: usize = rest.iter().map(|(_, alike)| alike.len() + 1).sum();
                lines.push(format!(
                    "and {} of {}",
                    count(findings, "finding"),
                    count(rest.len(), "other kind")
                ));
            }
            lines.join("\n")
        }
    }
}

/// Draws a few errors at their places; otherwise counts the findings by kind, with the command that lists each.
pub(crate) fn render_some(problems: &Problems, console: &Console) -> String {
    let only_errors = problems.errors() == problems.0.len();
    if only_errors && problems.0.len() <= DRAWN_ERRORS {
        return render(problems, console);
    }
    let text = render_kinds(problems, console);
    if problems.0.len() > 1 {
        format!("{text}\n{}", every_finding())
    } else {
        text
    }
}

/// The command that lists each finding.
pub(crate) fn every_finding() -> &'static str {
    "each at its place: compeval check --all"
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

/// Findings by kind, errors first, in the order in which each kind is first seen. An error without a place names its
/// file in its message, so each is a kind of its own.
fn kinds(problems: &[Problem]) -> Vec<(&Problem, Vec<&Problem>)> {
    let mut kinds: Vec<(&Problem, Vec<&Problem>)> = Vec::new();
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
                Some((_, alike)) => alike.push(problem),
                None => kinds.push((problem, Vec::new())),
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
    for (problem, alike) in group_repeated(&problems.0) {
        let (style, label) = match problem.severity() {
            Severity::Error => (TextStyle::Bad, "error:"),
            Severity::Warning => (TextStyle::Warning, "warning:"),
        };
        lines.push(console.labelled_prose(style, label, problem));
        let excerpt = problem.excerpt(console.width(), console.colors);
        lines.extend(excerpt.map(|excerpt| own_color(&excerpt)));
        lines.extend(problem.advice().map(|advice| console.help_line(advice)));
        if !alike.is_empty() {
            lines.push(format!("also: {}", places(&alike)));
        }
    }
    lines.join("\n")
}

/// Groups warnings with equal text: the first is rendered, the others are listed by position.
fn group_repeated(problems: &[Problem]) -> Vec<(&Problem, Vec<&Problem>)> {
    let mut groups: Vec<(&Problem, Vec<&Problem>)> = Vec::new();
    for problem in problems {
        let may_repeat = problem.severity() == Severity::Warning && problem.position().is_some();
        let known = groups.iter_mut().find(|(first, _)| {
            (first.severity(), first.message(), first.advice())
                == (problem.severity(), problem.message(), problem.advice())
        });
        match known.filter(|_| may_repeat) {
            Some((_, alike)) => alike.push(problem),
            None => groups.push((problem, Vec::new())),
        }
    }
    groups
}

/// The places of problems; only the first if there are many.
fn places(problems: &[&Problem]) -> String {
    const SHOWN: usize = 4;
    let mut places: Vec<String> = problems
        .iter()
        .filter_map(|problem| place_of(problem))
        .take(SHOWN)
        .collect();
    if let Some(more @ 1..) = problems.len().checked_sub(SHOWN) {
        places.push(format!("and {more} more"));
    }
    places.join(", ")
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

    #[test]
    fn a_warning_that_repeats_is_drawn_once_with_its_places_and_an_error_each_time() {
        let file = |path: &str| SourceFile::new(path, "[1,\n22]");
        let warning = |path| {
            Problem::warning("few")
                .help("ask more")
                .at(&file(path), 4..6)
        };
        let error = |path| Problem::error("odd").at(&file(path), 1..2);
        let mut all: Vec<Problem> = ["a", "b", "c", "d", "e", "f", "g"].map(warning).into();
        all.extend(["a", "b"].map(error));
        let common =
            <Cli as clap::Parser>::parse_from(["compeval", "--color", "never", "check"]).common;
        insta::assert_snapshot!(render(&Problems(all), &Console::new(&common)), @r#"
    warning: few
       ╭─[a:2:1]
     1 │ [1,
     2 │ 22]
       · ──
       ╰────
    help: ask more
    also: b:2:1, c:2:1, d:2:1, e:2:1, and 2 more
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
        let common =
            <Cli as clap::Parser>::parse_from(["compeval", "--color", "never", "check"]).common;
        insta::assert_snapshot!(render_kinds(&all, &Console::new(&common)), @r#"
        2 errors: probe `p1`: fact "p1" is short
          p:1:2 and 1 like it · longer
        2 warnings: fixtures/a.json has 500 KB · and 1 like it
        "#);
    }
}
