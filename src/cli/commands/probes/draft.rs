//! A generated bank before it is written: verified probes and rejected candidates of each point.

use crate::cli::failure::Failure;
use crate::pipeline::{LoadedFixture, PointIx};
use crate::plan::Output;
use crate::probe::{
    Bank, CandidateVerdicts, Probe, keep_true_files, probes_per_point, proof_of, verify,
};
use lexical::facts::FactFinder;
use sessions::transcript::{FileLedger, Point, fold};

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

/// The bank of one fixture.
pub(super) struct BankDraft {
    pub(super) fixture: String,
    pub(super) points: Vec<PointDraft>,
    /// Ids of probes that were not tried without a context.
    pub(super) unchecked: Vec<String>,
}

impl BankDraft {
    /// Verifies the candidates of each point of a fixture against the span that they are about.
    pub(super) fn new(loaded: &LoadedFixture, outputs: Vec<Option<Output>>) -> BankDraft {
        let mut draft = BankDraft {
            fixture: loaded.name().to_owned(),
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
        let text = serde_json::to_string_pretty(&bank);
        text.map(|text| Some(text + "\n"))
            .map_err(|error| Failure::error(format!("failed to write JSON: {error}")))
    }
}

fn is_answered(probe: &Probe, answer: &str) -> bool {
    let folded = fold(answer);
    !probe.expected_facts.is_empty()
        && FactFinder::all(&probe.expected_facts)
            .iter()
            .all(|f| f.occurs_in(&folded))
}
