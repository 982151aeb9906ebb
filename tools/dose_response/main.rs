//! Shows which figure reacts to which harm: contexts from the shipped banks are harmed by 25, 50 and 100%, and the
//! slope of each figure is printed.
//!
//! `cargo run -p compeval-tools --bin dose_response`
//!
//! Nothing here is random. A context has an entry for each fact of a bank, and a harm changes a share of the entries.
//! The strict reader is right about a fact if some entry states it and none contradicts it; this is known from how the
//! entries were made, not from their words. `cargo test -p compeval-tools --bin dose_response` fails if a slope that
//! `docs/notes/figures.md` claims turns or vanishes.

#![allow(clippy::print_stdout, reason = "an example prints")]

mod contexts;
mod ranks;
mod rewording;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use compeval::measure::{ContextProbe, share};
use compeval::probe::Bank;
use contexts::{Harm, Statements, strict_reader, written};
use lexical::facts::History;
use lexical::{ContextEntries, KnownReferences};
use ranks::{slope, spearman};
use sessions::transcript::{Message, count_tokens, fold_document};

const DOSES: [f64; 4] = [0.0, 0.25, 0.5, 1.0];

/// The figures of a context, in the order of [`Figures::of`].
const FIGURES: [&str; 9] = [
    "kept",
    "placed",
    "denied",
    "stale",
    "contradicted",
    "sound",
    "invented",
    "constraints",
    "tokens",
];

/// A figure is flat for a harm if its slope is below this. Slopes are shares, except those of tokens and invented
/// references.
const FLAT: f64 = 0.05;

/// The claims of docs/notes/figures.md: the harm, the figure, and the sign of its slope.
#[cfg(test)]
const CLAIMS: [(Harm, &str, f64); 16] = [
    (Harm::Dropped, "kept", -1.0),
    (Harm::Dropped, "sound", -1.0),
    (Harm::Corrupted, "kept", -1.0),
    (Harm::Corrupted, "sound", -1.0),
    (Harm::OtherSubject, "placed", -1.0),
    (Harm::Negated, "denied", 1.0),
    (Harm::Negated, "sound", -1.0),
    (Harm::Contradicted, "contradicted", 1.0),
    (Harm::Contradicted, "sound", -1.0),
    (Harm::TwoValues, "contradicted", 1.0),
    (Harm::TwoValues, "sound", -1.0),
    (Harm::StaleAsCurrent, "stale", 1.0),
    (Harm::OldBesideNew, "stale", 1.0),
    (Harm::Invented, "invented", 1.0),
    (Harm::Bloat, "tokens", 1.0),
    (Harm::ConstraintLost, "constraints", -1.0),
];

/// A fixture with its bank.
struct Ground {
    bank: Bank,
    messages: Vec<Message>,
    history: History,
}

impl Ground {
    fn read(name: &str) -> Result<Ground, String> {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let json = |path: PathBuf| {
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let bank = json(root.join("probes").join(format!("{name}.probes.json")))?;
        let fixture: serde_json::Value =
            serde_json::from_str(&json(root.join("fixtures").join(format!("{name}.json")))?)
                .map_err(|e| e.to_string())?;
        let messages: Vec<Message> =
            serde_json::from_value(fixture["messages"].clone()).map_err(|e| e.to_string())?;
        let history = History::new(&messages);
        Ok(Ground {
            bank: serde_json::from_str(&bank).map_err(|e| e.to_string())?,
            messages,
            history,
        })
    }

    /// All shipped fixtures.
    fn all() -> Result<Vec<Ground>, String> {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("probes");
        let files = fs::read_dir(folder).map_err(|error| error.to_string())?;
        let mut names: Vec<String> = files
            .filter_map(|file| {
                file.ok()?
                    .file_name()
                    .to_str()?
                    .strip_suffix(".probes.json")
                    .map(str::to_owned)
            })
            .collect();
        names.sort();
        names.iter().map(|name| Ground::read(name)).collect()
    }
}

/// The probes and the references of a fixture, prepared once for all contexts.
struct Measures<'g> {
    statements: Statements<'g>,
    /// The probes, each with whether its facts are rules of the user.
    probes: Vec<(bool, ContextProbe)>,
    known: KnownReferences,
    history: &'g History,
}

impl<'g> Measures<'g> {
    fn new(ground: &'g Ground) -> Measures<'g> {
        let statements = Statements::new(&ground.bank);
        let has_entries = |at: usize| statements.subjects().iter().any(|subject| subject.0 == at);
        let probes = ground
            .bank
            .probes
            .iter()
            .enumerate()
            .filter(|(at, _)| has_entries(*at));
        let probes = probes.map(|(_, probe)| {
            (
                probe.tags.iter().any(|tag| tag == "constraint"),
                ContextProbe::new(probe, ground.history.paths()),
            )
        });
        Measures {
            probes: probes.collect(),
            known: KnownReferences::new(&ground.messages, ground.messages.len()),
            history: &ground.history,
            statements,
        }
    }

    /// The figures of a context, and the share of facts that the strict reader gets right.
    fn figures(&self, harm: Harm, dose: f64) -> ([f64; FIGURES.len()], f64) {
        let entries = self.statements.context(harm, dose);
        let text = written(&entries);
        let (cut, folded) = (ContextEntries::from_text(&text), fold_document(&text));
        let read: Vec<_> = self
            .probes
            .iter()
            .map(|(is_rule, probe)| (*is_rule, probe.read(&cut, &cut, &folded)))
            .collect();
        let facts = || read.iter().flat_map(|(_, facts)| &facts.facts);
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let rules = read
            .iter()
            .filter(|(is_rule, _)| *is_rule)
            .flat_map(|(_, facts)| &facts.facts);
        let tokens = count_tokens(&text);
        let invented = self.known.invented_in(self.history, &cut, &BTreeSet::new());
        let figures = [
            share(facts().map(|fact| fact.present)).unwrap_or(0.0),
            share(facts().map(|fact| fact.present && fact.placed != Some(false))).unwrap_or(0.0),
            share(facts().map(|fact| fact.denied)).unwrap_or(0.0),
            mean(
                read.iter()
                    .map(|(_, facts)| facts.stale.len() as f64)
                    .collect(),
            ),
            share(facts().map(|fact| fact.contradicted)).unwrap_or(0.0),
            mean(read.iter().filter_map(|(_, facts)| facts.sound()).collect()),
            invented.per_1000_tokens(tokens).unwrap_or(0.0),
            share(rules.map(|fact| fact.present)).unwrap_or(1.0),
            tokens.0 as f64,
        ];
        (figures, strict_reader(&self.statements, &entries))
    }
}

/// The figures of a harm by dose, as means over fixtures.
struct Response {
    harm: Harm,
    doses: Vec<([f64; FIGURES.len()], f64)>,
}

impl Response {
    fn new(harm: Harm, grounds: &[Measures<'_>]) -> Response {
        let at = |dose: f64| {
            let all: Vec<_> = grounds
                .iter()
                .map(|ground| ground.figures(harm, dose))
                .collect();
            let n = all.len() as f64;
            let figures = std::array::from_fn(|at| {
                all.iter().map(|(figures, _)| figures[at]).sum::<f64>() / n
            });
            (
                figures,
                all.iter().map(|(_, reader)| reader).sum::<f64>() / n,
            )
        };
        Response {
            harm,
            doses: DOSES.into_iter().map(at).collect(),
        }
    }

    fn points(&self, figure: usize) -> Vec<(f64, f64)> {
        DOSES
            .into_iter()
            .zip(&self.doses)
            .map(|(dose, (figures, _))| (dose, figures[figure]))
            .collect()
    }

    /// The slope over the dose; for tokens it is relative to the context without harm.
    fn slope(&self, figure: usize) -> f64 {
        let unit = if FIGURES[figure] == "tokens" {
            self.doses[0].0[figure].max(1.0)
        } else {
            1.0
        };
        slope(&self.points(figure)) / unit
    }

    /// Whether the figure only rises or only falls.
    fn is_monotone(&self, figure: usize) -> bool {
        let points = self.points(figure);
        let steps: Vec<f64> = points
            .windows(2)
            .map(|pair| pair[1].1 - pair[0].1)
            .collect();
        steps.iter().all(|step| *step >= -1e-9) || steps.iter().all(|step| *step <= 1e-9)
    }
}

/// Spearman's correlation of a figure with the strict reader, over all pairs of harm and dose.
fn agreement(responses: &[Response], figure: usize) -> Option<f64> {
    let mut pairs: Vec<(f64, f64)> = Vec::new();
    for (at, response) in responses.iter().enumerate() {
        // The dose 0 is the same for all harms, so it counts once.
        let doses = response.doses.iter().skip(usize::from(at > 0));
        pairs.extend(doses.map(|(figures, reader)| (figures[figure], *reader)));
    }
    spearman(&pairs)
}

fn responses(grounds: &[Ground]) -> Vec<Response> {
    let measures: Vec<Measures<'_>> = grounds.iter().map(Measures::new).collect();
    Harm::ALL
        .into_iter()
        .map(|harm| Response::new(harm, &measures))
        .collect()
}

fn main() -> ExitCode {
    let grounds = match Ground::all() {
        Ok(grounds) => grounds,
        Err(error) => {
            println!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let responses = responses(&grounds);
    println!(
        "Slope of each figure from no harm to all entries harmed; `~` turns on the way, `.` is flat.\n"
    );
    println!("| harm | {} | strict reader |", FIGURES.join(" | "));
    println!("|---|{}", "---:|".repeat(FIGURES.len() + 1));
    for response in &responses {
        let cell = |figure: usize| {
            let (slope, turns) = (response.slope(figure), !response.is_monotone(figure));
            if slope.abs() < FLAT {
                ".".to_owned()
            } else {
                format!("{slope:+.2}{}", if turns { "~" } else { "" })
            }
        };
        let cells: Vec<String> = (0..FIGURES.len()).map(cell).collect();
        let reader: Vec<(f64, f64)> = DOSES
            .into_iter()
            .zip(response.doses.iter().map(|dose| dose.1))
            .collect();
        println!(
            "| {:?} | {} | {:+.2} |",
            response.harm,
            cells.join(" | "),
            slope(&reader)
        );
    }
    let agreements: Vec<String> = (0..FIGURES.len())
        .map(|figure| {
            agreement(&responses, figure).map_or("–".to_owned(), |rho| format!("{rho:.2}"))
        })
        .collect();
    println!(
        "| Spearman with the reader | {} | |",
        agreements.join(" | ")
    );
    let [own, other] = rewording::grades(&grounds);
    println!(
        "\nThe stand-in, from whole transcripts: {own:.2} of 5; in other typography: {other:.2}"
    );
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claimed_slope_is_there_and_sound_facts_agree_with_the_reader() {
        let responses = responses(&Ground::all().expect("the shipped banks"));
        for (harm, figure, sign) in CLAIMS {
            let response = responses
                .iter()
                .find(|response| response.harm == harm)
                .expect("every harm");
            let at = FIGURES
                .iter()
                .position(|name| *name == figure)
                .expect("a figure");
            let slope = response.slope(at);
            assert!(
                slope * sign >= FLAT && response.is_monotone(at),
                "{harm:?}, {figure}: {slope:+.3}"
            );
        }
        let sound = FIGURES
            .iter()
            .position(|name| *name == "sound")
            .and_then(|at| agreement(&responses, at));
        assert!(sound >= Some(0.8), "{sound:?}");
        let reworded = responses
            .iter()
            .find(|response| response.harm == Harm::Reworded)
            .expect("every harm");
        let kept: Vec<f64> = reworded
            .doses
            .iter()
            .map(|(figures, _)| figures[0])
            .collect();
        assert!(
            kept.iter().all(|share| *share >= 0.98 * kept[0]),
            "{kept:?}"
        );
    }

    #[test]
    fn other_typography_costs_the_stand_in_little() {
        let [own, other] = rewording::grades(&Ground::all().expect("the shipped banks"));
        assert!(own > 3.0 && own - other <= 0.15, "{own:.3} and {other:.3}");
    }
}
