//! Text with meaning: who prints it decides what meaning looks like.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a stretch of text means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    /// Nothing in particular.
    #[default]
    Plain,
    /// A heading, a name, the figure looked for.
    Strong,
    /// Less important.
    Dim,
    /// Better.
    Good,
    /// Worse.
    Bad,
    /// Worth a look.
    Warning,
}

/// Lines of stretches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Styled {
    /// The lines, each without its end.
    pub lines: Vec<Vec<(Ink, String)>>,
}

impl Styled {
    /// Adds a line.
    pub fn line(&mut self, stretches: impl IntoIterator<Item = (Ink, String)>) {
        self.lines.push(stretches.into_iter().filter(|(_, text)| !text.is_empty()).collect());
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.lines.push(Vec::new());
    }

    /// Adds a text of one meaning, broken between words (of Chinese text: between characters) so that no line is wider
    /// than `width`.
    pub fn paragraph(&mut self, ink: Ink, text: &str, width: usize) {
        let mut line = String::new();
        for (piece, spaced) in pieces(text) {
            let blank = usize::from(spaced && !line.is_empty());
            if !line.is_empty() && line.width() + blank + piece.width() > width {
                self.line([(ink, std::mem::take(&mut line))]);
            } else if blank == 1 {
                line.push(' ');
            }
            line.push_str(piece);
        }
        self.line([(ink, line)]);
    }

    /// Adds all lines of another text.
    pub fn append(&mut self, other: Styled) {
        self.lines.extend(other.lines);
    }

    /// The text, each stretch as `paint` gives it back.
    pub fn paint(&self, paint: impl Fn(Ink, &str) -> String) -> String {
        let line = |stretches: &Vec<(Ink, String)>| -> String {
            stretches.iter().map(|(ink, text)| paint(*ink, text)).collect::<String>() + "\n"
        };
        self.lines.iter().map(line).collect()
    }

    /// The text without any meaning.
    pub fn plain(&self) -> String {
        let lines = self.paint(|_, text| text.to_owned());
        lines.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }
}

/// The parts of a text between which a line may end, each with whether a blank stands before it. Words are parts; so
/// are the wide characters of Chinese, with the punctuation that follows them.
fn pieces(text: &str) -> Vec<(&str, bool)> {
    let mut pieces = Vec::new();
    for word in text.split_whitespace() {
        let mut start = 0;
        let mut before: Option<char> = None;
        for (at, c) in word.char_indices() {
            let may_end = before.is_some_and(|before| is_wide(before) || is_wide(c)) && !"，。；：、）！？".contains(c);
            if may_end {
                pieces.push((word.get(start..at).unwrap_or_default(), start == 0));
                start = at;
            }
            before = Some(c);
        }
        pieces.push((word.get(start..).unwrap_or_default(), start == 0));
    }
    pieces
}

fn is_wide(c: char) -> bool {
    c.width() == Some(2)
}
