//! What an installation has beside the binary: completions of shells, and manual pages.
//!
//! Both are generated from the definitions of the command line, so that they cannot differ from it.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::{Exit, print, write_file};

/// The arguments of `headtime completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell that completes
    shell: Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  headtime completions bash > ~/.local/share/bash-completion/completions/headtime
      bash of this user, from the next shell on
  headtime completions zsh > ~/.zfunc/_headtime
      zsh, if ~/.zfunc is in its fpath
  headtime completions fish > ~/.config/fish/completions/headtime.fish
      fish";

/// The arguments of `headtime man-pages`.
#[derive(Debug, Args)]
#[command(after_help = MAN_PAGES_EXAMPLES)]
pub struct ManPagesArgs {
    /// The folder of the pages. It is created
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

const MAN_PAGES_EXAMPLES: &str = "\
Example:
  headtime man-pages ~/.local/share/man/man1
      pages of this user: man headtime, man headtime-serve";

/// Prints the completions of `program` for a shell.
///
/// # Errors
/// If the output is closed.
pub fn completions(arguments: &CompletionsArgs, mut program: Command) -> Result<(), Exit> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "headtime", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes one manual page for `program`, and one for each of its commands.
///
/// # Errors
/// If the file system refuses.
pub fn man_pages(arguments: &ManPagesArgs, mut program: Command) -> Result<(), Exit> {
    program.build();
    let mut written = 0;
    pages_of(&program, "headtime", &arguments.folder, &mut written)?;
    print(&format!(
        "{written} pages in {}\n",
        arguments.folder.display()
    ))
}

/// Writes the page of a command under `name`, and those of its commands under longer names.
fn pages_of(command: &Command, name: &str, folder: &Path, written: &mut usize) -> Result<(), Exit> {
    let page = clap_mangen::Man::new(command.clone().display_name(name))
        .title(name.to_uppercase())
        .source(concat!("headtime ", env!("CARGO_PKG_VERSION")))
        .manual("Headtime");
    let mut text = Vec::new();
    page.render(&mut text).map_err(Exit::failed)?;
    // What stands after the options are examples.
    let text = String::from_utf8_lossy(&text).replace(".SH EXTRA\n", ".SH EXAMPLES\n");
    write_file(&folder.join(format!("{name}.1")), &text)?;
    *written += 1;
    for inner in command.get_subcommands() {
        if inner.get_name() != "help" && !inner.is_hide_set() {
            let longer = format!("{name}-{}", inner.get_name());
            pages_of(inner, &longer, folder, written)?;
        }
    }
    Ok(())
}
