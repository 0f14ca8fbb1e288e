//! Every driver and every experiment on real servers, through the libraries and through the program: the default tier.
//! What takes minutes is in `full/main.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests are tests")]

mod advise;
#[cfg(feature = "full")]
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
mod first_steps;
#[cfg(feature = "full")]
mod fleet;
mod hangs;
mod hints;
mod hostile_text;
mod interleave;
mod lies;
mod low_role;
mod mission;
mod mysql55;
mod net;
mod network;
mod observed;
mod page;
mod pipeline;
mod policy;
mod private_files;
mod program;
mod query;
mod recorded;
mod reload;
mod replay;
mod residue;
mod restarts;
mod sabotage;
mod second_account;
mod serve;
mod server_statistics;
mod servers;
mod stacks;
mod standstill;
mod suite;
mod support;
mod targets;
mod threads;
mod transcripts;
mod trust;
mod web;
mod webapp;
mod wire;
