// Of architectures that main.rs does not name: a change of main.rs changes the ELFs of all others.
mod arm;
pub use arm::*;
