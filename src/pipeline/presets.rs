//! Presets: how products shape their compaction, as far as it is public. They are approximations: products count tokens
//! in other ways and have prompts of their own. A user's own keys override what a preset sets.

use std::ops::Range;

use super::file::Located;
use super::file::tables::{CompressTable, TailValue};
use super::validation::ValidationContext;
use crate::compress::Tail;
use base::units::Tokens;

/// How a product compacts.
#[derive(Clone, Copy)]
struct Preset {
    strategy: &'static str,
    placement: &'static str,
    head: Option<u32>,
    tail: Option<Tail>,
    user: Option<u64>,
    extract: Option<&'static str>,
}

const PLAIN: Preset = Preset {
    strategy: "regenerative",
    placement: "last",
    head: None,
    tail: None,
    user: None,
    extract: None,
};

/// The source of each shape is in docs/pipeline.md.
const PRESETS: [(&str, Preset); 6] = [
    (
        "codex",
        Preset {
            user: Some(20_000),
            ..PLAIN
        },
    ),
    (
        "pi",
        Preset {
            strategy: "anchored-iterative",
            placement: "inline",
            tail: Some(Tail::Tokens(Tokens(20_000))),
            ..PLAIN
        },
    ),
    (
        "hermes",
        Preset {
            strategy: "anchored-iterative",
            placement: "inline",
            head: Some(3),
            tail: Some(Tail::Tokens(Tokens(20_000))),
            ..PLAIN
        },
    ),
    (
        "openhands",
        Preset {
            strategy: "anchored-iterative",
            placement: "inline",
            head: Some(2),
            tail: Some(Tail::Percent(50)),
            ..PLAIN
        },
    ),
    (
        "gemini",
        Preset {
            placement: "system",
            tail: Some(Tail::Percent(30)),
            extract: Some("state_snapshot"),
            ..PLAIN
        },
    ),
    (
        "claude-code",
        Preset {
            extract: Some("summary"),
            ..PLAIN
        },
    ),
];

/// The table, with those keys of its preset that it does not set itself; `None` if it names no preset.
pub(super) fn with_preset(
    context: &mut ValidationContext<'_>,
    table: &Located<CompressTable>,
) -> Option<Located<CompressTable>> {
    let preset = context.choice("preset", table.value.preset.as_ref(), &PRESETS)?;
    let place = table
        .value
        .preset
        .as_ref()
        .map_or_else(|| table.place.clone(), |preset| preset.place.clone());
    let mut table = table.clone();
    let keys = &mut table.value;
    if keys.prompt.is_none() {
        let help = "add prompt = \"prompts/mine.md\" with the product's prompt, or your own";
        context.warn(
            &place,
            "a preset has a shape and no prompt: the built-in one is used",
            help,
        );
    }
    fill(&mut keys.strategy, Some(preset.strategy.to_owned()), &place);
    fill(
        &mut keys.placement,
        Some(preset.placement.to_owned()),
        &place,
    );
    fill(&mut keys.keep_head, preset.head, &place);
    fill(&mut keys.keep_tail, preset.tail.map(TailValue), &place);
    fill(&mut keys.keep_user, preset.user, &place);
    // The built-in prompts ask for no tag.
    fill(
        &mut keys.extract,
        preset
            .extract
            .filter(|_| keys.prompt.is_some())
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
