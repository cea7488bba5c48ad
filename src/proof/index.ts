export type { Objection, Proof, Question, Replaced, Subject } from './question.js';
export { objectionTo, proofOf, questions } from './questions.js';
