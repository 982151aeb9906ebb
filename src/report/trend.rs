//! Trends: the scores of result sets in the order of time, as a table's cells and as a page.

use std::fmt::Write as _;

use indexmap::IndexSet;
use serde::Serialize;

use super::html::escape;

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
    /// What was measured differs from the point before: fixtures, questions, rubric, answerers or judges. Scores before
    /// and after cannot be compared.
    pub measured_otherwise: bool,
    /// By method, in the order of the pipeline: `overall` and each dimension.
    pub methods: Vec<(String, Vec<(String, TrendScore)>)>,
}

impl TrendPoint {
    pub fn score(&self, method: &str, dimension: &str) -> Option<TrendScore> {
        let (_, dimensions) = self.methods.iter().find(|(known, _)| known == method)?;
        dimensions.iter().find(|(known, _)| known == dimension).map(|(_, score)| *score)
    }
}

/// The methods of all points, in the order in which they come.
pub fn trend_methods(points: &[TrendPoint]) -> Vec<&str> {
    let methods = points.iter().flat_map(|point| &point.methods).map(|(method, _)| method.as_str());
    methods.collect::<IndexSet<_>>().into_iter().collect()
}

/// The dimensions of all points, likewise.
pub fn trend_dimensions(points: &[TrendPoint]) -> Vec<&str> {
    let methods = points.iter().flat_map(|point| &point.methods);
    let dimensions = methods.flat_map(|(_, dimensions)| dimensions).map(|(dimension, _)| dimension.as_str());
    dimensions.collect::<IndexSet<_>>().into_iter().collect()
}

/// The first ten digits of a commit.
pub fn short_commit(point: &TrendPoint) -> String {
    point.commit.as_ref().map_or_else(|| "–".to_owned(), |commit| commit.chars().take(10).collect())
}

/// `2026-01-02 03:04`
pub fn short_time(point: &TrendPoint) -> String {
    point.started.chars().take(16).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

/// `3.87 [3.55, 4.19]`; a dash where nothing was measured.
pub fn score_text(score: Option<TrendScore>) -> String {
    let Some(TrendScore { value, ci95 }) = score else { return "–".to_owned() };
    let interval = ci95.map(|[low, high]| format!(" [{low:.2}, {high:.2}]")).unwrap_or_default();
    format!("{value:.2}{interval}")
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #8884;\
white-space:nowrap}td:first-child,th:first-child{text-align:left}.wide{overflow-x:auto}svg{width:100%;height:auto}\
text{font:11px system-ui,sans-serif;fill:currentColor}:root{color-scheme:light dark}";

/// Distinguishable for people with color blindness; after the last, the first is used again.
const COLORS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a5195", "#b8860b", "#56b4e9", "#888888"];

/// One page that needs no network and no script: a chart and a table for `overall` and each dimension.
pub fn trend_page(points: &[TrendPoint]) -> String {
    let methods = trend_methods(points);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>compeval labels trend</title><style>{STYLE}</style></head><body>\n<h1>{} result \
         sets</h1>\n<p>Scores from 0 to 5, with 95% intervals over fixtures. A dashed line: the fixtures, the questions, the \
         rubric, the answerer or the judge changed, and scores before and after cannot be compared.</p>\n",
        points.len()
    );
    page.push_str("<p>");
    for (at, method) in methods.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(page, "<span style=\"color:{}\">■</span> {} &emsp;", color(at), escape(method));
    }
    page.push_str("</p>\n");
    for dimension in trend_dimensions(points) {
        let _ = write!(page, "<h2>{}</h2>\n{}", escape(dimension), chart(points, &methods, dimension));
        page.push_str(&table(points, &methods, dimension));
    }
    page.push_str("</body></html>\n");
    page
}

fn color(at: usize) -> &'static str {
    COLORS.get(at % COLORS.len()).copied().unwrap_or("#888888")
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 30.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 10.0;

fn y(value: f64) -> f64 {
    TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - value.clamp(0.0, 5.0) / 5.0)
}

fn chart(points: &[TrendPoint], methods: &[&str], dimension: &str) -> String {
    let step = (WIDTH - LEFT) / points.len().max(1) as f64;
    let x = |at: usize| LEFT + step * (at as f64 + 0.5);
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n", escape(dimension));
    for score in 0..=5u8 {
        let y = y(f64::from(score));
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#8884\"/>\
             <text x=\"4\" y=\"{:.1}\">{score}</text>",
            y + 4.0
        );
    }
    for (at, point) in points.iter().enumerate() {
        let (x, label) = (x(at), escape(&point.label));
        if point.measured_otherwise {
            let left = x - step / 2.0;
            let _ = writeln!(
                svg,
                "<line x1=\"{left:.1}\" x2=\"{left:.1}\" y1=\"{TOP}\" y2=\"{:.1}\" stroke=\"currentColor\" \
                 stroke-dasharray=\"4 4\"/>",
                HEIGHT - BOTTOM
            );
        }
        let (row, time) = (HEIGHT - 24.0, escape(&short_time(point)));
        let name: String = label.chars().take((step / 6.0) as usize).collect();
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{row:.1}\" text-anchor=\"middle\">{name}<title>{label} {time}</title></text>"
        );
    }
    for (at, method) in methods.iter().enumerate() {
        svg.push_str(&line(points, (*method, dimension), color(at), &|point| {
            x(point) + (at as f64 - methods.len() as f64 / 2.0) * 3.0
        }));
    }
    svg.push_str("</svg>\n");
    svg
}

/// The scores of one method: marks with their intervals, joined where they can be compared.
fn line(points: &[TrendPoint], (method, dimension): (&str, &str), color: &str, x: &dyn Fn(usize) -> f64) -> String {
    let mut svg = String::new();
    let mut before: Option<(f64, f64)> = None;
    for (at, point) in points.iter().enumerate() {
        let Some(score) = point.score(method, dimension) else { continue };
        let (x, y_score) = (x(at), y(score.value));
        if let Some((x0, y0)) = before.filter(|_| !point.measured_otherwise) {
            let _ = writeln!(
                svg,
                "<line x1=\"{x0:.1}\" y1=\"{y0:.1}\" x2=\"{x:.1}\" y2=\"{y_score:.1}\" stroke=\"{color}\" \
                 stroke-width=\"1.5\"/>"
            );
        }
        if let Some([low, high]) = score.ci95 {
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{color}\" opacity=\".5\"/>",
                y(low),
                y(high)
            );
        }
        let fill = if point.complete { color } else { "none" };
        let title = format!("{method}, {}: {}", point.label, score_text(Some(score)));
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y_score:.1}\" r=\"4\" fill=\"{fill}\" stroke=\"{color}\"><title>{}</title></circle>",
            escape(&title)
        );
        before = Some((x, y_score));
    }
    svg
}

fn table(points: &[TrendPoint], methods: &[&str], dimension: &str) -> String {
    let mut html = "<div class=\"wide\"><table><thead><tr><th>label</th><th>began (UTC)</th><th>commit</th>".to_owned();
    for method in methods {
        let _ = write!(html, "<th>{}</th>", escape(method));
    }
    html.push_str("</tr></thead><tbody>\n");
    for point in points {
        let note = if point.complete { "" } else { " (incomplete)" };
        let _ = write!(
            html,
            "<tr><td>{}{note}</td><td>{}</td><td>{}</td>",
            escape(&point.label),
            escape(&short_time(point)),
            escape(&short_commit(point))
        );
        for method in methods {
            let _ = write!(html, "<td>{}</td>", score_text(point.score(method, dimension)));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(label: &str, value: f64, measured_otherwise: bool) -> TrendPoint {
        let score = TrendScore { value, ci95: Some([value - 0.2, value + 0.2]) };
        TrendPoint {
            label: label.to_owned(),
            started: "2026-01-02T03:04:05Z".to_owned(),
            commit: Some("0123456789abcdef".to_owned()),
            complete: true,
            measured_otherwise,
            methods: vec![("anchored".to_owned(), vec![("overall".to_owned(), score)])],
        }
    }

    #[test]
    fn scores_are_joined_only_where_they_can_be_compared() {
        let joined = |page: &str| page.matches("stroke-width=\"1.5\"").count();
        let page = trend_page(&[point("a", 3.0, false), point("<b>", 3.5, false), point("c", 4.0, true)]);
        assert_eq!((joined(&page), page.matches("stroke-dasharray").count()), (1, 1));
        assert!(page.contains("3.50 [3.30, 3.70]") && page.contains("&lt;b&gt;") && !page.contains("<b>"));
        assert!(page.contains("2026-01-02 03:04") && page.contains("0123456789<"));
    }

    #[test]
    fn a_score_that_was_not_measured_is_a_dash() {
        assert_eq!(score_text(None), "–");
        assert_eq!(score_text(Some(TrendScore { value: 3.0, ci95: None })), "3.00");
    }
}
