//! Proportional allocation of a token limit to sections. A section that needs less than its share gets what it needs,
//! and the rest of its share goes to the others.

/// The amount allocated to each entry of `wants`: (share, need), the need in the unit of `limit`.
///
/// Each round fixes the entries whose share of the remainder covers their need; the others split what is left. The last
/// round, in which no need is covered, gives each its share.
pub fn allocate(wants: &[(f64, f64)], limit: f64) -> Vec<f64> {
    let mut allocated: Vec<Option<f64>> = vec![None; wants.len()];
    let mut left = limit.max(0.0);
    loop {
        let open = || allocated.iter().zip(wants).filter(|(amount, _)| amount.is_none()).map(|(_, want)| want);
        let total: f64 = open().map(|(share, _)| share).sum();
        let fair = |share: f64| left * share / total.max(f64::EPSILON);
        let covered: f64 = open().filter(|(share, need)| *need <= fair(*share)).map(|(_, need)| need).sum();
        let any_covered = open().any(|(share, need)| *need <= fair(*share));
        let next: Vec<Option<f64>> = allocated
            .iter()
            .zip(wants)
            .map(|(amount, (share, need))| {
                amount.or_else(|| (!any_covered || *need <= fair(*share)).then(|| need.min(fair(*share))))
            })
            .collect();
        allocated = next;
        left -= covered;
        if allocated.iter().all(Option::is_some) {
            return allocated.into_iter().flatten().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_one_leaves_goes_to_the_others() {
        assert_eq!(allocate(&[(0.5, 10.0), (0.25, 100.0), (0.25, 100.0)], 90.0), [10.0, 40.0, 40.0]);
        assert_eq!(allocate(&[(0.5, 1.0), (0.5, 2.0)], 90.0), [1.0, 2.0]);
        assert!(allocate(&[], 90.0).is_empty());
    }

    proptest! {
        #[test]
        fn never_more_than_there_is_nor_than_is_needed(
            wants in prop::collection::vec((0.01f64..1.0, 0.0f64..500.0), 0..9),
            limit in 0.0f64..1000.0,
        ) {
            let amounts = allocate(&wants, limit);
            prop_assert!(amounts.iter().sum::<f64>() <= limit + 1e-6);
            prop_assert!(amounts.iter().zip(&wants).all(|(amount, (_, need))| amount <= need));
        }
    }
}
