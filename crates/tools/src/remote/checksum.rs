//! Checksums of files as `cksum` prints them.

/// The checksum and the size, as `cksum` prints them.
pub(crate) fn cksum(bytes: &[u8]) -> String {
    let mut sum = bytes.iter().fold(0, |sum, byte| step(sum, *byte));
    let mut length = bytes.len();
    while length > 0 {
        sum = step(sum, (length & 0xff) as u8);
        length >>= 8;
    }
    format!("{} {}", !sum, bytes.len())
}

fn step(sum: u32, byte: u8) -> u32 {
    (sum << 8) ^ TABLE[((sum >> 24) as u8 ^ byte) as usize]
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut sum = (index as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 0x8000_0000 == 0 { sum << 1 } else { (sum << 1) ^ 0x04c1_1db7 };
            bit += 1;
        }
        table[index] = sum;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::cksum;

    #[test]
    fn it_is_what_the_tool_prints() {
        assert_eq!(cksum(b""), "4294967295 0");
        assert_eq!(cksum(b"123456789"), "930766865 9");
        assert_eq!(cksum("žluť\n\0".as_bytes()), "602470531 8");
    }
}
