import { addOffset } from '../../base/addr.js';
import { Label } from '../inject/code-buffer.js';
import { type FieldSource, type LoadGroup, loadGroups, type RecordField } from '../inject/record-parts.js';
import { controlBlock, type RingGeometry } from '../inject/ring-contract.js';
import type { Assembler } from './assembler.js';
import { follow, verifyPointer } from './condition.js';
import type { Place } from './encoder.js';
import { floatArguments, R11, RAX, RBX, RDX, RSP } from './registers.js';
import { fetch, general, keptWord, type Stack } from './stack.js';

/** Fills the record at r11; rax is free. */
export function writeFields(
  code: Assembler,
  fields: readonly RecordField[],
  ring: Pick<RingGeometry, 'control' | 'outer'>,
  stack: Stack,
): void {
  // The time comes first: as soon after the claim as possible.
  const isTime = ({ from }: RecordField): boolean => from.kind === 'time';
  for (const field of [...fields.filter(isTime), ...fields.filter((each) => !isTime(each))])
    if (field.from.kind !== 'load') writeField(code, field, ring, stack);
  for (const group of loadGroups(fields, MAX_ALIGN)) loadThrough(code, group, stack);
}

const MAX_ALIGN = 2 ** 30;

/** A word of the control block. */
export function controlWord({ control }: Pick<RingGeometry, 'control'>, offset: number): Place {
  return { at: addOffset(control, offset) };
}

/** The words of the open outer poll. */
export function outerWords(ring: Pick<RingGeometry, 'control' | 'outer'>): {
  readonly self: Place;
  readonly plan: Place;
} {
  if (ring.outer) return { self: { fs: ring.outer.fs }, plan: { fs: ring.outer.fs + 8 } };
  return { self: controlWord(ring, controlBlock.outer), plan: controlWord(ring, controlBlock.outerPlan) };
}

function writeField(
  code: Assembler,
  { at, size, from }: RecordField,
  ring: Pick<RingGeometry, 'control' | 'outer'>,
  stack: Stack,
): void {
  const to = { base: R11, offset: at };
  let source = RAX;
  switch (from.kind) {
    case 'float':
      storeFloat(code, to, from, size);
      return;
    case 'constant':
      storeConstant(code, to, from.value, size);
      return;
    case 'register':
      source = fetch(code, general(from.name), stack, RAX);
      break;
    case 'stack-pointer':
      code.address(RAX, { base: RSP, offset: stack.stackPointer });
      break;
    case 'return-address':
      code.load(RAX, { base: RSP, offset: stack.returnAddress });
      break;
    case 'kept':
      code.load(RAX, keptWord(stack, from.index));
      break;
    case 'time':
      readTime(code);
      break;
    case 'hart':
      readHart(code, from.how, from.offset ?? 0);
      break;
    case 'control':
      if (!(from.offset >= 0 && from.offset <= controlBlock.size - 8)) {
        throw new RangeError(`The control block has no word at ${from.offset}`);
      }
      code.load(RAX, controlWord(ring, from.offset));
      break;
    case 'outer':
      code.load(RAX, outerWords(ring).self);
      break;
    case 'load':
      throw new RangeError('Loads are written in groups');
  }
  code.store(to, source, size);
}

/** CR0: TS is set while the unit has another task's values, EM while there is none. Each access traps then. */
const CR0_OFF = 0x0c;

function storeFloat(
  code: Assembler,
  to: { readonly base: number; readonly offset: number },
  { name, mayBeOff }: FieldSource & { readonly kind: 'float' },
  size: RecordField['size'],
): void {
  const number = floatArguments.indexOf(name);
  if (number < 0 || size !== 8) throw new RangeError(`${name} is no floating-point register of 8 bytes`);
  const [off, done] = [new Label(), new Label()];
  if (mayBeOff) {
    code.plain('mov rax, cr0');
    code.testConstant(RAX, CR0_OFF);
    code.branch('ne', off);
  }
  code.storeFloat(to, number);
  if (!mayBeOff) return;
  code.jump(done);
  code.bind(off);
  code.storeConstant(to, -1n, 8);
  code.bind(done);
}

function storeConstant(code: Assembler, to: Place, value: bigint, size: RecordField['size']): void {
  if (size === 8 && BigInt.asIntN(32, value) !== BigInt.asIntN(64, value)) {
    code.constant(RAX, value);
    code.store(to, RAX);
  } else code.storeConstant(to, value, size);
}

/** Reads it into rax; clobbers rdx. */
export function readTime(code: Assembler): void {
  code.plain('rdtsc');
  code.shift('left', RDX, 32);
  code.arithmetic('or', RAX, RDX);
}

function readHart(code: Assembler, how: string, offset: number): void {
  switch (how) {
    case 'fs':
      code.load(RAX, { fs: offset });
      return;
    case 'apic':
      // Leaf 1, ebx 31:24, "initial APIC ID". It is used because a descriptor table or a segment's base may be
      // shared, or may change while a kernel boots.
      code.constant(RAX, 1n);
      code.plain('cpuid');
      code.move(RAX, RBX);
      code.shift('left', RAX, 32);
      code.shift('right', RAX, 56);
      return;
    default:
      throw new RangeError(`x86_64 cannot tell harts apart by ${how}`);
  }
}

/** Fields behind one pointer, which is checked once. */
function loadThrough(code: Assembler, { base, align, loads }: LoadGroup, stack: Stack): void {
  const wrong = new Label();
  const done = new Label();
  let pointer = RDX;
  if (base.kind === 'kept') code.load(RDX, keptWord(stack, base.index));
  else pointer = fetch(code, general(base.name), stack, RDX);
  pointer = follow(code, pointer, base.through ?? [], RDX, wrong);
  verifyPointer(code, pointer, align, wrong);
  for (const { field, offset } of loads) {
    code.load(RAX, { base: pointer, offset }, field.size);
    code.store({ base: R11, offset: field.at }, RAX, field.size);
  }
  code.jump(done);
  code.bind(wrong);
  for (const { field } of loads) code.storeConstant({ base: R11, offset: field.at }, -1n, field.size);
  code.bind(done);
}

/**
 * What a wait for room adds to `waited`. Both keep all registers.
 *
 *      rsp + 0: when it began | 8: rax | 16: rdx
 */
export function beginWait(code: Assembler): void {
  code.push(RDX);
  code.push(RAX);
  readTime(code);
  code.push(RAX);
  code.load(RAX, { base: RSP, offset: 8 });
  code.load(RDX, { base: RSP, offset: 16 });
}

export function endWait(code: Assembler, ring: Omit<RingGeometry, 'wait'>): void {
  code.store({ base: RSP, offset: 8 }, RAX);
  code.store({ base: RSP, offset: 16 }, RDX);
  readTime(code);
  code.arithmetic('sub', RAX, { base: RSP, offset: 0 });
  code.addAtOnce(controlWord(ring, controlBlock.waited), RAX);
  code.moveStack(8);
  code.pop(RAX);
  code.pop(RDX);
}
