//! Economics on the page of `observe`: its sections, and a plot of cost against threshold for each method.

use std::fmt::Write as _;

use super::chunks::escape;
use super::document::sections;
use crate::report::economics::{economics, method_name};
use base::locale::localized;
use base::units::Usd;
use sessions::economics::{CostCurve, CostPoint, Economics, MethodEconomics};

/// The sizes of a plot, in pixels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 30.0;
const TOP: f64 = 10.0;

/// What restricts the conclusions comes before the plots.
pub(super) fn economics_sections(found: &Economics, others: usize) -> String {
    let plots = found.methods.iter().map(method_figure);
    sections(&economics(found, others)) + &plots.collect::<String>()
}

fn amount(usd: f64) -> String {
    escape(&Usd(usd).to_string())
}

fn method_figure(method: &MethodEconomics) -> String {
    format!(
        "<figure><figcaption><b>{}</b></figcaption>\n<div class=\"wide\" tabindex=\"0\">{}</div></figure>\n",
        escape(method_name(method)),
        plot(&method.curve)
    )
}

/// The axes of a plot: thresholds by their logarithm, dollars from 0.
struct Axes {
    lowest: f64,
    highest: f64,
    most_usd: f64,
}

impl Axes {
    fn new(points: &[CostPoint]) -> Option<Axes> {
        let most_usd = points
            .iter()
            .map(|point| point.cost.usd)
            .fold(0.0, f64::max);
        Some(Axes {
            lowest: logarithm(points.first()?.threshold),
            highest: logarithm(points.last()?.threshold),
            most_usd,
        })
    }

    fn x(&self, threshold: u64) -> f64 {
        let span = (self.highest - self.lowest).max(f64::EPSILON);
        LEFT + (logarithm(threshold) - self.lowest) / span * (WIDTH - LEFT - 20.0)
    }

    fn y(&self, usd: f64) -> f64 {
        let share = if self.most_usd > 0.0 {
            usd / self.most_usd
        } else {
            0.0
        };
        TOP + (1.0 - share) * (HEIGHT - TOP - BOTTOM)
    }
}

fn logarithm(threshold: u64) -> f64 {
    (threshold.max(1) as f64).ln()
}

fn plot(curve: &CostCurve) -> String {
    let Some(axes) = Axes::new(&curve.points) else {
        return String::new();
    };
    let last = curve.points.last().map_or(0, |point| point.threshold);
    let [from, to] =
        [curve.flat.from, curve.flat.to.unwrap_or(last)].map(|threshold| axes.x(threshold));
    let floor = HEIGHT - BOTTOM;
    let line: Vec<String> = curve
        .points
        .iter()
        .map(|point| {
            format!(
                "{:.1},{:.1}",
                axes.x(point.threshold),
                axes.y(point.cost.usd)
            )
        })
        .collect();
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"100%\" role=\"img\" aria-label=\"{}\">\n\
         <rect x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\" class=\"flat\"/>\n\
         <polyline points=\"{}\" class=\"m0 line\"/>\n\
         <line x1=\"{LEFT}\" y1=\"{floor}\" x2=\"{WIDTH}\" y2=\"{floor}\" class=\"grid\"/>\n",
        localized("cost against threshold", "费用与触发大小"),
        (to - from).max(2.0),
        floor - TOP,
        line.join(" "),
    );
    for usd in [0.0, axes.most_usd / 2.0, axes.most_usd] {
        let y = axes.y(usd) + 4.0;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            amount(usd)
        );
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
