//! Every driver and every experiment on real servers, through the libraries and through the program.

mod conformance;
mod program;
mod sabotage;
mod servers;
mod support;
