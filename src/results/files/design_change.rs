//! How the design of a run differs from the design of the results that its label has.

use super::design::{Design, FixtureInfo, MethodInfo, ModelInfo, ProbeInfo};
use super::edits::{TextEdit, method_edits};

/// How a later design differs from an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesignChange {
    /// Differences by which rows of the earlier design would be lost or changed.
    pub conflicts: Vec<String>,
    /// Parts that only the later design has; all rows of the earlier design stay as they are.
    pub additions: Vec<String>,
}

impl DesignChange {
    /// Compares two designs. Paths of prompts and the order of lists do not matter.
    pub fn between(before: &Design, after: &Design) -> DesignChange {
        let mut change = DesignChange::default();
        change.compare_whole(before, after);
        change.compare_planted(before, after);
        change.compare_methods(before, after);
        change.compare_fixtures(before, after);
        change
    }

    fn compare_whole(&mut self, before: &Design, after: &Design) {
        let runs = [
            ("runs", before.runs.compress, after.runs.compress),
            ("answers in a run", before.runs.answer, after.runs.answer),
            (
                "judgements of an answer",
                before.runs.judge,
                after.runs.judge,
            ),
        ];
        for (name, old, new) in runs.into_iter().filter(|(_, old, new)| old != new) {
            let list = if old > new {
                &mut self.conflicts
            } else {
                &mut self.additions
            };
            list.push(format!("{name}: {old} → {new}"));
        }
        let parts = [
            ("the rubric", before.rubric != after.rubric),
            ("the locale", before.locale != after.locale),
            (
                "what answerers see after the point (`tail`)",
                before.tail != after.tail,
            ),
            (
                "whether judges see the context (`judge_context`)",
                before.judge_context != after.judge_context,
            ),
            ("the focus topic", before.focus_topic != after.focus_topic),
            (
                "the answerers: model, settings, prompt or endpoint",
                !are_same_models(&before.answerers, &after.answerers),
            ),
            (
                "the judges: model, settings, prompt or endpoint",
                !are_same_models(&before.judges, &after.judges),
            ),
        ];
        self.conflicts.extend(
            parts
                .into_iter()
                .filter(|(_, differs)| *differs)
                .map(|(name, _)| name.to_owned()),
        );
    }

    fn compare_planted(&mut self, before: &Design, after: &Design) {
        if before.planted == after.planted {
            return;
        }
        let list = if before.planted.is_some() {
            &mut self.conflicts
        } else {
            &mut self.additions
        };
        list.push(
            "what is planted in the sessions (`planted`), or who is asked about it".to_owned(),
        );
    }

    fn compare_methods(&mut self, before: &Design, after: &Design) {
        for old in &before.methods {
            match after.method(&old.name) {
                None => self
                    .conflicts
                    .push(format!("method {} is not in this run", old.name)),
                Some(new) if without_path(old) == without_path(new) => {}
                Some(new) => self.conflicts.push(describe_edit(old, new)),
            }
        }
        let added = after
            .methods
            .iter()
            .filter(|method| before.method(&method.name).is_none());
        self.additions
            .extend(added.map(|method| format!("method {}", method.name)));
    }

    fn compare_fixtures(&mut self, before: &Design, after: &Design) {
        for old in &before.fixtures {
            match after.fixture(&old.name) {
                None => self
                    .conflicts
                    .push(format!("fixture {} is not in this run", old.name)),
                Some(new) if old.digests.transcript != new.digests.transcript => {
                    self.conflicts
                        .push(format!("the messages of fixture {}", old.name));
                }
                Some(new) => self.compare_probes(old, new),
            }
        }
        let added = after
            .fixtures
            .iter()
            .filter(|fixture| before.fixture(&fixture.name).is_none());
        self.additions
            .extend(added.map(|fixture| format!("fixture {}", fixture.name)));
    }

    fn compare_probes(&mut self, before: &FixtureInfo, after: &FixtureInfo) {
        let lost = name_missing(&before.probes, &after.probes);
        self.conflicts.extend(lost.map(|ids| {
            format!(
                "probes of fixture {} that this run does not ask: {ids}",
                before.name
            )
        }));
        let added = name_missing(&after.probes, &before.probes);
        self.additions
            .extend(added.map(|ids| format!("probes of fixture {}: {ids}", after.name)));
    }
}

/// Names the probes that are not among `others`; if there are more than three, gives their number. `None` if there are
/// none.
fn name_missing(probes: &[ProbeInfo], others: &[ProbeInfo]) -> Option<String> {
    let missing = probes.iter().filter(|probe| {
        !others
            .iter()
            .any(|other| (other.point, other.digest) == (probe.point, probe.digest))
    });
    let ids: Vec<&str> = missing.map(|probe| probe.id.as_str()).collect();
    match ids.len() {
        0 => None,
        1..=3 => Some(ids.join(", ")),
        number => Some(format!("{number} of them")),
    }
}

fn are_same_models(own: &[ModelInfo], other: &[ModelInfo]) -> bool {
    own.len() == other.len()
        && own
            .iter()
            .zip(other)
            .all(|(own, other)| is_same_model(own, other))
}

fn is_same_model(own: &ModelInfo, other: &ModelInfo) -> bool {
    ModelInfo {
        prompt_path: other.prompt_path.clone(),
        ..own.clone()
    } == *other
}

/// A method without the path of its prompt.
fn without_path(method: &MethodInfo) -> MethodInfo {
    let model = method.model.clone().map(|asked| ModelInfo {
        prompt_path: None,
        ..asked
    });
    MethodInfo {
        model,
        ..method.clone()
    }
}

fn describe_edit(old: &MethodInfo, new: &MethodInfo) -> String {
    let edits = method_edits(old, new, &|path, _, _| TextEdit::unknown(path)).lines;
    if edits.is_empty() {
        format!("method {}", old.name)
    } else {
        format!("method {}: {}", old.name, edits.join(", "))
    }
}
