//! Things with small numbers for names, which are used again.

/// Places, some of them empty.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    empty: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            empty: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.empty.len()
    }

    /// The place of the next one that is put in.
    pub(super) fn next(&self) -> u32 {
        self.empty
            .last()
            .copied()
            .unwrap_or(self.places.len() as u32)
    }

    /// Puts one in, and names its place.
    pub(super) fn insert(&mut self, thing: T) -> u32 {
        if let Some(place) = self.empty.pop() {
            self.places[place as usize] = Some(thing);
            return place;
        }
        self.places.push(Some(thing));
        (self.places.len() - 1) as u32
    }

    /// The one in the place.
    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.places.get_mut(place as usize)?.as_mut()
    }

    /// Takes it out.
    pub(super) fn remove(&mut self, place: u32) -> Option<T> {
        let thing = self.places.get_mut(place as usize)?.take();
        if thing.is_some() {
            self.empty.push(place);
        }
        thing
    }
}
