//! The parts of pages: sources without comments, the nonce of the policy, and whole pages without
//! a script.

use base::locale::Locale;

use super::chunks::escape;
use crate::action::{Digest, DigestBuilder};
use crate::report::document::{Block, Section};
use crate::report::styled::{TableCell, TextTable};

/// The style of all pages.
pub(super) const GROUND: &str = include_str!("../../../assets/ground.css");
const PLAIN: &str = include_str!("../../../assets/plain.css");

/// A whole page of sections, the first of which has the title of the page. It loads nothing and runs nothing.
pub(super) fn document(locale: Locale, title: &str, sections: &[Section]) -> String {
    let sections = sections.iter().enumerate().map(|(at, section)| {
        let heading = if at == 0 { "h1" } else { "h2" };
        let blocks: String = section.blocks.iter().map(markup).collect();
        format!(
            "<section><{heading}>{}</{heading}>\n{blocks}</section>\n",
            escape(&section.title)
        )
    });
    let body: String = sections.collect();
    let style = compact(&[GROUND, PLAIN]);
    let nonce = nonce(&[&style, &body]);
    let head = head(
        locale.pick("en", "zh-Hans"),
        &escape(title),
        &nonce,
        "",
        &style,
    );
    format!("{head}<body>\n<main>\n{body}</main>\n</body>\n</html>\n")
}

/// A block as markup.
fn markup(block: &Block) -> String {
    let list = |items: &[String]| {
        let items = items
            .iter()
            .map(|item| format!("<li>{}</li>\n", escape(item)));
        format!("<ul>\n{}</ul>\n", items.collect::<String>())
    };
    match block {
        Block::Sentence(_, text) => format!("<p>{}</p>\n", escape(text)),
        Block::List(items) => list(items),
        Block::Lines(title, items) => format!("<h3>{}</h3>\n{}", escape(title), list(items)),
        Block::Table(table) => table_markup(table),
        Block::Diff(title, lines, _) => format!(
            "<h3>{}</h3>\n<pre tabindex=\"0\">{}</pre>\n",
            escape(title),
            escape(&lines.join("\n"))
        ),
    }
}

fn table_markup(table: &TextTable) -> String {
    let row = |tag: &str, cells: Vec<String>| {
        let cells = cells.iter().map(|cell| format!("<{tag}>{cell}</{tag}>"));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let header = table.header.iter().map(|text| escape(text)).collect();
    let rows = table.rows.iter().map(|cells| {
        let cell = |cell: &TableCell| {
            let lines = cell.iter().map(|(_, line)| escape(line));
            lines.collect::<Vec<_>>().join("<br>")
        };
        row("td", cells.iter().map(cell).collect())
    });
    format!(
        "<div class=\"wide\"><table><thead>{}</thead><tbody>\n{}</tbody></table></div>\n",
        row("th", header),
        rows.collect::<String>()
    )
}

/// Sources without indentation and comments, which a page does not need. No string in them spans several lines.
pub(super) fn compact(sources: &[&str]) -> String {
    let lines = sources
        .iter()
        .flat_map(|source| source.lines())
        .map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !is_comment(line))
        .flat_map(|line| [line, "\n"])
        .collect()
}

fn is_comment(line: &str) -> bool {
    line.starts_with("//") || line.starts_with("/*") && line.ends_with("*/")
}

/// A nonce for the content security policy: a digest of the parts of the page, which no text in it can predict.
pub(super) fn nonce(parts: &[&str]) -> String {
    let mut digest = DigestBuilder::new("report.html");
    for part in parts {
        digest.field("part", Digest::hash(part).0);
    }
    digest.finish().hex().chars().take(32).collect()
}

/// The head of a page, including its style. `sources` are the directives of the policy that allow more than the style,
/// each with its end.
pub(super) fn head(language: &str, title: &str, nonce: &str, sources: &str, style: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; {sources}style-src 'nonce-{nonce}'; \
         img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style nonce=\"{nonce}\">\n{style}</style>\n</head>\n"
    )
}
