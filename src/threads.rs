//! Work side by side on several processors. A thread that panics passes it on to whoever waits for it.

use std::thread::{self, ScopedJoinHandle};

/// Does `aside` on a thread of its own while `here` is done.
pub(crate) fn both<A: Send, B>(aside: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let aside = scope.spawn(aside);
        let here = here();
        (passed_on(aside.join()), here)
    })
}

/// What `of` makes of each number below `count`, in their order; each processor takes its part.
pub(crate) fn each<T: Send>(count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let (part, of) = (count.div_ceil(processors).max(1), &of);
    thread::scope(|scope| {
        let parts = (0..count).step_by(part).map(|first| {
            let until = (first + part).min(count);
            scope.spawn(move || (first..until).map(of).collect::<Vec<T>>())
        });
        let parts: Vec<ScopedJoinHandle<'_, Vec<T>>> = parts.collect();
        parts.into_iter().flat_map(|part| passed_on(part.join())).collect()
    })
}

fn passed_on<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_whole_and_in_order() {
        for count in [0, 1, 2, 3, 100] {
            assert_eq!(each(count, |number| number * 2), (0..count).map(|number| number * 2).collect::<Vec<_>>());
        }
        assert_eq!(both(|| 1, || 2), (1, 2));
    }

    #[test]
    #[should_panic(expected = "aside")]
    fn a_panic_is_passed_on() {
        both(|| panic!("aside"), || ());
    }
}
