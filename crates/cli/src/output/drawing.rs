//! The file of a drawing: SVG, or PNG if its name says so; in a folder of drawings both.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::{Exit, NewFile, warn, write_file};

/// A drawing's file, opened before the measurement.
#[derive(Debug)]
pub struct DrawingFile {
    file: NewFile,
    is_png: bool,
}

/// Pixels of a PNG for each pixel of the SVG: sharp on screens of today, and in print.
const ENLARGED: f32 = 2.0;

impl DrawingFile {
    /// Opens a file, and creates its folder.
    ///
    /// # Errors
    /// If the name cannot be written to.
    pub fn begin(path: &Path) -> Result<Self, Exit> {
        let extension = path.extension();
        Ok(DrawingFile {
            file: NewFile::begin(path)?,
            is_png: extension.is_some_and(|extension| extension.eq_ignore_ascii_case("png")),
        })
    }

    /// Writes a drawing, which is given as SVG.
    ///
    /// # Errors
    /// If the file system refuses, or this machine has no font for a PNG.
    pub fn write(self, svg: &str) -> Result<(), Exit> {
        if !self.is_png {
            return self.file.write(svg);
        }
        let png = png(svg).map_err(Exit::failed)?;
        write_png(self.file, &png)
    }
}

/// Writes a rendered drawing, whole or not at all.
fn write_png(mut file: NewFile, png: &[u8]) -> Result<(), Exit> {
    match file.write_all(png) {
        Ok(()) => file.finish(),
        Err(error) => Err(file.failed(&error)),
    }
}

/// Writes a drawing into a folder, which is created: `NAME.svg`, and `NAME.png` beside it, for slides. Without a font on
/// this machine there is no PNG, and a warning.
///
/// # Errors
/// If the file system refuses.
pub fn write_beside(folder: &Path, name: &str, svg: &str) -> Result<(), Exit> {
    write_file(&folder.join(format!("{name}.svg")), svg)?;
    let path = folder.join(format!("{name}.png"));
    match png(svg) {
        Ok(png) => write_png(NewFile::begin(&path)?, &png),
        Err(reason) => {
            warn(&format!("{}: not written: {reason}", path.display()));
            Ok(())
        }
    }
}

/// The fonts of this machine, looked for once for all drawings; nothing if it has none.
static FONTS: LazyLock<Option<Arc<fontdb::Database>>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_system_fonts();
    let family = family(&fonts)?;
    fonts.set_sans_serif_family(family);
    Some(Arc::new(fonts))
});

/// Renders a drawing with the fonts of this machine.
fn png(svg: &str) -> Result<Vec<u8>, String> {
    let fonts = FONTS.as_ref().ok_or(
        "no font on this machine for a PNG: expected one, such as `apt install fonts-dejavu-core`, or a file \
         that ends with .svg",
    )?;
    let options = Options {
        fontdb: Arc::clone(fonts),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
    let size = tree.size();
    let [width, height] = [size.width(), size.height()].map(|side| (side * ENLARGED).ceil() as u32);
    let mut page = Pixmap::new(width, height).ok_or("an empty drawing")?;
    let enlarged = Transform::from_scale(ENLARGED, ENLARGED);
    resvg::render(&tree, enlarged, &mut page.as_mut());
    page.encode_png().map_err(|error| error.to_string())
}

/// The family that stands for sans-serif: a usual one, or any.
fn family(fonts: &fontdb::Database) -> Option<String> {
    let usual = [
        "DejaVu Sans",
        "Liberation Sans",
        "Noto Sans",
        "Arial",
        "Helvetica",
    ];
    let has = |name: &str| {
        let families = [fontdb::Family::Name(name)];
        let query = fontdb::Query {
            families: &families,
            ..fontdb::Query::default()
        };
        fonts.query(&query).is_some()
    };
    let found = usual.into_iter().find(|name| has(name)).map(str::to_owned);
    let any = || {
        let mut faces = fonts.faces();
        faces
            .next()
            .and_then(|face| Some(face.families.first()?.0.clone()))
    };
    found.or_else(any)
}
