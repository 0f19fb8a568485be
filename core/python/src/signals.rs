//! Long work that the user can break off.

use likely_kernels::interrupt;
use pyo3::prelude::*;
use std::sync::atomic::AtomicBool;

/// Does work of some size while the interpreter is released. Python handles signals in the thread that called: so that thread
/// looks for them, and another one does the work, which ends soon after it is told to stop.
pub fn watched<T: Send>(steps: usize, work: impl FnOnce(&AtomicBool) -> T + Send) -> PyResult<T> {
    #[allow(clippy::redundant_closure_for_method_calls)] // its name alone is not general enough
    interrupt::watched(steps, || Python::attach(|py| py.check_signals()), work)
}
