//! Probes by rule: candidates from what an index of the transcript names.

use serde_json::json;

use super::answer::is_chinese;
use super::passages::messages;
use crate::compress::Notes;
use crate::locale::Locale;
use crate::probe::{Clues, propose_candidates};
use crate::transcript::{Message, Role};

/// Proposes probes about a rendered transcript, in the shape that a model's reply has.
pub(super) fn propose(transcript: &str) -> String {
    let span = messages(transcript).unwrap_or_else(|| vec![Message::text(Role::User, transcript)]);
    let said: Vec<&str> =
        span.iter().filter(|message| message.role != Role::Tool).map(|message| message.content.as_str()).collect();
    let locale = if is_chinese(&said.concat()) { Locale::Zh } else { Locale::En };
    let candidates = propose_candidates(&clues(&Notes::of(&span)), locale);
    json!({ "probes": candidates }).to_string()
}

fn clues(notes: &Notes) -> Clues {
    let files = || notes.lasting_files().into_iter().filter(|file| !file.deleted);
    Clues {
        created: files().filter(|file| file.created).map(|file| file.path.clone()).collect(),
        modified: (files().filter(|file| file.modified && !file.created))
            .map(|file| (file.path.clone(), file.details.clone()))
            .collect(),
        read: files()
            .filter(|file| file.read && !file.created && !file.modified)
            .map(|file| file.path.clone())
            .collect(),
        failures: notes.failures.iter().map(|failure| (failure.command.clone(), failure.lines.clone())).collect(),
        decisions: notes.decisions.clone(),
        tasks: notes.tasks.clone(),
        values: notes.values.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{ProbeType, read_candidates};

    #[test]
    fn a_rendered_transcript_yields_candidates_as_a_reply() {
        let span = "[user]\nFix the retry.\n\n[assistant]\nGoing with linear back-off instead of 2 ** n.\n\
                    [call write_file] {\"path\":\"app/retry.py\",\"content\":\"DELAY = 3\"}\n\n[result write_file]\nok";
        let (candidates, unreadable) = read_candidates(&propose(span)).expect("a reply");
        assert_eq!(unreadable, 0);
        let kinds: Vec<ProbeType> = candidates.iter().map(|candidate| candidate.kind).collect();
        assert!(kinds.contains(&ProbeType::Artifact) && kinds.contains(&ProbeType::Decision), "{candidates:?}");
        assert_eq!(read_candidates(&propose("")).expect("a reply").0, []);
    }
}
