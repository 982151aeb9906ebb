//! The questions under review, and the files that a decision writes.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

use super::card::{Card, ReviewItem, SearchableFixture};
use crate::action::Digest;
use crate::cli::commands::fixture::file_text;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::require_fixtures;
use crate::pipeline::{Problem, Problems, ProjectPaths, SourceFile};
use crate::probe::{BankText, Probe};
use base::fault::Fault;
use base::files::{read_text, write_whole};
use lexical::facts::History;
use sessions::import::PARAPHRASE;
use sessions::transcript::ParsedFixture;

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase", tag = "decision", content = "text")]
pub(super) enum Decision {
    /// The probe, or the message, is good as it is.
    Accept,
    /// The probe as JSON, or the rephrased message.
    Edit(String),
    Reject,
}

/// How many decisions there were of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReviewCounts {
    accepted: usize,
    edited: usize,
    rejected: usize,
}

impl fmt::Display for ReviewCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!(
            "{} accepted, {} edited, {} rejected",
            self.accepted, self.edited, self.rejected
        ))
    }
}

/// The questions that are open, and the session that the last one was about.
pub(super) struct Review {
    paths: ProjectPaths,
    pub(super) items: Vec<ReviewItem>,
    pub(super) counts: ReviewCounts,
    /// Places of the items that are settled.
    settled: BTreeSet<usize>,
    session: Option<SearchableFixture>,
    /// The decisions that can be undone, the newest last.
    steps: Vec<UndoStep>,
}

/// The state before a decision, to undo it.
struct UndoStep {
    /// The question that was decided, and the first of several.
    at: usize,
    items: Vec<ReviewItem>,
    settled: BTreeSet<usize>,
    counts: ReviewCounts,
    files: Vec<WrittenFile>,
}

/// A file that a decision wrote.
struct WrittenFile {
    path: PathBuf,
    before: String,
    after: String,
}

impl Review {
    /// The open questions of `names`, or of all fixtures with a bank; with `all`, also those that were reviewed.
    pub(super) fn open(
        paths: ProjectPaths,
        names: &[String],
        all: bool,
    ) -> Result<Review, Failure> {
        require_fixtures(&paths, names)?;
        if let Some(bare) = names.iter().find(|name| !paths.bank_of(name).is_file()) {
            return Err(
                Failure::input(format!("the fixture `{bare}` has no bank")).hinted(generate())
            );
        }
        let meant = paths
            .files
            .keys()
            .filter(|name| names.is_empty() || names.contains(*name));
        let names: Vec<String> = meant
            .filter(|name| paths.bank_of(name).is_file())
            .cloned()
            .collect();
        if names.is_empty() {
            return Err(Failure::input("there is no bank to review")
                .hinted(generate())
                .exiting(Exit::EmptySelection));
        }
        let mut review = Review {
            paths,
            items: Vec::new(),
            counts: ReviewCounts::default(),
            settled: BTreeSet::new(),
            session: None,
            steps: Vec::new(),
        };
        for name in names {
            let fixture = review.read_session(&name)?.fixture;
            if fixture.notes.get(PARAPHRASE).is_some() {
                review.items.push(ReviewItem {
                    fixture: name.clone(),
                    probe: None,
                });
            }
            let bank = &review.bank(&name)?.parsed().bank.clone();
            let open = bank
                .probes
                .iter()
                .filter(|probe| all || !bank.reviewed.contains(&probe.id));
            review.items.extend(open.map(|probe| ReviewItem {
                fixture: name.clone(),
                probe: Some(probe.id.clone()),
            }));
        }
        Ok(review)
    }

    /// The first item from this place on that is not settled.
    pub(super) fn next_open(&self, from: usize) -> Option<usize> {
        (from..self.items.len()).find(|at| !self.settled.contains(at))
    }

    /// How far the review is, in a line.
    pub(super) fn progress(&self) -> String {
        format!(
            "{} of {} decided ({})",
            self.settled.len(),
            self.items.len(),
            self.counts
        )
    }

    /// How many items are not settled.
    pub(super) fn left(&self) -> usize {
        self.items.len() - self.settled.len()
    }

    /// The card of an item.
    pub(super) fn card(&mut self, at: usize) -> Result<Card, Failure> {
        let of = self.items.len();
        let item = self
            .items
            .get(at)
            .ok_or_else(|| Failure::error("there is no such question"))?
            .clone();
        let bank = self.bank(&item.fixture)?;
        let session = self.session(&item.fixture)?;
        Card::new(&item, at + 1, of, session, &bank).ok_or_else(|| missing_probe(&item))
    }

    /// Writes a decision. Returns whether it settles the item: an edited probe is shown again.
    pub(super) fn decide(&mut self, at: usize, decision: Decision) -> Result<bool, Failure> {
        self.begin_step(at);
        self.settle(at, decision)
            .inspect_err(|_| drop(self.steps.pop()))
    }

    /// Accepts the probes of a fixture that are not settled, from this place on. Returns how many there were.
    pub(super) fn accept_all(&mut self, at: usize) -> Result<usize, Failure> {
        let Some(fixture) = self.items.get(at).map(|item| item.fixture.clone()) else {
            return Ok(0);
        };
        let items = (0..).zip(&self.items).skip(at);
        let of_fixture = items
            .filter(|(_, item)| item.fixture == fixture && item.probe.is_some())
            .map(|(at, _)| at);
        let open: Vec<usize> = of_fixture.filter(|at| !self.settled.contains(at)).collect();
        self.begin_step(at);
        for at in &open {
            if let Err(failure) = self.settle(*at, Decision::Accept) {
                // What was accepted before can be undone; a step without any would undo nothing.
                self.steps.pop_if(|step| step.files.is_empty());
                return Err(failure);
            }
        }
        Ok(open.len())
    }

    /// Takes the newest decision back, also an acceptance of many. Returns the question to show; `None` if there is none.
    pub(super) fn undo(&mut self) -> Result<Option<usize>, Failure> {
        let Some(step) = self.steps.last() else {
            return Ok(None);
        };
        for file in &step.files {
            if read_text(&file.path)? != file.after {
                let path = self.paths.shown(&file.path);
                return Err(Failure::input(format!(
                    "{path} was changed since, so the decision is not undone"
                )));
            }
        }
        for file in step.files.iter().rev() {
            write_whole(&file.path, &file.before)?;
        }
        let Some(UndoStep {
            at,
            items,
            settled,
            counts,
            ..
        }) = self.steps.pop()
        else {
            return Ok(None);
        };
        (self.items, self.settled, self.counts, self.session) = (items, settled, counts, None);
        Ok(Some(at))
    }

    fn begin_step(&mut self, at: usize) {
        let (items, settled) = (self.items.clone(), self.settled.clone());
        self.steps.push(UndoStep {
            at,
            items,
            settled,
            counts: self.counts,
            files: Vec::new(),
        });
    }

    /// Writes a file and remembers what it was. Several writes of one file are one.
    fn write(&mut self, path: PathBuf, text: String) -> Result<(), Failure> {
        let before = read_text(&path)?;
        write_whole(&path, &text)?;
        if let Some(step) = self.steps.last_mut() {
            match step.files.iter_mut().find(|file| file.path == path) {
                Some(file) => file.after = text,
                None => step.files.push(WrittenFile {
                    path,
                    before,
                    after: text,
                }),
            }
        }
        Ok(())
    }

    fn settle(&mut self, at: usize, decision: Decision) -> Result<bool, Failure> {
        let Some(item) = self.items.get(at).cloned() else {
            return Ok(true);
        };
        match (&item.probe, &decision) {
            (None, Decision::Reject) => {
                return Err(Failure::input("a message can only be rephrased or kept"));
            }
            (None, Decision::Accept) => self.settle_message(&item.fixture, None)?,
            (None, Decision::Edit(words)) => self.settle_message(&item.fixture, Some(words))?,
            (Some(id), Decision::Accept) => self.edit_bank(&item, |bank| bank.with_reviewed(id))?,
            (Some(id), Decision::Reject) => self.edit_bank(&item, |bank| bank.without_probe(id))?,
            (Some(id), Decision::Edit(json)) => {
                self.edit_bank(&item, |bank| bank.with_probe(id, json))?;
                let renamed = serde_json::from_str(json).map(|probe: Probe| probe.id).ok();
                if let Some(item) = self.items.get_mut(at) {
                    item.probe = renamed.or_else(|| Some(id.clone()));
                }
            }
        }
        match decision {
            Decision::Accept => self.counts.accepted += 1,
            Decision::Edit(_) => self.counts.edited += 1,
            Decision::Reject => self.counts.rejected += 1,
        }
        let is_settled = item.probe.is_none() || !matches!(decision, Decision::Edit(_));
        if is_settled {
            self.settled.insert(at);
        }
        Ok(is_settled)
    }

    /// Rephrases or keeps the marked message; either way the mark is removed.
    fn settle_message(&mut self, fixture: &str, words: Option<&str>) -> Result<(), Failure> {
        let mut changed = self.read_session(fixture)?.fixture;
        let index = changed
            .notes
            .get(PARAPHRASE)
            .and_then(serde_json::Value::as_u64);
        let message =
            index.and_then(|index| changed.messages.get_mut(usize::try_from(index).ok()?));
        match (message, words.map(str::trim)) {
            (_, Some("")) => {
                return Err(Failure::input("a message cannot be empty"));
            }
            (Some(message), Some(words)) => words.clone_into(&mut message.content),
            _ => {}
        }
        if let Some(notes) = changed.notes.as_object_mut() {
            notes.remove(PARAPHRASE);
        }
        self.write(self.fixture_path(fixture), file_text(&changed)?)?;
        self.session = None;
        Ok(())
    }

    fn edit_bank(
        &mut self,
        item: &ReviewItem,
        edit: impl FnOnce(&BankText) -> Result<BankText, Vec<Fault>>,
    ) -> Result<(), Failure> {
        let edited = edit(&self.bank(&item.fixture)?).map_err(|faults| {
            let words = faults.into_iter().map(|fault| match fault.help {
                Some(help) => format!("{} ({help})", fault.message),
                None => fault.message,
            });
            Failure::input(words.collect::<Vec<_>>().join("; "))
        })?;
        self.write(self.paths.bank_of(&item.fixture), edited.text().to_owned())
    }

    /// The bank as it is on disk now: somebody may edit it during the review.
    fn bank(&self, fixture: &str) -> Result<BankText, Failure> {
        let path = self.paths.bank_of(fixture);
        let text = read_text(&path)?;
        BankText::read(text.clone())
            .map_err(|faults| problems(faults, self.paths.shown(&path), &text))
    }

    fn session(&mut self, name: &str) -> Result<&SearchableFixture, Failure> {
        let session = match self
            .session
            .take()
            .filter(|session| session.fixture.name == name)
        {
            Some(session) => session,
            None => self.read_session(name)?,
        };
        Ok(self.session.insert(session))
    }

    fn read_session(&self, name: &str) -> Result<SearchableFixture, Failure> {
        let path = self.fixture_path(name);
        let text = read_text(&path)?;
        let parsed = ParsedFixture::read(&text)
            .map_err(|faults| problems(faults, self.paths.shown(&path), &text))?;
        let history = History::new(&parsed.fixture.messages);
        Ok(SearchableFixture {
            fixture: parsed.fixture,
            history,
        })
    }

    fn fixture_path(&self, name: &str) -> std::path::PathBuf {
        self.paths
            .folder
            .join(self.paths.files.get(name).map_or(name, String::as_str))
    }
}

fn generate() -> &'static str {
    "`compeval probes generate` writes banks"
}

fn missing_probe(item: &ReviewItem) -> Failure {
    let id = item
        .probe
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    Failure::input(format!(
        "the probe `{id}` is no longer in the bank of {}",
        item.fixture
    ))
}

fn problems(faults: Vec<Fault>, path: String, text: &str) -> Failure {
    let source = SourceFile {
        path,
        digest: Digest::hash(text),
        text: text.into(),
    };
    Problems(
        faults
            .into_iter()
            .map(|fault| Problem::from_fault(fault, &source))
            .collect(),
    )
    .into()
}
