// QEMU's command line (qemu-options.hx, docs/interop/qemu-qmp-ref "keyval"): `-name value` or `--name value`. Values
// are `key=value,key=value`. The first key may be implied, and a comma within a value is written twice.

/** Options that take no argument; every other option takes the next word. */
const flags = new Set(
  `h help version snapshot full-screen alt-grab ctrl-grab no-quit sdl curses portrait usb nographic S s no-reboot no-shutdown
  no-acpi no-hpet no-fd-bootchk win2k-hack mem-prealloc enable-kvm enable-fips daemonize singlestep one-insn-per-tb
  only-migratable preconfig nodefaults no-user-config old-param semihosting async-teardown enable-sync-profile xen-attach
  xen-domid-restrict perfmap jitdump`.split(/\s+/),
);

export interface QemuOption {
  /** Without dashes. */
  readonly name: string;
  readonly value: string;
}

/** The options among QEMU's arguments; disk images and other words that belong to no option are left out. */
export function qemuOptions(args: readonly string[]): QemuOption[] {
  const found: QemuOption[] = [];
  for (let at = 0; at < args.length; at++) {
    const name = /^--?([A-Za-z][\w-]*)$/.exec(args[at] as string)?.[1];
    if (name === undefined) continue;
    found.push({ name, value: flags.has(name) ? '' : (args[++at] ?? '') });
  }
  return found;
}

/**
 * `virt,accel=tcg` as pairs. `implied` is the key of a first part without one; a later part without a key is a switch
 * that is on.
 */
export function keyValues(text: string, implied: string): Map<string, string> {
  const pairs = new Map<string, string>();
  // A comma that is written twice belongs to the value.
  const parts = text.match(/(?:[^,]|,,)+/g) ?? [];
  for (const [index, part] of parts.entries()) {
    const whole = part.replaceAll(',,', ',');
    const equals = whole.indexOf('=');
    if (equals >= 0) pairs.set(whole.slice(0, equals), whole.slice(equals + 1));
    else if (index === 0) pairs.set(implied, whole);
    else pairs.set(whole, 'on');
  }
  return pairs;
}

const units: Readonly<Record<string, number>> = { b: 0, k: 10, m: 20, g: 30, t: 40 };

/**
 * QEMU's sizes (`128`, `1.5G`, `0x10000000`) in bytes; the unit of a plain number is `plain` bytes. Undefined for
 * what QEMU would refuse.
 */
export function qemuSize(text: string, plain: number): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([bkmgt]?)$/i.exec(text);
  const hex = /^0x([0-9a-f]{1,12})$/i.exec(text);
  if (hex !== null) return checked(Number.parseInt(hex[1] as string, 16) * plain);
  if (match === null) return undefined;
  const unit = match[2] === '' ? plain : 2 ** (units[(match[2] as string).toLowerCase()] as number);
  return checked(Math.floor(Number(match[1]) * unit));
}

function checked(bytes: number): number | undefined {
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/**
 * Nanoseconds that each instruction takes, by QEMU's arguments (`-icount shift=N`). Undefined if the guest uses the
 * host's clock.
 */
export function nanosPerInstruction(args: readonly string[]): number | undefined {
  const values = qemuOptions(args).filter(({ name }) => name === 'icount');
  const shift = values
    .map(({ value }) => keyValues(value, 'shift').get('shift'))
    .findLast((given) => given !== undefined);
  return shift !== undefined && /^(\d|10)$/.test(shift) ? 2 ** Number(shift) : undefined;
}

/** Whether such a clock follows the host's while no hart runs. */
export function sleeps(args: readonly string[]): boolean {
  return qemuOptions(args).every(
    ({ name, value }) => name !== 'icount' || keyValues(value, 'shift').get('sleep') !== 'off',
  );
}
