// The debug module of one hart: RISC-V External Debug Support 0.13.2, chapter 3. Abstract commands that access registers,
// system bus access, no program buffer; abstract commands are done at once, so nothing is ever busy.
import { bytesOf, Cause, type Hart, littleEndian } from './hart.js';

/** Addresses on the debug module interface (table 3.8). */
const Register = {
  data0: 0x04,
  data1: 0x05,
  dmcontrol: 0x10,
  dmstatus: 0x11,
  abstractcs: 0x16,
  command: 0x17,
  abstractauto: 0x18,
  sbcs: 0x38,
  sbaddress0: 0x39,
  sbaddress1: 0x3a,
  sbdata0: 0x3c,
  sbdata1: 0x3d,
  haltsum0: 0x40,
} as const;

/** dmcontrol */
const HALTREQ = 1 << 31;
const RESUMEREQ = 1 << 30;
const DMACTIVE = 1;
/** command: cmdtype 31:24, aarsize 22:20, postexec 18, transfer 17, write 16, regno 15:0 */
const POSTEXEC = 1 << 18;
const TRANSFER = 1 << 17;
const WRITE = 1 << 16;
const NOT_SUPPORTED = 2;
const EXCEPTION = 3;
const WRONG_STATE = 4;
/** sbcs: version 1, 64 address bits, accesses of 8 to 64 bits */
const SBCS_FIXED = (1 << 29) | (64 << 5) | 0b01111;
const SB_READ_ON_ADDRESS = 1 << 20;
const SB_AUTOINCREMENT = 1 << 16;
const SB_READ_ON_DATA = 1 << 15;
const SB_ERROR = 7 << 12;
const SB_BAD_ADDRESS = 2 << 12;
const SBCS_WRITABLE = SB_READ_ON_ADDRESS | (7 << 17) | SB_AUTOINCREMENT | SB_READ_ON_DATA;

export class DebugModule {
  readonly #hart: Hart;
  #active = false;
  #resumeAck = false;
  #error = 0;
  #command = 0;
  #auto = 0;
  readonly #data = new Uint32Array(2);
  #sbcs = 2 << 17;
  #sbError = 0;
  readonly #sbAddress = new Uint32Array(2);
  readonly #sbData = new Uint32Array(2);

  constructor(hart: Hart) {
    this.#hart = hart;
  }

  read(address: number): number {
    switch (address) {
      case Register.data0:
      case Register.data1: {
        const index = address - Register.data0;
        const value = this.#data[index] ?? 0;
        this.#autoexec(index);
        return value;
      }
      case Register.dmcontrol:
        return this.#active ? DMACTIVE : 0;
      case Register.dmstatus: {
        const state = this.#hart.halted ? 0b11 << 8 : 0b11 << 10;
        // Version 0.13, authenticated.
        return state | (this.#resumeAck ? 0b11 << 16 : 0) | (1 << 7) | 2;
      }
      case Register.abstractcs:
        return (this.#error << 8) | this.#data.length;
      case Register.abstractauto:
        return this.#auto;
      case Register.sbcs:
        return SBCS_FIXED | this.#sbcs | this.#sbError;
      case Register.sbaddress0:
      case Register.sbaddress1:
        return this.#sbAddress[address - Register.sbaddress0] ?? 0;
      case Register.sbdata0: {
        const value = this.#sbData[0] ?? 0;
        if ((this.#sbcs & SB_READ_ON_DATA) !== 0) this.#busRead();
        return value;
      }
      case Register.sbdata1:
        return this.#sbData[1] ?? 0;
      case Register.haltsum0:
        return this.#hart.halted ? 1 : 0;
      default:
        return 0;
    }
  }

  write(address: number, value: number): void {
    switch (address) {
      case Register.data0:
      case Register.data1: {
        const index = address - Register.data0;
        this.#data[index] = value;
        this.#autoexec(index);
        break;
      }
      case Register.dmcontrol:
        this.#control(value);
        break;
      case Register.abstractcs:
        this.#error &= ~((value >> 8) & 7);
        break;
      case Register.command:
        this.#command = value;
        this.#run();
        break;
      case Register.abstractauto:
        this.#auto = value & 3;
        break;
      case Register.sbcs:
        this.#sbcs = value & SBCS_WRITABLE;
        this.#sbError &= ~(value & SB_ERROR);
        break;
      case Register.sbaddress0:
        this.#sbAddress[0] = value;
        if ((this.#sbcs & SB_READ_ON_ADDRESS) !== 0) this.#busRead();
        break;
      case Register.sbaddress1:
        this.#sbAddress[1] = value;
        break;
      case Register.sbdata0:
        this.#sbData[0] = value;
        this.#busWrite();
        break;
      case Register.sbdata1:
        this.#sbData[1] = value;
        break;
    }
  }

  /** There is one hart: whatever is selected is hart 0. */
  #control(value: number): void {
    this.#active = (value & DMACTIVE) !== 0;
    if (!this.#active) return;
    if ((value & HALTREQ) !== 0) {
      if (!this.#hart.halted) this.#hart.halt(Cause.request);
    } else if ((value & RESUMEREQ) !== 0 && this.#hart.halted) {
      this.#resumeAck = true;
      this.#hart.resume();
    }
  }

  #autoexec(index: number): void {
    if ((this.#auto & (1 << index)) !== 0) this.#run();
  }

  /** "Access Register" (section 3.6.1.1), 64 or 32 bits wide. */
  #run(): void {
    if (this.#error !== 0) return;
    const size = (this.#command >> 20) & 7;
    if (this.#command >>> 24 !== 0 || size < 2 || size > 3 || (this.#command & POSTEXEC) !== 0) {
      this.#error = NOT_SUPPORTED;
    } else if (!this.#hart.halted) {
      this.#error = WRONG_STATE;
    } else if ((this.#command & TRANSFER) !== 0 && !this.#transfer(this.#command & 0xffff, size)) {
      this.#error = EXCEPTION;
    }
  }

  /** False when there is no such register. */
  #transfer(number: number, size: number): boolean {
    const general = number >= 0x1000 && number < 0x1020 ? number - 0x1000 : undefined;
    if (general === undefined && number >= 0x1000) return false;
    const words = this.#data.subarray(0, size === 3 ? 2 : 1);
    if ((this.#command & WRITE) !== 0) {
      const value = joined(words);
      if (general === undefined) return this.#hart.writeCsr(number, value);
      if (general !== 0) this.#hart.registers[general] = value;
      return true;
    }
    const value = general === undefined ? this.#hart.readCsr(number) : this.#hart.registers[general];
    if (value === undefined) return false;
    split(value, words);
    return true;
  }

  // System bus access (section 3.10)

  get #accessSize(): number {
    return 1 << ((this.#sbcs >> 17) & 7);
  }

  #busRead(): void {
    if (this.#sbError !== 0) return;
    const bytes = this.#hart.bus.read(Number(joined(this.#sbAddress)), this.#accessSize);
    if (bytes === undefined) this.#sbError = SB_BAD_ADDRESS;
    else split(littleEndian(bytes), this.#sbData);
    this.#advance();
  }

  #busWrite(): void {
    if (this.#sbError !== 0) return;
    const bytes = bytesOf(joined(this.#sbData), this.#accessSize);
    if (!this.#hart.bus.write(Number(joined(this.#sbAddress)), bytes)) this.#sbError = SB_BAD_ADDRESS;
    this.#advance();
  }

  #advance(): void {
    if (this.#sbError !== 0 || (this.#sbcs & SB_AUTOINCREMENT) === 0) return;
    split(joined(this.#sbAddress) + BigInt(this.#accessSize), this.#sbAddress);
  }
}

function joined(words: Uint32Array): bigint {
  return BigInt(words[0] ?? 0) | (BigInt(words[1] ?? 0) << 32n);
}

function split(value: bigint, words: Uint32Array): void {
  words[0] = Number(value & 0xffff_ffffn);
  if (words.length > 1) words[1] = Number((value >> 32n) & 0xffff_ffffn);
}
