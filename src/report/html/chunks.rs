//! Chunks: long texts with their marks, compressed. The page decompresses a chunk when it shows the chunk's texts.
//!
//! The texts of many cells compress much better together than each alone, but with all cells in one chunk the page
//! would decompress everything to show one cell. So a chunk has the rows of some consecutive contexts.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter};

use super::input::{PageSession, ReadContext};
use crate::action::ActionKey;
use crate::probe::Probe;
use crate::results::{Row, RowSearch};
use base::redaction::redact_bytes;
use base::text::{escape_controls, is_shown_escaped};
use base::threads::each;
use lexical::facts::{FactFinder, History};
use sessions::transcript::{MappedFold, Message, Role, estimate_tokens};

/// An occurrence of a fact: its number (expected facts from 0 up, superseded facts from -1 down), start and length, in
/// UTF-16 code units as in JavaScript.
pub(super) type FactMark = (i64, usize, usize);

/// A probe by the names of its fixture and its own.
pub(super) type ProbeName<'a> = (&'a str, &'a str);

/// Finds the facts of a probe in texts.
#[derive(Debug)]
pub(super) struct FactMatcher(Vec<(i64, FactFinder)>);

impl FactMatcher {
    pub(super) fn new(probe: &Probe) -> FactMatcher {
        let expected = FactFinder::all(&probe.expected_facts).into_iter().zip(0..);
        let superseded = FactFinder::all(&probe.superseded_facts)
            .into_iter()
            .zip((i64::MIN..0).rev());
        let all = expected.chain(superseded);
        FactMatcher(all.map(|(finder, number)| (number, finder)).collect())
    }

    /// The finders of the expected facts, in order.
    pub(super) fn expected(&self) -> impl Iterator<Item = &FactFinder> {
        self.0
            .iter()
            .filter(|(number, _)| *number >= 0)
            .map(|(_, finder)| finder)
    }

    /// The occurrences in `text` as the page shows it, in order.
    pub(super) fn marks_in(&self, text: &str) -> Vec<FactMark> {
        self.marks(&FoldedText::new(&escape_controls(text)))
    }

    fn marks(&self, text: &FoldedText<'_>) -> Vec<FactMark> {
        let found = self.0.iter().flat_map(|(number, finder)| {
            finder
                .find(&text.folded)
                .into_iter()
                .map(move |range| (*number, range))
        });
        let mut marks: Vec<FactMark> = found
            .map(|(number, range)| (number, text.units_before(range.start), text.units_in(range)))
            .collect();
        marks.sort_by_key(|(number, start, length)| (*start, std::cmp::Reverse(*length), *number));
        marks
    }
}

/// A text with its folded form.
struct FoldedText<'t> {
    text: &'t str,
    folded: MappedFold,
}

impl<'t> FoldedText<'t> {
    fn new(text: &'t str) -> FoldedText<'t> {
        FoldedText {
            text,
            folded: MappedFold::new(text),
        }
    }

    fn units_before(&self, at: usize) -> usize {
        self.units_in(0..at)
    }

    fn units_in(&self, range: Range<usize>) -> usize {
        let text = self.text.get(range).unwrap_or("");
        if text.is_ascii() {
            text.len()
        } else {
            text.encode_utf16().count()
        }
    }
}

/// A context in its chunk.
#[derive(Debug, Serialize)]
struct MarkedContext<'t> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'t str>,
    /// Why there is no text: only its provider can read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<&'static str>,
    /// The occurrences of the facts of each probe.
    marks: Vec<(ProbeName<'t>, Vec<FactMark>)>,
}

/// The chunk of a context with the occurrences of these facts; `None` if it is not in the cache.
pub(super) fn chunk_context(
    read: &ReadContext<'_>,
    matchers: &BTreeMap<ProbeName<'_>, &FactMatcher>,
) -> Option<String> {
    read().map(|text| chunk(&marked(text.as_deref(), matchers)))
}

fn marked<'t>(
    text: Option<&'t str>,
    matchers: &BTreeMap<ProbeName<'t>, &FactMatcher>,
) -> MarkedContext<'t> {
    let shown = escape_controls(text.unwrap_or_default());
    let folded = FoldedText::new(&shown);
    let marks = matchers
        .iter()
        .map(|(probe, matcher)| (*probe, matcher.marks(&folded)));
    MarkedContext {
        text,
        absent: text.is_none().then_some("opaque"),
        marks: marks.filter(|(_, marks)| !marks.is_empty()).collect(),
    }
}

/// Higher levels make the page hardly smaller and much slower to write.
const COMPRESSION_LEVEL: u32 = 5;

/// JSON without the characters that are special in HTML or end a line in a script.
pub(super) fn safe_json(value: &impl Serialize) -> String {
    let json = String::from_utf8(json(value)).unwrap_or_else(|_| "null".to_owned());
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

/// A chunk: JSON, deflated, and in base64, which has no characters that are special in HTML.
pub(super) fn chunk(value: &impl Serialize) -> String {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(COMPRESSION_LEVEL));
    // Writing to a vector cannot fail.
    let compressed = encoder
        .write_all(&json(value))
        .and_then(|()| encoder.finish())
        .unwrap_or_default();
    STANDARD.encode(compressed)
}

/// JSON of texts in the form in which the page shows them: without API keys, and with control characters as visible
/// escapes.
fn json(value: &impl Serialize) -> Vec<u8> {
    let mut json = Vec::new();
    let written = value.serialize(&mut serde_json::Serializer::with_formatter(
        &mut json,
        VisibleControls,
    ));
    written.map_or_else(|_| b"null".to_vec(), |()| redact_bytes(&json).into_owned())
}

/// Writes control characters of strings as the text of their escapes.
struct VisibleControls;

impl VisibleControls {
    /// The escape of a character inside of a JSON string, where a backslash is written twice.
    fn write_escape(writer: &mut (impl Write + ?Sized), c: char) -> io::Result<()> {
        write!(writer, "\\{}", c.escape_default())
    }
}

impl Formatter for VisibleControls {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_shown_escaped(*c)) {
            let (before, after) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            VisibleControls::write_escape(writer, c)?;
            rest = after.get(c.len_utf8()..).unwrap_or_default();
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        match escape {
            CharEscape::AsciiControl(byte) => {
                VisibleControls::write_escape(writer, char::from(byte))
            }
            CharEscape::Backspace => VisibleControls::write_escape(writer, '\u{8}'),
            CharEscape::FormFeed => VisibleControls::write_escape(writer, '\u{c}'),
            CharEscape::CarriageReturn => VisibleControls::write_escape(writer, '\r'),
            CharEscape::Quote => writer.write_all(b"\\\""),
            CharEscape::ReverseSolidus => writer.write_all(b"\\\\"),
            CharEscape::Solidus => writer.write_all(b"\\/"),
            CharEscape::LineFeed => writer.write_all(b"\\n"),
            CharEscape::Tab => writer.write_all(b"\\t"),
        }
    }
}

/// Escapes text for elements and quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\u{2028}' | '\u{2029}' => safe.push(' '),
            c if is_shown_escaped(c) => safe.extend(c.escape_default()),
            c => safe.push(c),
        }
    }
    safe
}

/// How many characters of a message are shown.
const FIRST_WORDS: usize = 120;

#[derive(Serialize)]
struct SessionChunk<'s> {
    /// The role, the estimated number of tokens, and the first words.
    messages: Vec<(Role, u64, String)>,
    start: usize,
    points: &'s [usize],
    /// For each probe its point, its id, and for each expected fact the messages before the point that state it.
    facts: Vec<(u32, &'s str, Vec<Vec<usize>>)>,
}

/// The chunk of a session; `probes` are the point, the id and the facts of each probe.
pub(super) fn chunk_session(
    session: &PageSession<'_>,
    probes: &[(u32, &str, &FactMatcher)],
) -> String {
    let history = History::new(session.messages);
    let facts = probes.iter().map(|(point, probe, matcher)| {
        let messages = messages_with_facts(session, &history, *point, matcher);
        (*point, *probe, messages)
    });
    chunk(&SessionChunk {
        messages: session.messages.iter().map(shown).collect(),
        start: session.start,
        points: session.points,
        facts: facts.collect(),
    })
}

/// For each expected fact, the messages before a point that state it.
fn messages_with_facts(
    session: &PageSession<'_>,
    history: &History,
    point: u32,
    matcher: &FactMatcher,
) -> Vec<Vec<usize>> {
    let place = usize::try_from(point).unwrap_or_default().wrapping_sub(1);
    let end = session
        .points
        .get(place)
        .copied()
        .unwrap_or(session.messages.len());
    matcher
        .expected()
        .map(|fact| history.holders(fact, 0..end).collect())
        .collect()
}

fn shown(message: &Message) -> (Role, u64, String) {
    let text = message.countable_text();
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let mut words: String = line.chars().take(FIRST_WORDS).collect();
    if words.len() < line.len() {
        words.push('…');
    }
    (message.role, estimate_tokens(&text).0, words)
}

/// A chunk with fewer cells takes in the next context.
const FEWEST: usize = 128;
/// How many digits of a key are shown; the cache accepts any unique prefix.
const KEY_DIGITS: usize = 16;

/// The long texts of a cell.
#[derive(Debug, Serialize)]
struct CellText<'r> {
    answer: &'r str,
    marks: Vec<FactMark>,
    criteria: Vec<(&'r str, u8, &'r str)>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stale: &'r [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    invented: &'r [String],
    /// Absent if the answerer could not search.
    #[serde(skip_serializing_if = "Option::is_none")]
    searches: Option<Vec<SearchText<'r>>>,
    keys: [String; 3],
}

/// A search of a cell.
#[derive(Debug, Serialize)]
struct SearchText<'r> {
    query: &'r str,
    returned: &'r str,
    /// How many messages of the session it returned.
    messages: usize,
    marks: Vec<FactMark>,
}

impl<'r> SearchText<'r> {
    fn new(search: &'r RowSearch, matcher: Option<&FactMatcher>) -> SearchText<'r> {
        SearchText {
            query: &search.query,
            returned: &search.returned,
            messages: search.messages.len(),
            marks: matcher
                .map(|matcher| matcher.marks_in(&search.returned))
                .unwrap_or_default(),
        }
    }
}

impl<'r> CellText<'r> {
    fn new(row: &'r Row, matcher: Option<&FactMatcher>) -> CellText<'r> {
        let searches = row.open_book.as_ref().map(|open| open.searches.iter());
        CellText {
            answer: &row.answer,
            marks: matcher
                .map(|matcher| matcher.marks_in(&row.answer))
                .unwrap_or_default(),
            criteria: row
                .criteria
                .iter()
                .map(|c| (&*c.criterion.0, c.points(), c.reasoning.as_str()))
                .collect(),
            stale: &row.stale_facts,
            invented: &row.invented,
            searches: searches.map(|searches| {
                searches
                    .map(|search| SearchText::new(search, matcher))
                    .collect()
            }),
            keys: [&row.keys.compress, &row.keys.answer, &row.keys.judge].map(shown_key),
        }
    }
}

/// The beginning of a key.
fn shown_key(key: &ActionKey) -> String {
    key.to_string().chars().take(KEY_DIGITS).collect()
}

/// Chunks the texts of `rows` on all processors; `matchers` are parallel to them. Each chunk comes with its first cell.
pub(super) fn chunk_cells(rows: &[Row], matchers: &[Option<&FactMatcher>]) -> Vec<(usize, String)> {
    let groups = groups(rows);
    each(groups.len(), |at| {
        let cells = groups.get(at).cloned().unwrap_or_default();
        let matchers = matchers.get(cells.clone()).unwrap_or_default();
        let rows = rows.get(cells.clone()).unwrap_or_default();
        let texts = rows.iter().zip(matchers);
        let texts = texts.map(|(row, matcher)| CellText::new(row, *matcher));
        (cells.start, chunk(&texts.collect::<Vec<CellText<'_>>>()))
    })
}

/// Groups consecutive rows; those of a context stay together.
fn groups(rows: &[Row]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for context in rows.chunk_by(is_same_context) {
        let end = start + context.len();
        match groups.last_mut().filter(|group| group.len() < FEWEST) {
            Some(group) => group.end = end,
            None => groups.push(start..end),
        }
        start = end;
    }
    groups
}

fn is_same_context(one: &Row, other: &Row) -> bool {
    one.keys.compress == other.keys.compress
        && (one.point, one.run) == (other.point, other.run)
        && one.method == other.method
        && one.fixture == other.fixture
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn marks_count_utf16_units() {
        let probe: Probe = serde_json::from_str(
            r#"{"id":"p","type":"recall","question":"?","expected_facts":["port 8081","8081"],
                "superseded_facts":["8080"]}"#,
        )
        .unwrap();
        let marks = FactMatcher::new(&probe).marks(&FoldedText::new("🦀 Port\n8081, not 8080"));
        assert_eq!(marks, [(0, 3, 9), (1, 8, 4), (-1, 18, 4)]);
    }

    #[test]
    fn json_keeps_its_meaning_and_cannot_end_its_element() {
        let safe = safe_json(&"</script><!-- &amp; \u{2028}");
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        assert_eq!(
            serde_json::from_str::<String>(&safe).unwrap(),
            "</script><!-- &amp; \\u{2028}"
        );
    }

    #[test]
    fn compressed_json_is_read_back_unchanged() {
        let text = "上下文 ".repeat(1000);
        let compressed = chunk(&text);
        assert!(compressed.len() < 200, "{}", compressed.len());
        let compressed = STANDARD.decode(compressed).unwrap();
        let mut bytes = Vec::new();
        flate2::read::DeflateDecoder::new(compressed.as_slice())
            .read_to_end(&mut bytes)
            .unwrap();
        assert_eq!(serde_json::from_slice::<String>(&bytes).unwrap(), text);
    }

    #[test]
    fn control_characters_are_shown_and_all_else_keeps_its_meaning() {
        let read = |text: &str| serde_json::from_slice::<String>(&json(&text)).unwrap();
        assert_eq!(
            read("a\u{1b}]52\u{7}\u{9b}2J\u{202e}b\r\u{8}\u{c}"),
            r"a\u{1b}]52\u{7}\u{9b}2J\u{202e}b\r\u{8}\u{c}"
        );
        for plain in ["two\n\tlines", "\"\\/", "上下文 🦀 é", ""] {
            assert_eq!(read(plain), plain);
        }
        assert_eq!(escape("\u{9b}<"), r"\u{9b}&lt;");
    }

    #[test]
    fn escaped_text_holds_no_markup() {
        assert_eq!(escape("<b a='\"'>&"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;");
    }
}
