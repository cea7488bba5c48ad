# Makes the inputs of the programs, the same each time, in the working folder.
set -e
awk 'BEGIN { s = 42; for (i = 0; i < 400; i++) { s = (s * 1103515245 + 12345) % 2147483648; print s % 10000 } }' >numbers.txt
awk '{ printf "%d,%s,%d\n", NR, (NR % 3 ? "alpha" : "beta"), $1 }' numbers.txt >table.csv
awk 'BEGIN { print "[" } { printf "%s{\"id\": %d, \"n\": %d, \"tags\": [\"t%d\", \"x\"]}\n", (NR > 1 ? "," : ""), NR, $1, $1 % 7 } END { print "]" }' numbers.txt >data.json
awk '{ printf "line %d has the number %d and the word w%d.\n", NR, $1, $1 % 13 }' numbers.txt >text.txt
awk 'BEGIN { print "<html><body><ul>" } NR < 60 { printf "<li id=\"n%d\"><a href=\"p%d.html\">%d &amp; more</a></li>\n", NR, NR, $1 } END { print "</ul></body></html>" }' numbers.txt >page.html
awk 'BEGIN { print "P2 32 32 255"; for (y = 0; y < 32; y++) for (x = 0; x < 32; x++) print (x * 8 + y * 3) % 256 }' >image.pgm
awk 'BEGIN { for (i = 0; i < 8000; i++) { s = (i * i * 7) % 65536 - 32768; if (s < 0) s += 65536; printf "%c%c", 1 + s % 127, 1 + int(s / 256) % 127 } }' >sound.raw
awk 'BEGIN { print "<?xml version=\"1.0\"?><list>" } { printf "<item n=\"%d\"><v>%d</v></item>\n", NR, $1 } END { print "</list>" }' numbers.txt >data.xml
mkdir -p tree/one/two tree/three
for each in tree/a tree/one/b tree/one/two/c tree/three/d; do head -n 20 numbers.txt >"$each"; done
cpp -P program.c >program.i
{ head -n 100 text.txt; echo 'another line'; tail -n +120 text.txt; } >other.txt
diff -u text.txt other.txt >text.diff || true
rm other.txt
printf '%s\n' text.txt table.csv >names.txt
gpg=$(printf 'plain text of an armor' | base64)
printf -- '-----BEGIN PGP ARMORED FILE-----\n\n%s\n-----END PGP ARMORED FILE-----\n' "$gpg" >armor.txt
printf '*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n' >append.aof
# The static programs, with their symbols: of libraries as Debian has them.
if [ -n "$EQUALITY_STATIC" ]; then
  for each in hash sort lua sqlite expat gmp pcre zstd threads; do
    case $each in
      lua) libraries='-I/usr/include/lua5.4 -llua5.4 -lm' ;;
      sqlite) libraries='-lsqlite3 -lm' ;;
      expat) libraries=-lexpat ;;
      gmp) libraries=-lgmp ;;
      pcre) libraries=-lpcre2-8 ;;
      zstd) libraries='-lzstd -lz -lbz2' ;;
      threads) libraries=-pthread ;;
      *) libraries= ;;
    esac
    gcc -O1 -static -w -o "static-$each" "static-$each.c" $libraries 2>/dev/null
  done
  g++ -O1 -static -o static-throw static-throw.cpp
fi
