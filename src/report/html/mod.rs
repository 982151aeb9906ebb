//! `report.html`: one file that needs no network.
//!
//! The page has its style, script and data in it. Texts of transcripts and models are data: they are
//! inserted as escaped or compressed JSON, the script shows them only as text, and a content security policy allows
//! only the script and the style of this build. The nonce of the policy is a digest of the page's content, so no text
//! on the page can predict it, and equal input gives equal bytes. The script computes only plain means of filtered
//! cells; every level, interval and verdict comes from the summary.

mod chunks;
mod data;
mod document;
mod input;
mod observed;

pub use input::{ContextKey, PageInput, PageMethod, PageSession, ReadContext, page_methods};

use base::locale::Locale;
pub(super) use chunks::escape;
use document::{GROUND, compact, head, nonce};
pub use observed::{compaction_columns, compaction_row, observed_page};

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
