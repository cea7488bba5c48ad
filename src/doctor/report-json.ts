// The object of `rsptrace doctor --json`, version 2: docs/doctor.md.
import { type Addr, hex } from '../base/addr.js';
import { jsonFacts } from '../base/json-facts.js';
import { demangle } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { hurdlesJson, summarizeEngines } from '../engines/index.js';
import { isMovedAtBoot } from '../target/index.js';
import type { Diagnosis } from './examine.js';
import type { ProgramReport } from './program.js';
import type { RoundTrip } from './stub.js';

export function diagnosisJson(found: Diagnosis): object {
  const { session, arch, harts, times } = found;
  const { target } = session;
  return {
    version: 2,
    stub: stubJson(found),
    target: {
      architecture: target.architecture ?? null,
      arch: arch?.name ?? null,
      described_by: target.source,
      registers: target.registers.size,
      never_started: found.fresh,
    },
    ...jsonFacts(found, ['hartCount', 'hartsUnseen']),
    harts: harts.map((hart) => hartJson(hart, found.elf)),
    clocks: found.clocks.map((clock) => jsonFacts(clock, ['name', 'option', 'resolutionNs', 'guest', 'chosen'])),
    times: {
      round_trip: timeJson(times.smallest),
      registers: timeJson(times.registers),
      memory_4k: times.page ? timeJson(times.page) : null,
    },
    hits: hitsJson(found),
    program: found.program ? programJson(found.program) : null,
    advice: found.advice,
  };
}

function stubJson({ server, session, abilities, hardware }: Diagnosis): object {
  const { features } = session;
  return {
    server: server.name,
    server_recognized_by: server.recognizedBy,
    server_version: server.version ?? null,
    accelerator: server.accelerator ?? null,
    supported: Object.fromEntries(features.supported),
    ...jsonFacts(features, ['packetSize', 'noAck', 'batches']),
    vcont: [...features.vCont],
    breakpoints: abilities.breakpoints,
    hardware_breakpoints: hardware ?? null,
    registers_by: [...(features.registerBlock ? ['g'] : []), ...(features.singleRegister ? ['p'] : [])],
    threads_by: abilities.threads,
    files: abilities.fileTransfer,
    attached: session.attached ?? null,
    memory_map: abilities.memoryMap?.map((region) => jsonFacts(region, ['type', 'start', 'length'])) ?? null,
  };
}

function hartJson(hart: Diagnosis['harts'][number], elf: Diagnosis['elf']): object {
  const { pc, mode, paging, registers } = hart;
  return {
    ...jsonFacts(hart, ['id', 'name', 'pc']),
    function: pc === undefined ? null : (placeName(elf, pc) ?? null),
    mode: mode ?? null,
    paging: paging ? jsonFacts(paging, ['scheme', 'root', 'asid']) : null,
    registers: registers.map((register) => jsonFacts(register, ['name', 'value', 'meaning'])),
  };
}

function hitsJson({ hits, elf }: Diagnosis): object {
  const { rate, ranMs, stands, why } = hits;
  return {
    per_second: rate ? tenth(rate.perSecond) : null,
    hits: rate?.hits ?? null,
    address: rate ? hex(rate.address) : null,
    function: rate ? (placeName(elf, rate.address) ?? null) : null,
    ran_ms: tenth(ranMs),
    guest_ended: !stands,
    why,
  };
}

function timeJson({ samples, medianUs, p90Us }: RoundTrip): object {
  return { samples, median_us: tenth(medianUs), p90_us: tenth(p90Us) };
}

function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}

function programJson(program: ProgramReport): object {
  const { problem, noProbes, scratch } = program;
  const errorOf = (error: typeof problem): object | null =>
    error ? { code: error.code, message: error.message } : null;
  return {
    ...jsonFacts(program, ['path', 'buildId', 'loadBias', 'debugInfo', 'frameInfo', 'compared']),
    same: program.same.length,
    ...jsonFacts(program, ['absent', 'elsewhere']),
    problem: errorOf(problem),
    no_probes: errorOf(noProbes),
    hurdles: hurdlesJson(program.hurdles),
    scratch: scratch === undefined ? null : jsonFacts(scratch),
    engines: enginesJson(program),
    probes: program.probes.map(({ name, address, engine, why }) => ({
      ...{ function: name, address: hex(address), engine, why },
    })),
    ...Object.fromEntries(program.previews.flatMap(({ json }) => Object.entries(json))),
  };
}

/** As `engines` of a recording has it, without what only a recording shows. */
function enginesJson({ probes }: ProgramReport): object {
  return jsonFacts(summarizeEngines(probes), ['withoutStops', 'stopping', 'leftOut', 'reasons', 'partly']);
}

/** `labkern::exec::run+0x12`, by the ELF's symbols; undefined outside of its code, and before its loader has moved it. */
export function placeName(elf: ElfFile | undefined, address: Addr): string | undefined {
  if (elf && elf.loadBias === 0n && isMovedAtBoot(elf)) return undefined;
  if (elf?.bytesAt(address, 1) === undefined) return undefined;
  const symbol = elf.symbols.at(address);
  if (symbol === undefined) return undefined;
  const offset = address - symbol.address;
  return `${demangle(symbol.name, elf.budget)}${offset === 0n ? '' : `+${hex(offset)}`}`;
}
