//! Text with meaning: who prints it decides what meaning looks like.

use unicode_width::UnicodeWidthStr;

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

    /// Adds a text of one meaning, broken between words so that no line is wider than `width`.
    pub fn paragraph(&mut self, ink: Ink, text: &str, width: usize) {
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && line.width() + 1 + word.width() > width {
                self.line([(ink, std::mem::take(&mut line))]);
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
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
