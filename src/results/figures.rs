//! Every figure of a method, declared once: what it is computed from, its kind and unit, its words, and the tables that
//! show it. Tables, `--all`, `report.md` and the page come from this list, and a test looks for its words in docs/data.md.

use super::aggregates::planted::PlantedSummary;
use super::aggregates::shares::Share as Counted;
use super::summary::MethodSummary;
use base::locale::Locale;
use stats::Interval;

use FigureKind::{Count, Mean, Share};
use FigureTableId::{Compressions, Contexts, Economy, Planted, Screen};
use Unit::{Dollars, Percent, Points, Seconds, Tenths, Whole};

/// What a figure is over the fixtures of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// The mean over fixtures.
    Mean,
    /// A share of all that could be so.
    Share,
    /// A number of things.
    Count,
}

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// From 0 to 1, as a percentage.
    Percent,
    /// With two decimals.
    Points,
    /// With one decimal.
    Tenths,
    /// A whole number.
    Whole,
    /// US dollars.
    Dollars,
    /// With one decimal, from one second on.
    Seconds,
}

/// A table that shows figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureTableId {
    /// The one table of the first screen.
    Screen,
    /// Sizes, costs and failures.
    Economy,
    /// What contexts say of the facts.
    Contexts,
    /// What became of planted items.
    Planted,
    /// What a compression costs, where nothing was graded.
    Compressions,
}

/// A figure of one method.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// `None` where it is unknown.
    pub value: Option<f64>,
    /// Its interval for other sessions like these.
    pub ci95: Option<Interval>,
    /// Of how many, where that says more than the value alone.
    pub of: Option<u64>,
}

impl From<Option<f64>> for Measured {
    fn from(value: Option<f64>) -> Measured {
        Measured {
            value,
            ..Measured::default()
        }
    }
}

impl From<&Counted> for Measured {
    fn from(found: &Counted) -> Measured {
        Measured {
            value: found.share,
            ci95: found.ci95,
            of: Some(found.of),
        }
    }
}

impl From<u64> for Measured {
    fn from(count: u64) -> Measured {
        Measured::from(Some(count as f64))
    }
}

/// A figure as it is declared.
pub struct Figure {
    /// Its field in `summary.json`, below the method.
    pub id: &'static str,
    /// What it is over fixtures.
    pub kind: FigureKind,
    /// How it is written.
    pub unit: Unit,
    words: [&'static str; 2],
    /// Takes it from the summary of a method.
    pub of: fn(&MethodSummary) -> Measured,
    tables: &'static [FigureTableId],
    /// Whether it has no column where it is 0 or unknown for every method.
    pub is_optional: bool,
}

impl Figure {
    const fn optional(self) -> Figure {
        Figure {
            is_optional: true,
            ..self
        }
    }

    /// Its heading.
    pub fn words(&self, locale: Locale) -> &'static str {
        let [english, chinese] = self.words;
        locale.pick(english, chinese)
    }

    /// The figures of a table, in the order of its columns.
    pub fn of_table(table: FigureTableId) -> impl Iterator<Item = &'static Figure> {
        FIGURES
            .iter()
            .filter(move |figure| figure.tables.contains(&table))
    }
}

const fn figure(
    id: &'static str,
    (kind, unit): (FigureKind, Unit),
    words: [&'static str; 2],
    tables: &'static [FigureTableId],
    of: fn(&MethodSummary) -> Measured,
) -> Figure {
    Figure {
        id,
        kind,
        unit,
        words,
        of,
        tables,
        is_optional: false,
    }
}

/// All figures, in the order of columns.
pub static FIGURES: [Figure; 35] = [
    figure(
        "cells.judged",
        (Count, Whole),
        ["cells", "单元"],
        &[Screen, Economy],
        |m| {
            let cells = &m.cells;
            match cells.judged + cells.failed + cells.missing {
                0 => Measured {
                    of: Some(m.compression.expected),
                    ..m.compression.contexts.into()
                },
                expected => Measured {
                    of: Some(expected),
                    ..cells.judged.into()
                },
            }
        },
    ),
    figure(
        "compression.contexts",
        (Count, Whole),
        ["contexts", "上下文"],
        &[Compressions],
        |m| Measured {
            of: Some(m.compression.expected),
            ..m.compression.contexts.into()
        },
    ),
    figure(
        "context_tokens",
        (Mean, Whole),
        ["tokens", "词元"],
        &[Screen, Economy, Compressions],
        |m| Measured {
            ci95: m.economy.context_tokens_ci95,
            ..m.economy.context_tokens.into()
        },
    ),
    figure(
        "compression_ratio",
        (Mean, Percent),
        ["removed", "压缩掉"],
        &[Economy],
        |m| m.economy.compression_ratio.into(),
    ),
    figure(
        "compression.user_share",
        (Mean, Percent),
        ["user kept", "用户原话"],
        &[Economy, Compressions],
        |m| m.compression.user_share.into(),
    )
    .optional(),
    figure(
        "fact_survival",
        (Mean, Percent),
        ["facts kept", "事实保留"],
        &[Screen, Economy, Compressions],
        |m| m.economy.fact_survival.into(),
    ),
    figure(
        "summary_survival",
        (Mean, Percent),
        ["in summary", "摘要内"],
        &[Screen, Economy],
        |m| m.economy.summary_survival.into(),
    )
    .optional(),
    figure(
        "fact_survival_lift",
        (Mean, Percent),
        ["not guessable", "不可猜事实"],
        &[Economy],
        |m| m.economy.fact_survival_lift.into(),
    ),
    figure(
        "retention.value",
        (Mean, Points),
        ["retention", "保持率"],
        &[Screen, Economy],
        |m| Measured {
            ci95: m.retention.ci95,
            ..m.retention.value.into()
        },
    ),
    figure(
        "tokens_per_question",
        (Mean, Whole),
        ["tokens/question", "每题词元"],
        &[Economy],
        |m| m.economy.tokens_per_question.into(),
    ),
    figure(
        "overclaim.other_value",
        (Share, Percent),
        ["overclaims", "妄称"],
        &[Economy],
        |m| {
            m.economy
                .overclaim
                .as_ref()
                .map_or_else(Measured::default, |found| {
                    Measured::from(&found.other_value)
                })
        },
    ),
    figure(
        "fabrication",
        (Share, Percent),
        ["fabricated", "编造"],
        &[Economy],
        |m| Measured::from(&m.economy.fabrication),
    ),
    figure(
        "stale_facts",
        (Count, Whole),
        ["stale facts", "过时事实"],
        &[Economy],
        |m| m.economy.stale_facts.into(),
    ),
    figure(
        "usd",
        (Count, Dollars),
        ["cost", "费用"],
        &[Screen, Economy],
        |m| m.usd().into(),
    ),
    figure(
        "cells.failed",
        (Count, Whole),
        ["failed", "失败"],
        &[Economy],
        |m| m.cells.failed.into(),
    )
    .optional(),
    figure(
        "cells.missing",
        (Count, Whole),
        ["missing", "缺失"],
        &[Economy],
        |m| m.cells.missing.into(),
    )
    .optional(),
    figure(
        "truncated_share",
        (Share, Percent),
        ["truncated", "截断"],
        &[Economy],
        |m| m.truncated_share.into(),
    )
    .optional(),
    figure(
        "guard.rejected_share",
        (Share, Percent),
        ["rejected", "被拒绝"],
        &[Economy, Compressions],
        |m| m.guard.as_ref().map(|guard| guard.rejected_share).into(),
    )
    .optional(),
    figure(
        "in_context.placed",
        (Mean, Percent),
        ["placed", "对应保留"],
        &[Contexts],
        |m| m.economy.in_context.placed.into(),
    ),
    figure(
        "in_context.sound",
        (Mean, Percent),
        ["sound", "无误保留"],
        &[Contexts],
        |m| m.economy.in_context.sound.into(),
    ),
    figure(
        "in_context.denied",
        (Mean, Percent),
        ["denied", "被否认"],
        &[Contexts],
        |m| m.economy.in_context.denied.into(),
    ),
    figure(
        "in_context.contradicted",
        (Mean, Percent),
        ["contradicted", "自相矛盾"],
        &[Contexts],
        |m| m.economy.in_context.contradicted.into(),
    ),
    figure(
        "in_context.stale",
        (Mean, Points),
        ["stale, a probe", "每题过时"],
        &[Contexts],
        |m| m.economy.in_context.stale.into(),
    ),
    figure(
        "constraints_kept",
        (Mean, Percent),
        ["rules kept", "规则保留"],
        &[Contexts],
        |m| m.economy.constraints_kept.into(),
    ),
    figure(
        "invented.per_1000_tokens",
        (Mean, Tenths),
        ["invented/1k", "臆造/千词元"],
        &[Contexts],
        |m| {
            m.invented
                .as_ref()
                .and_then(|invented| invented.per_1000_tokens)
                .into()
        },
    ),
    figure(
        "planted.obeyed",
        (Share, Percent),
        ["obeyed", "遵守"],
        &[Planted],
        |m| planted(m, |found| &found.obeyed),
    ),
    figure(
        "planted.resurrected",
        (Share, Percent),
        ["came back", "又回来"],
        &[Planted],
        |m| planted(m, |found| &found.resurrected),
    ),
    figure(
        "planted.forgotten",
        (Share, Percent),
        ["forgotten", "遗忘"],
        &[Planted],
        |m| planted(m, |found| &found.forgotten),
    ),
    figure(
        "planted.decoys",
        (Share, Percent),
        ["decoys done", "误做诱饵"],
        &[Planted],
        |m| planted(m, |found| &found.decoys),
    ),
    figure(
        "planted.state_right",
        (Share, Percent),
        ["state right", "状态正确"],
        &[Planted],
        |m| planted(m, |found| &found.state_right),
    ),
    figure(
        "planted.state_harmful",
        (Share, Percent),
        ["harmful", "有害"],
        &[Planted],
        |m| planted(m, |found| &found.state_harmful),
    ),
    figure(
        "planted.rules_kept",
        (Share, Percent),
        ["rules kept", "规则保留"],
        &[Planted],
        |m| planted(m, |found| &found.rules_kept),
    ),
    figure(
        "compression.calls",
        (Mean, Whole),
        ["calls", "调用"],
        &[Compressions],
        |m| m.compression.calls.into(),
    ),
    figure(
        "compression.usd",
        (Mean, Dollars),
        ["cost", "费用"],
        &[Compressions],
        |m| m.compression.usd.into(),
    ),
    figure(
        "compression.seconds",
        (Mean, Seconds),
        ["seconds", "秒"],
        &[Compressions],
        |m| m.compression.seconds.into(),
    ),
];

fn planted(method: &MethodSummary, of: fn(&PlantedSummary) -> &Counted) -> Measured {
    let found = method.planted.as_ref();
    found.map_or_else(Measured::default, |found| Measured::from(of(found)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_page_on_data_has_every_figure_and_no_id_is_used_twice() {
        let page = include_str!("../../docs/data.md");
        for part in FIGURES.iter().flat_map(|figure| figure.id.split('.')) {
            assert!(page.contains(&format!("`{part}`")), "docs/data.md: {part}");
        }
        let ids: BTreeSet<&str> = FIGURES.iter().map(|figure| figure.id).collect();
        assert_eq!(ids.len(), FIGURES.len());
    }
}
