// Text without core::fmt, which would bring its debug information with it.
pub fn text(words: &str) {
    for byte in words.bytes() {
        if byte == b'\n' {
            crate::arch::put(b'\r');
        }
        crate::arch::put(byte);
    }
}
pub fn decimal(n: u64) {
    if n >= 10 {
        decimal(n / 10);
    }
    crate::arch::put(b'0' + (n % 10) as u8);
}
pub fn hex(n: u64) {
    text("0x");
    let digits = (64 - (n | 1).leading_zeros()).div_ceil(4);
    for i in (0..digits).rev() {
        let digit = (n >> (i * 4)) as u8 & 15;
        crate::arch::put(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 });
    }
}
