//! A randomised crash test: it kills commands at random points, restarts them, and compares their results with those of
//! a run that was not killed.
//!
//! `cargo build && cargo run -p compeval-tools --bin crash [SECONDS] [SEED]`
//!
//! Each round may edit the project, starts a command, kills it (or lets it end), and checks:
//! 1. The label always has complete results, which are byte for byte those of one of the designs.
//! 2. `cache verify` finds no damage.
//! 3. The same command, if it is not killed, gives the bytes of the reference, and leaves no other files.

#![allow(clippy::print_stdout, reason = "a test that reports")]
#![allow(
    clippy::disallowed_methods,
    reason = "scratch files need no atomic write"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

mod program;

use program::program;

/// The texts that the two designs add to the prompt.
const DESIGNS: [&str; 2] = ["", "\nBe brief.\n"];
/// The files that depend only on the design.
const COMPARED: [&str; 3] = ["cells.jsonl", "summary.json", "report.md"];
const LABEL: &str = "x";

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|text| text.parse::<u64>().expect("a number"));
    let seconds = arguments.next().unwrap_or(60);
    let seed = arguments
        .next()
        .unwrap_or_else(|| u64::from(std::process::id()) | 1);
    println!("{seconds} s, seed {seed}");
    let mut test = CrashTest::prepare(seed);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        test.round();
    }
    println!(
        "{} rounds, {} commands killed, {} of them before they ended: no difference",
        test.rounds, test.tried, test.killed
    );
}

struct CrashTest {
    project: PathBuf,
    prompt: String,
    /// The compared files of each design.
    reference: Vec<Vec<Vec<u8>>>,
    /// The current design.
    design: usize,
    random: u64,
    rounds: u64,
    tried: u64,
    killed: u64,
    _folder: tempfile::TempDir,
}

impl CrashTest {
    fn prepare(seed: u64) -> CrashTest {
        let folder = tempfile::tempdir().expect("a folder");
        let project = folder.path().join("project");
        let status = command(folder.path(), &["init", "project"])
            .status()
            .expect("the program");
        assert!(status.success());
        let prompt = fs::read_to_string(project.join("prompts/anchored.md")).expect("a prompt");
        let mut test = CrashTest {
            project,
            prompt,
            reference: Vec::new(),
            design: 0,
            random: seed,
            rounds: 0,
            tried: 0,
            killed: 0,
            _folder: folder,
        };
        for design in 0..DESIGNS.len() {
            test.edit(design);
            test.complete(&["run", "--label", LABEL, "--replace"]);
            test.reference.push(test.files());
        }
        assert!(
            test.reference[0] != test.reference[1],
            "the edit changes the results"
        );
        test
    }

    /// A number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }

    fn edit(&mut self, design: usize) {
        self.design = design;
        fs::write(
            self.project.join("prompts/anchored.md"),
            format!("{}{}", self.prompt, DESIGNS[design]),
        )
        .expect("a prompt");
    }

    fn files(&self) -> Vec<Vec<u8>> {
        let read = |name: &&str| {
            let bytes =
                fs::read(self.project.join("results").join(LABEL).join(name)).unwrap_or_default();
            // An output that was pruned and made again has another duration.
            let is_time = |line: &&[u8]| line.windows(10).any(|part| part == b"\"seconds\":");
            bytes
                .split_inclusive(|byte| *byte == b'\n')
                .filter(|line| !is_time(line))
                .flatten()
                .copied()
                .collect()
        };
        COMPARED.iter().map(read).collect()
    }

    fn round(&mut self) {
        self.rounds += 1;
        let design = self.below(2) as usize;
        self.edit(design);
        let commands: [&[&str]; 7] = [
            &["run", "--label", LABEL, "--replace"],
            &["run", "--label", LABEL, "--replace"],
            &["run", "--label", LABEL, "--replace", "--refresh", "judge"],
            &["report", LABEL],
            &["cache", "prune", "--unreachable"],
            &["cache", "prune", "--stage", "judge"],
            &["cache", "prune", "--stage", "compress"],
        ];
        let arguments = commands[self.below(7) as usize];
        // Several kills before the command may end, so that a crash begins with what an earlier crash left.
        for _ in 0..=self.below(3) {
            self.kill(arguments);
            self.check(arguments);
        }
        self.complete(arguments);
        self.complete(&["run", "--label", LABEL, "--replace"]);
        self.compare(arguments);
        self.complete(&["cache", "verify"]);
        self.check_leftovers(arguments);
        let earlier = fs::read_dir(self.project.join("results"))
            .expect("results")
            .flatten();
        for name in earlier
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.contains('~'))
        {
            self.complete(&["labels", "rm", &name]);
        }
    }

    /// Checks that the results are those of the reference.
    fn compare(&self, arguments: &[&str]) {
        for ((name, found), expected) in COMPARED
            .iter()
            .zip(self.files())
            .zip(&self.reference[self.design])
        {
            let (found, expected) = (
                String::from_utf8_lossy(&found),
                String::from_utf8_lossy(expected),
            );
            let differing = found
                .lines()
                .zip(expected.lines())
                .find(|(found, expected)| found != expected);
            assert!(
                found == expected,
                "{arguments:?}: {name} is not that of the reference: {differing:?}"
            );
        }
    }

    /// Starts a command and kills it after a random time.
    fn kill(&mut self, arguments: &[&str]) {
        self.tried += 1;
        let pause = match self.below(3) {
            0 => self.below(30_000),
            1 => self.below(300_000),
            _ => self.below(1_500_000),
        };
        let mut child = command(&self.project, arguments)
            .spawn()
            .expect("the program");
        std::thread::sleep(Duration::from_micros(pause));
        let has_ended = child.try_wait().expect("a process").is_some();
        let _ = child.kill();
        let status = child.wait().expect("an end");
        self.killed += u64::from(!has_ended);
        assert!(
            !has_ended || status.code().is_some_and(|code| code == 0),
            "{arguments:?}: {status}"
        );
    }

    /// Checks what must hold after every kill.
    fn check(&self, arguments: &[&str]) {
        // Every command that opens the label completes a publication that was begun.
        self.complete(&["labels", "ls"]);
        let files = self.files();
        // `report` writes its files one by one, from rows that do not change.
        let is_same = |reference: &Vec<Vec<u8>>| match arguments[0] {
            "report" => reference[0] == files[0],
            _ => *reference == files,
        };
        assert!(
            self.reference.iter().any(is_same),
            "{arguments:?}: the label has lost its complete results"
        );
    }

    fn check_leftovers(&self, arguments: &[&str]) {
        let mut folders = vec![self.project.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_left = [".incomplete", ".replaced"].contains(&name.as_str())
                    || [".tmp", ".unfinished", ".rewrite", ".new"]
                        .iter()
                        .any(|end| name.ends_with(end));
                assert!(
                    !is_left,
                    "{arguments:?}: {} is left",
                    entry.path().display()
                );
                if entry.path().is_dir() {
                    folders.push(entry.path());
                }
            }
        }
    }

    /// Runs a command, which must succeed.
    fn complete(&self, arguments: &[&str]) {
        let output = command(&self.project, arguments)
            .stderr(Stdio::piped())
            .output()
            .expect("the program");
        assert!(
            output.status.success(),
            "{arguments:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}
