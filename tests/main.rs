//! Every driver and every experiment on real servers, through the libraries and through the program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests are tests")]

mod conformance;
mod custom;
mod durability;
mod hangs;
mod observatory;
mod observed;
mod packets;
mod program;
mod sabotage;
mod said;
mod servers;
mod settle;
mod support;
mod turns;
mod web;
mod webapp;
