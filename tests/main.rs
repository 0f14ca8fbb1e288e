//! Every driver and every experiment on real servers, through the libraries and through the program: the default tier.
//! What takes minutes is in `full/main.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests are tests")]

mod agent;
mod attack;
mod capture;
mod claims;
mod completions;
mod conclusive;
mod conformance;
mod copy;
mod custom;
mod durability;
mod exit_codes;
mod exports;
mod firebird;
mod first_steps;
mod fleet;
mod hangs;
mod hints;
mod hostile_text;
mod interleave;
mod lies;
mod mission;
mod mysql55;
mod net;
mod network;
mod observed;
mod page;
mod pipeline;
mod program;
mod recorded;
mod reload;
mod residue;
mod restarts;
mod sabotage;
mod serve;
mod server_statistics;
mod servers;
mod stacks;
mod standstill;
mod suite;
mod support;
mod threads;
mod web;
mod webapp;
mod wire;
