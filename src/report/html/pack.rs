//! Bytes of the page: JSON that cannot end its element, and texts packed small.

use std::io::Write;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;

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

/// Packs JSON: deflated and in base64, so that nothing in it means anything to HTML. It is most of the work on a page
/// and done on a thread of its own, while the next pack is put together; no more than one waits in memory.
pub(super) struct Packer {
    waiting: SyncSender<Vec<u8>>,
    packs: JoinHandle<Vec<String>>,
    count: usize,
}

impl Packer {
    pub(super) fn new() -> Packer {
        let (waiting, taken) = sync_channel::<Vec<u8>>(1);
        let packs = std::thread::spawn(move || taken.iter().map(|json| squeezed(&json)).collect());
        Packer { waiting, packs, count: 0 }
    }

    /// How many were pushed.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn push(&mut self, value: &impl Serialize) {
        // if the thread is gone it has panicked, which is passed on in the end
        let _ = self.waiting.send(serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec()));
        self.count += 1;
    }

    /// The packs, in the order in which they were pushed.
    pub(super) fn finish(self) -> Vec<String> {
        drop(self.waiting);
        self.packs.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
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
    use std::io::Read;

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
        let mut packer = Packer::new();
        packer.push(&text);
        let packed = packer.finish().remove(0);
        assert!(packed.len() < 200, "{}", packed.len());
        let packed = STANDARD.decode(packed).unwrap();
        let mut bytes = Vec::new();
        flate2::read::DeflateDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        assert_eq!(serde_json::from_slice::<String>(&bytes).unwrap(), text);
    }

    #[test]
    fn escaped_text_holds_no_markup() {
        assert_eq!(escape("<b a='\"'>&"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;");
    }
}
