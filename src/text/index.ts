export { type ColumnsOptions, textTable } from './columns.js';
export {
  isLibraryFile,
  libraryBelow,
  libraryName,
  macroOf,
  ownFiles,
  plural,
  shownFile,
  shownPlace,
  shownPlaces,
} from './own-files.js';
export { leftOut, type NodeCode, type NodeText, ownTree, type Shown, treeLines, wholeTree } from './own-tree.js';
export { branchesIn, lineOf, sharedBy, shortName } from './short-name.js';
export { clipEnd, clipPlace, padEndTo, wrapped } from './text-width.js';
export { jsonLine, textLines, visible, visibleJson, visibleLines } from './visible.js';
