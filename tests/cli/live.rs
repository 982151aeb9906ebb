//! `run --live`: the page of a run on loopback.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::brain::Wanted;
use super::project::{KEY, Project};
use super::server::{Reply, Server, wait_until};

fn get(socket: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(socket).expect("it is served");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {socket}\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a whole reply");
    reply
}

#[test]
fn the_first_results_are_served_while_the_run_goes_on_and_the_finished_page_at_its_end() {
    let server = Server::start();
    server.script(|asked| match asked.wanted {
        Wanted::Compression => Reply::Held,
        Wanted::Answer => Reply::Text(format!("The listen port is 9091, the key {KEY}.")),
        Wanted::Grades => Reply::Sensible,
    });
    let project = Project::new(&server);
    let mut running = project.start("run --label a --runs 1 --live");
    let line = running.line_with("live: http://");
    let address = line
        .split("http://")
        .nth(1)
        .expect("an address")
        .trim()
        .to_owned();
    let (socket, token) = address.split_once('/').expect("a path");
    wait_until(|| project.exists("results/a/cells.jsonl") && !project.rows("a").is_empty());
    let page = get(socket, &format!("/{token}"));
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{}", &page[..200]);
    assert!(
        page.contains("connect-src 'self'") && !page.contains("\"cells\":{\"n\":0,"),
        "the first cells are there"
    );
    assert!(!page.contains(KEY));
    let progress = get(socket, &format!("/{token}progress"));
    assert!(
        progress.contains("\"ended\":false") && progress.contains("\"name\":\"compress\""),
        "{progress}"
    );
    assert!(
        get(socket, "/").starts_with("HTTP/1.1 404"),
        "nothing is served without the token"
    );
    server.let_go();
    wait_until(|| get(socket, &format!("/{token}progress")).contains("\"ended\":true"));
    let finished = get(socket, &format!("/{token}"));
    let (_, finished) = finished.split_once("\r\n\r\n").expect("a body");
    let file = project.read("results/a/report.html");
    let differs = finished
        .bytes()
        .zip(file.bytes())
        .position(|(served, written)| served != written);
    let around = |text: &str| {
        text.get(differs.unwrap_or(0).saturating_sub(80)..)
            .map(|t| t.chars().take(160).collect::<String>())
    };
    assert!(
        finished == file,
        "{} and {} bytes, at {differs:?}: {:?} and {:?}",
        finished.len(),
        file.len(),
        around(finished),
        around(&file)
    );
    assert_eq!(running.end().code, 0);
    assert!(
        TcpStream::connect(socket).is_err(),
        "nobody is served after the run"
    );
}
