//! Trees of columns of levels: p(x) = p(root) Π p(column | its parent), and mixtures of such trees.
//!
//! A level is a category, a repeated value or a bin of a number. Cells may be observed, unknown, or have evidence that is not
//! a level: how likely it is under each one. Sums over what is unknown are exact, by messages from leaves to root (upward), and
//! from root to leaves (downward).

pub mod counts;
pub mod draw;
pub mod hidden;
pub mod information;
pub mod left_out;
pub mod messages;

/// A cell of which nothing is known.
pub const UNKNOWN: i16 = -1;
/// A cell whose column has evidence, the same in all rows: the likelihood of every level.
pub const EVIDENCE: i16 = -2;

/// A smaller responsibility counts nowhere: it is beyond the last digit of any sum.
const NEGLIGIBLE: f64 = 1e-14;

/// Trees over the same columns, one for each component of a mixture.
///
/// A column's table in a tree is p(level) if it is the root, else p(level | level of the parent), row after row of the parent.
pub struct Trees<'a> {
    /// how many levels every column has
    pub levels: &'a [i32],
    /// components × columns: the parent of each column, −1 for the root
    pub parents: &'a [i32],
    /// components × columns: columns in an order in which parents come before their children
    pub order: &'a [i32],
    /// where the table of each column of each component begins
    pub starts: &'a [i64],
    pub tables: &'a [f64],
}

impl<'a> Trees<'a> {
    pub fn width(&self) -> usize {
        self.levels.len()
    }

    pub fn components(&self) -> usize {
        if self.levels.is_empty() { 0 } else { self.parents.len() / self.levels.len() }
    }

    /// The number of levels of a column.
    pub fn size(&self, column: usize) -> usize {
        self.levels[column] as usize
    }

    /// The parent of a column, if it is not the root.
    #[inline]
    pub fn parent(&self, component: usize, column: usize) -> Option<usize> {
        usize::try_from(self.parents[component * self.width() + column]).ok()
    }

    /// Columns of a component, parents before children.
    pub fn ordered(&self, component: usize) -> impl DoubleEndedIterator<Item = usize> + use<'a> {
        let width = self.width();
        self.order[component * width..][..width].iter().map(|&column| column as usize)
    }

    /// The size of a column's table.
    pub fn table_size(&self, component: usize, column: usize) -> usize {
        self.size(column) * self.parent(component, column).map_or(1, |parent| self.size(parent))
    }

    /// The place of a column's table among all.
    #[inline]
    pub fn start(&self, component: usize, column: usize) -> usize {
        self.starts[component * self.width() + column] as usize
    }

    /// Whether parents, orders and tables are those of trees: what the kernels rely on.
    pub fn fit(&self) -> bool {
        let (d, k) = (self.width(), self.components());
        let sized = d > 0
            && k > 0
            && self.levels.iter().all(|&size| size > 0 && size <= i32::from(i16::MAX))
            && self.parents.len() == k * d
            && self.order.len() == k * d
            && self.starts.len() == k * d;
        sized
            && (0..k).all(|component| {
                let mut seen = vec![false; d];
                self.order[component * d..][..d].iter().enumerate().all(|(at, &column)| {
                    let Some(column) = usize::try_from(column).ok().filter(|&column| column < d && !seen[column])
                    else {
                        return false;
                    };
                    seen[column] = true;
                    let parent = self.parents[component * d + column];
                    let rooted = match usize::try_from(parent) {
                        Ok(parent) => at > 0 && parent < d && parent != column && seen[parent],
                        Err(_) => at == 0 && parent == -1,
                    };
                    rooted
                        && usize::try_from(self.starts[component * d + column]).is_ok_and(|start| {
                            start
                                .checked_add(self.table_size(component, column))
                                .is_some_and(|end| end <= self.tables.len())
                        })
                })
            })
    }
}

/// Rows of cells: rows × columns of levels, or [`UNKNOWN`], or [`EVIDENCE`].
pub struct Cells<'a> {
    pub codes: &'a [i16],
    /// the likelihood of every level of every column, column after column
    pub evidence: Option<&'a [f64]>,
}

impl Cells<'_> {
    /// Whether codes are levels of their columns, and there is evidence where it is asked for.
    pub fn fit(&self, levels: &[i32]) -> bool {
        let least = if self.evidence.is_some() { EVIDENCE } else { UNKNOWN };
        let sized = self.evidence.is_none_or(|e| e.len() == levels.iter().map(|&size| size as usize).sum::<usize>());
        sized
            && self.codes.len().is_multiple_of(levels.len())
            && self.codes.chunks_exact(levels.len()).all(|row| {
                row.iter().zip(levels).fold(true, |fit, (&code, &size)| fit & (code >= least && i32::from(code) < size))
            })
    }
}

/// Where the levels of each column begin, if they lie column after column; the last is how many there are.
pub fn offsets(levels: &[i32]) -> Vec<usize> {
    std::iter::once(0)
        .chain(levels.iter().scan(0, |end, &size| {
            *end += size as usize;
            Some(*end)
        }))
        .collect()
}
