// What numbers that programs give to Linux mean: include/uapi/asm-generic/{fcntl,mman-common,mman,signal-defs,socket}.h,
// include/uapi/linux/{fcntl,sched,futex,fs,time,wait,mman,eventpoll,random,prctl,resource}.h, include/linux/net.h.

/** Names of the values that an argument may have. */
export interface NamedBits {
  /** These bits together are one value. */
  readonly mask: number;
  readonly values: ReadonlyMap<number, string>;
  /** Each may be set or not. One of several bits stands before those that it includes. */
  readonly flags: readonly (readonly [number, string])[];
}

/** `NAMES`: successive values from 0, or with one: `A B D=3`; `-` is none. */
function values(names: string, first = 0): Map<number, string> {
  const found = new Map<number, string>();
  let next = first;
  for (const word of names.trim().split(/\s+/)) {
    const [name = '', number] = word.split('=');
    if (number !== undefined) next = Number(number);
    if (name !== '-') found.set(next, name);
    next++;
  }
  return found;
}

const flags = (names: string): NamedBits['flags'] => [...values(names)].map(([bits, name]) => [bits, name] as const);
const only = (names: string, first = 0): NamedBits => ({ mask: 0xffff_ffff, values: values(names, first), flags: [] });
const bits = (names: string, none?: string): NamedBits => ({
  mask: 0,
  values: new Map(none === undefined ? [] : [[0, none]]),
  flags: flags(names),
});

/** Those that architectures number differently. */
const usual = { tmpfile: 0x410000, own: 'O_LARGEFILE=0x8000 O_DIRECTORY=0x10000 O_NOFOLLOW=0x20000 O_DIRECT=0x4000' };
const arm = { tmpfile: 0x404000, own: 'O_LARGEFILE=0x20000 O_DIRECTORY=0x4000 O_NOFOLLOW=0x8000 O_DIRECT=0x10000' };

function open({ tmpfile, own }: typeof usual): NamedBits {
  const common = `O_TMPFILE=${tmpfile} O_SYNC=0x101000 O_DSYNC=0x1000 O_CREAT=0x40 O_EXCL=0x80 O_NOCTTY=0x100 O_TRUNC=0x200 O_APPEND=0x400
    O_NONBLOCK=0x800 FASYNC=0x2000 ${own} O_NOATIME=0x40000 O_CLOEXEC=0x80000 O_PATH=0x200000`;
  return { mask: 3, values: values('O_RDONLY O_WRONLY O_RDWR O_ACCMODE'), flags: flags(common) };
}

const cloneFlags = flags(`
  CLONE_NEWTIME=0x80 CLONE_VM=0x100 CLONE_FS=0x200 CLONE_FILES=0x400 CLONE_SIGHAND=0x800 CLONE_PIDFD=0x1000
  CLONE_PTRACE=0x2000 CLONE_VFORK=0x4000 CLONE_PARENT=0x8000 CLONE_THREAD=0x10000 CLONE_NEWNS=0x20000
  CLONE_SYSVSEM=0x40000 CLONE_SETTLS=0x80000 CLONE_PARENT_SETTID=0x100000 CLONE_CHILD_CLEARTID=0x200000
  CLONE_DETACHED=0x400000 CLONE_UNTRACED=0x800000 CLONE_CHILD_SETTID=0x1000000 CLONE_NEWCGROUP=0x2000000
  CLONE_NEWUTS=0x4000000 CLONE_NEWIPC=0x8000000 CLONE_NEWUSER=0x10000000 CLONE_NEWPID=0x20000000
  CLONE_NEWNET=0x40000000 CLONE_IO=0x80000000
`);

const signals = `
  0 SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGUSR1 SIGSEGV SIGUSR2 SIGPIPE SIGALRM SIGTERM
  SIGSTKFLT SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGXCPU SIGXFSZ SIGVTALRM SIGPROF SIGWINCH SIGIO
  SIGPWR SIGSYS SIGRTMIN
`;

const futexes = `FUTEX_WAIT FUTEX_WAKE FUTEX_FD FUTEX_REQUEUE FUTEX_CMP_REQUEUE FUTEX_WAKE_OP FUTEX_LOCK_PI
  FUTEX_UNLOCK_PI FUTEX_TRYLOCK_PI FUTEX_WAIT_BITSET FUTEX_WAKE_BITSET FUTEX_WAIT_REQUEUE_PI FUTEX_CMP_REQUEUE_PI
  FUTEX_LOCK_PI2`;
const privateFutex = 0x80;

/** By the words that the table of system calls has for them. */
export const namedBits = {
  open: open(usual),
  at: bits(
    `AT_SYMLINK_NOFOLLOW=0x100 AT_EACCESS=0x200 AT_SYMLINK_FOLLOW=0x400 AT_NO_AUTOMOUNT=0x800 AT_EMPTY_PATH=0x1000
     AT_STATX_FORCE_SYNC=0x2000 AT_STATX_DONT_SYNC=0x4000`,
  ),
  unlink: bits('AT_REMOVEDIR=0x200'),
  access: bits('R_OK=4 W_OK=2 X_OK=1', 'F_OK'),
  prot: bits(
    'PROT_READ=1 PROT_WRITE=2 PROT_EXEC=4 PROT_SEM=8 PROT_GROWSDOWN=0x1000000 PROT_GROWSUP=0x2000000',
    'PROT_NONE',
  ),
  map: {
    mask: 0xf,
    values: values('MAP_FILE MAP_SHARED MAP_PRIVATE MAP_SHARED_VALIDATE'),
    flags: flags(`
      MAP_FIXED=0x10 MAP_ANONYMOUS=0x20 MAP_32BIT=0x40 MAP_GROWSDOWN=0x100 MAP_DENYWRITE=0x800 MAP_EXECUTABLE=0x1000
      MAP_LOCKED=0x2000 MAP_NORESERVE=0x4000 MAP_POPULATE=0x8000 MAP_NONBLOCK=0x10000 MAP_STACK=0x20000
      MAP_HUGETLB=0x40000 MAP_SYNC=0x80000 MAP_FIXED_NOREPLACE=0x100000
    `),
  },
  remap: bits('MREMAP_MAYMOVE=1 MREMAP_FIXED=2 MREMAP_DONTUNMAP=4'),
  advice: only(`
    MADV_NORMAL MADV_RANDOM MADV_SEQUENTIAL MADV_WILLNEED MADV_DONTNEED MADV_FREE=8 MADV_REMOVE MADV_DONTFORK
    MADV_DOFORK MADV_MERGEABLE MADV_UNMERGEABLE MADV_HUGEPAGE MADV_NOHUGEPAGE MADV_DONTDUMP MADV_DODUMP
    MADV_WIPEONFORK MADV_KEEPONFORK MADV_COLD MADV_PAGEOUT MADV_POPULATE_READ MADV_POPULATE_WRITE
  `),
  clone: { mask: 0x7f, values: values(signals), flags: cloneFlags },
  unshare: bits(cloneFlags.map(([bit, name]) => `${name}=${bit}`).join(' ')),
  signal: only(signals),
  how: only('SIG_BLOCK SIG_UNBLOCK SIG_SETMASK'),
  whence: only('SEEK_SET SEEK_CUR SEEK_END SEEK_DATA SEEK_HOLE'),
  fcntl: only(`
    F_DUPFD F_GETFD F_SETFD F_GETFL F_SETFL F_GETLK F_SETLK F_SETLKW F_SETOWN F_GETOWN F_SETSIG F_GETSIG
    F_OFD_GETLK=36 F_OFD_SETLK F_OFD_SETLKW F_SETLEASE=1024 F_GETLEASE F_DUPFD_CLOEXEC=1030 F_SETPIPE_SZ F_GETPIPE_SZ
    F_ADD_SEALS F_GET_SEALS
  `),
  ioctl: only(`
    TCGETS=0x5401 TCSETS TCSETSW TCSETSF TIOCSCTTY=0x540e TIOCGPGRP TIOCSPGRP TIOCGWINSZ=0x5413 TIOCSWINSZ
    FIONREAD=0x541b FIONBIO=0x5421
  `),
  futex: {
    mask: 0xff,
    values: new Map([
      ...values(futexes),
      ...values(
        futexes.replace(/\w+/g, (name) => `${name}_PRIVATE`),
        privateFutex,
      ),
    ]),
    flags: flags('FUTEX_CLOCK_REALTIME=0x100'),
  },
  clock: only(`
    CLOCK_REALTIME CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID CLOCK_THREAD_CPUTIME_ID CLOCK_MONOTONIC_RAW
    CLOCK_REALTIME_COARSE CLOCK_MONOTONIC_COARSE CLOCK_BOOTTIME CLOCK_REALTIME_ALARM CLOCK_BOOTTIME_ALARM
  `),
  timer: bits('TIMER_ABSTIME=1'),
  resource: only(`
    RLIMIT_CPU RLIMIT_FSIZE RLIMIT_DATA RLIMIT_STACK RLIMIT_CORE RLIMIT_RSS RLIMIT_NPROC RLIMIT_NOFILE RLIMIT_MEMLOCK
    RLIMIT_AS RLIMIT_LOCKS RLIMIT_SIGPENDING RLIMIT_MSGQUEUE RLIMIT_NICE RLIMIT_RTPRIO RLIMIT_RTTIME
  `),
  wait: bits('WNOHANG=1 WSTOPPED=2 WEXITED=4 WCONTINUED=8 WNOWAIT=0x1000000 __WNOTHREAD=0x20000000 __WALL=0x40000000'),
  domain: only('AF_UNSPEC AF_UNIX AF_INET AF_INET6=10 AF_NETLINK=16 AF_PACKET AF_VSOCK=40'),
  socket: {
    mask: 0xf,
    values: values('SOCK_STREAM=1 SOCK_DGRAM SOCK_RAW SOCK_RDM SOCK_SEQPACKET'),
    flags: flags('SOCK_NONBLOCK=0x800 SOCK_CLOEXEC=0x80000'),
  },
  accept: bits('SOCK_NONBLOCK=0x800 SOCK_CLOEXEC=0x80000'),
  message: bits(`
    MSG_OOB=1 MSG_PEEK=2 MSG_DONTROUTE=4 MSG_CTRUNC=8 MSG_TRUNC=0x20 MSG_DONTWAIT=0x40 MSG_EOR=0x80 MSG_WAITALL=0x100
    MSG_NOSIGNAL=0x4000 MSG_MORE=0x8000 MSG_WAITFORONE=0x10000 MSG_CMSG_CLOEXEC=0x40000000
  `),
  down: only('SHUT_RD SHUT_WR SHUT_RDWR'),
  epoll: only('EPOLL_CTL_ADD=1 EPOLL_CTL_DEL EPOLL_CTL_MOD'),
  closing: bits('O_CLOEXEC=0x80000 O_NONBLOCK=0x800 O_DIRECT=0x4000'),
  random: bits('GRND_NONBLOCK=1 GRND_RANDOM=2 GRND_INSECURE=4'),
  memfd: bits('MFD_CLOEXEC=1 MFD_ALLOW_SEALING=2 MFD_HUGETLB=4'),
  rename: bits('RENAME_NOREPLACE=1 RENAME_EXCHANGE=2 RENAME_WHITEOUT=4'),
  archPrctl: only('ARCH_SET_GS=0x1001 ARCH_SET_FS ARCH_GET_FS ARCH_GET_GS ARCH_CET_STATUS=0x3001'),
} as const satisfies Record<string, NamedBits>;

/** arch/arm64/include/uapi/asm/fcntl.h */
export const armBits = { ...namedBits, open: open(arm) };

/** The value as C code would spell it: `O_WRONLY|O_CREAT`. What has no name is a number. */
export function namedText(value: bigint, { mask, values, flags }: NamedBits): string {
  let rest = Number(BigInt.asUintN(32, value));
  const low = (rest & mask) >>> 0;
  const name = values.get(low);
  const parts = mask === 0 || (low === 0 && name === '0') ? [] : [name ?? numberText(low)];
  rest = (rest & ~mask) >>> 0;
  for (const [bit, flag] of flags) {
    if ((rest & bit) >>> 0 !== bit) continue;
    parts.push(flag);
    rest = (rest & ~bit) >>> 0;
  }
  if (rest !== 0) parts.push(numberText(rest));
  return parts.length > 0 ? parts.join('|') : (values.get(0) ?? '0');
}

function numberText(value: number): string {
  return value < 10 ? String(value) : `0x${value.toString(16)}`;
}
