//! No control character of a reply, an error or a file reaches the output, with or without a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::brain::Wanted;
use super::project::{KEY, Project, Running};
use super::server::{Reply, Server};

/// Writes the clipboard, clears the screen (as C0 and as C1), colours, and reverses the following text.
const HOSTILE: &str =
    "It is \u{1b}]52;c;aGFja2Vk\u{7}\u{1b}[2J\u{9b}2J\u{1b}[31mred\u{202e}txt.exe";

fn hostile_project(server: &Server) -> Project {
    server.script(|asked| match asked.wanted {
        Wanted::Answer => Reply::Text(HOSTILE.to_owned()),
        _ => Reply::Sensible,
    });
    let project = Project::new(server);
    project.expect(0, "run --label a --runs 1");
    project
}

fn assert_harmless(text: &str, of: &str) {
    let steers = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
    assert!(!text.chars().any(steers), "{of}: {text:?}");
}

#[test]
fn control_characters_of_a_reply_are_escaped_without_a_terminal() {
    let server = Server::start();
    let project = hostile_project(&server);
    let shown = project.expect(
        0,
        "show harbor --method anchored --run 1 --probe port --label a",
    );
    assert!(
        shown.stdout.contains("\\u{1b}]52;c;aGFja2Vk"),
        "{}",
        shown.stdout
    );
    assert_harmless(&shown.stdout, "show");
    let json = project.expect(
        0,
        "show harbor --method anchored --run 1 --probe port --label a --json",
    );
    assert_harmless(&json.stdout, "show --json");
    assert!(
        json.json().to_string().contains('\u{9b}'),
        "JSON keeps the value"
    );
}

/// Runs a command on a terminal of its own and types `typed`. Returns its exit code and what the terminal shows.
pub fn in_terminal(mut command: Command, typed: &str) -> (i32, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new())
        .unwrap()
        .into_string()
        .unwrap();
    let terminal = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
    command
        .stdin(terminal())
        .stdout(terminal())
        .stderr(terminal());
    let mut controller = File::from(controller);
    controller.write_all(typed.as_bytes()).unwrap();
    let running = Running::of(command);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Reading a terminal fails once its last user has closed it.
        let _ = controller.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let code = running.end().code;
    (code, reader.join().unwrap())
}

#[test]
fn control_characters_of_a_reply_do_not_control_a_real_terminal() {
    let server = Server::start();
    let project = hostile_project(&server);
    for (command, has_colors) in [
        (
            "show harbor --method anchored --run 1 --probe port --label a --color always",
            true,
        ),
        ("report a --csv", false),
    ] {
        let mut command = project.command(command);
        command.env("PAGER", "cat");
        let (code, screen) = in_terminal(command, "");
        assert_eq!(code, 0);
        assert!(screen.contains("\\u{1b}]52;c;aGFja2Vk"), "{screen:?}");
        assert_eq!(screen.contains("\u{1b}["), has_colors, "of its own");
        for steers in [
            "\u{1b}]",
            "\u{1b}[2J",
            "\u{9b}",
            "\u{202e}",
            "\u{1b}[31mred",
        ] {
            assert!(!screen.contains(steers), "{steers:?} in {screen:?}");
        }
    }
    let file = project.expect(0, "report a --csv").stdout;
    assert!(file.contains(HOSTILE), "a file has the texts as they are");
}

#[test]
fn a_dumb_terminal_gets_no_control_sequences() {
    let server = Server::start();
    let project = Project::new(&server);
    let mut command = project.command("run --label a --runs 1 --methods full");
    command.env("TERM", "dumb");
    let (code, screen) = in_terminal(command, "");
    assert!(
        code == 0 && screen.contains("next: compeval show harbor"),
        "{screen}"
    );
    assert!(!screen.contains('\u{1b}'), "{screen:?}");
}

#[test]
fn a_list_of_entries_is_no_wider_than_the_terminal() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1");
    let mut command = project.command("cache ls");
    command.env("PAGER", "cat").env("NO_COLOR", "1");
    // A terminal without a size counts as one of 100 columns.
    let (code, screen) = in_terminal(command, "");
    assert_eq!(code, 0, "{screen}");
    let widest = screen
        .lines()
        .map(|line| line.trim_end().chars().count())
        .max();
    assert!(
        screen.contains("harbor · full · run 1 · point 1") && widest <= Some(100),
        "{screen}"
    );
}

#[test]
fn standard_error_in_a_file_has_whole_lines_beside_a_terminal() {
    let project = Project::offline();
    let key = "a_key_".repeat(20);
    project.edit("pipeline.toml", "regrade", &key);
    let mut command = Command::new("sh");
    command
        .args(["-c", "\"$0\" plan 2>errors", env!("CARGO_BIN_EXE_compeval")])
        .current_dir(project.path("."));
    command
        .env("MOCK_API_KEY", KEY)
        .env_remove("COMPEVAL_CACHE");
    let (code, screen) = in_terminal(command, "");
    assert_eq!(code, 2, "{screen}");
    let errors = project.read("errors");
    let whole = format!("error: unknown key `{key}`");
    assert!(errors.lines().any(|line| line == whole), "{errors}");
}

#[test]
fn a_list_of_entries_stays_json_whatever_a_server_sends() {
    let server = Server::start();
    server.script(|_| Reply::Raw(200, format!("\u{7f}{HOSTILE}\u{200b}\u{e0041}")));
    let project = Project::new(&server);
    project.edit(
        "pipeline.toml",
        "max_in_flight = 16",
        "max_in_flight = 16\nmax_attempts = 1",
    );
    project.compeval("run --label a --runs 1 --methods full");
    let listed = project.expect(0, "cache ls --json");
    assert_harmless(&listed.stdout, "cache ls --json");
    let fault = listed.json()[0]["fault"].as_str().unwrap().to_owned();
    assert!(
        fault.contains("\u{7f}It is \u{1b}]52") && fault.contains('\u{e0041}'),
        "JSON keeps the value: {fault:?}"
    );
}

/// The texts that a page decompresses.
fn unpacked(page: &str) -> Vec<String> {
    use base64::Engine;
    let packs = page
        .split(['"', '<', '>', '\n'])
        .filter_map(|text| base64::engine::general_purpose::STANDARD.decode(text).ok());
    let inflate = |pack: Vec<u8>| {
        let mut text = String::new();
        flate2::read::DeflateDecoder::new(pack.as_slice())
            .read_to_string(&mut text)
            .ok()
            .map(|_| text)
    };
    packs
        .filter_map(inflate)
        .filter(|text| text.len() > 2)
        .collect()
}

#[test]
fn control_characters_of_a_reply_are_escaped_in_the_reports() {
    let server = Server::start();
    let project = hostile_project(&server);
    let (page, markdown) = (
        project.read("results/a/report.html"),
        project.read("results/a/report.md"),
    );
    let packs = unpacked(&page);
    for (name, text) in [("report.html", &page), ("report.md", &markdown)]
        .into_iter()
        .chain(packs.iter().map(|t| ("a pack", t)))
    {
        assert_harmless(text, name);
        assert!(
            !text.contains("\\u001b") && !text.contains("\\u009b") && !text.contains("\\u202e"),
            "{name}: {text}"
        );
    }
    assert!(
        packs
            .iter()
            .any(|text| text.contains(r"\\u{1b}]52;c;aGFja2Vk\\u{7}")),
        "{packs:?}"
    );
}

#[test]
fn texts_of_models_are_no_commands_in_the_log_of_the_action() {
    let server = Server::start();
    server.script(|asked| match asked.wanted {
        Wanted::Answer => {
            let hostile = r#"{"error": {"message": "no\n::add-mask::port"}}"#;
            Reply::Raw(400, hostile.to_owned())
        }
        _ => Reply::Sensible,
    });
    let project = Project::new(&server);
    let program = Path::new(env!("CARGO_BIN_EXE_compeval"));
    let folders = [program.parent().unwrap(), Path::new("/usr/bin:/bin")];
    let action = |label: &str| {
        let mut command = Command::new("bash");
        command
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tools/action.sh"))
            .arg("run");
        command.env_clear().current_dir(project.path("."));
        for name in ["SELFTEST", "PART", "PARTS", "REMOTE", "MEETING"] {
            command.env(name, "");
        }
        for name in ["COMPARE_TO", "FAIL_ON_REGRESSION", "ARGS"] {
            command.env(name, "");
        }
        command
            .env(
                "PATH",
                folders.map(|folder| folder.to_str().unwrap()).join(":"),
            )
            .env("MOCK_API_KEY", KEY)
            .env("DIRECTORY", ".")
            .env("LABEL", label)
            .env("GITHUB_OUTPUT", project.path("output"))
            .env("GITHUB_STEP_SUMMARY", project.path("summary"));
        let ended = command.output().unwrap();
        let log = String::from_utf8_lossy(&ended.stdout).into_owned();
        (ended.status.code(), log)
    };
    let tokens = ["a", "v1.2 nightly"].map(|label| {
        let (code, log) = action(label);
        assert_eq!(code, Some(0), "{log}");
        let (first, rest) = log.split_once('\n').unwrap();
        let token = first.strip_prefix("::stop-commands::").unwrap().to_owned();
        assert!(rest.ends_with(&format!("::{token}::\n")), "{log}");
        assert_eq!(log.matches(&token).count(), 2, "{log}");
        token
    });
    assert!(tokens[0] != tokens[1] && tokens[0].len() == 32);
    assert!(project.read("output").contains("exit-code=5"));
    // Their folder would be the whole project, or that of other labels.
    for label in ["", ".", "..", "a/b", "*", "[a]"] {
        let (code, log) = action(label);
        assert_eq!(code, Some(2), "{label}");
        assert!(log.starts_with("::error::a label is a name"), "{log}");
    }
}
