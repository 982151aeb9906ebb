//! The strategies and presets as a file names them.

use crate::action::BuiltInStrategy;
use crate::compress::{PromptPlacement, PromptStyle, Tail};
use base::units::Tokens;
use sessions::references::PATTERNS;

/// Tool results that `mask` keeps by default.
const KEPT_RESULTS: u32 = 10;

/// The strategies as a file names them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StrategyKind {
    Prompted(PromptStyle),
    Opaque,
    ProviderCompaction,
    Command,
    Rule(BuiltInStrategy),
}

impl StrategyKind {
    /// All of them by name.
    pub(super) const ALL: [(&str, StrategyKind); 13] = [
        (
            "anchored-iterative",
            StrategyKind::Prompted(PromptStyle::Anchored),
        ),
        (
            "regenerative",
            StrategyKind::Prompted(PromptStyle::Regenerative),
        ),
        ("opaque", StrategyKind::Opaque),
        ("provider-compaction", StrategyKind::ProviderCompaction),
        ("command", StrategyKind::Command),
        ("truncate", StrategyKind::Rule(BuiltInStrategy::Truncate)),
        ("prune", StrategyKind::Rule(BuiltInStrategy::Prune)),
        (
            "mask",
            StrategyKind::Rule(BuiltInStrategy::Mask {
                keep_results: KEPT_RESULTS,
            }),
        ),
        ("extract", StrategyKind::Rule(BuiltInStrategy::Extract)),
        (
            "reference-list",
            StrategyKind::Rule(BuiltInStrategy::ReferenceList { patterns: PATTERNS }),
        ),
        ("recorded", StrategyKind::Rule(BuiltInStrategy::Recorded)),
        ("full", StrategyKind::Rule(BuiltInStrategy::Full)),
        ("none", StrategyKind::Rule(BuiltInStrategy::None)),
    ];

    pub(super) fn name(self) -> &'static str {
        let known = StrategyKind::ALL.into_iter();
        let mut named = known.filter(|(_, kind)| *kind == self);
        named.next().map_or("", |(name, _)| name)
    }
}

/// How a product compacts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preset {
    pub(super) style: PromptStyle,
    pub(super) placement: PromptPlacement,
    pub(super) head: Option<u32>,
    pub(super) tail: Option<Tail>,
    pub(super) user: Option<Tokens>,
    pub(super) extract: Option<&'static str>,
}

const PLAIN: Preset = Preset {
    style: PromptStyle::Regenerative,
    placement: PromptPlacement::Last,
    head: None,
    tail: None,
    user: None,
    extract: None,
};

impl Preset {
    /// The presets by name. The source of each shape is in docs/pipeline.md.
    pub(super) const ALL: [(&str, Preset); 6] = [
        (
            "codex",
            Preset {
                user: Some(Tokens(20_000)),
                ..PLAIN
            },
        ),
        (
            "pi",
            Preset {
                style: PromptStyle::Anchored,
                placement: PromptPlacement::Inline,
                tail: Some(Tail::Tokens(Tokens(20_000))),
                ..PLAIN
            },
        ),
        (
            "hermes",
            Preset {
                style: PromptStyle::Anchored,
                placement: PromptPlacement::Inline,
                head: Some(3),
                tail: Some(Tail::Tokens(Tokens(20_000))),
                ..PLAIN
            },
        ),
        (
            "openhands",
            Preset {
                style: PromptStyle::Anchored,
                placement: PromptPlacement::Inline,
                head: Some(2),
                tail: Some(Tail::Percent(50)),
                ..PLAIN
            },
        ),
        (
            "gemini",
            Preset {
                placement: PromptPlacement::System,
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
}
