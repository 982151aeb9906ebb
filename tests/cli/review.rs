//! `probes review` writes each decision at once and keeps the rest of the file.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};

use super::project::Project;
use super::terminal::in_terminal;

const BANK: &str = "probes/harbor.probes.json";

fn bank(project: &Project) -> Value {
    serde_json::from_str(&project.read(BANK)).unwrap()
}

fn terminal_command(project: &Project) -> Command {
    let mut command = project.command("probes review");
    command.env("NO_COLOR", "1");
    command
}

#[test]
fn decisions_are_written_at_once_and_a_review_goes_on_where_it_stopped() {
    let project = Project::offline();
    let before = project.read(BANK);
    project.edit(
        "fixtures/harbor.json",
        "\"model\":",
        "\"notes\": {\"paraphrase\": 1},\n  \"model\":",
    );
    let mut command = terminal_command(&project);
    command.env("EDITOR", "sed -i s/count[?]/number?/");
    // The message is kept, then accept; edit and accept; reject; a letter that means nothing; skip; quit.
    let (code, screen) = in_terminal(command, "k\na\ne\na\nr\nx\ns\nq\n");
    assert_eq!(code, 0, "{screen}");
    for words in [
        "message 1 is in the user's own words",
        "error EADDRINUSE »4711«",
        "message 3 (tool)",
        "3 accepted, 1 edited, 1 rejected, 4 questions left",
        "next: compeval probes review",
    ] {
        assert!(screen.contains(words), "`{words}` is missing in {screen}");
    }
    let expected = before
        .replace(
            "\"harbor\",",
            "\"harbor\",\n  \"reviewed\": [\"first-error\",\"workers\"],",
        )
        .replace("workers count?", "workers number?");
    let port = before
        .lines()
        .find(|line| line.contains("\"port\""))
        .unwrap();
    assert_eq!(
        project.read(BANK),
        expected.replace(&format!("\n{port}"), "")
    );
    assert!(!project.read("fixtures/harbor.json").contains("paraphrase"));

    let pending = project.expect(0, "probes review --json").json();
    let first = &pending["pending"][0];
    assert_eq!(
        (&first["id"], &first["of"]),
        (&Value::from("file"), &Value::from(4))
    );
    assert_eq!(
        first["facts"][0]["message"], 2,
        "in the arguments of a call"
    );
    let (code, screen) = in_terminal(terminal_command(&project), "a\na\na\na\n");
    assert!(
        code == 0 && screen.contains("next: compeval run"),
        "{screen}"
    );
    assert_eq!(bank(&project)["reviewed"].as_array().unwrap().len(), 6);
    project
        .expect(0, "probes review")
        .says(&["Every probe is reviewed", "next: compeval run"]);
    project.expect(0, "check");
}

#[test]
fn a_decision_can_be_undone_and_all_of_a_fixture_accepted() {
    let project = Project::offline();
    let before = project.read(BANK);
    let (code, screen) = in_terminal(terminal_command(&project), "a\nr\nu\nu\nu\n?\nq\n");
    assert_eq!((code, project.read(BANK)), (0, before), "{screen}");
    for words in [
        "0 of 7 decided",
        "2 of 7 decided (1 accepted, 0 edited, 1 rejected)",
        "A accept all open probes",
    ] {
        let flat = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "`{words}` is missing in {screen}");
    }
    let (_, screen) = in_terminal(terminal_command(&project), "r\nA\n");
    assert_eq!(
        bank(&project)["reviewed"].as_array().unwrap().len(),
        6,
        "{screen}"
    );
    assert!(
        screen.contains("6 accepted, 0 edited, 1 rejected, 0 questions left"),
        "{screen}"
    );
}

#[test]
fn a_paraphrased_fact_is_given_the_words_of_the_transcript() {
    let project = Project::offline();
    let paraphrase = r#"{"fixture": "harbor", "probes": [{"id": "tries", "type": "decision", "question": "Why was the limit raised?",
        "expected_facts": ["the upstream requires 6 tries"], "literal": false}]}"#;
    project.write(BANK, paraphrase);
    let proposed = project.expect(0, "probes review --json").json();
    assert_eq!(
        proposed["pending"][0]["literal_forms"][0]["form"],
        "upstream needs 6 tries"
    );
    let (code, screen) = in_terminal(terminal_command(&project), "1\na\n");
    assert!(
        code == 0 && screen.contains("literal form 1: »upstream needs 6 tries«"),
        "{screen}"
    );
    let probe = &bank(&project)["probes"][0];
    assert_eq!(
        probe["expected_facts"],
        json!([["upstream needs 6 tries", "the upstream requires 6 tries"]])
    );
    assert_eq!(probe["literal"], true);
    assert!(
        screen.contains("because the »upstream needs 6 tries« when"),
        "the fact is found now: {screen}"
    );
    project.expect(0, "check");
}

#[test]
fn what_cannot_be_a_probe_is_refused_and_nothing_is_written() {
    let project = Project::offline();
    project
        .expect(2, "probes review")
        .says(&["needs a terminal", "--open", "--json lists"]);
    project
        .expect(2, "probes review harbour")
        .says(&["no fixture `harbour`", "did you mean `harbor`?"]);
    let before = project.read(BANK);
    let mut command = terminal_command(&project);
    command.env("EDITOR", "sed -i s/recall/recal/");
    let (_, screen) = in_terminal(command, "e\nq\n");
    assert!(
        screen.contains("not written:") && screen.contains("unknown probe type `recal`"),
        "{screen}"
    );
    assert_eq!(project.read(BANK), before);
    // Without an editor the fields are asked for: an empty line keeps one.
    let (_, screen) = in_terminal(
        terminal_command(&project),
        "e\nWhich error came?\n4711 ; EADDRINUSE | taken\n\nq\n",
    );
    let probe = &bank(&project)["probes"][0];
    assert_eq!(probe["question"], "Which error came?", "{screen}");
    assert_eq!(
        probe["expected_facts"],
        json!(["4711", ["EADDRINUSE", "taken"]])
    );
    let words = "Please find out why it does not start";
    project.edit(
        "fixtures/harbor.json",
        "\"model\":",
        "\"notes\": {\"paraphrase\": 1, \"source\": \"x\"},\n  \"model\":",
    );
    in_terminal(terminal_command(&project), &format!("p\n{words}\n\nq\n"));
    let fixture: Value = serde_json::from_str(&project.read("fixtures/harbor.json")).unwrap();
    assert_eq!(
        (&fixture["messages"][1]["content"], &fixture["notes"]),
        (&words.into(), &json!({"source": "x"}))
    );
}

/// The status and body of a request to the page.
fn ask(socket: &str, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(socket).unwrap();
    let length = body.len();
    write!(
        stream,
        "{head}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (
        head.split(' ').nth(1).unwrap().parse().unwrap(),
        body.to_owned(),
    )
}

#[test]
fn a_page_on_loopback_decides_alike_and_for_nobody_else() {
    let project = Project::offline();
    let mut command = project.command("probes review --open");
    command.env("BROWSER", "true");
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let line = lines.find(|line| line.contains("http://")).unwrap();
    let address = line
        .split(' ')
        .find_map(|word| word.strip_prefix("http://"))
        .unwrap();
    let (socket, token) = address.trim_end_matches('/').split_once('/').unwrap();
    let get =
        |path: &str, host: &str| ask(socket, &format!("GET {path} HTTP/1.1\r\nHost: {host}"), "");
    assert_eq!(get(&format!("/{token}/"), "evil.example").0, 403);
    assert_eq!(get("/", socket).0, 404);
    assert_eq!(get(&format!("/{}/card/0", "0".repeat(32)), socket).0, 404);
    assert!(
        get(&format!("/{token}/"), socket)
            .1
            .contains("Review of probes")
    );
    let shown = |at: usize| -> Value {
        serde_json::from_str(&get(&format!("/{token}/card/{at}"), socket).1).unwrap()
    };
    let card = |at: usize| shown(at)["card"].clone();
    assert_eq!(card(0)["facts"][0]["found"], "4711");
    let decide = |body: Value| {
        ask(
            socket,
            &format!("POST /{token}/decide HTTP/1.1\r\nHost: {socket}"),
            &body.to_string(),
        )
    };
    let (status, why) =
        decide(json!({"at": 0, "id": "first-error", "decision": "edit", "text": "{}"}));
    assert!(status == 422 && why.contains("missing field"), "{why}");
    assert_eq!(
        decide(json!({"at": 0, "id": "port", "decision": "accept"})).0,
        422,
        "another question"
    );
    assert_eq!(bank(&project)["reviewed"], Value::Null);
    // All are accepted at once, and that is undone.
    let post = |path: &str, body: Value| {
        ask(
            socket,
            &format!("POST /{token}/{path} HTTP/1.1\r\nHost: {socket}"),
            &body.to_string(),
        )
    };
    let untouched = project.read(BANK);
    let first = json!({"at": 0, "id": card(0)["id"]});
    assert_eq!(
        post("accept-all", first),
        (200, r#"{"accepted":7}"#.to_owned())
    );
    assert_eq!(bank(&project)["reviewed"].as_array().unwrap().len(), 7);
    assert_eq!(post("undo", json!({})), (200, r#"{"at":0}"#.to_owned()));
    assert_eq!(
        (project.read(BANK), shown(0)["decided"].clone()),
        (untouched, json!(0))
    );
    for at in 0..7 {
        let id = card(at)["id"].clone();
        let decision = if at == 2 { "reject" } else { "accept" };
        assert_eq!(
            decide(json!({"at": at, "id": id, "decision": decision})).1,
            r#"{"settled":true}"#
        );
    }
    assert_eq!(
        (
            bank(&project)["reviewed"].as_array().unwrap().len(),
            bank(&project)["probes"].as_array().unwrap().len()
        ),
        (6, 6)
    );
    assert_eq!(shown(7)["over"], true);
    assert!(child.wait().unwrap().success());
    let end: Vec<String> = lines.collect();
    assert!(
        end.concat()
            .contains("6 accepted, 0 edited, 1 rejected, 0 questions left"),
        "{end:?}"
    );
}
