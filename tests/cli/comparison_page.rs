//! `compare`: one method with one of its answerers, and with `--html` the cells of two labels on one page.

use serde_json::Value;

use super::brain::Wanted;
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
        let mode = std::fs::metadata(project.path("changes.html"))
            .unwrap()
            .permissions();
        let mode = std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777;
        assert_eq!(mode, 0o600, "it has whole contexts");
    }
    let page = project.read("changes.html");
    assert!(page.contains("<title>b against a"), "{}", &page[..900]);
    assert!(page.contains(r#"["b:anchored","a:anchored"]"#));
    let cells = project.rows("a").len() + project.rows("b").len();
    assert!(
        page.contains(&format!("\"cells\":{{\"n\":{cells},")),
        "{cells} cells"
    );
    assert!(page.contains("facts lost from the context ("));
    let contexts = |page: &str| page.matches("id=\"contexts-").count();
    let of_a = contexts(&project.read("results/a/report.html"));
    assert_eq!(
        contexts(&page),
        2 * of_a,
        "the contexts of both sides are in the cache"
    );
    assert!(
        page.contains("id=\"sessions-0\"") && !page.contains(KEY) && !page.contains("connect-src")
    );
    project.expect(0, "compare b:anchored b:full --html methods.html");
    assert!(
        project
            .read("methods.html")
            .contains(r#"[["b:anchored","b (baseline):full"]]"#)
    );
}

#[test]
fn a_method_with_one_of_two_answerers_is_compared_alone() {
    let server = Server::start();
    let project = Project::new(&server);
    project.write(
        "prompts/second.md",
        &format!("You are the second.\n{}", project.read("prompts/answer.md")),
    );
    let second = "[[answer]]\nname   = \"second\"\nmodel  = \"mock/small-1\"\nprompt = \"prompts/second.md\"\n";
    project.edit(
        "pipeline.toml",
        "[[judge]]",
        &format!("{second}\n[[judge]]"),
    );
    let own = "--runs 1 --methods full,nothing";
    project.expect(0, &format!("run --label before {own}"));
    server.script(|asked| match asked.wanted {
        Wanted::Answer if asked.text.contains("You are the second.") => {
            Reply::Text("Nobody knows.".to_owned())
        }
        _ => Reply::Sensible,
    });
    project.expect(0, &format!("run --label after {own} --refresh answer"));
    let compared = project
        .expect(0, "compare after:full/second before --json")
        .json();
    let headline = &compared["headline"];
    assert_eq!(
        headline["values"]["trend"], "no_evidence",
        "the first answerer has no part in it: {headline:#}"
    );
    let text = headline["text"].as_str().expect("a sentence");
    assert!(text.contains("full/second"), "{text}");
    let screen = project.expect(0, "compare after:full/second before").stdout;
    assert!(screen.contains("full/second"), "{screen}");
    for other in ["full/agent", "nothing/"] {
        assert!(!screen.contains(other), "`{other}`\n{screen}");
    }
}

#[test]
fn answers_with_a_search_are_compared_under_the_name_of_their_answerer() {
    let server = Server::start();
    let project = Project::new(&server);
    project.write(
        "prompts/second.md",
        &format!("You are the second.\n{}", project.read("prompts/answer.md")),
    );
    project.edit(
        "pipeline.toml",
        "[[judge]]",
        "[[answer]]\nname = \"second\"\nmodel = \"mock/small-1\"\nprompt = \"prompts/second.md\"\n\n\
         [answer.recovery]\nresults = 8\n\n[[judge]]",
    );
    project.expect(0, "run --label a --runs 1 --methods anchored");
    project.edit("prompts/anchored.md", "working notes", "no notes");
    project.expect(0, "run --label b --runs 1 --methods anchored");
    project.expect(0, "compare b a --html changes.html");
    let cells = project.rows("a").len() + project.rows("b").len();
    let has_search = |row: &Value| row.get("open_book").is_some();
    assert!(project.rows("a").iter().any(has_search));
    let page = project.read("changes.html");
    assert!(
        page.contains(&format!("\"cells\":{{\"n\":{cells},")),
        "{cells} cells"
    );
    // A plan knows what became of the baseline, whether it is a label or one of its methods.
    let reasons = |side: &str| {
        let plan = project.expect(
            0,
            &format!("plan --runs 1 --methods anchored --compare-to {side} --json"),
        );
        plan.json()["since_baseline"].clone()
    };
    project.edit("prompts/anchored.md", "no notes", "some notes");
    let whole = reasons("b");
    assert!(
        whole.as_array().is_some_and(|changes| !changes.is_empty()),
        "{whole:#}"
    );
    assert_eq!(reasons("b:anchored"), whole);
    assert_eq!(reasons("b:anchored/second"), whole);
}
