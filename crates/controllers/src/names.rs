//! Keys of labels and annotations that controllers write, and names that follow from UIDs: a
//! controller that starts again after a crash finds what it had made before.

pub use muster_api::keys::{
    COOLDOWN_TIME, JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, PREEMPTABLE, REVOCABLE_ZONE,
    RUNNING_ESTIMATE, TASK_INDEX, TASK_SPEC,
};

pub const JOB_NAME: &str = "volcano.sh/job-name";
pub const JOB_NAMESPACE: &str = "volcano.sh/job-namespace";
pub const QUEUE_NAME: &str = "volcano.sh/queue-name";
/// The version of the Job when the pod was created; pods of an older version do not count.
pub const JOB_VERSION: &str = "volcano.sh/job-version";
/// How often the Job had been restarted when the pod was created.
pub const JOB_RETRY_COUNT: &str = "volcano.sh/job-retry-count";
pub const TEMPLATE_UID: &str = "volcano.sh/template-uid";
pub const PARTITION_ID: &str = "volcano.sh/partition-id";
pub const NUMA_POLICY: &str = "volcano.sh/numa-topology-policy";
/// Written on a pod by a controller that is about to delete it: this is no eviction.
pub const OUT_OF_SYNC: &str = "volcano.sh/controller-out-of-sync";

/// The part of a Job that is restarted (JSON). Written before any of its pods is deleted.
pub const RESTART: &str = "muster.sh/restart";
/// The values of retryCount that came from resuming the Job: they are no failures.
pub const RESUMED_AT: &str = "muster.sh/resumed-at";

/// A word of twelve letters and digits that follows from a UID and a number.
pub fn suffix(uid: &str, number: usize) -> String {
    // FNV-1a, as it is the same everywhere and for ever.
    let bytes = uid.bytes().chain([b'/']).chain(number.to_string().into_bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut word = String::with_capacity(12);
    for _ in 0..12 {
        let digit = (hash % 36) as u8;
        word.push(char::from(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
        hash /= 36;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_follow_from_the_uid_and_differ() {
        let one = suffix("1f6c", 0);
        assert_eq!(one, suffix("1f6c", 0));
        assert_eq!(one.len(), 12);
        assert!(one.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
        assert_ne!(one, suffix("1f6c", 1));
        assert_ne!(one, suffix("1f6d", 0));
    }
}
