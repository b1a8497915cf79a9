//! The small parts that every manifest is made of: amounts, time stamps, uids.

use std::fmt;

use muster_api::Time;

/// What a pod asks for or a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    pub gpus: u64,
    pub cpu_milli: u64,
    pub memory_mib: u64,
}

impl Amounts {
    pub fn plus(self, other: Amounts) -> Amounts {
        Amounts {
            gpus: self.gpus + other.gpus,
            cpu_milli: self.cpu_milli + other.cpu_milli,
            memory_mib: self.memory_mib + other.memory_mib,
        }
    }

    pub fn times(self, count: u64) -> Amounts {
        Amounts {
            gpus: self.gpus * count,
            cpu_milli: self.cpu_milli * count,
            memory_mib: self.memory_mib * count,
        }
    }

    pub fn fits_in(self, room: Amounts) -> bool {
        self.gpus <= room.gpus
            && self.cpu_milli <= room.cpu_milli
            && self.memory_mib <= room.memory_mib
    }
}

/// The inside of a YAML flow mapping, so that a caller can add to it.
impl fmt::Display for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cpu_milli {
            milli if milli.is_multiple_of(1000) => write!(f, "cpu: \"{}\"", milli / 1000)?,
            milli => write!(f, "cpu: {milli}m")?,
        }
        match self.memory_mib {
            mib if mib.is_multiple_of(1024) => write!(f, ", memory: {}Gi", mib / 1024)?,
            mib => write!(f, ", memory: {mib}Mi")?,
        }
        if self.gpus > 0 {
            write!(f, ", nvidia.com/gpu: \"{}\"", self.gpus)?;
        }
        Ok(())
    }
}

/// A uid that follows from what it names: FNV-1a of 128 bits in the dress of a version 8 UUID, the
/// one that is free for such use.
pub fn uid(name: &[&str]) -> String {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for part in name {
        // The zero byte keeps ["ab", "c"] and ["a", "bc"] apart.
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }
    let hash = hash & !(0xf << 76) & !(0x3 << 62) | 0x8 << 76 | 0x2 << 62;
    let digits = format!("{hash:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..]
    )
}

/// Epoch seconds as Kubernetes writes them: `2026-01-05T00:00:00Z`.
pub fn stamp(seconds: i64) -> String {
    Time(seconds.saturating_mul(1000)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::DEFAULT_START;

    #[test]
    fn time_starts_on_a_monday() {
        assert_eq!(stamp(DEFAULT_START), "2026-01-05T00:00:00Z");
    }

    #[test]
    fn uids_look_like_uuids_and_follow_the_name() {
        let uid_of_pod = uid(&["Pod", "default", "a-0"]);
        assert_eq!(uid_of_pod, uid(&["Pod", "default", "a-0"]));
        assert_ne!(uid_of_pod, uid(&["Pod", "default", "a-1"]));
        let lengths: Vec<usize> = uid_of_pod.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert!(uid_of_pod[14..].starts_with('8'), "{uid_of_pod}");
    }

    #[test]
    fn amounts_are_written_in_the_largest_whole_unit() {
        let amounts = Amounts { gpus: 1, cpu_milli: 11_300, memory_mib: 5_632 };
        assert_eq!(amounts.to_string(), "cpu: 11300m, memory: 5632Mi, nvidia.com/gpu: \"1\"");
        let amounts = Amounts { gpus: 0, cpu_milli: 32_000, memory_mib: 2_048 };
        assert_eq!(amounts.to_string(), "cpu: \"32\", memory: 2Gi");
    }
}
