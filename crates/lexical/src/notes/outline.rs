//! The outline of a session: what stands in its notes, cleared of what is uncertain, and where the work stood last.

use serde_json::Value;

use super::{FileNote, SessionNotes, rules};
use base::words::WordList;
use sessions::transcript::{
    Message, Role, ToolCall, command_of, results_by_call, shell_commands, typed_words, was_done,
};

/// What rules find in a span that can be asked about. Lists are in the order of the span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionOutline {
    /// Files with what happened to them.
    pub files: Vec<FileNote>,
    /// The file that was created or changed last.
    pub changed_last: Option<String>,
    /// Commands that failed, each with the lines that say what went wrong.
    pub failures: Vec<(String, Vec<String>)>,
    /// Sentences that state a choice.
    pub decisions: Vec<String>,
    /// Sentences in which the person demands or forbids something.
    pub demands: Vec<String>,
    /// Sentences that state a reason, a cause or a measured value.
    pub findings: Vec<String>,
    /// Items of the agent's own plan, as it stood last, that were not done.
    pub plan: Vec<String>,
    /// Sentences that name something left to do.
    pub tasks: Vec<String>,
    /// What the person asked last.
    pub request: Option<String>,
    /// The command that was run last, if it is short, a single line, and known to have been run.
    pub last_command: Option<String>,
    /// Settings with the value seen last.
    pub values: Vec<(String, String)>,
}

impl SessionOutline {
    /// Applies the rules to `span`.
    pub fn from_messages(span: &[Message]) -> SessionOutline {
        let notes = SessionNotes::from_messages(span);
        let words = typed(span);
        let mut files = notes.lasting_files();
        files.retain(|note| !note.file.deleted);
        SessionOutline {
            files: files.iter().copied().cloned().collect(),
            changed_last: files
                .iter()
                .filter(|note| note.file.created || note.file.modified)
                .max_by_key(|note| note.file.message)
                .map(|note| note.file.path.clone()),
            failures: failures(&notes),
            decisions: notes.decisions.clone(),
            demands: notes
                .demands
                .iter()
                .filter(|demand| {
                    let mut own = words.iter().filter(|text| is_own(text));
                    own.any(|text| text.contains(*demand))
                })
                .cloned()
                .collect(),
            findings: notes.findings.clone(),
            plan: open_plan(span),
            tasks: notes.tasks.clone(),
            request: words.last().filter(|text| is_own(text)).cloned(),
            last_command: last_command(span),
            values: notes
                .values
                .iter()
                .filter(|(key, _)| !notes.contested.contains(key))
                .cloned()
                .collect(),
        }
    }
}

/// Commands that failed, each with its messages. What a successful command printed is not a message to ask for.
fn failures(notes: &SessionNotes) -> Vec<(String, Vec<String>)> {
    let failed = notes
        .failures
        .iter()
        .filter(|failure| failure.is_message && !failure.has_succeeded);
    let named = failed.map(|failure| {
        let lines = failure.lines.iter().filter_map(|line| message_in(line));
        let lines = lines.filter(|line| !is_shown(&failure.command, line));
        (failure.command.clone(), lines.map(str::to_owned).collect())
    });
    named
        .filter(|(_, lines): &(String, Vec<String>)| !lines.is_empty())
        .collect()
}

/// Whether a command only shows what stands elsewhere, and a line is no message of its own: `cat: x: No such file` is one.
fn is_shown(command: &str, line: &str) -> bool {
    let commands = shell_commands(command);
    let is_whole = !commands.is_empty() && !command.ends_with('…');
    is_whole && commands.iter().all(|one| shows(&one.run(), line))
}

fn shows(run: &[&str], line: &str) -> bool {
    const VIEWERS: WordList =
        WordList("cat head tail less more nl bat grep rg sed awk curl journalctl dmesg echo");
    const KEEPERS: WordList = WordList("git gh docker podman kubectl oc");
    const VIEWS: WordList = WordList("logs log show diff blame view");
    const OWN: [&str; 3] = ["fatal: ", "Error response ", "Error from server"];
    match run {
        [] => true,
        ["ssh", _, run @ ..] if !line.starts_with("ssh: ") => is_shown(&run.join(" "), line),
        [program, rest @ ..] if KEEPERS.has(program) => {
            let is_own = OWN.iter().any(|start| line.starts_with(start));
            !is_own && rest.iter().any(|word| VIEWS.has(word))
        }
        [program, ..] => VIEWERS.has(program) && !line.starts_with(&format!("{program}:")),
    }
}

/// The message in a line of an error: without the mark that an import puts before it and the margin of a test runner.
/// A warning is no error, and neither is a bare exit status.
fn message_in(line: &str) -> Option<&str> {
    const WARNINGS: [&str; 4] = ["warn", "npm warn", "npm notice", "deprecat"];
    const LETTERS: usize = 8;
    let line = line.trim();
    let marked = line.strip_prefix("Error: ");
    // A log may mark whatever a program wrote, such as `Debugger attached.`
    let is_error = |text: &str| {
        rules::is_error_line(text) || rules::mentions_trouble(text) || rules::names_failure(text)
    };
    let bare = marked.map_or(Some(line), |text| is_error(text).then_some(text))?;
    let bare = bare.strip_prefix("E  ").unwrap_or(bare).trim_start();
    let lower = bare.to_lowercase();
    let is_warning = WARNINGS.iter().any(|start| lower.starts_with(start));
    let letters = bare.chars().filter(|c| c.is_alphanumeric()).count();
    (!is_warning && letters >= LETTERS).then_some(bare)
}

/// What the person typed, message by message.
fn typed(span: &[Message]) -> Vec<String> {
    let messages = span.iter().filter(|message| message.role == Role::User);
    messages
        .filter_map(|message| typed_words(&message.content))
        .collect()
}

/// Whether the person wrote a text: a longer one was pasted, and a program may have written it.
fn is_own(text: &str) -> bool {
    const LONGEST: usize = 1500;
    text.chars().nth(LONGEST).is_none()
}

fn calls(span: &[Message]) -> impl DoubleEndedIterator<Item = &ToolCall> {
    span.iter().flat_map(|message| &message.tool_calls)
}

/// The items of the agent's own list with their states, if the call writes one; its tool may have any name, but
/// a list that goes to a server is not the agent's own.
pub fn todo_items(call: &ToolCall) -> Option<Vec<(String, String)>> {
    let arguments = call.arguments()?;
    let mut lists = ["todos", "plan", "items", "tasks"].into_iter();
    let list = lists.find_map(|key| arguments.get(key)?.as_array())?;
    let items = list.iter().map(|item| {
        let keys = ["content", "step", "text", "title", "description", "task"];
        let mut texts = keys.iter().filter_map(|key| item.get(*key)?.as_str());
        let text = texts.find(|text| !text.is_empty()).unwrap_or_default();
        let state = item.get("status").and_then(Value::as_str);
        (text.to_owned(), state.unwrap_or_default().to_owned())
    });
    // An empty list is one that the agent has cleared.
    let is_own = list.is_empty() || list.iter().any(|item| item.get("status").is_some());
    (is_own && !call.function.name.starts_with("mcp__")).then(|| items.collect())
}

/// The unfinished items of the agent's own list, as it wrote it last; none if it wrote only what changes in the list.
fn open_plan(span: &[Message]) -> Vec<String> {
    const OVER: WordList =
        WordList("completed complete done finished closed cancelled canceled skipped");
    let mut lists = calls(span)
        .rev()
        .filter_map(|call| Some((call.arguments()?, todo_items(call)?)));
    let Some((arguments, mut items)) = lists.next() else {
        return Vec::new();
    };
    let is_whole = arguments.get("merge") != Some(&Value::Bool(true));
    items.retain(|(text, state)| {
        let state = state.to_lowercase();
        is_whole && !text.is_empty() && !OVER.has(state.trim_start_matches("todo_status_"))
    });
    items.into_iter().map(|(text, _)| text).collect()
}

/// The command line that was run last, if it is short, a single line, and known to have been run.
fn last_command(span: &[Message]) -> Option<String> {
    const LONGEST: usize = 110;
    let results = results_by_call(span);
    let mut commands = calls(span).rev().filter_map(|call| {
        let result = results.get(call.id.as_str()).copied().unwrap_or_default();
        Some((command_of(call)?, was_done(call, result)))
    });
    let (command, was_done) = commands.find(|(_, was_done)| *was_done != Some(false))?;
    let command = command.trim();
    let is_short = !command.contains('\n') && command.len() <= LONGEST;
    (is_short && was_done == Some(true)).then(|| command.to_owned())
}
