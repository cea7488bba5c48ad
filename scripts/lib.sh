# Sourced by the scripts beside it: what a fresh Debian machine needs, each piece installed only where it is missing.

ROOT=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { echo "== $*" >&2; }

die() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# usage "$@": --help prints the comment at the script's top, and ends.
usage() {
  [[ " $* " == *" --help "* || " $* " == *" -h "* ]] || return 0
  sed -n '2,/^[^#]/{/^#/s/^# \?//p}' "$0"
  exit 0
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    sudo "$@"
  else
    die "this needs root, and neither root nor sudo is available here. Run as root, then try again: $*"
  fi
}

# packages COMMAND=PACKAGE...: installs the packages whose command (or file, when it begins with /) is not there.
packages() {
  local pair missing=()
  for pair in "$@"; do
    case ${pair%%=*} in
      /*) [ -e "${pair%%=*}" ] || missing+=("${pair#*=}") ;;
      *) command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}") ;;
    esac
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "these are missing, and there is no apt-get here to install them: ${missing[*]}"
  say "installing ${missing[*]}"
  as_root apt-get update -qq >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Lists of packages, a folder a suite: each is fetched once.
LISTS=${TMPDIR:-/tmp}/rsptrace-lists-$$

# unpack SUITE PACKAGE FOLDER [ARCHITECTURE]: unpacks a package of a Debian suite, or what a package without files depends on,
# without installing it. Whoever calls it removes $LISTS.
unpack() {
  local state mirror package
  state=$LISTS/$1-${4-}
  mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' | awk '$2 == "bookworm" && !seen++ { print $1 }')
  [ -n "$mirror" ] || die "apt knows no mirror of Debian 12 here, from which $2 of $1 could be had"
  mkdir -p "$state/lists/partial" "$state/cache/partial" "$3"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" \
    >"$state/sources.list"
  local options=(-qq -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$state/lists"
    -o "Dir::Cache=$state/cache" -o APT::Sandbox::User=root)
  : >"$state/status"
  [ -z "${4-}" ] || options+=(-o "APT::Architecture=$4" -o "APT::Architectures::=$4" -o "Dir::State::status=$state/status")
  (
    cd "$state"
    [ -e fetched ] || { apt-get "${options[@]}" update >&2 && touch fetched; }
    package=$(apt-cache "${options[@]}" depends --important "$2" | awk -v all="$2" '$1 == "Depends:" && all ~ /^linux-image/ { print $2 }')
    apt-get "${options[@]}" download "${package:-$2}" >&2 && dpkg -x ./*.deb "$3" && rm ./*.deb
  )
}

# backport PACKAGE FILE: unpacks a package of Debian 12's backports into .cache/backports, where FILE says that it is there.
# It is not installed: the distribution's own version stays, and its libraries serve both.
backport() {
  local folder=$ROOT/.cache/backports
  [ -e "$folder/$2" ] && return 0
  say "unpacking $1 from backports"
  unpack bookworm-backports "$1" "$folder"
  rm -rf "$LISTS"
}

# kernel NAME SUITE PACKAGE FILE [ARCHITECTURE]: Debian's own Linux, or a program for it, as .cache/linux/NAME, out of a package's
# FILE (a pattern).
kernel() {
  local folder
  [ -e "$ROOT/.cache/linux/$1" ] && return 0
  say "unpacking $1 of Linux from $3"
  folder=$(mktemp -d)
  unpack "$2" "$3" "$folder" "${5-}"
  mkdir -p "$ROOT/.cache/linux"
  # shellcheck disable=SC2086
  cp "$folder"/$4 "$ROOT/.cache/linux/$1"
  rm -rf "$folder"
}

# linux_kernels [--long]: kernels that page, as people run them, and a shell for each: some 100 MB, once. The installer's package is half the
# size of the kernel's own.
linux_kernels() {
  kernel amd64 bookworm linux-image-cloud-amd64 'boot/vmlinuz-*' amd64
  kernel riscv64 trixie debian-installer-13-netboot-riscv64 'usr/lib/debian-installer/images/*/riscv64/text/debian-installer/riscv64/linux' riscv64
  # Booted under --long alone.
  [ "${1-}" != --long ] || kernel arm64 bookworm linux-image-cloud-arm64 'boot/vmlinuz-*' arm64
  kernel busybox-x86_64 bookworm busybox-static '*bin/busybox' amd64
  kernel busybox-riscv64 trixie busybox-static 'usr/bin/busybox' riscv64
  rm -rf "$LISTS"
}

# npm_tool PACKAGE VERSION [FOLDER]: a package that only a test runs, as .cache/FOLDER/node_modules/PACKAGE; npm takes others out of
# a folder. Its "engines" ask for a newer Node than ours, so that `npm ci` would warn everybody; what the test calls of it runs on ours.
npm_tool() {
  local folder=$ROOT/.cache/${3-npm}
  [ -e "$folder/node_modules/$1" ] && return 0
  say "installing $1"
  npm install --prefix "$folder" --no-save --no-package-lock --no-audit --no-fund --loglevel=error "$1@$2" >&2
}

# build [bundle]: Node, the npm packages exactly as the lock file has them, and dist/; with `bundle`, without declarations for whoever
# imports the library.
build() {
  command -v node >/dev/null || die "Node.js 20.19 or newer is needed (https://nodejs.org)"
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
    die "Node.js 20.19 or newer is needed, this is $(node --version)"
  if [ "$ROOT/package-lock.json" -nt "$ROOT/node_modules/.package-lock.json" ]; then
    say "installing npm packages"
    (cd "$ROOT" && npm ci --no-audit --no-fund --loglevel=error >&2)
    touch "$ROOT/node_modules/.package-lock.json"
  fi
  say "building"
  (cd "$ROOT" && npm run --silent "${1-build}")
}
