// The arguments of Linux' system calls: include/linux/syscalls.h, names as in man 2.
import { armBits, type NamedBits, namedBits } from './linux-flags.js';

/**
 * What an argument is. `text`: as many bytes as the next argument says. `mode`: permissions; `mode?`: where the flags
 * before it have a file created. `word`: nothing is known.
 */
export type ArgumentKind =
  | 'fd'
  | 'dirfd'
  | 'int'
  | 'unsigned'
  | 'pointer'
  | 'path'
  | 'text'
  | 'mode'
  | 'mode?'
  | 'word'
  | NamedBits;

export interface CallSignature {
  readonly arguments: readonly { readonly name: string; readonly kind: ArgumentKind }[];
  /** It returns an address. */
  readonly isAddress: boolean;
}

const plain: Readonly<Record<string, ArgumentKind>> = {
  ...{ fd: 'fd', dirfd: 'dirfd', i: 'int', u: 'unsigned', '*': 'pointer', path: 'path', text: 'text' },
  ...{ mode: 'mode', 'mode?': 'mode?', w: 'word' },
};

/** The AT_ and O_ of a file that a directory has. */
const file = 'dirfd:dirfd pathname:path';
const socket = 'sockfd:fd';
const address = 'addr:* addrlen';
const events = 'epfd:fd events:* maxevents:i';
const names = 'oldpath:path newpath:path';
const two = 'olddirfd:dirfd oldpath:path newdirfd:dirfd newpath:path';
const vector = 'fd:fd iov:* iovcnt:i';
const attribute = 'name:path value:* size:u';

/** A call a line, an argument a word: its name and what it is, without that a pointer. */
const table = `
  read fd:fd buf count:u | write fd:fd buf:text count:u | open pathname:path flags:open mode:mode? | close fd:fd
  stat pathname:path statbuf | lstat pathname:path statbuf | fstat fd:fd statbuf | newfstatat ${file} statbuf flags:at
  poll fds nfds:u timeout:i | ppoll fds nfds:u tmo_p sigmask sigsetsize:u | lseek fd:fd offset:i whence:whence
  mmap addr length:u prot:prot flags:map fd:fd offset:w | mprotect addr len:u prot:prot | munmap addr length:u | brk addr
  mremap old_address old_size:u new_size:u flags:remap new_address | madvise addr length:u advice:advice
  msync addr length:u flags:w | mincore addr length:u vec | mlock addr len:u | munlock addr len:u
  rt_sigaction signum:signal act oldact sigsetsize:u | rt_sigprocmask how:how set oldset sigsetsize:u | rt_sigreturn
  rt_sigsuspend mask sigsetsize:u | rt_sigtimedwait set info timeout sigsetsize:u | sigaltstack ss old_ss
  ioctl fd:fd request:ioctl argp | fcntl fd:fd cmd:fcntl arg:w | flock fd:fd operation:w
  pread64 fd:fd buf count:u offset:i | pwrite64 fd:fd buf:text count:u offset:i
  readv ${vector} | writev ${vector} | preadv ${vector} offset:i | pwritev ${vector} offset:i
  access pathname:path mode:access | faccessat ${file} mode:access | faccessat2 ${file} mode:access flags:at
  pipe pipefd | pipe2 pipefd flags:closing | dup oldfd:fd | dup2 oldfd:fd newfd:fd | dup3 oldfd:fd newfd:fd flags:closing
  select nfds:i readfds writefds exceptfds timeout | pselect6 nfds:i readfds writefds exceptfds timeout sigmask
  sched_yield | pause | getpid | getppid | gettid | getuid | geteuid | getgid | getegid | setsid | vfork | fork | sync
  nanosleep req rem | clock_nanosleep clockid:clock flags:timer request remain | alarm seconds:u | getcpu cpu node
  clock_gettime clockid:clock tp | clock_getres clockid:clock res | clock_settime clockid:clock tp | time tloc
  gettimeofday tv tz | getitimer which:i curr_value | setitimer which:i new_value old_value
  sendfile out_fd:fd in_fd:fd offset count:u | copy_file_range fd_in:fd off_in fd_out:fd off_out len:u flags:w
  splice fd_in:fd off_in fd_out:fd off_out len:u flags:w | tee fd_in:fd fd_out:fd len:u flags:w
  socket domain:domain type:socket protocol:i | socketpair domain:domain type:socket protocol:i sv
  connect ${socket} addr addrlen:u | accept ${socket} ${address} | accept4 ${socket} ${address} flags:accept
  bind ${socket} addr addrlen:u | listen ${socket} backlog:i | getsockname ${socket} ${address}
  getpeername ${socket} ${address} | shutdown ${socket} how:down
  sendto ${socket} buf:text len:u flags:message dest_addr addrlen:u | recvfrom ${socket} buf len:u flags:message src_addr addrlen
  sendmsg ${socket} msg flags:message | recvmsg ${socket} msg flags:message
  sendmmsg ${socket} msgvec vlen:u flags:message | recvmmsg ${socket} msgvec vlen:u flags:message timeout
  setsockopt ${socket} level:i optname:i optval optlen:u | getsockopt ${socket} level:i optname:i optval optlen
  execve pathname:path argv envp | execveat ${file} argv envp flags:at | exit status:i | exit_group status:i
  clone3 cl_args size:u | wait4 pid:i wstatus options:wait rusage | waitid idtype:i id:i infop options:wait rusage
  kill pid:i sig:signal | tkill tid:i sig:signal | tgkill tgid:i tid:i sig:signal | unshare flags:unshare
  setns fd:fd nstype:unshare | pidfd_open pid:i flags:w | pidfd_send_signal pidfd:fd sig:signal info flags:w
  uname buf | sysinfo info | times buf | getrusage who:i usage | syslog type:i bufp len:i | sethostname name:text len:u
  getrlimit resource:resource rlim | setrlimit resource:resource rlim | prlimit64 pid:i resource:resource new_limit old_limit
  fsync fd:fd | fdatasync fd:fd | syncfs fd:fd | truncate path:path length:i | ftruncate fd:fd length:i
  fallocate fd:fd mode:w offset:i len:i | getdents fd:fd dirp count:u | getdents64 fd:fd dirp count:u
  getcwd buf size:u | chdir path:path | fchdir fd:fd | chroot path:path | pivot_root new_root:path put_old:path
  mkdir pathname:path mode:mode | mkdirat ${file} mode:mode | rmdir pathname:path | creat pathname:path mode:mode
  mknod pathname:path mode:mode dev:w | mknodat ${file} mode:mode dev:w | unlink pathname:path | unlinkat ${file} flags:unlink
  rename ${names} | renameat ${two} | renameat2 ${two} flags:rename | link ${names} | linkat ${two} flags:at
  symlink target:path linkpath:path | symlinkat target:path newdirfd:dirfd linkpath:path
  readlink pathname:path buf bufsiz:u | readlinkat ${file} buf bufsiz:u
  chmod pathname:path mode:mode | fchmod fd:fd mode:mode | fchmodat ${file} mode:mode | umask mask:mode
  chown pathname:path owner:i group:i | lchown pathname:path owner:i group:i | fchown fd:fd owner:i group:i
  fchownat ${file} owner:i group:i flags:at | utimensat ${file} times flags:at | utime filename:path times
  statfs path:path buf | fstatfs fd:fd buf | statx ${file} flags:at mask:w statxbuf
  mount source:path target:path filesystemtype:path mountflags:w data | umount2 target:path flags:w
  openat ${file} flags:open mode:mode? | openat2 ${file} how size:u | close_range first:fd last:fd flags:w
  futex uaddr futex_op:futex val:w timeout uaddr2 val3:w | set_tid_address tidptr | set_robust_list head len:u
  get_robust_list pid:i head_ptr len_ptr | rseq rseq rseq_len:u flags:w sig:w | membarrier cmd:i flags:w cpu_id:i
  epoll_create size:i | epoll_create1 flags:closing | epoll_ctl epfd:fd op:epoll fd:fd event
  epoll_wait ${events} timeout:i | epoll_pwait ${events} timeout:i sigmask sigsetsize:u
  eventfd initval:u | eventfd2 initval:u flags:closing | signalfd4 fd:fd mask size:u flags:closing
  timerfd_create clockid:clock flags:closing | timerfd_settime fd:fd flags:timer new_value old_value
  timerfd_gettime fd:fd curr_value | inotify_init1 flags:closing | inotify_add_watch fd:fd pathname:path mask:w
  inotify_rm_watch fd:fd wd:i | getrandom buf buflen:u flags:random | memfd_create name:path flags:memfd
  arch_prctl code:archPrctl addr | prctl option:i arg2:w arg3:w arg4:w arg5:w | personality persona:w
  setuid uid:i | setgid gid:i | setpgid pid:i pgid:i | getpgid pid:i | getsid pid:i | getpgrp
  setreuid ruid:i euid:i | setregid rgid:i egid:i | getgroups size:i list | setgroups size:u list
  setresuid ruid:i euid:i suid:i | setresgid rgid:i egid:i sgid:i | capget hdrp datap | capset hdrp datap
  getpriority which:i who:i | setpriority which:i who:i prio:i | sched_getaffinity pid:i cpusetsize:u mask
  sched_setaffinity pid:i cpusetsize:u mask | sched_getparam pid:i param | sched_getscheduler pid:i
  sched_setscheduler pid:i policy:i param | getxattr path:path ${attribute} | lgetxattr path:path ${attribute}
  fgetxattr fd:fd ${attribute} | listxattr path:path list size:u | llistxattr path:path list size:u
  fadvise64 fd:fd offset:i len:i advice:i | readahead fd:fd offset:i count:u | reboot magic:w magic2:w op:w arg
  restart_syscall | swapon path:path swapflags:w | swapoff path:path | io_setup nr_events:u ctx_idp | io_destroy ctx_id:w
  io_uring_setup entries:u params | io_uring_enter fd:fd to_submit:u min_complete:u flags:w argp argsz:u
  io_uring_register fd:fd opcode:u arg nr_args:u | riscv_hwprobe pairs pair_count:u cpusetsize:u cpus flags:w
`;
const addresses: ReadonlySet<string> = new Set(['mmap', 'brk', 'mremap', 'shmat']);

/** What a system call is given; undefined for one that is not in the table. */
export type CallSignatures = (name: string) => CallSignature | undefined;

function signatures(own: string, named: Readonly<Record<string, NamedBits>> = namedBits): CallSignatures {
  let found: ReadonlyMap<string, CallSignature> | undefined;
  const read = (): ReadonlyMap<string, CallSignature> =>
    new Map(
      `${table}|${own}`.split(/[|\n]/).flatMap((text) => {
        const [name, ...words] = text.trim().split(/\s+/);
        return name ? [[name, { arguments: words.map(argument), isAddress: addresses.has(name) }] as const] : [];
      }),
    );
  function argument(word: string): CallSignature['arguments'][number] {
    const [name = '', what = '*'] = word.split(':');
    return { name, kind: plain[what] ?? named[what] ?? 'word' };
  }
  return (name) => {
    found ??= read();
    return found.get(name);
  };
}

const cloneBackwards = 'clone flags:clone stack parent_tid tls:w child_tid';
export const genericSignatures = signatures(cloneBackwards);
export const armSignatures = signatures(cloneBackwards, armBits);
export const x86Signatures = signatures('clone flags:clone stack parent_tid child_tid tls:w');
