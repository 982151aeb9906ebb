//! The input of the page, and the parts of it that come from a results folder.

use std::collections::BTreeMap;
use std::rc::Rc;

use indexmap::IndexMap;
use serde::Serialize;

use crate::action::{ActionKey, StageName};
use crate::judge::Rubric;
use crate::plan::Blame;
use crate::probe::Probe;
use crate::report::details::{details, facts, title};
use crate::report::document::{Block, Section};
use crate::report::headline::headline;
use crate::report::screen::{Extent, front, sentences};
use crate::report::translation::{Translation, first_of, translation};
use crate::results::{Headline, Manifest, Row, Summary};
use base::locale::Locale;
use sessions::transcript::Message;

/// The content of the page: the report as it was made, and the cells. Texts are untrusted: the page shows them and runs
/// none of them.
#[derive(Clone, Serialize)]
pub struct PageInput<'a> {
    pub label: String,
    #[serde(skip)]
    pub locale: Locale,
    /// The sentence, and the warnings without which the figures mislead.
    pub front: Vec<Block>,
    /// The design and the version of the run, as names and values.
    pub facts: Vec<(String, String)>,
    /// The sections of the report, the first screen of a terminal before them.
    pub sections: Vec<Section>,
    /// In the order of tables.
    #[serde(skip)]
    pub methods: Vec<PageMethod>,
    #[serde(skip)]
    pub rubric: &'a Rubric,
    /// The probes of each fixture. A row whose probe is missing is shown without question and facts.
    #[serde(skip)]
    pub banks: BTreeMap<&'a str, &'a [Probe]>,
    #[serde(skip)]
    pub rows: &'a [Row],
    /// The contexts that are still in the cache; other contexts are shown as pruned.
    #[serde(skip)]
    pub contexts: BTreeMap<ContextKey, ReadContext<'a>>,
    /// The sessions that did not change since the run.
    #[serde(skip)]
    pub sessions: BTreeMap<&'a str, PageSession<'a>>,
    /// On the page of a comparison: each judged method and its baseline.
    pub pairs: Vec<(String, String)>,
}

/// The key of a context's compression, its method and its point. The key of the compression alone does not identify a
/// context, because what is kept verbatim depends on method and point and is not part of the compression.
pub type ContextKey = (ActionKey, String, u32);

/// Reads a compressed context, because all of them may need too much memory; `None` if it is missing or damaged. The inner
/// `None` is a context that only its provider can read.
pub type ReadContext<'a> = Rc<dyn Fn() -> Option<Option<String>> + 'a>;

/// A session, shown as a timeline.
#[derive(Clone, Copy)]
pub struct PageSession<'a> {
    pub messages: &'a [Message],
    /// The index of the first message that a compression replaces.
    pub start: usize,
    /// The compression points: exclusive indices of messages.
    pub points: &'a [usize],
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageMethod {
    pub name: String,
    /// The name as tables show it; empty if it is the same.
    pub label: String,
    /// `full` and `none` are the ends of the scale of scores.
    pub strategy: String,
}

impl<'a> PageInput<'a> {
    /// The content that a results folder has; banks and contexts are empty. No times of the manifest are shown.
    pub fn new(
        manifest: &Manifest,
        summary: &Summary,
        rubric: &'a Rubric,
        rows: &'a [Row],
    ) -> PageInput<'a> {
        let design = &manifest.design;
        let tr = translation(manifest.locale());
        let found = headline(summary, manifest);
        let facts = facts(summary, design, tr).into_iter();
        let version = ("compeval", manifest.version.clone());
        let facts = facts.chain([version]);
        PageInput {
            label: title(summary, tr),
            locale: tr.locale,
            front: sentences(&found, summary, manifest),
            facts: facts
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            sections: sections(&found, summary, manifest, tr),
            methods: page_methods(manifest),
            rubric,
            banks: BTreeMap::new(),
            rows,
            contexts: BTreeMap::new(),
            sessions: BTreeMap::new(),
            pairs: Vec::new(),
        }
    }
}

/// The first screen of a terminal, what failed, and the other sections of the report.
fn sections(
    found: &Headline,
    summary: &Summary,
    manifest: &Manifest,
    tr: &Translation,
) -> Vec<Section> {
    let title = tr.pick("Scores", "得分");
    let overview = front(found, summary, manifest, Extent::ALL);
    let overview = Section::new("overview", title, overview);
    // Where nothing was asked, the first screen has their table.
    let is_answered = manifest.design.has_answers();
    let rest = details(summary, manifest).into_iter();
    let rest = rest.filter(|section| is_answered || section.id != "compressions");
    let first = overview.into_iter().chain(failures(manifest, tr));
    first.chain(rest).collect()
}

/// Places of failures with one message that are named, and messages that are listed; the manifest has all.
const NAMED: usize = 4;
const MESSAGES: usize = 100;

/// What failed: each message once, with its places.
fn failures(manifest: &Manifest, tr: &Translation) -> Option<Section> {
    let mut groups: IndexMap<(StageName, bool, &str), Vec<String>> = IndexMap::new();
    for failure in &manifest.failures {
        let is_own = failure.blame == Blame::Method;
        let places = groups.entry((failure.stage, is_own, &failure.message));
        places.or_default().push(failure.place.to_string());
    }
    let lines = groups
        .iter()
        .take(MESSAGES)
        .map(|((stage, is_own, message), places)| {
            let named = first_of(places, NAMED, tr, Clone::clone).join(tr.semicolon);
            let cause = match is_own {
                true => tr.pick("the method", "方法"),
                false => tr.pick("infrastructure", "基础设施"),
            };
            format!("{named} · {} · {cause}: {message}", stage.name())
        });
    let title = tr.pick("Failures", "失败");
    let title = format!("{title} ({})", manifest.failures.len());
    Section::new("failures", title, [Block::List(lines.collect())])
}

/// The methods of a result set, as the page shows them.
pub fn page_methods(manifest: &Manifest) -> Vec<PageMethod> {
    let (design, tr) = (&manifest.design, translation(manifest.locale()));
    let variants = design.variants().into_iter();
    let methods = variants.filter_map(|variant| {
        let info = design.methods.get(variant.method)?;
        Some(PageMethod {
            label: tr.method_label(&variant.key, info.kept()),
            name: variant.key,
            strategy: info.strategy.clone(),
        })
    });
    methods.collect()
}
