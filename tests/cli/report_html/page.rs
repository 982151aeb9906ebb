//! The bytes of the page, without a browser.

use std::sync::LazyLock;

use super::browser::INJECTION;
use super::sample::{Sample, SampleOptions, render};

/// A page of 19,800 cells.
pub(crate) static LARGE: LazyLock<String> = LazyLock::new(|| {
    let sample = Sample::new(&SampleOptions {
        fixtures: 6,
        points: 5,
        probes: 22,
        runs: 5,
        compared: false,
        ..SampleOptions::default()
    });
    assert_eq!(sample.rows.len(), 19_800);
    render(&sample.input())
});

fn small() -> SampleOptions {
    SampleOptions {
        fixtures: 2,
        points: 2,
        ..SampleOptions::default()
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    assert_eq!(
        render(&Sample::new(&small()).input()),
        render(&Sample::new(&small()).input())
    );
}

#[test]
fn no_text_of_the_input_stands_unescaped() {
    let page = render(
        &Sample::new(&SampleOptions {
            injection: INJECTION,
            ..small()
        })
        .input(),
    );
    for planted in [
        "<script>window.planted",
        "<img src=x",
        "<a href=javascript",
        "\u{2028}",
    ] {
        assert!(!page.contains(planted), "{planted}");
    }
    let plain = render(&Sample::new(&small()).input());
    let elements = |page: &str| page.matches("</script").count();
    assert_eq!(
        elements(&page),
        elements(&plain),
        "as many elements end as were begun"
    );
}

#[test]
fn the_page_asks_nothing_of_the_network() {
    let page = render(&Sample::new(&small()).input());
    let without_names = page.replace("http://www.w3.org/2000/svg", "");
    for address in ["http://", "https://", "url(", "@import", "src="] {
        assert!(!without_names.contains(address), "{address}");
    }
}

#[test]
fn the_head_is_as_it_was() {
    let page = render(&Sample::new(&small()).input());
    let (head, rest) = page.split_once("<style").expect("a style");
    let nonce = rest.split('"').nth(1).expect("a nonce");
    insta::assert_snapshot!(head.replace(nonce, "NONCE"));
}

#[test]
fn pruned_contexts_and_banks_leave_the_rest_standing() {
    let mut sample = Sample::new(&small());
    sample.contexts.clear();
    let mut input = sample.input();
    input.banks.clear();
    let page = render(&input);
    assert!(!page.contains("id=\"contexts-0\""));
    assert!(page.contains("id=\"cells-0\""));
}

#[test]
fn a_result_set_without_cells_has_a_page() {
    let sample = Sample::new(&small());
    let mut input = sample.input();
    input.rows = &[];
    assert!(render(&input).contains("\"n\":0"));
}

#[test]
fn a_page_is_made_from_a_results_folder() {
    let sample = Sample::new(&small());
    let made = sample.input_of_folder();
    assert_eq!(
        made.methods.first().map(|method| &*method.strategy),
        Some("full")
    );
    assert_eq!(
        made.methods.last().map(|method| &*method.strategy),
        Some("none")
    );
    assert!(made.sections.iter().any(|section| section.id == "spending"));
    let ids: Vec<&str> = made.sections.iter().map(|section| section.id).collect();
    assert_eq!(ids.first(), Some(&"overview"), "{ids:?}");
    assert!(ids.contains(&"changes-in-detail") && ids.contains(&"notes"));
    assert!(!made.front.is_empty() && !made.facts.is_empty());
    let page = render(&made);
    assert!(!page.contains("2026-01-01"), "no time is shown");
}

#[test]
fn twenty_thousand_cells_fit_in_eight_megabytes() {
    assert!(LARGE.len() < 8_000_000, "{} bytes", LARGE.len());
}
