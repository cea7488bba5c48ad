import { addr, hex } from '../../base/addr.js';
import { type Checked, checkedJson } from '../../check/index.js';
import { hurdlesJson } from '../../engines/index.js';
import { choicesJson, excludedJson, leakJson, merged, ownTimeJson, refusedByName } from '../engine-report.js';
import { errorJson } from '../failure.js';
import { ramJson, stopJson } from '../stop-report.js';
import { isNeverSeen } from './limits.js';
import type { Guest } from './outcome.js';
import type { Prepared } from './prepare.js';
import { quietJson } from './quiet.js';
import { type Recorded, stopText } from './session.js';

export function recordingJson(
  { args, reports, newest, older, program }: Prepared,
  recording: Recorded,
  guest: Guest | undefined,
  checked: Checked,
): object {
  const { error } = recording;
  const { name, resolutionNs, guest: guestClock } = recording.clock;
  return {
    version: 1,
    program: args.elf,
    trace: args.output,
    older_trace: older ?? null,
    clock: { name, resolution_ns: resolutionNs, guest: guestClock },
    end: recording.end,
    guest_exit: guest?.exit ?? stopText(recording.stop),
    events: recording.events,
    ...(newest ? { left_out: newest.leftOut } : {}),
    stops: recording.stops,
    engines: stopJson(recording, recording.situation),
    hurdles: hurdlesJson(recording.hurdles),
    server_fault: recording.serverFault,
    records: recording.records,
    missing: recording.missing,
    unread: recording.unread,
    resets: recording.resets,
    ring_full: recording.ringFull,
    ring_waited_ns: recording.ringWaitedNs,
    tail_lost: recording.tailLost,
    never_loaded: recording.neverLoaded,
    never_seen: isNeverSeen(recording),
    harts_unseen: recording.hartsUnseen,
    load_bias: hex(addr(recording.loadBias)),
    foreign_hits: recording.foreignHits,
    scratch: recording.scratch,
    ram: ramJson(recording),
    trampolines_stay: recording.trampolinesStay,
    trampolines_needed: recording.trampolinesNeeded,
    panic_breakpoints: recording.panicPlaces,
    counter_stays_open: recording.openCounter ? recording.openCounter.register : null,
    probes: choicesJson(recording.engines),
    not_probed: excludedJson(refusedByName(program)),
    guest_ns: recording.guestNs,
    ...ownTimeJson(recording.ownTime),
    ...leakJson(recording.leak),
    host_ms: Math.round(recording.hostMs),
    standing_ms: Math.round(recording.standing.allMs),
    longest_standing_ms: Math.round(recording.standing.longestMs),
    ran_ms: Math.round(recording.ranMs),
    digested_ms: Math.round(recording.digestedMs),
    gaps: recording.gaps,
    quiet: recording.quiet.map(quietJson),
    ...merged(reports.map((each) => each.json(recording))),
    ...(checked.verdicts.length > 0 ? { check: checkedJson(checked) } : {}),
    ...(guest?.panic ? { panic: guest.panic.json } : {}),
    ...(error ? { error: errorJson(error) } : {}),
  };
}
