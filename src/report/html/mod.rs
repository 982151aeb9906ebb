//! `report.html`, one file that needs no network; and whole pages without a script.
//!
//! The page has its style, script and data in it. Texts of transcripts and models are data: they are
//! inserted as escaped or compressed JSON, the script shows them only as text, and a content security policy allows
//! only the script and the style of this build. The nonce of the policy is a digest of the page's content, so no text
//! on the page can predict it, and equal input gives equal bytes. The script computes only plain means of filtered
//! cells; every level, interval and verdict comes from the summary.

mod chunks;
mod data;
mod input;

pub use input::{ContextKey, PageInput, PageMethod, PageSession, ReadContext, page_methods};

use super::document::{Block, Section};
use super::styled::{TableCell, TextTable};
use crate::action::{Digest, DigestBuilder};
use base::locale::Locale;
pub(super) use chunks::escape;

const STYLES: [&str; 4] = [
    GROUND,
    include_str!("../../../assets/report/style.css"),
    include_str!("../../../assets/report/charts.css"),
    include_str!("../../../assets/report/cells.css"),
];
/// The shapes of the marks of methods, as paths of radius 1.
const MARKS: &str = include_str!("../../../assets/marks.json");
/// In order of dependency.
const SCRIPTS: [&str; 14] = [
    "const SHAPES =",
    MARKS,
    ";",
    include_str!("../../../assets/report/dom.js"),
    include_str!("../../../assets/report/address.js"),
    include_str!("../../../assets/report/data.js"),
    include_str!("../../../assets/report/marks.js"),
    include_str!("../../../assets/report/sections.js"),
    include_str!("../../../assets/report/list.js"),
    include_str!("../../../assets/report/matrix.js"),
    include_str!("../../../assets/report/diff.js"),
    include_str!("../../../assets/report/session.js"),
    include_str!("../../../assets/report/cell.js"),
    include_str!("../../../assets/report/app.js"),
];

fn translation(locale: Locale) -> &'static str {
    locale.pick(
        include_str!("../../../assets/report/texts.en.json"),
        include_str!("../../../assets/report/texts.zh.json"),
    )
}

/// The page.
pub fn render(input: &PageInput<'_>) -> String {
    let (style, script) = (
        compact(&STYLES),
        format!("'use strict';\n(() => {{\n{}}})();", compact(&SCRIPTS)),
    );
    let data = data::elements(input);
    let texts = format!(
        "<script type=\"application/json\" id=\"texts\">{}</script>",
        translation(input.locale)
    );
    let nonce = nonce(&[&style, &script, &texts, &data]);
    let (language, title, no_script) = input.locale.pick(
        (
            "en",
            "compeval report",
            "This page needs JavaScript. report.md in the same folder has the figures.",
        ),
        (
            "zh-Hans",
            "compeval 报告",
            "本页需要 JavaScript。同一文件夹中的 report.md 有同样的数字。",
        ),
    );
    let title = format!("{} · {title}", escape(&input.label));
    let sources = format!("script-src 'nonce-{nonce}'; ");
    let head = head(language, &title, &nonce, &sources, &style);
    format!(
        "{head}<body>\n<noscript><p class=\"no-script\">{no_script}</p></noscript>\n<header id=\"masthead\"></header>\n\
         <nav id=\"bar\"></nav>\n<main id=\"main\"></main>\n<dialog id=\"drawer\"></dialog>\n{texts}\n{data}\
         <script nonce=\"{nonce}\">\n{script}\n</script>\n</body>\n</html>\n"
    )
}

/// The style of all pages.
const GROUND: &str = include_str!("../../../assets/ground.css");
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
fn compact(sources: &[&str]) -> String {
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
fn nonce(parts: &[&str]) -> String {
    let mut digest = DigestBuilder::new("report.html");
    for part in parts {
        digest.field("part", Digest::hash(part).0);
    }
    digest.finish().hex().chars().take(32).collect()
}

/// The head of a page, including its style. `sources` are the directives of the policy that allow more than the style,
/// each with its end.
fn head(language: &str, title: &str, nonce: &str, sources: &str, style: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; {sources}style-src 'nonce-{nonce}'; \
         img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style nonce=\"{nonce}\">\n{style}</style>\n</head>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn both_languages_have_the_same_texts() {
        let read =
            |locale| serde_json::from_str::<BTreeMap<String, String>>(translation(locale)).unwrap();
        let (english, chinese) = (read(Locale::En), read(Locale::Zh));
        assert_eq!(
            english.keys().collect::<Vec<_>>(),
            chinese.keys().collect::<Vec<_>>()
        );
        assert!(
            !translation(Locale::En).contains(['<', '>', '&'])
                && !translation(Locale::Zh).contains(['<', '>', '&'])
        );
    }

    #[test]
    fn every_text_that_the_script_uses_exists() {
        let known: BTreeMap<String, String> =
            serde_json::from_str(translation(Locale::En)).unwrap();
        let script = SCRIPTS.concat();
        let mut used = 0;
        for (at, call) in script.match_indices("t('") {
            let is_call = !script[..at].ends_with(|c: char| c.is_alphanumeric() || c == '.');
            let key = script[at + call.len()..].split('\'').next().unwrap_or("");
            assert!(!is_call || known.contains_key(key), "no text for {key}");
            used += u32::from(is_call);
        }
        assert!(used > 80, "{used}");
    }

    #[test]
    fn scripts_cannot_end_their_element_and_show_text_as_text() {
        let script = SCRIPTS.concat();
        for forbidden in [
            "</script",
            "<!--",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
        ] {
            assert!(!script.contains(forbidden), "{forbidden}");
        }
    }
}
