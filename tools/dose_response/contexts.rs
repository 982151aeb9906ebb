//! Contexts that are made from a bank, with an entry for each fact, and harms to these contexts.

use compeval::probe::{Bank, Probe};
use lexical::facts::{Fact, FactFinder};
use sessions::transcript::fold;

/// A harm that is done to a share of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Harm {
    Dropped,
    Corrupted,
    OtherSubject,
    Negated,
    Contradicted,
    TwoValues,
    StaleAsCurrent,
    OldBesideNew,
    Invented,
    Order,
    Bloat,
    ConstraintLost,
    /// No harm: the same facts in other typography.
    Reworded,
}

impl Harm {
    pub(crate) const ALL: [Harm; 13] = [
        Harm::Dropped,
        Harm::Corrupted,
        Harm::OtherSubject,
        Harm::Negated,
        Harm::Contradicted,
        Harm::TwoValues,
        Harm::StaleAsCurrent,
        Harm::OldBesideNew,
        Harm::Invented,
        Harm::Order,
        Harm::Bloat,
        Harm::ConstraintLost,
        Harm::Reworded,
    ];
}

/// What an entry states about a fact. It is known from how the entry was made, not from its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The entry states the fact.
    Right,
    /// The entry states another value, or denies the fact.
    Wrong,
    /// The entry states nothing about the fact.
    Other,
}

/// An entry of a context.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The probe and the fact that the entry is about.
    pub(crate) subject: (usize, usize),
    pub(crate) claim: Claim,
    pub(crate) text: String,
}

/// The facts of a bank that have entries.
pub(crate) struct Statements<'b> {
    pub(crate) bank: &'b Bank,
    facts: Vec<(usize, usize)>,
}

impl<'b> Statements<'b> {
    /// The facts of the probes whose facts can be searched. A fact that is in its own question is left out.
    pub(crate) fn new(bank: &'b Bank) -> Statements<'b> {
        let mut facts = Vec::new();
        for (at, probe) in bank
            .probes
            .iter()
            .enumerate()
            .filter(|(_, probe)| probe.literal && probe.answerable)
        {
            let question = fold(&probe.question);
            let is_news = |fact: &Fact| !FactFinder::new(fact).occurs_in(&question);
            let news = probe
                .expected_facts
                .iter()
                .enumerate()
                .filter(|(_, fact)| is_news(fact));
            facts.extend(news.map(|(fact, _)| (at, fact)));
        }
        Statements { bank, facts }
    }

    fn probe(&self, subject: (usize, usize)) -> Option<&'b Probe> {
        self.bank.probes.get(subject.0)
    }

    fn fact(&self, subject: (usize, usize)) -> &'b str {
        self.probe(subject)
            .and_then(|probe| probe.expected_facts.get(subject.1))
            .map_or("", Fact::name)
    }

    /// The superseded value of a fact; only the first fact of a probe has one.
    fn superseded(&self, subject: (usize, usize)) -> Option<&'b str> {
        self.probe(subject)
            .filter(|_| subject.1 == 0)?
            .superseded_facts
            .first()
            .map(Fact::name)
    }

    fn is_constraint(&self, subject: (usize, usize)) -> bool {
        self.probe(subject)
            .is_some_and(|probe| probe.tags.iter().any(|tag| tag == "constraint"))
    }

    /// The facts that have an entry.
    pub(crate) fn subjects(&self) -> &[(usize, usize)] {
        &self.facts
    }

    /// Whether the harm can be done to the fact.
    fn can_be(&self, subject: (usize, usize), harm: Harm) -> bool {
        match harm {
            Harm::StaleAsCurrent | Harm::OldBesideNew => self.superseded(subject).is_some(),
            Harm::ConstraintLost => self.is_constraint(subject),
            _ => true,
        }
    }

    /// The context with the harm done to the share `dose`, from 0 to 1, of the entries to which it can be done.
    pub(crate) fn context(&self, harm: Harm, dose: f64) -> Vec<Entry> {
        let able: Vec<(usize, usize)> = self
            .facts
            .iter()
            .copied()
            .filter(|at| self.can_be(*at, harm))
            .collect();
        let hit = (dose * able.len() as f64).round() as usize;
        // The harmed entries are spread evenly over the bank.
        let is_hit = |at: usize| (at + 1) * hit / able.len().max(1) > at * hit / able.len().max(1);
        let harmed: Vec<(usize, usize)> = able
            .iter()
            .enumerate()
            .filter(|(at, _)| is_hit(*at))
            .map(|(_, subject)| *subject)
            .collect();
        let mut entries = Vec::new();
        for subject in &self.facts {
            match harmed.iter().position(|other| other == subject) {
                Some(at) => self.harm(*subject, harm, (at, &harmed), &mut entries),
                None => entries.push(self.right(*subject)),
            }
        }
        if harm == Harm::Order {
            let moved = (dose * entries.len() as f64).round() as usize;
            entries.get_mut(..moved).unwrap_or_default().reverse();
        }
        entries
    }

    fn right(&self, subject: (usize, usize)) -> Entry {
        Entry {
            subject,
            claim: Claim::Right,
            text: self.say(subject, self.fact(subject)),
        }
    }

    /// An entry on the subject with a value, in one of three forms.
    fn say(&self, subject: (usize, usize), value: &str) -> String {
        let question = self.probe(subject).map_or("", |probe| {
            probe.question.trim_end_matches(['?', '？', '.'])
        });
        let question = question.replace('\n', " ");
        match (subject.0 + subject.1) % 3 {
            0 => format!("- {question}: {value}"),
            1 => format!("- \"{question}\" is answered by {value}"),
            _ => format!("| {question} | {value} |"),
        }
    }

    fn harm(
        &self,
        subject: (usize, usize),
        harm: Harm,
        (at, harmed): (usize, &[(usize, usize)]),
        entries: &mut Vec<Entry>,
    ) {
        let wrong = |value: &str| Entry {
            subject,
            claim: Claim::Wrong,
            text: self.say(subject, value),
        };
        let other = |text: String| Entry {
            subject,
            claim: Claim::Other,
            text,
        };
        let fact = self.fact(subject);
        match harm {
            Harm::Dropped | Harm::ConstraintLost => {}
            Harm::Corrupted => entries.push(wrong(&corrupted(fact))),
            Harm::OtherSubject => {
                // The fact of the harmed entry that is half a round away.
                let from = harmed
                    .get((at + harmed.len().div_ceil(2)) % harmed.len().max(1))
                    .copied();
                entries.push(wrong(self.fact(from.unwrap_or(subject))));
            }
            Harm::Negated => {
                let text = self.say(subject, fact);
                let text = match at % 2 {
                    0 => text.replace(fact, &format!("not {fact}")),
                    _ => text.replace(fact, &format!("{fact} was rejected")),
                };
                entries.push(Entry {
                    text,
                    ..wrong(fact)
                });
            }
            Harm::Contradicted => entries.extend([self.right(subject), wrong(&corrupted(fact))]),
            Harm::TwoValues => {
                entries.push(wrong(&format!("{fact} or {}", corrupted(fact))));
            }
            Harm::StaleAsCurrent => entries.push(wrong(self.superseded(subject).unwrap_or(fact))),
            Harm::OldBesideNew => {
                entries.extend([
                    self.right(subject),
                    wrong(self.superseded(subject).unwrap_or(fact)),
                ]);
            }
            Harm::Invented => {
                let made = format!(
                    "- The helper `merge_stale_shards_{at}` in src/imaginary/part_{at}.rs takes --span-{at}x"
                );
                entries.extend([self.right(subject), other(made)]);
            }
            Harm::Bloat => {
                let filler = "- The work went on step by step, and the results were looked at with care each time";
                entries.push(self.right(subject));
                entries.extend((0..4).map(|_| other(filler.to_owned())));
            }
            Harm::Order => entries.push(self.right(subject)),
            Harm::Reworded => {
                let text = self
                    .say(subject, fact)
                    .replace('-', "\u{2010}")
                    .replace('"', "”");
                entries.push(Entry {
                    text,
                    ..self.right(subject)
                });
            }
        }
    }
}

/// The text of a context.
pub(crate) fn written(entries: &[Entry]) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for entry in entries {
        // Without a header, the first row would be taken for the header.
        if entry.text.starts_with('|') && !lines.last().is_some_and(|line| line.starts_with('|')) {
            lines.extend(["", "| | |", "|---|---|"]);
        }
        lines.push(&entry.text);
    }
    lines.join("\n")
}

/// The share of facts that a reader gets right who believes every entry: some entry states the fact, and none
/// contradicts it.
pub(crate) fn strict_reader(statements: &Statements<'_>, entries: &[Entry]) -> f64 {
    let is_right = |subject: &&(usize, usize)| {
        let said = |claim: Claim| {
            entries
                .iter()
                .any(|entry| entry.subject == **subject && entry.claim == claim)
        };
        said(Claim::Right) && !said(Claim::Wrong)
    };
    let subjects = statements.subjects();
    subjects.iter().filter(is_right).count() as f64 / subjects.len().max(1) as f64
}

/// Another value of the same kind.
fn corrupted(fact: &str) -> String {
    let digits = fact.chars().any(|c| c.is_ascii_digit());
    if digits {
        return fact
            .chars()
            .map(|c| {
                c.to_digit(10)
                    .and_then(|digit| char::from_digit((digit + 3) % 10, 10))
                    .unwrap_or(c)
            })
            .collect();
    }
    // The longest word is reversed.
    let words = fact.split(|c: char| !c.is_alphanumeric());
    let longest = words.max_by_key(|word| word.chars().count()).unwrap_or("");
    fact.replacen(longest, &longest.chars().rev().collect::<String>(), 1)
}
