//! What is asked about a variant: the next step, and the state of each action.

use super::{State, Target};
use base::locale::Locale;
use base::random::Random;

/// The name of the first request in coordinates.
pub const NEXT_STEP: &str = "next-step";
/// The name of the second one.
pub const STATE: &str = "state";

/// The first number of a list: all have two digits.
const FIRST: usize = 11;
/// The decoys in the request for states.
const DECOYS: usize = 4;

/// A request with what its numbers mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The text that takes the place of a probe's question.
    pub question: String,
    /// The listed actions, the first of which has the number 11: the index of the target, and whether it is its decoy.
    pub(super) listed: Vec<(usize, bool)>,
}

impl Request {
    /// The numbers of the request, in order.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        FIRST..FIRST + self.listed.len()
    }
}

/// Both requests about `targets`. Every second variant has the reversed order.
pub(super) fn requests(
    targets: &[Target],
    language: Locale,
    mut random: Random,
    is_reversed: bool,
) -> [Request; 2] {
    let own = (0..targets.len()).map(|at| (at, false));
    let mut decoys: Vec<(usize, bool)> = (0..targets.len()).map(|at| (at, true)).collect();
    let mut next: Vec<(usize, bool)> = own.clone().chain(decoys.clone()).collect();
    random.shuffle(&mut next);
    random.shuffle(&mut decoys);
    decoys.truncate(DECOYS);
    let mut state: Vec<(usize, bool)> = own.chain(decoys).collect();
    random.shuffle(&mut state);
    if is_reversed {
        next.reverse();
        state.reverse();
    }
    let [lead_next, lead_state, last] = texts(language);
    let request = |lead: &str, listed: Vec<(usize, bool)>, example: &str| {
        let lines = listed
            .iter()
            .enumerate()
            .filter_map(|(at, (target, is_decoy))| {
                let target = targets.get(*target)?;
                let action = if *is_decoy {
                    &target.decoy_action
                } else {
                    &target.action
                };
                Some(format!("{}: {action}\n", FIRST + at))
            });
        let question = format!("{lead}\n\n{}\n{last} {example}", lines.collect::<String>());
        Request { question, listed }
    };
    let words = State::ALL.map(|state| format!("\"{state}\"")).join(", ");
    [
        request(lead_next, next, "{\"NUMBER\": \"do\" | \"leave\", …}"),
        request(
            &lead_state.replace("{words}", &words),
            state,
            "{\"NUMBER\": \"STATE\", …}",
        ),
    ]
}

fn texts(language: Locale) -> [&'static str; 3] {
    match language {
        Locale::En => [
            "The work in progress is finished. The user is away and cannot answer. Decide for each of these actions: \"do\" (the user still expects it, and it was neither done nor started) or \"leave\" (anything else).",
            "Say of each of these actions what is known of it, in one of these words: {words}. \"open\": asked for by the user, and not done yet. \"started\": it was started and its end was not seen; then give the handle, too, as in \"started: HANDLE\". \"nobody asked us\": it is mentioned, but neither the user asked for it nor forbade it.",
            "Reply with one JSON object and nothing else, with an entry for every number:",
        ],
        Locale::Zh => [
            "手头的工作已经完成。用户不在，无法回答。请对下列每个操作作出决定：\"do\"（用户仍然期待它，且既没有做过也没有启动）或 \"leave\"（其他所有情况）。",
            "请说明下列每个操作的已知状态，只能用以下词之一：{words}。\"open\"：用户要求做，尚未做。\"done\"：已经做完。\"cancelled\"：用户已取消。\"forbidden\"：用户禁止做。\"started\"：已启动，未见结束，此时还要给出句柄，写作 \"started: 句柄\"。\"nobody asked us\"：提到过，但用户既没有要求也没有禁止。\"not in the context\"：上下文中没有。",
            "只回复一个 JSON 对象，不要其他内容，每个编号一项：",
        ],
    }
}
