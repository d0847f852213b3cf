//! Returns the memory to the system that the allocator keeps after a busy time.
//!
//! mimalloc gives back what was freed a second ago or earlier, but only when something large is freed again: an idle server
//! would keep the memory of its busiest moment. So something large is allocated now and then, and freed without being
//! touched.

use std::hint::black_box;
use std::time::Duration;

/// Time between two times that memory is returned.
const RETURN_TIME: Duration = Duration::from_secs(5);
/// Bytes that the allocator takes from its arena alone.
const LARGE_BYTES: usize = 8 << 20;

/// Returns memory now and then, for ever.
pub(super) async fn return_memory() {
    loop {
        tokio::time::sleep(RETURN_TIME).await;
        drop(black_box(Vec::<u8>::with_capacity(LARGE_BYTES)));
    }
}
