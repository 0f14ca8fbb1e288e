//! Every driver and every experiment on real servers, through the libraries and through the program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests are tests")]

mod agent;
mod completions;
mod conclusive;
mod conformance;
mod copy;
mod custom;
mod durability;
mod exit_codes;
mod firebird;
mod first_steps;
mod hangs;
mod hostile_text;
mod interleave;
mod lies;
mod mission;
mod net;
mod observed;
mod packets;
mod pipeline;
mod program;
mod reload;
mod residue;
mod restarts;
mod sabotage;
mod serve;
mod server_statistics;
mod servers;
mod standstill;
mod suite;
mod support;
mod threads;
mod web;
mod webapp;
mod wire;
