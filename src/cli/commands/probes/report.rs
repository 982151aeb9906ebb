//! Generated banks: the verified probes and the rejected candidates of each point, and what is printed of them.

use serde_json::{Value, json};

use crate::cli::failure::{Exit, Failure, budget_message, json_file};
use crate::cli::format::{cost, count};
use crate::cli::screen::print_failures;
use crate::cli::terminal::{Console, TextStyle, labelled, paint};
use crate::evaluation::RunTotals;
use crate::pipeline::{LoadedFixture, PointIx};
use crate::plan::Output;
use crate::probe::{
    Bank, CandidateVerdicts, Probe, ProbeType, keep_true_files, probes_per_point, proof_of, verify,
};
use crate::scheduler::Budget;
use lexical::facts::FactFinder;
use sessions::transcript::{FileLedger, Point, fold};

/// The outcome of a generation.
pub(super) struct GenerationReport<'a> {
    pub(super) generator: String,
    pub(super) totals: RunTotals,
    pub(super) budget: &'a Budget,
    pub(super) interrupted: bool,
    pub(super) banks: Vec<BankDraft>,
}

/// Prints the report. Returns how to exit.
pub(super) fn print(report: &GenerationReport<'_>, console: &Console) -> Exit {
    let totals = &report.totals;
    let (executed, cached) = (totals.executed(), totals.cached());
    console.report(&report.json(), || {
        report
            .banks
            .iter()
            .for_each(|bank| console.inform(&page(bank)));
        let cost = cost(report.budget.spent().usd);
        console.note(&format!(
            "{executed} asked now of {} ({cost}), {cached} from the cache",
            report.generator
        ));
    });
    print_failures(&totals.failures, usize::MAX, console);
    if report.banks.iter().any(BankDraft::is_written) {
        console.next("compeval check");
    }
    if let Some(reached) = report.budget.reached() {
        console.eprint(&budget_message(reached));
    }
    let is_short = report
        .banks
        .iter()
        .any(|bank| !bank.is_written() || !bank.unchecked.is_empty());
    let over_budget = report.budget.reached().is_some();
    match (report.interrupted, is_short) {
        (true, _) => Exit::Interrupted,
        (false, true) if over_budget => Exit::Budget,
        (false, true) => Exit::Incomplete,
        (false, false) => Exit::Done,
    }
}

fn page(draft: &BankDraft) -> String {
    let path = &draft.file;
    let kinds = ProbeType::ALL.map(|kind| {
        let probes = draft.probes().filter(|probe| probe.kind == kind);
        format!("{} {}", kind.name(), probes.count())
    });
    let probes = count(draft.probes().count(), "probe");
    let name = paint(TextStyle::Bad, &draft.fixture);
    let mut text = match (draft.is_written(), draft.is_whole()) {
        (true, _) => format!("wrote {path}  {probes}: {}", kinds.join(", ")),
        (false, true) => format!("{name} no probe passed verification; no bank was written"),
        (false, false) => {
            format!("{name} some points have no reply; no bank was written. Run again to continue")
        }
    };
    if draft.existed && !draft.is_written() {
        text.push_str(&format!("; {path} stays as it was"));
    }
    text.push('\n');
    let guessable = "answered without a context and tagged `guessable`";
    let warnings = [
        (guessable, draft.guessable()),
        ("not asked without a context", draft.unchecked.clone()),
    ];
    for (what, probes) in warnings.iter().filter(|(_, probes)| !probes.is_empty()) {
        let warning = format!("{what}: {}", probes.join(", "));
        text.push_str(&labelled(TextStyle::Warning, "warning:", warning));
        text.push('\n');
    }
    let dropped = draft.points.iter().map(PointDraft::dropped).sum::<usize>();
    if dropped > 0 {
        let candidates = count(dropped, "candidate");
        text.push_str(&format!("dropped {candidates}; --json says why\n"));
    }
    text
}

impl GenerationReport<'_> {
    fn json(&self) -> Value {
        let totals = &self.totals;
        json!({
            "generator": self.generator,
            "banks": self.banks.iter().map(bank_json).collect::<Vec<_>>(),
            "executed": totals.executed(),
            "cached": totals.cached(),
            "usd": self.budget.spent().usd,
            "interrupted": self.interrupted,
            "failures": totals.failures,
        })
    }
}

fn bank_json(draft: &BankDraft) -> Value {
    json!({
        "fixture": draft.fixture,
        "file": draft.is_written().then_some(&draft.file),
        "probes": draft.probes().count(),
        "points": draft.points.iter().map(point_json).collect::<Vec<_>>(),
        "guessable": draft.guessable(),
        "unchecked": draft.unchecked,
    })
}

fn point_json(point: &PointDraft) -> Value {
    let verified = point.verified.as_ref();
    let dropped = verified.map(|verified| {
        let dropped = verified.dropped.iter().map(|(candidate, why)| {
            json!({ "type": candidate.kind, "question": candidate.question, "why": why })
        });
        dropped.collect::<Vec<_>>()
    });
    json!({
        "point": point.number,
        "kept": verified.map(|verified| verified.kept.len()),
        "missing_types": verified.map(|verified| &verified.missing),
        "dropped": dropped,
        "unreadable": point.unreadable,
    })
}

/// The tag of a probe that is answered without any context: it measures what a model knows, not what was kept.
pub(super) const GUESSABLE: &str = "guessable";

/// The outcome of one point.
pub(super) struct PointDraft {
    /// From 1.
    pub(super) number: u32,
    /// Entries of the reply that are not candidates.
    pub(super) unreadable: usize,
    /// The candidates that hold and those that do not; `None` if there was no reply.
    pub(super) verified: Option<CandidateVerdicts>,
}

impl PointDraft {
    /// How many candidates do not hold, or could not be read.
    fn dropped(&self) -> usize {
        let verified = self.verified.as_ref();
        self.unreadable + verified.map_or(0, |verified| verified.dropped.len())
    }
}

/// The bank of one fixture.
pub(super) struct BankDraft {
    pub(super) fixture: String,
    /// The file that it goes to.
    pub(super) file: String,
    /// Whether there was a bank before, which stays if none is written.
    pub(super) existed: bool,
    pub(super) points: Vec<PointDraft>,
    /// Ids of probes that were not tried without a context.
    pub(super) unchecked: Vec<String>,
}

impl BankDraft {
    /// Verifies the candidates of each point of a fixture against the span that they are about.
    pub(super) fn new(loaded: &LoadedFixture, outputs: Vec<Option<Output>>) -> BankDraft {
        let mut draft = BankDraft {
            fixture: loaded.name().to_owned(),
            file: String::new(),
            existed: false,
            points: Vec::new(),
            unchecked: Vec::new(),
        };
        let (mut start, history) = (loaded.fixture.start(), loaded.history());
        let most = *probes_per_point(loaded.points.len()).end();
        for ((index, end), output) in loaded.points.iter().enumerate().zip(outputs) {
            let number: Point = PointIx(index).number();
            let (mut unreadable, mut verified) = (0, None);
            if let Some(Output::Probes {
                mut candidates,
                unreadable: lost,
            }) = output
            {
                let before = loaded.fixture.messages.get(..*end).unwrap_or_default();
                keep_true_files(&mut candidates, &FileLedger::from_messages(before));
                let known: Vec<Probe> = draft.probes().cloned().collect();
                unreadable = lost;
                let mut verdicts = verify(candidates, &history, start..*end, number, most, &known);
                for probe in &mut verdicts.kept {
                    probe.proof = proof_of(probe, &loaded.fixture.messages, &history, start..*end);
                }
                verified = Some(verdicts);
            }
            draft.points.push(PointDraft {
                number: number.0,
                unreadable,
                verified,
            });
            start = *end;
        }
        draft
    }

    /// The probes that hold, point by point.
    pub(super) fn probes(&self) -> impl Iterator<Item = &Probe> {
        self.points
            .iter()
            .filter_map(|point| point.verified.as_ref())
            .flat_map(|verified| &verified.kept)
    }

    /// Whether every point has a reply. A bank with a point missing is not written: running again completes it.
    pub(super) fn is_whole(&self) -> bool {
        self.points.iter().all(|point| point.verified.is_some())
    }

    /// Tags the probes whose facts all occur in an answer that was given without a context.
    pub(super) fn mark_guessable(&mut self, answers: &mut impl Iterator<Item = Option<Output>>) {
        let kept = self
            .points
            .iter_mut()
            .filter_map(|point| point.verified.as_mut())
            .flat_map(|v| &mut v.kept);
        for probe in kept {
            match answers.next().flatten() {
                Some(Output::Answer(answer)) if is_answered(probe, &answer.text) => {
                    probe.tags.push(GUESSABLE.to_owned());
                }
                Some(_) => {}
                None => self.unchecked.push(probe.id.to_string()),
            }
        }
    }

    /// The ids of the probes that are answered without any context.
    pub(super) fn guessable(&self) -> Vec<String> {
        let guessable = self
            .probes()
            .filter(|probe| probe.tags.iter().any(|tag| tag == GUESSABLE));
        guessable.map(|probe| probe.id.to_string()).collect()
    }

    /// Whether there is a bank to write.
    pub(super) fn is_written(&self) -> bool {
        self.is_whole() && self.probes().next().is_some()
    }

    /// The bank's file; `None` where there is nothing to write.
    pub(super) fn bank_text(&self) -> Result<Option<String>, Failure> {
        if !self.is_written() {
            return Ok(None);
        }
        let probes = self.probes().cloned().collect();
        let bank = Bank {
            fixture: self.fixture.clone(),
            literal: true,
            probes,
            extra: serde_json::Map::new(),
        };
        json_file(&bank).map(Some)
    }
}

fn is_answered(probe: &Probe, answer: &str) -> bool {
    let folded = fold(answer);
    !probe.expected_facts.is_empty()
        && FactFinder::all(&probe.expected_facts)
            .iter()
            .all(|f| f.occurs_in(&folded))
}
