export { type BudgetFile, leftOutOf, proposedBudget, readBudget, writeBudget } from './budget-file.js';
export { Checker, NameCollector } from './checker.js';
export { type GuestExit, type GuestLimits, GuestWatch, panicVerdict } from './guest.js';
export {
  type Checked,
  checkedJson,
  checkedMarkdown,
  checkedText,
  githubAnnotations,
  isBroken,
  junitXml,
} from './reports.js';
export type { Verdict } from './section.js';
