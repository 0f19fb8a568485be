//! Long work that the user can break off.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Work of fewer elementary steps ends before anyone could grow impatient: no thread is started for it.
const LONG: usize = 100_000_000;
const LOOK: Duration = Duration::from_millis(50);

/// Does work of some size in another thread, while the one that called asks now and then whether to go on. Once the answer is
/// an error, the work is told to stop, and the error returned when it has.
pub fn watched<T: Send, E>(
    steps: usize,
    go_on: impl Fn() -> Result<(), E>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> Result<T, E> {
    let stop = AtomicBool::new(false);
    if steps < LONG {
        return Ok(work(&stop));
    }
    std::thread::scope(|scope| {
        let (done, waiting) = channel::<()>();
        let stop = &stop;
        let worker = scope.spawn(move || {
            let _done = done; // hung up when the work has ended, also if it panics
            work(stop)
        });
        let mut answer = Ok(());
        while waiting.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            if answer.is_ok() {
                answer = go_on();
                stop.store(answer.is_err(), Ordering::Relaxed);
            }
        }
        match worker.join() {
            Ok(result) => answer.map(|()| result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_work_is_done() {
        for steps in [1, LONG] {
            assert_eq!(watched(steps, || Ok::<(), ()>(()), |stop| !stop.load(Ordering::Relaxed)), Ok(true));
        }
    }

    #[test]
    fn large_work_is_told_to_stop() {
        let work = |stop: &AtomicBool| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        assert_eq!(watched(LONG, || Err("interrupted"), work), Err("interrupted"));
    }
}
