//! Sorting by small keys.
//!
//! In: items and a key of each. Out: the items by key, those of one key in the order in which they came. Time and memory grow with the
//! number of items and the largest key.

/// Items sorted by a small key; items of one key keep their order.
pub(crate) fn counting_sort(
    items: impl IntoIterator<Item = u32> + Clone,
    key: impl Fn(u32) -> u32,
) -> Vec<u32> {
    let mut starts: Vec<u32> = Vec::new();
    let mut count = 0;
    for item in items.clone() {
        let key = key(item) as usize + 1;
        if starts.len() <= key {
            starts.resize(key + 1, 0);
        }
        starts[key] += 1;
        count += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut sorted = vec![0; count];
    for item in items {
        let at = &mut starts[key(item) as usize];
        sorted[*at as usize] = item;
        *at += 1;
    }
    sorted
}
