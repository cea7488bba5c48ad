export type { Objection, Proof, Replaced, Subject } from './question.js';
export { objectionTo, proofOf, questions } from './questions.js';
