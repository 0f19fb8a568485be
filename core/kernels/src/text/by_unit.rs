//! What classes have of each unit, from the parts that were read: class by class before, unit by unit after.

use crate::simd::prefetch;

/// Units looked at ahead.
const AHEAD: usize = 16;

/// What one class has of one unit; three numbers that add up.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Amount {
    pub count: f64,
    pub share: f64,
    pub documents: f64,
}

impl Amount {
    pub fn add(&mut self, other: Self, factor: f64) {
        self.count += factor * other.count;
        self.share += factor * other.share;
        self.documents += factor * other.documents;
    }
}

/// For each unit the classes that have it, in rising order, and how much.
#[derive(Default, Debug, PartialEq)]
pub struct ByUnit {
    pub starts: Vec<i64>,
    pub classes: Vec<i32>,
    pub amounts: Vec<Amount>,
}

/// What a run of documents has of one class.
pub struct Part {
    pub class: usize,
    pub units: Vec<u32>,
    pub amounts: Vec<Amount>,
    pub documents: f64,
    pub log_size: f64,
    pub sizes: Vec<f64>,
}

/// Puts the parts, in the order of their classes, together unit by unit.
pub fn by_unit(parts: &[Part], units: usize) -> ByUnit {
    // Of each unit, how many classes have it, and the last that was seen: the same may come in several parts.
    let mut seen = vec![(0_u32, u32::MAX); units];
    for part in parts {
        for (i, &unit) in part.units.iter().enumerate() {
            expect(&seen, part.units.get(i + AHEAD));
            let (classes, last) = &mut seen[unit as usize];
            *classes += u32::from(*last != part.class as u32);
            *last = part.class as u32;
        }
    }
    let mut starts = Vec::with_capacity(units + 1);
    starts.push(0);
    starts.extend(seen.iter().scan(0, |end, (classes, _)| {
        *end += i64::from(*classes);
        Some(*end)
    }));
    let mut positions: Vec<(i64, u32)> = starts[..units].iter().map(|&start| (start, u32::MAX)).collect();
    let total = starts[units] as usize;
    let (mut classes, mut amounts) = (vec![-1; total], vec![Amount::default(); total]);
    for part in parts {
        for (i, (&unit, &amount)) in part.units.iter().zip(&part.amounts).enumerate() {
            expect(&positions, part.units.get(i + 2 * AHEAD));
            if let Some(&later) = part.units.get(i + AHEAD) {
                prefetch(&amounts[(positions[later as usize].0 as usize).min(total - 1)]);
            }
            let (position, last) = &mut positions[unit as usize];
            if *last == part.class as u32 {
                amounts[*position as usize - 1].add(amount, 1.0);
                continue;
            }
            classes[*position as usize] = part.class as i32;
            amounts[*position as usize] = amount;
            *position += 1;
            *last = part.class as u32;
        }
    }
    ByUnit { starts, classes, amounts }
}

fn expect<T>(positions: &[T], unit: Option<&u32>) {
    if let Some(&unit) = unit {
        prefetch(&positions[unit as usize]);
    }
}
