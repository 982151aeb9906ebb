//! The key is sent where it must go, and occurs nowhere else.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::brain;
use super::project::{Ended, KEY, Project};
use super::server::{Reply, Server, with_finish};

#[test]
fn the_key_is_sent_and_occurs_in_nothing_that_is_written_or_printed() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match asked.text.contains("Who owns the machine?") {
        true => Reply::Raw(
            400,
            format!("{{\"error\":{{\"message\":\"the key {KEY} may not do this\"}}}}"),
        ),
        false => Reply::Sensible,
    });
    let ended = project.expect(5, "run --label a --runs 1 -vv");
    assert!(
        server
            .asked()
            .iter()
            .all(|asked| asked.headers["authorization"] == format!("Bearer {KEY}").as_str())
    );
    assert!(
        ended.stderr.contains("may not do this")
            || project
                .read("results/a/manifest.json")
                .contains("may not do this")
    );
    let holds = |bytes: &[u8]| {
        bytes
            .windows(KEY.len())
            .any(|window| window == KEY.as_bytes())
    };
    assert!(!holds(ended.stdout.as_bytes()) && !holds(ended.stderr.as_bytes()));
    let written = [project.files("cache"), project.files("results")].concat();
    assert!(written.len() > 4);
    for path in written {
        assert!(!holds(&std::fs::read(&path).unwrap()), "{}", path.display());
    }
}

#[test]
fn no_entry_of_the_cache_holds_the_key_when_it_is_unpacked() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1 --methods anchored");
    let keys = project.keys("a");
    assert!(keys.len() > 31);
    let mut read = 0;
    for key in keys.iter().step_by(9) {
        for flag in ["--raw", ""] {
            let shown = project
                .expect(0, &format!("cache show {key} {flag}"))
                .stdout;
            assert!(!shown.is_empty() && !shown.contains(KEY), "{shown}");
            read += shown.len();
        }
    }
    assert!(read > 1000);
}

/// A key with the characters that JSON, URLs and base64 write in several ways.
const AWKWARD: &str = "sk-not/a+key~4f1e7a?0c9d";

/// The spellings of a key as they may occur in a JSON text: escaped in part and as a whole, for a URL, in base64.
fn spellings(key: &str) -> Vec<String> {
    let each = |spell: &dyn Fn(usize, char) -> String| {
        key.char_indices()
            .map(|(at, c)| spell(at, c))
            .collect::<String>()
    };
    let mut all = vec![
        key.to_owned(),
        key.replace('/', "\\/"),
        each(&|_, c| format!("\\u{:04x}", u32::from(c))),
        each(&|at, c| {
            if at % 3 == 0 {
                format!("\\u{:04X}", u32::from(c))
            } else {
                c.to_string()
            }
        }),
        each(&|_, c| format!("%{:02X}", u32::from(c))),
        each(&|_, c| {
            if c.is_alphanumeric() {
                c.to_string()
            } else {
                format!("%{:02x}", u32::from(c))
            }
        }),
    ];
    for before in ["", "u:", "Bearer "] {
        all.push(STANDARD.encode(format!("{before}{key}")));
        all.push(URL_SAFE.encode(format!("{before}{key}")));
    }
    all
}

#[test]
fn no_spelling_of_the_key_reaches_a_file_or_a_stream() {
    let server = Server::start();
    let mut project = Project::new(&server);
    project.set("MOCK_API_KEY", AWKWARD);
    let echoed = spellings(AWKWARD).join(" ");
    server.script(move |asked| {
        let headers = vec![
            ("x-request-id", AWKWARD.to_owned()),
            ("x-ratelimit-limit-requests", AWKWARD.to_owned()),
        ];
        let reply = match asked.wanted {
            brain::Wanted::Grades => Reply::Sensible,
            _ if asked.text.contains("Who owns the machine?") => Reply::Raw(
                400,
                format!("{{\"error\":{{\"message\":\"no such key: {echoed}\"}}}}"),
            ),
            // The spellings go into the JSON as they are.
            _ => {
                let body = with_finish(
                    asked,
                    &format!("{} ECHOED", brain::reply(&asked.json)),
                    "stop",
                );
                Reply::Raw(
                    200,
                    body.replace("ECHOED", &echoed)
                        .replace("small-1-2025", &format!("m-{AWKWARD}")),
                )
            }
        };
        Reply::Headed(headers, Box::new(reply))
    });
    let mut shown = vec![project.expect(5, "run --label a --runs 1 --methods anchored,full -vv")];
    assert!(
        shown[0].stderr.contains("no such key"),
        "{}",
        shown[0].stderr
    );
    shown.push(project.expect(0, "show harbor --label a --method anchored --probe port"));
    assert!(shown[1].stdout.contains("***"), "{}", shown[1].stdout);
    // The packs are compressed. A program that knows no key reads them, so that it cannot hide what they hold.
    project.unset("MOCK_API_KEY");
    for key in project.keys("a") {
        shown.push(project.expect(0, &format!("cache show {key} --raw")));
    }
    shown.push(project.expect(0, "cache ls --json"));
    let written = [project.files("cache"), project.files("results")].concat();
    assert!(written.len() > 4 && shown.len() > 20);
    let streams = shown
        .into_iter()
        .flat_map(|Ended { stdout, stderr, .. }| [stdout.into_bytes(), stderr.into_bytes()]);
    let all: Vec<Vec<u8>> = written
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .chain(streams)
        .collect();
    for spelling in spellings(AWKWARD) {
        // The bytes beside a key decide the ends of its base64. Its middle is found in either of two forms.
        let spelling = &spelling[spelling.len() / 3..spelling.len() * 2 / 3];
        for bytes in &all {
            let at = bytes
                .windows(spelling.len())
                .position(|window| window == spelling.as_bytes());
            let near = at.map(|at| {
                String::from_utf8_lossy(&bytes[at.saturating_sub(200)..at + spelling.len()])
            });
            assert_eq!(near, None, "{spelling}");
        }
    }
}

#[test]
fn a_key_that_a_program_prints_or_a_fixture_holds_is_neither_stored_nor_shown() {
    let server = Server::start();
    let project = Project::new(&server);
    let echo = "[[compress]]\nname = \"echo\"\nstrategy = \"command\"\ncommand = [\"sh\", \"-c\", \"echo the key is $MOCK_API_KEY; echo $MOCK_API_KEY >&2\"]\nenv = [\"MOCK_API_KEY\"]\n\n[[compress]]";
    project.edit("pipeline.toml", "[[compress]]", echo);
    project.edit(
        "fixtures/harbor.json",
        "\"content\": \"",
        &format!("\"content\": \"my key is {KEY}. "),
    );
    let ended = project.compeval("run --label a --runs 1 --methods echo,full -vv --allow-unproven");
    let shown = project.compeval("show harbor --label a --method echo --probe port");
    for text in [ended.stdout, ended.stderr, shown.stdout, shown.stderr] {
        assert!(!text.contains(KEY), "{text}");
    }
    for path in [project.files("cache"), project.files("results")].concat() {
        let bytes = std::fs::read(&path).unwrap();
        assert!(
            !bytes
                .windows(KEY.len())
                .any(|window| window == KEY.as_bytes()),
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_key_that_comes_in_two_parts_is_not_shown_as_one() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match asked.wanted {
        brain::Wanted::Answer => {
            let (begin, end) = KEY.split_at(9);
            let part = |text: String| serde_json::json!({"type": "text", "text": text});
            let content = [part(format!("It is {begin}")), part(end.to_owned())];
            let message = serde_json::json!({"role": "assistant", "content": content});
            Reply::Raw(
                200,
                serde_json::json!({"choices": [{"finish_reason": "stop", "message": message}]})
                    .to_string(),
            )
        }
        _ => Reply::Sensible,
    });
    project.expect(0, "run --label a --runs 1 --methods full");
    let listed = project.expect(0, "cache ls --json --stage answer").json();
    let key = listed[0]["key"].as_str().unwrap();
    for flag in ["", "--json"] {
        let shown = project
            .expect(0, &format!("cache show {key} {flag}"))
            .stdout;
        assert!(
            shown.contains("It is ***") && !shown.contains(KEY),
            "{shown}"
        );
    }
}
