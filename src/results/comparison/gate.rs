//! The gate: what got worse, with a line for each regression.

use super::changes::{LostConstraint, ProbeFact};
use super::reliability::FailedChain;
use super::values::{Comparison, MethodComparison};
use crate::results::aggregates::planted::{PlantedComparison, PlantedTest};
use crate::results::result_set::selection::OVERALL;
use base::say;
use stats::{DifferenceTest, NoEvidenceReason, Verdict};

/// One thing that got worse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regression {
    /// The method; `None` for the mean over the methods tested.
    pub method: Option<String>,
    /// `overall`, a dimension, `constraint`, `planted`, `absent`, or `reliability`.
    pub what: String,
    /// A sentence with the figures that decided it.
    pub why: String,
}

impl Regression {
    fn new(method: &str, what: &str, why: &str) -> Regression {
        Regression {
            method: Some(method.to_owned()),
            what: what.to_owned(),
            why: format!("{method}: {why}"),
        }
    }
}

/// All regressions of a comparison: of the mean over the tested methods, then of each method, in the order of tables.
pub fn regressions(comparison: &Comparison) -> Vec<Regression> {
    let primary = comparison
        .primary
        .as_ref()
        .filter(|judged| judged.verdict == Verdict::Regressed);
    let primary = primary.map(|judged| Regression {
        method: None,
        what: OVERALL.to_owned(),
        why: describe_mean(judged, comparison),
    });
    let methods = comparison.methods.iter();
    let of_methods =
        methods.flat_map(|(method, compared)| method_regressions(comparison, method, compared));
    let absent = comparison.absent.iter().map(|method| {
        let why = say!(
            comparison.locale,
            "missing here, present in {}",
            "本侧缺少，而 {} 有",
            comparison.baseline
        );
        Regression::new(method, "absent", &why)
    });
    primary
        .into_iter()
        .chain(of_methods)
        .chain(absent)
        .collect()
}

fn method_regressions(
    comparison: &Comparison,
    method: &str,
    compared: &MethodComparison,
) -> Vec<Regression> {
    let worse = compared
        .tests()
        .filter(|(_, judged)| judged.verdict == Verdict::Regressed);
    let scores = worse.map(|(what, judged)| {
        Regression::new(
            method,
            what,
            &format!("{what} {}", describe_difference(judged, comparison)),
        )
    });
    let reliability = Some(&compared.reliability)
        .filter(|reliability| reliability.test.regressed)
        .map(|found| {
            let counts = found.counts;
            let why = say!(
                comparison.locale,
                "failed {} of {} chains (fixture and run), in {} {} of {}, p {} on these fixtures",
                "{1} 条链（样本与次数）中失败 {0} 条，{2} 为 {3}/{4}，p {5}（这些样本上）",
                counts.failed,
                counts.chains,
                comparison.baseline,
                counts.baseline_failed,
                counts.baseline_chains,
                probability(found.test.p_adjusted),
            );
            Regression::new(method, "reliability", &why)
        });
    let constraints = compared
        .constraints_lost
        .iter()
        .filter(|lost| lost.is_confirmed);
    let constraints = constraints
        .map(|lost| Regression::new(method, CONSTRAINT, &describe_loss(lost, comparison)));
    let planted = compared
        .planted
        .iter()
        .flat_map(PlantedComparison::regressed);
    let planted = planted.map(|(what, test)| {
        let why = describe_planted(what, test, comparison);
        Regression::new(method, PLANTED, &why)
    });
    let own = scores.chain(constraints).chain(reliability);
    own.chain(planted).collect()
}

/// Whether it has no verdict because the judge may be the cause of the difference.
pub fn is_drift(judged: &DifferenceTest) -> bool {
    use NoEvidenceReason::{DriftNotExcluded, JudgeDrift};
    matches!(judged.reason, Some(JudgeDrift | DriftNotExcluded))
}

/// Whether it is a loss that the judge may be the cause of.
fn may_be_drift(judged: &DifferenceTest) -> bool {
    judged.difference < 0.0 && is_drift(judged)
}

/// A sentence for each loss that would be a regression if the judge had not changed.
pub fn drifted_losses(comparison: &Comparison) -> Vec<String> {
    let mean = comparison
        .primary
        .iter()
        .filter(|judged| may_be_drift(judged))
        .map(|judged| describe_mean(judged, comparison));
    let mut losses: Vec<String> = mean.collect();
    for (method, compared) in &comparison.methods {
        let drifted = compared.tests().filter(|(_, judged)| may_be_drift(judged));
        losses.extend(drifted.map(|(what, judged)| {
            format!(
                "{method}: {what} {}",
                describe_difference(judged, comparison)
            )
        }));
    }
    losses
}

/// Constraints that contexts lost by literal rules, while no grades confirm it: no regressions, but worth a look.
pub fn unconfirmed_losses(comparison: &Comparison) -> Vec<String> {
    let lost = comparison.methods.iter().flat_map(|(method, compared)| {
        compared
            .constraints_lost
            .iter()
            .map(move |lost| (method, lost))
    });
    let unconfirmed = lost.filter(|(_, lost)| !lost.is_confirmed);
    unconfirmed
        .map(|(method, lost)| format!("{method}: {}", describe_loss(lost, comparison)))
        .collect()
}

/// `the constraint "no new dependency" (shop · point 1 · p3) is lost in 3 of 3 chains; b keeps it`.
fn describe_loss(lost: &LostConstraint, comparison: &Comparison) -> String {
    let (ProbeFact { at, fact }, count, chains) = (&lost.fact, lost.lost, lost.chains);
    let (fixture, point, probe) = (&at.fixture, at.point, &at.probe);
    let locale = comparison.locale;
    let judge = if lost.is_confirmed {
        locale.pick("no judge finds it in an answer", "没有评审在回答中找到它")
    } else if lost.is_graded {
        locale.pick(
            "the grades do not say whether an answer has it",
            "评分无法说明回答中是否有它",
        )
    } else {
        locale.pick("no model judged it", "没有模型评审过它")
    };
    let kept = &comparison.baseline;
    say!(
        locale,
        "the constraint \"{fact}\" ({fixture} · point {point} · {probe}) is lost in {count} of {chains} chains; {kept} keeps \
         it, and {judge}",
        "约束“{fact}”（{fixture} · 压缩点 {point} · {probe}）在 {chains} 条链中丢失 {count} 条；{kept} 保留了它，{judge}"
    )
}

/// `11 of 24 cancelled items wrong, 2 of 24 in main, p 0.012`.
fn describe_planted(what: &str, test: &PlantedTest, comparison: &Comparison) -> String {
    let (locale, baseline) = (comparison.locale, &comparison.baseline);
    let p = test.p_adjusted.map(probability).unwrap_or_default();
    let name = match what {
        "resurrected" => locale
            .pick("closed tasks that came back", "已了结却又被重做的任务")
            .to_owned(),
        "forgotten" => locale
            .pick(
                "open tasks and jobs forgotten",
                "被遗忘的未办任务与在跑作业",
            )
            .to_owned(),
        _ => say!(
            locale,
            "wrong answers about planted items of the kind `{what}`",
            "`{what}` 类植入项出错"
        ),
    };
    say!(
        locale,
        "{name}: {} of {}, in {baseline} {} of {}, p {p}",
        "{name}：{1} 项中 {0} 项，{baseline} 中 {3} 项里 {2} 项，p {p}",
        test.after.count,
        test.after.of,
        test.before.count,
        test.before.of
    )
}

/// What planted items that go wrong more often are called there.
const PLANTED: &str = "planted";

/// What a lost constraint is called in [`Regression::what`].
const CONSTRAINT: &str = "constraint";

/// The difference of the mean over the methods tested.
fn describe_mean(judged: &DifferenceTest, comparison: &Comparison) -> String {
    let (count, difference) = (comparison.tested, describe_difference(judged, comparison));
    say!(
        comparison.locale,
        "mean of {count} methods: {OVERALL} {difference}",
        "{count} 个方法的平均：{OVERALL} {difference}"
    )
}

/// `−1.00 [−1.31, −0.69] on 4 of 8 fixtures that changed (over all −0.50), p 0.003, against main`.
fn describe_difference(judged: &DifferenceTest, comparison: &Comparison) -> String {
    let interval = judged
        .ci95
        .map(|ci| format!(" [{}, {}]", signed(ci.low()), signed(ci.high())))
        .unwrap_or_default();
    let p = judged
        .p_adjusted
        .map(|p| format!(", p {}", probability(p)))
        .unwrap_or_default();
    let (locale, clusters) = (comparison.locale, judged.clusters);
    let fixtures = match judged.unchanged {
        0 => locale.count(clusters, "fixture", "个样本"),
        unchanged => {
            let (all, over_all) = (clusters + unchanged, signed(judged.difference_all));
            say!(
                locale,
                "{clusters} of {all} fixtures that changed (over all {over_all})",
                "{all} 个样本中有变化的 {clusters} 个（全部 {over_all}）"
            )
        }
    };
    let (difference, baseline) = (signed(judged.difference), &comparison.baseline);
    say!(
        locale,
        "{difference}{interval} on {fixtures}{p}, against {baseline}",
        "{difference}{interval}，{fixtures}{p}，对比 {baseline}"
    )
}

/// `+0.47` or `−0.47`; zero has no minus sign.
pub fn signed(value: f64) -> String {
    let text = format!("{value:+.2}");
    if text == "-0.00" {
        "+0.00".to_owned()
    } else {
        text.replace('-', "−")
    }
}

/// `0.012`; never rounded to zero.
pub fn probability(p: f64) -> String {
    if p < 0.0005 {
        "<0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}

/// Methods whose `overall` could lose more than a point unnoticed, each with the smallest detectable change if there is
/// one on the scale. Not listed are methods that differ by the same on all fixtures (they say nothing about noise),
/// methods with a verdict, and methods that changed in too few fixtures for a test (another note says so).
pub fn underpowered_methods(comparison: &Comparison) -> Vec<(&str, Option<f64>)> {
    let overall = comparison
        .methods
        .iter()
        .filter_map(|(method, compared)| Some((method, compared.overall.as_ref()?)));
    let blind = overall.filter(|(_, judged)| {
        judged.is_underpowered() && judged.reason != Some(NoEvidenceReason::FewClusters)
    });
    blind
        .map(|(method, judged)| (method.as_str(), judged.mdd))
        .collect()
}

/// Whether answers changed and no dimension is left to test them in, so that no loss of scores could be seen.
pub fn measures_nothing(comparison: &Comparison) -> bool {
    let mut changed = comparison
        .methods
        .values()
        .filter(|method| method.fixtures.tested() > 0)
        .peekable();
    changed.peek().is_some()
        && changed.all(|method| method.overall.is_none() && method.dimensions.is_empty())
}

/// Every chain that fails now and did not fail in the baseline, with its method.
pub fn newly_failing(comparison: &Comparison) -> impl Iterator<Item = (&str, &FailedChain)> {
    comparison.methods.iter().flat_map(|(method, compared)| {
        compared
            .reliability
            .newly_failing
            .iter()
            .map(move |chain| (method.as_str(), chain))
    })
}
