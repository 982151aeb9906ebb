//! `compeval plan --power`: the smallest detectable change of the selection, before money is spent, and what one more
//! fixture, probe, run, answer or judgement would gain.

use serde_json::json;

use crate::cli::args::{Common, SelectArgs};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{Noun, count};
use crate::cli::project::{ProjectOptions, open_project};
use crate::cli::terminal::{Column, Console, TextStyle, render_table};
use crate::pipeline::Pipeline;
use crate::results::{ResultSet, difference_variances, mean_call_costs, newest};
use base::locale::localized;
use base::say;
use base::units::Usd;
use stats::{CallCosts, DesignFactor, DifferenceVariances, MarginalGain, SampleSizes};

/// Assumed where no results say more: variances of a difference of two prompts with models of 2025, in points².
const USUAL: DifferenceVariances = DifferenceVariances {
    fixture: 0.06,
    probe: 0.36,
    compress_run: 0.18,
    compress_probe: 0.10,
    answer: 0.18,
    judge: 0.30,
};

/// Where prices are not known, each request counts the same.
const REQUESTS: CallCosts = CallCosts {
    compress: 1.0,
    answer: 1.0,
    judge: 1.0,
};

/// A difference that a user may hope to see, in points.
const HOPED_FOR: f64 = 0.4;

/// The least gain in half-width, in points, for which one more is worth its cost.
const WORTHWHILE: f64 = 0.01;

/// The variances, and what they are taken from.
struct EstimateBasis {
    variances: DifferenceVariances,
    /// Null where prices are not known.
    costs: Option<CallCosts>,
    words: String,
}

pub(crate) fn run(
    common: &Common,
    select: &SelectArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    let pipeline = open_project(common, select, ProjectOptions::default(), console)?;
    let (design, basis) = (sample_sizes(&pipeline), estimate_basis(&pipeline));
    let costs = basis.costs.unwrap_or(REQUESTS);
    let bought = basis.variances.purchases(&design, &costs);
    let smallest = basis.variances.smallest_detectable(&design);
    let half_width = basis.variances.half_width(&design);
    let json = json!({
        "design": design,
        "variances": basis.variances,
        "basis": basis.words,
        "cost_unit": if basis.costs.is_some() { "usd" } else { "requests" },
        "half_width": half_width,
        "smallest_detectable": smallest,
        "one_more": bought,
    });
    console.report(&json, || {
        let shape =
            say!("{} × {:.1} probes × {}", "{} × {:.1} 个问题 × {}", fixtures(&design), design.probes, runs(&design));
        console.print(&console.paint(TextStyle::Strong, &say!("Two methods on {shape}", "两个方法，{shape}")));
        console.print(&match smallest.zip(half_width) {
            Some((smallest, width)) => {
                say!(
                    "Smallest detectable change: {smallest:.2} points, which get a verdict in 80%; the interval is ±{width:.2}.",
                    "最小可检出变化：{smallest:.2} 分，有 80% 的机会得出结论；区间为 ±{width:.2}。"
                )
            }
            None => localized("A verdict needs three fixtures.", "下结论需要三个样本。").to_owned(),
        });
        console.print(&say!("Noise: {}.", "噪声：{}。", basis.words));
        if !bought.is_empty() {
            console.print(&format!("\n{}", table(&bought, basis.costs.is_some(), console)));
        }
        advice(&basis.variances, &design, &bought).iter().for_each(|line| console.print(line));
    });
    Ok(Exit::Done)
}

fn sample_sizes(pipeline: &Pipeline) -> SampleSizes {
    let probes: usize = pipeline
        .fixtures
        .iter()
        .flat_map(|fixture| &fixture.selected)
        .map(Vec::len)
        .sum();
    let runs = pipeline.settings.runs;
    SampleSizes {
        fixtures: pipeline.fixtures.len(),
        probes: probes as f64 / pipeline.fixtures.len().max(1) as f64,
        runs: runs.compress,
        answers: runs.answer,
        judgements: runs.judge,
    }
}

/// The variances of the newest results, or the usual ones. Results that cannot be read are no reason to fail: only
/// their variances are of use here.
fn estimate_basis(pipeline: &Pipeline) -> EstimateBasis {
    let set = newest(&pipeline.results)
        .ok()
        .and_then(|newest| ResultSet::read(&newest.folder).ok());
    let found = set
        .as_ref()
        .and_then(|set| Some((set, difference_variances(set)?)));
    let Some((set, (variances, pairs))) = found else {
        let words = localized(
            "usual variances are assumed until results of two methods on four fixtures say more",
            "在有两个方法、四个样本的结果之前，采用通常的方差",
        )
        .to_owned();
        return EstimateBasis {
            variances: USUAL,
            costs: None,
            words,
        };
    };
    let stand_in = if set.design().is_lexical() {
        localized(
            ", of the stand-in: not what a model varies by",
            "，出自替身，并非模型的波动",
        )
    } else {
        ""
    };
    let words = say!(
        "{} in results `{}`{stand_in}",
        "{}，结果 `{}`{stand_in}",
        count(pairs, Noun::MethodPair),
        set.manifest.label
    );
    EstimateBasis {
        variances,
        costs: mean_call_costs(set).filter(|costs| costs.judge > 0.0),
        words,
    }
}

fn table(bought: &[MarginalGain], is_priced: bool, console: &Console) -> String {
    let unit = if is_priced {
        localized("cost", "费用")
    } else {
        localized("requests", "请求")
    };
    let columns = [
        Column::Left(localized("one more", "增加一个")),
        Column::Right(localized("interval", "区间")),
        Column::Right(localized("gain", "增益")),
        Column::Right(unit),
        Column::Right(localized("gain per 100", "每 100 的增益")),
    ];
    let rows = bought.iter().map(|purchase| {
        let each = purchase
            .gain_per_cost()
            .map_or("–".to_owned(), |gain| format!("{:.3}", 100.0 * gain));
        let cost = if is_priced {
            Usd(purchase.cost).to_string()
        } else {
            format!("{:.0}", purchase.cost)
        };
        vec![
            name(purchase),
            format!("±{:.2}", purchase.half_width),
            format!("{:.3}", purchase.gain),
            cost,
            each,
        ]
    });
    render_table(&columns, rows, console.width())
}

fn name(purchase: &MarginalGain) -> String {
    match purchase.what {
        DesignFactor::Fixture => localized("fixture *", "样本 *").to_owned(),
        DesignFactor::Probe => localized("probe per fixture *", "每样本问题 *").to_owned(),
        DesignFactor::Runs => say!("runs: {}", "运行：{}", purchase.with.runs),
        DesignFactor::Answer => say!(
            "answers per run: {}",
            "每次运行的回答：{}",
            purchase.with.answers
        ),
        DesignFactor::Judgement => say!(
            "judgements per answer: {}",
            "每个回答的评分：{}",
            purchase.with.judgements
        ),
    }
}

fn advice(
    variances: &DifferenceVariances,
    design: &SampleSizes,
    bought: &[MarginalGain],
) -> Vec<String> {
    let mut lines = Vec::new();
    if !bought.is_empty() {
        lines.push(localized("* and the work of writing it", "* 另加编写的工作").to_owned());
    }
    let of_runs = bought
        .iter()
        .filter(|purchase| !matches!(purchase.what, DesignFactor::Fixture | DesignFactor::Probe));
    if !bought.is_empty() && of_runs.clone().all(|purchase| purchase.gain < WORTHWHILE) {
        lines.push(
            localized(
                "More repetitions will not help; more fixtures will.",
                "增加重复没有帮助，增加样本才有。",
            )
            .to_owned(),
        );
    }
    let wide = SampleSizes {
        fixtures: design.fixtures * design.runs as usize,
        runs: 1,
        ..*design
    };
    let powers = variances
        .power(&wide, HOPED_FOR)
        .zip(variances.power(design, HOPED_FOR));
    if let Some((wider, now)) = powers.filter(|(wider, now)| design.runs > 1 && wider > now) {
        lines.push(say!("Fixtures beat runs: {} × 1 run find a difference of {HOPED_FOR} in {:.0}%; {} × {}, at the same price, in {:.0}%.", "样本优于重复：{} × 1 次运行有 {:.0}% 的机会发现 {HOPED_FOR} 的差值；同样价格的 {} × {} 为 {:.0}%。",
            fixtures(&wide),
            100.0 * wider,
            fixtures(design),
            runs(design),
            100.0 * now,
        ));
    }
    lines
}

fn fixtures(design: &SampleSizes) -> String {
    count(design.fixtures as u64, Noun::Fixture)
}

fn runs(design: &SampleSizes) -> String {
    count(u64::from(design.runs), Noun::Run)
}
