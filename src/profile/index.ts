// A sampling profile: what every hart runs, looked at again and again.

export { type ProfileFacts, type ProfileOptions, profile } from './profile.js';
