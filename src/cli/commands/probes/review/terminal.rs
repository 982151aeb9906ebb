//! The review in a terminal: one question at a time, a letter as the answer.

use std::process::Command;

use super::card::{Card, FactPlace, LiteralForm, ProbeCard, Subject};
use super::session::{Decision, Review};
use crate::cli::failure::Failure;
use crate::cli::format::{Noun, count, probe_type};
use crate::cli::terminal::{Console, TextStyle};
use crate::evaluation::variable;
use crate::probe::Probe;
use base::files::{read_text, temporary_file};
use base::text::one_line;
use lexical::facts::Fact;

/// Characters of a message that are shown: it can be a whole file.
const SHOWN: usize = 1500;

/// Questions after which a person is asked whether to go on.
const AT_A_TIME: usize = 20;

/// The meaning of the letters, printed for `?`.
fn legend() -> &'static str {
    "  a  accept: the probe is good          A  accept all open probes of this fixture
  e  edit it as JSON ($EDITOR)          r  reject: it is removed from the bank
  p  paraphrase a message               k  keep a message as it is
  s  skip: it is asked next time        u  undo the last decision
  q  quit; every decision is saved      ?  this list"
}

/// What a person chose.
enum KeyChoice {
    Decide(Decision),
    AcceptAll,
    Undo,
    Skip,
    Quit,
}

/// Asks until all is decided or the person leaves.
pub(super) fn review(review: &mut Review, console: &Console) -> Result<(), Failure> {
    let mut at = 0;
    let mut shown = 0;
    while let Some(open) = review.next_open(at) {
        at = open;
        if shown > 0 && shown % AT_A_TIME == 0 && !goes_on(review, console)? {
            return Ok(());
        }
        shown += 1;
        let card = review.card(at)?;
        console.eprint(&render(&card, &review.progress(), console));
        let done = match reply(&card, console)? {
            KeyChoice::Quit => return Ok(()),
            KeyChoice::Skip => Ok(at + 1),
            KeyChoice::Undo => review.undo().map(|before| before.unwrap_or(at)),
            KeyChoice::AcceptAll => review.accept_all(at).map(|_| at),
            KeyChoice::Decide(decision) => review
                .decide(at, decision)
                .map(|is_settled| at + usize::from(is_settled)),
        };
        match done {
            Ok(next) => at = next,
            // What cannot be read is asked again; nothing was written.
            Err(Failure::Message { message, .. }) => console.error("not written:", message),
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

/// Asks after many questions whether there is time for more.
fn goes_on(review: &Review, console: &Console) -> Result<bool, Failure> {
    let question = format!(
        "{}; what was decided is saved. [g]o on  [q]uit:",
        review.progress()
    );
    let answer = ask(console, &question)?;
    Ok(answer.is_some_and(|answer| !answer.trim().to_lowercase().starts_with('q')))
}

fn reply(card: &Card, console: &Console) -> Result<KeyChoice, Failure> {
    let choices = match &card.subject {
        Subject::Probe(card) if !card.literal_forms.is_empty() => {
            "[a]ccept  [e]dit  a number for that literal form  [r]eject  [s]kip  [u]ndo  [A]ccept all  [q]uit  [?]:"
        }
        Subject::Probe(_) => {
            "[a]ccept  [e]dit  [r]eject  [s]kip  [u]ndo  [A]ccept all  [q]uit  [?]:"
        }
        Subject::Message { .. } => "[p]araphrase  [k]eep as it is  [s]kip  [u]ndo  [q]uit  [?]:",
    };
    loop {
        let Some(answer) = ask(console, choices)? else {
            return Ok(KeyChoice::Quit);
        };
        if let (Subject::Probe(_), true) = (&card.subject, answer.trim().starts_with('A')) {
            return Ok(KeyChoice::AcceptAll);
        }
        let letter = answer.trim().to_lowercase();
        let form_of = |card: &ProbeCard| {
            let number: usize = letter.parse().ok()?;
            card.literal_forms
                .get(number.checked_sub(1)?)
                .map(|form| form.source.clone())
        };
        let decision = match (&card.subject, letter.chars().next()) {
            (_, Some('?')) => {
                console.eprint(legend());
                None
            }
            (_, Some('u')) => return Ok(KeyChoice::Undo),
            (_, Some('q')) => return Ok(KeyChoice::Quit),
            (_, Some('s')) => return Ok(KeyChoice::Skip),
            (Subject::Probe(_), Some('a')) | (Subject::Message { .. }, Some('k')) => {
                Some(Decision::Accept)
            }
            (Subject::Probe(_), Some('r')) => Some(Decision::Reject),
            (Subject::Probe(card), _) if form_of(card).is_some() => {
                form_of(card).map(Decision::Edit)
            }
            (Subject::Probe(card), Some('e')) => edited_probe(card, console)?.map(Decision::Edit),
            (Subject::Message { text, .. }, Some('p')) => {
                edited_message(text, console)?.map(Decision::Edit)
            }
            _ => {
                let unknown = "None of these; `?` lists what each key does.";
                console.eprint(unknown);
                None
            }
        };
        if let Some(decision) = decision {
            return Ok(KeyChoice::Decide(decision));
        }
    }
}

fn ask(console: &Console, question: &str) -> Result<Option<String>, Failure> {
    let question = console.paint(TextStyle::Hint, question);
    console
        .ask(&question)
        .map_err(|error| Failure::error(format!("the answer could not be read: {error}")))
}

/// A line that is not blank.
fn ask_for_text(console: &Console, question: &str) -> Result<Option<String>, Failure> {
    Ok(ask(console, question)?.filter(|line| !line.trim().is_empty()))
}

/// The probe as JSON, edited; `None` if nothing changed.
fn edited_probe(card: &ProbeCard, console: &Console) -> Result<Option<String>, Failure> {
    let text = match editor() {
        Some(editor) => in_editor(&editor, &card.source, ".json")?,
        None => probe_by_lines(&card.probe, console)?,
    };
    Ok(Some(text).filter(|text| text.trim() != card.source.trim()))
}

/// The probe, asked for field by field: an empty line keeps what there is.
fn probe_by_lines(probe: &Probe, console: &Console) -> Result<String, Failure> {
    let mut edited = probe.clone();
    console.eprint("An empty line keeps the current text.");
    if let Some(question) = ask_for_text(console, "question:")? {
        edited.question = question;
    }
    let how = "expected facts, with ; between them, and | between the spellings of one:";
    if let Some(facts) = ask_for_text(console, how)? {
        let facts = facts
            .split(';')
            .map(|fact| fact.split('|').map(|spelling| spelling.trim().to_owned()));
        edited.expected_facts = facts
            .map(|spellings| Fact {
                spellings: spellings.collect(),
            })
            .collect();
    }
    if let Some(answer) = ask_for_text(console, "reference answer:")? {
        edited.reference_answer = Some(answer);
    }
    serde_json::to_string_pretty(&edited)
        .map_err(|error| Failure::error(format!("failed to write JSON: {error}")))
}

/// The rephrased message; `None` if it is the same or empty.
fn edited_message(message: &str, console: &Console) -> Result<Option<String>, Failure> {
    let text = match editor() {
        Some(editor) => in_editor(&editor, message, ".txt")?,
        None => {
            let mut lines = Vec::new();
            console.eprint("Rephrase it; an empty line ends the text.");
            while let Some(line) = ask_for_text(console, ">")? {
                lines.push(line);
            }
            lines.join("\n")
        }
    };
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty() && *text != message.trim()))
}

fn editor() -> Option<String> {
    variable("VISUAL").or_else(|| variable("EDITOR"))
}

/// The text after a person edited it in `editor`, which may have arguments of its own.
fn in_editor(editor: &str, text: &str, suffix: &str) -> Result<String, Failure> {
    let file = temporary_file(text, suffix)?;
    let mut words = editor.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("vi"));
    let failure = match command.args(words).arg(file.path()).status() {
        Ok(status) if status.success() => return Ok(read_text(file.path())?),
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    Err(Failure::input(format!(
        "the editor `{editor}` failed: {failure}"
    )))
}

fn render(card: &Card, progress: &str, console: &Console) -> String {
    let Card {
        fixture,
        number,
        of,
        subject,
    } = card;
    let progress = console.paint(TextStyle::Dim, progress);
    match subject {
        Subject::Probe(probe) => {
            let head = format!("{fixture} · {number} of {of} · {}", probe.id);
            format!(
                "\n{}  {progress}\n{}",
                console.paint(TextStyle::Strong, &head),
                render_probe(probe, console)
            )
        }
        Subject::Message { message, text, .. } => {
            let head = format!(
                "{fixture} · {number} of {of} · message {} is in the user's own words",
                message
            );
            let text = base::text::shortened(text, SHOWN);
            format!(
                "\n{}  {progress}\n\n{text}\n",
                console.paint(TextStyle::Strong, &head)
            )
        }
    }
}

fn render_probe(probe: &ProbeCard, console: &Console) -> String {
    let kind = format!(
        "{}, asked after {}",
        probe_type(probe.kind),
        count(probe.messages, Noun::Message)
    );
    let mut lines = vec![
        console.paint(TextStyle::Dim, &kind),
        String::new(),
        probe.question.clone(),
        String::new(),
    ];
    if !probe.answerable {
        lines.push("  the right answer: the transcript does not say".to_owned());
    }
    lines.extend(
        probe
            .facts
            .iter()
            .map(|place| fact_lines("expected", place, console)),
    );
    for (number, LiteralForm { form, .. }) in (1..).zip(&probe.literal_forms) {
        lines.push(format!("  literal form {number}: »{form}«"));
    }
    lines.extend(
        probe
            .superseded
            .iter()
            .map(|place| fact_lines("superseded", place, console)),
    );
    lines.extend(
        probe
            .reference_answer
            .iter()
            .map(|answer| format!("  reference answer: {answer}")),
    );
    for finding in &probe.findings {
        let finding = console.labelled(TextStyle::Warning, "check:", finding);
        lines.push(format!("  {finding}"));
    }
    lines.join("\n") + "\n"
}

/// A fact and its place in the transcript.
fn fact_lines(what: &str, place: &FactPlace, console: &Console) -> String {
    let fact = console.paint(TextStyle::Strong, &place.spellings.join(" | "));
    let Some((message, role)) = place.message.zip(place.role) else {
        return format!("  {what}: {fact}\n    in no message before the point");
    };
    let others = if place.others > 0 {
        format!(", and in {} more", place.others)
    } else {
        String::new()
    };
    let found = match console.colors {
        true => console.paint(TextStyle::Warning, &place.found),
        false => format!("»{}«", place.found),
    };
    // `one_line` drops the blanks next to the fact: each gap is put back as one blank.
    let [gap_before, gap_after] = [
        place.before.ends_with(char::is_whitespace),
        place.after.starts_with(char::is_whitespace),
    ]
    .map(|is_blank| if is_blank { " " } else { "" });
    let before = format!("{}{gap_before}", one_line(&place.before));
    let after = format!("{gap_after}{}", one_line(&place.after));
    format!(
        "  {what}: {fact}\n    message {message} ({}){others}: {before}{found}{after}",
        role.name()
    )
}
