//! Measures how much other typography lowers the grades of the stand-in: it answers from whole transcripts, and from
//! the same transcripts with other hyphens, quotation marks and spaces.

use compeval::probe::Probe;
use lexical::{Aspect, GradedAnswer, LiteralGrade, answer};
use sessions::transcript::Message;

use super::Ground;
use base::locale::Locale;

/// The mean grades of accuracy and completeness, from 0 to 5: from the original transcripts, and from the reworded
/// ones.
pub(crate) fn grades(grounds: &[Ground]) -> [f64; 2] {
    let (mut sums, mut count) = ([0.0; 2], 0.0);
    for ground in grounds {
        let text = transcript(&ground.messages);
        let texts = [reworded(&text), text];
        for probe in ground
            .bank
            .probes
            .iter()
            .filter(|probe| probe.literal && probe.answerable)
        {
            let [other, own] = texts.each_ref().map(|text| grade(probe, text));
            sums = [sums[0] + own, sums[1] + other];
            count += 1.0;
        }
    }
    sums.map(|sum| sum / f64::max(count, 1.0))
}

fn transcript(messages: &[Message]) -> String {
    let texts: Vec<&str> = messages
        .iter()
        .map(|message| message.content.as_str())
        .collect();
    texts.join("\n\n")
}

/// The same text with the hyphens, quotation marks and spaces of a typesetter.
fn reworded(text: &str) -> String {
    text.replace('-', "\u{2010}")
        .replace('"', "”")
        .replace('\'', "’")
        .replace(": ", ":\u{a0}")
}

fn grade(probe: &Probe, context: &str) -> f64 {
    let text = answer(context, &probe.question);
    let graded = GradedAnswer {
        question: &probe.question,
        answer: &text,
        context: Some(context),
        expected_facts: &probe.expected_facts,
        superseded_facts: &probe.superseded_facts,
        reference_answer: probe.reference_answer.as_deref(),
    };
    let grade = LiteralGrade::new(&graded, Locale::En);
    f64::from(grade.score(Aspect::Accuracy) + grade.score(Aspect::Completeness)) / 2.0
}
