define(`repeat', `ifelse($1, 0, `', `$2 repeat(decr($1), `$2')')')dnl
repeat(40, `x')
eval(7 ** 5) substr(abcdef, 2, 3) len(hello) translit(hello, a-y, b-z)
