//! The strategies as a file names them.

use crate::action::BuiltInStrategy;
use crate::compress::PromptStyle;
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
