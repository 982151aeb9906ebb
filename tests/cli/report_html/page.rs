//! The bytes of the page, without a browser.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

use compeval::action::Digest;
use compeval::report::html::{ChunkCache, PageInput, ScaleAnchor};

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
        made.methods.first().map(|method| method.anchor),
        Some(ScaleAnchor::Ceiling)
    );
    assert_eq!(
        made.methods.last().map(|method| method.anchor),
        Some(ScaleAnchor::Floor)
    );
    assert!(made.sections.iter().any(|section| section.id == "spending"));
    assert!(!made.notes.is_empty() && !made.facts.is_empty());
    let page = render(&made);
    assert!(!page.contains("2026-01-01"), "no time is shown");
}

/// Chunks by their keys, and how many were made.
#[derive(Default)]
struct CountedChunks {
    chunks: Mutex<BTreeMap<Digest, String>>,
    made: Mutex<usize>,
}

impl CountedChunks {
    /// How many chunks had to be made for a page.
    fn made_for(&self, input: PageInput<'_>) -> usize {
        *self.made.lock().expect("no thread panicked") = 0;
        render(&PageInput {
            chunks: self,
            ..input
        });
        *self.made.lock().expect("no thread panicked")
    }
}

impl ChunkCache for CountedChunks {
    fn get_chunk(&self, name: &Digest) -> Option<String> {
        self.chunks
            .lock()
            .expect("no thread panicked")
            .get(name)
            .cloned()
    }

    fn put_chunk(&self, name: Digest, chunk: &str) {
        self.chunks
            .lock()
            .expect("no thread panicked")
            .insert(name, chunk.to_owned());
        *self.made.lock().expect("no thread panicked") += 1;
    }
}

#[test]
fn a_chunk_is_reused_wherever_its_cells_stand() {
    let sample = Sample::new(&SampleOptions::default());
    let chunks = CountedChunks::default();
    let all = chunks.made_for(sample.input());
    assert!(all > 150, "{all}");
    assert_eq!(chunks.made_for(sample.input()), 0);
    let fixture = sample
        .rows
        .iter()
        .take_while(|listed| listed.row.fixture == sample.rows[0].row.fixture)
        .count();
    // Without the first contexts, without the first fixtures. Where a chunk ends depends on digests, so after one cut it
    // takes longer than after another until chunks end where they did: the bound is for a cut on average.
    let cuts = [8, 16, 24, 32, 40, fixture, 2 * fixture, 3 * fixture];
    let made = cuts.map(|left_out| {
        let input = sample.input();
        let read_rows = |places: std::ops::Range<usize>| {
            (input.read_rows)(places.start + left_out..places.end + left_out)
        };
        let input = PageInput {
            rows: &input.rows[left_out..],
            read_rows: &read_rows,
            ..input.clone()
        };
        chunks.made_for(input)
    });
    assert!(made.iter().all(|made| *made >= 1), "{made:?}");
    assert!(made.iter().sum::<usize>() <= 3 * cuts.len(), "{made:?}");
}

#[test]
fn twenty_thousand_cells_fit_in_eight_megabytes() {
    assert!(LARGE.len() < 8_000_000, "{} bytes", LARGE.len());
}
