//! Room shared out: each gets its share, and what some do not need goes to the others.

/// The room of each of `wants`, a share and a need in the same unit as `limit`: the need where the share covers it,
/// else the share of what is left when all that are content have theirs.
pub(crate) fn rooms(wants: &[(f64, f64)], limit: f64) -> Vec<f64> {
    let mut rooms: Vec<Option<f64>> = vec![None; wants.len()];
    let mut left = limit.max(0.0);
    loop {
        let open = || rooms.iter().zip(wants).filter(|(room, _)| room.is_none()).map(|(_, want)| want);
        let total: f64 = open().map(|(share, _)| share).sum();
        let fair = |share: f64| left * share / total.max(f64::EPSILON);
        let content: f64 = open().filter(|(share, need)| *need <= fair(*share)).map(|(_, need)| need).sum();
        let settles = open().any(|(share, need)| *need <= fair(*share));
        let next: Vec<Option<f64>> = rooms
            .iter()
            .zip(wants)
            .map(|(room, (share, need))| {
                room.or_else(|| (!settles || *need <= fair(*share)).then(|| need.min(fair(*share))))
            })
            .collect();
        rooms = next;
        left -= content;
        if rooms.iter().all(Option::is_some) {
            return rooms.into_iter().flatten().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_one_leaves_goes_to_the_others() {
        assert_eq!(rooms(&[(0.5, 10.0), (0.25, 100.0), (0.25, 100.0)], 90.0), [10.0, 40.0, 40.0]);
        assert_eq!(rooms(&[(0.5, 1.0), (0.5, 2.0)], 90.0), [1.0, 2.0]);
        assert!(rooms(&[], 90.0).is_empty());
    }

    proptest! {
        #[test]
        fn never_more_than_there_is_nor_than_is_needed(
            wants in prop::collection::vec((0.01f64..1.0, 0.0f64..500.0), 0..9),
            limit in 0.0f64..1000.0,
        ) {
            let rooms = rooms(&wants, limit);
            prop_assert!(rooms.iter().sum::<f64>() <= limit + 1e-6);
            prop_assert!(rooms.iter().zip(&wants).all(|(room, (_, need))| room <= need));
        }
    }
}
