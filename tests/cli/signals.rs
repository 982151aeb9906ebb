//! Signals that end a run: Ctrl-C, once and again, and those of job schedulers and terminals.

use std::io::Write;

use rustix::process::Signal;

use super::project::{Project, Running};
use super::server::{Reply, Server, wait_until};

/// A run whose first five requests the server holds back.
fn start_held(server: &Server, project: &Project, label: &str) -> Running {
    server.script(|_| Reply::Held);
    let running = project.start(&format!("run --label {label} --runs 1 -j 5"));
    server.wait_for(5);
    running
}

#[test]
fn ctrl_c_drains_what_is_under_way_and_the_next_run_finishes() {
    let server = Server::start();
    let project = Project::new(&server);
    let mut running = start_held(&server, &project, "a");
    running.interrupt();
    running.wait_for_words("stopping");
    server.let_go();
    let ended = running.end();
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    ended.says(&["interrupted"]);
    assert_eq!(server.count(), 5, "no new calls");
    assert_eq!(
        project.result("a", "manifest.json")["outcome"],
        "interrupted"
    );
    assert!(project.exists("results/a/cells.jsonl"));
    project.expect(0, "run --label a --runs 1");
    assert!(
        server.asked().iter().all(|asked| asked.earlier == 0),
        "what was finished is kept"
    );
    assert_eq!(project.rows("a").len(), 5 * 7);
}

#[test]
fn queued_requests_are_not_sent_after_ctrl_c() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit("pipeline.toml", "max_in_flight = 16", "max_in_flight = 2");
    server.script(|_| Reply::Held);
    let mut running = project.start("run --label a --runs 1 -j 8");
    server.wait_for(2);
    running.interrupt();
    running.wait_for_words("stopping");
    server.let_go();
    let ended = running.end();
    assert_eq!((ended.code, server.count()), (130, 2), "{}", ended.stderr);
    let manifest = project.result("a", "manifest.json");
    assert_eq!(
        (
            &manifest["requests_sent"],
            &manifest["unused"]["unanswered"]
        ),
        (&2.into(), &0.into())
    );
    assert!(
        manifest["failures"].as_array().unwrap().is_empty(),
        "{}",
        manifest["failures"]
    );
}

#[test]
fn a_job_scheduler_and_a_closed_terminal_stop_a_run_as_ctrl_c_does() {
    for (signal, label) in [(Signal::TERM, "term"), (Signal::HUP, "hup")] {
        let server = Server::start();
        let project = Project::new(&server);
        let mut running = start_held(&server, &project, label);
        running.signal(signal);
        running.wait_for_words("stopping");
        server.let_go();
        let ended = running.end();
        assert_eq!((ended.code, server.count()), (130, 5), "{}", ended.stderr);
        assert_eq!(
            project.result(label, "manifest.json")["outcome"],
            "interrupted"
        );
    }
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let server = Server::start();
    let project = Project::new(&server);
    let mut running = start_held(&server, &project, "a");
    running.interrupt();
    running.wait_for_words("stopping");
    running.interrupt();
    let ended = running.end();
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    let unused = project.result("a", "manifest.json")["unused"].clone();
    assert_eq!(
        (&unused["unanswered"], &unused["replies"]),
        (&5.into(), &0.into()),
        "what came of them is unknown"
    );
    assert!(
        ended.stdout.contains("5 requests were never answered"),
        "{}",
        ended.stdout
    );
    assert!(
        ended
            .stdout
            .contains("next: compeval run --label a --runs 1 -j 5"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_third_ctrl_c_ends_a_process_that_hangs() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|_| Reply::Held);
    // Nobody reads its output in the end, so it cannot end by itself.
    let (_reader, full) = full_pipe();
    let mut command = project.command("run --label a --runs 1 -j 5");
    command.stdout(full);
    let mut running = Running::of(command);
    server.wait_for(5);
    running.interrupt();
    running.wait_for_words("stopping");
    running.interrupt();
    wait_until(|| project.result("a", "manifest.json")["outcome"] != "running");
    running.interrupt();
    wait_until(|| running.has_ended());
    let ended = running.end();
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert_eq!(
        project.result("a", "manifest.json")["outcome"],
        "interrupted"
    );
}

/// A full pipe, with its reading end.
fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
    rustix::fs::fcntl_setfl(&writer, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    rustix::fs::fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}
