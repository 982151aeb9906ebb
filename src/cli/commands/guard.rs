//! `compeval guard`: may this summary replace the history that it was made from? Needs no project, key or model.

use std::path::{Path, PathBuf};

use clap::Args;
use guard::{Options, Report, Verdict, guard};
use serde_json::Value;

use crate::cli::args::{Common, one_of};
use crate::cli::failure::{Exit, Failure, chain};
use crate::cli::project::{given_name, read_given};
use crate::cli::terminal::Console;
use base::message::Message;
use sessions::import::{Conversation, Format, read_bytes};

#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// The history before the compaction: messages, or a log in any format that import reads; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) before: PathBuf,
    /// The history after it: the summary, and what is kept
    #[arg(long, value_name = "FILE")]
    pub(crate) after: PathBuf,
    /// Read both as this format instead of detecting it
    #[arg(long, value_parser = one_of(&Format::ALL, Format::name))]
    pub(crate) format: Option<Format>,
    /// The prompt that asked for the summary
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt: Option<PathBuf>,
    /// Why the model stopped, in the provider's word
    #[arg(long, value_name = "WORD")]
    pub(crate) stop_reason: Option<String>,
    /// Rules to turn off
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub(crate) without: Vec<String>,
}

pub(super) fn run(common: &Common, args: &GuardArgs, console: &Console) -> Result<Exit, Failure> {
    let [before, after] = [&args.before, &args.after].map(|path| bytes(common, path));
    let (before, after) = (before?, after?);
    let is_opaque = after
        .windows(19)
        .any(|part| part == b"\"encrypted_content\"");
    let (before, after) = (
        conversation(&args.before, before, args.format)?,
        conversation(&args.after, after, args.format)?,
    );
    let prompt = args
        .prompt
        .as_ref()
        .map(|path| bytes(common, path))
        .transpose()?;
    let options = Options {
        without: args.without.clone(),
        prompt: prompt.map(|prompt| String::from_utf8_lossy(&prompt).into_owned()),
        stop_reason: args.stop_reason.clone(),
        begins_midway: before.begins_midway,
        is_opaque,
        ..Options::default()
    };
    let report = guard(&before.messages, &after.messages, &options).map_err(Failure::input)?;
    console.report(&report, || console.print(&described(&report)));
    Ok(match report.verdict {
        Verdict::Reject => Exit::Regression,
        Verdict::Pass | Verdict::Warn | Verdict::Unchecked => Exit::Done,
    })
}

fn bytes(common: &Common, path: &Path) -> Result<Vec<u8>, Failure> {
    let read = read_given(common, path);
    let name = given_name(path);
    read.map_err(|error| Failure::input(format!("`{name}` cannot be read: {error}")))
}

/// A list of messages in the form of fixtures, as it stands: an import would mend what the guard is to find.
fn messages(bytes: &[u8]) -> Option<Vec<Message>> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let list = value.get("messages").unwrap_or(&value);
    let is_plain = |message: &Value| message["content"].is_string() || message["content"].is_null();
    list.as_array()?
        .iter()
        .all(is_plain)
        .then(|| serde_json::from_value(list.clone()).ok())?
}

/// The one conversation of a file, or the one whose sub-agents all others are.
fn conversation(
    path: &Path,
    bytes: Vec<u8>,
    format: Option<Format>,
) -> Result<Conversation, Failure> {
    if let Some(messages) = messages(&bytes).filter(|_| format.is_none()) {
        return Ok(Conversation {
            messages,
            ..Conversation::default()
        });
    }
    let log = read_bytes(path, bytes, format).map_err(|error| Failure::input(chain(&error)))?;
    let mut conversations = log.conversations;
    let count = conversations.len();
    if let [main, others @ ..] = conversations.as_slice() {
        let of_main = format!("{}-agent-", main.name_hint);
        if others.iter().all(|one| one.name_hint.starts_with(&of_main)) {
            conversations.truncate(1);
        }
    }
    if conversations.len() > 1 {
        return Err(Failure::input(format!(
            "`{}` has {count} conversations; expected one",
            path.display()
        )));
    }
    conversations.pop().ok_or_else(|| {
        Failure::input(format!(
            "`{}` has no messages; expected one history",
            path.display()
        ))
    })
}

fn described(report: &Report) -> String {
    let word = |verdict| match verdict {
        Verdict::Pass => "pass",
        Verdict::Warn => "warn",
        Verdict::Unchecked => "unchecked",
        Verdict::Reject => "reject",
    };
    let mut lines = vec![word(report.verdict).to_owned()];
    lines.extend(report.findings.iter().map(|finding| {
        format!(
            "  {}: {}: {} ({})",
            word(finding.severity),
            finding.kind,
            finding.message,
            finding.place
        )
    }));
    if !report.not_applicable.is_empty() {
        lines.push(format!(
            "  not applicable: {}",
            report.not_applicable.join(", ")
        ));
    }
    lines.join("\n")
}
