//! Class counts of rows at the nodes of trees: at leaves they add, and those of other nodes are their sums.

use super::{Cells, Forest, Labels, SPREAD};
use crate::threads;

/// What each of some groups has of each class: those classes that it has, in their order.
#[derive(Default)]
pub struct Sparse<T> {
    /// where the classes of each group begin, and the last ones end
    pub starts: Vec<i64>,
    pub classes: Vec<i32>,
    pub values: Vec<T>,
}

impl<T> Sparse<T> {
    fn new() -> Self {
        Self { starts: vec![0], classes: Vec::new(), values: Vec::new() }
    }

    fn close(&mut self) {
        self.starts.push(self.classes.len() as i64);
    }

    /// Groups after groups.
    fn append(&mut self, other: Self) {
        let before = self.classes.len() as i64;
        self.starts.extend(other.starts[1..].iter().map(|start| start + before));
        self.classes.extend(other.classes);
        self.values.extend(other.values);
    }
}

/// The same, borrowed.
#[derive(Clone, Copy)]
pub struct SparseView<'a, T> {
    pub starts: &'a [i64],
    pub classes: &'a [i32],
    pub values: &'a [T],
}

impl<'a, T> SparseView<'a, T> {
    /// Whether these are classes, in their order, of so many groups.
    pub fn fits(&self, groups: usize, classes: usize) -> bool {
        self.starts.len() == groups + 1
            && self.starts[0] == 0
            && self.starts[groups] as usize == self.classes.len()
            && self.values.len() == self.classes.len()
            && self.starts.windows(2).all(|pair| pair[0] <= pair[1])
            && self.starts.windows(2).all(|pair| {
                let own = &self.classes[pair[0] as usize..pair[1] as usize];
                own.windows(2).all(|two| two[0] < two[1])
                    && own.first().is_none_or(|&class| class >= 0)
                    && own.last().is_none_or(|&class| (class as usize) < classes)
            })
    }

    #[inline]
    pub(super) fn of(&self, group: usize) -> (&'a [i32], &'a [T]) {
        let own = self.starts[group] as usize..self.starts[group + 1] as usize;
        (&self.classes[own.clone()], &self.values[own])
    }
}

/// The class weights of rows at the leaves of all trees, in the order of nodes. Rows of a negative class are in none.
pub fn at_leaves(forest: &Forest, cells: Cells, labels: &Labels) -> Sparse<f64> {
    let steps = forest.trees() * cells.rows() * 20;
    let parts = threads::map(forest.trees(), steps, |tree| of_tree(forest, tree, cells, labels));
    let mut all = Sparse::new();
    for part in parts {
        all.append(part);
    }
    all
}

fn of_tree(forest: &Forest, tree: usize, cells: Cells, labels: &Labels) -> Sparse<f64> {
    let tree = forest.tree(tree);
    // the number of each leaf among the leaves
    let mut numbers = Vec::with_capacity(tree.splits.len());
    let mut leaves = 0;
    for node in 0..tree.splits.len() {
        numbers.push(leaves);
        leaves += u32::from(tree.split(node).feature().is_none());
    }
    let known: Vec<u32> = (0..cells.rows() as u32).filter(|&row| labels.codes[row as usize] >= 0).collect();
    let mut of_rows = vec![0; known.len()];
    tree.leaves(cells, &known, &mut of_rows);
    let mut ends = vec![0u32; leaves as usize + 1];
    for leaf in &mut of_rows {
        *leaf = numbers[(*leaf & !SPREAD) as usize];
        ends[*leaf as usize + 1] += 1;
    }
    for leaf in 0..leaves as usize {
        ends[leaf + 1] += ends[leaf];
    }
    // the rows of each leaf, in their order
    let mut rows = vec![0u32; of_rows.len()];
    for (&row, &leaf) in known.iter().zip(&of_rows) {
        let end = &mut ends[leaf as usize];
        rows[*end as usize] = row;
        *end += 1;
    }
    let mut found = Sparse::new();
    let mut counts = vec![0.0; labels.classes];
    let mut present = Vec::new();
    let mut first = 0;
    for &last in &ends[..leaves as usize] {
        for &row in &rows[first as usize..last as usize] {
            let (class, weight) = (labels.class(row as usize), labels.weight(row as usize));
            if counts[class] == 0.0 && weight > 0.0 {
                present.push(class);
            }
            counts[class] += weight;
        }
        present.sort_unstable();
        for class in present.drain(..) {
            found.classes.push(class as i32);
            found.values.push(std::mem::take(&mut counts[class]));
        }
        found.close();
        first = last;
    }
    found
}

/// The class weights at all nodes, from those at the leaves, and the weight of all classes together.
pub fn at_nodes(forest: &Forest, leaves: SparseView<f64>) -> (Sparse<f32>, Vec<f32>) {
    let parts = threads::map(forest.trees(), leaves.classes.len() * 40, |tree| nodes_of_tree(forest, tree, leaves));
    let (mut all, mut totals) = (Sparse::new(), Vec::new());
    for (part, of_nodes) in parts {
        all.append(part);
        totals.extend(of_nodes);
    }
    (all, totals)
}

fn nodes_of_tree(forest: &Forest, number: usize, leaves: SparseView<f64>) -> (Sparse<f32>, Vec<f32>) {
    let tree = forest.tree(number);
    let mut leaf = forest.first_leaf(number + 1);
    // from the last node to the first, so that children come before their parent: where each begins and ends
    let mut ranges = vec![(0, 0); tree.splits.len()];
    let (mut classes, mut values) = (Vec::new(), Vec::new());
    for node in (0..tree.splits.len()).rev() {
        let split = tree.split(node);
        let first = classes.len();
        if split.feature().is_none() {
            leaf -= 1;
            let (own, weights) = leaves.of(leaf);
            classes.extend_from_slice(own);
            values.extend_from_slice(weights);
        } else {
            let (mut one, mut other) = (ranges[split.child()], ranges[split.child() + 1]);
            while one.0 < one.1 || other.0 < other.1 {
                let take_one = other.0 == other.1 || (one.0 < one.1 && classes[one.0] <= classes[other.0]);
                let (class, mut value): (i32, f64) =
                    if take_one { (classes[one.0], values[one.0]) } else { (classes[other.0], values[other.0]) };
                if take_one {
                    one.0 += 1;
                    if other.0 < other.1 && classes[other.0] == class {
                        value += values[other.0];
                        other.0 += 1;
                    }
                } else {
                    other.0 += 1;
                }
                classes.push(class);
                values.push(value);
            }
        }
        ranges[node] = (first, classes.len());
    }
    let totals = ranges.iter().map(|&(first, last)| values[first..last].iter().sum::<f64>() as f32).collect();
    let mut found = Sparse::new();
    for (first, last) in ranges {
        found.classes.extend_from_slice(&classes[first..last]);
        found.values.extend(values[first..last].iter().map(|&value| value as f32));
        found.close();
    }
    (found, totals)
}
