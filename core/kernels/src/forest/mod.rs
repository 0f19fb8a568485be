//! Forests of classification trees as a density: the shape of each tree comes from a sample of rows, and what it says from the
//! class counts of all rows at its nodes, which add.
//!
//! Cells are codes: 0 is missing, 255 missing in a way that says nothing, numbers are 1 … 254 in their order, and categories
//! 1 … 254 in any. The nodes of a tree stand in breadth-first order, so the children of its split number k are its nodes 2k + 1
//! and 2k + 2, and need not be written down.

pub mod counts;
mod gain;
pub mod grow;
pub mod score;
#[cfg(test)]
mod tests;

/// The column of a node that is not split.
pub const LEAF: u16 = u16::MAX;
/// A cell that is missing, as cells of its column were when trees were grown.
pub const MISSING: u8 = 0;
/// A cell that is missing for another reason.
pub const UNKNOWN: u8 = u8::MAX;

/// Where missing cells go: this bit says to the left, where rows are counted.
const LEFT: u8 = 1;
/// No cell was missing at the node: they go to the larger side to be counted, and to both sides to be scored.
const NEVER: u8 = 2;

/// No tree is deeper.
const DEEPEST: usize = 60;

/// Words of 64 bits of a set of codes.
const WORDS: usize = 4;
type Mask = [u64; WORDS];

#[inline]
fn holds(mask: &[u64], code: u8) -> bool {
    mask[usize::from(code >> 6)] >> (code & 63) & 1 == 1
}

/// Rows of cells, row after row.
#[derive(Clone, Copy)]
pub struct Cells<'a> {
    pub codes: &'a [u8],
    pub width: usize,
}

impl<'a> Cells<'a> {
    pub fn rows(&self) -> usize {
        self.codes.len().checked_div(self.width).unwrap_or(0)
    }

    #[inline]
    fn row(&self, row: usize) -> &'a [u8] {
        &self.codes[row * self.width..][..self.width]
    }
}

/// The class of each row, below `classes`, and how much it counts.
#[derive(Clone, Copy)]
pub struct Labels<'a> {
    pub classes: usize,
    pub codes: &'a [i32],
    pub weights: Option<&'a [f64]>,
}

impl Labels<'_> {
    #[inline]
    fn class(&self, row: usize) -> usize {
        self.codes[row] as usize
    }

    #[inline]
    fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }
}

/// Which rows a tree is grown on: a hash of each, by its content, and the share of hashes that are in a tree's sample.
#[derive(Clone, Copy)]
pub struct Sampling<'a> {
    pub hashes: &'a [u64],
    pub rate: f64,
    pub seed: u64,
}

impl Sampling<'_> {
    /// The seed of a tree.
    fn of_tree(&self, tree: usize) -> u64 {
        mix(self.seed ^ mix(tree as u64))
    }

    /// Whether a row of this hash is in the sample of the tree of a seed.
    #[inline]
    fn takes(&self, hash: u64, tree: u64) -> bool {
        (mix(hash ^ tree) >> 11) as f64 * (1.0 / (1u64 << 53) as f64) < self.rate
    }
}

/// A number each bit of which depends on all bits of the one given, by the end of splitmix64.
#[inline]
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The nodes of trees, tree after tree, as files have them.
#[derive(Clone, Copy)]
pub struct Nodes<'a> {
    /// where the nodes of each tree begin, and the last ones end
    pub starts: &'a [i64],
    /// the column that each node splits, or [`LEAF`]
    pub features: &'a [u16],
    /// the largest code of numbers that goes to the left
    pub cuts: &'a [u8],
    /// where missing cells go
    pub missing: &'a [u8],
    /// for each split of categories, in the order of nodes: which codes go to the left
    pub masks: &'a [u64],
}

/// What a split needs, in a word that is read at once.
#[derive(Clone, Copy)]
struct Split(u64);

impl Split {
    const CATEGORIES: u8 = 4;
    /// No split: whatever a row has in column 0, it stays at the node, which is its own left child.
    const LEAF: u8 = 8;

    fn new(feature: u16, cut: u8, flags: u8, child: u32) -> Self {
        Self(u64::from(feature) | u64::from(cut) << 16 | u64::from(flags) << 24 | u64::from(child) << 32)
    }

    fn leaf(node: u32) -> Self {
        Self::new(0, u8::MAX, Self::LEAF | LEFT, node)
    }

    #[inline]
    fn column(self) -> usize {
        usize::from(self.0 as u16)
    }

    /// The column, if it is not a leaf.
    #[inline]
    fn feature(self) -> Option<usize> {
        (!self.has(Self::LEAF)).then_some(self.column())
    }

    #[inline]
    fn cut(self) -> u8 {
        (self.0 >> 16) as u8
    }

    #[inline]
    fn has(self, flag: u8) -> bool {
        (self.0 >> 24) as u8 & flag != 0
    }

    /// Whether a cell goes to both sides, to be scored.
    #[inline]
    fn both(self, code: u8) -> bool {
        !self.has(Self::LEAF) && (code == UNKNOWN || (code == MISSING && self.has(NEVER)))
    }

    /// The left child, by its number in the tree; the right one is next.
    #[inline]
    fn child(self) -> usize {
        (self.0 >> 32) as usize
    }
}

/// What nodes are made into, once for all rows that are sent down.
pub struct Layout {
    /// what each split needs, in a word that is read at once
    pub splits: Vec<u64>,
    /// the parent of each node, by its number in the tree
    pub parents: Vec<u32>,
    /// of each node that splits categories, the number of its mask; empty if there is none
    pub numbers: Vec<u32>,
}

impl Layout {
    /// The layout of trees over columns of which some are `categories`; `None` if the nodes are not those of trees.
    pub fn of(nodes: Nodes, categories: &[bool]) -> Option<Self> {
        let n = nodes.features.len();
        let sized = nodes.cuts.len() == n
            && nodes.missing.len() == n
            && nodes.missing.iter().all(|&flags| flags <= LEFT + NEVER)
            && nodes.starts.first() == Some(&0)
            && nodes.starts.last().is_some_and(|&end| usize::try_from(end) == Ok(n))
            && nodes.starts.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] <= i64::from(SPREAD))
            && nodes.masks.len().is_multiple_of(WORDS);
        if !sized {
            return None;
        }
        let (mut splits, mut parents) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut numbers = if nodes.masks.is_empty() { Vec::new() } else { vec![0; n] };
        let mut masks = 0;
        for pair in nodes.starts.windows(2) {
            let (first, last) = (pair[0] as usize, pair[1] as usize);
            let mut child = 1;
            parents.push(0);
            // where the nodes of this depth end, and how many there have been
            let (mut level, mut depth) = (1, 0);
            for node in 0..last - first {
                if node == level {
                    (level, depth) = (child, depth + 1);
                }
                // no split leads here
                if node >= child {
                    return None;
                }
                let feature = nodes.features[first + node];
                if feature == LEAF {
                    splits.push(Split::leaf(node as u32).0);
                    continue;
                }
                if depth == DEEPEST {
                    return None;
                }
                let mut flags = nodes.missing[first + node];
                if *categories.get(usize::from(feature))? {
                    flags |= Split::CATEGORIES;
                    *numbers.get_mut(first + node)? = masks as u32;
                    masks += 1;
                }
                splits.push(Split::new(feature, nodes.cuts[first + node], flags, child as u32).0);
                parents.extend([node as u32; 2]);
                child += 2;
            }
            if child != last - first {
                return None;
            }
        }
        (masks * WORDS == nodes.masks.len()).then_some(Self { splits, parents, numbers })
    }
}

/// Trees that rows can be sent down.
#[derive(Clone, Copy)]
pub struct Forest<'a> {
    pub starts: &'a [i64],
    pub splits: &'a [u64],
    pub parents: &'a [u32],
    pub numbers: &'a [u32],
    pub masks: &'a [u64],
}

impl<'a> Forest<'a> {
    pub fn trees(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of leaves of all trees.
    pub fn leaves(&self) -> usize {
        usize::midpoint(self.splits.len(), self.trees())
    }

    fn tree(&self, tree: usize) -> Tree<'a> {
        let (first, last) = (self.starts[tree] as usize, self.starts[tree + 1] as usize);
        let numbers = if self.numbers.is_empty() { &[][..] } else { &self.numbers[first..last] };
        Tree {
            first,
            splits: &self.splits[first..last],
            parents: &self.parents[first..last],
            numbers,
            masks: self.masks,
        }
    }

    /// Where the leaves of each tree begin among all.
    fn first_leaf(&self, tree: usize) -> usize {
        usize::midpoint(self.starts[tree] as usize, tree)
    }
}

/// One of the trees.
#[derive(Clone, Copy)]
struct Tree<'a> {
    /// the number of its root among the nodes of all trees
    first: usize,
    splits: &'a [u64],
    parents: &'a [u32],
    numbers: &'a [u32],
    masks: &'a [u64],
}

impl Tree<'_> {
    #[inline]
    fn split(&self, node: usize) -> Split {
        Split(self.splits[node])
    }

    /// Whether a cell that is there goes to the left.
    #[inline]
    fn left(&self, node: usize, split: Split, code: u8) -> bool {
        if split.has(Split::CATEGORIES) {
            holds(&self.masks[self.numbers[node] as usize * WORDS..], code)
        } else {
            code <= split.cut()
        }
    }

    /// Where a row is counted below a split.
    #[inline]
    fn counted(&self, node: usize, split: Split, code: u8) -> usize {
        let left = self.left(node, split, code);
        // either of the two codes of missing cells, without a branch
        let left = if code.wrapping_add(1) <= 1 { split.has(LEFT) } else { left };
        split.child() + usize::from(!left)
    }

    /// The leaves in which some rows are counted; with the bit [`SPREAD`] if they are to be scored by several. Rows take turns,
    /// so that none waits for the memory that another asks for.
    fn leaves(&self, cells: Cells, rows: &[u32], leaves: &mut [u32]) {
        for (rows, leaves) in rows.chunks(LANES).zip(leaves.chunks_mut(LANES)) {
            // if there are fewer, the last one takes the other turns, too
            let rows: [&[u8]; LANES] = std::array::from_fn(|lane| cells.row(rows[lane.min(rows.len() - 1)] as usize));
            let (mut nodes, mut spread) = ([0; LANES], [false; LANES]);
            let mut moved = true;
            while moved {
                moved = false;
                for lane in 0..LANES {
                    let node = nodes[lane];
                    let split = self.split(node);
                    let code = rows[lane][split.column()];
                    spread[lane] |= split.both(code);
                    nodes[lane] = self.counted(node, split, code);
                    moved |= nodes[lane] != node;
                }
            }
            for (lane, leaf) in leaves.iter_mut().enumerate() {
                *leaf = nodes[lane] as u32 | (u32::from(spread[lane]) * SPREAD);
            }
        }
    }
}

/// So many rows are sent down a tree at a time.
const LANES: usize = 8;
/// On its way to the leaf a row would have to go to both sides, to be scored.
const SPREAD: u32 = 1 << 31;
