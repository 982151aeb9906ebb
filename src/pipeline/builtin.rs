//! Seam: stands in for what the rooms `judge`, `probe`, `compress` and `answer` are about to bring.

use crate::action::{Template, Variable};
use crate::compress::PromptStyle;
use crate::fixture::FixtureFault;
use crate::locale::Locale;
use crate::probe::Bank;

/// A rubric as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Rubric {
    /// The text.
    pub text: String,
}

impl Rubric {
    pub(super) fn built_in(_: Locale) -> Rubric {
        Rubric { text: String::new() }
    }

    pub(super) fn read(text: &str) -> Result<Rubric, Vec<FixtureFault>> {
        Ok(Rubric { text: text.to_owned() })
    }
}

pub(super) struct ParsedBank {
    pub(super) bank: Bank,
}

impl ParsedBank {
    pub(super) fn read(text: &str) -> Result<ParsedBank, Vec<FixtureFault>> {
        serde_json::from_str(text).map(|bank| ParsedBank { bank }).map_err(|e| {
            let start: usize = text.split_inclusive('\n').take(e.line().saturating_sub(1)).map(str::len).sum();
            let at = start + e.column().saturating_sub(1);
            vec![FixtureFault { message: e.to_string(), help: None, place: at..at + 1 }]
        })
    }

    pub(super) fn point_faults(&self, points: usize) -> Vec<FixtureFault> {
        let is_off = |p: &&crate::probe::Probe| p.point.is_some_and(|at| at.0 == 0 || at.0 as usize > points);
        let fault = |p: &crate::probe::Probe| FixtureFault {
            message: format!("probe `{}` is asked at a point that is out of range: expected 1 to {points}", p.id),
            help: None,
            place: 0..1,
        };
        self.bank.probes.iter().filter(is_off).map(fault).collect()
    }
}

pub(super) const COMPRESS: &[Variable] = &["transcript", "previous_summary", "focus_topic", "target_tokens"];
pub(super) const ANSWER: &[Variable] = &["context", "question"];
pub(super) const JUDGE: &[Variable] = &["request"];

pub(super) fn compress(_: PromptStyle, _: Locale) -> Option<Template> {
    Template::new("{{ previous_summary }}{{ transcript }}", COMPRESS).ok()
}

pub(super) fn answer(_: Locale) -> Option<Template> {
    Template::new("{{ context }}{{ question }}", ANSWER).ok()
}

pub(super) fn judge(_: Locale) -> Option<Template> {
    Template::new("{{ request }}", JUDGE).ok()
}
