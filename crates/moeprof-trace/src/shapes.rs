//! Distinct launch shapes as codes from 0, in order of first appearance.

use crate::columns::Shape;
use crate::intern::mix;

#[derive(Debug, Default)]
pub(crate) struct Shapes {
    /// Codes plus one by hash; 0 is a free place. Their number is a power of two.
    places: Vec<u32>,
    distinct: Vec<Shape>,
    last: u32,
}

impl Shapes {
    /// Returns the code of a shape, a new one where it has none; None where there are no more codes.
    #[inline]
    pub(crate) fn code(&mut self, shape: &Shape) -> Option<u32> {
        if self.distinct.get(self.last as usize) == Some(shape) {
            return Some(self.last);
        }
        self.find(shape)
    }

    fn find(&mut self, shape: &Shape) -> Option<u32> {
        if (self.distinct.len() + 1) * 2 > self.places.len() {
            self.grow();
        }
        let mask = self.places.len().checked_sub(1)?;
        let mut index = hash(shape) & mask;
        loop {
            let place = self.places.get_mut(index)?;
            let Some(code) = place.checked_sub(1) else {
                let code = u32::try_from(self.distinct.len()).ok()?;
                *place = code.checked_add(1)?;
                self.distinct.push(*shape);
                self.last = code;
                return Some(code);
            };
            if self.distinct.get(code as usize) == Some(shape) {
                self.last = code;
                return Some(code);
            }
            index = (index + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.places = vec![0; (self.places.len() * 2).max(256)];
        let mask = self.places.len() - 1;
        for (code, shape) in (1..).zip(&self.distinct) {
            let mut index = hash(shape) & mask;
            while self.places.get(index).is_some_and(|&place| place != 0) {
                index = (index + 1) & mask;
            }
            if let Some(place) = self.places.get_mut(index) {
                *place = code;
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Shape> {
        self.distinct.iter()
    }

    /// Returns one of the numbers of a shape.
    pub(crate) fn number(shape: &Shape, index: usize) -> Option<u64> {
        let (present, numbers) = shape.split_first()?;
        numbers.get(index).copied().filter(|_| present >> index & 1 == 1)
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the low bits of a hash are a hash")]
fn hash(shape: &Shape) -> usize {
    let (pairs, _) = shape.as_chunks::<2>();
    pairs.iter().fold(0x9e37_79b9_7f4a_7c15, |hash: u64, [left, right]| {
        mix(left ^ hash ^ 0xd1b5_4a32_d192_ed03, right ^ 0x8cb9_2ba7_2f3d_8dd7)
    }) as usize
}
