//! Messages in trees: log p(observed cells) of every row, and the distribution of every unknown cell given the others.

use super::{Cells, EVIDENCE, NEGLIGIBLE, Trees, offsets};
use crate::threads;
use std::convert::Infallible;

/// Rows that a thread takes at a time.
const PIECE: usize = 256;
/// A product of messages is divided by its largest number before that is smaller than this.
const SMALL: f64 = 1e-100;

/// Trees with what messages need beside the tables: their logarithms, and the tables of children by the child's level.
pub struct Prepared<'a> {
    pub trees: &'a Trees<'a>,
    pub offsets: Vec<usize>,
    /// of all tables; none if rows are so few that each takes those that it needs
    logs: Vec<f64>,
    by_child: Vec<f64>,
    longest: usize,
}

/// What upward messages leave of one row and component.
pub struct Scratch {
    /// likelihood of what lies below a column, of every level, up to a factor
    belief: Vec<f64>,
    /// whether anything is known below a column whose own cell is unknown
    told: Vec<bool>,
    /// columns × most levels: the message to a parent whose cell is unknown
    messages: Vec<f64>,
    /// p(level | all that is known) of columns whose cell is unknown
    pub posterior: Vec<f64>,
}

impl Scratch {
    /// The likelihood of what lies below a column, and of its own evidence, of every level; None if nothing is known there.
    pub fn belief_of(&self, column: usize, place: usize, size: usize) -> Option<&[f64]> {
        self.told[column].then(|| &self.belief[place..place + size])
    }
}

impl<'a> Prepared<'a> {
    /// For so many rows.
    pub fn new(trees: &'a Trees<'a>, rows: usize) -> Self {
        let few = rows * trees.parents.len() < trees.tables.len();
        let mut by_child = vec![0.0; trees.tables.len()];
        for component in 0..trees.components() {
            for column in trees.ordered(component) {
                if let Some(parent) = trees.parent(component, column) {
                    let (start, size, above) = (trees.start(component, column), trees.size(column), trees.size(parent));
                    for p in 0..above {
                        for x in 0..size {
                            by_child[start + x * above + p] = trees.tables[start + p * size + x];
                        }
                    }
                }
            }
        }
        Self {
            trees,
            offsets: offsets(trees.levels),
            logs: if few { vec![] } else { trees.tables.iter().map(|p| p.ln()).collect() },
            by_child,
            longest: trees.levels.iter().copied().max().unwrap_or(0) as usize,
        }
    }

    /// The logarithm of a number of the tables.
    #[inline]
    pub fn log(&self, at: usize) -> f64 {
        if self.logs.is_empty() { self.trees.tables[at].ln() } else { self.logs[at] }
    }

    /// What a level of a column says to its parent: the table that begins here, for every level of the parent.
    pub fn message(&self, start: usize, level: usize, above: usize) -> &[f64] {
        &self.by_child[start + level * above..][..above]
    }

    pub fn scratch(&self) -> Scratch {
        let (all, d) = (*self.offsets.last().unwrap_or(&0), self.trees.width());
        Scratch {
            belief: vec![1.0; all],
            told: vec![false; d],
            messages: vec![0.0; d * self.longest],
            posterior: vec![0.0; all],
        }
    }

    /// Where the tables of a component are, children before parents: column, parent (of the root itself), start, and how
    /// many levels the column has (of the root 0, so that its parent does not count).
    fn places(&self, component: usize) -> Vec<[usize; 4]> {
        let trees = self.trees;
        let of = |column| {
            let start = trees.start(component, column);
            match trees.parent(component, column) {
                Some(parent) => [column, parent, start, trees.size(column)],
                None => [column, column, start, 0],
            }
        };
        trees.ordered(component).rev().map(of).collect()
    }

    /// log p(row) of a row without missing cells: a sum over the tables, in the order of [`Self::upward`].
    #[inline]
    fn look_up(&self, places: &[[usize; 4]], row: &[i16]) -> f64 {
        places.iter().fold(0.0, |log, &[column, parent, start, size]| {
            log + self.log(start + row[parent] as usize * size + row[column] as usize)
        })
    }

    /// log p(what is known of a row) under a component. What [`Self::downward`] needs is left in the scratch.
    pub fn upward(&self, component: usize, row: &[i16], evidence: Option<&[f64]>, scratch: &mut Scratch) -> f64 {
        let trees = self.trees;
        let mut log = 0.0;
        scratch.told.fill(false);
        for column in trees.ordered(component).rev() {
            let (start, size, code) = (trees.start(component, column), trees.size(column), row[column]);
            let parent = trees.parent(component, column);
            if let Ok(x) = usize::try_from(code) {
                match parent.map(|parent| (parent, usize::try_from(row[parent]))) {
                    None => log += self.log(start + x),
                    Some((_, Ok(p))) => log += self.log(start + p * size + x),
                    Some((parent, Err(_))) => {
                        let above = trees.size(parent);
                        let message = self.message(start, x, above);
                        log += take_in(self.offsets[parent], message, parent, row, evidence, scratch);
                    }
                }
                continue;
            }
            self.begin_belief(column, code, evidence, scratch);
            if !scratch.told[column] {
                continue; // a sum over all levels is 1, whatever the parent
            }
            let belief = &mut scratch.belief[self.offsets[column]..][..size];
            let largest = belief.iter().copied().fold(0.0, f64::max);
            if largest <= 0.0 {
                return f64::NEG_INFINITY;
            }
            for b in belief.iter_mut() {
                *b /= largest;
            }
            log += largest.ln();
            match parent.map(|parent| (parent, usize::try_from(row[parent]))) {
                None => log += dot(&trees.tables[start..][..size], belief).ln(),
                Some((_, Ok(p))) => log += dot(&trees.tables[start + p * size..][..size], belief).ln(),
                Some((parent, Err(_))) => {
                    let above = trees.size(parent);
                    let mut message = std::mem::take(&mut scratch.messages);
                    let own = &mut message[column * self.longest..][..above];
                    for (out, line) in own.iter_mut().zip(trees.tables[start..].chunks_exact(size)) {
                        *out = dot(line, belief);
                    }
                    log += take_in(self.offsets[parent], own, parent, row, evidence, scratch);
                    scratch.messages = message;
                }
            }
        }
        log
    }

    /// A column of an unknown cell that has evidence of its own, and none from below yet.
    fn begin_belief(&self, column: usize, code: i16, evidence: Option<&[f64]>, scratch: &mut Scratch) {
        if code == EVIDENCE && !scratch.told[column] {
            let place = self.offsets[column]..self.offsets[column + 1];
            if let Some(evidence) = evidence {
                scratch.belief[place.clone()].copy_from_slice(&evidence[place]);
            }
            scratch.told[column] = true;
        }
    }

    /// After [`Self::upward`] of the same row: p(level | all that is known) of every unknown cell, in `scratch.posterior`.
    /// `wanted` says of which columns, or columns below them, it is asked for.
    pub fn downward(&self, component: usize, row: &[i16], wanted: &[bool], scratch: &mut Scratch) {
        let trees = self.trees;
        for column in trees.ordered(component) {
            if row[column] >= 0 || !wanted[column] {
                continue;
            }
            let (start, size) = (trees.start(component, column), trees.size(column));
            let place = self.offsets[column];
            let mut posterior = std::mem::take(&mut scratch.posterior);
            let (before, rest) = posterior.split_at_mut(place);
            let (own, after) = rest.split_at_mut(size);
            match trees.parent(component, column).map(|parent| (parent, usize::try_from(row[parent]))) {
                None => own.copy_from_slice(&trees.tables[start..][..size]),
                Some((_, Ok(p))) => own.copy_from_slice(&trees.tables[start + p * size..][..size]),
                Some((parent, Err(_))) => {
                    let at = self.offsets[parent];
                    let above = if at < place { &before[at..] } else { &after[at - place - size..] };
                    let told = scratch.told[column];
                    let message = &scratch.messages[column * self.longest..];
                    own.fill(0.0);
                    for (p, (&above, line)) in
                        above[..trees.size(parent)].iter().zip(trees.tables[start..].chunks_exact(size)).enumerate()
                    {
                        let without = if told { ratio(above, message[p]) } else { above };
                        if without != 0.0 {
                            own.iter_mut().zip(line).for_each(|(own, t)| *own += without * t);
                        }
                    }
                }
            }
            if scratch.told[column] {
                own.iter_mut().zip(&scratch.belief[place..]).for_each(|(own, b)| *own *= b);
            }
            let total: f64 = own.iter().sum();
            if total > 0.0 {
                for own in own.iter_mut() {
                    *own /= total;
                }
            }
            scratch.posterior = posterior;
        }
    }

    /// After [`Self::downward`]: calls `add(place in the tables, probability)` for what is expected of every table.
    pub fn expect(&self, component: usize, row: &[i16], scratch: &Scratch, mut add: impl FnMut(usize, f64)) {
        let trees = self.trees;
        for column in trees.ordered(component) {
            let (start, size) = (trees.start(component, column), trees.size(column));
            let own = &scratch.posterior[self.offsets[column]..][..size];
            let code = usize::try_from(row[column]);
            let parent = trees.parent(component, column).map(|parent| (parent, usize::try_from(row[parent])));
            match (parent, code) {
                (None, Ok(x)) => add(start + x, 1.0),
                (Some((_, Ok(p))), Ok(x)) => add(start + p * size + x, 1.0),
                (None, Err(_)) => own.iter().enumerate().for_each(|(x, &own)| add(start + x, own)),
                (Some((_, Ok(p))), Err(_)) => {
                    own.iter().enumerate().for_each(|(x, &own)| add(start + p * size + x, own));
                }
                (Some((parent, Err(_))), Ok(x)) => {
                    let above = &scratch.posterior[self.offsets[parent]..][..trees.size(parent)];
                    above.iter().enumerate().for_each(|(p, &above)| add(start + p * size + x, above));
                }
                (Some((parent, Err(_))), Err(_)) => {
                    let above = &scratch.posterior[self.offsets[parent]..][..trees.size(parent)];
                    let told = scratch.told[column];
                    let belief = &scratch.belief[self.offsets[column]..][..size];
                    let message = &scratch.messages[column * self.longest..];
                    for (p, (&above, line)) in above.iter().zip(trees.tables[start..].chunks_exact(size)).enumerate() {
                        // p(parent, child | all) = p(parent | all) p(child | parent) belief(child) / message(parent)
                        let without = if told { ratio(above, message[p]) } else { above };
                        for (x, (&t, &b)) in line.iter().zip(belief).enumerate() {
                            add(start + p * size + x, without * t * if told { b } else { 1.0 });
                        }
                    }
                }
            }
        }
    }

    /// Of which columns, or columns below them, a distribution is asked for, in every component.
    pub fn wanted(&self, columns: &[bool]) -> Vec<Vec<bool>> {
        (0..self.trees.components())
            .map(|component| {
                let mut wanted = columns.to_vec();
                for column in self.trees.ordered(component).rev() {
                    if let Some(parent) = self.trees.parent(component, column) {
                        wanted[parent] |= wanted[column];
                    }
                }
                wanted
            })
            .collect()
    }
}

/// Multiplies what is known of an unknown cell by a message from below, and returns the logarithm of a factor taken out.
fn take_in(
    place: usize,
    message: &[f64],
    parent: usize,
    row: &[i16],
    evidence: Option<&[f64]>,
    scratch: &mut Scratch,
) -> f64 {
    let belief = &mut scratch.belief[place..][..message.len()];
    if !scratch.told[parent] {
        scratch.told[parent] = true;
        match evidence {
            Some(evidence) if row[parent] == EVIDENCE => {
                let evidence = &evidence[place..][..message.len()];
                belief.iter_mut().zip(evidence).zip(message).for_each(|((b, e), m)| *b = e * m);
            }
            _ => belief.copy_from_slice(message),
        }
        return 0.0;
    }
    let mut largest = 0.0;
    for (b, m) in belief.iter_mut().zip(message) {
        *b *= m;
        if *b > largest {
            largest = *b;
        }
    }
    if largest < SMALL && largest > 0.0 {
        for b in belief.iter_mut() {
            *b /= largest;
        }
        return largest.ln();
    }
    0.0
}

#[inline]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Four sums side by side: the order does not depend on the machine.
    let mut sums = [0.0; 4];
    let (a4, a_rest) = a.as_chunks::<4>();
    let (b4, b_rest) = b.as_chunks::<4>();
    for (a, b) in a4.iter().zip(b4) {
        for i in 0..4 {
            sums[i] += a[i] * b[i];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

/// a / b, and 0 where b is 0: what is impossible stays so.
#[inline]
pub fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// log p(what is known of each row | component), rows × components.
pub fn log_densities(trees: &Trees, cells: &Cells) -> Vec<f64> {
    let (d, k) = (trees.width(), trees.components());
    let prepared = Prepared::new(trees, cells.codes.len() / d);
    let mut out = vec![0.0; cells.codes.len() / d * k];
    let Ok::<(), Infallible>(()) = threads::for_each(&mut out, PIECE * k, cells.codes.len() * k, |piece, out| {
        let mut scratch = prepared.scratch();
        let rows = &cells.codes[piece * PIECE * d..][..out.len() / k * d];
        let complete: Vec<bool> = rows.chunks_exact(d).map(|row| row.iter().all(|&code| code >= 0)).collect();
        for component in 0..k {
            let places = prepared.places(component);
            for ((row, &complete), out) in rows.chunks_exact(d).zip(&complete).zip(out.chunks_exact_mut(k)) {
                out[component] = if complete {
                    prepared.look_up(&places, row)
                } else {
                    prepared.upward(component, row, cells.evidence, &mut scratch)
                };
            }
        }
        Ok(())
    });
    out
}

/// The distribution of cells given all that is known of their row, mixed over components by `responsibilities` (rows ×
/// components): rows × the levels of the wanted columns, one after the other. A cell that is observed is its level for sure.
pub fn marginals(trees: &Trees, cells: &Cells, responsibilities: &[f64], columns: &[usize]) -> Vec<f64> {
    let (d, k) = (trees.width(), trees.components());
    let prepared = Prepared::new(trees, cells.codes.len() / d);
    let mut asked = vec![false; d];
    for &column in columns {
        asked[column] = true;
    }
    let wanted = prepared.wanted(&asked);
    let width: usize = columns.iter().map(|&column| trees.size(column)).sum();
    let mut out = vec![0.0; cells.codes.len() / d * width];
    let steps = out.len() * k + cells.codes.len() * k;
    let Ok::<(), Infallible>(()) = threads::for_each(&mut out, PIECE * width, steps, |piece, out| {
        let mut scratch = prepared.scratch();
        let first = piece * PIECE;
        for component in 0..k {
            for (i, out) in out.chunks_exact_mut(width).enumerate() {
                let share = responsibilities[(first + i) * k + component];
                if share <= NEGLIGIBLE {
                    continue;
                }
                let row = &cells.codes[(first + i) * d..][..d];
                if columns.iter().any(|&column| row[column] < 0) {
                    prepared.upward(component, row, cells.evidence, &mut scratch);
                    prepared.downward(component, row, &wanted[component], &mut scratch);
                }
                let mut at = 0;
                for &column in columns {
                    let size = trees.size(column);
                    if let Ok(x) = usize::try_from(row[column]) {
                        out[at + x] += share;
                    } else {
                        let found = &scratch.posterior[prepared.offsets[column]..][..size];
                        out[at..at + size].iter_mut().zip(found).for_each(|(out, p)| *out += share * p);
                    }
                    at += size;
                }
            }
        }
        Ok(())
    });
    out
}

/// p(a column is at its last level | what is known of the row, component), rows × components × columns asked for: of a column of
/// numbers that it is none of the repeated values. 0 where the cell is there, or the row is not the component's.
pub fn last_levels(trees: &Trees, cells: &Cells, responsibilities: &[f64], columns: &[usize]) -> Vec<f64> {
    let (d, k) = (trees.width(), trees.components());
    let prepared = Prepared::new(trees, cells.codes.len() / d);
    let mut asked = vec![false; d];
    for &column in columns {
        asked[column] = true;
    }
    let wanted = prepared.wanted(&asked);
    let width = k * columns.len();
    let mut out = vec![0.0; cells.codes.len() / d * width];
    let Ok::<(), Infallible>(()) =
        threads::for_each(&mut out, PIECE * width, cells.codes.len() * k * 50, |piece, out| {
            let mut scratch = prepared.scratch();
            for component in 0..k {
                for (i, out) in out.chunks_exact_mut(width).enumerate() {
                    let number = piece * PIECE + i;
                    let row = &cells.codes[number * d..][..d];
                    let share = responsibilities[number * k + component];
                    if share <= NEGLIGIBLE || columns.iter().all(|&column| row[column] >= 0) {
                        continue;
                    }
                    prepared.upward(component, row, cells.evidence, &mut scratch);
                    prepared.downward(component, row, &wanted[component], &mut scratch);
                    for (at, &column) in columns.iter().enumerate() {
                        if row[column] < 0 {
                            out[component * columns.len() + at] =
                                scratch.posterior[prepared.offsets[column] + trees.size(column) - 1];
                        }
                    }
                }
            }
            Ok(())
        });
    out
}

#[cfg(test)]
pub mod tests {
    use super::super::{UNKNOWN, counts, draw};
    use super::*;

    pub const LEVELS: [i32; 4] = [2, 3, 2, 4];
    const PARENTS: [i32; 4] = [-1, 0, 0, 1];
    const ORDER: [i32; 4] = [0, 1, 2, 3];
    const STARTS: [i64; 4] = [0, 2, 8, 12];

    /// Tables of a tree of four columns, each line adding up to 1.
    pub fn tables() -> Vec<f64> {
        let mut tables: Vec<f64> = (0..24).map(|i| 1.0 + f64::from((i * 7) % 5)).collect();
        for (start, size, lines) in [(0, 2, 1), (2, 3, 2), (8, 2, 2), (12, 4, 3)] {
            for line in tables[start..start + size * lines].chunks_mut(size) {
                let total: f64 = line.iter().sum();
                for p in line.iter_mut() {
                    *p /= total;
                }
            }
        }
        tables
    }

    pub fn tree(tables: &[f64]) -> Trees<'_> {
        Trees { levels: &LEVELS, parents: &PARENTS, order: &ORDER, starts: &STARTS, tables }
    }

    /// p(x) of a whole row.
    fn p(tables: &[f64], x: &[usize; 4]) -> f64 {
        tables[x[0]] * tables[2 + x[0] * 3 + x[1]] * tables[8 + x[0] * 2 + x[2]] * tables[12 + x[1] * 4 + x[3]]
    }

    /// All whole rows, and how likely each is together with what is known.
    fn all(tables: &[f64], row: &[i16], evidence: &[f64]) -> Vec<([usize; 4], f64)> {
        let mut found = vec![];
        for i in 0..48 {
            let x = [i % 2, i / 2 % 3, i / 6 % 2, i / 12];
            let mut weight = p(tables, &x);
            let mut at = 0;
            for (j, &code) in row.iter().enumerate() {
                weight *= match code {
                    UNKNOWN => 1.0,
                    EVIDENCE => evidence[at + x[j]],
                    _ => f64::from(u8::from(code as usize == x[j])),
                };
                at += LEVELS[j] as usize;
            }
            found.push((x, weight));
        }
        found
    }

    pub fn rows() -> Vec<i16> {
        (0..3 * 4 * 3 * 5)
            .flat_map(|i| {
                [i % 3 - 1, i / 3 % 4 - 1, if i / 12 % 3 == 2 { EVIDENCE } else { i / 12 % 3 - 1 }, i / 36 - 1]
            })
            .collect()
    }

    pub const SOFT: [f64; 11] = [0.5, 1.0, 0.2, 0.0, 1.0, 0.3, 0.9, 0.1, 0.2, 0.3, 0.4];

    #[test]
    fn densities_marginals_and_counts_are_sums_over_all_rows() {
        let tables = tables();
        let (trees, codes) = (tree(&tables), rows());
        let cells = Cells { codes: &codes, evidence: Some(&SOFT) };
        assert!(trees.fit() && cells.fit(&LEVELS));
        let logs = log_densities(&trees, &cells);
        let ones = vec![1.0; logs.len()];
        let marginals = marginals(&trees, &cells, &ones, &[0, 1, 2, 3]);
        let mut want_counts = vec![0.0; 24];
        for (i, row) in codes.chunks_exact(4).enumerate() {
            let rows = all(&tables, row, &SOFT);
            let total: f64 = rows.iter().map(|(_, weight)| weight).sum();
            assert!((logs[i] - total.ln()).abs() < 1e-13, "{row:?} {} {}", logs[i], total.ln());
            let mut want = [0.0; 11];
            for (x, weight) in rows {
                let share = weight / total;
                for (j, start) in [0, 2, 5, 7].into_iter().enumerate() {
                    want[start + x[j]] += share;
                }
                for at in [x[0], 2 + x[0] * 3 + x[1], 8 + x[0] * 2 + x[2], 12 + x[1] * 4 + x[3]] {
                    want_counts[at] += share;
                }
            }
            for (got, want) in marginals[i * 11..].iter().zip(want) {
                assert!((got - want).abs() < 1e-13, "{row:?} {got} {want}");
            }
        }
        for (got, want) in counts::expected(&trees, &cells, &ones).iter().zip(want_counts) {
            assert!((got - want).abs() < 1e-10, "{got} {want}");
        }
        let last = last_levels(&trees, &cells, &ones, &[1, 3]);
        for (i, row) in codes.chunks_exact(4).enumerate() {
            for (at, (column, place)) in [(1, 4), (3, 10)].into_iter().enumerate() {
                let want = if row[column] < 0 { marginals[i * 11 + place] } else { 0.0 };
                assert!((last[i * 2 + at] - want).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn draws_have_the_distribution_given_what_is_known() {
        let tables = tables();
        let trees = tree(&tables);
        let codes: Vec<i16> = [UNKNOWN, UNKNOWN, EVIDENCE, 2].repeat(40_000);
        let cells = Cells { codes: &codes, evidence: Some(&SOFT) };
        let drawn = draw::draw(&trees, &cells, &vec![0; 40_000], 7);
        let rows = all(&tables, &codes[..4], &SOFT);
        let total: f64 = rows.iter().map(|(_, weight)| weight).sum();
        for (x, weight) in rows {
            let p = weight / total;
            let count = drawn.chunks_exact(4).filter(|row| row.iter().zip(x).all(|(&a, b)| a as usize == b)).count();
            let away = count as f64 - 40_000.0 * p;
            assert!(away.abs() <= 5.0 * (40_000.0 * p * (1.0 - p)).sqrt(), "{x:?} {count} {p}");
        }
    }

    #[test]
    fn trees_that_are_none_are_refused() {
        let tables = tables();
        for (parents, order) in [
            ([-1, 0, 0, 3], ORDER),
            ([-1, 0, 0, 1], [0, 3, 1, 2]),
            ([-1, -1, 0, 1], ORDER),
            ([-1, 0, 0, 9], ORDER),
            ([-1, 0, 0, 1], [0, 1, 1, 3]),
        ] {
            let broken = Trees { levels: &LEVELS, parents: &parents, order: &order, starts: &STARTS, tables: &tables };
            assert!(!broken.fit(), "{parents:?} {order:?}");
        }
        assert!(!tree(&tables[..20]).fit());
        assert!(!Cells { codes: &[0, 0, 0, 4], evidence: None }.fit(&LEVELS));
        assert!(!Cells { codes: &[0, 0, EVIDENCE, 0], evidence: None }.fit(&LEVELS));
    }
}
