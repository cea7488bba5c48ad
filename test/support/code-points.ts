import fc from 'fast-check';

/**
 * Any character of Unicode, for `fc.string({ unit })`: as fast-check's own 'binary', which first makes a map of all
 * 1.1 million, a second of CPU.
 */
export const codePoint = fc
  .oneof(fc.nat({ max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((point) => String.fromCodePoint(point));
