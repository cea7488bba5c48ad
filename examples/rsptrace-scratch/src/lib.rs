//! Memory that a kernel sets aside for rsptrace: room for trampolines among the kernel's code, and a ring among its zeroed data. So it
//! is right too for kernels that map data no-execute and constants read-only.
//!
//! rsptrace finds both by their symbols. Nothing in the kernel refers to them, so the linker must be told to keep them:
//! `-C link-arg=-u__rsptrace_code -C link-arg=-u__rsptrace_data`.
#![no_std]
#![allow(non_upper_case_globals)]

use core::cell::UnsafeCell;

/// About 400 bytes a probe.
const CODE: usize = 128 << 10;
/// A larger ring needs fewer stops where it is read at stops.
const DATA: usize = 2 << 20;

#[repr(C, align(4096))]
pub struct Room<const N: usize>(UnsafeCell<[u8; N]>);

// SAFETY: no Rust code touches it.
unsafe impl<const N: usize> Sync for Room<N> {}

#[repr(C, align(4096))]
pub struct Code([u8; CODE]);

/// Executable, as all of `.text`, and never written by the kernel.
#[used]
#[no_mangle]
#[link_section = ".text.rsptrace"]
pub static __rsptrace_code: Code = Code([0; CODE]);

/// Writable, and nothing in the image: the kernel zeroes it with its `.bss`.
#[used]
#[no_mangle]
#[link_section = ".bss.rsptrace"]
pub static __rsptrace_data: Room<DATA> = Room(UnsafeCell::new([0; DATA]));
