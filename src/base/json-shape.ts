// Checks what JSON from a file has, member by member, against the type that it is to be.

/** Gives the value of JSON if it is one of T, without members that T does not have. Throws {@link badShape} if not. */
export type Read<T> = (value: unknown) => T;
/** Every member of T and no other: `NoInfer` below makes the type say which, and not the list of members. */
type Shape<T> = { readonly [K in keyof Required<T>]: Read<T[K]> };

export const badShape = new Error('it has not this shape');

/** What a check lets pass. */
export function checked<T>(isOne: (value: unknown) => boolean): Read<T> {
  return (value) => {
    if (!isOne(value)) throw badShape;
    return value as T;
  };
}

export function optional<T>(read: Read<T>): Read<T | undefined> {
  return (value) => (value === undefined ? undefined : read(value));
}

export function list<T>(each: Read<T>): Read<readonly T[]> {
  return (value) => {
    if (!Array.isArray(value)) throw badShape;
    return value.map(each);
  };
}

export function shaped<T>(shape: NoInfer<Shape<T>>): Read<T> {
  const members = Object.entries<Read<unknown>>(shape);
  return (value) => {
    if (!isObject(value)) throw badShape;
    const found: Record<string, unknown> = {};
    for (const [name, read] of members) {
      const member = read(value[name]);
      if (member !== undefined) found[name] = member;
    }
    return found as T;
  };
}

export function among<const T extends string>(...all: readonly T[]): Read<T> {
  return checked((value) => all.some((one) => one === value));
}

/** No larger than 64 bits count, and a scale than 32: what is multiplied stays finite. */
export const number = checked<number>((value) => typeof value === 'number' && Math.abs(value) <= 2 ** 64);
export const positive = checked<number>((value) => typeof value === 'number' && value > 0 && value <= 2 ** 32);
export const whole = checked<number>((value) => Number.isSafeInteger(value) && (value as number) >= 0);
export const text = checked<string>((value) => typeof value === 'string');
export const flag = checked<boolean>((value) => typeof value === 'boolean');
export const object = checked<object>(isObject);
/** A number as text: below 2^64, hexadecimal. */
export const word = checked<string>((value) => typeof value === 'string' && /^0x[0-9a-f]{1,16}$/.test(value));

/** What a text says as JSON; undefined if it is none, or has another shape. */
export function parsedAs<T>(json: string, read: Read<T>): T | undefined {
  try {
    return read(JSON.parse(json));
  } catch (thrown) {
    if (thrown !== badShape && !(thrown instanceof SyntaxError)) throw thrown;
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
