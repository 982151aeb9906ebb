//! Facts in texts: literal matching that ignores typography and never matches inside a word, a number or a path.
//!
//! A fact occurs in a text if one of its spellings does. At neither end of a match may the text go on with the same
//! word, number or version: "5" does not occur in "15", "-5" or "5.1", nor "1.2" in "1.2.3" or "1.2-beta".
//! Scripts without spaces between words have no such ends; there a spelling needs at least two characters. Between
//! letters a hyphen and a space are the same.
//!
//! A path is found whole, and also by its last parts (down to the file name) if no other path of the transcript ends in
//! them: `mod.rs` says nothing in a crate with ten of them. Without a transcript a path is only found whole.

use std::ops::Range;

use memchr::memmem;

use super::Fact;
use super::names::{
    TranscriptPaths, ends_in, goes_on_after, goes_on_before, is_version, normal_path,
};
use base::text::around;
use base::words::{is_path_char, is_unspaced, is_word};
use sessions::transcript::{MappedFold, TypographyRules, fold_by, numeral, value_of_numeral};

/// A fact prepared to be looked for in many texts.
#[derive(Clone, Debug)]
pub struct FactFinder {
    needles: Vec<Needle>,
}

#[derive(Clone, Debug)]
enum Needle {
    Text(TextNeedle),
    Path(PathNeedle),
    Hash(HashNeedle),
}

#[derive(Clone, Debug)]
struct TextNeedle {
    text: String,
    /// The byte ranges of the parts that must match exactly. Between two of them is a hyphen or a space between letters;
    /// either matches.
    fixed: Vec<Range<usize>>,
    /// The index of the longest part, which is searched for.
    anchor: usize,
}

/// A path that ends in a file name.
#[derive(Clone, Debug)]
struct PathNeedle {
    whole: String,
    /// Where its file name begins.
    name: usize,
    /// Where the shortest ending begins that names this file alone.
    shortest: usize,
}

impl FactFinder {
    /// Folds the spellings of `fact`. A path is only found whole.
    pub fn new(fact: &Fact) -> FactFinder {
        FactFinder::with_paths(fact, None)
    }

    /// Folds the spellings of `fact`; a path is also found by an ending that no other of `paths` has.
    pub fn within(fact: &Fact, paths: &TranscriptPaths) -> FactFinder {
        FactFinder::with_paths(fact, Some(paths))
    }

    /// The finders of all of `facts`, in their order.
    pub fn all(facts: &[Fact]) -> Vec<FactFinder> {
        facts.iter().map(FactFinder::new).collect()
    }

    /// The finders of all of `facts` among `paths`, in their order.
    pub fn all_within(facts: &[Fact], paths: &TranscriptPaths) -> Vec<FactFinder> {
        facts
            .iter()
            .map(|fact| FactFinder::within(fact, paths))
            .collect()
    }

    fn with_paths(fact: &Fact, paths: Option<&TranscriptPaths>) -> FactFinder {
        let mut needles = Vec::new();
        for spelling in &fact.spellings {
            let mut forms: Vec<String> = Vec::new();
            let complete = fold_by(spelling, TypographyRules::ALL);
            if complete == fold_by(spelling, TypographyRules::NONE) {
                forms.push(complete);
            } else {
                for form in TypographyRules::subsets().map(|rules| fold_by(spelling, rules)) {
                    if !forms.contains(&form) {
                        forms.push(form);
                    }
                }
            }
            forms.extend(forms.iter().find_map(|form| with_digits(form)));
            forms.extend(forms.first().and_then(|form| without_quotes(form)));
            forms.extend(
                forms
                    .first()
                    .filter(|form| form.contains(", "))
                    .map(|form| form.replace(", ", ",")),
            );
            forms.extend(forms.first().and_then(|form| without_last_slash(form)));
            needles.extend(
                forms
                    .into_iter()
                    .filter_map(|form| Needle::new(form, paths)),
            );
        }
        FactFinder { needles }
    }

    /// Whether the fact occurs in `folded`, a text made by [`sessions::transcript::fold`].
    pub fn occurs_in(&self, folded: &str) -> bool {
        let mut needles = self.needles.iter();
        needles.any(|needle| needle.matches(folded).next().is_some())
    }

    /// Where it occurs in `folded`: byte ranges in rising order, none inside another.
    pub fn ranges(&self, folded: &str) -> Vec<Range<usize>> {
        let needles = self.needles.iter();
        let mut all: Vec<Range<usize>> = needles.flat_map(|one| one.matches(folded)).collect();
        all.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        let mut outer: Vec<Range<usize>> = Vec::new();
        for range in all {
            if outer.last().is_none_or(|last| range.end > last.end) {
                outer.push(range);
            }
        }
        outer
    }

    /// Where it occurs in the original of `text`: byte ranges in rising order.
    pub fn find(&self, text: &MappedFold) -> Vec<Range<usize>> {
        self.ranges(text.folded())
            .into_iter()
            .map(|range| text.original(range))
            .collect()
    }

    /// The number of characters of the shortest spelling; those of unspaced scripts count double because they say more. A
    /// short fact occurs in many texts by chance. 0 is a fact that is never found.
    pub fn shortest(&self) -> usize {
        let texts = self.needles.iter().map(Needle::text);
        texts
            .map(|text| text.chars().map(|c| 1 + usize::from(is_unspaced(c))).sum())
            .min()
            .unwrap_or(0)
    }

    /// Whether it is a number of one or two digits and nothing else, in every spelling.
    pub fn is_short_number(&self) -> bool {
        let mut texts = self.needles.iter().map(Needle::text);
        !self.needles.is_empty()
            && texts.all(|text| text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

/// A spelling that ends in a Chinese numeral, with digits in its place: in a text, where a measure word follows, the numeral
/// is folded to digits.
fn with_digits(form: &str) -> Option<String> {
    let head = form.trim_end_matches(|c| numeral(c).is_some());
    let run = form.get(head.len()..)?;
    let value = (run.chars().count() > 1 || !head.is_empty()).then(|| value_of_numeral(run))??;
    Some(format!("{head}{value}"))
}

/// A spelling with quoted words, without the quotes: texts set such words in backticks, which folding removes.
fn without_quotes(form: &str) -> Option<String> {
    let mut bare = form.to_owned();
    while let Some(open) = find_opening_quote(&bare) {
        let close = bare
            .get(open + 1..)?
            .find('\'')
            .map(|length| open + 1 + length)?;
        bare.remove(close);
        bare.remove(open);
    }
    (bare.len() < form.len() && !bare.is_empty()).then_some(bare)
}

/// The place of the first quote that does not directly follow a word.
fn find_opening_quote(text: &str) -> Option<usize> {
    let mut quotes = text.match_indices('\'').map(|(at, _)| at);
    quotes.find(|at| {
        !text
            .get(..*at)
            .is_some_and(|before| before.ends_with(is_word))
    })
}

/// A folder without the slash at its end.
fn without_last_slash(form: &str) -> Option<String> {
    let bare = form
        .strip_suffix('/')
        .filter(|bare| bare.contains('/') && !bare.ends_with('/') && !bare.contains(' '))?;
    Some(bare.to_owned())
}

impl Needle {
    fn new(form: String, paths: Option<&TranscriptPaths>) -> Option<Needle> {
        if let Some(path) = PathNeedle::new(&form, paths) {
            return Some(Needle::Path(path));
        }
        HashNeedle::new(&form)
            .map(Needle::Hash)
            .or_else(|| TextNeedle::new(form).map(Needle::Text))
    }

    fn text(&self) -> &str {
        match self {
            Needle::Text(text) => &text.text,
            Needle::Hash(hash) => &hash.0,
            Needle::Path(path) => path.whole.get(path.shortest..).unwrap_or(&path.whole),
        }
    }

    fn matches<'a>(&'a self, folded: &'a str) -> Box<dyn Iterator<Item = Range<usize>> + 'a> {
        match self {
            Needle::Text(text) => Box::new(text.matches(folded)),
            Needle::Hash(hash) => Box::new(hash.matches(folded)),
            Needle::Path(path) => Box::new(path.matches(folded)),
        }
    }
}

impl TextNeedle {
    /// `None` for a text that could occur anywhere: an empty one, or a single character of an unspaced script.
    fn new(text: String) -> Option<TextNeedle> {
        let first = text.chars().next()?;
        if is_unspaced(first) && text.chars().nth(1).is_none() {
            return None;
        }
        let mut fixed = Vec::new();
        let mut start = 0;
        for (at, _) in text.match_indices(['-', ' ']) {
            if text.get(..at)?.ends_with(char::is_alphabetic)
                && text.get(at + 1..)?.starts_with(char::is_alphabetic)
            {
                fixed.push(start..at);
                start = at + 1;
            }
        }
        fixed.push(start..text.len());
        let anchor =
            (0..fixed.len()).max_by_key(|index| fixed.get(*index).map_or(0, Range::len))?;
        Some(TextNeedle {
            text,
            fixed,
            anchor,
        })
    }

    fn matches<'a>(&'a self, folded: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let anchor = self.fixed.get(self.anchor).cloned().unwrap_or_default();
        let searched = self.text.get(anchor.clone()).unwrap_or("").as_bytes();
        memmem::find_iter(folded.as_bytes(), searched).filter_map(move |at| {
            let start = at.checked_sub(anchor.start)?;
            let range = start..start + self.text.len();
            let candidate = folded.get(range.clone())?;
            (self.is_same(candidate) && self.ends_are_free(folded, &range)).then_some(range)
        })
    }

    fn is_same(&self, candidate: &str) -> bool {
        let bytes = candidate.as_bytes();
        self.fixed
            .iter()
            .all(|part| candidate.get(part.clone()) == self.text.get(part.clone()))
            && self
                .fixed
                .iter()
                .skip(1)
                .all(|part| matches!(bytes.get(part.start - 1), Some(b'-' | b' ')))
    }

    fn ends_are_free(&self, folded: &str, range: &Range<usize>) -> bool {
        let (before, after) = around(folded, range);
        !(self.goes_on_before(before) && !is_escape(before) || self.goes_on_after(after))
            && self.has_edge(before, after)
    }

    /// Whether a match of two ideographs has the edge of a word at either end: 会话 is no word of 社会话题. Longer matches
    /// are hardly ever parts of other words.
    fn has_edge(&self, before: &str, after: &str) -> bool {
        let is_short = self.text.chars().count() == 2
            && self
                .text
                .chars()
                .all(|c| is_unspaced(c) && numeral(c).is_none());
        !is_short
            || before.chars().next_back().is_none_or(is_edge)
            || after.chars().next().is_none_or(is_edge)
    }

    /// Whether the text before belongs to the same word or number.
    fn goes_on_before(&self, before: &str) -> bool {
        let (mut ahead, mut back) = (self.text.chars(), before.chars().rev());
        let (Some(first), Some(last)) = (ahead.next(), back.next()) else {
            return false;
        };
        let (second, beyond) = (ahead.next(), back.next());
        match first {
            '0'..='9' if last == '.' => beyond.is_some_and(|c| c.is_ascii_digit()),
            // a sign, unless it is a hyphen or a range
            '0'..='9' if last == '-' => {
                !beyond.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ')')
            }
            '-' if second.is_some_and(char::is_alphanumeric) => is_word(last) || last == '-',
            '.' if second.is_some_and(|c| c.is_ascii_digit()) => last.is_ascii_digit(),
            // an ordinal: 第3个 is not 3个
            '0'..='9' if last == '第' => self.text.contains(is_unspaced),
            c if numeral(c).is_some() => {
                last == '第' || numeral(last).is_some() || last.is_ascii_digit()
            }
            c if is_word(c) && is_word(last) => true,
            // `src/db` is not `old-src/db`
            c => is_word(c) && goes_on_before(&self.text, last) && beyond.is_some_and(is_word),
        }
    }

    /// Whether the text after belongs to the same word, number, version or path.
    fn goes_on_after(&self, after: &str) -> bool {
        let Some(last) = self.text.chars().next_back() else {
            return false;
        };
        let mut ahead = after.chars();
        let Some(next) = ahead.next() else {
            return false;
        };
        let beyond = ahead.next();
        if is_word(last) && is_word(next) || numeral(last).is_some() && numeral(next).is_some() {
            return true;
        }
        let numbers =
            last.is_ascii_digit() && next == '.' && beyond.is_some_and(|c| c.is_ascii_digit());
        let path = is_word(last) && goes_on_after(&self.text, next) && beyond.is_some_and(is_word);
        // `--force` is not `--force-with-lease`
        let flag = self.text.starts_with('-')
            && is_word(last)
            && next == '-'
            && beyond.is_some_and(is_word);
        numbers
            || path
            || flag
            || (next == '-'
                && is_version(&self.text)
                && is_suffix_of_version(after.get(1..).unwrap_or("")))
    }
}

/// Whether a word may begin or end beside this character.
fn is_edge(c: char) -> bool {
    /// Characters that words hardly ever begin or end with, because they are words themselves.
    const PARTICLES: &str = "的了着过和与及或是在有被把将对从到由向给为以于用按加改做让使就才都也还又更最不没未已再先则而并但因其该此这那各无可要能需应请里中";
    !is_unspaced(c) || PARTICLES.contains(c)
}

/// A hash of a commit or a file, which texts shorten.
#[derive(Clone, Debug)]
struct HashNeedle(String);

impl HashNeedle {
    /// The fewest characters that stand for a hash.
    const SHORT: usize = 7;

    /// Takes a run of hexadecimal digits with a letter and a digit in it, with or without a word for a commit before it.
    fn new(form: &str) -> Option<HashNeedle> {
        let bare = ["commit ", "revision ", "sha "]
            .iter()
            .find_map(|word| form.strip_prefix(word))
            .unwrap_or(form);
        let is_hash = (HashNeedle::SHORT..=64).contains(&bare.len())
            && bare
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && bare.contains(|c: char| c.is_ascii_digit())
            && bare.contains(|c: char| c.is_ascii_alphabetic());
        is_hash.then(|| HashNeedle(bare.to_owned()))
    }

    fn matches<'a>(&'a self, folded: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let short = self.0.get(..HashNeedle::SHORT).unwrap_or(&self.0);
        memmem::find_iter(folded.as_bytes(), short.as_bytes()).filter_map(move |at| {
            let rest = folded.get(at..)?;
            let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            let run = rest.get(..length)?;
            let before = folded.get(..at)?;
            let goes_on = before.ends_with(is_word) && !is_escape(before);
            let is_same = self.0.starts_with(run)
                || run.starts_with(self.0.as_str())
                    && run.bytes().all(|byte| byte.is_ascii_hexdigit());
            (!goes_on && is_same).then_some(at..at + length)
        })
    }
}

/// Whether a letter follows, as in `-beta`, `-rc1`.
fn is_suffix_of_version(after: &str) -> bool {
    after.starts_with(|c: char| c.is_ascii_alphabetic())
}

impl PathNeedle {
    fn new(form: &str, paths: Option<&TranscriptPaths>) -> Option<PathNeedle> {
        let path = without_drive(form);
        let whole = is_file_path(path).then(|| normal_path(path))?;
        let name = whole.rfind('/').map_or(0, |at| at + 1);
        let mut starts = whole.rmatch_indices('/').map(|(at, _)| at + 1);
        let shortest = paths.and_then(|paths| {
            starts.find(|start| paths.is_unique_ending(&whole, whole.get(*start..).unwrap_or("")))
        });
        let shortest = shortest.unwrap_or(0);
        Some(PathNeedle {
            whole,
            name,
            shortest,
        })
    }

    fn matches<'a>(&'a self, folded: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let name = self.whole.get(self.name..).unwrap_or("");
        memmem::find_iter(folded.as_bytes(), name.as_bytes()).filter_map(move |at| {
            let end = at + name.len();
            let first = folded.floor_char_boundary(at.saturating_sub(LONGEST_PATH));
            let start = first + start_of_run(folded.get(first..at)?);
            let run = folded.get(start..end)?;
            // `\n` before a path may be an escape or a folder that begins with n.
            let ends = run.match_indices('\\').map(|(backslash, _)| backslash + 2);
            let escapes = ends
                .filter(|behind| run.get(..*behind).is_some_and(is_escape))
                .map(|behind| start + behind);
            let mut starts = std::iter::once(start).chain(escapes);
            let start = starts.find(|start| {
                folded
                    .get(*start..end)
                    .is_some_and(|run| self.is_named_by(run))
            })?;
            (!name_goes_on(folded.get(end..)?)).then_some(start..end)
        })
    }

    /// Whether `run`, the end of a text up to a file name, names this file: the whole path, a longer one that ends in
    /// it, or an ending long enough to be this file's alone.
    fn is_named_by(&self, run: &str) -> bool {
        let run = normal_path(run);
        ends_in(&run, &self.whole)
            || run.len() >= self.whole.len() - self.shortest && ends_in(&self.whole, &run)
    }
}

/// The most bytes of a path. A list of paths with escaped line breaks between them is one run of path characters.
const LONGEST_PATH: usize = 4096;

/// Where the run of path characters at the end of `before` begins, without leading `-`, `+` and `@`.
fn start_of_run(before: &str) -> usize {
    let start = before
        .trim_end_matches(|c: char| is_path_char(c) && !is_unspaced(c))
        .len();
    let run = before.get(start..).unwrap_or("");
    before.len() - run.trim_start_matches(['-', '+', '@']).len()
}

/// Whether `before` ends in a line break or tab that is still escaped, as in JSON that was cut and cannot be parsed.
fn is_escape(before: &str) -> bool {
    ["\\n", "\\r", "\\t"]
        .iter()
        .any(|escape| before.ends_with(escape))
}

fn name_goes_on(after: &str) -> bool {
    let mut ahead = after.chars();
    if after.get(..2).is_some_and(is_escape) {
        return false;
    }
    ahead.next().is_some_and(|next| {
        is_word(next) || matches!(next, '.' | '-' | '/' | '\\') && ahead.next().is_some_and(is_word)
    })
}

/// Whether `text` is a path that ends in a file name with an extension.
fn is_file_path(text: &str) -> bool {
    let Some((_, name)) = text.rsplit_once(['/', '\\']) else {
        return false;
    };
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return false;
    };
    let is_name = stem.len() + extension.len() > 2
        && extension.starts_with(|c: char| c.is_ascii_alphabetic());
    is_name && text.chars().all(|c| is_path_char(c) && !is_unspaced(c))
}

/// A path without the letter of a drive.
fn without_drive(path: &str) -> &str {
    let mut chars = path.chars();
    match (chars.next(), chars.next(), chars.as_str()) {
        (Some(letter), Some(':'), rest)
            if letter.is_ascii_alphabetic() && rest.starts_with(['/', '\\']) =>
        {
            rest
        }
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::History;
    use proptest::prelude::*;
    use sessions::transcript::{Message, Role, fold, fold_document};

    fn fact(spelling: &str) -> Fact {
        Fact {
            spellings: vec![spelling.to_owned()],
        }
    }

    fn occurs(spelling: &str, text: &str) -> bool {
        FactFinder::new(&fact(spelling)).occurs_in(&fold(text))
    }

    #[test]
    fn a_fact_is_found_where_a_guard_holds_back_one_rule_of_two() {
        // Among arguments a comma separates numbers, while the unit behind it has its long form.
        assert!(occurs("1,000 ms", "wait(1,000 ms, twice)"));
        assert!(occurs("1,000 ms", "it waits 1000 milliseconds"));
    }

    #[test]
    fn matches_whole_words_and_numbers_only() {
        assert!(occurs("5", "retry 5 times"));
        assert!(occurs("5", "It is 5."));
        assert!(!occurs("5", "15 or 51 or a5"));
        assert!(!occurs("5", "1.5 or 5.1"));
        assert!(occurs("1.2", "version 1.2, then"));
        assert!(!occurs("1.2", "version 1.2.3"));
        assert!(occurs("127.0.0.1:8080", "on http://127.0.0.1:8080/x"));
        assert!(!occurs("open", "reopened"));
        assert!(!occurs("id", "open_id"));
        assert!(occurs("open_id", "`open_id`"));
    }

    #[test]
    fn folds_case_width_and_white_space() {
        assert!(occurs("Connection refused", "CONNECTION\n   refused"));
        assert!(occurs("port 8080", "ｐｏｒｔ　８０８０"));
    }

    #[test]
    fn any_spelling_will_do() {
        let either = Fact {
            spellings: vec!["10 seconds".into(), "10s".into()],
        };
        assert!(FactFinder::new(&either).occurs_in("waits 10s"));
        assert!(!FactFinder::new(&either).occurs_in("waits 100s"));
    }

    #[test]
    fn chinese_needs_no_word_ends_but_two_characters() {
        assert!(occurs("连接超时", "报错：数据库连接超时，已重试"));
        assert!(!occurs("错", "报错"));
        assert!(occurs("Redis缓存", "改用Redis缓存层"));
        assert!(occurs("redis", "改用Redis做缓存"));
        assert!(!occurs("端口8080", "端口80801"));
        assert!(occurs("端口：８０８０", "端口:8080"));
    }

    fn occurs_within(spelling: &str, text: &str, transcript: &str) -> bool {
        let history = History::new(&[Message::text(Role::User, transcript)]);
        FactFinder::within(&fact(spelling), history.paths()).occurs_in(&fold(text))
    }

    #[test]
    fn a_number_is_not_a_part_or_the_negative_of_another() {
        for (spelling, text) in [
            ("204", "1,204 rows"),
            ("5", "it is -5"),
            ("5", "it is \u{2212}5"),
            ("-5", "it is 5"),
            ("-5", "10-5"),
            ("1.2", "1.2-beta"),
            ("v2", "v2-rc1"),
            (".5", "1.5"),
            ("三个", "第三个"),
        ] {
            assert!(!occurs(spelling, text), "{spelling} in {text}");
        }
        for (spelling, text) in [
            ("5", "5-second timeout"),
            ("8081", "[8080,8081]"),
            ("5", "range 1-5"),
            ("-5", "it is \u{2212}5"),
            ("8", "utf-8"),
            ("1,204", "(1,204)"),
            ("1,204", "1204"),
            ("十二", "十二个"),
        ] {
            assert!(occurs(spelling, text), "{spelling} in {text}");
        }
    }

    #[test]
    fn between_letters_a_hyphen_is_a_space() {
        assert!(occurs("re-run the build", "Re run the build"));
        assert!(occurs("dry run", "a dry\u{2010}run"));
        assert!(!occurs("dry-run", "dryrun"));
        assert!(!occurs("utf-8", "utf 8"));
        assert!(!occurs("-v", "a v"));
        assert!(
            !occurs("config.yaml", "see config.yaml.bak")
                && occurs("config.yaml", "see config.yaml. Then")
        );
        assert!(
            !occurs("settings.json", "my-settings.json")
                && occurs("settings.json", "a/settings.json")
        );
        assert!(
            occurs("package.json", "in package.json-style")
                && occurs("queue.push", "self.queue.push(job)")
        );
        assert!(
            !occurs("--force", "use --force-with-lease")
                && occurs("--force", "use --force, or --force=x")
        );
    }

    #[test]
    fn a_path_is_found_by_an_ending_that_no_other_path_has() {
        let one = "src/cache/store.rs was read";
        assert!(occurs_within("src/cache/store.rs", "changed store.rs", one));
        assert!(occurs_within(
            "src/cache/store.rs",
            "changed cache/store.rs:12",
            one
        ));
        assert!(!occurs_within(
            "src/cache/store.rs",
            "changed src/api/store.rs",
            one
        ));
        assert!(!occurs_within(
            "src/cache/store.rs",
            "changed restore.rs or store.rs.bak",
            one
        ));
        let two = "src/db/mod.rs, src/api/mod.rs and /home/user/src/db/mod.rs";
        assert!(!occurs_within("src/db/mod.rs", "changed mod.rs", two));
        assert!(!occurs_within(
            "src/db/mod.rs",
            "changed src/api/mod.rs",
            two
        ));
        assert!(occurs_within("src/db/mod.rs", "changed db/mod.rs", two));
        assert!(occurs_within(
            "/home/user/src/db/mod.rs",
            "changed src/db/mod.rs",
            two
        ));
        assert!(
            !occurs("src/cache/store.rs", "changed store.rs"),
            "without a transcript"
        );
        assert!(occurs(
            "src/cache/store.rs",
            "in ./src/cache/store.rs:12 and `a/src/cache/store.rs`"
        ));
        assert!(!occurs("TCP/IP", "the IP address"));
        assert!(!occurs("https://example.org/a.html", "see a.html"));
        assert!(!occurs("src/db", "src/db-old and src/db2, old-src/db"));
        assert!(occurs("src/db", "in src/db/mod.rs"));
    }

    #[test]
    fn a_fact_with_quotes_or_backslashes_is_found_in_json() {
        let result = r#"{"path":"C:\\new","said":"say \"hi\""}"#;
        let history = History::new(&[Message::result("c1", result)]);
        for spelling in ["C:\\new", "say \"hi\""] {
            assert!(
                history.holds(&FactFinder::new(&fact(spelling)), 0..1),
                "{spelling}"
            );
            assert!(
                FactFinder::new(&fact(spelling))
                    .occurs_in(&fold_document(&format!("[result]\n{result}")))
            );
        }
    }

    #[test]
    fn an_escaped_line_break_is_no_letter_of_a_word() {
        // A tool result that was cut inside its JSON.
        let cut = r#"{"diff": "a/x.py b/tools/id_tool.py\nnew file mode 100644\n8081 rows\n+++ b/tools/id_tool.py\ntools/new.py"#;
        for spelling in ["new file", "8081", "tools/id_tool.py", "tools/new.py"] {
            assert!(occurs(spelling, cut), "{spelling}");
        }
        assert!(!occurs("ew file", r"C:\newfile and \\snew file"));
        assert!(occurs("new/file.py", r"src\new\file.py"));
    }

    #[test]
    fn ranges_keep_the_longest_of_each_place() {
        let text = "src/cache/store.rs and store.rs";
        let history = History::new(&[Message::text(Role::User, text)]);
        assert_eq!(
            FactFinder::within(&fact("src/cache/store.rs"), history.paths()).ranges(text),
            [0..18, 23..31]
        );
        assert_eq!(
            FactFinder::new(&fact("src/cache/store.rs")).ranges(text),
            std::slice::from_ref(&(0..18))
        );
    }

    #[test]
    fn places_are_ranges_of_the_text_as_written() {
        let text = "Ａn  Error：　ｐｏｒｔ\n 8080 图";
        let finder = FactFinder::new(&fact("port 8080"));
        let marks: Vec<&str> = finder
            .find(&MappedFold::new(text))
            .into_iter()
            .map(|range| &text[range])
            .collect();
        assert_eq!(marks, ["ｐｏｒｔ\n 8080"]);
    }

    #[test]
    fn an_empty_fact_is_never_found() {
        assert!(!occurs("", "any text"));
        assert!(!occurs("  ", "any text"));
    }

    proptest! {
        #[test]
        fn a_fact_between_blanks_is_found(word in "[a-z]{2,8}", before in "[a-z ]{0,12}", after in "[a-z ]{0,12}") {
            let text = fold(&format!("{before} {word} {after}"));
            let ranges = FactFinder::new(&fact(&word)).ranges(&text);
            prop_assert!(!ranges.is_empty());
            prop_assert!(ranges.iter().all(|range| text[range.clone()] == word));
        }

        #[test]
        fn never_panics(spelling in "\\PC{0,8}", text in "\\PC{0,40}") {
            let finder = FactFinder::new(&fact(&spelling));
            let folded = fold(&text);
            prop_assert_eq!(finder.occurs_in(&folded), !finder.ranges(&folded).is_empty());
        }
    }
}
