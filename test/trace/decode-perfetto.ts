import { spawnSync } from 'node:child_process';
import { inflateSync } from 'node:zlib';

/** A decoded message as protoc prints it: every field a list, enums by name, integers as digits. */
export interface Message {
  readonly [field: string]: readonly (string | Message)[];
}

/**
 * Decodes with Debian's protoc and the excerpt of Perfetto's schema. A field that the excerpt does not have throws.
 * Packets that are compressed stand where what holds them stood.
 */
export function protoc(bytes: Uint8Array, type = 'Trace'): Message {
  const schema = ['--proto_path=test/trace', 'test/trace/perfetto-excerpt.proto'];
  const run = spawnSync('protoc', [`--decode=perfetto.protos.${type}`, ...schema], {
    input: type === 'Trace' ? uncompressed(bytes) : bytes,
    maxBuffer: 1 << 30,
  });
  if (run.error) throw run.error;
  if (run.status !== 0) throw new Error(`protoc: ${run.stderr}`);
  return parseText(run.stdout.toString('utf8'));
}

function parseText(text: string): Message {
  const top: Record<string, (string | Message)[]> = {};
  const stack = [top];
  for (const line of text.split('\n')) {
    const trimmed = line.trim();
    if (trimmed === '') continue;
    if (trimmed === '}') {
      stack.pop();
      continue;
    }
    const [, name, value] = /^(\w+)(?:: (.*)| \{)$/.exec(trimmed) ?? [];
    const message = stack.at(-1);
    if (name === undefined || message === undefined) throw new Error(`cannot read protoc's line: ${line}`);
    if (/^\d/.test(name)) throw new Error(`the schema has no field ${name}: ${line}`);
    message[name] ??= [];
    if (value === undefined) {
      const child: Record<string, (string | Message)[]> = {};
      message[name].push(child);
      stack.push(child);
    } else {
      message[name].push(value.startsWith('"') ? cText(value.slice(1, -1)) : value);
    }
  }
  return top;
}

/** protoc escapes as C does, every byte that is not ASCII in octal. */
function cText(text: string): string {
  const named: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };
  return text.replace(/((?:\\[0-7]{3})+)|\\(.)/gs, (_, octal: string | undefined, escaped: string) => {
    if (octal === undefined) return named[escaped] ?? escaped;
    const bytes = octal.slice(1).split('\\');
    return Buffer.from(bytes.map((one) => Number.parseInt(one, 8))).toString('utf8');
  });
}

export function children(message: Message, field: string): Message[] {
  return (message[field] ?? []).map((value) => {
    if (typeof value === 'string') throw new Error(`${field} is no message`);
    return value;
  });
}

export function scalar(message: Message, field: string): string | undefined {
  const value = message[field]?.[0];
  if (value !== undefined && typeof value !== 'string') throw new Error(`${field} is a message`);
  return value;
}

/** A slice or instant as a trace processor would list it. */
export interface Slice {
  readonly track: string;
  readonly kind: 'slice' | 'instant';
  readonly category: string;
  readonly name: string;
  readonly begin: number;
  /** Slices open above it on its track. */
  readonly depth: number;
  end: number | undefined;
  place: string | undefined;
  /** Numbers of the flows that lead through it; of Perfetto alone. */
  readonly flows?: readonly string[];
  /** Those that end there, where it begins or where it ends. */
  readonly ended?: string[];
  readonly args: Record<string, string>;
}

/** What a counter's track shows from a time on. */
export interface Counter {
  readonly track: string;
  readonly time: number;
  readonly value: number;
}

export interface Track {
  readonly uuid: string;
  readonly name: string;
  readonly parent: string | undefined;
  readonly descriptor: Message;
}

/**
 * Does what a trace processor does with packets, in file order, and refuses what it would drop: an iid or a track that no
 * packet up to this one has told of, an end on a track with nothing open, a packet before the sequence's state is cleared, a
 * clock that no snapshot has. Of a packet with a snapshot it takes the defaults, and nothing else.
 */
export function readPerfetto(packets: readonly Message[]): {
  slices: Slice[];
  tracks: Map<string, Track>;
  counters: Counter[];
} {
  const tables = new Map<string, Map<string, Message>>();
  const tracks = new Map<string, Track>();
  const open = new Map<string, Slice[]>();
  const slices: Slice[] = [];
  const counters: Counter[] = [];
  const lookup = (table: string, iid: string | undefined): Message => {
    const found = iid === undefined ? undefined : tables.get(table)?.get(iid);
    if (found === undefined) throw new Error(`${table} has no ${iid}`);
    return found;
  };
  const clocks = new Map<string, number>();
  let [defaultClock, defaultTrack] = ['6', '0'];
  /** On the trace's clock: `is_incremental` ones count on from their last packet. */
  const timeOf = (packet: Message): number => {
    const clock = scalar(packet, 'timestamp_clock_id') ?? defaultClock;
    const time = Number(scalar(packet, 'timestamp'));
    if (clock === '6') return time;
    const before = clocks.get(clock);
    if (before === undefined) throw new Error(`no snapshot tells of clock ${clock}`);
    clocks.set(clock, before + time);
    return before + time;
  };
  packets.forEach((packet, index) => {
    const flags = scalar(packet, 'sequence_flags');
    if (flags !== (index === 0 ? '1' : undefined)) throw new Error(`packet ${index} has sequence_flags ${flags}`);
    if (scalar(packet, 'trusted_packet_sequence_id') !== '1') throw new Error(`packet ${index} is of no sequence`);
    for (const defaults of children(packet, 'trace_packet_defaults')) {
      defaultClock = scalar(defaults, 'timestamp_clock_id') ?? defaultClock;
      for (const events of children(defaults, 'track_event_defaults'))
        defaultTrack = scalar(events, 'track_uuid') ?? defaultTrack;
    }
    for (const snapshot of children(packet, 'clock_snapshot')) {
      const listed = children(snapshot, 'clocks');
      const boottime = listed.find((clock) => scalar(clock, 'clock_id') === '6');
      for (const clock of listed.filter((clock) => scalar(clock, 'is_incremental') === 'true'))
        clocks.set(scalar(clock, 'clock_id') ?? '', Number(boottime && scalar(boottime, 'timestamp')));
      if (packet.track_event || packet.track_descriptor || packet.interned_data)
        throw new Error(`packet ${index} has more than its clocks`);
    }
    for (const interned of children(packet, 'interned_data')) {
      for (const table of Object.keys(interned)) {
        const entries = tables.get(table) ?? new Map<string, Message>();
        tables.set(table, entries);
        for (const entry of children(interned, table)) {
          const iid = scalar(entry, 'iid') ?? '0';
          if (iid === '0' || entries.has(iid)) throw new Error(`${table} tells of iid ${iid} twice, or it is 0`);
          entries.set(iid, entry);
        }
      }
    }
    for (const descriptor of children(packet, 'track_descriptor')) {
      const uuid = scalar(descriptor, 'uuid') ?? '0';
      const parent = scalar(descriptor, 'parent_uuid');
      if (uuid === '0') throw new Error('a track has no number');
      // What the first descriptor says of names and parents stays.
      const before = tracks.get(uuid);
      const isSame =
        before?.name === scalar(descriptor, 'name') && before?.parent === scalar(descriptor, 'parent_uuid');
      if (before && !(isSame && descriptor.process)) throw new Error(`track ${uuid} described twice`);
      if (parent !== undefined && !tracks.has(parent)) throw new Error(`no parent track ${parent}`);
      tracks.set(uuid, { uuid, name: scalar(descriptor, 'name') ?? '', parent, descriptor });
    }
    for (const event of children(packet, 'track_event')) {
      const time = timeOf(packet);
      if (!Number.isSafeInteger(time)) throw new Error(`packet ${index} has no timestamp`);
      const track = scalar(event, 'track_uuid') ?? defaultTrack;
      if (!tracks.has(track)) throw new Error(`no track ${track}`);
      const stack = open.get(track) ?? [];
      open.set(track, stack);
      const args: Record<string, string> = {};
      for (const note of children(event, 'debug_annotations')) {
        const name = scalar(lookup('debug_annotation_names', scalar(note, 'name_iid')), 'name') ?? '';
        const iid = scalar(note, 'string_value_iid');
        const plain =
          scalar(note, 'legacy_json_value') ??
          scalar(note, 'bool_value') ??
          scalar(note, 'pointer_value') ??
          scalar(note, 'string_value');
        const value = iid === undefined ? plain : scalar(lookup('debug_annotation_string_values', iid), 'str');
        if (value === undefined || name in args) throw new Error(`annotation ${name} has no value, or comes twice`);
        args[name] = value;
      }
      const type = scalar(event, 'type');
      const isCounter = (tracks.get(track)?.descriptor.counter ?? []).length > 0;
      if (isCounter !== (type === 'TYPE_COUNTER'))
        throw new Error(`packet ${index} has type ${type} on track ${track}`);
      if (isCounter) {
        const value = scalar(event, 'counter_value') ?? scalar(event, 'double_counter_value');
        if (value === undefined) throw new Error(`packet ${index} has no value`);
        counters.push({ track, time, value: Number(value) });
        continue;
      }
      if (type === 'TYPE_SLICE_END') {
        const slice = stack.pop();
        if (slice === undefined) throw new Error(`packet ${index} ends a slice on track ${track}, where none is open`);
        slice.end = time;
        Object.assign(slice.args, args);
        slice.ended?.push(...(event.terminating_flow_ids ?? []).map(String));
        continue;
      }
      const nameIid = scalar(event, 'name_iid');
      const name = nameIid === undefined ? scalar(event, 'name') : scalar(lookup('event_names', nameIid), 'name');
      const placeIid = scalar(event, 'source_location_iid');
      const place =
        placeIid === undefined ? children(event, 'source_location')[0] : lookup('source_locations', placeIid);
      const slice: Slice = {
        track,
        kind: type === 'TYPE_INSTANT' ? 'instant' : 'slice',
        category: scalar(lookup('event_categories', scalar(event, 'category_iids')), 'name') ?? '',
        name: name ?? '',
        begin: time,
        depth: stack.length,
        end: type === 'TYPE_INSTANT' ? time : undefined,
        place: place && `${scalar(place, 'file_name')}:${scalar(place, 'line_number')}`,
        flows: (event.flow_ids ?? []).map(String),
        ended: (event.terminating_flow_ids ?? []).map(String),
        args,
      };
      slices.push(slice);
      if (type === 'TYPE_SLICE_BEGIN') stack.push(slice);
      else if (type !== 'TYPE_INSTANT') throw new Error(`packet ${index} has type ${type}`);
    }
  });
  return { slices, tracks, counters };
}

/** `TracePacket.compressed_packets`, field 50: the tag of what is nothing else's first field. */
const COMPRESSED = [0x92, 0x03];

/** The same trace without packets that hold others. */
export function uncompressed(bytes: Uint8Array): Buffer {
  let start = 0;
  const parts = packetEnds(bytes).map((end) => {
    const packet = bytes.subarray(start, end);
    start = end;
    const at = behindVarint(packet, 1);
    if (packet[at] !== COMPRESSED[0] || packet[at + 1] !== COMPRESSED[1]) return packet;
    return inflateSync(packet.subarray(behindVarint(packet, at + 2)));
  });
  return Buffer.concat([...parts, bytes.subarray(start)]);
}

function behindVarint(bytes: Uint8Array, at: number): number {
  let end = at;
  while ((bytes[end++] as number) >= 0x80);
  return end;
}

/** Where each top-level field of a message ends: for a trace, where each packet does. Only whole fields are listed. */
export function packetEnds(bytes: Uint8Array): number[] {
  const ends: number[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (bytes[at] !== 0x0a) throw new Error(`byte ${at} starts no Trace.packet`);
    let size = 0;
    let scale = 1;
    let byte: number | undefined;
    do {
      byte = bytes[++at];
      if (byte === undefined) return ends;
      size += (byte & 0x7f) * scale;
      scale *= 0x80;
    } while (byte >= 0x80);
    at += 1 + size;
    if (at > bytes.length) return ends;
    ends.push(at);
  }
  return ends;
}
