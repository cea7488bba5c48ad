// Of architectures that main.rs does not name: a change of main.rs changes the ELFs of all others.
#[cfg_attr(target_arch = "loongarch64", path = "loong.rs")] mod arm;
pub use arm::*;
