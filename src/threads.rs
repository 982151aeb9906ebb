//! Parallel work on several processors. A panic of a thread is resumed in the thread that waits for it.

use std::thread::{self, ScopedJoinHandle};

/// Runs `background` on a thread of its own and `here` on this one.
pub(crate) fn both<A: Send, B>(background: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let background = scope.spawn(background);
        let here = here();
        (resume_panic(background.join()), here)
    })
}

/// The results of `of` for each number below `count`, in order. Each processor computes a contiguous part.
pub(crate) fn each<T: Send>(count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let (part, of) = (count.div_ceil(processors).max(1), &of);
    thread::scope(|scope| {
        let parts = (0..count).step_by(part).map(|first| {
            let until = (first + part).min(count);
            scope.spawn(move || (first..until).map(of).collect::<Vec<T>>())
        });
        let parts: Vec<ScopedJoinHandle<'_, Vec<T>>> = parts.collect();
        parts.into_iter().flat_map(|part| resume_panic(part.join())).collect()
    })
}

fn resume_panic<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_complete_and_in_order() {
        for count in [0, 1, 2, 3, 100] {
            assert_eq!(each(count, |number| number * 2), (0..count).map(|number| number * 2).collect::<Vec<_>>());
        }
        assert_eq!(both(|| 1, || 2), (1, 2));
    }

    #[test]
    #[should_panic(expected = "background")]
    fn a_panic_is_resumed() {
        both(|| panic!("background"), || ());
    }
}
