//! The law that finds undeclared rates, in virtual time: how much of a limit it uses, and what that costs in refusals. The
//! bounds are a little wider than what was measured.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::limited::{Asks, Limit, ProviderLimit, Rule, Unit};
use crate::virtual_time::{World, run, takes};

/// Means over seeds: the accepted share of the allowed requests a second in the first `end` seconds, and the refused share
/// of all requests.
fn shares(world: &World, allowed: f64, end: f64) -> (f64, f64) {
    const SEEDS: u64 = 3;
    let unit = world
        .limits
        .first()
        .map_or(Unit::Requests, |limit| limit.unit);
    let all = (0..SEEDS).map(|seed| run(world, end, seed).until(end, unit));
    let (accepted, refused) = all.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (accepted / allowed / SEEDS as f64, refused / SEEDS as f64)
}

fn limited(rule: Rule) -> World {
    World::new(vec![ProviderLimit::requests(
        Limit::new(rule).asking(Asks::Seconds(1.0)),
    )])
}

/// Asserts the least share and the most refused, in percent, of the first ten seconds and of a minute.
fn reaches(world: &World, ten: (f64, f64), sixty: (f64, f64)) {
    for (end, (least, most)) in [(10.0, ten), (60.0, sixty)] {
        let limit = world
            .limits
            .first()
            .map_or(f64::INFINITY, |limit| limit.limit.allowed(end, 320.0));
        let (share, refused) = shares(world, limit.min(320.0 * end * (1.0 - world.noise)), end);
        assert!(
            share >= least && refused * 100.0 <= most,
            "{world:?}: {share:.3} with {refused:.3} in {end} s"
        );
    }
}

#[test]
fn a_sliding_second_is_used_in_full() {
    reaches(&limited(Rule::Sliding(56.0, 1.0)), (0.97, 1.1), (0.98, 0.3));
    reaches(&limited(Rule::Sliding(12.0, 1.0)), (0.98, 3.5), (0.98, 1.0));
    // Two refusals of 32 at the start tell this from refusals at random.
    reaches(&limited(Rule::Sliding(3.0, 1.0)), (0.98, 6.5), (0.98, 2.0));
}

/// The window of the provider begins when the first requests arrive, later than ours by the time of connecting.
#[test]
fn requests_that_arrive_late_do_not_lower_a_right_level() {
    let late = |most, connect| World {
        connect,
        ..limited(Rule::Sliding(most, 1.0))
    };
    reaches(&late(56.0, 0.03), (0.97, 3.5), (0.98, 0.7));
    // Two dozen are under way before the first refusal is known.
    reaches(&late(12.0, 0.1), (0.96, 18.0), (0.97, 4.5));
}

#[test]
fn a_minute_is_used_up_at_once_and_then_waited_for() {
    let minute = |most, began, asks| {
        World::new(vec![ProviderLimit::requests(
            Limit::new(Rule::Fixed(most, 60.0, began)).asking(asks),
        )])
    };
    reaches(
        &minute(3000.0, 50.0, Asks::Exactly),
        (0.98, 0.5),
        (0.98, 0.3),
    );
    reaches(
        &minute(600.0, 55.0, Asks::Exactly),
        (0.98, 1.4),
        (0.98, 1.4),
    );
    reaches(
        &minute(600.0, 55.0, Asks::Nothing),
        (0.95, 2.5),
        (0.95, 3.0),
    );
}

#[test]
fn what_fits_into_a_minute_is_sent_at_once_in_each() {
    for asks in [Asks::Nothing, Asks::Seconds(2.0), Asks::Exactly] {
        for (rule, hundred, many, most_refused) in [
            (Rule::Sliding(60.0, 60.0), 62.0, 545.0, 0.06),
            (Rule::Fixed(60.0, 60.0, 25.0), 48.0, 525.0, 0.06),
        ] {
            let minute =
                || World::new(vec![ProviderLimit::requests(Limit::new(rule).asking(asks))]);
            let (seconds, refused) = takes(&minute(), 108, 3);
            assert!(
                seconds < hundred && refused < 0.25,
                "{rule:?}, {asks:?}: {seconds} s, {refused}"
            );
            let (seconds, refused) = takes(&minute(), 600, 3);
            assert!(
                seconds < many && refused < most_refused,
                "{rule:?}, {asks:?}: {seconds} s, {refused}"
            );
        }
    }
}

#[test]
fn slow_refusals_delay_no_window() {
    let world = World {
        refusal: 0.05,
        ..World::new(vec![ProviderLimit::requests(
            Limit::new(Rule::Sliding(60.0, 60.0)).asking(Asks::Seconds(2.0)),
        )])
    };
    let (seconds, refused) = takes(&world, 108, 3);
    assert!(seconds < 63.0 && refused < 0.4, "{seconds} s, {refused}");
}

/// A refusal that comes later than others is not taken for an answer, and where nothing is accepted no level is learned.
#[test]
fn refusals_that_come_late_hide_no_window() {
    for (rule, calls, most) in [
        (Rule::Sliding(100.0, 10.0), 300, 32.0),
        (Rule::Sliding(60.0, 60.0), 300, 245.0),
        (Rule::Fixed(60.0, 60.0, 25.0), 300, 232.0),
    ] {
        for (latency, refusal, jitter) in [(0.001, 0.004, 0.045), (0.2, 0.01, 0.05)] {
            let world = World {
                latency,
                refusal,
                jitter,
                ..World::new(vec![ProviderLimit::requests(
                    Limit::new(rule).asking(Asks::Seconds(1.0)),
                )])
            };
            let (seconds, refused) = takes(&world, calls, 6);
            assert!(
                seconds < most && refused < 0.25,
                "{rule:?}, {latency} s each: {seconds} s, {refused}"
            );
        }
    }
}

#[test]
fn the_burst_of_a_bucket_is_not_taken_for_its_rate() {
    reaches(&limited(Rule::Bucket(50.0, 50.0)), (0.96, 2.5), (0.98, 1.0));
    reaches(
        &limited(Rule::Bucket(50.0, 500.0)),
        (0.96, 3.2),
        (0.98, 1.4),
    );
    reaches(&limited(Rule::Bucket(10.0, 10.0)), (0.91, 7.4), (0.97, 2.7));
    // A burst that is soon gone leaves a level that is far too low.
    let (share, refused) = shares(&limited(Rule::Bucket(50.0, 10.0)), 100.0, 4.3);
    assert!(share > 0.95 && refused < 0.04, "{share} with {refused}");
    let (share, refused) = shares(&limited(Rule::Bucket(0.5, 1.0)), 301.0, 600.0);
    assert!(share > 0.7 && refused < 0.07, "{share} with {refused}");
}

#[test]
fn a_limit_of_requests_at_once_is_used_in_full() {
    for (at_once, latency) in [(4, 0.2), (4, 2.0), (7, 1.0), (10, 0.2), (10, 5.0)] {
        let world = World {
            at_once,
            latency,
            ..World::new(Vec::new())
        };
        let (seconds, refused) = takes(&world, 600, 3);
        let least = 600.0 * latency / at_once as f64;
        assert!(
            seconds < 1.07 * least && refused < 0.08,
            "{at_once} at once, {latency} s each: {seconds} s of {least} s, {refused}"
        );
    }
}

/// The few requests in flight when a window is used up are no limit of requests at once.
#[test]
fn quick_replies_do_not_hide_a_window() {
    for (latency, connect) in [
        (0.001, 0.0),
        (0.001, 0.02),
        (0.005, 0.05),
        (0.02, 0.0),
        (0.1, 0.03),
    ] {
        let world = World {
            latency,
            connect,
            ..World::new(vec![ProviderLimit::requests(
                Limit::new(Rule::Sliding(100.0, 10.0)).asking(Asks::Seconds(1.0)),
            )])
        };
        let (seconds, refused) = takes(&world, 595, 3);
        assert!(
            seconds < 75.0 && refused < 0.15,
            "{latency} s each, {connect} s to connect: {seconds} s of 50 s, {refused}"
        );
    }
}

#[test]
fn refusals_before_anything_is_accepted_show_no_rate() {
    let outage = Limit {
        change: Some((3.0, 56e6)),
        ..Limit::new(Rule::Sliding(1e-6, 1.0))
    };
    let world = World::new(vec![ProviderLimit::requests(
        outage.asking(Asks::Seconds(1.0)),
    )]);
    reaches(&world, (0.88, 4.0), (0.96, 0.8));
    // A slow reply is not an outage: the limit that showed before it stays.
    let slow = World {
        latency: 1.0,
        ..limited(Rule::Sliding(56.0, 1.0))
    };
    let (share, refused) = shares(&slow, 56.0 * 60.0, 60.0);
    assert!(
        share > 0.95 && refused < 0.01,
        "{share:.3} with {refused:.3}"
    );
}

#[test]
fn refused_requests_that_count_are_recognised() {
    let counting = Limit {
        counts_refused: true,
        ..Limit::new(Rule::Sliding(56.0, 1.0))
    };
    reaches(
        &World::new(vec![ProviderLimit::requests(counting)]),
        (0.95, 1.5),
        (0.975, 0.4),
    );
}

#[test]
fn refusals_at_random_cost_about_their_share() {
    reaches(
        &World {
            noise: 0.05,
            ..World::new(Vec::new())
        },
        (0.85, 6.0),
        (0.9, 6.0),
    );
    let noisy = World {
        noise: 0.05,
        ..limited(Rule::Sliding(56.0, 1.0))
    };
    reaches(&noisy, (0.9, 10.3), (0.85, 9.0));
    // Many requests are under way when the first of them is refused.
    reaches(
        &World {
            refusal: 0.1,
            ..noisy
        },
        (0.8, 14.0),
        (0.8, 11.5),
    );
}

/// A refusal among the very first requests looks like a slow limit. Whatever the seed, this mistake must be found out, and
/// soon unless a second refusal follows by chance.
#[test]
fn no_seed_of_random_refusals_collapses_the_rate() {
    let noisy = |limit: World| World {
        noise: 0.05,
        ..limit
    };
    for (world, allowed) in [
        (noisy(World::new(Vec::new())), 320.0 * 0.95),
        (noisy(limited(Rule::Sliding(56.0, 1.0))), 56.0),
    ] {
        for seed in 0..32 {
            let (accepted, refused) = run(&world, 60.0, seed).until(60.0, Unit::Requests);
            let share = accepted / allowed / 60.0;
            assert!(
                share > 0.6 && refused < 0.12,
                "seed {seed}: {share:.3} with {refused:.3}"
            );
        }
    }
}

#[test]
fn announced_limits_are_kept() {
    let announced = |rule| World {
        announces: true,
        ..limited(rule)
    };
    reaches(
        &announced(Rule::Sliding(50.0, 1.0)),
        (0.95, 0.1),
        (0.97, 0.1),
    );
    let tokens = Limit::new(Rule::Bucket(100_000.0, 100_000.0));
    let tokens = ProviderLimit {
        unit: Unit::InputTokens,
        is_per_model: false,
        limit: tokens,
    };
    let world = World {
        announces: true,
        ..World::new(vec![tokens])
    };
    let (share, refused) = shares(&world, 6e6, 60.0);
    assert!(share > 0.95 && refused < 0.001, "{share} with {refused}");
}

#[test]
fn models_and_processes_share_a_limit_or_have_their_own() {
    let shared = World {
        models: 2,
        ..limited(Rule::Sliding(56.0, 1.0))
    };
    reaches(&shared, (0.96, 1.5), (0.98, 0.5));
    let limit = Limit::new(Rule::Sliding(28.0, 1.0)).asking(Asks::Seconds(1.0));
    let per_model = ProviderLimit {
        is_per_model: true,
        ..ProviderLimit::requests(limit)
    };
    let (share, refused) = shares(
        &World {
            models: 2,
            ..World::new(vec![per_model])
        },
        560.0,
        10.0,
    );
    assert!(share > 0.96 && refused < 0.02, "{share} with {refused}");
    let processes = World {
        processes: 8,
        ..limited(Rule::Sliding(56.0, 1.0))
    };
    reaches(&processes, (0.95, 6.0), (0.95, 4.0));
    reaches(
        &World {
            processes: 8,
            ..limited(Rule::Bucket(50.0, 50.0))
        },
        (0.95, 8.0),
        (0.95, 5.0),
    );
}

#[test]
fn what_processes_leave_when_they_end_is_found() {
    let eight = World {
        processes: 8,
        calls: 447,
        ..limited(Rule::Bucket(50.0, 50.0))
    };
    let ends = (0..3).map(|seed| {
        run(&eight, 600.0, seed)
            .accepted
            .iter()
            .copied()
            .fold(0.0, f64::max)
    });
    let mean = ends.sum::<f64>() / 3.0;
    assert!(mean < 120.0, "{mean} s, where 71 s are possible");
}

#[test]
fn a_changed_limit_is_found_again() {
    let changed = |most, factor| {
        let limit = Limit {
            change: Some((5.0, factor)),
            ..Limit::new(Rule::Sliding(most, 1.0))
        };
        World::new(vec![ProviderLimit::requests(
            limit.asking(Asks::Seconds(1.0)),
        )])
    };
    reaches(&changed(56.0, 0.5), (0.75, 5.0), (0.85, 2.0));
    reaches(&changed(28.0, 2.0), (0.6, 2.0), (0.85, 0.5));
}

proptest! {
    // The same cases each time: about one of 3,000 uses 0.88 of a sliding second, where 9 or 10 requests fit into it and
    // replies take half a second.
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::with_cases(24)
    })]

    /// Whatever a server allows, requests get through, and most are accepted. A small bucket is found slowly: until then, its
    /// content is taken for what it allows each second.
    #[test]
    fn no_limit_stops_the_law(
        rate in 2.0f64..200.0,
        burst in 1.0f64..100.0,
        latency in 0.01f64..2.0,
        is_bucket in any::<bool>(),
        seed in 0u64..1000,
    ) {
        let rule = if is_bucket { Rule::Bucket(rate, burst) } else { Rule::Sliding(rate.ceil(), 1.0) };
        let world = World { latency, ..limited(rule) };
        let allowed = world.limits[0].limit.allowed(30.0, 64.0 / latency);
        let (accepted, refused) = run(&world, 30.0, seed).until(30.0, Unit::Requests);
        let least = match rule {
            Rule::Bucket(..) if burst < 5.0 => 0.6 * 30.0 * burst.floor().min(rate),
            Rule::Bucket(..) => 0.3 * allowed,
            _ => 0.9 * allowed,
        };
        prop_assert!(accepted > least, "{accepted} of {allowed}");
        prop_assert!(refused < 0.35, "{refused}");
    }

    /// An announced limit is never exceeded over a second, whatever its size.
    #[test]
    fn no_second_exceeds_an_announced_limit(per_second in 1u32..300, seed in 0u64..1000) {
        let limit = Limit::new(Rule::Sliding(f64::from(per_second), 1.0));
        let world = World { announces: true, ..World::new(vec![ProviderLimit::requests(limit)]) };
        let arrivals = run(&world, 10.0, seed);
        // Before the first reply nothing is announced.
        let later = arrivals.refused.iter().filter(|at| **at > 1.5).count();
        prop_assert!(later == 0, "{later} refused");
    }
}
