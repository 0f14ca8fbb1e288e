//! Dumps and restores by an engine's own programs.

use crate::prelude::*;
use crate::program::{room, run, temporary_folder};
use kurabe_core::dump::RowOrder;
use rustix::fs::fstatvfs;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

/// The part of a dump's end in which its last line is, in bytes.
const TAIL: u64 = 512;

/// The programs of an engine, as they are called.
pub trait Programs: Send {
    /// How the last line of a whole dump begins.
    const END: &'static str;

    /// The programs and their versions.
    fn names(&self) -> &str;

    /// The command that writes a table to its standard output, as for [`DumpTool::dump`].
    fn dump(&self, table: &Collection, order: RowOrder) -> Command;

    /// What a dump begins with, before the output of the program.
    fn beginning(&self, _table: &Collection) -> String {
        String::new()
    }

    /// The command that executes a dump from its standard input.
    fn restore(&self) -> Command;

    /// As [`DumpTool::stored_bytes`].
    fn stored_bytes(&mut self, table: &Collection) -> Result<Option<u64>>;
}

/// The dump tool of an engine's programs.
pub struct ProgramDump<P> {
    programs: P,
    last: Option<Dump>,
}

impl<P: Programs + 'static> ProgramDump<P> {
    /// That of these programs.
    pub fn boxed(programs: P) -> Box<dyn DumpTool> {
        Box::new(Self { programs, last: None })
    }
}

impl<P: Programs> DumpTool for ProgramDump<P> {
    fn programs(&self) -> &str {
        self.programs.names()
    }

    fn dump(
        &mut self,
        table: &Collection,
        order: RowOrder,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<u64> {
        self.last = None;
        let mut dump = Dump::beginning_with(&self.programs.beginning(table))?;
        let length = dump.write(&mut self.programs.dump(table, order), P::END, progress)?;
        self.last = Some(dump);
        Ok(length)
    }

    fn restore(&mut self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        let none = || Error::new(ErrorKind::Internal, "nothing was dumped that could be restored");
        self.last.as_mut().ok_or_else(none)?.read(&mut self.programs.restore(), progress)
    }

    fn stored_bytes(&mut self, table: &Collection) -> Result<Option<u64>> {
        self.programs.stored_bytes(table)
    }
}

/// The error of a target whose programs would need its certificates.
pub fn over_tls() -> Error {
    Error::unsupported("the engine's own programs are not run over TLS").hint("use --tool kurabe")
}

/// A file without a name in the temporary folder.
fn unnamed_file() -> Result<File> {
    let folder = temporary_folder();
    tempfile::tempfile_in(&folder).map_err(|error| {
        let message = format!("no temporary file can be made in {}: {error}", folder.display());
        Error::new(ErrorKind::Environment, message).hint("KURABE_TMP names another folder")
    })
}

/// The content of a dump, in a file without a name.
struct Dump {
    file: File,
}

impl Dump {
    /// An empty dump, but for this text.
    ///
    /// # Errors
    /// [`Environment`](ErrorKind::Environment) if it cannot be written.
    fn beginning_with(text: &str) -> Result<Self> {
        let mut file = unnamed_file()?;
        file.write_all(text.as_bytes()).map_err(|error| not_written(&error))?;
        Ok(Self { file })
    }

    /// Appends what a program writes to its standard output; returns the length of the dump.
    ///
    /// # Errors
    /// As for [`run`]; [`Environment`](ErrorKind::Environment) if the dump does not end with a line that begins with
    /// `end`: programs do not notice every error of writing.
    fn write(
        &mut self,
        command: &mut Command,
        end: &str,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<u64> {
        let output = self.file.try_clone().map_err(|error| not_written(&error))?;
        let length = || self.file.metadata().map_or(0, |meta| meta.len());
        // Programs may say nothing of a full disk, or end as if all were well.
        run(command.stdout(output), &mut || progress(length())).map_err(|error| {
            let is_full = fstatvfs(&self.file).is_ok_and(|disk| disk.f_bavail == 0);
            if is_full && error.kind() == ErrorKind::Server {
                return Error::new(ErrorKind::Environment, format!("the disk is full: {error}")).hint(room());
            }
            error
        })?;
        let length = length();
        let shown = length.min(TAIL);
        let mut tail = vec![0; shown as usize];
        let read = self.file.read_exact_at(&mut tail, length - shown);
        read.map_err(|error| not_written(&error))?;
        if String::from_utf8_lossy(&tail).lines().any(|line| line.starts_with(end)) {
            return Ok(length);
        }
        let name = command.get_program().to_string_lossy().into_owned();
        let message = format!("the dump of {name} is not complete: it does not end with '{end}'");
        Err(Error::new(ErrorKind::Environment, message).hint(room()))
    }

    /// Gives the whole dump to a program on its standard input.
    fn read(&mut self, command: &mut Command, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        let failed = |error: io::Error| {
            Error::new(ErrorKind::Environment, format!("the dump cannot be read: {error}"))
        };
        self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let input = self.file.try_clone().map_err(failed)?;
        // Both descriptors share the position up to which the program has read.
        let mut file = &self.file;
        run(command.stdin(input).stdout(Stdio::null()), &mut || progress(file.stream_position().unwrap_or(0)))
    }
}

fn not_written(error: &io::Error) -> Error {
    Error::new(ErrorKind::Environment, format!("the dump cannot be written: {error}")).hint(room())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::tests::sh;

    #[test]
    fn dump_is_given_back_whole_with_what_it_begins_with() {
        let mut dump = Dump::beginning_with("first\n").unwrap();
        let mut seen = 0;
        let mut progress = |bytes| {
            seen = bytes;
            Ok(())
        };
        let length = dump.write(&mut sh("echo second; echo end of it"), "end", &mut progress).unwrap();
        assert_eq!((length, seen), (23, 23));
        for _ in 0..2 {
            let same = sh("test \"$(cat)\" = \"$(printf 'first\\nsecond\\nend of it')\"");
            dump.read(&mut { same }, &mut |_| Ok(())).unwrap();
        }
    }

    #[test]
    fn dump_that_is_cut_is_an_error_even_if_its_program_succeeds() {
        let mut dump = Dump::beginning_with("").unwrap();
        let error = dump.write(&mut sh("echo half"), "end", &mut |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Environment);
        assert!(error.to_string().contains("not complete"), "{error}");
    }
}
