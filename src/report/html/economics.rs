//! Economics on the page of `observe`: the bill, the back-test, and a plot of cost against threshold with its flat region.

use std::fmt::Write as _;

use super::chunks::escape;
use base::text::grouped;
use sessions::economics::{CostCurve, CostPoint, Economics, MethodEconomics};

/// Of a plot, in pixels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 30.0;
const TOP: f64 = 10.0;

/// The sections; the first says what nothing may be concluded from.
pub(super) fn economics_sections(economics: &Economics) -> String {
    let bill = &economics.bill;
    let mut out = format!(
        "<section id=\"economics\"><h2>What the sessions cost</h2>\n<p>{} sessions, {} requests: ${:.2} at list prices. \
         Tokens written to the prompt cache: {}, read from it: {}, other input: {}, output: {}.</p>\n",
        economics.sessions,
        bill.requests,
        bill.total_usd(),
        grouped(bill.cache_write),
        grouped(bill.cache_read),
        grouped(bill.input),
        grouped(bill.output),
    );
    out.push_str(&back_test(economics));
    if let Some(why) = &economics.withheld {
        let _ = writeln!(out, "<p>Nothing is said of other policies: {}.</p>", escape(why));
    }
    economics.methods.iter().for_each(|method| out.push_str(&method_figure(method)));
    if !economics.methods.is_empty() {
        out.push_str("<p>Accounting only: an agent that is compacted elsewhere acts differently afterwards.");
        out.push_str(if economics.partial_output { " Logs of Claude Code count output in part only." } else { "" });
        out.push_str("</p>\n");
    }
    out.push_str("</section>\n");
    out
}

fn back_test(economics: &Economics) -> String {
    const LISTED: usize = 20;
    let mut table = String::new();
    for one in &economics.back_test.formats {
        let _ = writeln!(
            table,
            "<p>Back-test, {}: input computed from sizes, times and compactions is {:.1}% off the logged bill in the \
             median of {} sessions{}.</p>",
            escape(one.format),
            100.0 * one.median_error,
            one.sessions,
            if one.holds { "" } else { ", so nothing is said of these" }
        );
    }
    table.push_str(
        "<details><summary>Error of each session</summary><table><thead><tr><th>session</th><th>read from the cache, \
         logged</th><th>computed</th><th>not read from it, logged</th><th>computed</th><th>error</th></tr></thead><tbody>\n",
    );
    for one in economics.back_test.sessions.iter().take(LISTED) {
        let cells = one.cache_read.iter().chain(&one.uncached).map(|tokens| grouped(*tokens));
        let cells = cells.chain([format!("{:.1}%", 100.0 * one.error)]);
        let cells: String = cells.map(|cell| format!("<td>{cell}</td>")).collect();
        let _ = writeln!(table, "<tr><td>{}</td>{cells}</tr>", escape(&one.session));
    }
    table.push_str("</tbody></table></details>\n");
    table
}

fn method_figure(method: &MethodEconomics) -> String {
    let flat = method.curve.flat;
    let to = flat.to.map_or_else(|| "any larger size".to_owned(), grouped);
    let mut out = format!(
        "<figure><figcaption><b>{}</b>: cost against threshold; flat from {} to {to} tokens, within 2% of ${:.2}.",
        escape(&method.method),
        grouped(flat.from),
        flat.least_usd,
    );
    if let Some(life) = method.life {
        let cycles = life.cycles.map(|cycles| format!(", which reaches the threshold after {cycles} compactions"));
        let _ = write!(
            out,
            " In the middle of it a compaction frees {} tokens and leaves {}{}.",
            grouped(life.freed as u64),
            grouped(life.floor as u64),
            cycles.unwrap_or_default()
        );
    }
    out.push_str("</figcaption>\n");
    out.push_str(&plot(&method.curve));
    out.push_str("</figure>\n");
    out
}

/// Where values lie on a plot: thresholds by their logarithm, dollars from 0.
struct Axes {
    lowest: f64,
    highest: f64,
    most_usd: f64,
}

impl Axes {
    fn new(points: &[CostPoint]) -> Option<Axes> {
        let ln = |point: &CostPoint| (point.threshold.max(1) as f64).ln();
        let most_usd = points.iter().map(|point| point.cost.usd).fold(0.0, f64::max);
        Some(Axes { lowest: ln(points.first()?), highest: ln(points.last()?), most_usd })
    }

    fn x(&self, threshold: u64) -> f64 {
        let span = (self.highest - self.lowest).max(f64::EPSILON);
        LEFT + ((threshold.max(1) as f64).ln() - self.lowest) / span * (WIDTH - LEFT - 20.0)
    }

    fn y(&self, usd: f64) -> f64 {
        let share = if self.most_usd > 0.0 { usd / self.most_usd } else { 0.0 };
        TOP + (1.0 - share) * (HEIGHT - TOP - BOTTOM)
    }
}

fn plot(curve: &CostCurve) -> String {
    let Some(axes) = Axes::new(&curve.points) else { return String::new() };
    let last = curve.points.last().map_or(0, |point| point.threshold);
    let [from, to] = [curve.flat.from, curve.flat.to.unwrap_or(last)].map(|threshold| axes.x(threshold));
    let floor = HEIGHT - BOTTOM;
    let line: Vec<String> = curve
        .points
        .iter()
        .map(|point| format!("{:.1},{:.1}", axes.x(point.threshold), axes.y(point.cost.usd)))
        .collect();
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"100%\" role=\"img\" aria-label=\"cost against threshold\">\n\
         <rect x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\" class=\"flat\"/>\n\
         <polyline points=\"{}\" class=\"m0 line\"/>\n\
         <line x1=\"{LEFT}\" y1=\"{floor}\" x2=\"{WIDTH}\" y2=\"{floor}\" class=\"grid\"/>\n",
        (to - from).max(2.0),
        floor - TOP,
        line.join(" "),
    );
    for usd in [0.0, axes.most_usd / 2.0, axes.most_usd] {
        let y = axes.y(usd) + 4.0;
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{y:.1}\" text-anchor=\"end\">${usd:.2}</text>", LEFT - 6.0);
    }
    for point in curve.points.iter().step_by(3) {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}k</text>",
            axes.x(point.threshold),
            HEIGHT - 10.0,
            point.threshold / 1000
        );
    }
    svg.push_str("</svg>\n");
    svg
}
