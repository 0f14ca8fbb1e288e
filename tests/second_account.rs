//! The program, checked by an account that has nothing to do with it: it reads nothing, writes nothing, signals nothing, is
//! served nothing, and leads nothing that root writes elsewhere. These tests share no code with what they check; they look
//! with the kernel's tables and ask with the servers' own clients. They need root, for two accounts.

mod accounts;
#[cfg(feature = "full")]
mod agents;
mod files;
mod fixtures;
mod holes;
mod intruder;
mod logins;
mod pages;
mod relays;
mod running;
mod scene;
mod throwaway;
