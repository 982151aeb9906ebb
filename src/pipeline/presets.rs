//! Presets: how products shape their compaction, as far as it is public. They are approximations: products count tokens
//! in other ways and have prompts of their own. A user's own keys override what a preset sets.

use std::ops::Range;

use super::file::Located;
use super::file::tables::{CompressTable, TailValue};
use super::strategies::StrategyKind;
use super::validation::ValidationContext;

/// The table, with those keys of its preset that it does not set itself; `None` if it names no preset.
pub(super) fn with_preset(
    context: &mut ValidationContext<'_>,
    table: &Located<CompressTable>,
) -> Option<Located<CompressTable>> {
    let Located {
        value: preset,
        place,
        ..
    } = table.value.preset.clone()?;
    let mut table = table.clone();
    let keys = &mut table.value;
    if keys.ask.prompt.is_none() {
        let help = "add prompt = \"prompts/mine.md\" with the product's prompt, or your own";
        context.warn(
            &place,
            "a preset has a shape and no prompt: the built-in one is used",
            help,
        );
    }
    let strategy = StrategyKind::Prompted(preset.style);
    fill(&mut keys.strategy, Some(strategy), &place);
    fill(&mut keys.placement, Some(preset.placement), &place);
    fill(&mut keys.keep_head, preset.head, &place);
    fill(&mut keys.keep_tail, preset.tail.map(TailValue), &place);
    fill(&mut keys.keep_user, preset.user, &place);
    // The built-in prompts ask for no tag.
    fill(
        &mut keys.extract,
        preset
            .extract
            .filter(|_| keys.ask.prompt.is_some())
            .map(str::to_owned),
        &place,
    );
    Some(table)
}

fn fill<T>(key: &mut Option<Located<T>>, value: Option<T>, place: &Range<usize>) {
    if key.is_none() {
        *key = value.map(|value| Located {
            value,
            place: place.clone(),
            key: place.clone(),
        });
    }
}
