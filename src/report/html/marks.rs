//! The marks of methods: each has a shape and a colour, which are the same on all pages.

use std::sync::LazyLock;

use serde::Deserialize;

/// The shapes as paths of radius 1. The script of the report reads the same file.
pub(super) const MARKS: &str = include_str!("../../../assets/marks.json");
/// Colours `m0` to `m6` of the shared style.
const COLOURS: usize = 7;

#[derive(Deserialize)]
struct MarkShape {
    path: String,
    #[serde(default)]
    open: bool,
}

static SHAPES: LazyLock<Vec<MarkShape>> = LazyLock::new(|| {
    serde_json::from_str(MARKS)
        .unwrap_or_else(|error| unreachable!("marks.json is part of the program: {error}"))
});

/// The mark of a method.
#[derive(Clone, Copy)]
pub(crate) enum Mark {
    /// The method with this number, among those that keep neither everything nor nothing.
    Method(usize),
    /// A method that keeps everything or nothing.
    Anchor,
}

impl Mark {
    /// The class that sets its colour.
    pub(crate) fn class(self) -> String {
        match self {
            Mark::Method(number) => format!("m{}", number % COLOURS),
            Mark::Anchor => "anchor".to_owned(),
        }
    }

    /// The shape as SVG, around the origin. Shapes and colours vary independently, so that 49 methods differ.
    pub(crate) fn shape(self, radius: f64) -> String {
        let Mark::Method(number) = self else {
            return format!(
                "<path d=\"M-1.2 0H1.2\" transform=\"scale({radius})\" class=\"open\"/>"
            );
        };
        let Some(MarkShape { path, open }) = SHAPES.get((number + number / COLOURS) % SHAPES.len())
        else {
            return String::new();
        };
        let class = if *open { " class=\"open\"" } else { "" };
        format!("<path d=\"{path}\" transform=\"scale({radius})\"{class}/>")
    }

    /// The mark as an icon in text.
    pub(crate) fn icon(self) -> String {
        let (class, shape) = (self.class(), self.shape(4.6));
        format!(
            "<svg class=\"sign {class}\" viewBox=\"-8 -8 16 16\" aria-hidden=\"true\">{shape}</svg>"
        )
    }
}
