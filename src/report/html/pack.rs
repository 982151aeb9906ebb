//! Bytes of the page: JSON that cannot end its element, and texts packed small.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;

use crate::action::{Digest, DigestBuilder};

/// How hard to squeeze: past this the page gets hardly smaller and much slower to write.
const LEVEL: u32 = 5;

/// JSON with every character escaped that means something to HTML, or ends a line in a script.
pub(super) fn safe_json(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    let mut safe = String::with_capacity(json.len() + json.len() / 16);
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                safe.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => safe.push(c),
        }
    }
    safe
}

/// Where packs are kept from one page to the next: to squeeze them is most of the work.
pub trait PackShelf {
    /// The pack of that name, if it was kept.
    fn find(&self, name: &Digest) -> Option<String>;
    /// Keeps a pack.
    fn keep(&self, name: Digest, pack: &str);
}

/// No shelf: every pack is made anew.
impl PackShelf for () {
    fn find(&self, _: &Digest) -> Option<String> {
        None
    }

    fn keep(&self, _: Digest, _: &str) {}
}

/// A pack: JSON deflated and in base64, so that nothing in it means anything to HTML.
pub(super) fn pack(value: &impl Serialize, shelf: &dyn PackShelf) -> String {
    let json = serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec());
    let name = DigestBuilder::new("report pack v1").field("json", Digest::of(&json).0).finish();
    shelf.find(&name).unwrap_or_else(|| {
        let pack = squeezed(&json);
        shelf.keep(name, &pack);
        pack
    })
}

fn squeezed(json: &[u8]) -> String {
    let mut encoder = DeflateEncoder::new(Vec::with_capacity(json.len() / 4), Compression::new(LEVEL));
    // a vector takes all that is written to it
    let packed = encoder.write_all(json).and_then(|()| encoder.finish()).unwrap_or_default();
    STANDARD.encode(packed)
}

/// Text as HTML shows it, in elements and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\u{2028}' | '\u{2029}' => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read;
    use std::sync::Mutex;

    #[test]
    fn json_keeps_its_meaning_and_cannot_end_its_element() {
        let text = "</script><!-- &amp; \u{2028}";
        let safe = safe_json(&text);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
    }

    #[test]
    fn packed_json_comes_back_whole() {
        let text = "上下文 ".repeat(1000);
        let packed = pack(&text, &());
        assert!(packed.len() < 200, "{}", packed.len());
        let packed = STANDARD.decode(packed).unwrap();
        let mut bytes = Vec::new();
        flate2::read::DeflateDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        assert_eq!(serde_json::from_slice::<String>(&bytes).unwrap(), text);
    }

    #[test]
    fn a_pack_that_was_kept_is_not_made_again() {
        struct Shelf(Mutex<BTreeMap<Digest, String>>);
        impl PackShelf for Shelf {
            fn find(&self, name: &Digest) -> Option<String> {
                self.0.lock().unwrap().get(name).cloned()
            }
            fn keep(&self, name: Digest, _: &str) {
                self.0.lock().unwrap().insert(name, "kept".to_owned());
            }
        }
        let shelf = Shelf(Mutex::default());
        assert_ne!(pack(&"a", &shelf), "kept");
        assert_eq!(pack(&"a", &shelf), "kept");
        assert_ne!(pack(&"b", &shelf), "kept");
    }

    #[test]
    fn escaped_text_holds_no_markup() {
        assert_eq!(escape("<b a='\"'>&"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;");
    }
}
