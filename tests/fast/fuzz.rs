//! Fuzzing that stays: every reader of foreign bytes gets mutated samples, and must neither panic nor hang.
//!
//! Without more, each target gets a few inputs from fixed seeds. `tools/fuzz.sh SECONDS` shares that time among the
//! targets, with seeds of their own. An input that makes a target panic is written to `target/fuzz`; with a copy of it in
//! `tests/fuzz/TARGET` it is tried first from then on.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::cache::support;
use base::units::Tokens;
use compeval::compress::{CommandSpec, CompressOutput, Method, MethodName, Protocol, Strategy};
use compeval::entries::{EntryLookup, key_of};
use compeval::judge::{CriterionId, read_reply};
use compeval::pipeline::{
    Banks, OpenRequest, Problems, SourceFile, open, project_paths, read_rubric, starter_files,
};
use compeval::probe::ParsedBank;
use models::{Dialect, Operation, read, read_billing};
use sessions::import::{FixtureOptions, assemble, read_bytes};
use sessions::observe::{combine, observe};
use sessions::transcript::{Message, ParsedFixture};
use store::cache::{CacheSnapshot, Lookup, Store};

/// Inputs for each target where no time is given.
const INPUTS: u64 = 60;

/// Values at which readers go wrong.
const DICTIONARY: &[&str] = &[
    "",
    "\0",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    "{}",
    "[]",
    ",",
    ":",
    "null",
    "true",
    "-1",
    "0",
    "1e400",
    "18446744073709551615",
    "4294967296",
    "9223372036854775808",
    "-0.0",
    "NaN",
    "{{",
    "}}",
    "{%",
    "%}",
    "\n",
    "\r\n",
    "\n\n---\n",
    "\u{feff}",
    "\u{202e}",
    "\u{1f980}",
    "é",
    "../",
    "/",
    "[[",
    "]]",
    "\"\"\"",
    "=",
    "#",
    "PK\u{3}\u{4}",
    "1970-01-01T00:00:00Z",
    "99999-99-99",
    "role",
    "content",
    "messages",
    "usage",
    "choices",
];

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A sample with some mutations.
    fn mutated(&mut self, samples: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = samples[self.below(samples.len())].clone();
        for _ in 0..=self.below(6) {
            let (at, length) = (self.below(bytes.len() + 1), 1 + self.below(40));
            let range = at..(at + length).min(bytes.len());
            match self.below(7) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 => drop(bytes.drain(range)),
                2 => bytes.truncate(at),
                3 => drop(bytes.splice(at..at, bytes[range].to_vec().repeat(1 + self.below(200)))),
                4 => {
                    let other = &samples[self.below(samples.len())];
                    let from = self.below(other.len() + 1);
                    let part = other[from..(from + length).min(other.len())].to_vec();
                    drop(bytes.splice(range, part));
                }
                _ => {
                    let word = DICTIONARY[self.below(DICTIONARY.len())].as_bytes().to_vec();
                    drop(bytes.splice(if self.below(2) == 0 { range } else { at..at }, word));
                }
            }
        }
        bytes
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Feeds `target` with its regressions, its samples and mutations of them.
fn fuzz(name: &str, samples: &[Vec<u8>], target: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let attempt = |bytes: &[u8]| {
        let began = Instant::now();
        let ended = std::panic::catch_unwind(|| target(bytes));
        if ended.is_err() || began.elapsed() > Duration::from_secs(20) {
            let folder = root().join("target/fuzz");
            let file = folder.join(format!(
                "{name}-{}",
                compeval::action::Digest::hash(bytes).short()
            ));
            base::files::write_whole(&file, bytes).unwrap();
            panic!(
                "{name}: {} makes it fail; copy it to tests/fuzz/{name}",
                file.display()
            );
        }
    };
    for entry in std::fs::read_dir(root().join("tests/fuzz").join(name))
        .into_iter()
        .flatten()
        .flatten()
    {
        attempt(&std::fs::read(entry.path()).unwrap());
    }
    samples.iter().for_each(|sample| attempt(sample));
    let seconds = std::env::var("COMPEVAL_FUZZ_SECONDS")
        .ok()
        .and_then(|seconds| seconds.parse().ok());
    let (until, mut random) = match seconds.map(Duration::from_secs) {
        Some(time) => {
            let seed = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |time| time.as_nanos() as u64);
            (Some(Instant::now() + time), Random(seed))
        }
        None => (None, Random(1)),
    };
    let mut inputs = 0;
    while until.map_or(inputs < INPUTS, |until| Instant::now() < until) {
        attempt(&random.mutated(samples));
        inputs += 1;
    }
    writeln!(std::io::stdout(), "{name}: {inputs} inputs").expect("standard output");
}

fn files(folder: &str) -> Vec<Vec<u8>> {
    let found = walkdir::WalkDir::new(root().join(folder))
        .into_iter()
        .flatten();
    let files = found.filter(|entry| entry.file_type().is_file());
    let contents = files.map(|entry| std::fs::read(entry.path()).unwrap());
    contents.filter(|bytes| bytes.len() < 200_000).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn banks() {
    fuzz("banks", &files("probes"), |bytes| {
        drop(ParsedBank::read(&text(bytes)))
    });
}

#[test]
fn fixtures() {
    let samples = vec![std::fs::read(root().join("tests/cli/data/harbor.json")).unwrap()];
    fuzz("fixtures", &samples, |bytes| {
        drop(ParsedFixture::read(&text(bytes)))
    });
}

#[test]
fn rubrics() {
    let own = "[[criteria]]\nid = \"a_b\"\ndimension = \"accuracy\"\nquestion = \"Is it so?\"\nweight = 1.0\nanchors = { 0 = \"no\", 5 = \"yes\" }\n";
    let mut samples = vec![own.as_bytes().to_vec()];
    samples.extend(
        files("assets")
            .into_iter()
            .filter(|bytes| text(bytes).contains("[[criteri")),
    );
    fuzz("rubrics", &samples, |bytes| {
        let file = SourceFile::new("rubric.toml", text(bytes));
        drop(read_rubric(&file, &mut Problems::default()))
    });
}

#[test]
fn importers() {
    let names = ["a.json", "a.jsonl", "a.md", "a.traj", "a.eval"];
    fuzz(
        "importers",
        &files("crates/sessions/tests/import/logs"),
        |bytes| {
            let name = names[bytes.len() % names.len()];
            if let Ok(log) = read_bytes(Path::new(name), bytes.to_vec(), None) {
                let count = |message: &Message| Tokens(message.content.len() as u64 / 4);
                for conversation in log.conversations {
                    drop(assemble(
                        conversation,
                        log.format,
                        &FixtureOptions::default(),
                        &count,
                    ));
                }
            }
        },
    );
}

#[test]
fn pipelines() {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in starter_files() {
        base::files::write_whole(&folder.path().join(path), text).unwrap();
    }
    let path = folder.path().join("pipeline.toml");
    let samples = [
        std::fs::read(&path).unwrap(),
        std::fs::read(root().join("tests/cli/data/pipeline.toml")).unwrap(),
    ];
    fuzz("pipelines", &samples, |bytes| {
        base::files::write_whole(&path, bytes).unwrap();
        let environment = |_: &str| None;
        drop(project_paths(&path, None, &environment));
        drop(open(
            &OpenRequest {
                file: path.clone(),
                banks: Banks::Unread,
                ..OpenRequest::default()
            },
            &environment,
        ));
    });
}

/// Everything that `check` reads of a project, each file in its turn.
#[test]
fn projects() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, bytes: &[u8]| {
        base::files::write_whole(&folder.path().join(path), bytes).unwrap()
    };
    let files = starter_files();
    files
        .iter()
        .for_each(|(path, text)| write(path, text.as_bytes()));
    let samples: Vec<Vec<u8>> = files
        .iter()
        .map(|(path, text)| [path.as_bytes(), b"\0", text.as_bytes()].concat())
        .collect();
    let environment = |_: &str| None;
    fuzz("projects", &samples, |bytes| {
        // A sample begins with the path that it is written to; a mutated path leaves the first file.
        let path = bytes
            .split(|byte| *byte == 0)
            .next()
            .map(text)
            .unwrap_or_default();
        let (path, sound) = files
            .iter()
            .find(|(known, _)| *known == path)
            .unwrap_or(&files[0]);
        let content = bytes.splitn(2, |byte| *byte == 0).nth(1).unwrap_or(bytes);
        write(path, content);
        let file = folder.path().join("pipeline.toml");
        drop(open(
            &OpenRequest {
                file,
                strict: true,
                ..OpenRequest::default()
            },
            &environment,
        ));
        write(path, sound.as_bytes());
    });
}

#[test]
fn observed() {
    let names = ["a.json", "a.jsonl"];
    fuzz(
        "observed",
        &files("crates/sessions/tests/import/logs"),
        |bytes| {
            let name = names[bytes.len() % names.len()];
            if let Ok(log) = read_bytes(Path::new(name), bytes.to_vec(), None) {
                let found = log
                    .conversations
                    .iter()
                    .map(|one| (name.to_owned(), observe(one, log.format)));
                drop(combine(found.collect()));
            }
        },
    );
}

/// What a program writes that compresses.
#[test]
fn outputs_of_programs() {
    let spec = CommandSpec {
        argv: vec!["true".to_owned()],
        model: None,
        folder: PathBuf::new(),
        files: Vec::new(),
        environment: Vec::new(),
        secrets: Vec::new(),
        identity: None,
        protocol: Protocol::default(),
        deterministic: true,
        timeout: Duration::from_secs(1),
    };
    let strategy = Strategy::Command(spec);
    let method = Method {
        name: MethodName("own".into()),
        strategy,
        target_tokens: None,
    };
    let samples = [
        r#"{"summary":"Port 9090.","state":{"n":1},"usage":{"input_tokens":7,"output_tokens":3,"cost_usd":0.1},"warnings":["so"]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"c","content":"b"}]},{"role":"assistant","content":"x","tool_calls":[{"id":"c","type":"function","function":{"name":"run","arguments":"{}"}}]}],"compressed":false}"#,
        r#"{"degraded":"no model","summary":""}"#,
    ];
    let samples: Vec<Vec<u8>> = samples
        .iter()
        .map(|sample| sample.as_bytes().to_vec())
        .collect();
    let read = std::panic::AssertUnwindSafe(|bytes: &[u8]| {
        drop(compeval::compress::read(
            &method,
            CompressOutput::Bytes(bytes),
            None,
        ));
    });
    fuzz("outputs_of_programs", &samples, |bytes| {
        let read = &read;
        read(bytes);
    });
}

#[test]
fn replies() {
    let samples = [
        r#"{"choices":[{"finish_reason":"stop","message":{"content":"<think>a</think>4711"}}],"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":2}},"model":"m"}"#,
        r#"{"content":[{"type":"text","text":"4711"}],"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":3,"iterations":[{"type":"compaction","input_tokens":9,"output_tokens":1}]},"model":"m"}"#,
        r#"{"output":[{"type":"message","content":[{"type":"output_text","text":"4711"}]},{"type":"compaction","encrypted_content":"xyz"}],"status":"completed","usage":{"input_tokens":7,"output_tokens":3},"model":"m"}"#,
        r#"{"criterionResults":[{"criterionId":"accuracy_factual","score":4,"reasoning":"so"}]}"#,
    ];
    let samples: Vec<Vec<u8>> = samples
        .iter()
        .map(|sample| sample.as_bytes().to_vec())
        .collect();
    fuzz("replies", &samples, |bytes| {
        for dialect in [
            Dialect::OpenaiChat,
            Dialect::OpenaiResponses,
            Dialect::Anthropic,
        ] {
            for operation in [
                Operation::Generate,
                Operation::Compact,
                Operation::Summarize,
            ] {
                drop(read(dialect, operation, bytes, None));
            }
            drop(read_billing(dialect, bytes));
        }
        drop(read_reply(
            &text(bytes),
            &[CriterionId("accuracy_factual".into())],
        ));
        drop(compeval::answer::read(&text(bytes), false));
    });
}

/// A cache with a few entries, and one of them as it is pushed.
fn cache_and_entry(folder: &Path) -> (PathBuf, Vec<u8>) {
    let cache = folder.join("cache");
    support::filled(&cache, 6, 300);
    let snapshot = CacheSnapshot::open(&cache).unwrap();
    let record = snapshot.find(&support::key(0)).unwrap();
    let bytes = snapshot.packed(&record).unwrap();
    (cache.join("packs/00000000.pack"), bytes)
}

/// Makes the checksums of mutated frames right again, so that what is behind them is reached.
fn with_checksums(mut frames: Vec<u8>, start: usize) -> Vec<u8> {
    const FIXED: usize = 88;
    let mut at = start;
    while let Some(head) = frames.get(at..at + FIXED) {
        let number =
            |from: usize| u32::from_le_bytes(head[from..from + 4].try_into().unwrap()) as usize;
        let (note, body) = (number(8), number(12));
        let Some(end) = (at + FIXED)
            .checked_add(note)
            .filter(|end| end.saturating_add(4) <= frames.len())
        else {
            break;
        };
        let body_end = (end + 4).saturating_add(body).min(frames.len());
        let body_crc = crc32fast::hash(&frames[end + 4..body_end]).to_le_bytes();
        frames[at + 20..at + 24].copy_from_slice(&body_crc);
        let crc = crc32fast::hash(&frames[at..end]).to_le_bytes();
        frames[end..end + 4].copy_from_slice(&crc);
        at = body_end;
    }
    frames
}

#[test]
fn packs() {
    let folder = tempfile::tempdir().unwrap();
    let pack = walkdir::WalkDir::new(cache_and_entry(folder.path()).0.parent().unwrap())
        .into_iter()
        .flatten();
    let pack = pack
        .map(walkdir::DirEntry::into_path)
        .find(|path| path.extension().is_some_and(|e| e == "pack"))
        .unwrap();
    let sound = std::fs::read(&pack).unwrap();
    let damaged = folder.path().join("damaged");
    fuzz("packs", &[sound], |bytes| {
        let start = 24.min(bytes.len());
        for bytes in [bytes.to_vec(), with_checksums(bytes.to_vec(), start)] {
            drop(std::fs::remove_dir_all(&damaged));
            support::filled(&damaged, 0, 0);
            base::files::write_whole(
                &damaged.join("packs").join(pack.file_name().unwrap()),
                &bytes,
            )
            .unwrap();
            if let Ok(snapshot) = CacheSnapshot::open(&damaged) {
                for record in snapshot.records() {
                    drop((snapshot.meta(&record), snapshot.body(&record)));
                }
            }
            if let Ok(store) = Store::open(&damaged, support::holder(), key_of) {
                drop(store.verify());
            }
        }
    });
}

#[test]
fn pushed_entries() {
    let folder = tempfile::tempdir().unwrap();
    let (_, sound) = cache_and_entry(folder.path());
    let into = Store::open(&folder.path().join("target"), support::holder(), key_of).unwrap();
    let add = std::panic::AssertUnwindSafe(|bytes: &[u8]| {
        drop(into.add_packed(&support::key(0), bytes, "fs:///shared"))
    });
    fuzz("pushed entries", &[sound], |bytes| {
        let add = &add;
        add(bytes);
        add(&with_checksums(bytes.to_vec(), 0));
    });
}
