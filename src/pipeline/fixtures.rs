//! Finds and reads fixtures and their banks, and pairs them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::file::Located;
use super::model::{FixtureDigests, LoadedFixture, ProbeIx, SourceFile};
use super::problem::{Problem, Problems, Severity, suggest};
use super::select::{MatrixSelection, is_wanted, report_unknown};
use super::sources::{SourceReader, describe_error, shown};
use super::validation::check_name;
use crate::action::{Digest, DigestBuilder};
use crate::probe::{Bank, FindingKind, ParsedBank, check_bank, settle_literal};
use base::fault::Fault;
use base::text::shell_word;
use lexical::facts::History;
use sessions::references::PATTERNS;
use sessions::transcript::{Fixture, ParsedFixture};

pub(super) const BANK: &str = ".probes.json";

/// The size of the largest fixture that people still review before they share it, in bytes.
const FIXTURE_BYTES: usize = 150_000;

/// The same for all fixtures of a project together, in bytes.
const FIXTURES_BYTES: usize = 500_000;

/// What a command needs of the banks. Only for a run it is an error that nothing is selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Banks {
    /// For a run: fixtures without one are left out.
    #[default]
    Needed,
    /// For results that exist, whatever was asked then: banks are read where there are some.
    IfThere,
    /// For commands that run no matrix: none is read.
    Unread,
}

/// Checks of fixtures and banks beyond their structure.
#[derive(Clone, Copy, Debug)]
pub(super) struct FixtureChecks {
    /// Whether a fact that an answer can have without the compressed context is an error, not a warning.
    pub(super) strict: bool,
    /// Whether a fact that occurs nowhere is a warning, not an error.
    pub(super) allow_unproven: bool,
    /// Whether the answerer is shown what follows the point.
    pub(super) verbatim_tail: bool,
    /// Whether banks are read, and whether a fixture without one is left out.
    pub(super) banks: Banks,
}

impl FixtureChecks {
    fn severity(self, kind: FindingKind) -> Severity {
        match kind {
            FindingKind::PointOutOfRange => Severity::Error,
            FindingKind::UnprovenFact if !self.allow_unproven => Severity::Error,
            FindingKind::GivenAway | FindingKind::InTail if self.strict => Severity::Error,
            _ => Severity::Warning,
        }
    }
}

/// The fixture files by stem; `written` is their folder as the pipeline in `file` names it.
pub(super) fn fixture_files(
    reader: &SourceReader,
    file: &SourceFile,
    written: Option<&Located<String>>,
    problems: &mut Problems,
) -> BTreeMap<String, String> {
    let folder = written.map_or("fixtures", |folder| &folder.value);
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    if !reader.folder().join(folder).is_dir() {
        let problem = Problem::error(format!("there is no folder `{folder}` with fixtures"));
        let problem = problem.help("`compeval fixture import` makes a fixture from a session log");
        let place = written.map(|folder| folder.place.clone());
        problems.push(problem.at_known(file, place));
        return files;
    }
    let paths = json_files(reader, folder, problems).into_iter();
    for path in paths.filter(|path| !path.ends_with(BANK)) {
        let stem = stem(&path);
        if let Err(message) = check_name(&stem) {
            let problem = Problem::error(format!("{path}: {message}"));
            problems.push(problem.help("rename the file and its `name`"));
        } else if let Some(first) = files.get(&stem).filter(|first| **first != path) {
            let message = format!("two fixtures are named `{stem}`: {first} and {path}");
            let help = "names identify results: use a different one";
            problems.push(Problem::error(message).help(help));
        } else {
            files.insert(stem, path);
        }
    }
    files
}

/// The paths `FOLDER/NAME` of everything in a folder that is named like a JSON file, sorted; none if there is no
/// such folder. A file that cannot be read is listed, too: reading it reports the error.
fn json_files(reader: &SourceReader, folder: &str, problems: &mut Problems) -> Vec<String> {
    let entries = match std::fs::read_dir(reader.folder().join(folder)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            problems.push(Problem::error(format!(
                "cannot read the folder {folder}: {}",
                describe_error(&error)
            )));
            return Vec::new();
        }
    };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut files: Vec<String> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "json") && !is_lock(path))
        .filter_map(|path| Some(shown(&Path::new(folder).join(path.file_name()?))))
        .collect();
    files.sort();
    files
}

/// Reads the fixtures and banks of a project.
pub(super) struct FixtureLoader<'a> {
    pub(super) reader: &'a SourceReader,
    /// The fixture files by stem.
    pub(super) fixtures: &'a BTreeMap<String, String>,
    pub(super) probes: Option<&'a Located<String>>,
    pub(super) checks: FixtureChecks,
    pub(super) problems: &'a mut Problems,
}

impl FixtureLoader<'_> {
    /// Reads the selected fixtures with their banks, sorted by name. Also returns the names of those without a bank.
    pub(super) fn load(mut self, selection: &MatrixSelection) -> (Vec<LoadedFixture>, Vec<String>) {
        let fixtures = self.fixtures;
        let banks = match self.checks.banks {
            Banks::Unread => BTreeMap::new(),
            Banks::Needed | Banks::IfThere => self.bank_files(),
        };
        let names: Vec<&str> = fixtures.keys().map(String::as_str).collect();
        let wanted = selection.fixtures.as_deref();
        report_unknown("--fixtures", "fixture", wanted, &names, self.problems);
        self.report_orphan_banks(&banks, &names);
        let (mut loaded, mut left_out) = (Vec::new(), Vec::new());
        let mut sizes = Vec::new();
        for (name, path) in fixtures.iter().filter(|(name, _)| is_wanted(wanted, name)) {
            let fixture = self.read_fixture(name, path, &mut sizes);
            match (banks.get(name), fixture) {
                (None, fixture) if self.checks.banks != Banks::Needed => {
                    loaded
                        .extend(fixture.map(|(fixture, file)| without_bank(fixture, (path, file))));
                }
                (None, _) => {
                    let problem = Problem::warning(format!(
                        "the fixture `{name}` has no bank and is left out"
                    ));
                    let help = format!(
                        "write {}/{name}{BANK}, or let a model: `compeval probes generate {}`",
                        self.bank_folder(),
                        shell_word(name)
                    );
                    self.problems.push(problem.help(help));
                    left_out.push(name.clone());
                }
                (Some(bank), Some((fixture, file))) => {
                    loaded.extend(self.pair(fixture, (path, file), bank))
                }
                (Some(_), None) => {}
            }
        }
        // A run is not a review: there the sizes would be news at each start.
        if self.checks.strict {
            self.check_sizes(&sizes);
        }
        (loaded, left_out)
    }

    fn bank_folder(&self) -> String {
        self.probes
            .map_or("probes", |probes| probes.value.trim_end_matches('/'))
            .to_owned()
    }

    /// The bank files by the fixture they name.
    fn bank_files(&mut self) -> BTreeMap<String, String> {
        let folder = self.bank_folder();
        let files = json_files(self.reader, &folder, self.problems);
        files
            .into_iter()
            .filter(|path| path.ends_with(BANK))
            .map(|path| (stem(&path), path))
            .collect()
    }

    /// Reports banks whose fixture does not exist.
    fn report_orphan_banks(&mut self, banks: &BTreeMap<String, String>, names: &[&str]) {
        let orphans = banks
            .iter()
            .filter(|(name, _)| !names.contains(&name.as_str()));
        for (name, path) in orphans {
            let message =
                format!("{path} is a bank for the fixture `{name}`, which does not exist");
            self.problems
                .push(Problem::error(message).help(suggest(name, names.iter().copied())));
        }
    }

    fn read_fixture(
        &mut self,
        name: &str,
        path: &str,
        sizes: &mut Vec<(String, usize)>,
    ) -> Option<(Fixture, Digest)> {
        let source = self.read("fixture", path)?;
        let size = source.text.len();
        let parsed = ParsedFixture::read(&source.text)
            .map_err(|faults| self.report(&source, faults))
            .ok()?;
        let fixture = parsed.fixture;
        // Where someone wrote down in words how it was made, people have reviewed it.
        if !fixture.notes.is_string() {
            sizes.push((path.to_owned(), size));
        }
        if fixture.name != name {
            let message = format!(
                "the fixture in {path} is named `{}`, its file `{name}`",
                fixture.name
            );
            self.report_name(
                &source,
                &fixture.name,
                message,
                "name and file stem are the same: change one of them",
            );
            return None;
        }
        Some((fixture, source.digest))
    }

    fn pair(
        &mut self,
        fixture: Fixture,
        (path, file): (&str, Digest),
        bank_path: &str,
    ) -> Option<LoadedFixture> {
        let source = self.read("bank", bank_path)?;
        let mut parsed = ParsedBank::read(&source.text)
            .map_err(|faults| self.report(&source, faults))
            .ok()?;
        let bank = &parsed.bank;
        if bank.fixture != fixture.name {
            let message = format!(
                "the bank in {bank_path} is for `{}`, its file name says `{}`",
                bank.fixture, fixture.name
            );
            let help = "`fixture` and file name are the same: change one of them";
            self.report_name(&source, &bank.fixture, message, help);
            return None;
        }
        let history = History::new(&fixture.messages);
        for (kind, fault) in check_bank(&parsed, &fixture, &history, self.checks.verbatim_tail) {
            let severity = self.checks.severity(kind);
            let help = fault.help.unwrap_or_default();
            let help = match (kind, severity) {
                (FindingKind::UnprovenFact, Severity::Error) => {
                    format!("{help}; `run` continues with --allow-unproven")
                }
                _ => help,
            };
            let problem = Problem::error(fault.message)
                .at(&source, fault.place)
                .help(help);
            self.problems.push(problem.with_severity(severity));
        }
        settle_literal(&mut parsed, &fixture, &history);
        Some(with_bank(
            fixture,
            parsed.bank,
            (path, file),
            (bank_path, source.digest),
        ))
    }

    /// Warns of fixtures that are too large for people to review.
    fn check_sizes(&mut self, sizes: &[(String, usize)]) {
        for (path, size) in sizes.iter().filter(|(_, size)| *size > FIXTURE_BYTES) {
            let (size, limit) = (size / 1000, FIXTURE_BYTES / 1000);
            self.warn_large(format!(
                "{path} has {size} KB, more than people review: {limit} KB"
            ));
        }
        let total: usize = sizes.iter().map(|(_, size)| size).sum();
        if total > FIXTURES_BYTES {
            let (total, limit) = (total / 1000, FIXTURES_BYTES / 1000);
            self.warn_large(format!(
                "the fixtures have {total} KB together, more than people review: {limit} KB"
            ));
        }
    }

    fn warn_large(&mut self, message: String) {
        let help = "a shorter stretch of the session may do: `compeval fixture import --max-tokens N`; `compeval fixture scrub` cuts \
             long tool outputs that are still whole";
        self.problems.push(Problem::warning(message).help(help));
    }

    fn read(&mut self, what: &str, path: &str) -> Option<SourceFile> {
        let read = self.reader.read_uncached(path);
        read.map_err(|why| {
            self.problems.push(Problem::error(format!(
                "cannot read the {what} {path}: {why}"
            )))
        })
        .ok()
    }

    fn report(&mut self, source: &SourceFile, faults: Vec<Fault>) {
        let faults = Problems::from_faults(faults, source);
        self.problems.0.extend(faults.0);
    }

    fn report_name(&mut self, source: &SourceFile, name: &str, message: String, help: &str) {
        let quoted = format!("\"{name}\"");
        let problem = Problem::error(message).help(help);
        // The search does not find a name that is written with escapes.
        let place = source.text.find(&quoted).map(|at| at..at + quoted.len());
        self.problems.push(problem.at_known(source, place));
    }
}

/// Whether a path is an editor's lock: a dangling link whose name begins with `.#`.
fn is_lock(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(".#"))
        && !path.exists()
}

fn with_bank(
    fixture: Fixture,
    bank: Bank,
    (path, file): (&str, Digest),
    (bank_path, bank_file): (&str, Digest),
) -> LoadedFixture {
    let points = fixture.effective_points();
    LoadedFixture {
        selected: probes_by_point(&bank, points.len()),
        variants: Vec::new(),
        digests: digests(&fixture, &bank, &points),
        recorded: Digest::of_json(&(PATTERNS, fixture.begins_midway)),
        fixture: Arc::new(fixture),
        bank: Arc::new(bank),
        points,
        path: path.to_owned(),
        file,
        bank_path: bank_path.to_owned(),
        bank_file,
    }
}

/// A fixture with an empty bank.
fn without_bank(fixture: Fixture, file: (&str, Digest)) -> LoadedFixture {
    let bank = Bank {
        fixture: fixture.name.clone(),
        literal: true,
        probes: Vec::new(),
        extra: serde_json::Map::new(),
    };
    with_bank(fixture, bank, file, ("", Digest::hash("")))
}

/// The probes at each of `points` points. A probe without a point is asked at the last.
fn probes_by_point(bank: &Bank, points: usize) -> Vec<Vec<ProbeIx>> {
    let mut selected = vec![Vec::new(); points];
    for (index, probe) in bank.probes.iter().enumerate() {
        let number = probe.point.map_or(points, |point| point.0 as usize);
        if let Some(probes) = number.checked_sub(1).and_then(|at| selected.get_mut(at)) {
            probes.push(ProbeIx(index));
        }
    }
    selected
}

/// The file's name without `.json` or `.probes.json`.
fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(BANK)
        .or_else(|| name.strip_suffix(".json"))
        .unwrap_or(name)
        .to_owned()
}

fn digests(fixture: &Fixture, bank: &Bank, points: &[usize]) -> FixtureDigests {
    let mut numbers = DigestBuilder::new("points");
    for point in points {
        numbers.field("point", (*point as u64).to_le_bytes());
    }
    FixtureDigests {
        transcript: Digest::of_json(&fixture.messages),
        points: numbers.finish(),
        bank: Digest::of_json(&bank.probes),
    }
}
