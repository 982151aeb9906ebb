//! Parallel work on several processors. A panic of a thread is resumed in the thread that waits for it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

/// Starts `count` threads side by side and ends them, for libraries that panic or hang when they cannot start theirs.
/// Their stacks are kept by the system for the next threads, so these can be started, too, unless memory runs out
/// meanwhile.
///
/// # Errors
/// The system does not start that many.
pub fn check_available(count: usize) -> io::Result<()> {
    let (ends, wait) = (0..count)
        .map(|_| mpsc::channel::<()>())
        .unzip::<_, _, Vec<_>, Vec<_>>();
    let started: io::Result<Vec<_>> = wait
        .into_iter()
        .map(|end| thread::Builder::new().spawn(move || end.recv().is_ok()))
        .collect();
    // A thread ends when its sender is gone.
    drop(ends);
    started?.into_iter().for_each(|thread| drop(thread.join()));
    Ok(())
}

/// Locks a value that a panic of another thread leaves as it was.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `of` for each number below `count`, on all processors, and returns the results in order. A thread takes the
/// next number when it has finished one, since numbers may mean very different amounts of work, such as files of any
/// size.
pub fn each<T: Send>(count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let processors = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(count);
    let next = AtomicUsize::new(0);
    let mut results: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..processors)
            .map(|_| scope.spawn(|| take_numbers(&next, count, &of)))
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| resume_panic(worker.join()))
            .collect()
    });
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The work of one thread: the numbers that it took, with their results.
fn take_numbers<T>(next: &AtomicUsize, count: usize, of: &impl Fn(usize) -> T) -> Vec<(usize, T)> {
    let numbers = std::iter::from_fn(|| {
        Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < count)
    });
    numbers.map(|number| (number, of(number))).collect()
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
            assert_eq!(
                each(count, |number| number * 2),
                (0..count).map(|number| number * 2).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_few_threads_can_be_started() {
        check_available(8).unwrap();
    }

    #[test]
    #[should_panic(expected = "background")]
    fn a_panic_is_resumed() {
        each(2, |_| -> u8 { panic!("background") });
    }
}
