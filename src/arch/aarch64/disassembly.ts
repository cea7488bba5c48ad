import { type Addr, addOffset } from '../../base/addr.js';
import { type LoadedCapstone, loadCapstone } from '../capstone.js';
import type { Step } from '../inject/code-path.js';
import type { AssemblyLine } from '../inject/probe-code.js';
import { decode } from './decode.js';
import { CNTVCT_EL0 } from './system-registers.js';

let printer: InstanceType<LoadedCapstone['Capstone']> | undefined;
let loading: Promise<void> | undefined;

/** Loads Capstone, once: it prints instructions, of which `decode.ts` knows what each does. */
export function prepare(): Promise<void> {
  loading ??= loadCapstone('aarch64 code cannot be printed').then(({ Capstone, Const }) => {
    printer = new Capstone(Const.CS_ARCH_ARM64, Const.CS_MODE_LITTLE_ENDIAN);
  });
  return loading;
}

/** As Capstone prints it: `stp x29, x30, [sp, #-0x10]!`. What it does not know is data, as all is before `prepare`. */
export function textOf(word: number, pc: Addr): string {
  const bytes = new Uint8Array(Uint32Array.of(word).buffer);
  try {
    const [found] = printer?.disasm(bytes, { address: BigInt.asUintN(64, pc) }) ?? [];
    if (found) return found.opStr === '' ? found.mnemonic : `${found.mnemonic} ${found.opStr}`;
  } catch {
    // It throws for what it does not know.
  }
  return `.4byte 0x${word.toString(16)}`;
}

/** See `ProbeCode.disassemble`. */
export function disassemble(code: Uint8Array, start: Addr): readonly AssemblyLine[] {
  const lines: AssemblyLine[] = [];
  for (let offset = 0; offset < code.length; offset += 4) {
    const address = addOffset(start, offset);
    const instruction = decode(code, offset);
    const text = instruction ? textOf(instruction.word, address) : '.byte';
    lines.push({ address, bytes: code.slice(offset, offset + 4), text });
  }
  return lines;
}

/** See `ProbeCode.step`. A call is stepped over. */
export function step(code: Uint8Array, start: Addr, offset: number): Step | undefined {
  const instruction = decode(code, offset);
  if (instruction === undefined) return undefined;
  const at = addOffset(start, offset);
  const plain = { length: 4, jumps: undefined, branches: undefined, readsTime: false };
  switch (instruction.form) {
    case 'jump':
      return instruction.link ? plain : { ...plain, jumps: addOffset(at, instruction.imm) };
    case 'jump-register':
      return instruction.op === 'blr' ? plain : { ...plain, jumps: farTarget(code, start, offset - 8) ?? 'away' };
    case 'branch':
      return { ...plain, branches: addOffset(at, instruction.imm) };
    case 'system':
      return { ...plain, readsTime: instruction.op === 'mrs' && instruction.register === CNTVCT_EL0 };
    default:
      return plain;
  }
}

/** Where `adrp; add; ret` at an offset leads, or the same with `br`; undefined for other code. */
export function farTarget(code: Uint8Array, start: Addr, offset: number): Addr | undefined {
  const [page, low, jump] = [decode(code, offset), decode(code, offset + 4), decode(code, offset + 8)];
  if (page?.form !== 'address' || !page.isPage || low?.form !== 'add-immediate') return undefined;
  if (low.op !== 'add' || low.flags || !low.wide || low.rn !== page.rd || low.rd !== page.rd) return undefined;
  if (jump?.form !== 'jump-register' || jump.op === 'blr' || jump.isSigned || jump.rn !== page.rd) return undefined;
  return addOffset(addOffset(start, offset), page.imm + low.imm - Number(addOffset(start, offset) & 0xfffn));
}
