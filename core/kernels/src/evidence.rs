//! What words say of classes, discounted by groups of words: the sums of evidence of each group, row by row.
//!
//! The evidence of word w for class c is ℓ = log [(n_cw / p_w + u_c) / (n_c + u_c)], with n_cw its amount in the class, n_c
//! that of all words, u_c the number of different words that the class has, and p_w the share of the word by the
//! number of classes that have it. A word that the class never had is evidence log [u_c / (n_c + u_c)] against it, the same
//! for all such words: so only pairs of a word and a class that has it are stored and visited.
//!
//! Words are grouped by their order (one word, or several), by how many documents have them, and by how much they tell of the
//! class. In each group, evidence for and evidence against is summed apart.

use crate::sparse::rises;
use crate::threads;

/// How many documents make a word frequent, and very frequent.
const FREQUENT: [f64; 2] = [4.0, 64.0];
/// What is left of a count when all of it was taken away, up to rounding.
const NOTHING: f64 = 1e-9;
/// Less evidence than this, of all words of a group in a row, is what rounding leaves of none. That depends on the parts that sums
/// were added up from, and what is fitted to evidence must not.
const ROUNDING: f64 = 1e-9;

/// What is known of every word: the classes that have it, in rising order, its amount in each, and their documents.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    pub starts: &'a [i64],
    pub classes: &'a [i32],
    pub amounts: &'a [f64],
    pub documents: &'a [f64],
    /// 0 for single words, 1 for longer units.
    pub orders: &'a [u8],
}

/// Rows as counts of known words, transformed as amounts are; `scales` makes amounts of the row's counts.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub starts: &'a [i64],
    pub words: &'a [i32],
    pub counts: &'a [f32],
    pub classes: &'a [i32],
    pub weights: &'a [f64],
    pub scales: &'a [f64],
}

/// What is known of the classes.
#[derive(Clone)]
pub struct Classes {
    /// The amount of all words, the number of different words, and the weight of the documents.
    pub amounts: Vec<f64>,
    pub different: Vec<f64>,
    pub documents: Vec<f64>,
}

/// Where words are cut into groups by what they tell, for each order.
#[derive(Clone, Copy)]
pub struct Groups<'a> {
    pub edges: [&'a [f64]; 2],
}

impl Groups<'_> {
    /// The number of groups of both orders.
    pub fn len(&self) -> usize {
        2 * self.of_order()
    }

    fn of_order(&self) -> usize {
        1 + FREQUENT.len() * (self.edges[0].len() + 1)
    }

    fn group(&self, order: u8, documents: f64, information: f64) -> usize {
        let edges = self.edges[usize::from(order.min(1))];
        let first = usize::from(order.min(1)) * self.of_order();
        if documents < FREQUENT[0] {
            return first;
        }
        let position = edges.partition_point(|&edge| edge <= information);
        first + 1 + usize::from(documents >= FREQUENT[1]) * (edges.len() + 1) + position
    }
}

/// One class that has a word: how much of it, and in how many documents.
#[derive(Clone, Copy)]
struct Has {
    class: usize,
    amount: f64,
    documents: f64,
}

impl Words<'_> {
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether all arrays fit together, for so many classes.
    pub fn fits(&self, classes: usize) -> bool {
        let n = self.classes.len();
        self.amounts.len() == n
            && self.documents.len() == n
            && self.orders.len() == self.len()
            && rises(self.starts, n)
            && self.classes.iter().all(|&class| class >= 0 && (class as usize) < classes)
    }

    fn has(&self, word: usize) -> impl Iterator<Item = Has> + '_ {
        (self.starts[word] as usize..self.starts[word + 1] as usize).map(|i| Has {
            class: self.classes[i] as usize,
            amount: self.amounts[i],
            documents: self.documents[i],
        })
    }
}

impl Rows<'_> {
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub fn fits(&self, words: usize, classes: usize) -> bool {
        let (n, m) = (self.words.len(), self.len());
        self.counts.len() == n
            && [self.classes.len(), self.weights.len(), self.scales.len()] == [m, m, m]
            && rises(self.starts, n)
            && self.words.iter().all(|&word| word >= 0 && (word as usize) < words)
            && self.classes.iter().all(|&class| class >= 0 && (class as usize) < classes)
    }

    fn pairs(&self, row: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        (self.starts[row] as usize..self.starts[row + 1] as usize).map(|i| (self.words[i] as usize, self.counts[i]))
    }
}

impl Classes {
    pub fn of(words: Words, documents: &[f64]) -> Self {
        let k = documents.len();
        let mut classes = Self { amounts: vec![0.0; k], different: vec![0.0; k], documents: documents.to_vec() };
        for (i, &class) in words.classes.iter().enumerate() {
            classes.amounts[class as usize] += words.amounts[i];
            classes.different[class as usize] += 1.0;
        }
        classes
    }

    /// p(class), with half a document more in each.
    pub fn priors(&self) -> Vec<f64> {
        let total: f64 = self.documents.iter().map(|n| n + 0.5).sum();
        self.documents.iter().map(|n| (n + 0.5) / total).collect()
    }

    /// What a word that a class never had says against it.
    pub fn against(&self) -> Vec<f64> {
        let of = |(&n, &u): (&f64, &f64)| -(n / u.max(1.0)).ln_1p();
        self.amounts.iter().zip(&self.different).map(of).collect()
    }
}

/// What words say, given what is known of the classes.
pub struct Evidence {
    different: Vec<f64>,
    logs: Vec<f64>,
    priors: Vec<f64>,
    /// The number of pairs of a word and a class that has it.
    pairs: f64,
}

impl Evidence {
    pub fn given(classes: &Classes) -> Self {
        let different: Vec<f64> = classes.different.iter().map(|u| u.max(1.0)).collect();
        Self {
            logs: classes.amounts.iter().zip(&different).map(|(n, u)| (n + u).ln()).collect(),
            priors: classes.priors(),
            pairs: classes.different.iter().sum(),
            different,
        }
    }

    /// How much a word tells of the class (the divergence from the priors of the classes), and its documents.
    fn information(&self, has: &[Has]) -> (f64, f64) {
        let documents: f64 = has.iter().map(|h| h.documents).sum();
        let of = |documents_here: f64, prior: f64| {
            let q = (documents_here + 2.0 * prior) / (documents + 2.0);
            q * (q / prior).ln()
        };
        let rest = 1.0 - has.iter().map(|h| self.priors[h.class]).sum::<f64>();
        let absent = rest.max(0.0) * 2.0 / (documents + 2.0) * (2.0 / (documents + 2.0)).ln();
        (absent + has.iter().map(|h| of(h.documents, self.priors[h.class])).sum::<f64>(), documents)
    }

    fn of(&self, h: &Has, classes_with_word: usize) -> f64 {
        let share = classes_with_word as f64 / self.pairs;
        (h.amount / share + self.different[h.class]).ln() - self.logs[h.class]
    }
}

/// For every word how much it tells and its documents; for every pair of a word and a class, the evidence.
pub fn solve(words: Words, classes: &Classes) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let evidence = Evidence::given(classes);
    let step = 1 << 14;
    let parts = threads::map(words.len().div_ceil(step), words.classes.len() * 30, |piece| {
        let mut out = (Vec::new(), Vec::new(), Vec::new());
        let mut has = Vec::new();
        for word in piece * step..((piece + 1) * step).min(words.len()) {
            has.clear();
            has.extend(words.has(word));
            let (information, documents) = evidence.information(&has);
            out.0.push(information);
            out.1.push(documents);
            out.2.extend(has.iter().map(|h| evidence.of(h, has.len())));
        }
        out
    });
    let mut all = (Vec::new(), Vec::new(), Vec::new());
    for (information, documents, evidence) in parts {
        all.0.extend(information);
        all.1.extend(documents);
        all.2.extend(evidence);
    }
    all
}

/// The group of every word.
pub fn groups(orders: &[u8], documents: &[f64], information: &[f64], groups: Groups) -> Vec<u8> {
    orders
        .iter()
        .zip(documents)
        .zip(information)
        .map(|((&order, &n), &information)| groups.group(order, n, information) as u8)
        .collect()
}

/// Evidence of rows, group by group. Row i has the columns from `starts[i]` to the next, in rising order: those of groups of
/// which it has evidence, for a class and, after all of these, against it; and each has a number for every class.
#[derive(Default)]
pub struct Scored {
    pub starts: Vec<i64>,
    pub columns: Vec<u8>,
    pub evidence: Vec<f32>,
    /// The priors of the classes for every fold.
    pub priors: Vec<f64>,
}

/// Scores each row as if no row of its fold had been learned. `folds` holds where each fold's rows begin, and where the last
/// one's end.
pub fn out_of_fold(words: Words, classes: &Classes, rows: Rows, folds: &[usize], by: Groups) -> Scored {
    let mut parts = threads::map(folds.len().saturating_sub(1), rows.words.len() * 100, |fold| {
        without_fold(words, classes, rows, folds[fold]..folds[fold + 1], by)
    });
    let mut all = Scored { starts: vec![0], ..Scored::default() };
    all.evidence.reserve_exact(parts.iter().map(|part| part.evidence.len()).sum());
    for part in &mut parts {
        let before = all.columns.len() as i64;
        all.starts.extend(part.starts.iter().map(|end| before + end));
        all.columns.append(&mut part.columns);
        all.evidence.append(&mut part.evidence);
        all.priors.append(&mut part.priors);
    }
    all
}

fn without_fold(words: Words, classes: &Classes, rows: Rows, fold: std::ops::Range<usize>, by: Groups) -> Scored {
    let (k, groups) = (classes.documents.len(), by.len());
    let mut others = classes.clone();
    // The words of the fold in the order of their first appearance, as which the rows' pairs are noted, and what all folds
    // have of each.
    let (mut local, mut pairs) = (vec![u32::MAX; words.len()], Vec::new());
    let (mut touched, mut starts) = (Vec::new(), vec![0]);
    let (mut has, mut left) = (Vec::new(), Vec::new());
    for (word, count) in fold.clone().flat_map(|row| rows.pairs(row)) {
        if local[word] == u32::MAX {
            local[word] = touched.len() as u32;
            touched.push(word);
            left.extend(words.has(word));
            has.extend(left[starts[touched.len() - 1]..].iter().map(|h| h.class as u32));
            starts.push(left.len());
        }
        pairs.push((local[word] as usize, count));
    }
    let first = rows.starts[fold.start];
    let pairs = |row: usize| &pairs[(rows.starts[row] - first) as usize..(rows.starts[row + 1] - first) as usize];
    for row in fold.clone() {
        let (class, weight) = (rows.classes[row] as usize, rows.weights[row]);
        others.documents[class] = (others.documents[class] - weight).max(0.0);
        for &(word, count) in pairs(row) {
            // A class that never had the word is of rows that were not among those learned.
            if let Some(position) = has[starts[word]..starts[word + 1]].iter().position(|&c| c == class as u32) {
                let h = &mut left[starts[word] + position];
                h.amount -= weight * rows.scales[row] * f64::from(count);
                h.documents -= weight;
            }
        }
    }
    // What the other folds have of each, and what that says.
    for (own, &word) in touched.iter().enumerate() {
        for (h, had) in left[starts[own]..starts[own + 1]].iter_mut().zip(words.has(word)) {
            if h.documents <= NOTHING * had.documents {
                others.amounts[h.class] -= had.amount;
                others.different[h.class] -= 1.0;
                h.documents = 0.0;
            } else {
                others.amounts[h.class] -= had.amount - h.amount;
                h.amount = h.amount.max(0.0);
            }
        }
    }
    let evidence = Evidence::given(&others);
    let against = others.against();
    let mut said: Vec<(u32, f32)> = Vec::with_capacity(left.len());
    let (mut group_of, mut kept) = (Vec::with_capacity(touched.len()), Vec::new());
    for (own, &word) in touched.iter().enumerate() {
        kept.clear();
        kept.extend(left[starts[own]..starts[own + 1]].iter().filter(|h| h.documents > 0.0));
        let (information, documents) = evidence.information(&kept);
        group_of.push(by.group(words.orders[word], documents, information));
        starts[own] = said.len();
        said.extend(kept.iter().map(|h| (h.class as u32, evidence.of(h, kept.len()) as f32)));
    }
    starts[touched.len()] = said.len();
    // Summed with more digits than are kept, so that the order of the words does not show.
    let mut out = Scored { priors: others.priors(), ..Scored::default() };
    let (mut sums, mut all) = (vec![0.0; groups], Vec::new());
    let (mut there, mut slots) = (Vec::with_capacity(groups), vec![0; groups]);
    for row in fold {
        // a word that no other fold has says nothing
        let own = || pairs(row).iter().filter(|(word, _)| starts[*word] < starts[*word + 1]);
        sums.fill(0.0);
        own().for_each(|&(word, count)| sums[group_of[word]] += f64::from(count));
        there.clear();
        there.extend(own().map(|&(word, _)| group_of[word]));
        there.sort_unstable();
        there.dedup();
        there.iter().enumerate().for_each(|(slot, &group)| slots[group] = slot);
        all.clear();
        all.resize(2 * there.len() * k, 0.0);
        let (for_class, against_class) = all.split_at_mut(there.len() * k);
        for &(word, count) in own() {
            let (first, count) = (slots[group_of[word]] * k, f64::from(count));
            for &(class, evidence) in &said[starts[word]..starts[word + 1]] {
                let (class, evidence) = (class as usize, f64::from(evidence));
                let to = if evidence > 0.0 { &mut *for_class } else { &mut *against_class };
                to[first + class] += count * evidence;
                against_class[first + class] -= count * against[class];
            }
        }
        for (own, &group) in against_class.chunks_mut(k).zip(&there) {
            own.iter_mut().zip(&against).for_each(|(o, a)| *o += sums[group] * a);
        }
        for (slot, own) in all.chunks(k).enumerate() {
            if own.iter().any(|x| x.abs() >= ROUNDING) {
                let side = if slot < there.len() { 0 } else { groups };
                out.columns.push((there[slot % there.len()] + side) as u8);
                out.evidence.extend(own.iter().map(|&x| if x.abs() < ROUNDING { 0.0 } else { x as f32 }));
            }
        }
        out.starts.push(out.columns.len() as i64);
    }
    out
}
