//! The lines that were edited since a result was made, in the messages of its fixture and in its probe.

use std::ops::{Range, RangeInclusive};

use crate::pipeline::{LoadedFixture, Pipeline, data_files};
use crate::plan::{DiffSide, Hunk, hunks};
use crate::probe::ParsedBank;
use crate::results::Manifest;
use base::say;
use base::text::line_and_column;
use sessions::transcript::{Fixture, ParsedFixture, render};
use store::cache::{CacheSnapshot, Lookup};

pub(crate) const AROUND: usize = 1;

/// Differing lines, with the name of their file.
pub(crate) type FileDiff = (String, Vec<Hunk>);

/// Compares the files of today with those that a result set was made from.
#[derive(Clone, Copy)]
pub(crate) struct SourceChanges<'a> {
    pub(crate) snapshot: &'a CacheSnapshot,
    pub(crate) manifest: &'a Manifest,
    /// The current project, with only the fixture of the result.
    pub(crate) pipeline: &'a Pipeline,
}

impl SourceChanges<'_> {
    /// The changed messages before a point, as models read them: in the file a message is one line, however long.
    pub(crate) fn messages(&self, point: u32) -> Option<FileDiff> {
        let loaded = self.fixture()?;
        let old = ParsedFixture::read(&self.earlier(&loaded.path)?)
            .ok()?
            .fixture;
        let differing = hunks(
            &before(&old, point),
            &before(&loaded.fixture, point),
            AROUND,
        );
        (!differing.is_empty()).then(|| {
            (
                say!("{}, as models read it", "{}（模型读到的内容）", loaded.path),
                differing,
            )
        })
    }

    /// The changed lines of a probe in its bank.
    pub(crate) fn probe(&self, id: &str) -> Option<FileDiff> {
        let path = &self.fixture()?.bank_path;
        let (old, new) = (
            self.earlier(path)?,
            data_files(self.pipeline)
                .find(|file| file.path == *path)?
                .text,
        );
        let parsed = ParsedBank::read(&new).ok()?;
        let at = parsed
            .bank
            .probes
            .iter()
            .position(|probe| *probe.id.0 == *id)?;
        let lines = lines_of(&new, &parsed.places.get(at)?.probe);
        let mut differing = hunks(&old, &new, AROUND);
        differing.retain(|hunk| is_within(hunk, &lines));
        (!differing.is_empty()).then(|| (path.clone(), differing))
    }

    fn fixture(&self) -> Option<&LoadedFixture> {
        self.pipeline.fixtures.first()
    }

    /// The text of a file as it was when the result was made.
    fn earlier(&self, path: &str) -> Option<String> {
        self.snapshot.read_text(self.manifest.files.get(path)?)
    }
}

/// The messages of a fixture before a point, as one text.
fn before(fixture: &Fixture, point: u32) -> String {
    let at = (point as usize)
        .checked_sub(1)
        .and_then(|at| fixture.effective_points().get(at).copied());
    let end = at
        .unwrap_or(fixture.messages.len())
        .min(fixture.messages.len());
    render(
        fixture
            .messages
            .get(fixture.start()..end)
            .unwrap_or_default(),
    )
}

/// The lines, from 1, that a range of bytes covers.
fn lines_of(text: &str, bytes: &Range<usize>) -> RangeInclusive<usize> {
    let [(first, _), (last, _)] = [bytes.start, bytes.end].map(|at| line_and_column(text, at));
    first..=last
}

/// Whether a line of these has changed.
fn is_within(hunk: &Hunk, lines: &RangeInclusive<usize>) -> bool {
    let mut at = hunk.line;
    hunk.lines.iter().any(|(side, _)| {
        let here = at;
        at += usize::from(*side != DiffSide::Old);
        *side != DiffSide::Both && lines.contains(&here)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_within_the_lines_counts() {
        let text = "a\nb\nc\nd\n";
        assert_eq!(lines_of(text, &(2..5)), 2..=3);
        let edited = hunks(text, "a\nb\nc\nD\n", 1);
        let within: Vec<bool> = edited
            .iter()
            .map(|hunk| is_within(hunk, &(2..=3)))
            .collect();
        assert_eq!(
            (within, is_within(&edited[0], &(4..=4))),
            (vec![false], true)
        );
    }
}
