export { type BudgetFile, leftOutOf, proposedBudget, readBudget, writeBudget } from './budget-file.js';
export { type Checked, isBroken } from './checked.js';
export { Checker } from './checker.js';
export { type GuestExit, type GuestLimits, GuestWatch, panicVerdict } from './guest.js';
export { NameCollector } from './names.js';
export { checkedJson, checkedMarkdown, checkedText, githubAnnotations, junitXml } from './reports.js';
export type { Verdict } from './section.js';
