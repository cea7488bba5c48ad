// A sampling profile: what every hart runs, looked at again and again.

export { type ProfileFacts, profile } from './profile.js';
export { sampling } from './sampling.js';
