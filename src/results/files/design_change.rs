//! What separates the design of a run from the design of the results that its label has.

use super::design::{Design, FixtureInfo, MethodInfo, ModelInfo, ProbeInfo};
use super::edits::{TextEdit, method_edits};

/// What the later of two designs does not share with the earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesignChange {
    /// Rows of the earlier design would be lost or made otherwise.
    pub conflicts: Vec<String>,
    /// Only the later design has these; all rows of the earlier one stay as they are.
    pub additions: Vec<String>,
}

impl DesignChange {
    /// Compares two designs. Paths of prompts and the order of lists do not count.
    pub fn between(before: &Design, after: &Design) -> DesignChange {
        let mut change = DesignChange::default();
        change.whole(before, after);
        change.methods(before, after);
        change.fixtures(before, after);
        change
    }

    fn whole(&mut self, before: &Design, after: &Design) {
        let runs = [
            ("runs", before.runs.compress, after.runs.compress),
            ("answers in a run", before.runs.answer, after.runs.answer),
            ("judgements of an answer", before.runs.judge, after.runs.judge),
        ];
        for (name, old, new) in runs.into_iter().filter(|(_, old, new)| old != new) {
            let list = if old > new { &mut self.conflicts } else { &mut self.additions };
            list.push(format!("{name}: {old} → {new}"));
        }
        let same =
            |own: &[ModelInfo], other: &[ModelInfo]| own.len() == other.len() && own.iter().zip(other).all(same_asked);
        let parts = [
            ("the rubric", before.rubric != after.rubric),
            ("the locale", before.locale != after.locale),
            ("what answerers see after the point (`tail`)", before.tail != after.tail),
            ("whether judges see the context (`judge_context`)", before.judge_context != after.judge_context),
            ("the focus topic", before.focus_topic != after.focus_topic),
            ("the answerers: model, settings, prompt or endpoint", !same(&before.answerers, &after.answerers)),
            ("the judges: model, settings, prompt or endpoint", !same(&before.judges, &after.judges)),
        ];
        self.conflicts.extend(parts.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned()));
        if before.constraints != after.constraints {
            let list = if before.constraints.is_some() { &mut self.conflicts } else { &mut self.additions };
            list.push("the rules that are put into the sessions (`constraints`)".to_owned());
        }
    }

    fn methods(&mut self, before: &Design, after: &Design) {
        for old in &before.methods {
            match after.method(&old.name) {
                None => self.conflicts.push(format!("method {} is not in this run", old.name)),
                Some(new) if normal(old) == normal(new) => {}
                Some(new) => self.conflicts.push(edited(old, new)),
            }
        }
        let is_new = |method: &&MethodInfo| before.method(&method.name).is_none();
        self.additions.extend(after.methods.iter().filter(is_new).map(|method| format!("method {}", method.name)));
    }

    fn fixtures(&mut self, before: &Design, after: &Design) {
        for old in &before.fixtures {
            match after.fixture(&old.name) {
                None => self.conflicts.push(format!("fixture {} is not in this run", old.name)),
                Some(new) if old.digests.transcript != new.digests.transcript => {
                    self.conflicts.push(format!("the messages of fixture {}", old.name));
                }
                Some(new) => self.probes(old, new),
            }
        }
        let is_new = |fixture: &&FixtureInfo| before.fixture(&fixture.name).is_none();
        self.additions.extend(after.fixtures.iter().filter(is_new).map(|fixture| format!("fixture {}", fixture.name)));
    }

    fn probes(&mut self, before: &FixtureInfo, after: &FixtureInfo) {
        /// Probes that are named; of more the number is given.
        const NAMED: usize = 3;
        let is_in = |probes: &[ProbeInfo], probe: &ProbeInfo| {
            probes.iter().any(|known| (known.point, known.digest) == (probe.point, probe.digest))
        };
        let missing = |from: &[ProbeInfo], of: &[ProbeInfo]| -> Option<String> {
            let ids: Vec<&str> = of.iter().filter(|probe| !is_in(from, probe)).map(|probe| probe.id.as_str()).collect();
            match ids.len() {
                0 => None,
                1..=NAMED => Some(ids.join(", ")),
                number => Some(format!("{number} of them")),
            }
        };
        let lost = missing(&after.probes, &before.probes);
        self.conflicts
            .extend(lost.map(|ids| format!("probes of fixture {} that this run does not ask: {ids}", before.name)));
        let added = missing(&before.probes, &after.probes);
        self.additions.extend(added.map(|ids| format!("probes of fixture {}: {ids}", after.name)));
    }
}

fn same_asked((own, other): (&ModelInfo, &ModelInfo)) -> bool {
    let truncated_replies = own.truncated_replies.or(other.truncated_replies);
    let (prompt_path, cached_price_ratio) = (other.prompt_path.clone(), other.cached_price_ratio);
    ModelInfo { prompt_path, cached_price_ratio, truncated_replies, ..own.clone() } == *other
}

/// A method without the path of its prompt.
fn normal(method: &MethodInfo) -> MethodInfo {
    let model = method.model.clone().map(|asked| ModelInfo { prompt_path: None, ..asked });
    MethodInfo { model, ..method.clone() }
}

fn edited(old: &MethodInfo, new: &MethodInfo) -> String {
    let edits = method_edits(old, new, &|path, _, _| TextEdit::unknown(path)).lines;
    if edits.is_empty() { format!("method {}", old.name) } else { format!("method {}: {}", old.name, edits.join(", ")) }
}
