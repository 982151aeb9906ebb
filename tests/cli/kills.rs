//! Unplanned ends: kill -9, a lost index, a second process.

use std::time::{Duration, Instant};

use super::brain::Wanted;
use super::project::Project;
use super::server::{Asked, Reply, Server};

/// One commit lies between the last byte of a reply and its record on disk.
const COMMIT: Duration = Duration::from_millis(250);

#[test]
fn kill_9_repeats_no_answered_call() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| Reply::Late(Duration::from_millis(2 + asked.body.len() as u64 % 13)));
    let mut kills = Vec::new();
    for (round, pause) in [1_u64, 9, 23, 4, 14].into_iter().enumerate() {
        let mut running = project.start("run --label a --runs 1 -j 6");
        server.wait_for((round + 1) * 14);
        std::thread::sleep(Duration::from_millis(pause));
        kills.push(Instant::now());
        running.kill();
    }
    project.expect(0, "run --label a --runs 1");
    let asked = server.asked();
    let again: Vec<&Asked> = asked.iter().filter(|asked| asked.earlier > 0).collect();
    assert!(again.len() <= kills.len() * 6, "{} repeats", again.len());
    for repeated in again {
        let before = asked
            .iter()
            .filter(|asked| asked.body == repeated.body && asked.earlier < repeated.earlier);
        for answered in before.filter_map(|asked| asked.answered) {
            let excused = kills
                .iter()
                .any(|kill| *kill + COMMIT > answered && answered + COMMIT > *kill);
            let waits: Vec<_> = kills
                .iter()
                .map(|kill| kill.saturating_duration_since(answered))
                .collect();
            assert!(
                excused,
                "a reply was asked again that had been delivered long before a kill: {waits:?}"
            );
        }
    }
    assert_eq!(project.rows("a").len(), 5 * 7);

    server.forget();
    std::fs::remove_dir_all(project.path("cache/index")).unwrap();
    let ended = project.expect(0, "run --label a --runs 1");
    assert_eq!(
        server.count(),
        0,
        "the index is made again from the packs\n{}",
        ended.stderr
    );
}

#[test]
fn a_second_process_is_shown_who_holds_the_cache() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|_| Reply::Held);
    let running = project.start("run --label a --runs 1");
    server.wait_for(1);
    // Its command is not one to type: it does not get the flags of this one.
    let ended = project.expect(1, "run --label b --runs 1 -C .");
    ended.says(&[
        "in use",
        &format!(
            "process {} (compeval run --label a --runs 1, since",
            running.pid()
        ),
    ]);
    server.let_go();
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn two_first_runs_at_once_make_one_cache_and_ask_nothing_twice() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|_| Reply::Late(Duration::from_millis(3)));
    let running = ["a", "b"].map(|label| {
        (
            label,
            project.start(&format!("run --label {label} --runs 1")),
        )
    });
    let ended = running.map(|(label, running)| (label, running.end()));
    for (label, ended) in &ended {
        match ended.code {
            0 => assert_eq!(project.rows(label).len(), 5 * 7, "{label}"),
            _ => {
                assert_eq!(ended.code, 1, "{ended:?}");
                ended.says(&["in use", "process"]);
                assert!(
                    !project.exists(&format!("results/{label}/cells.jsonl")),
                    "nothing was begun"
                );
            }
        }
    }
    assert!(
        ended.iter().any(|(_, ended)| ended.code == 0),
        "one of them has the cache"
    );
    for label in ["a", "b"] {
        project.expect(0, &format!("run --label {label} --runs 1"));
    }
    assert!(
        server.asked().iter().all(|asked| asked.earlier == 0),
        "nothing was asked twice"
    );
    assert_eq!(project.rows("a"), project.rows("b"));
    let verified = project.expect(0, "cache verify");
    assert!(!verified.stderr.contains("damaged"), "{verified:?}");
}

/// Flips a byte in the header of an action's frame. A frame names its action near its beginning.
pub(super) fn damage(project: &Project, key: &str) {
    let key: Vec<u8> = (0..key.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&key[at..at + 2], 16).unwrap())
        .collect();
    let pack = project.files("cache/packs").pop().unwrap();
    let mut bytes = std::fs::read(&pack).unwrap();
    let at = bytes
        .windows(key.len())
        .position(|window| window == key)
        .unwrap();
    bytes[at] ^= 0xFF;
    std::fs::write(&pack, bytes).unwrap();
}

#[test]
fn a_damaged_reply_is_named_and_asked_again_in_the_same_run() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a");
    let rows = project.rows("a");
    let row = rows.iter().find(|row| row["method"] == "anchored").unwrap();
    for (stage, wanted) in [("answer", Wanted::Answer), ("judge", Wanted::Grades)] {
        server.forget();
        damage(&project, row["keys"][stage].as_str().unwrap());
        project
            .expect(0, "run --label a")
            .says(&["checksum", "made again"]);
        assert_eq!(server.counts(), [(wanted, 1)].into());
        assert_eq!(project.rows("a"), rows);
    }
    server.forget();
    project.expect(0, "run --label a");
    assert_eq!(server.count(), 0, "what was made again stands");
}
