//! `compare --html`: the cells of two labels on one page.

use super::super::brain::Wanted;
use super::project::{KEY, Project};
use super::server::{Reply, Server};

#[test]
fn a_page_has_both_sides_with_their_contexts() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1");
    server.script(|asked| match asked.wanted {
        Wanted::Compression => Reply::Text("Nothing of it was written down.".to_owned()),
        _ => Reply::Sensible,
    });
    project.edit("prompts/anchored.md", "working notes", "no notes");
    project.expect(0, "run --label b --runs 1");
    let ended = project.expect(0, "compare b a --html changes.html");
    ended.says(&["wrote changes.html"]);
    #[cfg(unix)]
    {
        let mode = std::fs::metadata(project.path("changes.html")).unwrap().permissions();
        let mode = std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777;
        assert_eq!(mode, 0o600, "it has whole contexts");
    }
    let page = project.read("changes.html");
    assert!(page.contains("<title>b against a"), "{}", &page[..900]);
    assert!(page.contains(r#"["b:anchored","a:anchored"]"#));
    let cells = project.rows("a").len() + project.rows("b").len();
    assert!(page.contains(&format!("\"cells\":{{\"n\":{cells},")), "{cells} cells");
    assert!(page.contains("\"facts_lost\":[{\"fixture\":\"harbor\""));
    let contexts = |page: &str| page.matches("id=\"contexts-").count();
    let of_a = contexts(&project.read("results/a/report.html"));
    assert_eq!(contexts(&page), 2 * of_a, "the contexts of both sides are in the cache");
    assert!(page.contains("id=\"sessions-0\"") && !page.contains(KEY) && !page.contains("connect-src"));
    project.expect(0, "compare b:anchored b:full --html methods.html");
    assert!(project.read("methods.html").contains(r#"[["b:anchored","b (baseline):full"]]"#));
}
