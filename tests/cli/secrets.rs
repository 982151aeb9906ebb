//! The key: sent where it must go, and nowhere else.

use super::project::{KEY, Project};
use super::server::{Reply, Server};

#[test]
fn the_key_is_sent_and_occurs_in_nothing_that_is_written_or_printed() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match asked.text.contains("Who owns the machine?") {
        true => Reply::Raw(400, format!("{{\"error\":{{\"message\":\"the key {KEY} may not do this\"}}}}")),
        false => Reply::Sensible,
    });
    let ended = project.expect(5, "run --label a --runs 1 -vv");
    assert!(server.asked().iter().all(|asked| asked.headers["authorization"] == format!("Bearer {KEY}").as_str()));
    assert!(
        ended.stderr.contains("may not do this") || project.read("results/a/manifest.json").contains("may not do this")
    );
    let holds = |bytes: &[u8]| bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
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
    let manifest = project.result("a", "manifest.json");
    let keys = manifest["keys"].as_array().unwrap();
    assert!(keys.len() > 31);
    let mut read = 0;
    for key in keys.iter().step_by(9) {
        let key = key.as_str().unwrap();
        for flag in ["--raw", "--inputs"] {
            let shown = project.expect(0, &format!("cache show {key} {flag}")).stdout;
            assert!(!shown.is_empty() && !shown.contains(KEY), "{shown}");
            read += shown.len();
        }
    }
    assert!(read > 1000);
}
