//! What the command line selects and overrides.

use super::model::LoadedFixture;
use super::problem::{Problem, Problems, list, suggest};
use crate::action::Stage;
use models::Lane;

/// The part of the matrix to run. `None` selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatrixSelection {
    /// `--fixtures`
    pub fixtures: Option<Vec<String>>,
    /// `--methods`
    pub methods: Option<Vec<String>>,
    /// `--probes`
    pub probes: Option<Vec<String>>,
}

impl MatrixSelection {
    /// Whether nothing was selected, so that it is the whole matrix.
    pub fn is_whole(&self) -> bool {
        self.fixtures.is_none() && self.methods.is_none() && self.probes.is_none()
    }
}

/// Values from the command line that replace declared ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--runs`: compressions of each method.
    pub runs: Option<u32>,
    /// `--model`: all stages.
    pub model: Option<String>,
    /// `--compressor-model`
    pub compressor_model: Option<String>,
    /// `--answer-model`
    pub answer_model: Option<String>,
    /// `--judge-model`
    pub judge_model: Option<String>,
    /// `--focus-topic`
    pub focus_topic: Option<String>,
    /// `--lane`: all stages that have it.
    pub lane: Option<Lane>,
}

impl Overrides {
    /// The model of every table of a stage that has one.
    pub(super) fn model_of(&self, stage: Stage) -> Option<&str> {
        let of_stage = match stage {
            Stage::Compress => self.compressor_model.as_deref(),
            Stage::Answer => self.answer_model.as_deref(),
            Stage::Judge => self.judge_model.as_deref(),
            Stage::Probes => None,
        };
        of_stage.or(self.model.as_deref())
    }

    /// The topic, unless it is blank.
    pub(super) fn topic(&self) -> Option<&str> {
        let topic = self.focus_topic.as_deref().map(str::trim);
        topic.filter(|topic| !topic.is_empty())
    }
}

/// Whether `name` is among the wanted; all are if none is named.
pub(super) fn is_wanted(wanted: Option<&[String]>, name: &str) -> bool {
    wanted.is_none_or(|wanted| wanted.iter().any(|w| w == name))
}

/// Reports names that do not exist.
pub(super) fn report_unknown(
    flag: &str,
    what: &str,
    wanted: Option<&[String]>,
    known: &[&str],
    problems: &mut Problems,
) {
    for name in wanted.unwrap_or_default() {
        if !known.contains(&name.as_str()) {
            let problem = Problem::error(format!("{flag}: there is no {what} `{name}`"));
            problems.push(problem.help(suggest(name, known.iter().copied())));
        }
    }
}

/// Keeps the wanted probes, and the fixtures that have one.
pub(super) fn keep_probes(
    fixtures: &mut Vec<LoadedFixture>,
    selection: &MatrixSelection,
    problems: &mut Problems,
) {
    let Some(wanted) = selection.probes.as_deref() else {
        fixtures.retain(|fixture| fixture.selected.iter().any(|at| !at.is_empty()));
        return;
    };
    let probes = fixtures.iter().flat_map(|fixture| &fixture.bank.probes);
    let known: Vec<_> = probes.map(|probe| probe.id.0.clone()).collect();
    let mut known: Vec<&str> = known.iter().map(|id| &**id).collect();
    // Fixtures may share ids.
    known.sort_unstable();
    known.dedup();
    // With `--fixtures`, a list in which no id is known may be meant for other fixtures: it selects nothing, and the
    // refusal names both flags.
    let is_elsewhere =
        selection.fixtures.is_some() && !wanted.iter().any(|id| known.contains(&id.as_str()));
    if !is_elsewhere {
        report_unknown("--probes", "probe", Some(wanted), &known, problems);
    }
    for fixture in fixtures.iter_mut() {
        let bank = fixture.bank.clone();
        for probes in &mut fixture.selected {
            probes.retain(|index| {
                bank.probes
                    .get(index.0)
                    .is_some_and(|probe| wanted.iter().any(|id| **id == *probe.id.0))
            });
        }
    }
    fixtures.retain(|fixture| fixture.selected.iter().any(|at| !at.is_empty()));
}

/// That nothing is left to run: names the flags that selected nothing, and the fixtures without a bank, which are
/// `left_out`.
pub(super) fn nothing_selected(selection: &MatrixSelection, left_out: &[String]) -> Problem {
    let flags = [
        ("--fixtures", selection.fixtures.is_some()),
        ("--methods", selection.methods.is_some()),
        ("--probes", selection.probes.is_some()),
    ];
    let given: Vec<&str> = flags
        .iter()
        .filter(|(_, given)| *given)
        .map(|(flag, _)| *flag)
        .collect();
    let flags = given.join(" and ");
    let without_bank = list(left_out.iter().map(String::as_str));
    let fewer_flags = "leave a flag out to select all; `compeval plan` lists what there is";
    let import = "`compeval fixture import LOG` makes one of a session log";
    let bank = "write a bank by hand or by `compeval probes generate`; `compeval run --planted` needs none";
    let (why, help) = match (given.is_empty(), left_out.is_empty()) {
        (false, true) => (format!("nothing is selected by {flags}"), fewer_flags),
        (false, false) => (
            format!("nothing is selected by {flags}, and there is no bank for {without_bank}"),
            bank,
        ),
        (true, true) => ("there is no fixture to run".to_owned(), import),
        (true, false) => (format!("no fixture has probes: {without_bank}"), bank),
    };
    Problem::error(why).help(help)
}
