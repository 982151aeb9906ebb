//! Notes on a session and exact facts in a text: `cargo run -p compeval-lexical --example notes`.

#![allow(clippy::print_stdout)]

use compeval_lexical::claims::{abstains, stated_as_current};
use compeval_lexical::facts::{Fact, FactFinder};
use compeval_lexical::notes::SessionNotes;
use sessions::transcript::{Message, Role, ToolCall, fold};

fn main() {
    let mut call = Message::text(
        Role::Assistant,
        "Going with port 8081, because nginx holds 8080.",
    );
    call.tool_calls.push(ToolCall::new(
        "1",
        "write_file",
        r#"{"path":"conf/app.toml","content":"port = 8081"}"#,
    ));
    let session = [
        Message::text(Role::User, "Move the service. Never bind to 0.0.0.0."),
        call,
        Message::result("1", "ok"),
    ];

    let notes = SessionNotes::from_messages(&session);
    println!(
        "files: {:?}",
        notes
            .files
            .iter()
            .map(|note| &note.file.path)
            .collect::<Vec<_>>()
    );
    println!(
        "decisions: {:?}\ndemands: {:?}",
        notes.decisions, notes.demands
    );

    let port = FactFinder::new(&Fact {
        spellings: vec!["8080".to_owned()],
    });
    for answer in [
        "The port was 8080 before.",
        "The port is 8080.",
        "The port is 18080.",
        "The notes do not say.",
    ] {
        println!(
            "{answer:<26} names it: {:<5} as current: {:<5} admits ignorance: {}",
            port.occurs_in(&fold(answer)),
            stated_as_current(answer, std::slice::from_ref(&port), &[]) == [true],
            abstains(answer),
        );
    }
}
