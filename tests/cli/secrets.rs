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
