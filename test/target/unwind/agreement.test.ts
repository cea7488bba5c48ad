import t from 'tap';
import { architectureOf } from '../../../src/arch/index.js';
import { CallFrames } from '../../../src/dwarf/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import { elfPath } from '../../qemu/guests/guests.js';
import { compare } from './agreement.mjs';

/** In these the code is right and the call frame information is not: see docs/internals/unwind-agreement.md. */
const wrongCfi = new Set([
  'the CFI leaves out a push of inline assembly',
  'the CFI gives both halves of a stack adjustment at once',
  'the CFI has the return address in a register that the code has overwritten for a call that never returns',
]);

const names = ['rv-o0', 'rv-o2', 'rvm-o2', 'rv-o2-eh', 'rv-o2-fp', 'rv-o2-dwarf5', 'x86-o0', 'x86-o2', 'x86-o2-legacy'];

for (const name of names) {
  t.test(`${name}: code analysis tells every frame as the call frame information does`, async (t) => {
    const elf = await ElfFile.open(elfPath(name));
    const arch = architectureOf(elf.machine);
    if (arch?.frames === undefined) throw new Error('unknown architecture');
    await arch.prepare();
    const cfi = CallFrames.load(elf);
    const found = compare({ cfi, model: arch.frames, elf });
    t.same(cfi.warnings, []);
    t.ok(found.functions >= 120, `${found.functions} functions compared`);
    t.ok(found.instructions >= 8900, `${found.instructions} instructions compared`);
    const plain = (100 * found.agree) / found.instructions;
    // Inline assembly that pushes and pops the flags is what x86 guests lose by.
    t.ok(plain >= (name.startsWith('x86-o2') ? 99.2 : 99.5), `${plain.toFixed(3)} % agree`);
    let right = found.agree;
    for (const [cause, { count }] of Object.entries(found.causes)) if (wrongCfi.has(cause)) right += count;
    t.ok((100 * right) / found.instructions >= 99.8, 'nearly all of the rest is wrong in the call frame information');
    t.notOk(found.causes.other, 'no difference is without an explanation');
    t.notOk(found.confidence.unknown, 'no stack pointer is lost');
  });
}
