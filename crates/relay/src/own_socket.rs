//! A Unix socket to listen at. Only its account may connect, by the mode of its file. It takes the place of nothing but a socket of the
//! same account at which nobody listens, and its file is removed at the end.

use crate::admission::Clients;
use rustix::fs::{Mode, fchmod};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// A socket that listens, and its file.
pub(crate) struct OwnSocket {
    listener: UnixListener,
    path: PathBuf,
    file: (u64, u64),
}

fn file(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn refused(why: &str) -> io::Error {
    io::Error::new(ErrorKind::AlreadyExists, why)
}

impl OwnSocket {
    pub(crate) fn listen(path: &Path, clients: Clients) -> io::Result<Self> {
        check_folder(path)?;
        remove_stale(path)?;
        let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // The file gets the mode of the socket, so that it is never open to more.
        fchmod(&socket, Mode::from_raw_mode(if clients == Clients::Own { 0o600 } else { 0o666 }))?;
        // No link at its end is followed: what exists is in use.
        net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        let file = file(&fs::symlink_metadata(path)?);
        let own = Self { listener: UnixListener::from(socket), path: path.to_owned(), file };
        net::listen(&own.listener, BACKLOG)?;
        Ok(own)
    }

    pub(crate) fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().map(|(client, _)| client)
    }
}

impl AsFd for OwnSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|metadata| file(&metadata) == self.file) {
            // It may be gone.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Refuses a folder in which another account could put its own socket in this one's place.
fn check_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let found = fs::metadata(folder)?;
    let own = rustix::process::geteuid().as_raw();
    let is_sticky = found.mode() & 0o1000 != 0;
    if found.mode() & 0o022 != 0 && !is_sticky || ![0, own].contains(&found.uid()) {
        let why = "other accounts may replace files in its folder";
        return Err(io::Error::new(ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

/// Removes the socket of a relay of this account that was killed.
fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        return Err(refused("the file is no socket, and is left alone"));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("the socket is of another account, and is left alone"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Err(refused("another program listens there")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("kurabe-own-socket-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        folder
    }

    #[test]
    fn stale_socket_is_replaced_and_nothing_else_is() {
        let folder = folder("stale");
        let path = folder.join("s");
        drop(UnixListener::bind(&path).unwrap());
        let own = OwnSocket::listen(&path, Clients::Own).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert!(OwnSocket::listen(&path, Clients::Own).is_err(), "it is in use");
        drop(own);
        assert!(fs::symlink_metadata(&path).is_err(), "it is not removed");
        fs::write(&path, "mine").unwrap();
        assert!(OwnSocket::listen(&path, Clients::Own).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        for to in ["s", "nowhere"] {
            let link = folder.join("link");
            symlink(folder.join(to), &link).unwrap();
            assert!(OwnSocket::listen(&link, Clients::Own).is_err(), "{to}");
            fs::remove_file(&link).unwrap();
        }
        assert!(fs::symlink_metadata(folder.join("nowhere")).is_err(), "a link was followed");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn file_that_took_the_place_of_the_socket_stays() {
        let folder = folder("replaced");
        let path = folder.join("s");
        let own = OwnSocket::listen(&path, Clients::Own).unwrap();
        fs::rename(&path, folder.join("away")).unwrap();
        fs::write(&path, "theirs").unwrap();
        drop(own);
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn folder_of_others_is_refused() {
        let folder = folder("open");
        for (mode, is_refused) in [(0o777, true), (0o770, true), (0o755, false), (0o1777, false)] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(OwnSocket::listen(&folder.join("s"), Clients::Own).is_err(), is_refused, "{mode:o}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
