//! The control law that finds undeclared rate limits, run against servers in virtual time: a minute takes some
//! milliseconds.

#![allow(dead_code, reason = "each test and bench uses a part")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::limited::{Arrivals, Dice, Limiters, ProviderLimit, Refusal, Unit};
use rate_estimator::RateEstimator;

#[path = "../../crates/models/src/limits/rate_estimator/mod.rs"]
mod rate_estimator;

/// A provider and the processes that use it.
#[derive(Clone, Debug)]
pub struct World {
    pub limits: Vec<ProviderLimit>,
    /// The most requests that the provider works on at once.
    pub at_once: usize,
    pub noise: f64,
    /// Whether headers announce the limits.
    pub announces: bool,
    /// How many times the limit they announce, and the seconds for which what they say is true before they say it.
    pub announced_times: f64,
    pub announced_late: f64,
    pub processes: usize,
    /// The models to which each process sends in turn.
    pub models: usize,
    /// The seconds from a request to its reply, and from a request to its refusal.
    pub latency: f64,
    pub refusal: f64,
    /// How many seconds later one refusal of four comes.
    pub jitter: f64,
    /// The seconds to open a connection, which carries one request at a time and stays open.
    pub connect: f64,
    /// The most requests in flight per process.
    pub in_flight: usize,
    /// How many requests of each process are accepted before it ends.
    pub calls: usize,
}

impl World {
    pub fn new(limits: Vec<ProviderLimit>) -> World {
        let (latency, refusal) = (0.2, 0.004);
        World {
            limits,
            at_once: usize::MAX,
            noise: 0.0,
            announces: false,
            announced_times: 1.0,
            announced_late: 0.0,
            processes: 1,
            models: 1,
            latency,
            refusal,
            jitter: 0.0,
            connect: 0.0,
            in_flight: 64,
            calls: usize::MAX,
        }
    }
}

/// What a process has learned of the limits of one group of models.
struct Group {
    requests: RateEstimator,
    input: RateEstimator,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Wake,
    /// A request to this model reaches the server.
    Arrive {
        group: usize,
        model: usize,
        id: u64,
        tokens: f64,
    },
    Reply {
        group: usize,
        id: u64,
        refused: Option<(Option<Unit>, Option<f64>)>,
        announced: [Option<[f64; 3]>; 2],
    },
}

/// A time in microseconds, so that it has a total order.
type Time = u64;

/// The seconds that so many calls take, and the refused share of their number; means over seeds.
pub fn takes(world: &World, calls: usize, seeds: u64) -> (f64, f64) {
    let each = calls / world.processes;
    let world = World {
        calls: each,
        ..world.clone()
    };
    let all = (0..seeds).map(|seed| run(&world, 1e5, seed));
    let (seconds, refused) = all.fold((0.0, 0.0), |sum, one| {
        let last = one.accepted.iter().copied().fold(0.0, f64::max);
        (sum.0 + last, sum.1 + one.refused.len() as f64)
    });
    let runs = seeds as f64;
    (seconds / runs, refused / (runs * calls as f64))
}

/// Runs `world` for `end` seconds.
pub fn run(world: &World, end: f64, seed: u64) -> Arrivals {
    let mut dice = Dice(seed);
    let mut server = Limiters::new(&world.limits, world.noise);
    let shares = world.limits.iter().all(|limit| !limit.is_per_model);
    let groups = if shares { 1 } else { world.models };
    let group = || Group {
        requests: RateEstimator::for_requests(false),
        input: RateEstimator::for_tokens(),
    };
    let mut processes: Vec<Vec<Group>> = (0..world.processes)
        .map(|_| (0..groups).map(|_| group()).collect())
        .collect();
    let (mut in_flight, mut turns) = (vec![0; world.processes], vec![0; world.processes]);
    let mut connections = vec![0; world.processes];
    let mut at_work = 0;
    let mut open = vec![world.calls; world.processes];
    let mut events: Vec<(usize, Event)> = Vec::new();
    let mut queue: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
    let mut arrivals = Arrivals::default();
    let mut said = VecDeque::new();
    let push =
        |queue: &mut BinaryHeap<Reverse<(Time, usize)>>, events: &mut Vec<_>, at: f64, event| {
            queue.push(Reverse(((at * 1e6).ceil() as Time, events.len())));
            events.push(event);
        };
    for process in 0..world.processes {
        push(
            &mut queue,
            &mut events,
            0.013 * process as f64,
            (process, Event::Wake),
        );
    }
    let size = |dice: &mut Dice| (500.0 + 3000.0 * dice.roll()).round();
    let mut next: Vec<f64> = (0..world.processes).map(|_| size(&mut dice)).collect();
    let mut wakes = vec![f64::INFINITY; world.processes];
    while let Some(Reverse((at, index))) = queue.pop() {
        let (now, (process, event)) = (at as f64 / 1e6, events[index]);
        if now > end {
            break;
        }
        match event {
            Event::Wake => wakes[process] = f64::INFINITY,
            Event::Arrive {
                group,
                model,
                id,
                tokens,
            } => {
                let name = format!("sim-{}", model + 1);
                let luck = dice.roll();
                let refused = if at_work >= world.at_once {
                    let (unit, wait) = (None, None);
                    Some(Refusal { unit, wait })
                } else {
                    server.take(&name, tokens, luck, now).err()
                };
                match refused {
                    None => {
                        at_work += 1;
                        arrivals.accepted.push(now);
                        arrivals.input.push(tokens);
                    }
                    Some(_) => arrivals.refused.push(now),
                }
                let mut announced = [None; 2];
                if world.announces {
                    let times = world.announced_times;
                    for (unit, [limit, left, reset]) in server.announced(&name, now) {
                        let figures = [limit * times, left * times, reset];
                        announced[usize::from(unit == Unit::InputTokens)] = Some(figures);
                    }
                    said.push_back((now, announced));
                    let until = now - world.announced_late;
                    while said.get(1).is_some_and(|(at, _)| *at <= until) {
                        said.pop_front();
                    }
                    announced = said[0].1;
                }
                let takes = if refused.is_none() {
                    world.latency * (1.0 + 0.1 * (dice.roll() - 0.5))
                } else if world.jitter > 0.0 && dice.roll() < 0.25 {
                    world.jitter
                } else {
                    0.0
                };
                let refused = refused.map(|refusal| (refusal.unit, refusal.wait));
                let reply = Event::Reply {
                    group,
                    id,
                    refused,
                    announced,
                };
                push(
                    &mut queue,
                    &mut events,
                    now + world.refusal / 2.0 + takes,
                    (process, reply),
                );
                continue;
            }
            Event::Reply {
                group,
                id,
                refused,
                announced,
            } => {
                in_flight[process] -= 1;
                open[process] += usize::from(refused.is_some());
                at_work -= usize::from(refused.is_none());
                let Group { requests, input } = &mut processes[process][group];
                for (estimator, announced) in
                    [&mut *requests, &mut *input].into_iter().zip(announced)
                {
                    if let Some([limit, remaining, reset]) = announced {
                        let rest = Some((remaining, reset));
                        estimator.announced(id, limit, rest, 1.0, now);
                    }
                }
                match refused {
                    None => {
                        requests.succeeded(id, now);
                        input.succeeded(id, now);
                    }
                    Some((Some(Unit::InputTokens), wait)) => {
                        input.refused(id, now, wait);
                        requests.ended();
                    }
                    Some((_, wait)) => {
                        requests.refused(id, now, wait);
                        input.withdrawn(id);
                    }
                }
            }
        }
        while in_flight[process] < world.in_flight && open[process] > 0 {
            let tokens = next[process];
            let waits: Vec<f64> = (0..world.models)
                .map(|nth| {
                    let Group { requests, input } = &mut processes[process]
                        [((turns[process] + nth) % world.models).min(groups - 1)];
                    requests.wait(1.0, now).max(input.wait(tokens, now))
                })
                .collect();
            let least = waits.iter().copied().fold(f64::INFINITY, f64::min);
            if least > 1e-9 {
                let wake = now + least.max(1e-4);
                if wake < wakes[process] {
                    wakes[process] = wake;
                    push(&mut queue, &mut events, wake, (process, Event::Wake));
                }
                break;
            }
            let nth = waits
                .iter()
                .position(|wait| *wait <= 1e-9)
                .unwrap_or_default();
            let model = (turns[process] + nth) % world.models;
            turns[process] = model + 1;
            next[process] = size(&mut dice);
            let group = model.min(groups - 1);
            let Group { requests, input } = &mut processes[process][group];
            let (id, _) = (requests.sent(1.0, now), input.sent(tokens, now));
            in_flight[process] += 1;
            open[process] -= 1;
            let connect = if in_flight[process] > connections[process] {
                world.connect
            } else {
                0.0
            };
            connections[process] = in_flight[process].max(connections[process]);
            let arrive = Event::Arrive {
                group,
                model,
                id,
                tokens,
            };
            let takes = connect + world.refusal / 2.0 * (1.0 + 0.2 * dice.roll());
            push(&mut queue, &mut events, now + takes, (process, arrive));
        }
    }
    arrivals
}
