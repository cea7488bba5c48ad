#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
int main(void) {
  lua_State *state = luaL_newstate();
  luaL_openlibs(state);
  int failed = luaL_dostring(state,
    "local t = {} for i = 1, 300 do t[i] = (i * 7919) % 1000 end table.sort(t) print(table.concat(t, ' ', 1, 20))"
    "print(pcall(error, 'thrown')) print(string.format('%5.2f %s', 3.14159, ('x'):rep(5)))"
    "local c = coroutine.wrap(function() for i = 1, 5 do coroutine.yield(i) end end) print(c(), c(), c())");
  if (failed) puts(lua_tostring(state, -1));
  lua_close(state);
  return failed;
}
