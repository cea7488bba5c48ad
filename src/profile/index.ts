// A sampling profile: what every hart runs, looked at again and again.

export { profileByPerf, whyNoPerf } from './by-perf.js';
export { type ProfileFacts, type ProfileOptions, profile } from './profile.js';
export { sampling } from './sampling.js';
