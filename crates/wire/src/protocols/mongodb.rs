//! MongoDB's wire protocol: `OP_MSG`, and `OP_QUERY`, by which older drivers begin.

use crate::decoder::{Decode, Request, Seen};
use crate::frames::{Framed, Frames, Piece};
use crate::input::KEPT;
use crate::reader::Stop;
use crate::view::Step;
use kurabe_protocol::mongodb::bson;
use kurabe_protocol::mongodb::frame::{Message, Msg, OP_COMPRESSED, OP_MSG, OP_QUERY, driver, query};

/// Commands by which drivers set up a connection or ask about the server.
pub(crate) const SETUP: [&str; 18] = [
    "authenticate", "atlasVersion", "buildInfo", "buildinfo", "connectionStatus", "endSessions",
    "getCmdLineOpts", "getLog", "getParameter", "getnonce", "hello", "hostInfo", "isMaster", "ismaster",
    "logout", "ping", "saslContinue", "saslStart",
];

/// Why a stream cannot be read.
pub(super) const NOT_MONGODB: &str = "the client does not speak MongoDB's protocol";
pub(super) const COMPRESSED: &str = "its messages are compressed";

/// The decoder.
#[derive(Default)]
pub(crate) struct Mongodb(Frames<Message, KEPT>);

impl Decode for Mongodb {
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) -> Result<(), Stop> {
        self.0.push(bytes);
        while let Some(piece) = self.0.next(NOT_MONGODB, |_, _| false)? {
            if let Piece::Message(message) = piece {
                tell(&message, seen)?;
            }
        }
        Ok(())
    }
}

/// Tells of a command.
fn tell(message: &Framed<Message>, seen: &mut Vec<Seen>) -> Result<(), Stop> {
    let document = match message.header.opcode {
        OP_MSG => Msg::read(&message.body, message.is_cut).and_then(|message| message.parts()?.0),
        OP_QUERY => query(&message.body).1,
        OP_COMPRESSED => return Err(COMPRESSED.into()),
        _ => return Err("the client sends an unknown message of MongoDB's protocol".into()),
    };
    let Some(document) = document else { return Ok(()) };
    let Some(first) = bson::elements(document).next() else { return Ok(()) };
    let command = String::from_utf8_lossy(first.name).into_owned();
    seen.extend(driver(document).map(Seen::Client));
    let text = first.text().map_or_else(|| command.clone(), |collection| format!("{command} {collection}"));
    let is_setup = SETUP.contains(&command.as_str());
    seen.push(Seen::Request(Request { at: message.at, text, step: Step::Text, is_setup }));
    Ok(())
}
