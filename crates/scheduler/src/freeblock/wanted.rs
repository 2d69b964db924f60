//! stub
#![allow(missing_docs)]
use block::*;
use drive::Geometry;
#[derive(Clone, Debug)]
pub struct Wanted {
    bits: Vec<bool>,
    left: u64,
}
impl Wanted {
    pub fn all(g: &Geometry) -> Self {
        let n = g.sectors().0;
        Wanted {
            bits: vec![true; n as usize],
            left: n,
        }
    }
    pub fn capacity(&self) -> u64 {
        self.bits.len() as u64
    }
    pub fn left(&self) -> u64 {
        self.left
    }
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
    pub fn is(&self, l: u64) -> bool {
        self.bits[l as usize]
    }
    pub fn remove(&mut self, e: Extent) -> u64 {
        let mut n = 0;
        for l in e.start().0..e.end().0 {
            if std::mem::take(&mut self.bits[l as usize]) {
                n += 1;
            }
        }
        self.left -= n;
        n
    }
    pub fn union_with(&mut self, o: &Wanted) {
        for (a, b) in self.bits.iter_mut().zip(&o.bits) {
            if *b && !*a {
                *a = true;
                self.left += 1;
            }
        }
    }
}
