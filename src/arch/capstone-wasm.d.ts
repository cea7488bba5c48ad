/** What this folder uses of capstone-wasm 1.0.3, whose own declarations `nodenext` does not find. */
declare module 'capstone-wasm' {
  export class Capstone {
    constructor(arch: number, mode: number);
    readonly handle: number;
    setOption(option: number, value: number): number;
    /** Throws for bytes that it does not know. */
    disasm(bytes: Uint8Array, options: { address: bigint }): { mnemonic: string; opStr: string }[];
    getRegName(id: number): string;
    static version(): { major: number; minor: number };
  }
  export const Const: {
    readonly CS_ARCH_X86: number;
    readonly CS_ARCH_ARM64: number;
    readonly CS_MODE_64: number;
    readonly CS_MODE_LITTLE_ENDIAN: number;
    readonly CS_OPT_DETAIL: number;
    readonly CS_OPT_ON: number;
  };
  /** Fills `module` with the emscripten module: its exports and its heap. */
  export function loadCapstone(module: object): Promise<void>;
}
