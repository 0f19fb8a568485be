//! Long work that the user can break off.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Work of fewer elementary steps ends before anyone could grow impatient: no thread is started for it.
const LONG: usize = 100_000_000;
const LOOK: Duration = Duration::from_millis(50);

/// Does work of some size while the interpreter is released. Python handles signals in the thread that called: so that thread
/// looks for them, and another one does the work, which ends soon after it is told to stop.
pub fn watched<T: Send>(steps: usize, work: impl FnOnce(&AtomicBool) -> T + Send) -> PyResult<T> {
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
        let mut interrupted = Ok(());
        while waiting.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            if interrupted.is_ok() {
                #[allow(clippy::redundant_closure_for_method_calls)] // its name alone is not general enough
                let handled = Python::attach(|py| py.check_signals());
                interrupted = handled;
                stop.store(interrupted.is_err(), Ordering::Relaxed);
            }
        }
        match worker.join() {
            Ok(result) => interrupted.map(|()| result),
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
            assert!(matches!(watched(steps, |stop| !stop.load(Ordering::Relaxed)), Ok(true)));
        }
    }
}
