// ELF types, section types and section flags: System V ABI, "Object Files".
export const ET = { REL: 1, EXEC: 2, DYN: 3, CORE: 4 } as const;
export const SHT = { SYMTAB: 2, NOTE: 7, NOBITS: 8 } as const;
export const SHF = { WRITE: 1, ALLOC: 2, EXECINSTR: 4 } as const;
