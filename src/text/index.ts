export { type ColumnsOptions, textTable } from './columns.js';
export { libraryBelow, libraryName, macroOf, ownFiles } from './own-files.js';
export { leftOut, type NodeCode, ownTree, type Shown, wholeTree } from './own-tree.js';
export { branchesIn, foldBrackets, lineOf } from './short-name.js';
export { isLibraryFile, plural, shownFile, shownPlace, shownPlaces } from './shown-place.js';
export { clipEnd, clipPlace, clipStart, padEndTo, textWidth, wrapped } from './text-width.js';
export { type NodeText, treeLines } from './tree-lines.js';
export { jsonLine, textLines, visible, visibleJson, visibleLines } from './visible.js';
