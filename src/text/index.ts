export { type ColumnsOptions, plural, textTable } from './columns.js';
export { isLibraryFile, libraryBelow, libraryName, macroOf, ownFiles } from './own-files.js';
export { leftOut, type NodeCode, type NodeText, ownTree, type Shown, treeLines, wholeTree } from './own-tree.js';
export { branchesIn, lineOf, sharedBy, shortName } from './short-name.js';
export { shownFile, shownPlace, shownPlaces } from './shown-place.js';
export { clipEnd, clipPlace, padEndTo, wrapped } from './text-width.js';
export { jsonLine, textLines, visible, visibleJson, visibleLines } from './visible.js';
