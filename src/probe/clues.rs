//! What a rule-based index knows of a span, and the forms in which it is asked for.

use super::bank::ProbeType;
use super::generate::ProbeCandidate;
use super::phrases::with_gap;

/// What a rule-based index knows of a span. Lists are in the order of the span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeSources {
    /// Files written anew, by path.
    pub created: Vec<String>,
    /// Files changed, by path, each with what was changed in it.
    pub modified: Vec<(String, Vec<String>)>,
    /// Files looked at and not changed, by path.
    pub read: Vec<String>,
    /// Commands that failed, each with the lines that say what went wrong.
    pub failures: Vec<(String, Vec<String>)>,
    /// Sentences that state a choice.
    pub decisions: Vec<String>,
    /// Sentences in which the person demands or forbids something.
    pub demands: Vec<String>,
    /// Sentences that state a reason, a cause or a measured value.
    pub findings: Vec<String>,
    /// Items of the agent's own plan, as it stood last, that were not done.
    pub plan: Vec<String>,
    /// Sentences that name something left to do.
    pub tasks: Vec<String>,
    /// What the person asked last.
    pub request: Option<String>,
    /// The command that was run last.
    pub last_command: Option<String>,
    /// Settings with the value seen last.
    pub values: Vec<(String, String)>,
}

/// Words in the language of the bank, from English and Chinese.
pub(super) type Say<'a> = dyn Fn(String, String) -> String + 'a;

pub(super) fn candidate(kind: ProbeType, question: String, facts: Vec<String>, reference: &str) -> ProbeCandidate {
    ProbeCandidate { kind, question, expected_facts: facts, reference_answer: reference.to_owned() }
}

/// A sentence with a gap, after words that say what sentence it is. Rules cannot ask a why or a what in their own words;
/// without this form, decisions, demands and findings would have no probes where no model writes them.
pub(super) fn gap(kind: ProbeType, sentence: &str, say: &Say<'_>, before: [&str; 2]) -> Option<ProbeCandidate> {
    let (gapped, term) = with_gap(sentence)?;
    let [en, zh] = before;
    let question =
        say(format!("{en}: \"{gapped}\" What belongs in the gap?"), format!("{zh}：“{gapped}”空缺处是什么？"));
    Some(candidate(kind, question, vec![term], sentence))
}
