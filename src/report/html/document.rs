//! Pages without a script: a head, the shared style, and a body that is made here.

use base::locale::Locale;

use super::chunks::escape;
use super::template::{compact, head, nonce};

/// The style that all pages share.
pub(super) const GROUND: &str = include_str!("../../../assets/ground.css");
const PLAIN: &str = include_str!("../../../assets/plain.css");

/// A whole page around `body`, which is markup; `title` is text. It loads nothing and runs nothing.
pub(in crate::report) fn document(locale: Locale, title: &str, body: &str) -> String {
    let style = compact(&[GROUND, PLAIN]);
    let nonce = nonce(&[&style, body]);
    let head = head(locale.pick("en", "zh-Hans"), &escape(title), &nonce, "", &style);
    format!("{head}<body>\n<main>\n{body}</main>\n</body>\n</html>\n")
}
