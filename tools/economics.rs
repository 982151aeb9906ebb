//! Measures the speed of economics: writes generated sessions, reads them like `observe --economics`, and prints the
//! time and the peak memory.
//!
//! `cargo run --release -p compeval-tools --bin economics -- 1000` writes 1,000 MB to the folder for temporary
//! files, and removes them at the end.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a tool that writes scratch files and prints"
)]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use base::threads::each;
use sessions::economics::{
    LeftOutSession, ModelPrice, PolicySettings, Rates, SessionSteps, economics, without_copies,
};
use sessions::import::{Format, read_session};
use sessions::observe::{combine, observe};

/// The size of a session in megabytes, which is that of long sessions.
const SESSION: usize = 4;
/// The number of characters of a tool's result.
const RESULT: usize = 6_000;

fn main() -> std::io::Result<()> {
    let megabytes: usize = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(100);
    let folder = std::env::temp_dir().join(format!("economics-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let files: Vec<PathBuf> = (0..megabytes.div_ceil(SESSION))
        .map(|at| folder.join(format!("{at}.jsonl")))
        .collect();
    for (at, file) in files.iter().enumerate() {
        write_session(file, at)?;
    }
    let bytes: u64 = files
        .iter()
        .map(|file| file.metadata().map_or(0, |found| found.len()))
        .sum();
    let start = Instant::now();
    let (sessions, steps) = read_all(&files);
    let observation = combine(sessions);
    let read = start.elapsed().as_secs_f64();
    let settings = PolicySettings::default();
    let found = economics(
        without_copies(steps),
        Vec::new(),
        &observation.compactions,
        settings,
        &price_of,
    );
    let all = start.elapsed().as_secs_f64();
    println!(
        "{} MB, {} sessions, {} requests, {} compactions: read in {read:.1} s, simulated in {:.1} s, peak memory {} MB",
        bytes >> 20,
        found.sessions,
        found.bill.requests,
        found.rewrites.len(),
        all - read,
        peak_memory().map_or_else(
            || "unknown".to_owned(),
            |kilobytes| (kilobytes >> 10).to_string()
        ),
    );
    fs::remove_dir_all(&folder)
}

type Read = (
    Vec<(String, sessions::observe::SessionFindings)>,
    Vec<Result<SessionSteps, LeftOutSession>>,
);

fn read_all(files: &[PathBuf]) -> Read {
    let all = Mutex::new((Vec::new(), Vec::new()));
    each(files.len(), |at| {
        let Ok(Some(log)) = read_session(&files[at], &[Format::ClaudeCode], None) else {
            return;
        };
        let file = files[at].display().to_string();
        for conversation in &log.conversations {
            let found = observe(conversation, log.format);
            let steps = SessionSteps::new(&file, conversation, log.format);
            if let Ok(mut all) = all.lock() {
                all.0.push((file.clone(), found));
                all.1.push(steps);
            }
        }
    });
    all.into_inner().unwrap_or_default()
}

fn price_of(_: &str) -> Option<ModelPrice> {
    let rates = Rates {
        input: 5.0,
        read: 0.5,
        write: 6.25,
        write_hour: 10.0,
        output: 25.0,
    };
    Some(ModelPrice {
        rates,
        long: None,
        window: Some(200_000),
    })
}

/// The peak memory of this process in kilobytes; only Linux reports it.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").trim().parse().ok()
}

/// Writes a session that reads files and is compacted at 160,000 tokens.
fn write_session(file: &Path, number: usize) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(fs::File::create(file)?);
    let mut written = 0;
    let (mut at, mut size, mut before) = (0_usize, 12_000_usize, String::new());
    while written < SESSION << 20 {
        let mut lines = String::new();
        let time = format!(
            "2026-01-{:02}T{:02}:{:02}:{:02}Z",
            number % 28 + 1,
            at / 360 % 24,
            at / 6 % 60,
            at % 6 * 10
        );
        let read = if size > 160_000 {
            let boundary = r#""type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"auto","preTokens":160000}"#;
            record(&mut lines, boundary, &format!("c{at}"), &mut before, &time);
            let summary = format!(
                r#""type":"user","isCompactSummary":true,"message":{{"role":"user","content":"{}"}}"#,
                "Summary of the work. ".repeat(300)
            );
            record(&mut lines, &summary, &format!("d{at}"), &mut before, &time);
            size = 24_000;
            8_000
        } else {
            let read = size;
            size += RESULT / 4 + 200;
            read
        };
        let call = format!(
            r#""type":"assistant","message":{{"role":"assistant","id":"m{number}-{at}","model":"m","content":[{{"type":"tool_use","id":"t{at}","name":"Read","input":{{"file_path":"src/file_{}.rs"}}}}],"usage":{{"input_tokens":3,"cache_read_input_tokens":{read},"cache_creation_input_tokens":{},"output_tokens":{}}}}}"#,
            at * 7 % 60,
            size - read,
            100 + number
        );
        record(&mut lines, &call, &format!("a{at}"), &mut before, &time);
        let mut content = String::new();
        for line in 0..RESULT / 60 {
            // Writing to a string cannot fail.
            let _ = write!(
                content,
                "{line} let value_{at}_{line} = parse_entry_{}(&input);   \\n",
                line * at % 97
            );
        }
        let result = format!(
            r#""type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{at}","content":"{content}"}}]}}"#
        );
        record(&mut lines, &result, &format!("r{at}"), &mut before, &time);
        out.write_all(lines.as_bytes())?;
        written += lines.len();
        at += 1;
    }
    out.flush()
}

fn record(lines: &mut String, fields: &str, uuid: &str, before: &mut String, time: &str) {
    let parent = if before.is_empty() {
        "null".to_owned()
    } else {
        format!("\"{before}\"")
    };
    let _ = writeln!(
        lines,
        r#"{{{fields},"uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","timestamp":"{time}"}}"#
    );
    uuid.clone_into(before);
}
