use super::*;

/// A model with its prices, and requests that may get a long reply.
struct Priced {
    prices: Prices,
    model: ModelRef,
}

impl Priced {
    fn new() -> Priced {
        Priced {
            prices: Prices::default(),
            model: ModelRef::parse("openai/gpt-5.2").unwrap(),
        }
    }

    fn worst_case(&self) -> Usd {
        let worst = self
            .prices
            .worst_case(&self.model, Tokens(2000), Tokens(128_000));
        worst.unwrap()
    }

    fn lease<'b>(&'b self, budget: &'b Budget, stage: StageName) -> BudgetLease<'b> {
        lease(budget, &self.prices, stage, &self.model, Tokens(128_000))
    }
}

fn lease<'b>(
    budget: &'b Budget,
    prices: &'b Prices,
    stage: StageName,
    model: &'b ModelRef,
    longest: Tokens,
) -> BudgetLease<'b> {
    BudgetLease {
        budget,
        prices,
        stage,
        model,
        input: Tokens(1000),
        longest,
        unusable_before: 0,
        breakers: None,
    }
}

/// What a request with a short reply uses.
fn short_reply() -> Usage {
    Usage {
        input: Some(Tokens(1000)),
        output: Some(Tokens(200)),
        ..Usage::default()
    }
}

#[test]
fn the_worst_case_is_reserved_until_settled() {
    let budget = Budget::new(BudgetLimits {
        usd: Some(Usd(1.0)),
        requests: None,
    });
    let first = budget.reserve(Some(Usd(0.6)), Some(Usd(0.6))).unwrap();
    assert!(budget.reserve(Some(Usd(0.6)), Some(Usd(0.6))).is_err());
    assert_eq!(budget.reached(), None, "the first may turn out cheaper");
    assert!(budget.spent().is_waiting);
    budget.settle(first, Some(Usd(0.1)));
    let second = budget.reserve(Some(Usd(0.6)), Some(Usd(0.6))).unwrap();
    assert!(!budget.spent().is_waiting);
    budget.settle(second, None);
    assert!(matches!(
        budget.reserve(Some(Usd(0.4)), Some(Usd(0.4))),
        Err(BudgetReached::Cost { .. })
    ));
    assert!(budget.reached().is_some());
}

#[test]
fn replies_seen_let_more_requests_begin_and_the_worst_case_still_fits_once() {
    let priced = Priced::new();
    let worst = priced.worst_case();
    let budget = Budget::new(BudgetLimits {
        usd: Some(Usd(2.0 * worst.0)),
        requests: None,
    });
    let [answer, judge] =
        [StageName::Answer, StageName::Judge].map(|stage| priced.lease(&budget, stage));
    let used = short_reply();
    for _ in 0..ENOUGH_REPLIES {
        answer.settle(answer.reserve().unwrap(), AttemptCost::Reported(&used));
    }
    let held: Vec<Reservation> = (0..50).map_while(|_| answer.reserve().ok()).collect();
    assert_eq!(held.len(), 50);
    assert!(budget.spent().reserved < worst, "{:?}", budget.spent());
    assert!(
        judge.reserve().is_err(),
        "no reply of another stage was seen"
    );
    held.into_iter().for_each(|held| answer.release(held));
    let long = Usage {
        output: Some(Tokens(60_000)),
        ..used
    };
    answer.settle(answer.reserve().unwrap(), AttemptCost::Reported(&long));
    answer.reserve().unwrap();
    assert!(
        answer.reserve().is_err(),
        "a longer reply raises what is reserved"
    );
}

#[test]
fn the_first_replies_let_twice_as_many_requests_begin_also_in_another_stage() {
    let priced = Priced::new();
    let worst = priced.worst_case();
    let budget = Budget::new(BudgetLimits {
        usd: Some(Usd(2.5 * worst.0)),
        requests: None,
    });
    let [answer, judge] =
        [StageName::Answer, StageName::Judge].map(|stage| priced.lease(&budget, stage));
    let used = short_reply();
    let begin = |lease: &BudgetLease<'_>| -> Vec<Reservation> {
        (0..64).map_while(|_| lease.reserve().ok()).collect()
    };
    let mut rounds = Vec::new();
    for stage in [&answer, &answer, &judge] {
        let held = begin(stage);
        rounds.push(held.len());
        held.into_iter()
            .for_each(|held| stage.settle(held, AttemptCost::Reported(&used)));
    }
    assert_eq!(
        rounds[0], 2,
        "nothing is known: what the limit holds of worst cases"
    );
    // One more has its worst case reserved.
    assert!(
        (4..=5).contains(&rounds[1]) && rounds[2] >= 2 * rounds[1],
        "{rounds:?}"
    );
    assert!(budget.spent().reserved.0 < 1e-9);
}

#[test]
fn what_was_paid_is_counted_and_the_unknown_is_not_guessed() {
    let (budget, prices) = (Budget::default(), Prices::default());
    let model = ModelRef::parse("openai/gpt-5.2").unwrap();
    let lease = lease(&budget, &prices, StageName::Answer, &model, Tokens(1000));
    let used = Usage {
        input: Some(Tokens(1000)),
        output: Some(Tokens(100)),
        ..Usage::default()
    };
    for bill in [
        AttemptCost::Reported(&used),
        AttemptCost::Free,
        AttemptCost::Unknown,
        AttemptCost::Reported(&used),
    ] {
        lease.settle(lease.reserve().unwrap(), bill);
    }
    let spent = budget.spent();
    assert_eq!(
        (spent.replies, spent.unanswered, spent.usage),
        (2, 1, Some(used + used))
    );
    assert_eq!(spent.usd, prices.cost(&model, &(used + used)));
    lease.settle(
        lease.reserve().unwrap(),
        AttemptCost::Reported(&Usage::default()),
    );
    assert_eq!(
        budget.spent().usd,
        None,
        "a reply that counts nothing has an unknown price"
    );
}

#[test]
fn what_was_sent_and_never_settled_is_unanswered() {
    let (budget, prices) = (Budget::default(), Prices::default());
    let model = ModelRef::parse("openai/gpt-5.2").unwrap();
    let lease = lease(&budget, &prices, StageName::Answer, &model, Tokens(1000));
    let held: Vec<Reservation> = (0..6).map(|_| lease.reserve().unwrap()).collect();
    let used = Usage::default();
    for (held, bill) in held.into_iter().zip([
        AttemptCost::Reported(&used),
        AttemptCost::Free,
        AttemptCost::Unknown,
    ]) {
        lease.settle(held, bill);
    }
    // Of the other three one still waits for its turn.
    assert_eq!(budget.spent().with_unfinished(5).unanswered, 1 + 2);
}

#[test]
fn a_request_that_was_not_sent_leaves_its_place_to_another() {
    let budget = Budget::new(BudgetLimits {
        usd: None,
        requests: Some(1),
    });
    let waiting = budget.reserve(None, None).unwrap();
    assert!(budget.reserve(None, None).is_err());
    assert_eq!(budget.reached(), None, "it may be given back");
    budget.give_back(waiting);
    let sent = budget.reserve(None, None).unwrap();
    budget.settle(sent, None);
    assert!(budget.reserve(None, None).is_err() && budget.reached().is_some());
}

#[test]
fn an_open_batch_counts_until_it_is_billed() {
    let budget = Budget::new(BudgetLimits {
        usd: Some(Usd(1.0)),
        requests: None,
    });
    let held = budget.reserve_unconditionally(Usd(0.8));
    assert!(
        budget.reserve(Some(Usd(0.3)), Some(Usd(0.3))).is_err(),
        "the rest is out"
    );
    let used = Usage {
        input: Some(Tokens(10)),
        output: Some(Tokens(1)),
        ..Usage::default()
    };
    let lines = [
        (Some(used), Some(Usd(0.2))),
        (None, Some(Usd(0.0))),
        (Some(used), Some(Usd(0.1))),
        (None, None),
    ];
    budget.settle_batch(vec![held], Usd(0.3), lines.into_iter());
    let spent = budget.spent();
    assert_eq!((spent.replies, spent.unanswered), (2, 1));
    assert_eq!((spent.usage, spent.reserved), (Some(used + used), Usd(0.0)));
    assert!((spent.usd.unwrap().0 - 0.3).abs() < 1e-9);
    assert!(
        budget.reserve(Some(Usd(0.6)), Some(Usd(0.6))).is_ok()
            && budget.reserve(Some(Usd(0.2)), Some(Usd(0.2))).is_err()
    );
}

#[test]
fn requests_are_counted_one_by_one() {
    let budget = Budget::new(BudgetLimits {
        usd: None,
        requests: Some(2),
    });
    for _ in 0..2 {
        let reservation = budget.reserve(None, None).unwrap();
        budget.settle(reservation, Some(Usd(0.0)));
    }
    assert_eq!(
        budget.reserve(None, None).unwrap_err(),
        BudgetReached::Requests { limit: 2 }
    );
}
