//! Growing trees by entropy: the best cut of some columns, or the better one of a random cut in each.
//!
//! Each tree is grown on rows whose hash is in its sample, in the order of the hashes: neither the order of rows nor how often
//! each is written matters. What is random in a tree comes of its own seed, so threads do not matter either.

use super::gain::{Lengths, Node, Scan, Weight};
use super::{Cells, DEEPEST, LEAF, LEFT, Labels, MISSING, Mask, NEVER, Sampling, UNKNOWN, WORDS, holds, mix};
use crate::threads;
use std::sync::atomic::{AtomicBool, Ordering};

/// So many trees, each split by the best of some columns that vary at the node.
#[derive(Clone, Copy)]
pub struct Kind {
    pub trees: usize,
    pub columns: usize,
    /// one cut at random in each column, in place of the best
    pub random: bool,
}

/// The nodes of trees; see [`super::Nodes`].
#[derive(Default)]
pub struct Grown {
    pub starts: Vec<i64>,
    pub features: Vec<u16>,
    pub cuts: Vec<u8>,
    pub missing: Vec<u8>,
    pub masks: Vec<u64>,
}

/// Grows trees on rows of which some columns hold categories. Rows of the same hash and class are to be equal.
/// Once it is told to stop, no other tree is begun, and what is returned is of no use.
pub fn grow(
    cells: Cells,
    categories: &[bool],
    labels: &Labels,
    sampling: &Sampling,
    kinds: &[Kind],
    stop: &AtomicBool,
) -> Grown {
    let sorted = Sorted::of(cells, labels, sampling.hashes);
    let total: f64 = sorted.weights.iter().sum();
    if sorted.weights.iter().all(|w| w.fract() == 0.0) && total < f64::from(u32::MAX) {
        grow_weighed::<u32>(&sorted, categories, labels.classes, sampling, kinds, stop)
    } else {
        grow_weighed::<f64>(&sorted, categories, labels.classes, sampling, kinds, stop)
    }
}

fn grow_weighed<W: Weight>(
    sorted: &Sorted,
    categories: &[bool],
    classes: usize,
    sampling: &Sampling,
    kinds: &[Kind],
    stop: &AtomicBool,
) -> Grown {
    let rows = Rows {
        columns: &sorted.columns,
        number: sorted.classes.len(),
        categories,
        classes,
        lengths: Lengths::up_to(sorted.weights.iter().sum()),
    };
    let weights: Vec<W> = sorted.weights.iter().map(|&weight| W::of(weight)).collect();
    let of_trees: Vec<Kind> = kinds.iter().flat_map(|&kind| std::iter::repeat_n(kind, kind.trees)).collect();
    let steps = of_trees.len() * rows.number * 1000;
    let trees = threads::map(of_trees.len(), steps, |tree| {
        if stop.load(Ordering::Relaxed) {
            return Grown::default();
        }
        let seed = sampling.of_tree(tree);
        let taken: Vec<u32> =
            (0..rows.number as u32).filter(|&row| sampling.takes(sorted.hashes[row as usize], seed)).collect();
        let sample = (0..).zip(&taken).map(|(row, &taken)| {
            let class = sorted.classes[taken as usize];
            Sampled { row, class, weight: weights[taken as usize] }
        });
        let (sample, columns) = (sample.collect(), rows.of_sample(&taken));
        Grower::new(&rows, columns, sample, of_trees[tree], seed).grown()
    });
    let mut all = Grown { starts: vec![0], ..Grown::default() };
    for tree in trees {
        all.features.extend(tree.features);
        all.cuts.extend(tree.cuts);
        all.missing.extend(tree.missing);
        all.masks.extend(tree.masks);
        all.starts.push(all.features.len() as i64);
    }
    all
}

/// Rows in the order of their hashes, equal ones together, column after column.
struct Sorted {
    columns: Vec<u8>,
    hashes: Vec<u64>,
    classes: Vec<u16>,
    weights: Vec<f64>,
}

impl Sorted {
    fn of(cells: Cells, labels: &Labels, hashes: &[u64]) -> Self {
        let mut order: Vec<u32> = (0..cells.rows() as u32).filter(|&row| labels.weight(row as usize) > 0.0).collect();
        order.sort_unstable_by(|&one, &other| {
            let (i, j) = (one as usize, other as usize);
            (hashes[i], labels.codes[i]).cmp(&(hashes[j], labels.codes[j])).then_with(|| {
                labels.weight(i).total_cmp(&labels.weight(j)) // so that sums are the same in any order
            })
        });
        let mut sorted = Self { columns: Vec::new(), hashes: Vec::new(), classes: Vec::new(), weights: Vec::new() };
        let mut kept = Vec::with_capacity(order.len());
        for row in order {
            let i = row as usize;
            let (hash, class) = (hashes[i], labels.codes[i] as u16);
            if sorted.hashes.last() == Some(&hash) && sorted.classes.last() == Some(&class) {
                if let Some(weight) = sorted.weights.last_mut() {
                    *weight += labels.weight(i);
                }
            } else {
                kept.push(row);
                sorted.hashes.push(hash);
                sorted.classes.push(class);
                sorted.weights.push(labels.weight(i));
            }
        }
        sorted.columns = vec![0; kept.len() * cells.width];
        for (at, &row) in kept.iter().enumerate() {
            for (column, &code) in cells.row(row as usize).iter().enumerate() {
                // to a tree that is grown, a cell is missing or not
                sorted.columns[column * kept.len() + at] = if code == UNKNOWN { MISSING } else { code };
            }
        }
        sorted
    }
}

/// All that trees share.
struct Rows<'a> {
    columns: &'a [u8],
    number: usize,
    categories: &'a [bool],
    classes: usize,
    lengths: Lengths,
}

impl Rows<'_> {
    /// The cells of some rows, column after column: nearer to each other than those of all.
    fn of_sample(&self, taken: &[u32]) -> Vec<u8> {
        let mut columns = Vec::with_capacity(self.categories.len() * taken.len());
        for column in self.columns.chunks_exact(self.number.max(1)) {
            columns.extend(taken.iter().map(|&row| column[row as usize]));
        }
        columns
    }
}

/// A row of a tree's sample, by its number there.
#[derive(Clone, Copy, Default)]
pub struct Sampled<W> {
    pub row: u32,
    pub class: u16,
    pub weight: W,
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        drawn
    }

    /// A whole number below n.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The best split that was found of a node.
#[derive(Clone, Copy)]
struct Best {
    value: f64,
    column: usize,
    /// the largest number that goes to the left, or codes of categories that do
    cut: u8,
    mask: Mask,
    /// whether missing cells go to the left; `None` if there are none
    missing: Option<bool>,
}

impl Best {
    fn left(&self, category: bool, code: u8) -> bool {
        if code == MISSING {
            self.missing == Some(true)
        } else if category {
            holds(&self.mask, code)
        } else {
            code <= self.cut
        }
    }
}

/// What is known of a column at a node, before it is cut.
#[derive(Clone, Copy)]
struct Range {
    low: u8,
    high: u8,
    missing: bool,
}

/// A node whose rows wait to be split.
struct Waiting {
    first: u32,
    last: u32,
    depth: u32,
}

/// So many rows are sorted by insertion.
const FEW: usize = 24;
/// Of more rows, those that follow each other are counted apart, so that no sum waits for the one before.
const LANES: usize = 4;

struct Grower<'a, W> {
    rows: &'a Rows<'a>,
    /// the cells of the sample, column after column
    columns: Vec<u8>,
    number: usize,
    /// the rows of each node side by side
    sample: Vec<Sampled<W>>,
    kind: Kind,
    random: Random,
    grown: Grown,
    waiting: Vec<Waiting>,
    /// for each waiting node, the columns that do not vary: a set of bits
    constant: Vec<u64>,
    /// columns, in the order in which they were last drawn
    drawn: Vec<u32>,
    node: Node<W>,
    scan: Scan<W>,
    /// the codes of the node's rows in the column that is looked at
    codes: Vec<u8>,
    sorted: Vec<(u8, u16, W)>,
    /// codes × classes
    table: Vec<W>,
    /// of each class, in some copies
    left: Vec<W>,
    /// a random weight of each class
    order: Vec<f64>,
    /// of each code, the mean of the weights of its classes
    sums: Vec<(f64, f64)>,
    spare: Vec<Sampled<W>>,
}

impl<'a, W: Weight> Grower<'a, W> {
    fn new(rows: &'a Rows<'a>, columns: Vec<u8>, sample: Vec<Sampled<W>>, kind: Kind, seed: u64) -> Self {
        let n = sample.len();
        let width = rows.categories.len();
        Self {
            rows,
            columns,
            number: n,
            kind,
            random: Random(mix(seed)),
            grown: Grown::default(),
            waiting: vec![Waiting { first: 0, last: n as u32, depth: 0 }],
            constant: vec![0; width.div_ceil(64)],
            drawn: (0..width as u32).collect(),
            node: Node::new(rows.classes),
            scan: Scan::new(rows.classes),
            codes: vec![0; n],
            sorted: vec![(0, 0, W::default()); n],
            table: vec![W::default(); 256 * rows.classes],
            left: vec![W::default(); LANES * rows.classes],
            order: vec![0.0; rows.classes],
            sums: vec![(0.0, 0.0); 256],
            spare: vec![Sampled::default(); n],
            sample,
        }
    }

    fn grown(mut self) -> Grown {
        let mut node = 0;
        while node < self.waiting.len() {
            let Waiting { first, last, depth } = self.waiting[node];
            let (first, last) = (first as usize, last as usize);
            self.node.count(&self.sample[first..last], &self.rows.lengths);
            let best = if self.node.present.len() < 2 || depth as usize == DEEPEST {
                None
            } else {
                self.best(node, first, last)
            };
            match best {
                Some(best) => self.split(node, best),
                None => self.write(LEAF, 0, 0),
            }
            node += 1;
        }
        self.grown
    }

    fn write(&mut self, feature: u16, cut: u8, missing: u8) {
        self.grown.features.push(feature);
        self.grown.cuts.push(cut);
        self.grown.missing.push(missing);
    }

    /// The best split of some columns, drawn at random among those that vary.
    fn best(&mut self, node: usize, first: usize, last: usize) -> Option<Best> {
        let words = self.rows.categories.len().div_ceil(64);
        let threshold = self.node.threshold(&self.rows.lengths);
        let mut best = Best { value: threshold, column: 0, cut: 0, mask: [0; WORDS], missing: None };
        let (mut tried, mut at) = (0, 0);
        // with one class on either side nothing is left to gain
        let all = -1e-9 * self.node.weight.number();
        while at < self.drawn.len() && tried < self.kind.columns && best.value < all {
            let other = at + self.random.below(self.drawn.len() - at);
            self.drawn.swap(at, other);
            let column = self.drawn[at] as usize;
            at += 1;
            let (word, bit) = (node * words + column / 64, 1 << (column % 64));
            if self.constant[word] & bit != 0 {
                continue;
            }
            let Some(range) = self.range(column, first, last) else {
                self.constant[word] |= bit;
                continue;
            };
            tried += 1;
            if self.rows.categories[column] {
                self.cut_categories(column, first, last, range, &mut best);
            } else if self.kind.random {
                self.cut_randomly(column, first, last, range, &mut best);
            } else {
                self.cut_best(column, first, last, range, &mut best);
            }
        }
        (best.value > threshold).then_some(best)
    }

    /// Reads the codes of a column; `None` if it does not vary.
    fn range(&mut self, column: usize, first: usize, last: usize) -> Option<Range> {
        let cells = &self.columns[column * self.number..][..self.number];
        let rows = &self.sample[first..last];
        let codes = &mut self.codes[..rows.len()];
        // the lowest code less 1, so that missing cells are the largest
        let (mut lowest, mut low, mut high) = (u8::MAX, u8::MAX, 0);
        let mut see = |code: u8| {
            lowest = lowest.min(code);
            low = low.min(code.wrapping_sub(1));
            high = high.max(code);
        };
        if rows.len() <= FEW {
            for (code, each) in codes.iter_mut().zip(rows) {
                *code = cells[each.row as usize];
                see(*code);
            }
        } else {
            for (code, each) in codes.iter_mut().zip(rows) {
                *code = cells[each.row as usize];
            }
            for &code in &*codes {
                see(code);
            }
        }
        let (low, missing) = (low.wrapping_add(1), lowest == MISSING);
        (high != MISSING && (low < high || missing)).then_some(Range { low, high, missing })
    }

    /// A cut at random, and one more if there are missing cells: these on the left, then on the right.
    fn cut_randomly(&mut self, column: usize, first: usize, last: usize, range: Range, best: &mut Best) {
        for missing in [true, false] {
            if !missing && !range.missing {
                break;
            }
            if missing && range.low == range.high {
                continue; // all would be on the left
            }
            let cut = range.low + self.random.below(usize::from(range.high - range.low)) as u8;
            // a code is at most the cut; or, less 1, at most the cut less 1, which no missing cell is
            let (less, most) = if missing { (0, cut) } else { (1, cut - 1) };
            self.count_left(first, last, less, most);
            let value = self.node.value(&self.left, &self.rows.lengths);
            if value > best.value {
                *best = Best { value, column, cut, mask: [0; WORDS], missing: range.missing.then_some(missing) };
            }
        }
    }

    /// Counts the classes of rows whose code, less a number, is at most another.
    fn count_left(&mut self, first: usize, last: usize, less: u8, most: u8) {
        let k = self.rows.classes;
        let lanes = if last - first <= FEW { 1 } else { LANES };
        for &class in &self.node.present {
            (0..lanes).for_each(|lane| self.left[lane * k + class] = W::default());
        }
        let rows = &self.sample[first..last];
        let codes = &self.codes[..rows.len()];
        let class = |i: usize| usize::from(rows[i].class);
        let moved = |i: usize| if codes[i].wrapping_sub(less) <= most { rows[i].weight } else { W::default() };
        let mut i = 0;
        if lanes == LANES {
            let (one, rest) = self.left.split_at_mut(k);
            let (two, rest) = rest.split_at_mut(k);
            let (three, four) = rest.split_at_mut(k);
            while i + LANES <= codes.len() {
                one[class(i)] += moved(i);
                two[class(i + 1)] += moved(i + 1);
                three[class(i + 2)] += moved(i + 2);
                four[class(i + 3)] += moved(i + 3);
                i += LANES;
            }
            for &class in &self.node.present {
                one[class] += two[class];
                one[class] += three[class];
                one[class] += four[class];
            }
        }
        while i < codes.len() {
            self.left[class(i)] += moved(i);
            i += 1;
        }
    }

    /// Orders categories by the mean of a random weight of each class, and cuts that order.
    fn cut_categories(&mut self, column: usize, first: usize, last: usize, range: Range, best: &mut Best) {
        for &class in &self.node.present {
            self.order[class] = self.random.uniform();
        }
        let sums = &mut self.sums;
        sums[usize::from(range.low)..=usize::from(range.high)].fill((0.0, 0.0));
        for (&code, each) in self.codes.iter().zip(&self.sample[first..last]) {
            let (sum, total) = &mut sums[usize::from(code)];
            *sum += each.weight.number() * self.order[usize::from(each.class)];
            *total += each.weight.number();
        }
        let mut levels = [0; 256];
        let mut number = 0;
        for code in range.low..=range.high {
            let (sum, total) = sums[usize::from(code)];
            if total > 0.0 {
                sums[usize::from(code)].0 = sum / total;
                levels[number] = code;
                number += 1;
            }
        }
        let levels = &mut levels[..number];
        levels.sort_by(|&one, &other| sums[usize::from(one)].0.total_cmp(&sums[usize::from(other)].0));
        let mut ranks = [0; 256];
        for (rank, &code) in (1..).zip(levels.iter()) {
            ranks[usize::from(code)] = rank;
        }
        for code in &mut self.codes[..last - first] {
            *code = ranks[usize::from(*code)];
        }
        let of_ranks = Range { low: 1, high: number as u8, missing: range.missing };
        let before = best.value;
        if self.kind.random {
            self.cut_randomly(column, first, last, of_ranks, best);
        } else {
            self.cut_best(column, first, last, of_ranks, best);
        }
        if best.value > before {
            best.mask = [0; WORDS];
            for &code in &levels[..usize::from(best.cut)] {
                best.mask[usize::from(code >> 6)] |= 1 << (code & 63);
            }
            best.cut = 0;
        }
    }

    /// The best cut of a column; missing cells are first on the left, then on the right.
    fn cut_best(&mut self, column: usize, first: usize, last: usize, range: Range, best: &mut Best) {
        let size = (usize::from(range.high - range.low) + 1) * self.rows.classes;
        if size <= last - first {
            self.tabled(first, last);
            self.scan_table(column, range, best);
        } else {
            self.sort(first, last, range);
            self.scan_sorted(column, last - first, range, best);
        }
    }

    /// Adds the rows of a node up by code and class.
    fn tabled(&mut self, first: usize, last: usize) {
        for (&code, each) in self.codes.iter().zip(&self.sample[first..last]) {
            self.table[usize::from(code) * self.rows.classes + usize::from(each.class)] += each.weight;
        }
    }

    fn scan_table(&mut self, column: usize, range: Range, best: &mut Best) {
        let k = self.rows.classes;
        for missing in [true, false] {
            if !missing && !range.missing {
                break;
            }
            self.scan.begin(&self.node);
            if missing && range.missing {
                self.shift_code(MISSING);
                self.judge(column, 0, Some(true), best);
            }
            for code in range.low..range.high {
                if self.shift_code(code) {
                    self.judge(column, code, range.missing.then_some(missing), best);
                }
            }
        }
        if range.missing {
            self.table[..k].fill(W::default());
        }
        self.table[usize::from(range.low) * k..(usize::from(range.high) + 1) * k].fill(W::default());
    }

    /// Moves the rows of a code to the left, if there are any.
    #[inline]
    fn shift_code(&mut self, code: u8) -> bool {
        let k = self.rows.classes;
        let mut any = false;
        for (class, &weight) in self.table[usize::from(code) * k..][..k].iter().enumerate() {
            if weight != W::default() {
                self.scan.shift(class, weight, &self.rows.lengths);
                any = true;
            }
        }
        any
    }

    #[inline]
    fn judge(&self, column: usize, cut: u8, missing: Option<bool>, best: &mut Best) {
        let value = self.scan.value(&self.rows.lengths);
        if value > best.value {
            *best = Best { value, column, cut, mask: [0; WORDS], missing };
        }
    }

    /// Sorts the rows of a node by code.
    fn sort(&mut self, first: usize, last: usize, range: Range) {
        let n = last - first;
        let rows = self.codes[..n].iter().zip(&self.sample[first..last]);
        let rows = rows.map(|(&code, each)| (code, each.class, each.weight));
        if n <= FEW {
            for (i, row) in rows.enumerate() {
                let mut at = i;
                while at > 0 && self.sorted[at - 1].0 > row.0 {
                    self.sorted[at] = self.sorted[at - 1];
                    at -= 1;
                }
                self.sorted[at] = row;
            }
            return;
        }
        let mut ends = [0u32; 256];
        for &code in &self.codes[..n] {
            ends[usize::from(code)] += 1;
        }
        let mut before = ends[0];
        ends[0] = 0;
        for end in &mut ends[usize::from(range.low)..=usize::from(range.high)] {
            before += std::mem::replace(end, before);
        }
        for row in rows {
            let end = &mut ends[usize::from(row.0)];
            self.sorted[*end as usize] = row;
            *end += 1;
        }
    }

    fn scan_sorted(&mut self, column: usize, n: usize, range: Range, best: &mut Best) {
        let missing_cells =
            if range.missing { self.sorted[..n].iter().take_while(|row| row.0 == MISSING).count() } else { 0 };
        for missing in [true, false] {
            if !missing && !range.missing {
                break;
            }
            self.scan.begin(&self.node);
            let begin = if missing { 0 } else { missing_cells };
            for i in begin..n - 1 {
                let (code, class, weight) = self.sorted[i];
                self.scan.shift(usize::from(class), weight, &self.rows.lengths);
                if code != self.sorted[i + 1].0 {
                    self.judge(column, code, range.missing.then_some(missing), best);
                }
            }
        }
    }

    /// Writes a split, and sends the node's rows to either side, each in the order in which they were.
    fn split(&mut self, node: usize, best: Best) {
        let Waiting { first, last, depth } = self.waiting[node];
        let (first, last) = (first as usize, last as usize);
        let category = self.rows.categories[best.column];
        let cells = &self.columns[best.column * self.number..][..self.number];
        let mut seen = [0; WORDS];
        let (mut left, mut right) = (first, 0);
        let mut weight_left = W::default();
        for i in first..last {
            let each = self.sample[i];
            let code = cells[each.row as usize];
            if category {
                seen[usize::from(code >> 6)] |= 1 << (code & 63);
            }
            // both are written, and the one that is right stays
            let to_left = best.left(category, code);
            self.sample[left] = each;
            self.spare[right] = each;
            left += usize::from(to_left);
            right += usize::from(!to_left);
            weight_left += if to_left { each.weight } else { W::default() };
        }
        self.sample[left..last].copy_from_slice(&self.spare[..right]);
        let larger_left = 2.0 * weight_left.number() >= self.node.weight.number();
        let missing = match best.missing {
            Some(left) => u8::from(left) * LEFT,
            None => NEVER | (u8::from(larger_left) * LEFT),
        };
        if category {
            // categories that the node has not seen go to the larger side
            let more = |word: usize| if larger_left { !seen[word] } else { 0 };
            self.grown.masks.extend((0..WORDS).map(|word| best.mask[word] | more(word)));
        }
        self.write(best.column as u16, best.cut, missing);
        let words = self.rows.categories.len().div_ceil(64);
        for (first, last) in [(first, left), (left, last)] {
            self.waiting.push(Waiting { first: first as u32, last: last as u32, depth: depth + 1 });
            self.constant.extend_from_within(node * words..(node + 1) * words);
        }
    }
}
