//! Validates the other stages: answerers, judges and generators of probes; and whether an answerer can read a method's
//! contexts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::file::tables::{AnswerTable, JudgeTable, ProbesTable, RecoveryTable};
use super::file::{Located, value};
use super::model::Generator;
use super::validation::{Asking, ValidationContext};
use crate::action::{Stage, Template, Variable};
use crate::answer::{self, Answerer, AnswererName, OPEN_BOOK, Recovery};
use crate::compress::{Method, Strategy};
use crate::judge::{self, JudgeName, JudgeSpec};
use crate::probe::{GENERATION_VARIABLES, generation_template};
use base::locale::Locale;
use base::units::Tokens;
use models::{Dialect, ModelUse};

/// Replies that break the contract before a cell fails, where the table says nothing.
const ATTEMPTS: u32 = 3;

/// The answerers in the order of the file, then the open-book ones, which answer the same questions with a search.
pub(super) fn answerers(
    context: &mut ValidationContext<'_>,
    tables: &[Located<AnswerTable>],
) -> Vec<Answerer> {
    let mut taken = BTreeMap::new();
    let (mut answerers, mut open) = (Vec::new(), Vec::new());
    for table in tables {
        let asking = Asking {
            header: &table.place,
            stage: Stage::Answer,
            keys: &table.value.ask,
            undeclared: None,
        };
        let built_in = answer::built_in(context.locale);
        let name = &table.value.name;
        let read = named_model(
            context,
            name,
            &asking,
            answer::VARIABLES,
            built_in,
            &mut taken,
        );
        if let Some((name, model, template)) = read {
            let recovery = table
                .value
                .recovery
                .as_ref()
                .map(|table| recovery(&table.value, &name, context.locale));
            let name = AnswererName(name);
            let answerer = Answerer {
                name,
                model,
                template,
                recovery: None,
            };
            open.extend(recovery.map(|recovery| Answerer {
                name: AnswererName(format!("{}{OPEN_BOOK}", recovery.closed).into()),
                recovery: Some(recovery),
                ..answerer.clone()
            }));
            answerers.push(answerer);
        }
    }
    for answerer in &open {
        if let Some(place) = taken.get(&*answerer.name.0) {
            let message = format!(
                "the name `{}` is that of another answerer with a search",
                answerer.name
            );
            context.error(
                &place.clone(),
                message,
                "use a different name, or take the other's [answer.recovery] away",
            );
        }
    }
    answerers.extend(open);
    answerers
}

/// How the open-book answerer that goes with `closed` may search.
fn recovery(keys: &RecoveryTable, closed: &Arc<str>, locale: Locale) -> Recovery {
    const CALLS: u32 = 2;
    const RESULTS: u32 = 4;
    const EXCERPT_TOKENS: Tokens = Tokens(600);
    Recovery {
        closed: closed.clone(),
        calls: value(&keys.calls).unwrap_or(CALLS),
        results: value(&keys.results).unwrap_or(RESULTS),
        excerpt_tokens: value(&keys.excerpt_tokens).unwrap_or(EXCERPT_TOKENS),
        locale,
    }
}

/// The name, the model and the prompt of a table, all of which are checked before one that lacks any is left out. A prompt
/// must insert each of its `variables`.
fn named_model(
    context: &mut ValidationContext<'_>,
    name: &Option<Located<String>>,
    asking: &Asking<'_>,
    variables: &'static [Variable],
    built_in: Template,
    taken: &mut BTreeMap<String, Range<usize>>,
) -> Option<NamedModel> {
    let name = context.name(name.as_ref(), asking.header, asking.stage.name(), taken);
    let model = context.model(asking);
    let path = asking.keys.prompt.as_ref();
    let prompt = context.prompt(path, variables, variables, Some(built_in));
    Some((name?, model?, prompt?))
}

/// A name, a model and a prompt.
type NamedModel = (Arc<str>, ModelUse, Template);

/// The judges, in the order of the file.
pub(super) fn judges(
    context: &mut ValidationContext<'_>,
    tables: &[Located<JudgeTable>],
) -> Vec<JudgeSpec> {
    let mut taken = BTreeMap::new();
    let mut judges = Vec::new();
    for table in tables {
        let asking = Asking {
            header: &table.place,
            stage: Stage::Judge,
            keys: &table.value.ask,
            undeclared: None,
        };
        let built_in = judge::built_in_template(context.locale);
        let name = &table.value.name;
        let read = named_model(
            context,
            name,
            &asking,
            judge::VARIABLES,
            built_in,
            &mut taken,
        );
        let attempts = value(&table.value.attempts).unwrap_or(ATTEMPTS);
        judges.extend(read.map(|(name, model, template)| JudgeSpec {
            name: JudgeName(name),
            model,
            template,
            attempts,
        }));
    }
    judges
}

/// Who writes probes: the built-in rules where nothing is declared. A run needs none of its keys, so missing ones are not
/// reported.
pub(super) fn generator(
    context: &mut ValidationContext<'_>,
    table: &Option<Located<ProbesTable>>,
) -> Option<Generator> {
    let keys = ProbesTable::of(table);
    let asking = Asking {
        header: &table.as_ref().map_or(0..0, |table| table.place.clone()),
        stage: Stage::Probes,
        keys: &keys.ask,
        undeclared: table.is_none().then_some("lexical"),
    };
    let missing = context.missing_keys.clone();
    let model = context.model(&asking);
    context.missing_keys = missing;
    let built_in = Some(generation_template(context.locale));
    let path = keys.ask.prompt.as_ref();
    let template = context.prompt(path, GENERATION_VARIABLES, &[], built_in)?;
    Some(Generator {
        model: model?,
        template,
        attempts: value(&keys.attempts).unwrap_or(ATTEMPTS),
    })
}

/// Reports an answerer that cannot read the contexts of a method, because only their maker can, or may read them badly.
pub(super) fn check_answerer(
    context: &mut ValidationContext<'_>,
    method: &Method,
    place: &Range<usize>,
    answerer: &Answerer,
) {
    let (maker, what, is_other_kind) = match &method.strategy {
        Strategy::Opaque { model } => (
            model,
            "opaque items",
            answerer.model.provider.dialect != Dialect::OpenaiResponses,
        ),
        Strategy::ProviderCompaction { model, .. } => (model, "compaction block", false),
        _ => return,
    };
    let (who, reads, of) = (&answerer.name, &answerer.model.reference, &method.name);
    if is_other_kind || maker.provider.endpoint != answerer.model.provider.endpoint {
        let help = format!(
            "only {} can: name an answerer of that provider by answerers = [\"…\"] in this table",
            maker.provider.name
        );
        let message = format!("`{who}` ({reads}) cannot read the {what} of `{of}`");
        context.error(place, message, help);
    } else if maker.reference.model != reads.model {
        let message = format!(
            "`{who}` ({reads}) reads the {what} that {} made for `{of}`",
            maker.reference
        );
        let help = "the vendor does not say that another model can use them: name an answerer of the same model";
        context.warn(place, message, help);
    }
}
