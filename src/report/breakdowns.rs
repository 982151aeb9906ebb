//! Descriptive tables without verdicts: what contexts say, open book, survival by age, and constraints. They are the same in
//! terminal, Markdown and page.

use std::collections::BTreeSet;

use serde::Serialize;

use super::numbers::{UNKNOWN, brackets, count, range, score, share, share_with_interval, signed};
use super::open_book::archive_sentence;
use super::translation::{Translation, fill};
use crate::results::{
    ConstraintShares, ConstraintSummary, Economy, MethodSummary, NotCompressed, OpenBookSummary, Ordered, Share,
    Summary, SurvivalByAge,
};
use base::text::grouped;
use lexical::claims::RulePosition;
use sessions::economics::LifeCycle;

/// The id of the table of survival by age.
pub(super) const SURVIVAL_BY_AGE: &str = "ages";

/// A table as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FigureTable {
    /// Names its part of the page.
    pub id: &'static str,
    pub title: String,
    pub lead: String,
    pub header: Vec<String>,
    /// The name of a method, and its figures.
    pub rows: Vec<(String, Vec<String>)>,
}

impl FigureTable {
    /// The table without rows and columns that hold no figure; `None` where none is left.
    pub(super) fn without_void(mut self) -> Option<FigureTable> {
        let is_figure = |text: &String| !text.is_empty() && text != UNKNOWN;
        self.rows.retain(|(_, figures)| figures.iter().any(is_figure));
        let columns = self.header.len().saturating_sub(1);
        let is_kept: Vec<bool> = (0..columns)
            .map(|at| self.rows.iter().any(|(_, figures)| figures.get(at).is_some_and(is_figure)))
            .collect();
        let kept = |at: usize| is_kept.get(at).copied().unwrap_or(false);
        let keep = |texts: Vec<String>, first: usize| -> Vec<String> {
            texts
                .into_iter()
                .enumerate()
                .filter(|(at, _)| *at < first || kept(at - first))
                .map(|(_, text)| text)
                .collect()
        };
        self.header = keep(self.header, 1);
        self.rows = self.rows.into_iter().map(|(name, figures)| (name, keep(figures, 0))).collect();
        (!self.rows.is_empty()).then_some(self)
    }
}

/// The tables for which there is something to show.
pub(super) fn breakdowns(summary: &Summary, tr: &Translation) -> Vec<FigureTable> {
    let tables = [
        in_context(summary, tr),
        not_compressed(summary, tr),
        open_book(summary, tr),
        survival_by_age(summary, tr),
        lifetime(summary, tr),
        constraints(summary, tr),
    ];
    tables.into_iter().flatten().filter_map(FigureTable::without_void).collect()
}

/// The rows of the methods that have what is shown.
fn rows<'s, T: 's>(
    summary: &'s Summary,
    of: impl Fn(&'s MethodSummary) -> Option<&'s T>,
    figures: impl Fn(&T) -> Vec<String>,
) -> Vec<(String, Vec<String>)> {
    let row = |(name, method): (&String, &'s MethodSummary)| Some((name.to_owned(), figures(of(method)?)));
    summary.methods.iter().filter_map(row).collect()
}

fn header(tr: &Translation, columns: impl IntoIterator<Item = String>) -> Vec<String> {
    std::iter::once(tr.method.to_owned()).chain(columns).collect()
}

fn cell(found: Option<&Share>, tr: &Translation) -> String {
    found.map_or_else(|| UNKNOWN.to_owned(), |found| share_with_interval(found, tr))
}

/// The names of groups in any method, in the order of their numbers.
fn names<'s>(groups: impl Iterator<Item = &'s String>) -> Vec<&'s str> {
    let number = |name: &str| name.trim_end_matches('+').parse::<u32>().unwrap_or(u32::MAX);
    groups
        .map(|name| (number(name), name.as_str()))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|(_, name)| name)
        .collect()
}

/// What contexts say of the facts of probes, and what they say that their transcripts do not.
fn in_context(summary: &Summary, tr: &Translation) -> Option<FigureTable> {
    let figures = |method: &MethodSummary| -> Vec<String> {
        let Economy { in_context: found, constraints_kept, .. } = &method.economy;
        let stale = found.stale.map_or_else(|| UNKNOWN.to_owned(), |stale| format!("{stale:.2}"));
        let invented = method.invented.as_ref().and_then(|invented| invented.per_1000_tokens);
        let invented = invented.map_or_else(|| UNKNOWN.to_owned(), |rate| format!("{rate:.1}"));
        let [placed, sound, denied, contradicted] =
            [found.placed, found.sound, found.denied, found.contradicted].map(share);
        vec![placed, sound, denied, contradicted, stale, share(*constraints_kept), invented]
    };
    let columns =
        [tr.placed, tr.sound, tr.denied, tr.contradicted, tr.stale_in_context, tr.constraints_kept, tr.invented];
    let table = FigureTable {
        id: "in-context",
        title: tr.in_context_title.to_owned(),
        lead: tr.in_context_note.to_owned(),
        header: header(tr, columns.map(str::to_owned)),
        rows: rows(summary, Some, figures),
    };
    table.without_void()
}

/// What was answered from contexts in which nothing was compressed; `None` where there are none.
fn not_compressed(summary: &Summary, tr: &Translation) -> Option<FigureTable> {
    let figures = |apart: &NotCompressed| -> Vec<String> {
        let contexts = format!("{}/{}", grouped(apart.contexts), grouped(apart.of));
        let overall = format!("{} {}", score(apart.overall.median), range(apart.overall.ci95));
        vec![contexts, overall.trim().to_owned(), share(apart.fact_survival)]
    };
    let columns = [tr.contexts, tr.overall, tr.survival].map(str::to_owned);
    let rows = rows(summary, |method| method.not_compressed.as_ref(), figures);
    (!rows.is_empty()).then(|| FigureTable {
        id: "not-compressed",
        title: tr.not_compressed_title.to_owned(),
        lead: tr.not_compressed_note.to_owned(),
        header: header(tr, columns),
        rows,
    })
}

/// Open book beside closed book; `None` where no answerer may search.
fn open_book(summary: &Summary, tr: &Translation) -> Option<FigureTable> {
    let columns = [
        tr.archive, tr.closed_book, tr.open_book, tr.gain, tr.searches, tr.search_tokens, tr.gold_found,
        tr.lost_searched, tr.kept_searched,
    ];
    let lead = [Some(tr.open_book_note.to_owned()), archive_sentence(summary, tr)].into_iter().flatten();
    let rows = rows(summary, |method| method.open_book.as_ref(), |open| open_book_figures(open, tr));
    (!rows.is_empty()).then(|| FigureTable {
        id: "open-book",
        title: tr.open_book_title.to_owned(),
        lead: lead.collect::<Vec<_>>().join(" "),
        header: header(tr, columns.map(str::to_owned)),
        rows,
    })
}

fn open_book_figures(open: &OpenBookSummary, tr: &Translation) -> Vec<String> {
    let level = |median: Option<f64>, interval: String| format!("{} {interval}", score(median)).trim().to_owned();
    let gain = open.gain.map_or_else(|| UNKNOWN.to_owned(), signed);
    let counts = open.answers;
    vec![
        if open.own_archive { tr.own_notes } else { tr.search_only }.to_owned(),
        level(open.closed.median, range(open.closed.ci95)),
        level(open.open.median, range(open.open.ci95)),
        if open.gain_ci95.is_some() { format!("{gain} {}", brackets(open.gain_ci95)) } else { gain },
        open.searches.map_or_else(|| UNKNOWN.to_owned(), |searches| format!("{searches:.1}")),
        count(open.tokens),
        share_with_interval(&open.gold_found, tr),
        format!("{}/{}", counts.lost_searched, counts.lost_not_searched),
        format!("{}/{}", counts.kept_searched, counts.kept_not_searched),
    ]
}

/// Survival by age; `None` where nothing has been through more than one compression.
fn survival_by_age(summary: &Summary, tr: &Translation) -> Option<FigureTable> {
    let all = || summary.methods.values().filter_map(|method| method.survival_by_age.as_ref());
    let facts = names(all().flat_map(|found| found.facts.keys()));
    let references = names(all().flat_map(|found| found.references.keys()));
    if facts.len().max(references.len()) < 2 {
        return None;
    }
    let columns = |pattern, ages: &[&str]| ages.iter().map(|age| fill(pattern, &[age])).collect::<Vec<_>>();
    let half_life = |found: &SurvivalByAge| found.half_life.map_or_else(|| UNKNOWN.to_owned(), |n| format!("{n:.1}"));
    let figures = |found: &SurvivalByAge| -> Vec<String> {
        let facts = facts.iter().map(|age| cell(found.facts.get(*age), tr));
        let references = references.iter().map(|age| cell(found.references.get(*age), tr));
        facts.chain(references).chain([half_life(found)]).collect()
    };
    let columns = [columns(tr.facts_of_age, &facts), columns(tr.needed_of_age, &references)].concat();
    Some(FigureTable {
        id: SURVIVAL_BY_AGE,
        title: tr.ages_title.to_owned(),
        lead: tr.ages_note.to_owned(),
        header: header(tr, columns.into_iter().chain([tr.half_life.to_owned()])),
        rows: rows(summary, |method| method.survival_by_age.as_ref(), figures),
    })
}

/// The life of a session under each method; `None` where no session was compressed more than once.
fn lifetime(summary: &Summary, tr: &Translation) -> Option<FigureTable> {
    let figures = |life: &LifeCycle| -> Vec<String> {
        let cycles = life.cycles.map_or_else(|| tr.never.to_owned(), grouped);
        let growth = life.growth.map_or_else(|| UNKNOWN.to_owned(), |growth| format!("{growth:+.0}"));
        let tokens = [life.trigger, life.freed, life.floor].map(|tokens| count(Some(tokens)));
        tokens.into_iter().chain([growth, cycles]).collect()
    };
    let columns = [tr.compacted_at, tr.freed, tr.floor, tr.floor_growth, tr.cycles].map(str::to_owned);
    let rows = rows(summary, |method| method.lifetime.as_ref().filter(|_| !method.is_anchor()), figures);
    let table = FigureTable {
        id: "lifetime",
        title: tr.lifetime_title.to_owned(),
        lead: tr.lifetime_note.to_owned(),
        header: header(tr, columns),
        rows,
    };
    (!table.rows.is_empty()).then_some(table)
}

/// Survival of rules; `None` where none were put into the sessions.
fn constraints(summary: &Summary, tr: &Translation) -> Option<FigureTable> {
    let all = || summary.methods.values().filter_map(|method| method.constraints.as_ref());
    let compressions = names(all().flat_map(|found| found.by_compressions.keys()));
    all().next()?;
    let near =
        |groups: &Ordered<ConstraintShares>, name: &str| cell(groups.get(name).map(|shares| &shares.near_literal), tr);
    let figures = |found: &ConstraintSummary| -> Vec<String> {
        let whole = [cell(Some(&found.all.literal), tr), cell(Some(&found.all.near_literal), tr)];
        let positions = RulePosition::ALL.map(|position| near(&found.by_position, position.name()));
        let compressions = compressions.iter().map(|name| near(&found.by_compressions, name));
        whole.into_iter().chain(positions).chain(compressions).collect()
    };
    let columns = [tr.literal, tr.near_literal, tr.early, tr.middle, tr.late].map(str::to_owned);
    let after = compressions.iter().map(|name| fill(tr.after_compressions, &[name]));
    let rules = all().map(|found| found.rules).max().unwrap_or_default().to_string();
    Some(FigureTable {
        id: "constraints",
        title: tr.constraints_title.to_owned(),
        lead: fill(tr.constraints_note, &[&rules]),
        header: header(tr, columns.into_iter().chain(after)),
        rows: rows(summary, |method| method.constraints.as_ref(), figures),
    })
}
