import { type CoreStacks, type HartBacktrace, linesOf, stacksAt, stacksInCore } from '../api/index.js';
import { openMemoryImage } from '../async/tasks/index.js';
import { type Addr, hex } from '../base/addr.js';
import { isProcess } from '../rsp/index.js';
import { hartName } from '../target/index.js';
import { type OtherCode, programName } from '../target/stacks/index.js';
import { type EndReason, type Frame, type SourceFrame, SourceFrames } from '../target/unwind/index.js';
import { clipPlace, lineOf, shownPlace, textLines } from '../text/index.js';
import { formatValue, valueJson } from '../values/index.js';
import { loadedThere, lookAt, programOf, readProgram } from './look-at.js';
import { sayWithoutWire } from './open-output.js';
import { openPrograms } from './open-programs.js';
import { debugFilesOf } from './options/common.js';
import type { BacktraceArguments } from './options/target.js';
import { lineWidth, printed } from './terminal.js';

/**
 * `rsptrace bt --remote ADDR kernel.elf`, `--pid PID` or `--core FILE`: the stack of each hart or thread. Gives the
 * exit status.
 */
export async function backtrace(given: BacktraceArguments): Promise<number> {
  const read = await readProgram({ ...given, elf: programOf(given) });
  const { args, logger, linked, arch } = read;
  const programs = await openPrograms(args, linked, logger);
  const options = { unwinder: args.unwinder, depth: args.depth, locals: args.locals };
  const common = { arch, logger, ...debugFilesOf(args) };
  if (args.core !== undefined) {
    sayWithoutWire(args);
    using image = await openMemoryImage(args.core, undefined, linked);
    return print(args, await stacksInCore(image, linked, common, options));
  }
  const known = linesOf(linked, logger);
  return await lookAt(read, async ({ session }) => {
    const elf = await loadedThere(session, read);
    const debug = elf === linked ? known : linesOf(elf, logger);
    const found = await stacksAt(session, { ...common, elf, debug, programs }, options);
    await session.leaveAsFound();
    return print(args, { elf, debug, ...found, isProcess: isProcess(session.features) });
  });
}

function print(
  args: BacktraceArguments & { readonly elf: string },
  { elf, debug, harts: found, libraries, isProcess: hasThreads }: CoreStacks,
): number {
  const sources = new SourceFrames(elf, debug);
  const { loaded, missing } = libraries;
  const notes = missing.map(({ name, why }) => `not read: ${name}: ${why}\n`);
  const json = {
    ...{ version: 1, program: args.elf, libraries: loaded.map(({ path }) => path), missing_libraries: missing },
    harts: stacksJson(found, sources),
  };
  return printed(args, json, () => [stacksText(found, sources, hasThreads, lineWidth()), ...notes].join('\n'));
}

/** A member a hart. */
export function stacksJson(harts: readonly HartBacktrace[], sources: SourceFrames): object[] {
  return harts.map(({ hart, stack, firmware, other, program, variables, beginsAt = 'pc' }) => ({
    id: hart.id,
    name: hart.name ?? null,
    pc: beginsAt === 'pc' ? pcText(firmware ?? other?.pc ?? stack.frames[0]?.pc) : null,
    begins_at: beginsAt.replace('-', '_'),
    firmware: firmware !== undefined,
    program: other === undefined ? program.path : null,
    other_code: other !== undefined,
    one_of: other?.oneOf.map(({ path }) => path) ?? [],
    privilege: other?.privilege ?? null,
    frames: stack.frames.flatMap((frame) =>
      sources.of(frame).map((source, index, all) => ({
        level: frame.level,
        pc: hex(frame.pc),
        cfa: frame.cfa === undefined ? null : hex(frame.cfa),
        function: source.function ?? null,
        library: frame.image?.isLibrary ? frame.image.elf.path : null,
        file: source.file ?? null,
        line: source.line ?? null,
        inlined: source.inlined,
        interrupted: isInterrupted(frame, firmware),
        unwinder: frame.unwinder ?? null,
        confidence: frame.confidence,
        // Locals of the whole frame, including inlined functions, are shown with the frame's own function.
        ...(variables.has(frame) && index === all.length - 1
          ? { locals: variables.get(frame)?.map(({ name, value }) => ({ name, value: valueJson(value) })) }
          : {}),
      })),
    ),
    end: {
      reason: stack.end.reason,
      complete: stack.end.complete,
      pc: stack.end.pc === undefined ? undefined : hex(stack.end.pc),
    },
  }));
}

/** It did not call what runs above it. */
function isInterrupted({ exact, level }: Frame, firmware: Addr | undefined): boolean {
  return exact && (level > 0 || firmware !== undefined);
}

function pcText(pc: Addr | undefined): string | null {
  return pc === undefined ? null : hex(pc);
}

/** The stacks of all harts. `isProcess`: they are threads. */
export function stacksText(
  harts: readonly HartBacktrace[],
  sources: SourceFrames,
  isProcess: boolean,
  width = Number.POSITIVE_INFINITY,
): string {
  return harts
    .map((each) => {
      const { id, name } = each.hart;
      const head = isProcess ? hartName(each.hart, true) : `hart ${id}${name === undefined ? '' : `  ${name}`}`;
      return hartText(head, each, sources, width);
    })
    .join('\n');
}

function hartText(
  head: string,
  { stack, firmware, other, program, variables, beginsAt }: HartBacktrace,
  sources: SourceFrames,
  width: number,
): string {
  const isFurther = other === undefined && program !== sources.elf;
  const lines = [isFurther ? `${head}, in ${programName(program)}` : head];
  if (firmware !== undefined)
    lines.push(`  in firmware (machine mode) at ${hex(firmware)}${stack.frames.length > 0 ? ', below it:' : ''}`);
  if (beginsAt === 'last-call')
    lines.push('  the dump has no pc: the first frame is the last call, and the hart may be in it or behind it');
  if (other !== undefined) lines.push(`  ${otherText(other)}`);
  for (const frame of stack.frames) {
    sources.of(frame).forEach((source, index) => {
      lines.push(frameText(frame, source, { first: index === 0, interrupted: isInterrupted(frame, firmware), width }));
    });
    for (const { name, value } of variables.get(frame) ?? []) lines.push(`        ${name} = ${formatValue(value)}`);
  }
  const { reason, pc, complete } = stack.end;
  lines.push(
    `  ${complete ? 'end' : 'the stack ends early'}: ${endings[reason]}${pc === undefined ? '' : ` (${hex(pc)})`}`,
  );
  return textLines(lines);
}

function otherText({ pc, privilege, oneOf }: OtherCode): string {
  const mode = privilege === undefined ? '' : ` in ${privilege === 'kernel' ? 'supervisor' : privilege} mode`;
  if (oneOf.length > 0) {
    const names = oneOf.map(programName).join(' or ');
    return `at ${hex(pc)}${mode}, in ${names}: all memory that can be read here has the same code in each of them`;
  }
  return `at ${hex(pc)}${mode}, in another program's code: this ELF is not what runs there`;
}

/** `#3  0x80203abc labkern::exec::run at src/exec.rs:88  [cfi]`; inlined functions have no pc of their own. */
function frameText(
  frame: Frame,
  source: SourceFrame,
  { first, interrupted, width }: { readonly first: boolean; readonly interrupted: boolean; readonly width: number },
): string {
  const number = first ? `#${frame.level}` : '';
  const library = first && frame.image?.isLibrary ? ` from ${frame.image.elf.path}` : '';
  const where =
    source.file === undefined ? library : ` at ${clipPlace(shownPlace(source.file, source.line), width / 3)}`;
  const notes = [
    ...(source.inlined ? ['inlined'] : [frame.unwinder ?? '']),
    ...(source.inlined || frame.confidence === 'sure' ? [] : [frame.confidence]),
    ...(!source.inlined && interrupted ? ['interrupted'] : []),
  ].filter((note) => note !== '');
  const note = notes.length === 0 ? '' : `  [${notes.join(', ')}]`;
  const pc = first ? hex(frame.pc) : ''.padEnd(hex(frame.pc).length);
  return lineOf(`  ${number.padEnd(4)}${pc} `, source.function ?? '??', `${where}${note}`, width);
}

const endings: Readonly<Record<EndReason, string>> = {
  entry: "the program's entry point",
  'zero-return-address': 'the return address is zero',
  'undefined-return-address': 'call frame information says that nobody called',
  'own-stack': 'this code has set up its own stack',
  'jumped-to': 'this function was jumped to, to begin a thread: nobody called it',
  'return-address-not-kept': 'this function never returns, and has not kept who called it',
  'outside-code': 'the next pc is in no code that is known',
  'other-code': 'of another program nothing is known (give its ELF, or stop the target in this one)',
  firmware: 'the firmware has interrupted nothing, or its caller cannot be found from here',
  'no-unwinder': 'no unwinder that may be used here can leave this frame',
  'unreadable-stack': 'the stack cannot be read',
  loop: 'the next frame would not be further out',
  depth: 'as many frames as were asked for (--depth)',
};
