//! A page that shows the report of one result set, and can switch to the reports of the others.

use std::fmt::Write as _;

use base::locale::Locale;

use super::chunks::escape;
use super::document::{GROUND, compact, fill, head, nonce};
use crate::report::numbers::short_time;

const TEMPLATE: &str = include_str!("../../../assets/sets.html");
const STYLE: &str = include_str!("../../../assets/sets.css");

/// A result set that can be chosen.
pub struct SetLink {
    pub label: String,
    /// When its run began, RFC 3339.
    pub started: String,
    /// The address of its page, relative to this one.
    pub page: String,
}

/// The page; `chosen` is the label of the set that it shows first.
pub fn sets_page(locale: Locale, sets: &[SetLink], chosen: &str) -> String {
    let mut options = String::new();
    for set in sets {
        let selected = if set.label == chosen { " selected" } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(
            options,
            "<option value=\"{}\"{selected}>{} · {}</option>",
            escape(&set.page),
            escape(&set.label),
            escape(&short_time(&set.started))
        );
    }
    let page = sets
        .iter()
        .find(|set| set.label == chosen)
        .map_or("", |set| set.page.as_str());
    let (language, title, choose, alone, frame) = locale.pick(
        (
            "en",
            "compeval: result sets",
            "Result set",
            "open alone",
            "Report",
        ),
        ("zh-Hans", "compeval：结果集", "结果集", "单独打开", "报告"),
    );
    let style = compact(&[GROUND, STYLE]);
    let nonce = nonce(&[TEMPLATE, &style, &options, page]);
    let sources = format!("script-src 'nonce-{nonce}'; frame-src 'self' file:; ");
    let values: [(&str, &str); 7] = [
        ("head", &head(language, title, &nonce, &sources, &style)),
        ("nonce", &nonce),
        ("choose", choose),
        ("options", &options),
        ("page", &escape(page)),
        ("alone", alone),
        ("frame", frame),
    ];
    fill(TEMPLATE, &values)
}
