// The arguments and results of a process's system calls, against strace.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';

const folder = scratchFolder(t);
const program = join(folder, 'values');
/** A path at the end of a page, behind which nothing can be read; one of no address; one that is too long. */
const source = `#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int n, char **v) {
  char *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(m + 4096, 4096);
  strcpy(m + 4091, "/etc");
  open(m + 4091, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  open((char *)1, O_RDWR);
  char big[400];
  memset(big, 'a', 399);
  big[399] = 0;
  open(big, O_RDONLY);
  chdir(v[1]);
  int f = open("out", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0640);
  write(f, "hello\\n\\"x\\"", 9);
  write(f, big, 100);
  lseek(f, -3, SEEK_END);
  lseek(f, 5000000000LL, SEEK_SET);
  ftruncate(f, 3);
  close(f);
  mkdir("d", 0755);
  rename("d", "e");
  unlinkat(AT_FDCWD, "e", AT_REMOVEDIR);
  access("/nope", R_OK | X_OK);
  access("/tmp", F_OK);
  unlink("out");
  int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  shutdown(s, SHUT_WR);
  fcntl(s, F_DUPFD_CLOEXEC, 100);
  close(-1);
  kill(getpid(), 0);
  struct sigaction a = {.sa_handler = SIG_IGN};
  sigaction(SIGUSR1, &a, 0);
  raise(SIGUSR1);
  readlink("/proc/self/cwd", big, 100);
  umask(022);
  madvise(m, 4096, MADV_DONTNEED);
  syscall(SYS_futex, m, 0x81, 1, 0, 0, 0);
  open(".", O_TMPFILE | O_RDWR, 0600);
  return 0;
}`;
execFileSync('gcc', ['-x', 'c', '-o', program, '-'], { input: source });

interface Call {
  readonly name: string;
  readonly values: readonly string[];
  readonly result: string;
}

/** Arguments are separated by commas outside of quotes and brackets. */
function pieces(text: string): string[] {
  return text.match(/(?:"(?:\\.|[^"\\])*"(?:\.\.\.)?|\{[^}]*\}|\[[^\]]*\]|[^,])+/g)?.map((one) => one.trim()) ?? [];
}

/** Flags in any order. */
function value(text: string): string {
  return /^[A-Z_|]+$/.test(text) ? text.split('|').sort().join('|') : text;
}

function straced(file: string): Call[] {
  const lines = readFileSync(file, 'latin1').split('\n');
  return lines.flatMap((line) => {
    const [, name, given = '', returned = ''] = /^(\w+)\((.*)\)\s+= (.*)$/.exec(line) ?? [];
    if (name === undefined || name === 'execve') return [];
    const [, error] = /^-1 (E\w+)/.exec(returned) ?? [];
    return [{ name, values: pieces(given).map(value), result: error ?? returned }];
  });
}

function traced(file: string): Call[] {
  const events = readFileSync(file, 'utf8').trim().split('\n');
  return events.flatMap((line) => {
    const { name, detail, result = '' } = JSON.parse(line) as { name?: string; detail?: string; result?: string };
    if (!name?.startsWith('syscall::')) return [];
    const values = pieces(detail ?? '').map((one) => value(one.replace(/^\w+: /, '')));
    return [{ name: name.slice(9), values, result: result.replace(/^-\d+ (?=E)/, '') }];
  });
}

t.test('each call has the arguments and the result that strace prints', async (t) => {
  const [trace, log] = [join(folder, 'out.jsonl'), join(folder, 'strace')];
  const { status, stderr } = await rsptrace('run', '-p', 'syscall:**', '-o', trace, program, '--', folder).ended;
  t.equal(status, 0, stderr);
  // Paths whole, as far as a trace has them.
  execFileSync('strace', ['-o', log, '-s', '32', program, folder]);
  const [ours, theirs] = [traced(trace), straced(log)];
  t.same(
    ours.map(({ name }) => name),
    theirs.map(({ name }) => name),
  );
  let compared = 0;
  ours.forEach((call, index) => {
    const other = theirs[index];
    // Addresses differ from run to run, and so do numbers of processes; strace reads what they point to, names
    // protocols, and leaves out what a call does not use.
    const isSame = /^(?:0x|NULL|<unreadable|\d{3,}$|IPPROTO|$)/;
    call.values.forEach((value, at) => {
      const expected = other?.values[at] ?? '';
      if (isSame.test(value) || isSame.test(expected)) return;
      compared++;
      if (value.endsWith('"...') && value.length > 200) t.ok(expected.startsWith(value.slice(0, -4)), 'a part of it');
      else t.equal(value, expected, `${call.name}: argument ${at} of ${call.values.join(', ')}`);
    });
    if (!/^0x|^\d{3,}$|lost/.test(call.result) && other?.name !== 'umask')
      t.equal(call.result, other?.result, `${call.name}(${call.values.join(', ')})`);
  });
  t.ok(compared > 100, `${compared} values`);
  const bad = ours.find(({ values }) => values.includes('<unreadable 0x1>'));
  t.equal(bad?.result, 'EFAULT', 'an address of nothing');
});
