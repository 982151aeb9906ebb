//! Economics on the page of `observe`: the bill, the back-test, and a plot of cost against threshold with its flat
//! region.

use std::fmt::Write as _;

use super::chunks::escape;
use crate::report::numbers::counted;
use base::locale::localized;
use base::say;
use base::text::grouped;
use base::units::Usd;
use sessions::economics::{
    AS_RECORDED, ClockFaults, CostCurve, CostPoint, Economics, MethodEconomics,
};
use sessions::import::Format;

/// The sizes of a plot, in pixels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 30.0;
const TOP: f64 = 10.0;

/// The section on economics. What restricts its conclusions comes before the plots.
pub(super) fn economics_sections(economics: &Economics) -> String {
    let bill = &economics.bill;
    let of = say!(
        "{}, {}: {} at list prices. Tokens written to the prompt cache: {}, read from it: {}, other input: {}, output: {}.",
        "{}，{}：按标价 {}。写入提示缓存的词元 {}，从中读取 {}，其他输入 {}，输出 {}。",
        sessions(economics.sessions),
        counted(bill.requests, ["request", "requests"], "次请求"),
        amount(bill.total_usd()),
        grouped(bill.cache_write),
        grouped(bill.cache_read),
        grouped(bill.input),
        grouped(bill.output),
    );
    let title = localized("What the sessions cost", "这些会话的费用");
    let mut out = format!(
        "<section id=\"economics\"><h2>{title}</h2>\n<p>{of}</p>\n{}",
        left_out(economics)
    );
    out.push_str(&back_test(economics));
    out.extend(clock_faults(economics.clock_faults));
    if let Some(why) = &economics.withheld {
        let said = say!(
            "Other policies were not simulated: {}.",
            "对其他策略不作判断：{}。",
            why.message()
        );
        let _ = writeln!(out, "<p>{}</p>", escape(&said));
    }
    economics
        .methods
        .iter()
        .for_each(|method| out.push_str(&method_figure(method)));
    if !economics.methods.is_empty() {
        let products = Format::products(&Format::counting_output_in_part(), localized("and", "和"));
        let partial = say!(
            " Logs of {products} count output in part only.",
            "{products} 的日志只计部分输出。"
        );
        let of = say!(
            "The curves are of {}. ",
            "曲线基于 {}。",
            sessions(economics.simulated)
        );
        let _ = writeln!(
            out,
            "<p>{of}{}{}</p>",
            Economics::caveat(),
            if economics.partial_output {
                &*partial
            } else {
                ""
            }
        );
    }
    out.push_str("</section>\n");
    out
}

fn amount(usd: f64) -> String {
    escape(&Usd(usd).to_string())
}

fn sessions(number: usize) -> String {
    counted(number, ["session", "sessions"], "个会话")
}

/// The sessions that are in no figure, and why.
fn left_out(economics: &Economics) -> String {
    let by_reason = economics.left_out_by_reason();
    let said = by_reason.iter().map(|(why, names)| {
        say!(
            "{} left out: {why} ({})",
            "{}未计入：{why}（{}）",
            sessions(names.len()),
            names.join(", ")
        )
    });
    said.map(|text| format!("<p>{}</p>\n", escape(&text)))
        .collect()
}

/// How many times between requests are unknown because clocks went back.
fn clock_faults(faults: ClockFaults) -> Option<String> {
    (faults.requests > 0).then(|| {
        let said = say!(
            "In {} the clock went back: how long {} came after the one before is not known, and the cache is taken to have \
             been kept there.",
            "{} 的时钟曾倒退：{} 距前一次多久不得而知，此处视为缓存未过期。",
            sessions(faults.sessions),
            counted(faults.requests, ["request", "requests"], "次请求"),
        );
        format!("<p>{said}</p>\n")
    })
}

fn back_test(economics: &Economics) -> String {
    const LISTED: usize = 20;
    let mut table = String::new();
    for one in &economics.back_test.formats {
        let said = say!(
            "Back-test, {}: input computed from sizes, times and compactions is {:.1}% off the logged bill in the median of \
             {}",
            "回测，{}：由大小、时间与压缩算出的输入与记录账单相差 {:.1}%（中位数，{}）",
            escape(one.format),
            100.0 * one.median_error,
            sessions(one.sessions),
        );
        let consequence = match one.holds {
            true => localized(".", "。"),
            false => localized(", too far off to simulate.", "，因此对其不作判断。"),
        };
        let _ = writeln!(table, "<p>{said}{consequence}</p>");
    }
    let columns = [
        localized("session", "会话"),
        localized("read from the cache, logged", "读自缓存，记录"),
        localized("computed", "算出"),
        localized("not read from it, logged", "未读自缓存，记录"),
        localized("computed", "算出"),
        localized("error", "误差"),
    ];
    let columns = columns.map(|column| format!("<th>{column}</th>")).concat();
    let summary = localized("Error of each session", "每个会话的误差");
    let _ = writeln!(
        table,
        "<details><summary>{summary}</summary><div class=\"wide\" tabindex=\"0\"><table><thead><tr>{columns}</tr></thead><tbody>"
    );
    for one in economics.back_test.sessions.iter().take(LISTED) {
        let cells = one
            .cache_read
            .iter()
            .chain(&one.uncached)
            .map(|tokens| grouped(*tokens));
        let cells = cells.chain([format!("{:.1}%", 100.0 * one.error)]);
        let cells: String = cells.map(|cell| format!("<td>{cell}</td>")).collect();
        let _ = writeln!(table, "<tr><td>{}</td>{cells}</tr>", escape(&one.session));
    }
    table.push_str("</tbody></table></div></details>\n");
    table
}

fn method_figure(method: &MethodEconomics) -> String {
    let flat = method.curve.flat;
    let to = flat.to.map_or_else(
        || localized("any larger size", "任意更大").to_owned(),
        grouped,
    );
    let name = if method.method == AS_RECORDED {
        localized(AS_RECORDED, "按记录")
    } else {
        &method.method
    };
    let mut caption = say!(
        "<b>{}</b>: cost against threshold; flat from {} to {to} tokens, within 2% of {}.",
        "<b>{}</b>：费用与触发大小的关系；平坦区自 {} 至 {to} 词元，与 {} 相差不到 2%。",
        escape(name),
        grouped(flat.from),
        amount(flat.least_usd),
    );
    if let Some(life) = method.life {
        caption.push_str(&say!(
            " In the middle of it a compaction frees {} tokens and leaves {}",
            "在其中部，一次压缩释放 {} 词元，留下 {}",
            grouped(life.freed as u64),
            grouped(life.floor as u64),
        ));
        caption.extend(life.cycles.map(|cycles| {
            say!(
                ", which reaches the threshold after {}",
                "，{}后达到触发大小",
                counted(cycles, ["compaction", "compactions"], "次压缩")
            )
        }));
        caption.push_str(localized(".", "。"));
    }
    format!(
        "<figure><figcaption>{caption}</figcaption>\n<div class=\"wide\" tabindex=\"0\">{}</div></figure>\n",
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
