// @ts-check
// Looking things up in sorted arrays.

/**
 * How many of `values` are at most `limit`.
 * @param {ArrayLike<number>} values ascending
 * @param {number} limit
 */
export function countUpTo(values, limit) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * How many of `values` are below `limit`.
 * @param {ArrayLike<number>} values ascending
 * @param {number} limit
 */
export function countBelow(values, limit) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
