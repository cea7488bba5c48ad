export { type BtfFunction, type BtfValue, btfFunctions, btfMember } from './btf.js';
export { type CodeAddress, CodeSpace, lastNotAbove, NO_ADDRESS, signedWord } from './code-address.js';
export { ET, SHF, SHT } from './constants.js';
export { type DebugFileOptions, debugLink } from './debug-file.js';
export { ElfFile, type ElfSection, type ElfSegment } from './elf.js';
export { IntervalIndex, IntervalList } from './intervals.js';
export { DwarfSections } from './sections.js';
export { type ElfSymbol, ElfSymbols } from './symbols.js';
export { asText, textAt } from './text-at.js';
