//! Work shared among threads without the result depending on how many there are.
//!
//! Every kernel cuts its work into pieces whose number follows from the shape of the data alone, and adds
//! the pieces in their order. Threads only decide who computes a piece.

use rayon::ThreadPool;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Below this many elementary steps a thread costs more than it brings.
const WORTH_A_THREAD: usize = 400_000;

struct Pool {
    process: u32,
    pool: Arc<ThreadPool>,
}

struct State {
    wanted: Option<usize>,
    current: Option<Pool>,
}

static STATE: Mutex<State> = Mutex::new(State { wanted: None, current: None });

fn state() -> std::sync::MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn default_threads() -> usize {
    std::env::var("LIKELY_THREADS")
        .ok()
        .and_then(|text| text.parse().ok())
        .filter(|&n| n > 0)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

/// Sets the number of threads; `None` goes back to the default.
pub fn set_threads(threads: Option<usize>) {
    let mut state = state();
    state.wanted = threads;
    state.current = None;
}

pub fn threads() -> usize {
    state().wanted.unwrap_or_else(default_threads)
}

/// The pool of this process. A forked child inherits a pool whose threads did not come along, so it makes its own.
/// `None` where no thread can be had: the work is then done by the caller.
fn pool() -> Option<Arc<ThreadPool>> {
    let mut state = state();
    let process = std::process::id();
    if let Some(current) = &state.current
        && current.process == process
    {
        return Some(Arc::clone(&current.pool));
    }
    if let Some(inherited) = state.current.take() {
        std::mem::forget(inherited); // its threads live in the parent: joining them would wait for ever
    }
    let threads = state.wanted.unwrap_or_else(default_threads);
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok()?);
    state.current = Some(Pool { process, pool: Arc::clone(&pool) });
    Some(pool)
}

/// Applies `f` to `0..pieces` and returns the results in that order. `steps` is the size of the whole work.
pub fn map<T: Send>(pieces: usize, steps: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if pieces > 1
        && steps > WORTH_A_THREAD
        && let Some(pool) = pool()
    {
        return pool.install(|| (0..pieces).into_par_iter().map(f).collect());
    }
    (0..pieces).map(f).collect()
}

/// What one thread made of the pieces that it took, in rising order, and what it kept from one to the next.
pub struct Taken<S, T> {
    pub state: S,
    pub pieces: Vec<(usize, T)>,
}

/// Like [`map`], but every thread begins with a state of its own, and takes the next piece when it is done with one.
pub fn map_with<S: Send, T: Send>(
    pieces: usize,
    steps: usize,
    begin: impl Fn() -> S + Sync + Send,
    f: impl Fn(&mut S, usize) -> T + Sync + Send,
) -> Vec<Taken<S, T>> {
    let next = AtomicUsize::new(0);
    let work = |_| {
        let mut taken = Taken { state: begin(), pieces: Vec::new() };
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces {
                return taken;
            }
            let made = f(&mut taken.state, piece);
            taken.pieces.push((piece, made));
        }
    };
    if pieces > 1
        && steps > WORTH_A_THREAD
        && let Some(pool) = pool()
    {
        let workers = pool.current_num_threads().min(pieces);
        return pool.install(|| (0..workers).into_par_iter().with_max_len(1).map(work).collect());
    }
    vec![work(0)]
}

/// Like [`map`], over consecutive pieces of `out` of length `piece`; stops at the first error in order.
pub fn for_each<T: Send, E: Send>(
    out: &mut [T],
    piece: usize,
    steps: usize,
    f: impl Fn(usize, &mut [T]) -> Result<(), E> + Sync + Send,
) -> Result<(), E> {
    let piece = piece.max(1);
    if out.len() > piece
        && steps > WORTH_A_THREAD
        && let Some(pool) = pool()
    {
        let results: Vec<Result<(), E>> =
            pool.install(|| out.par_chunks_mut(piece).enumerate().map(|(i, part)| f(i, part)).collect());
        return results.into_iter().collect();
    }
    out.chunks_mut(piece).enumerate().try_for_each(|(i, part)| f(i, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept() {
        assert_eq!(map(1000, 1 << 30, |i| i * i), (0..1000).map(|i| i * i).collect::<Vec<_>>());
    }

    #[test]
    fn every_piece_is_taken_once() {
        let taken = map_with(1000, 1 << 30, || 0, |sum, i| *sum += i);
        assert_eq!(taken.iter().map(|thread| thread.state).sum::<usize>(), 499_500);
        for thread in &taken {
            assert!(thread.pieces.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
        let mut all: Vec<usize> = taken.iter().flat_map(|thread| thread.pieces.iter().map(|(i, ())| *i)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_error_wins() {
        let mut out = vec![0; 100];
        let result = for_each(&mut out, 10, 1 << 30, |i, _| if i >= 3 { Err(i) } else { Ok(()) });
        assert_eq!(result, Err(3));
    }
}
