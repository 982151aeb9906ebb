//! Pages without a script: a head, the shared style, and a body that is made here.

use base::locale::Locale;

use super::chunks::escape;
use super::template::{compact, nonce};

/// The style that all pages share.
pub(super) const GROUND: &str = include_str!("../../../assets/ground.css");
const PLAIN: &str = include_str!("../../../assets/plain.css");

/// A whole page around `body`, which is markup; `title` is text. It loads nothing and runs nothing.
pub(in crate::report) fn document(locale: Locale, title: &str, body: &str) -> String {
    let style = compact(&[GROUND, PLAIN]);
    let nonce = nonce(&[&style, body]);
    let (language, title) = (locale.pick("en", "zh-Hans"), escape(title));
    format!(
        "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'nonce-{nonce}'; img-src data:; \
         base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n\
         <style nonce=\"{nonce}\">\n{style}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}
