//! The iteration: to each row the nearest centre, to each centre the mean of its rows, until nothing changes.

use super::assign::State;
use super::centres::Centres;
use super::points::{Dense, Points};
use super::sums::{Sums, Total};
use crate::threads;
use ndarray::ArrayView2;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Settings {
    pub iterations: usize,
    /// the squared distance, added up over all centres, at which their movement is taken for none
    pub tolerance: f64,
    /// whether nobody has looked for cells that are no finite numbers
    pub unread: bool,
    /// whether the inertia before each movement is wanted
    pub course: bool,
}

pub struct Outcome {
    pub labels: Vec<i32>,
    /// less the origin
    pub centres: Vec<f64>,
    pub inertia: f64,
    pub iterations: usize,
    /// whether no label changed in the end
    pub settled: bool,
    /// the squared distance by which the centres moved last, added up
    pub shift: f64,
    pub course: Vec<f64>,
}

/// Runs from given centres (less the origin); none if it was told to stop, or if a row that nobody has looked at is no
/// number, or has none as its square. `sparse`: whether the points are.
pub fn run<P: Points>(
    points: &P,
    weights: Option<&[f64]>,
    start: Vec<f64>,
    settings: &Settings,
    sparse: bool,
    stop: &AtomicBool,
) -> Option<Outcome> {
    let (columns, missing) = (points.columns(), points.has_missing());
    let mut centres: Centres<P::Number> = Centres::new(start, columns, missing, sparse);
    let number = centres.number;
    let mut state = State::new(points.rows(), columns, number, centres.groups());
    let mut total = Total::new(number, columns, missing);
    let mut course = vec![];
    let (mut iterations, mut settled, mut shift) = (0, false, f64::INFINITY);
    while iterations < settings.iterations {
        let done = state.assign(points, weights, &centres, !missing, stop);
        if stop.load(Ordering::Relaxed) || (settings.unread && !done.finite) {
            return None;
        }
        if settings.course {
            course.push(inertia(points, weights, &state.labels, &centres));
        }
        if done.moved == 0 {
            settled = true;
            break;
        }
        iterations += 1;
        if missing {
            total = Total::new(number, columns, missing);
            total.take(&collect(points, weights, &state.labels, number));
        } else {
            for part in &done.changes {
                total.take(part);
            }
        }
        repair(points, weights, &mut state, &mut total, &centres);
        if !missing && total.worn() {
            total = Total::new(number, columns, missing);
            total.take(&collect(points, weights, &state.labels, number));
        }
        let means = total.restored().means(&centres.values);
        shift = centres.shift(means);
        if iterations == 1 && centres.groups() > 1 {
            // The first means lie far from where they began: groups of what was there then would serve badly.
            centres.regroup();
            state.forget_groups();
        }
        if !missing && !sparse {
            measure(&mut centres, columns);
        }
        if shift <= settings.tolerance {
            break;
        }
    }
    if !settled {
        // Labels are those of the last centres, as anyone finds who asks for the nearest.
        for part in state.assign(points, weights, &centres, !missing, stop).changes {
            total.take(&part);
        }
        if stop.load(Ordering::Relaxed) {
            return None;
        }
    }
    let known = if missing { None } else { total.inertia(&centres.values) };
    let inertia = known.unwrap_or_else(|| inertia(points, weights, &state.labels, &centres));
    Some(Outcome { labels: state.labels, centres: centres.values, inertia, iterations, settled, shift, course })
}

fn measure<T: super::real::Real>(centres: &mut Centres<T>, columns: usize) {
    let values = centres.values.clone();
    let Ok(view) = ArrayView2::from_shape((centres.number, columns), &values) else { return };
    let origin = vec![0.0; columns];
    centres.measure(&Dense::<f64, T>::new(view, &origin, false));
}

const BLOCK: usize = 4096;

/// The sums of all rows.
pub fn collect<P: Points>(points: &P, weights: Option<&[f64]>, labels: &[i32], clusters: usize) -> Sums {
    let (rows, columns) = (points.rows(), points.columns());
    let (block, origin) = (BLOCK.max(rows.div_ceil(64)), vec![0.0; columns]);
    let parts = threads::map(rows.div_ceil(block), rows * columns, |piece| {
        let mut sums = Sums::zero(clusters, columns, points.has_missing());
        for row in piece * block..((piece + 1) * block).min(rows) {
            let far = points.distance(row, &origin, 0.0).sqrt();
            sums.add(points, row, weights.map_or(1.0, |weights| weights[row]), labels[row] as usize, far);
        }
        sums
    });
    let mut total = Total::new(clusters, columns, points.has_missing());
    for part in &parts {
        total.take(part);
    }
    total.restored()
}

/// Squared distances of rows from their centres, each times its weight, added up.
fn inertia<P: Points>(points: &P, weights: Option<&[f64]>, labels: &[i32], centres: &Centres<P::Number>) -> f64 {
    let (rows, columns) = (points.rows(), points.columns());
    let parts = threads::map(rows.div_ceil(BLOCK), rows * columns, |piece| {
        let range = piece * BLOCK..((piece + 1) * BLOCK).min(rows);
        let of = |row: usize| {
            let centre = labels[row] as usize;
            let square = points.distance(row, centres.value(centre), centres.norms[centre]);
            weights.map_or(square, |weights| if weights[row] > 0.0 { weights[row] * square } else { 0.0 })
        };
        range.map(of).sum::<f64>()
    });
    parts.iter().sum()
}

/// Gives each empty cluster the row that lies farthest from its centre, if any lies away from it at all; with it all rows
/// that are equal to it, so that a weight of 2 is a row twice.
fn repair<P: Points>(
    points: &P,
    weights: Option<&[f64]>,
    state: &mut State,
    total: &mut Total,
    centres: &Centres<P::Number>,
) {
    let empty: Vec<usize> = (0..centres.number).filter(|&cluster| total.sums.rows[cluster] == 0).collect();
    if empty.is_empty() {
        return;
    }
    let (rows, columns) = (points.rows(), points.columns());
    let parts = threads::map(rows.div_ceil(BLOCK), rows * columns, |piece| {
        let of = |row: usize| {
            let own = state.labels[row] as usize;
            points.distance(row, centres.value(own), centres.norms[own])
        };
        (piece * BLOCK..((piece + 1) * BLOCK).min(rows)).map(of).collect::<Vec<f64>>()
    });
    let distances = parts.concat();
    let counted = |row: usize| weights.is_none_or(|weights| weights[row] > 0.0);
    let mut far: Vec<usize> = (0..rows).filter(|&row| counted(row) && distances[row] > 0.0).collect();
    far.sort_by(|&a, &b| distances[b].total_cmp(&distances[a]).then(a.cmp(&b)));
    let direction: Vec<f64> = (0..columns).map(|j| 1.0 + (0.618_033_988_749_894_9 * j as f64).fract()).collect();
    let mut empty = empty.into_iter().peekable();
    for tied in far.chunk_by(|&a, &b| distances[a] == distances[b]) {
        let mut tied = tied.to_vec();
        if tied.len() > 1 {
            // By their cells, whatever order they came in.
            tied.sort_by(|&a, &b| points.projection(a, &direction).total_cmp(&points.projection(b, &direction)));
        }
        while let (Some(&row), Some(&cluster)) = (tied.first(), empty.peek()) {
            let (equal, others): (Vec<usize>, Vec<usize>) =
                tied.into_iter().partition(|&other| points.equal(row, other));
            tied = others;
            let before = state.labels[row] as usize;
            if total.sums.rows[before] <= equal.len() as i64 {
                continue;
            }
            let mut change = Sums::zero(centres.number, columns, points.has_missing());
            for row in equal {
                let weight = weights.map_or(1.0, |weights| weights[row]);
                let far = points.distance(row, &vec![0.0; columns], 0.0).sqrt();
                change.add(points, row, -weight, before, far);
                change.add(points, row, weight, cluster, far);
                state.put(row, cluster);
            }
            total.take(&change);
            empty.next();
        }
        if empty.peek().is_none() {
            return;
        }
    }
}

/// The nearest centre of each row, and the squared distances from it, each times its weight, added up (NaN if that is not
/// wanted).
pub fn nearest<P: Points>(
    points: &P,
    weights: Option<&[f64]>,
    centres: Vec<f64>,
    sparse: bool,
    wanted: bool,
    stop: &AtomicBool,
) -> (Vec<i32>, f64) {
    let centres: Centres<P::Number> = Centres::new(centres, points.columns(), points.has_missing(), sparse);
    let mut state = State::new(points.rows(), points.columns(), centres.number, centres.groups());
    state.assign(points, weights, &centres, false, stop);
    let wanted = wanted && !stop.load(Ordering::Relaxed);
    let inertia = if wanted { inertia(points, weights, &state.labels, &centres) } else { f64::NAN };
    (state.labels, inertia)
}

/// The squared distance of every row from every centre.
pub fn distances<P: Points>(points: &P, centres: &[f64], stop: &AtomicBool) -> Vec<f64> {
    let columns = points.columns();
    let number = centres.len() / columns;
    let norms: Vec<f64> = centres.chunks_exact(columns).map(|c| c.iter().map(|c| c * c).sum()).collect();
    let mut out = vec![0.0; points.rows() * number];
    let steps = out.len() * columns;
    let result: Result<(), std::convert::Infallible> = threads::for_each(&mut out, number * 64, steps, |piece, out| {
        for (r, line) in out.chunks_exact_mut(number).enumerate() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            for ((out, centre), &norm) in line.iter_mut().zip(centres.chunks_exact(columns)).zip(&norms) {
                *out = points.distance(piece * 64 + r, centre, norm);
            }
        }
        Ok(())
    });
    let Ok(()) = result;
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kmeans::real::Real;
    use crate::source::Cell;
    use ndarray::Array2;

    /// Numbers that look random.
    fn noise(n: usize) -> impl Iterator<Item = f64> {
        let mut state = 1u64;
        (0..n).map(move |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / f64::from(1 << 24)
        })
    }

    fn brute<A: Cell>(x: &Array2<A>, centres: &[f64]) -> Vec<i32> {
        let apart = |row: usize, centre: &[f64]| -> f64 {
            centre.iter().enumerate().map(|(j, c)| (x[[row, j]].number() - c).powi(2)).sum()
        };
        let nearest = |row: usize| {
            let all = centres.chunks_exact(x.ncols()).map(|centre| apart(row, centre)).enumerate();
            all.fold((0, f64::INFINITY), |best, now| if now.1 < best.1 { now } else { best }).0
        };
        (0..x.nrows()).map(|row| nearest(row) as i32).collect()
    }

    fn check<A: Cell, T: Real>(make: impl Fn(f64) -> A, (rows, columns, clusters): (usize, usize, usize)) {
        let cells = noise(rows * columns).map(make).collect();
        let x = Array2::from_shape_vec((rows, columns), cells).unwrap();
        let origin = vec![0.5; columns];
        let start: Vec<f64> =
            (0..clusters).flat_map(|c| (0..columns).map(move |j| (c, j))).map(|at| x[at].number() - 0.5).collect();
        for order in 0..2 {
            let turned = x.t().as_standard_layout().to_owned();
            let view = if order == 0 { x.view() } else { turned.t() };
            let points = Dense::<A, T>::new(view, &origin, false);
            for iterations in [1, 4, 30] {
                let settings = Settings { iterations, tolerance: 0.0, unread: true, course: false };
                let found = run(&points, None, start.clone(), &settings, false, &AtomicBool::new(false)).unwrap();
                let centres: Vec<f64> = found.centres.iter().map(|c| c + 0.5).collect();
                assert_eq!(found.labels, brute(&x, &centres));
            }
        }
    }

    #[test]
    fn labels_are_those_of_looking_everywhere() {
        for shape in [(300, 3, 5), (500, 70, 130), (40, 9, 40), (1, 1, 1)] {
            check::<f32, f32>(|x| x as f32, shape);
            check::<f64, f64>(|x| x, shape);
            check::<f32, f64>(|x| x as f32, shape);
        }
    }
}
