import { hex } from '../base/addr.js';
import { textTable } from '../base/columns.js';
import type { OwnTime, ProbeFact } from '../trace/index.js';

/** For `--json`: one object a probe. */
export function choicesJson(choices: readonly ProbeFact[]): object[] {
  return choices.map(({ name, address, engine, why, partly }) => ({
    function: name,
    address: hex(address),
    engine,
    ...(why === undefined ? {} : { why }),
    ...(partly === undefined ? {} : { partly }),
  }));
}

/** For people: one line a probe, and under them why some need stops. */
export function choiceTable(choices: readonly ProbeFact[], color = false): string {
  const rows = choices.map(({ name, address, engine, why, partly }) => [
    hex(address),
    engine,
    name,
    why ?? partly ?? '',
  ]);
  return textTable(['address', 'engine', 'function', 'why not without stops, or what is not seen'], rows, color);
}

/** For `--json`: nothing where it is not known. */
export function ownTimeJson(own: OwnTime | undefined): object {
  if (!own) return {};
  return { own_time: { least_ns: own.leastNs, most_ns: own.mostNs, total_ns: own.totalNs } };
}
