//! Trends: the scores of result sets in the order of time, as cells of a table and as a page.

use std::fmt::Write as _;

use indexmap::IndexSet;
use serde::Serialize;

use super::html::{Mark, document, escape};
use super::numbers::{counted, short_time};
use super::translation::translation;
use crate::results::OVERALL;
use base::locale::{Locale, localized};

/// A score with its 95% interval over fixtures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrendScore {
    pub value: f64,
    pub ci95: Option<[f64; 2]>,
}

/// One result set of a trend.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendPoint {
    pub label: String,
    /// RFC 3339.
    pub started: String,
    /// The git commit of the project; null where none was recorded.
    pub commit: Option<String>,
    pub complete: bool,
    /// Whether fixtures, questions, rubric, answerers or judges differ from those of the point before, so that its
    /// scores cannot be compared with these.
    pub measured_otherwise: bool,
    /// By method, in the order of the pipeline: `overall` and each dimension.
    pub methods: Vec<(String, Vec<(String, TrendScore)>)>,
    /// The methods that keep everything or nothing.
    #[serde(skip)]
    pub anchors: Vec<String>,
}

impl TrendPoint {
    pub fn score(&self, method: &str, dimension: &str) -> Option<TrendScore> {
        let (_, dimensions) = self.methods.iter().find(|(known, _)| known == method)?;
        dimensions
            .iter()
            .find(|(known, _)| known == dimension)
            .map(|(_, score)| *score)
    }
}

/// The methods of all points, in the order of their first occurrence.
pub fn trend_methods(points: &[TrendPoint]) -> Vec<&str> {
    let methods = points
        .iter()
        .flat_map(|point| &point.methods)
        .map(|(method, _)| method.as_str());
    methods.collect::<IndexSet<_>>().into_iter().collect()
}

/// The dimensions of all points, in the order of their first occurrence.
pub fn trend_dimensions(points: &[TrendPoint]) -> Vec<&str> {
    let methods = points.iter().flat_map(|point| &point.methods);
    let dimensions = methods
        .flat_map(|(_, dimensions)| dimensions)
        .map(|(dimension, _)| dimension.as_str());
    dimensions.collect::<IndexSet<_>>().into_iter().collect()
}

/// The name of a dimension, or of their mean, in the language that is printed.
pub fn trend_dimension_name(dimension: &str) -> String {
    let tr = translation(Locale::printed());
    if dimension == OVERALL {
        tr.overall.to_owned()
    } else {
        tr.dimension_label(dimension)
    }
}

/// The first ten digits of a commit.
pub fn short_commit(point: &TrendPoint) -> String {
    point.commit.as_ref().map_or_else(
        || "–".to_owned(),
        |commit| commit.chars().take(10).collect(),
    )
}

/// What follows the label of a result set: a note if the set is not complete, otherwise nothing.
pub fn incomplete(point: &TrendPoint) -> &'static str {
    if point.complete {
        ""
    } else {
        localized(" (incomplete)", "（不完整）")
    }
}

/// `3.87 [3.55, 4.19]`; a dash if nothing was measured.
pub fn score_text(score: Option<TrendScore>) -> String {
    let Some(TrendScore { value, ci95 }) = score else {
        return "–".to_owned();
    };
    let interval = ci95
        .map(|[low, high]| format!(" [{low:.2}, {high:.2}]"))
        .unwrap_or_default();
    format!("{value:.2}{interval}")
}

/// The mark of each method, the same as in the report of each result set.
fn marks(points: &[TrendPoint], methods: &[&str]) -> Vec<Mark> {
    let mut number = 0;
    let marks = methods.iter().map(|method| {
        if points
            .iter()
            .any(|point| point.anchors.iter().any(|anchor| anchor == method))
        {
            return Mark::Anchor;
        }
        number += 1;
        Mark::Method(number - 1)
    });
    marks.collect()
}

/// A page in the printed language, which needs no network and no script: a chart and a table for `overall` and for each
/// dimension.
pub fn trend_page(points: &[TrendPoint]) -> String {
    let methods = trend_methods(points);
    let marked: Vec<(&str, Mark)> = methods
        .iter()
        .copied()
        .zip(marks(points, &methods))
        .collect();
    let lead = localized(
        "Scores from 0 to 5, with 95% intervals over fixtures. A dashed line: the fixtures, the questions, the rubric, the \
         answerer or the judge changed, and scores before and after cannot be compared.",
        "得分为 0 至 5，附样本间的 95% 区间。虚线：样本、问题、评分细则、作答模型或评审有变，前后的得分不能比较。",
    );
    let title = counted(points.len(), ["result set", "result sets"], "个结果集");
    let mut body = format!("<h1>{title}</h1>\n<p class=\"lead\">{lead}</p>\n<ul class=\"legend\">");
    for (method, mark) in &marked {
        // Writing to a string cannot fail.
        let _ = write!(body, "<li>{}{}</li>", mark.icon(), escape(method));
    }
    body.push_str("</ul>\n");
    for dimension in trend_dimensions(points) {
        let name = escape(&trend_dimension_name(dimension));
        let _ = writeln!(
            body,
            "<section><h2>{name}</h2>\n<div class=\"wide\" tabindex=\"0\">{}</div>",
            chart(points, &marked, dimension)
        );
        body.push_str(&table(points, &methods, dimension));
        body.push_str("</section>\n");
    }
    document(
        Locale::printed(),
        localized("compeval: trend", "compeval：走势"),
        &body,
    )
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 30.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 10.0;

fn y(value: f64) -> f64 {
    TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - value.clamp(0.0, 5.0) / 5.0)
}

/// The middle of the column of a point.
fn middle(at: usize, step: f64) -> f64 {
    LEFT + step * (at as f64 + 0.5)
}

fn chart(points: &[TrendPoint], methods: &[(&str, Mark)], dimension: &str) -> String {
    let step = (WIDTH - LEFT) / points.len().max(1) as f64;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
        escape(&trend_dimension_name(dimension))
    );
    for score in 0..=5u8 {
        let y = y(f64::from(score));
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"grid\"/>\
             <text x=\"4\" y=\"{:.1}\">{score}</text>",
            y + 4.0
        );
    }
    for (at, point) in points.iter().enumerate() {
        let (x, label) = (middle(at, step), escape(&point.label));
        if point.measured_otherwise {
            let left = x - step / 2.0;
            let _ = writeln!(
                svg,
                "<line x1=\"{left:.1}\" x2=\"{left:.1}\" y1=\"{TOP}\" y2=\"{:.1}\" class=\"change\"/>",
                HEIGHT - BOTTOM
            );
        }
        let (row, time) = (HEIGHT - 24.0, escape(&short_time(&point.started)));
        let name: String = label.chars().take((step / 6.0) as usize).collect();
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{row:.1}\" text-anchor=\"middle\">{name}<title>{label} {time}</title></text>"
        );
    }
    for (at, (method, mark)) in methods.iter().enumerate() {
        svg.push_str(&line(points, method, dimension, *mark, &|point| {
            middle(point, step) + (at as f64 - methods.len() as f64 / 2.0) * 3.0
        }));
    }
    svg.push_str("</svg>\n");
    svg
}

/// The scores of one method: marks with their intervals, joined by lines where they can be compared.
fn line(
    points: &[TrendPoint],
    method: &str,
    dimension: &str,
    mark: Mark,
    x: &dyn Fn(usize) -> f64,
) -> String {
    let mut svg = format!("<g class=\"{}\">\n", mark.class());
    let mut before: Option<(f64, f64)> = None;
    for (at, point) in points.iter().enumerate() {
        // Nothing is joined across a dashed line, even where the method has no score beside it.
        if point.measured_otherwise {
            before = None;
        }
        let Some(score) = point.score(method, dimension) else {
            continue;
        };
        let (x, y_score) = (x(at), y(score.value));
        if let Some((x0, y0)) = before {
            let _ = writeln!(
                svg,
                "<line x1=\"{x0:.1}\" y1=\"{y0:.1}\" x2=\"{x:.1}\" y2=\"{y_score:.1}\" class=\"line\"/>"
            );
        }
        if let Some([low, high]) = score.ci95 {
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" class=\"interval\"/>",
                y(low),
                y(high)
            );
        }
        let class = if point.complete {
            "sign"
        } else {
            "sign partial"
        };
        let title = format!("{method}, {}: {}", point.label, score_text(Some(score)));
        let _ = writeln!(
            svg,
            "<g class=\"{class}\" transform=\"translate({x:.1} {y_score:.1})\">{}<title>{}</title></g>",
            mark.shape(4.5),
            escape(&title)
        );
        before = Some((x, y_score));
    }
    svg.push_str("</g>\n");
    svg
}

fn table(points: &[TrendPoint], methods: &[&str], dimension: &str) -> String {
    // Where the page is narrow, the scores are seen and the rest scrolls.
    let mut html = format!(
        "<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>{}</th>",
        localized("label", "标签")
    );
    for method in methods {
        let _ = write!(html, "<th>{}</th>", escape(method));
    }
    let _ = writeln!(
        html,
        "<th>{}</th><th>{}</th></tr></thead><tbody>",
        localized("began (UTC)", "开始（UTC）"),
        localized("commit", "提交")
    );
    for point in points {
        let note = incomplete(point);
        let _ = write!(html, "<tr><td>{}{note}</td>", escape(&point.label));
        for method in methods {
            let _ = write!(
                html,
                "<td>{}</td>",
                score_text(point.score(method, dimension)).replacen(' ', "<br>", 1)
            );
        }
        let _ = writeln!(
            html,
            "<td>{}</td><td>{}</td></tr>",
            escape(&short_time(&point.started)),
            escape(&short_commit(point))
        );
    }
    html.push_str("</tbody></table></div>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(label: &str, value: f64, measured_otherwise: bool) -> TrendPoint {
        let score = TrendScore {
            value,
            ci95: Some([value - 0.2, value + 0.2]),
        };
        TrendPoint {
            label: label.to_owned(),
            started: "2026-01-02T03:04:05Z".to_owned(),
            commit: Some("0123456789abcdef".to_owned()),
            complete: true,
            measured_otherwise,
            methods: vec![("anchored".to_owned(), vec![("overall".to_owned(), score)])],
            anchors: Vec::new(),
        }
    }

    #[test]
    fn scores_are_joined_only_where_they_can_be_compared() {
        let joined = |page: &str| page.matches("class=\"line\"").count();
        let page = trend_page(&[
            point("a", 3.0, false),
            point("<b>", 3.5, false),
            point("c", 4.0, true),
        ]);
        assert_eq!(
            (joined(&page), page.matches("class=\"change\"").count()),
            (1, 1)
        );
        assert!(
            page.contains("3.50<br>[3.30, 3.70]")
                && page.contains("&lt;b&gt;")
                && !page.contains("<b>")
        );
        assert!(page.contains("2026-01-02 03:04") && page.contains("0123456789<"));
    }

    #[test]
    fn a_score_that_was_not_measured_is_a_dash() {
        assert_eq!(score_text(None), "–");
        assert_eq!(
            score_text(Some(TrendScore {
                value: 3.0,
                ci95: None
            })),
            "3.00"
        );
    }
}
