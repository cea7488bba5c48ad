// Assembly whose branches lead into every byte that a patch may replace: of other functions, from before, from behind, near and far, and through
// tables of addresses, of distances, and in registers.

/** A function that is patched, and whether something leads into the bytes of a patch. */
export interface Victim {
  readonly name: string;
  readonly isEntered: boolean;
}

export interface EnteredCode {
  readonly text: string;
  readonly victims: readonly Victim[];
  /** Functions that call in by such a way; each has its victim's result for an argument that is 100 greater. */
  readonly ways: readonly string[];
}

interface Source {
  readonly name: string;
  /** Where it lies: right before the victim, right behind it, or far away. */
  readonly lies: 'before' | 'behind' | 'far';
  /** Code that goes to a place. */
  readonly go: (to: string, table: string) => string;
  /** What it reads. */
  readonly data?: (to: string, table: string) => string;
}

/** The machine's way to write it. */
export interface Dialect {
  readonly head: string;
  /** Instructions of the fewest bytes that do nothing, at the start; then what makes the result, and the return. */
  readonly victim: string;
  /** The argument is 100 more. */
  readonly add: string;
  /** Offsets at which an instruction begins inside what a patch replaces. */
  readonly offsets: readonly number[];
  readonly sources: readonly Source[];
}

export const x86Dialect: Dialect = {
  head: '',
  victim: 'nop; nop; nop; nop; nop; lea 10(%rdi), %rax; ret',
  add: 'lea 100(%rdi), %rdi',
  offsets: [1, 2, 3, 4],
  sources: [
    { name: 'short_before', lies: 'before', go: (to) => `jmp ${to}` },
    { name: 'short_behind', lies: 'behind', go: (to) => `jmp ${to}` },
    { name: 'short_branch', lies: 'behind', go: (to) => `test %rsp, %rsp; jnz ${to}; ud2` },
    { name: 'far', lies: 'far', go: (to) => `jmp ${to}` },
    { name: 'far_branch', lies: 'far', go: (to) => `test %rsp, %rsp; jnz ${to}; ud2` },
    { name: 'made', lies: 'far', go: (to) => `lea ${to}(%rip), %rax; jmp *%rax` },
    {
      name: 'addresses',
      lies: 'far',
      go: (_, table) => `lea ${table}(%rip), %rax; jmp *(%rax)`,
      data: (to, table) => `.section .data.rel.ro,"aw"; .p2align 3; ${table}: .quad ${to}; .text`,
    },
    {
      name: 'distances',
      lies: 'far',
      go: (_, table) => `lea ${table}(%rip), %rax; movslq (%rax), %rcx; add %rcx, %rax; jmp *%rax`,
      data: (to, table) => `.section .rodata; .p2align 2; ${table}: .long ${to}-${table}; .text`,
    },
  ],
};

export const riscvDialect: Dialect = {
  head: '.option norelax',
  victim: 'c.nop; c.nop; c.nop; c.nop; addi a0, a0, 10; ret',
  add: 'addi a0, a0, 100',
  offsets: [2],
  sources: [
    { name: 'short_before', lies: 'before', go: (to) => `c.j ${to}` },
    { name: 'short_behind', lies: 'behind', go: (to) => `c.j ${to}` },
    { name: 'short_branch', lies: 'behind', go: (to) => `c.bnez a0, ${to}; unimp` },
    { name: 'branch', lies: 'behind', go: (to) => `.option push; .option norvc; bnez a0, ${to}; .option pop; unimp` },
    { name: 'jump', lies: 'far', go: (to) => `.option push; .option norvc; j ${to}; .option pop` },
    { name: 'far', lies: 'far', go: (to) => `tail ${to}` },
    { name: 'made', lies: 'far', go: (to) => `lla t1, ${to}; jr t1` },
    {
      name: 'addresses',
      lies: 'far',
      go: (_, table) => `lla t1, ${table}; ld t1, (t1); jr t1`,
      data: (to, table) => `.section .data.rel.ro,"aw"; .p2align 3; ${table}: .dword ${to}; .text`,
    },
    {
      name: 'distances',
      lies: 'far',
      go: (_, table) => `lla t1, ${table}; lw t2, (t1); add t1, t1, t2; jr t1`,
      data: (to, table) => `.section .rodata; .p2align 2; ${table}: .word ${to}-${table}; .text`,
    },
  ],
};

function functionOf(name: string, body: string): string {
  return `.globl ${name}\n.type ${name}, @function\n${name}: ${body}\n.size ${name}, .-${name}`;
}

/** A victim for each source and offset, and one into which nothing leads. */
export function enteredCode({ head, victim, add, offsets, sources }: Dialect): EnteredCode {
  const [near, far, victims, ways]: [string[], string[], Victim[], string[]] = [[], [], [], []];
  for (const { name, lies, go, data } of sources) {
    for (const offset of offsets) {
      const [own, way, table] = [`victim_${name}_${offset}`, `way_${name}_${offset}`, `table_${name}_${offset}`];
      const to = `${own}+${offset}`;
      const source = `${data?.(to, table) ?? ''}\n${functionOf(way, `${add}; ${go(to, table)}`)}`;
      const target = functionOf(own, victim);
      near.push(
        ...(lies === 'before' ? [source, target] : lies === 'behind' ? [target, source] : [target]),
        '.p2align 4',
      );
      if (lies === 'far') far.push(source);
      victims.push({ name: own, isEntered: true });
      ways.push(way);
    }
  }
  near.push(functionOf('victim_alone', victim));
  victims.push({ name: 'victim_alone', isEntered: false });
  const gap = '.skip 300';
  const text = [head, '.text', ...near, gap, ...far, '.section .note.GNU-stack,"",@progbits', ''].join('\n');
  return { text, victims, ways };
}
