/** True under `scripts/test --long`: what is sampled otherwise is tested whole, and what is repeated is repeated more often. */
export const long = process.env.RSPTRACE_LONG === '1';
