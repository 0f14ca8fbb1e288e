//! Commands of Redis and Valkey: <https://redis.io/docs/latest/commands/>.

use super::commands::words;
use kurabe_core::Result;
use kurabe_protocol::command::Command;
use kurabe_protocol::resp;

/// Bytes of a word up to which it may be a key.
const KEY: usize = 512;

/// Words that may be keys.
pub(super) fn keys(command: Command<'_>) -> impl Iterator<Item = String> {
    command.words().filter(|key| key.len() <= KEY).map(|key| String::from_utf8_lossy(key).into_owned())
}

/// What a command names before the `*` in whose place the server puts an id.
pub(super) fn named(command: Command<'_>) -> impl Iterator<Item = Vec<u8>> {
    command.words().take_while(|word| *word != b"*").filter(|word| word.len() <= KEY).map(<[u8]>::to_vec)
}

/// A command as it is sent.
fn sent<'a>(command: &Command<'a>) -> Result<Vec<&'a [u8]>> {
    Ok(command.names().map(str::as_bytes).chain(words(command)?).collect())
}

/// Why a command may change something, by its arguments; `None` if it only reads.
pub(super) fn writes(command: &Command<'_>) -> Option<String> {
    let Ok(words) = sent(command) else { return Some("its values are not known".to_owned()) };
    let (command, arguments) = words.split_first()?;
    let is = |word: &[u8], of: &[&str]| of.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes()));
    let has = |of: &[&str]| arguments.iter().any(|word| is(word, of));
    let first = arguments.first().copied().unwrap_or_default();
    let reads = match *command {
        // Without options it is GET.
        b"GETEX" => arguments.len() == 1,
        b"SORT" => !has(&["STORE"]),
        b"GEORADIUS" | b"GEORADIUSBYMEMBER" => !has(&["STORE", "STOREDIST"]),
        b"BITFIELD" => !has(&["SET", "INCRBY"]),
        // With a user it logs in as another.
        b"HELLO" => arguments.len() <= 1,
        b"MEMORY" => is(first, &["USAGE", "STATS", "DOCTOR", "MALLOC-STATS", "HELP"]),
        b"OBJECT" => is(first, &["ENCODING", "FREQ", "IDLETIME", "REFCOUNT", "HELP"]),
        b"COMMAND" => {
            let asks = ["COUNT", "DOCS", "GETKEYS", "GETKEYSANDFLAGS", "HELP", "INFO", "LIST"];
            arguments.is_empty() || is(first, &asks)
        }
        // Judged by its name alone.
        _ => return None,
    };
    let shown = || String::from_utf8_lossy(command).into_owned();
    (!reads).then(|| format!("{} with these arguments may change keys", shown()))
}

pub(super) fn push(out: &mut Vec<u8>, command: &Command<'_>) -> Result<()> {
    resp::push(out, &sent(command)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::commands::Judged;
    use super::*;
    use kurabe_protocol::call::{Call, Language};
    use kurabe_protocol::command::parts;

    #[test]
    fn command_is_judged_by_its_arguments_wherever_they_stand() {
        let reads = "GET a, GETEX a, SORT a BY nosort GET #, SORT_RO a, GEORADIUS a 1 2 3 km, \
             BITFIELD a GET u8 0 OVERFLOW FAIL GET u4 0, EVAL_RO return 0, OBJECT ENCODING a, \
             MEMORY USAGE a, HELLO 3, XREAD COUNT 1 STREAMS a 0, LCS a b, COMMAND DOCS get";
        let writes = "GETEX a PERSIST, GETEX a EX 5, GETDEL a, SORT a sToRe b, \
             GEORADIUS a 1 2 3 km STORE b, GEORADIUSBYMEMBER a b 3 km STOREDIST c, \
             BITFIELD a GET u8 0 SET u8 0 1, BITFIELD a incrby u8 0 1, EVAL return 0, \
             EVALSHA abc 0, FCALL f 0, FUNCTION LIST, OBJECT x a, MEMORY PURGE, HELLO 3 AUTH a b, \
             XREADGROUP GROUP g c STREAMS a >, SUBSCRIBE a, CLIENT NO-EVICT on, CONFIG SET a b, \
             WAIT 0 0, SINTERSTORE a b, ZRANGESTORE a b 0 1, PFCOUNT a, LMPOP 1 a LEFT, COPY a b, \
             get a, UNKNOWN a";
        let all =
            [(true, reads), (false, writes)].map(|(reads, all)| all.split(", ").map(move |one| (one, reads)));
        for (command, reads) in all.into_iter().flatten() {
            // The recorder takes one word or two for the name.
            let words: Vec<&str> = command.split(' ').collect();
            for own in 1..=words.len().min(2) {
                let given = words[own..].iter().map(|word| word.as_bytes().to_vec());
                let parts = parts(words[..own].iter().copied(), given, false);
                let command = Command::read(&parts).unwrap();
                let found = Judged::read(&Call::Command(command), Language::Redis).writes;
                assert_eq!(found.is_none(), reads, "{command:?}: {found:?}");
            }
        }
    }
}
