import { hex } from '../base/addr.js';
import type { StopLeak } from '../clock/index.js';
import type { ExcludedFunction } from '../probes/index.js';
import type { Program } from '../record/index.js';
import { type ColumnsOptions, textTable } from '../text/index.js';
import { type OwnTime, type ProbeFact, timeText } from '../trace/index.js';

/** For `--json`: one object a probe. */
export function choicesJson(choices: readonly ProbeFact[]): object[] {
  return choices.map(({ name, address, engine, why, proof, partly }) => ({
    function: name,
    address: hex(address),
    engine,
    why,
    proof,
    partly,
  }));
}

/** For people: one line a probe, and under them why some need stops. */
export function choiceTable(choices: readonly ProbeFact[], options: ColumnsOptions = { color: false }): string {
  const rows = choices.map(({ name, address, engine, why, proof, partly }) => [
    hex(address),
    engine,
    name,
    why ?? partly ?? proof ?? '',
  ]);
  return textTable(
    ['address', 'engine', 'function~', 'why not without stops, what is not seen, or why it is allowed'],
    rows,
    options,
  );
}

/** For `--json`: nothing where it is not known. */
export function ownTimeJson(own: OwnTime | undefined): object {
  if (!own) return {};
  return { own_time: { least_ns: own.leastNs, most_ns: own.mostNs, total_ns: own.totalNs } };
}

/** For `--json`: what stops have added to the guest's clock; nothing where anything was recorded without them. */
export function leakJson(leak: StopLeak | undefined): object {
  if (!leak) return {};
  const { totalNs, perStopNs, measured, stops, rest } = leak;
  return {
    leak: {
      ...{ total_ns: totalNs, per_stop_ns: perStopNs, measured, stops, exact: rest === 'tick' },
      ...(rest === 'tick' ? {} : { rest_per_stop_ns: rest.perStopNs ?? null, why: rest.why, way_out: rest.wayOut }),
    },
  };
}

/** The same for people. */
export function leakLines(leak: StopLeak | undefined, stops: number): string[] {
  if (!leak || stops === 0) return [];
  const { totalNs, perStopNs, rest } = leak;
  const taken = `stops have added ${timeText(totalNs)} to the guest's clock, ${timeText(perStopNs)} each, which`;
  if (rest === 'tick') {
    const timer = "interrupts by the guest's timer come more often than without stops, and are in them";
    return [`${taken} durations are without (+- is the clock's tick, for all stops inside); ${timer}`];
  }
  const limit = rest.perStopNs === undefined ? '' : `, not known to better than ${timeText(rest.perStopNs)} a stop`;
  return [`durations are upper bounds (<)${limit}, because ${rest.why}; for better ones ${rest.wayOut}`];
}

/** Those that a probe asks for by this very name, and that are left out with others. */
export function refusedByName({ kinds: found, specs }: Program): ExcludedFunction[] {
  const asked = new Set(specs.flatMap((spec) => ('glob' in spec ? [spec.glob] : [])));
  return found.flatMap((each) => each.found.excluded ?? []).filter(({ name }) => asked.has(name));
}

/** For machines. */
export function excludedJson(excluded: readonly ExcludedFunction[]): object[] {
  return excluded.map(({ name, address, reason }) => ({ function: name, address: hex(address), reason }));
}

/** The members of all. */
export function merged(objects: readonly object[]): object {
  return Object.fromEntries(objects.flatMap((each) => Object.entries(each)));
}
