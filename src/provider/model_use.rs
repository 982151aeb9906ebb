//! A model as one stage uses it: who answers, with which settings.

use std::sync::Arc;

use super::api::Settings;
use super::spec::{Dialect, ModelRef, ProviderSpec};

/// A model, its provider and the settings to ask it with.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelUse {
    /// `provider/model` as written.
    pub reference: ModelRef,
    /// The provider, resolved.
    pub provider: Arc<ProviderSpec>,
    /// Sampling settings.
    pub settings: Settings,
}

impl ModelUse {
    /// Whether the built-in rules answer: no request is sent, and every repetition is the same.
    pub fn is_lexical(&self) -> bool {
        self.provider.dialect == Dialect::Lexical
    }
}
