/** Numbers of system registers: op0 to op2, 16 bits. The virtual counter is the time of EL1 and EL0. */
export const CNTVCT_EL0 = 0xdf02;
export const CNTFRQ_EL0 = 0xdf00;
export const MPIDR_EL1 = 0xc005;
export const CPACR_EL1 = 0xc082;
