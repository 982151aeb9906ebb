//! Planted sessions whose needed references are known exactly.

use proptest::prelude::*;
use serde_json::json;

use super::needed::{
    NeedState, NeededAtPoint, NeededRecall, RecallCaveat, ReferenceSource, SessionReferences,
};
use super::prose::ProseEntries;
use crate::compress::ReferenceList;
use base::units::Tokens;
use lexical::facts::History;
use sessions::transcript::{Fixture, Message, Role, ToolCall, render};

#[derive(Clone, Default)]
struct RecordedSession {
    messages: Vec<Message>,
}

impl RecordedSession {
    fn user(mut self, text: &str) -> RecordedSession {
        self.messages.push(Message::text(Role::User, text));
        self
    }

    fn says(mut self, text: &str) -> RecordedSession {
        self.messages.push(Message::text(Role::Assistant, text));
        self
    }

    fn calls(mut self, tool: &str, arguments: serde_json::Value, result: &str) -> RecordedSession {
        let id = format!("c{}", self.messages.len());
        let mut message = Message::text(Role::Assistant, "");
        message
            .tool_calls
            .push(ToolCall::new(&id, tool, arguments.to_string()));
        self.messages.extend([message, Message::result(id, result)]);
        self
    }

    fn reads(self, path: &str, result: &str) -> RecordedSession {
        self.calls("Read", json!({ "file_path": path }), result)
    }

    fn runs(self, command: &str, result: &str) -> RecordedSession {
        self.calls("Bash", json!({ "command": command }), result)
    }

    fn len(&self) -> usize {
        self.messages.len()
    }

    fn fixture(self) -> Fixture {
        let mut fixture: Fixture =
            serde_json::from_value(json!({ "name": "planted", "messages": [] })).expect("sound");
        fixture.messages = self.messages;
        fixture
    }
}

/// Every message has 10,000 tokens, so that nothing is short.
fn tokens(fixture: &Fixture) -> Vec<Tokens> {
    vec![Tokens(10_000); fixture.messages.len()]
}

fn needed(fixture: &Fixture, points: &[usize]) -> NeededAtPoint {
    SessionReferences::from_fixture(fixture).needed(
        points,
        &tokens(fixture),
        &History::new(&fixture.messages),
    )
}

fn names(found: &NeededAtPoint) -> Vec<(&str, NeedState)> {
    found
        .references
        .iter()
        .map(|needed| (needed.reference.text.as_str(), needed.state))
        .collect()
}

fn recall(fixture: &Fixture, point: usize, context: &str) -> NeededRecall {
    let found = needed(fixture, &[point]);
    let present = found.presence(&ProseEntries::from_text(context));
    found
        .recall(&present, &tokens(fixture))
        .expect("something is needed")
}

fn before() -> RecordedSession {
    RecordedSession::default()
        .user(
            "Rename `job_state` and keep the service on port 8081. Opening the store is `open_index`, closing it is \
             `close_index`. The library is called `lib_name`. Failures come from `late_name`. Parts begin with \
             `first_lines`. The store is in src/store.rs, the parts in src/long.rs; verify them by cargo test --lib.",
        )
        .reads("src/store.rs", "fn open_index() {}\nfn close_index() {}\nuse lib_name;")
        .runs("cargo test --lib", "test store::late_name ... ok\ntest disjoint_name ... ok")
        .calls(
            "Read",
            json!({"file_path": "src/long.rs", "offset": 1, "limit": 10}),
            "fn first_lines() {} fn far_away() {}",
        )
}

#[test]
fn what_was_known_is_carried_and_what_was_shown_is_not_needed() {
    let session = before();
    let point = session.len();
    let fixture = session
        .says("Now `open_index` on port 8081.")
        .user("And what of `job_state`?")
        .says("`job_state` comes next, then `brand_new_name`.")
        .fixture();
    let found = needed(&fixture, &[point]);
    assert_eq!(
        names(&found),
        [
            ("open_index", NeedState::Carried),
            ("8081", NeedState::Carried)
        ]
    );
    let sources: Vec<_> = found
        .references
        .iter()
        .map(|needed| (needed.source, needed.distance, needed.age))
        .collect();
    assert_eq!(
        sources,
        [
            (ReferenceSource::ToolResult, 1, 1),
            (ReferenceSource::User, 1, 1)
        ]
    );
}

#[test]
fn what_a_repeated_read_shows_is_fetched_again_and_its_target_is_carried() {
    let session = before();
    let point = session.len();
    let fixture = session
        .reads("src/store.rs", "fn close_index() {}")
        .says("`close_index` it is.")
        .fixture();
    let found = needed(&fixture, &[point]);
    assert_eq!(
        names(&found),
        [
            ("src/store.rs", NeedState::Carried),
            ("close_index", NeedState::FetchedAgain)
        ]
    );
}

#[test]
fn a_new_read_a_new_command_and_other_lines_are_no_fetching_again() {
    let session = before();
    let point = session.len();
    let other_lines = json!({"file_path": "src/long.rs", "offset": 50, "limit": 10});
    let fixture = session
        .runs("ls crates", "lib_name")
        .says("`lib_name` is there.")
        .calls("Read", other_lines, "fn far_away() {}")
        .says("`far_away` is there.")
        .fixture();
    assert_eq!(
        names(&needed(&fixture, &[point])),
        [("src/long.rs", NeedState::Carried)]
    );
}

#[test]
fn a_target_that_something_else_showed_is_needed_if_it_is_read_again() {
    let session = before();
    let point = session.len();
    let fixture = session
        .runs("git ls-files", "src/store.rs")
        .reads("src/store.rs", "")
        .fixture();
    assert_eq!(
        names(&needed(&fixture, &[point])),
        [("src/store.rs", NeedState::FetchedAgain)]
    );
}

#[test]
fn the_same_command_fetches_again_and_names_of_tools_are_noise() {
    let session = before().calls("look_up", json!({"inner_key": "src/q.rs"}), "other_name");
    let point = session.len();
    let fixture = session
        .runs("cargo test --lib", "test store::late_name ... FAILED")
        .says("`late_name` fails; look_up has inner_key.")
        .fixture();
    let expected = [
        ("cargo test", NeedState::Carried),
        ("--lib", NeedState::Carried),
        ("late_name", NeedState::FetchedAgain),
    ];
    assert_eq!(names(&needed(&fixture, &[point])), expected);
}

#[test]
fn the_window_ends_after_twenty_turns_and_at_a_compaction() {
    let mut session = before();
    let point = session.len();
    for _ in 0..20 {
        session = session.says("Thinking.");
    }
    let late = session.clone().says("`open_index`").fixture();
    assert_eq!(names(&needed(&late, &[point])), []);
    let mut compacted = before()
        .says("`open_index`")
        .says("`close_index`")
        .fixture();
    compacted.compactions = vec![point + 1];
    assert_eq!(
        names(&needed(&compacted, &[point])),
        [("open_index", NeedState::Carried)]
    );
    let after = needed(&compacted, &[point + 1]);
    assert_eq!(
        (names(&after), after.caveat),
        (
            vec![("close_index", NeedState::Carried)],
            Some(RecallCaveat::AfterCompaction)
        )
    );
}

#[test]
fn attachments_and_cut_results_show_what_they_held() {
    let session = before();
    let point = session.len();
    let mut fixture = session
        .says("`open_index`, `close_index`, `late_name`")
        .runs("make all", "cut")
        .says("`lib_name`")
        .fixture();
    fixture.messages[point].attached_references = vec!["close_index".into()];
    fixture.messages[point + 2].cut_references = vec!["lib_name".into()];
    assert_eq!(
        names(&needed(&fixture, &[point])),
        [
            ("open_index", NeedState::Carried),
            ("late_name", NeedState::Carried)
        ]
    );
}

#[test]
fn short_and_cut_sessions_have_a_caveat() {
    let session = before();
    let point = session.len();
    let mut fixture = session.says("`open_index`").fixture();
    let history = History::new(&fixture.messages);
    let short = SessionReferences::from_fixture(&fixture).needed(
        &[point],
        &vec![Tokens(10); point + 1],
        &history,
    );
    assert_eq!(short.caveat, Some(RecallCaveat::Short));
    fixture.messages[1]
        .content
        .push_str(sessions::transcript::CUT_MARK);
    assert_eq!(needed(&fixture, &[point]).caveat, Some(RecallCaveat::Cut));
    fixture.reference_patterns = Some(sessions::references::PATTERNS);
    assert_eq!(needed(&fixture, &[point]).caveat, None);
}

#[test]
fn recall_is_a_mean_over_messages_and_under_three_there_is_none() {
    let session = before();
    let point = session.len();
    let fixture = session
        .says("`open_index`, `close_index`, `lib_name`")
        .says("`late_name`")
        .says("port 8081")
        .fixture();
    let kept = recall(
        &fixture,
        point,
        "opening by open_index, failures of late_name",
    );
    assert_eq!(
        (kept.count, kept.messages, kept.recall),
        (5, 3, Some((1.0 / 3.0 + 1.0 + 0.0) / 3.0))
    );
    // `close_index`, `lib_name` and the port occur in the first message.
    assert_eq!(kept.refetch_tokens, 10_000 + 300);
    let two = before().says("`open_index`").says("`late_name`").fixture();
    assert_eq!(recall(&two, point, "open_index").recall, None);
    assert_eq!(
        needed(&before().fixture(), &[point]).recall(&[], &[]),
        None,
        "nothing follows"
    );
}

/// The sessions of an agent that knows what it needs, and of one that reads everything again.
fn both_agents() -> (usize, Fixture, Fixture) {
    let session = before();
    let point = session.len();
    let knows = session
        .clone()
        .says("`open_index`")
        .says("`open_index` again, port 8081")
        .says("`lib_name`");
    let knows = knows.says("`first_lines`");
    let lines = json!({"file_path": "src/long.rs", "offset": 1, "limit": 10});
    let rereads = session
        .says("`open_index`")
        .reads("src/store.rs", "fn close_index() {} use lib_name;")
        .says("`close_index`, `lib_name`, port 8081")
        .calls("Read", lines, "fn first_lines() {}")
        .says("`first_lines`");
    (point, knows.fixture(), rereads.fixture())
}

#[test]
fn reading_everything_again_makes_a_poor_context_look_worse() {
    let (point, knows, rereads) = both_agents();
    let poor = "opening: open_index. The service: 8081. The library: lib_name. Parts: first_lines.";
    let (carried, fetched) = (recall(&knows, point, poor), recall(&rereads, point, poor));
    assert_eq!(carried.recall, Some(1.0));
    assert!(fetched.recall < carried.recall, "{fetched:?}");
    assert!(fetched.fetched_again > 0 && fetched.refetch_tokens > 0);
    let rich = recall(
        &rereads,
        point,
        "opening open_index src/store.rs closing close_index library lib_name 8081 parts src/long.rs first_lines",
    );
    assert_eq!(rich.recall, Some(1.0));
}

proptest! {
    #[test]
    fn a_context_that_contains_another_has_no_lower_recall(
        kept in proptest::collection::vec(0usize..8, 0..8), more in proptest::collection::vec(0usize..8, 0..8),
    ) {
        const WORDS: [&str; 8] =
            ["opening open_index", "store src/store.rs", "close_index", "library lib_name", "service port 8081", "parts src/long.rs",
                "first_lines", "store store.rs"];
        let (point, _, fixture) = both_agents();
        let text = |places: &[usize]| places.iter().filter_map(|at| WORDS.get(*at)).copied().collect::<Vec<_>>().join(", ");
        let small = text(&kept);
        let large = format!("{small}, {}", text(&more));
        let (small, large) = (recall(&fixture, point, &small), recall(&fixture, point, &large));
        prop_assert!(small.recall <= large.recall);
        prop_assert!(small.refetch_tokens >= large.refetch_tokens);
    }
}

#[test]
#[expect(
    clippy::print_stdout,
    reason = "the figures of docs/notes are read off it"
)]
fn of_the_shipped_sessions_a_bare_list_keeps_hardly_anything() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let (mut lists, mut copies) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).expect("the shipped sessions") {
        let path = entry.expect("a file").path();
        let fixture: Fixture =
            serde_json::from_str(&std::fs::read_to_string(&path).expect("text")).expect("sound");
        let points = fixture.points.clone();
        let tokens = tokens(&fixture);
        let history = History::new(&fixture.messages);
        let session = SessionReferences::from_fixture(&fixture);
        for last in 1..=points.len() {
            let points = &points[..last];
            let before = &fixture.messages[..points[last - 1]];
            let found = session.needed(points, &tokens, &history);
            let list = ReferenceList::from_messages(before).within(None, &|_| Tokens(0));
            let kept =
                |text: &str| found.mean_recall(&found.presence(&ProseEntries::from_text(text)));
            lists.extend(kept(&list));
            copies.extend(kept(&render(before)));
        }
    }
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    println!(
        "needed later: bare list {:.3}, whole transcript {:.3}",
        mean(&lists),
        mean(&copies)
    );
    assert!(mean(&lists) <= 0.10, "{lists:?}");
    assert!(mean(&copies) >= 0.90, "{copies:?}");
}
