//! `report.html`: one file, no network, to look at.
//!
//! The page is a template with style, script and data put in. Texts of transcripts and models are data: they go in as
//! escaped or packed JSON, the script shows them as text alone, and a content security policy lets nothing run but
//! the script and style of this build. The policy's nonce is a digest of all that the page holds, so no text in it
//! can name it beforehand, and the same input gives the same bytes. Deliberately absent: reckoning beyond plain means
//! of what the reader filters; every level, interval and verdict comes from the summary.

mod columns;
mod data;
mod gather;
mod input;
mod pack;
mod texts;

pub use input::{
    Anchor, ContextPlace, ContextText, CostLine, FailureLine, MethodLine, ModelLine, PageContext, PageInput, WholeRows,
};
pub use pack::PackShelf;

use crate::action::{Digest, DigestBuilder};
use crate::locale::Locale;
use crate::results::RowError;
use pack::escape;

const TEMPLATE: &str = include_str!("../../assets/report/template.html");
const STYLES: [&str; 3] = [
    include_str!("../../assets/report/style.css"),
    include_str!("../../assets/report/charts.css"),
    include_str!("../../assets/report/cells.css"),
];
/// In the order in which they build on each other.
const SCRIPTS: [&str; 10] = [
    include_str!("../../assets/report/dom.js"),
    include_str!("../../assets/report/data.js"),
    include_str!("../../assets/report/marks.js"),
    include_str!("../../assets/report/scores.js"),
    include_str!("../../assets/report/plots.js"),
    include_str!("../../assets/report/facts.js"),
    include_str!("../../assets/report/list.js"),
    include_str!("../../assets/report/diff.js"),
    include_str!("../../assets/report/cell.js"),
    include_str!("../../assets/report/app.js"),
];

fn words(locale: Locale) -> &'static str {
    match locale {
        Locale::En => include_str!("../../assets/report/words.en.json"),
        Locale::Zh => include_str!("../../assets/report/words.zh.json"),
    }
}

/// Writes the page.
///
/// # Errors
/// A row that cannot be read whole.
pub fn render(input: &PageInput<'_>) -> Result<String, RowError> {
    let (style, script) = (STYLES.concat(), format!("'use strict';\n(() => {{\n{}\n}})();", SCRIPTS.concat()));
    let data = data::elements(input)?;
    let words = format!("<script type=\"application/json\" id=\"words\">{}</script>", words(input.locale));
    let nonce = nonce(&[&style, &script, &words, &data]);
    let (language, title, plain) = match input.locale {
        Locale::En => ("en", "compeval report", "This page needs JavaScript. report.md beside it has the figures."),
        Locale::Zh => ("zh-Hans", "compeval 报告", "本页需要 JavaScript。同一文件夹中的 report.md 有同样的数字。"),
    };
    let title = format!("{} · {title}", escape(input.label));
    let page = fill(
        TEMPLATE,
        &[
            ("language", language),
            ("title", &title),
            ("nonce", &nonce),
            ("plain", plain),
            ("style", &style),
            ("words", &words),
            ("data", &data),
            ("script", &script),
        ],
    );
    Ok(page)
}

fn nonce(parts: &[&str]) -> String {
    let mut digest = DigestBuilder::new("report.html");
    for part in parts {
        digest.field("part", Digest::of(part).0);
    }
    digest.finish().hex().chars().take(32).collect()
}

/// Puts `values` in the places `{{name}}` of the template, once: what was put in is not looked at again.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut page = String::with_capacity(template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        page.push_str(before);
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        page.push_str(values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value));
        rest = after;
    }
    page.push_str(rest);
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_is_put_in_is_not_filled_again() {
        assert_eq!(fill("a{{x}}b{{y}}c", &[("x", "{{y}}"), ("y", "2")]), "a{{y}}b2c");
    }

    #[test]
    fn both_languages_have_the_same_words() {
        let read = |locale| serde_json::from_str::<BTreeMap<String, String>>(words(locale)).unwrap();
        let (english, chinese) = (read(Locale::En), read(Locale::Zh));
        assert_eq!(english.keys().collect::<Vec<_>>(), chinese.keys().collect::<Vec<_>>());
        assert!(!words(Locale::En).contains(['<', '>', '&']) && !words(Locale::Zh).contains(['<', '>', '&']));
    }

    #[test]
    fn every_word_that_the_script_asks_for_is_there() {
        let known: BTreeMap<String, String> = serde_json::from_str(words(Locale::En)).unwrap();
        let script = SCRIPTS.concat();
        let mut asked = 0;
        for (at, call) in script.match_indices("t('") {
            let is_call = !script[..at].ends_with(|c: char| c.is_alphanumeric() || c == '.');
            let key = script[at + call.len()..].split('\'').next().unwrap_or("");
            assert!(!is_call || known.contains_key(key), "no word for {key}");
            asked += u32::from(is_call);
        }
        assert!(asked > 100, "{asked}");
    }

    #[test]
    fn scripts_cannot_end_their_element_and_show_text_as_text() {
        let script = SCRIPTS.concat();
        for forbidden in ["</script", "<!--", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
        {
            assert!(!script.contains(forbidden), "{forbidden}");
        }
    }
}
