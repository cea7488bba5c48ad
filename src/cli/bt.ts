import { architectureOf } from '../arch/index.js';
import { hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { DebugInfo, ElfFile, formatValue, valueJson } from '../dwarf/index.js';
import { loadedElf, verifyArchitecture } from '../probes/index.js';
import { connect, type Hart, neverRan, type Session } from '../rsp/index.js';
import {
  type EndReason,
  type Frame,
  type FrameVariable,
  FrameVariables,
  type SourceFrame,
  SourceFrames,
  type Stack,
  Stacks,
} from '../unwind/index.js';
import { showConsole } from './console-output.js';
import { ExitCode } from './failure.js';
import { createLogger } from './logging.js';
import { type CommonArguments, debugFilesOf, wireRecorder } from './options.js';

export interface BacktraceArguments extends CommonArguments {
  readonly elf: string;
  readonly remote: string;
  readonly unwinder: 'auto' | 'cfi' | 'fp' | 'prologue';
  readonly depth: number;
  readonly locals: boolean;
}

interface HartStack {
  readonly hart: Hart;
  readonly stack: Stack;
  /** With --locals: of each frame that has some. */
  readonly variables: ReadonlyMap<Frame, readonly FrameVariable[]>;
}

/** `rsptrace bt --remote ADDR kernel.elf`: every hart's stack. Gives the exit status. */
export async function backtrace(args: BacktraceArguments): Promise<number> {
  const logger = createLogger(args.log);
  const linked = await ElfFile.open(args.elf, { ...debugFilesOf(args), logger });
  const arch = architectureOf(linked.machine);
  if (arch === undefined) {
    throw new RsptraceError(
      'ARCH_UNSUPPORTED',
      `${args.elf} is for an architecture (e_machine ${linked.machine}) that rsptrace does not know`,
      { hint: 'riscv64 (243) and x86_64 (62) are supported' },
    );
  }
  await arch.prepare();
  const load = (elf: ElfFile): DebugInfo | undefined =>
    elf.has('.debug_info') ? DebugInfo.load(elf, { logger }) : undefined;
  const known = load(linked);
  using wire = wireRecorder(args, logger);
  await using session = await connect(args.remote, {
    logger,
    timeoutMs: args.timeout,
    expectedArchitecture: arch.name,
    onConsole: showConsole,
    recordWire: wire,
  });
  verifyArchitecture(session, arch);
  const elf = await loadedElf(session, linked);
  const debug = elf === linked ? known : load(elf);
  const stacks = new Stacks(elf, arch, debug);
  const sources = new SourceFrames(elf, debug);
  const found: HartStack[] = [];
  for (const hart of await session.harts()) {
    const stack = await stackOf(session, hart, stacks, args);
    const variables = new Map<Frame, readonly FrameVariable[]>();
    const reader = args.locals && debug ? new FrameVariables(debug, session.memory(hart.id)) : undefined;
    if (reader) for (const frame of stack.frames) variables.set(frame, await reader.of(frame));
    found.push({ hart, stack, variables });
  }
  if (await neverRan(session)) session.close();
  else await session.detach();
  process.stdout.write(args.json ? `${JSON.stringify(asJson(args, found, sources))}\n` : asText(found, sources));
  return ExitCode.recorded;
}

async function stackOf(session: Session, hart: Hart, stacks: Stacks, args: BacktraceArguments): Promise<Stack> {
  const batch = session.batch(hart.id);
  const registers = batch.readRegisters(session.target.source === 'target.xml' ? stacks.specialRegisters : []);
  await batch.send();
  return stacks.unwind(registers.value, session.memory(hart.id), { unwinder: args.unwinder, depth: args.depth });
}

function asJson(args: BacktraceArguments, harts: readonly HartStack[], sources: SourceFrames): object {
  return {
    version: 1,
    program: args.elf,
    harts: harts.map(({ hart, stack, variables }) => ({
      id: hart.id,
      name: hart.name ?? null,
      pc: stack.frames[0] === undefined ? null : hex(stack.frames[0].pc),
      frames: stack.frames.flatMap((frame) =>
        sources.of(frame).map((source, index, all) => ({
          level: frame.level,
          pc: hex(frame.pc),
          cfa: frame.cfa === undefined ? null : hex(frame.cfa),
          function: source.function ?? null,
          file: source.file ?? null,
          line: source.line ?? null,
          inlined: source.inlined,
          interrupted: frame.exact && frame.level > 0,
          unwinder: frame.unwinder ?? null,
          confidence: frame.confidence,
          // Of the whole frame, inlined functions included: with the function that the frame is of.
          ...(variables.has(frame) && index === all.length - 1
            ? { locals: variables.get(frame)?.map(({ name, value }) => ({ name, value: valueJson(value) })) }
            : {}),
        })),
      ),
      end: {
        reason: stack.end.reason,
        complete: stack.end.complete,
        ...(stack.end.pc === undefined ? {} : { pc: hex(stack.end.pc) }),
      },
    })),
  };
}

function asText(harts: readonly HartStack[], sources: SourceFrames): string {
  return harts.map((each) => hartText(each, sources)).join('\n');
}

function hartText({ hart, stack, variables }: HartStack, sources: SourceFrames): string {
  const lines = [`hart ${hart.id}${hart.name === undefined ? '' : `  ${hart.name}`}`];
  for (const frame of stack.frames) {
    sources.of(frame).forEach((source, index) => {
      lines.push(frameText(frame, source, index === 0));
    });
    for (const { name, value } of variables.get(frame) ?? []) lines.push(`        ${name} = ${formatValue(value)}`);
  }
  const { reason, pc, complete } = stack.end;
  lines.push(
    `  ${complete ? 'end' : 'the stack ends early'}: ${endings[reason]}${pc === undefined ? '' : ` (${hex(pc)})`}`,
  );
  return `${lines.join('\n')}\n`;
}

/** `#3  0x80203abc labkern::exec::run at src/exec.rs:88  [cfi]`; inlined functions have no pc of their own. */
function frameText(frame: Frame, source: SourceFrame, first: boolean): string {
  const number = first ? `#${frame.level}` : '';
  const where = source.file === undefined ? '' : ` at ${source.file}:${source.line ?? '?'}`;
  const notes = [
    ...(source.inlined ? ['inlined'] : [frame.unwinder ?? '']),
    ...(source.inlined || frame.confidence === 'sure' ? [] : [frame.confidence]),
    ...(!source.inlined && frame.exact && frame.level > 0 ? ['interrupted'] : []),
  ].filter((note) => note !== '');
  const note = notes.length === 0 ? '' : `  [${notes.join(', ')}]`;
  const pc = first ? hex(frame.pc) : ''.padEnd(hex(frame.pc).length);
  return `  ${number.padEnd(4)}${pc} ${source.function ?? '??'}${where}${note}`;
}

const endings: Readonly<Record<EndReason, string>> = {
  entry: "the program's entry point",
  'zero-return-address': 'the return address is zero',
  'undefined-return-address': 'call frame information says that nobody called',
  'own-stack': 'this code has set up its own stack',
  'return-address-not-kept': 'this function never returns, and has not kept who called it',
  'outside-code': 'the next pc is in no code of this ELF',
  'no-unwinder': 'no unwinder that may be used here can tell this frame',
  'unreadable-stack': 'the stack cannot be read',
  loop: 'the next frame would not be further out',
  depth: 'as many frames as were asked for (--depth)',
};
