pub fn text(text: &str) {
    for byte in text.bytes() {
        crate::arch::put(byte);
    }
}
pub fn decimal(value: u64) {
    if value > 9 {
        decimal(value / 10);
    }
    crate::arch::put(b'0' + (value % 10) as u8);
}
pub fn hex(value: u64) {
    text("0x");
    for i in (0..16).rev() {
        let digit = (value >> (4 * i) & 15) as u8;
        crate::arch::put(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 });
    }
}
