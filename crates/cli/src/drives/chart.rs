//! A line chart of Braille dots, eight to a character, for terminals.

/// A chart, with its size in characters.
pub struct Chart {
    width: usize,
    height: usize,
    cells: Vec<u8>,
}

/// The first of the 256 Braille patterns.
const BRAILLE: u32 = 0x2800;

/// The bit of each dot of a Braille pattern, column by column, from the top.
const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

impl Chart {
    /// An empty chart.
    pub fn new(width: usize, height: usize) -> Self {
        Chart {
            width,
            height,
            cells: vec![0; width * height],
        }
    }

    /// The number of dots in a row.
    pub fn columns(&self) -> usize {
        2 * self.width
    }

    /// Sets the dot of a column at a share (0 to 1) of the height.
    pub fn set(&mut self, column: usize, share: f64) {
        let rows = 4 * self.height;
        let row = rows - 1 - ((share.clamp(0.0, 1.0) * rows as f64) as usize).min(rows - 1);
        self.cells[row / 4 * self.width + column / 2] |= DOTS[column % 2][row % 4];
    }

    /// The lines, from the top.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.cells.chunks(self.width).map(|cells| {
            let pattern = |&dots: &u8| char::from_u32(BRAILLE + u32::from(dots)).unwrap_or(' ');
            cells.iter().map(pattern).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Chart;

    #[test]
    fn dots_are_where_they_were_set() {
        let mut chart = Chart::new(2, 1);
        chart.set(0, 0.0);
        chart.set(3, 1.0);
        assert_eq!(chart.lines().collect::<Vec<_>>(), ["⡀⠈"]);
    }
}
