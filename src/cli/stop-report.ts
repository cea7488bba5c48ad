// What stops cost, and what would spare them: said when the engines are known, and at the end.
import { hex } from '../base/addr.js';
import { isRefusal, type Refusal } from '../base/errors.js';
import { jsonFacts } from '../base/json-facts.js';
import type { StopLeak } from '../clock/index.js';
import {
  adviceOnStops,
  adviceText,
  type EngineSituation,
  engineSentence,
  extraLines,
  type Hurdle,
  hurdleLines,
  isOfTarget,
  reasonLines,
  summarizeEngines,
} from '../engines/index.js';
import type { ExcludedFunction, Found } from '../probes/index.js';
import type { EnginesChosen, Program, Recording } from '../record/index.js';
import { textTable } from '../text/index.js';
import { type OwnTime, type ProbeFact, timeText } from '../trace/index.js';
import { sentenceLines } from './failure.js';

/**
 * For stderr, before anything is written to the target: all at once. Nothing if each is of some probes' code alone,
 * because those are said with the engines.
 */
export function hurdlesText(hurdles: readonly Hurdle[]): string {
  if (!hurdles.some(isOfTarget)) return '';
  const lines = hurdleLines(hurdles).map((line) => `  ${line}`);
  return sentenceLines(['rsptrace: in the way of probes without stops:', ...lines], process.stderr);
}

/** For stderr, when recording begins. Reasons that {@link hurdlesText} has printed are not said again. */
export function enginesText(
  { engines, refusal, ram }: EnginesChosen,
  situation: EngineSituation,
  hurdles: readonly Hurdle[],
): string {
  const summary = summarizeEngines(engines);
  if (summary.probes === 0) return '';
  const said = new Set(hurdles.some(isOfTarget) ? hurdles.map(({ text }) => text) : []);
  const advice = adviceOnStops(summary, refusal, situation);
  const lines = [
    `rsptrace: ${engineSentence(summary)}`,
    ...[...reasonLines(summary).filter((line) => !said.has(line)), ...extraLines(summary)].map((line) => `  ${line}`),
    ...(advice ? [`  ${adviceText(advice)}`] : []),
    ...(ram && isRefusal(ram) ? [`  ${byPacketsText(ram)}`] : []),
  ];
  return sentenceLines(lines, process.stderr);
}

/** So many lines name probes that are switched off. */
const mostLines = 5;

/** For stderr, each time that probes are switched off: at first by name, then that there are more, then nothing. */
export function switchedOffTexts(): (probes: readonly ProbeFact[]) => string {
  let lines = 0;
  return (probes) => {
    if (++lines > mostLines + 1) return '';
    const line = lines > mostLines ? 'more probes are left out from here on; --json names them all' : offLine(probes);
    return sentenceLines([`rsptrace: ${line}`], process.stderr);
  };
}

function offLine(probes: readonly ProbeFact[]): string {
  const names = [...new Set(probes.map(({ name }) => name))];
  const { why = '', leftOutBy } = probes[0] ?? {};
  const keeps = leftOutBy === 'stops' ? '; --engine mixed keeps ' : '';
  if (names.length === 1) return `${names[0]} is left out from here on: ${why}${keeps && `${keeps}it`}`;
  const more = names.length > 3 ? ` and ${names.length - 3} more` : '';
  const reason = keeps === '' ? why : 'they stopped the target more often than --engine auto allows';
  return `${names.slice(0, 3).join(', ')}${more} are left out from here on: ${reason}${keeps && `${keeps}them`}`;
}

function byPacketsText({ refused, wayOut }: Refusal): string {
  return `the guest's RAM is read by packets: ${refused}${wayOut === undefined ? '' : `; ${wayOut}`}`;
}

/** How the guest's RAM is read, for `--json`. */
export function ramJson({ ram }: Recording): object | null {
  if (ram === undefined) return null;
  if (!isRefusal(ram)) return { past_wire: true, source: ram.source };
  return { past_wire: false, why: ram.refused, way_out: ram.wayOut ?? null };
}

/** A longer time is said: in milliseconds. */
const leastHeld = 100;

/** `3129 stops took 4.8 s, 91 % of the time`, of that from the first resume to the end. */
function stopCostText(recording: Recording, { isMachineOfQemu }: EngineSituation): string {
  const { stops } = recording;
  const text = stops === 1 ? '1 stop took' : `${stops} stops took`;
  const { stoodMs, share } = stopCost(recording);
  const { heldMs } = recording;
  const held = heldMs < leastHeld ? '' : `; ${secondsText(heldMs)} of it to understand the events before each`;
  const anew = isMachineOfQemu && stops > 1 ? ', and QEMU translates its code anew after each' : '';
  return `${text} ${secondsText(stoodMs)}, ${percent(share)} of the time${anew}${held}`;
}

/** Lines for the end of the table: nothing where no probe stopped the target, and all of each was seen. */
export function stopReport(recording: Recording, situation: EngineSituation): string[] {
  const summary = summarizeEngines(recording.engines);
  const stopped = summary.stopping + summary.switchedOff > 0;
  if (!stopped && summary.partly.length === 0) return [];
  const cost = stopped ? `; ${stopCostText(recording, situation)}` : '';
  const advice = adviceOnStops(summary, recording.refusal, situation);
  const isMixed = summary.stopping > 0 && (recording.stopsBeside ?? 0) > 0 && recording.leak === undefined;
  return [
    `${engineSentence(summary)}${cost}`,
    ...(isMixed ? ['  times of calls that such a stop is in are too long, by up to milliseconds a stop'] : []),
    ...[...reasonLines(summary), ...extraLines(summary)].map((line) => `  ${line}`),
    ...(advice ? [`  ${adviceText(advice)}`] : []),
  ];
}

/** For `--json`. */
export function stopJson(recording: Recording, situation: EngineSituation): object {
  const summary = summarizeEngines(recording.engines);
  const { stoodMs, share } = stopCost(recording);
  return {
    ...jsonFacts(summary, ['withoutStops', 'stopping', 'leftOut', 'extras', 'switchedOff', 'reasons']),
    ...jsonFacts(summary, ['withoutDurations', 'partly']),
    stood_ms: Math.round(stoodMs),
    stood_share: Number(share.toFixed(4)),
    held_ms: Math.round(recording.heldMs),
    queued: recording.stopsQueued,
    advice: adviceOnStops(summary, recording.refusal, situation) ?? null,
  };
}

function stopCost({ stoodMs, ranMs }: Recording): { readonly stoodMs: number; readonly share: number } {
  const stood = Math.max(0, stoodMs);
  return { stoodMs: stood, share: stood + ranMs > 0 ? stood / (stood + ranMs) : 0 };
}

/** Of the host: `12 ms`, `1.2 s`. */
export function secondsText(ms: number): string {
  return ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function percent(share: number): string {
  return share > 0 && share < 0.01 ? 'less than 1 %' : `${Math.round(share * 100)} %`;
}

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
export function choiceTable(choices: readonly ProbeFact[]): string {
  const rows = choices.map(({ name, address, engine, why, proof, partly }) => [
    hex(address),
    engine,
    name,
    why ?? partly ?? proof ?? '',
  ]);
  return textTable(
    ['address', 'engine', 'function~', 'why not without stops, what is not seen, or why it is allowed'],
    rows,
    { color: false },
  );
}

/** For `--json`: nothing where it is not known. */
export function ownTimeJson(own: OwnTime | undefined): object {
  if (!own) return {};
  return { own_time: { least_ns: own.leastNs, most_ns: own.mostNs, total_ns: own.totalNs } };
}

/** For `--json`: what stops have added to the guest's clock; nothing where only the times of some probes have it. */
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
export function refusedByName({ kinds: found, specs, others }: Program, of = refused): ExcludedFunction[] {
  const asked = new Set(specs.flatMap((spec) => ('glob' in spec ? [spec.glob] : [])));
  const own = found.flatMap((each) => of(each.found)).filter(({ name }) => asked.has(name));
  return [...own, ...others.flatMap((other) => refusedByName(other, of))];
}

const refused = ({ excluded = [] }: Found): readonly ExcludedFunction[] => excluded;

/** For stderr: calls that probes of functions do not see, and what helps. Undefined if there are none. */
export function inlinedLine({ kinds, others }: Program): string | undefined {
  const copies = [kinds, ...others.map((other) => other.kinds)].flat().flatMap(({ found }) => found.inlinedToo ?? []);
  const [first, ...more] = copies;
  if (first === undefined) return undefined;
  const help = '#[inline(never)] prevents that, and line:FILE:LINE sees each copy';
  if (more.length === 0) return `${first.name} is not probed ${first.reason}: ${help}`;
  const names = copies.slice(0, 3).map(({ name }) => name);
  const rest = copies.length > 3 ? ', ...' : '';
  return `${copies.length} functions are not probed where they are inlined (${names.join(', ')}${rest}; --dry-run says where): ${help}`;
}

/** Functions of a kind that are not probed, at all or where they are inlined. */
export function allExcluded({ excluded = [], inlinedToo = [] }: Found): readonly ExcludedFunction[] {
  return [...excluded, ...inlinedToo];
}

/** For machines. */
export function excludedJson(excluded: readonly ExcludedFunction[]): object[] {
  return excluded.map(({ name, address, reason }) => ({ function: name, address: hex(address), reason }));
}

/** The members of all. */
export function merged(objects: readonly object[]): object {
  return Object.fromEntries(objects.flatMap((each) => Object.entries(each)));
}
