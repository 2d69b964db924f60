//! The folders of files in a configuration: beside it, or the user's own.

use std::path::{Path, PathBuf};

use headtime_client::private::temporary_folder;

/// The folders for paths in a configuration.
///
/// | a path | is |
/// |---|---|
/// | `/srv/disk.img` | as it is |
/// | `{data}/disk.img` | in the user's data folder |
/// | `{runtime}/nbd.sock` | in the user's folder for sockets |
/// | `disk.img` | beside the configuration |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The folder of permanent files: `$STATE_DIRECTORY` of a systemd service, `$XDG_DATA_HOME/headtime`, or
    /// `~/.local/share/headtime`.
    pub data: PathBuf,
    /// The folder that ends with the service or the user's session: `$RUNTIME_DIRECTORY` of a systemd service,
    /// `$XDG_RUNTIME_DIR/headtime`, or `/tmp/headtime-UID`.
    pub runtime: PathBuf,
    /// The folder of the configuration.
    pub base: PathBuf,
}

impl Places {
    /// The folders of a systemd service (systemd.exec(5), `StateDirectory=`: the first of its list), else of a user
    /// by the XDG Base Directory Specification 0.8. `variable` reads the environment. Relative paths are
    /// ignored, as the specification says.
    pub fn of(user: u32, base: &Path, variable: impl Fn(&str) -> Option<String>) -> Places {
        let folder = |name: &str| {
            let path = variable(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let temporary = temporary_folder(user);
        let home = folder("HOME").map(|home| home.join(".local/share"));
        let unit = |name: &str| {
            let list = variable(name)?;
            let first = PathBuf::from(list.split(':').next()?);
            first.is_absolute().then_some(first)
        };
        let data = folder("XDG_DATA_HOME").or(home);
        let data = data.map(|data| data.join("headtime"));
        let runtime = folder("XDG_RUNTIME_DIR").map(|runtime| runtime.join("headtime"));
        Places {
            data: unit("STATE_DIRECTORY")
                .or(data)
                .unwrap_or_else(|| temporary.join("data")),
            runtime: unit("RUNTIME_DIRECTORY").or(runtime).unwrap_or(temporary),
            base: base.to_owned(),
        }
    }

    /// The folders of this process's user.
    pub fn of_this_user(base: &Path) -> Places {
        let user = rustix::process::getuid().as_raw();
        Places::of(user, base, |name| std::env::var(name).ok())
    }

    /// The default path of the control socket.
    pub fn control_socket(&self) -> PathBuf {
        self.runtime.join("control.sock")
    }

    /// The path that a text means.
    ///
    /// # Errors
    /// If it begins with a brace and no known folder.
    pub(super) fn path(&self, text: &str) -> Result<PathBuf, &'static str> {
        let mut parts = text.splitn(2, '/');
        let (first, rest) = (parts.next().unwrap_or_default(), parts.next());
        // More slashes would make an absolute path of what is to be joined.
        let rest = rest.unwrap_or_default().trim_start_matches('/');
        match first {
            "{data}" => Ok(self.data.join(rest)),
            "{runtime}" => Ok(self.runtime.join(rest)),
            _ if first.starts_with('{') => Err("a path that begins with {data}/ or {runtime}/"),
            _ => Ok(self.base.join(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(pairs: &[(&str, &str)]) -> Places {
        Places::of(1000, Path::new("/etc/headtime"), |name| {
            let pair = pairs.iter().find(|(key, _)| *key == name);
            pair.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn folders_are_the_users_own() {
        let all = places(&[
            ("HOME", "/home/a"),
            ("XDG_DATA_HOME", "/data"),
            ("XDG_RUNTIME_DIR", "/run/user/1000"),
        ]);
        assert_eq!(all.data, Path::new("/data/headtime"));
        assert_eq!(all.runtime, Path::new("/run/user/1000/headtime"));
        let home = places(&[("HOME", "/home/a"), ("XDG_DATA_HOME", "not/absolute")]);
        assert_eq!(home.data, Path::new("/home/a/.local/share/headtime"));
        assert_eq!(home.runtime, Path::new("/tmp/headtime-1000"));
        assert_eq!(places(&[]).data, Path::new("/tmp/headtime-1000/data"));
    }

    #[test]
    fn folders_of_a_systemd_service_come_first() {
        let unit = places(&[
            ("HOME", "/root"),
            ("XDG_RUNTIME_DIR", "/run/user/0"),
            ("STATE_DIRECTORY", "/var/lib/headtime/sdb:/var/lib/other"),
            ("RUNTIME_DIRECTORY", "/run/headtime/sdb"),
        ]);
        assert_eq!(unit.data, Path::new("/var/lib/headtime/sdb"));
        assert_eq!(
            unit.control_socket(),
            Path::new("/run/headtime/sdb/control.sock")
        );
    }

    #[test]
    fn a_path_is_where_its_beginning_says() {
        let places = places(&[("XDG_DATA_HOME", "/data"), ("XDG_RUNTIME_DIR", "/run")]);
        for (text, path) in [
            ("/srv/disk.img", "/srv/disk.img"),
            ("{data}/disk.img", "/data/headtime/disk.img"),
            ("{runtime}//nbd.sock", "/run/headtime/nbd.sock"),
            ("disk.img", "/etc/headtime/disk.img"),
            ("a/{data}", "/etc/headtime/a/{data}"),
        ] {
            assert_eq!(places.path(text).as_deref(), Ok(Path::new(path)), "{text}");
        }
        assert!(places.path("{home}/disk.img").is_err());
    }
}
