#include <sqlite3.h>
#include <stdio.h>
static int row(void *unused, int count, char **values, char **names) {
  for (int i = 0; i < count; i++) printf("%s%c", values[i], i + 1 < count ? '|' : '\n');
  return 0;
}
int main(void) {
  sqlite3 *db;
  char *error = 0;
  if (sqlite3_open(":memory:", &db)) return 1;
  sqlite3_exec(db,
    "create table t(a integer primary key, b); with recursive f(i) as (select 1 union all select i + 1 from f where i < 400)"
    "insert into t select i, (i * 7919) % 1000 from f; create index x on t(b); select count(*), sum(b), max(a) from t;"
    "select b, a from t order by b limit 5; select nothing from t;", row, 0, &error);
  fprintf(stderr, "%s\n", error ? error : "no error");
  sqlite3_close(db);
  return 0;
}
