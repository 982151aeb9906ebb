//! Eight ways to shorten a session, and harms to the resulting contexts.

use sessions::transcript::Role;

use crate::repositories::{Repository, Slot};

/// A way to shorten a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compressor {
    Full,
    NewestHalf,
    NewestThird,
    OldestHalf,
    UserOnly,
    Notes,
    EveryOtherNote,
    ReferenceList,
}

/// A harm to a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    None,
    Dropped,
    Corrupted,
    OtherSubject,
    Negated,
    Contradicted,
    StaleAsCurrent,
    OldBesideNew,
    Invented,
    Order,
    Bloat,
    ConstraintLost,
}

impl Compressor {
    pub(crate) const ALL: [Compressor; 8] = [
        Compressor::Full,
        Compressor::NewestHalf,
        Compressor::NewestThird,
        Compressor::OldestHalf,
        Compressor::UserOnly,
        Compressor::Notes,
        Compressor::EveryOtherNote,
        Compressor::ReferenceList,
    ];

    /// The context that the compressor makes from the session, with a harm done to it.
    pub(crate) fn context(self, repository: &Repository, harm: Harm) -> String {
        harm.apply(repository, self.lines(repository)).join("\n")
    }

    fn lines(self, repository: &Repository) -> Vec<String> {
        let session = repository.session();
        let all: Vec<String> = session
            .iter()
            .map(|message| message.content.clone())
            .collect();
        let part = |from: usize, to: usize| all.get(from..to).unwrap_or_default().to_vec();
        let notes = || {
            Slot::ALL
                .iter()
                .map(|slot| repository.sentence(*slot, repository.fact(*slot)))
        };
        match self {
            Compressor::Full => all,
            Compressor::NewestHalf => part(all.len() / 2, all.len()),
            Compressor::NewestThird => part(all.len() - all.len() / 3, all.len()),
            Compressor::OldestHalf => part(0, all.len() / 2),
            Compressor::UserOnly => session
                .iter()
                .filter(|message| message.role == Role::User)
                .map(|message| message.content.clone())
                .collect(),
            Compressor::Notes => notes().collect(),
            Compressor::EveryOtherNote => notes().step_by(2).collect(),
            Compressor::ReferenceList => Slot::ALL
                .iter()
                .map(|slot| format!("- {}", repository.fact(*slot)))
                .collect(),
        }
    }
}

impl Harm {
    pub(crate) const ALL: [Harm; 12] = [
        Harm::None,
        Harm::Dropped,
        Harm::Corrupted,
        Harm::OtherSubject,
        Harm::Negated,
        Harm::Contradicted,
        Harm::StaleAsCurrent,
        Harm::OldBesideNew,
        Harm::Invented,
        Harm::Order,
        Harm::Bloat,
        Harm::ConstraintLost,
    ];

    /// Does the harm to the lines that state one slot, which differs between repositories.
    fn apply(self, repository: &Repository, mut lines: Vec<String>) -> Vec<String> {
        let at = |step: usize| Slot::ALL[(repository.number() + step) % Slot::ALL.len()];
        let (slot, next) = (at(0), at(1));
        let (fact, other, value) = (
            repository.fact(slot),
            repository.fact(next),
            repository.value,
        );
        let replaced = |lines: &mut Vec<String>, from: &str, to: &str| {
            lines
                .iter_mut()
                .for_each(|line| *line = line.replace(from, to));
        };
        match self {
            Harm::None => {}
            Harm::Dropped => lines.retain(|line| {
                ![0, 1, 2]
                    .iter()
                    .any(|n| line.contains(repository.fact(at(*n))))
            }),
            Harm::Corrupted => replaced(&mut lines, fact, &wrong(fact)),
            Harm::OtherSubject => {
                replaced(&mut lines, fact, "\u{1}");
                replaced(&mut lines, other, fact);
                replaced(&mut lines, "\u{1}", other);
            }
            Harm::Negated => replaced(&mut lines, &format!(" {fact}"), &format!(" not {fact}")),
            Harm::Contradicted => {
                let stated: Vec<String> = lines
                    .iter()
                    .filter(|line| line.contains(fact))
                    .cloned()
                    .collect();
                lines.extend(stated.iter().map(|line| line.replace(fact, &wrong(fact))));
            }
            Harm::StaleAsCurrent => {
                lines.retain(|line| !line.contains(value));
                lines.push(repository.sentence(Slot::Value, repository.old));
            }
            Harm::OldBesideNew => lines.push(repository.sentence(Slot::Value, repository.old)),
            Harm::Invented => {
                lines.extend((0..3).map(|n| {
                    format!("The helper `merge_shards_{n}` is in src/imaginary/part_{n}.rs.")
                }));
            }
            Harm::Order => lines.reverse(),
            Harm::Bloat => {
                let filler = "The work went on step by step, and the results were looked at with care each time.";
                lines.extend((0..12).map(|_| filler.to_owned()));
            }
            Harm::ConstraintLost => lines.retain(|line| !line.contains(repository.forbidden)),
        }
        lines
    }
}

/// Another value of the same kind.
fn wrong(fact: &str) -> String {
    if fact.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("{fact}7")
    } else {
        format!("{fact}-v0")
    }
}
